"""A Pipe is a module: the model's parameters under its names, both modes, any batch size."""

import copy
import pickle

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.nn.functional import mse_loss
from retrograd.pipelining import DetachExecutor, Pipe, SplitPoint, TrivialLossWrapper, pipe_split, pipeline

SPEC = {"2": SplitPoint.BEGINNING}


def close(a, b):
    return a.shape == b.shape and (a - b).abs().max().item() <= 1e-6


def plain():
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))


def modal():
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 2))


def of(model, spec=SPEC, rows=3):
    return pipeline(model, (rg.randn(rows, 4),), split_spec=spec)


def state(module):
    return {name: value.tolist() for name, value in module.state_dict().items()}


def test_it_has_the_models_own_parameters_buffers_and_names():
    model = modal()
    model.register_buffer("unused", rg.ones(2))
    pipe = of(model)
    assert isinstance(pipe, nn.Module)
    assert list(pipe.state_dict()) == list(model.state_dict())
    assert [n for n, _ in pipe.named_buffers()] == [n for n, _ in model.named_buffers()]
    for (name, mine), (other, theirs) in zip(pipe.named_parameters(), model.named_parameters(), strict=True):
        assert (name, mine) == (other, mine)
        assert mine is theirs


def test_a_state_goes_from_the_model_to_a_pipe_and_back():
    a, b = modal(), modal()
    of(a).load_state_dict(b.state_dict())
    assert state(a) == state(b)
    a.load_state_dict(of(modal()).state_dict())


def test_names_of_the_model_may_be_those_of_the_pipes_properties():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.stages, self.captured, self.output = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2)

        def forward(self, x):
            x = self.captured(self.stages(x))
            pipe_split()
            return self.output(x)

    model, x = Named(), rg.randn(3, 4)
    pipe = pipeline(model, (x,))
    assert pipe.num_stages == len(pipe.stages) == 2
    assert list(pipe.state_dict()) == list(model.state_dict())
    assert close(pipe(x)[0], model(x))
    assert close(rg.func.functional_call(pipe, {"stages.bias": rg.ones(4)}, (x,))[0],
                 rg.func.functional_call(model, {"stages.bias": rg.ones(4)}, (x,)))  # fmt: skip


def test_a_name_that_would_replace_a_method_is_refused():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.info = nn.Linear(4, 4)

        def forward(self, x):
            return self.info(x)

    with pytest.raises(RuntimeError, match=r"the model's 'info' would replace Pipe.info\(\)"):
        pipeline(Named(), (rg.ones(2, 4),))


@pytest.mark.parametrize("training", [True, False])
def test_train_and_eval_reach_dropout_and_norms_in_both_directions(training):
    model, x = modal().train(training), rg.randn(3, 4)
    pipe = pipeline(model, (x,), split_spec=SPEC)
    other = copy.deepcopy(model)
    for mode in (training, not training, training, not training):
        pipe.train(mode)
        other.train(mode)
        for rows in (3, 5):
            x = rg.randn(rows, 4)
            rg.manual_seed(rows)
            found = pipe(x)[0]
            rg.manual_seed(rows)
            assert close(found, other(x))
        assert all((a - b).abs().max().item() < 1e-6 for a, b in zip(pipe.buffers(), other.buffers(), strict=True))


def test_stages_have_both_modes_also_after_a_copy_or_a_pickle():
    model, x = modal(), rg.randn(4, 4)
    pipe = of(model, {"3": SplitPoint.BEGINNING})
    expected, before = model.eval()(x), pickle.dumps(model.state_dict())
    stages = [pipe.get_stage_module(i) for i in range(2)]
    for first, second in (stages, copy.deepcopy(stages), pickle.loads(pickle.dumps(stages))):
        assert close(second.eval()(*first.eval()(x))[0], expected)
        assert not close(second.train()(*first.train()(x))[0], expected)
        first.load_state_dict(pickle.loads(before), strict=False)


def test_a_stage_may_have_other_inputs_in_evaluation():
    model, x = modal(), rg.randn(4, 4)
    pipe = of(model, {"3": SplitPoint.BEGINNING})
    stages = [pipe.build_stage(i) for i in range(2)]
    names = []
    for mode in (True, False):
        for stage in stages:
            stage.submod.train(mode)
        values = pipe.named_inputs((x,), {})
        for stage in stages:
            values |= {name: sent.value for name, sent in stage.forward(0, values, keep=False).items()}
        names.append(stages[1].inputs[0].name)
    assert names[0] != names[1]
    assert close(values[stages[1].outputs[0]], model.eval()(x))


def test_a_frozen_norm_stays_frozen_in_the_mode_of_the_capture():
    model, x = modal(), rg.randn(3, 4)
    model[1].eval()
    before = model[1].running_mean.tolist()
    pipe = pipeline(model, (x,), split_spec=SPEC)
    pipe(x)
    assert model[1].running_mean.tolist() == before
    assert [part.training for part in model] == [True, False, True, True]


def test_a_model_that_runs_in_one_mode_only_raises_an_error_in_the_other():
    pipe = of(nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8)).eval(), {"1": SplitPoint.BEGINNING}, rows=1)
    assert pipe(rg.ones(1, 4))[0].shape == (1, 8)
    with pytest.raises(RuntimeError, match="captured in evaluation mode only"):
        pipe.train()(rg.ones(1, 4))


def test_an_optimizer_over_it_trains_the_model():
    a = plain()
    b = copy.deepcopy(a)
    pipe = of(a)
    x, y = rg.randn(6, 4), rg.randn(6, 2)
    for module, run in ((b, b), (pipe, lambda x: pipe(x)[0])):
        optimizer = rg.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
        for _ in range(3):
            optimizer.zero_grad()
            mse_loss(run(x), y).backward()
            optimizer.step()
    assert all(close(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))


def test_it_nests_in_other_modules():
    class Outer(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner, self.head = inner, nn.Linear(2, 1)

        def forward(self, x):
            return self.head(self.inner(x)[0])

    model, x = modal(), rg.randn(3, 4)
    outer = Outer(of(model))
    assert list(outer.state_dict())[:2] == ["inner.0.weight", "inner.0.bias"]
    outer.eval()
    assert close(outer(x), outer.head(model.eval()(x)))
    outer.train()
    assert not close(outer(x), outer(x))


def test_functional_call_gives_it_other_parameters_for_one_call():
    model, x = plain(), rg.randn(3, 4)
    pipe, other = of(model), {name: p.detach() * 2 for name, p in plain().named_parameters()}
    assert close(rg.func.functional_call(pipe, other, (x,))[0], rg.func.functional_call(model, other, (x,)))
    assert close(pipe(x)[0], model(x))

    def loss(run):
        return lambda parameters: (run(parameters) ** 2).sum()

    found = rg.func.grad(loss(lambda p: rg.func.functional_call(pipe, p, (x,))[0]))(other)
    expected = rg.func.grad(loss(lambda p: rg.func.functional_call(model, p, (x,))))(other)
    assert all(close(found[name], expected[name]) for name in expected)


def test_a_conversion_reaches_the_stages():
    pipe = of(modal().eval()).to(rg.float64)
    x = rg.randn(3, 4, dtype=rg.float64)
    assert pipe.split_gm.get_submodule("submod_pp_0").get_submodule("1").running_mean.dtype != rg.float64
    stage = pipe.get_stage_module(0)
    assert {t.dtype for t in (*stage.parameters(), *stage.buffers()) if t.dtype.kind == "f"} == {rg.float64}
    assert stage(x)[0].dtype == rg.float64


class Sized(nn.Module):
    """A model whose graph depends on the batch size, in both stages."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(4, 4)

    def forward(self, x, y):
        x = self.a(x).reshape(x.shape[0] * 2, 4)
        pipe_split()
        return (self.b(x).reshape(x.shape[0] // 2, 2, 4) + y[:, None]) / x.shape[0] + rg.arange(y.shape[0])[
            :, None, None
        ]


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 64])
def test_it_runs_batches_of_any_size(rows):
    model = Sized()
    x, y = rg.randn(rows, 4), rg.randn(rows, 4)
    pipe = pipeline(model, (rg.randn(3, 4), rg.randn(3, 4)))
    assert close(pipe(x, y)[0], model(x, y))
    assert pipe.carried() == {(0, 1): ["reshape"]}  # each stage reads sizes from its own tensors
    assert close(pipe.get_stage_module(1)(pipe.get_stage_module(0)(x)[0], y)[0], model(x, y))
    with pytest.raises(ValueError, match="batch"):
        pipe(x, rg.randn(rows + 1, 4))


def test_a_model_that_is_another_one_for_other_sizes_keeps_the_size_of_the_example():
    class Choosy(nn.Module):
        def forward(self, x):
            return x.sin() if x.shape[0] % 2 else x.cos().sin()

    pipe = pipeline(Choosy(), (rg.ones(3, 2),))
    assert close(pipe(rg.ones(3, 2))[0], rg.ones(3, 2).sin())
    with pytest.raises(ValueError, match="traced with") as caught:
        pipe(rg.ones(4, 2))
    [why] = caught.value.__notes__
    assert why.startswith("the module was captured for this batch size only, because with batch = ")
    line = Choosy.forward.__code__.co_firstlineno + 1
    assert f"test_pipe_module.py:{line} in forward" in why
    copied = pickle.loads(pickle.dumps(pipe))
    with pytest.raises(ValueError, match="traced with") as caught:
        copied(rg.ones(3, 3))
    assert not getattr(caught.value, "__notes__", None)


def test_its_results_are_a_flat_tuple_in_the_models_order():
    class Several(nn.Module):
        def forward(self, x):
            return {"z": x, "a": (x + 1, [x + 2])}

    x = rg.ones(2)
    assert [out.tolist() for out in pipeline(Several(), (x,))(x)] == [[1, 1], [2, 2], [3, 3]]


def test_it_is_made_from_the_graph_that_calls_the_stages():
    model, x = modal(), rg.randn(3, 4)
    pipe = of(model)
    again = Pipe(pipe.split_gm, 2, False, None)
    assert list(again.state_dict()) == list(model.state_dict())
    assert close(again.eval()(x)[0], model.eval()(x))
    assert str(again) == str(pipe.split_gm)
    assert repr(again) == repr(pipe.split_gm)
    with pytest.raises(ValueError, match="num_stages is 3, but the graph calls 2"):
        Pipe(pipe.split_gm, 3, False, None)
    with pytest.raises(ValueError, match="calls a, which is not a stage"):
        Pipe(rg.fx.symbolic_trace(Sized()), 2, False, None)


def test_its_executor_runs_the_backward_pass_of_a_loss():
    wrapper = TrivialLossWrapper(plain(), mse_loss)
    x, y = rg.randn(3, 4), rg.randn(3, 2)
    pipe = pipeline(wrapper, (x, y), split_spec={"module.2": SplitPoint.BEGINNING})
    assert isinstance(pipe.executor, DetachExecutor)
    assert close(pipe.executor.run(x, y), wrapper(x, y))
    assert wrapper.module[0].weight.grad is not None


def test_a_copy_has_parameters_of_its_own():
    model, x = plain(), rg.randn(3, 4)
    pipe = of(model)
    for other in (copy.deepcopy(pipe), pickle.loads(pickle.dumps(pipe))):
        assert close(other(x)[0], model(x))
        with rg.no_grad():
            for parameter in other.parameters():
                parameter.zero_()
        assert other(x)[0].abs().max().item() == 0
        assert other.get_stage_module(0)(x)[0].abs().max().item() == 0
        assert pipe(x)[0].abs().max().item() > 0
