"""A pipe's graph with an explicit backward part, and the executor that runs it."""

from operator import getitem

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.core import operator_named
from retrograd.fx import Graph, GraphModule
from retrograd.library import custom_op
from retrograd.nn.functional import cross_entropy, mse_loss
from retrograd.pipelining import (
    DetachExecutor,
    MultiUseParameterConfig,
    Pipeline,
    TrivialLossWrapper,
    pipe_split,
    pipeline,
)
from retrograd.pipelining.split.backward_graph import STAGE_BACKWARD


class Skipping(nn.Module):
    """A model in which stages 1, 2 and 3 use the value of stage 0."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(4)])

    def forward(self, x):
        first = h = self.layers[0](x).tanh()
        for layer in list(self.layers)[1:]:
            pipe_split()
            h = layer(h).tanh() + first
        return h


class Tied(nn.Module):
    """A model in which the first and the last stage share a weight with the second."""

    def __init__(self):
        super().__init__()
        self.embed, self.mix = nn.Embedding(7, 5), nn.Linear(5, 5)

    def forward(self, ids):
        h = self.embed(ids)
        pipe_split()
        h = self.mix(h).tanh() + self.embed.weight.mean(0)
        pipe_split()
        return h @ self.embed.weight.T


class Dead(nn.Module):
    """A model in which stage 1 computes an unused value; integers and detached values carry no gradient."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x, y):
        h = self.a(x)
        pipe_split()
        aside = self.b(h)
        pipe_split()
        chosen = aside.argmax(1)
        out = self.c(h) + aside.detach().mean() + chosen[:, None]
        return {"loss": mse_loss(out, y), "aside": aside}


@custom_op("pipes::blind", mutates_args=())
def blind(x: rg.Tensor) -> rg.Tensor:
    """Return twice x; the derivative is None."""
    return x * 2


blind.register_fake(lambda x: rg.empty_like(x))
blind.register_autograd(lambda ctx, g: None)


class Blind(nn.Module):
    """A model in which stage 0 computes a scalar that gets no gradient."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Parameter(rg.ones(3)), nn.Parameter(rg.ones(()))

    def forward(self, x, y):
        h = (x * self.first).sum()
        pipe_split()
        return {"loss": (blind(h) * self.last - y).sum()}


MODELS = {
    "blind": lambda: (Blind(), (rg.randn(2, 3), rg.randn(2))),
    "skipping": lambda: (TrivialLossWrapper(Skipping(), mse_loss), (rg.randn(5, 4), rg.randn(5, 4))),
    "tied": lambda: (TrivialLossWrapper(Tied(), cross_entropy), (rg.randint(7, (6,)), rg.randint(7, (6,)))),
    "dead": lambda: (Dead(), (rg.randn(6, 3), rg.randn(6, 2))),
}


def loss_of(output):
    return output["loss"] if isinstance(output, dict) else output


def gradients(model):
    return {name: None if p.grad is None else p.grad.clone() for name, p in model.named_parameters()}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("config", MultiUseParameterConfig)
def test_the_executor_s_gradients_are_those_of_plain_backward(name, config):
    model, args = MODELS[name]()
    plain = model(*args)
    loss_of(plain).backward()
    expected = gradients(model)
    model.zero_grad()
    pipe = pipeline(model, args, multi_use_param_spec=config)
    pipe.split_gm.graph.lint()
    found = DetachExecutor(pipe.split_gm).run(*args)
    assert loss_of(found).item() == pytest.approx(loss_of(plain).item(), rel=1e-6)
    for key, gradient in gradients(model).items():
        if expected[key] is None:
            assert gradient is None or not gradient.abs().max().item()
        else:
            assert (gradient - expected[key]).abs().max().item() <= 1e-6


def test_stages_go_back_once_each_in_reverse_and_gradients_of_several_users_are_added():
    model, args = MODELS["skipping"]()
    graph = pipeline(model, args).split_gm.graph
    calls = [node.name for node in graph.nodes if node.op in ("call_module", "call_function")]
    back = calls[calls.index("mean_grad") :]
    assert back == [
        "mean_grad",
        "stage_backward_3", "add_1_grad", "tanh_grad",
        "stage_backward_2", "add_grad", "tanh_grad_1", "tanh_grad_2",
        "stage_backward_1", "tanh_grad_3", "tanh_grad_4",
        "stage_backward_0",
    ]  # fmt: skip
    sums = [node.name for node in graph.nodes if getattr(node.target, "name", "") == "add_gradients"]
    assert sums == ["tanh_grad_2", "tanh_grad_4"]
    last = graph.find_nodes(op="call_function")[-1]
    assert [n.name for n in last.kwargs["output_grads"]] == ["tanh_grad_4"]


def test_stages_that_the_loss_does_not_depend_on_are_left_out():
    model, args = MODELS["dead"]()
    graph = pipeline(model, args).split_gm.graph
    names = [node.name for node in graph.nodes if node.name.startswith("stage_backward")]
    assert names == ["stage_backward_2", "stage_backward_0"]


def test_the_printed_graph_reads_like_the_model_in_reverse():
    model, args = MODELS["tied"]()
    code = pipeline(model, args).split_gm.code
    places = [code.index(f"ops.stage_backward(stage_output=submod_pp_{stage}") for stage in (2, 1, 0)]
    assert places == sorted(places)


def test_without_a_loss_the_graph_has_no_backward_pass():
    graph = pipeline(Skipping(), (rg.randn(2, 4),)).split_gm.graph
    assert not [node for node in graph.nodes if node.name.startswith("stage_backward")]


def test_frozen_stages_return_no_gradient_and_the_others_train():
    model, args = MODELS["skipping"]()
    model.module.layers[0].requires_grad_(False)
    model.module.layers[1].requires_grad_(False)
    loss_of(model(*args)).backward()
    expected = gradients(model)
    model.zero_grad()
    DetachExecutor(pipeline(model, args).split_gm).run(*args)
    for key, gradient in gradients(model).items():
        assert (gradient is None) == (expected[key] is None)
        assert gradient is None or (gradient - expected[key]).abs().max().item() <= 1e-6


def test_inputs_that_require_grad_get_theirs():
    model, (x, y) = MODELS["skipping"]()
    x.requires_grad = True
    model(x, y).backward()
    expected, x.grad = x.grad, None
    DetachExecutor(pipeline(model, (x, y)).split_gm).run(x, y)
    assert (x.grad - expected).abs().max().item() <= 1e-6


def test_the_executor_cuts_values_between_stages_into_leaves():
    seen = []

    class Watching(DetachExecutor):
        def call_module(self, target, args, kwargs):
            seen.extend(a for a in args if a.requires_grad)
            return super().call_module(target, args, kwargs)

    model, args = MODELS["skipping"]()
    Watching(pipeline(model, args).split_gm).run(*args)
    assert len(seen) == 5
    assert all(value.is_leaf for value in seen)


class Halves(nn.Module):
    """A stage that takes a pair by name and returns a pair, or a loss of it."""

    def __init__(self, makes_loss):
        super().__init__()
        self.makes_loss, self.scale = makes_loss, nn.Parameter(rg.tensor([2.0, 3.0]))

    def forward(self, pair, *, offset=0.0):
        made = pair[0] * self.scale + offset, pair[1] * self.scale
        return (made[0] * made[1]).sum() if self.makes_loss else made


def test_stages_that_take_nested_values_by_name_are_cut_too():
    graph = Graph()
    x = graph.placeholder("x")
    first = graph.call_module("first", (), {"pair": (x, x), "offset": 1.0})
    halves = tuple(graph.call_function(getitem, (first, i)) for i in range(2))
    loss = graph.call_module("last", (), {"pair": halves, "offset": halves[0]})
    seed = graph.call_function(operator_named("ones_like"), (loss,))
    back = graph.call_function(
        STAGE_BACKWARD, (), {"stage_output": (loss,), "output_grads": (seed,), "input_values": halves}
    )
    seeds = tuple(graph.call_function(getitem, (back, i)) for i in range(2))
    graph.call_function(STAGE_BACKWARD, (), {"stage_output": halves, "output_grads": seeds, "input_values": ()})
    graph.output(loss)
    seen = []

    class Watching(DetachExecutor):
        def call_module(self, target, args, kwargs):
            seen.append(all(value.is_leaf for value in kwargs["pair"]))
            return super().call_module(target, args, kwargs)

    module = GraphModule({"first": Halves(False), "last": Halves(True)}, graph)
    found = Watching(module).run(rg.tensor([1.0, -1.0]))
    expected = Halves(True), Halves(False)
    pair = expected[1]((rg.tensor([1.0, -1.0]),) * 2, offset=1.0)
    plain = expected[0](pair, offset=pair[0])
    plain.backward()
    assert (found.item(), seen) == (plain.item(), [True, True])
    assert [p.grad.tolist() for p in module.parameters()] == [m.scale.grad.tolist() for m in reversed(expected)]
    loss.kwargs = {"pair": first, "offset": halves[0]}
    assert Watching(module).run(rg.tensor([1.0, -1.0])).item() == plain.item()
    assert seen == [True] * 4


def test_a_backward_call_without_its_stage_is_refused():
    graph = Graph()
    x = graph.placeholder("x")
    kwargs = {"stage_output": (x,), "output_grads": (x,), "input_values": ()}
    graph.output(graph.call_function(STAGE_BACKWARD, (), kwargs))
    with pytest.raises(RuntimeError, match="stage_backward: its stage_output comes from no stage"):
        DetachExecutor(GraphModule(nn.Module(), graph)).run(rg.ones(1))


@pytest.mark.parametrize("schedule", ["1f1b", "zb1p"])
def test_a_step_adds_no_gradient_where_none_arrives(schedule):
    model, (x, y) = MODELS["blind"]()
    Pipeline(model, 2, schedule=schedule, loss_fn=lambda out, y: out["loss"]).step(x, y, target=y)
    assert model.first.grad is None
    assert model.last.grad is not None
