"""The promises that PyTorch's own tests of pipelining make, each kept by both libraries."""

import copy
from types import SimpleNamespace

import pytest
import torch
from torch.distributed import pipelining as theirs
from torch.distributed.pipelining import _IR, _backward, microbatch, schedules

import retrograd as rg

from .pipelining.common import numbers

TORCH = SimpleNamespace(L=torch, **{n: getattr(m, n) for m in (_IR, _backward, microbatch, schedules, theirs)
                                    for n in dir(m) if not n.startswith("__")})  # fmt: skip
OURS = SimpleNamespace(L=rg, **{n: getattr(rg.pipelining, n) for n in dir(rg.pipelining) if not n.startswith("__")})


pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # of PyTorch's own code


@pytest.fixture(params=[TORCH, OURS], ids=["torch", "retrograd"])
def p(request):
    """Return the names of a library's pipelining, with the library as `L`."""
    return request.param


def module(p, forward, **parts):
    """Return a module of a library with these parts, whose forward is `forward(self, ...)`."""
    made = type("Model", (p.L.nn.Module,), {"forward": forward})()
    for name, part in parts.items():
        setattr(made, name, part)
    return made.to(p.L.float64)


def perceptron(p, size=4):
    nn = p.L.nn
    return nn.Sequential(nn.Linear(size, size), nn.ReLU(), nn.Linear(size, size)).to(p.L.float64)


def close(p, a, b):
    return bool(p.L.allclose(a, b, rtol=1e-9, atol=1e-12))


def assert_same_gradients(p, model, expected):
    for name, parameter in model.named_parameters():
        assert close(p, parameter.grad, expected.get_parameter(name).grad), name


def leaf(p, *shape, seed=1):
    return numbers(p.L, *shape, seed=seed, grad=True)


# ---------------------------------------------------------------------------------------------- backward in halves


def test_a_stage_ending_in_a_loss_needs_no_gradient(p):
    model, x, y = perceptron(p), leaf(p, 3, 4), numbers(p.L, 3, 4, seed=5)
    reference, rx = copy.deepcopy(model), leaf(p, 3, 4)
    loss = p.L.nn.MSELoss(reduction="sum")
    [found] = p.stage_backward(stage_output=loss(model(x), y), output_grads=None, input_values=(x,))
    loss(reference(rx), y).backward()
    assert close(p, found, rx.grad)
    assert_same_gradients(p, model, reference)


def test_the_first_half_has_the_gradients_of_inputs_and_of_no_weight(p):
    model, x = perceptron(p), leaf(p, 3, 4)
    rx = leaf(p, 3, 4)
    found, _ = p.stage_backward_input((model(x).sum(),), None, [object(), x], model.parameters())
    copy.deepcopy(model)(rx).sum().backward()
    assert found[0] is None
    assert close(p, found[1], rx.grad)
    assert all(w.grad is None for w in model.parameters())


def test_the_first_half_accumulates_in_grad_of_the_inputs(p):
    model, x, rx = perceptron(p), leaf(p, 3, 4), leaf(p, 3, 4)
    copy.deepcopy(model)(rx * 2).sum().backward()
    for times in (1, 2):
        p.stage_backward_input((model(x * 2).sum(),), None, [x], model.parameters())
        assert close(p, x.grad, rx.grad * times)


def test_halves_add_up_over_microbatches(p):
    model, xs = perceptron(p), [leaf(p, 3, 4, seed=seed) for seed in range(5)]
    reference = copy.deepcopy(model)
    for x in xs:
        _, groups = p.stage_backward_input((model(x).sum(),), None, [x], model.parameters())
        p.stage_backward_weight(model.parameters(), groups)
        reference(x.detach()).sum().backward()
    assert_same_gradients(p, model, reference)


def test_the_second_half_may_retain_the_graph(p):
    model, x = perceptron(p), leaf(p, 3, 4)
    reference = copy.deepcopy(model)
    _, groups = p.stage_backward_input((model(x).sum(),), None, [x], model.parameters())
    p.stage_backward_weight(model.parameters(), groups, retain_graph=True)
    reference(x.detach()).sum().backward()
    assert_same_gradients(p, model, reference)


def test_a_weight_that_is_used_twice_gets_both_gradients(p):
    model = module(p, lambda self, x: (x @ self.w).relu() @ self.w, w=p.L.nn.Parameter(numbers(p.L, 4, 4)))
    reference, x, rx = copy.deepcopy(model), leaf(p, 3, 4), leaf(p, 3, 4)
    [found], groups = p.stage_backward_input([model(x).sum()], None, [x], model.parameters())
    p.stage_backward_weight(model.parameters(), groups)
    reference(rx).sum().backward()
    assert close(p, found, rx.grad)
    assert_same_gradients(p, model, reference)


def test_an_operator_with_several_results_is_halved(p):
    def forward(self, x):
        a, b = x.split(2, dim=1)
        return p.L.cat([self.a(a), self.b(b)], dim=1)

    model = module(p, forward, a=p.L.nn.Linear(2, 2), b=p.L.nn.Linear(2, 2))
    reference, x, rx = copy.deepcopy(model), leaf(p, 3, 4), leaf(p, 3, 4)
    [found], groups = p.stage_backward_input([model(x).sum()], None, [x], model.parameters())
    p.stage_backward_weight(model.parameters(), groups)
    reference(rx).sum().backward()
    assert close(p, found, rx.grad)
    assert_same_gradients(p, model, reference)


@pytest.mark.parametrize("kind", ["product", "identity"])
def test_a_custom_function_is_halved(p, kind):
    if (p, kind) == (TORCH, "identity"):
        pytest.skip("PyTorch 2.13 cannot detach a view in place; its main branch can")

    class Product(p.L.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return g @ b.T if ctx.needs_input_grad[0] else None, a.T @ g if ctx.needs_input_grad[1] else None

    class Identity(p.L.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return g

    def forward(self, x):
        return Product.apply(x, self.w) if kind == "product" else Identity.apply(x @ self.w)

    model = module(p, forward, w=p.L.nn.Parameter(numbers(p.L, 4, 4)))
    reference, x, rx, g = copy.deepcopy(model), leaf(p, 3, 4), leaf(p, 3, 4), numbers(p.L, 3, 4, seed=7)
    out = model(x)
    [found], groups = p.stage_backward_input((out,), [g], [x], model.parameters())
    del out
    p.stage_backward_weight(model.parameters(), groups)
    reference(rx).backward(g)
    assert close(p, found, rx.grad)
    assert_same_gradients(p, model, reference)


# ------------------------------------------------------------------------------------------------- microbatches


def test_arguments_of_different_batch_sizes_are_split_and_merged(p):
    xs = [numbers(p.L, rows, 3, seed=rows) for rows in (4, 8, 16)]
    named = {f"x{i}": x for i, x in enumerate(xs)}
    args, kwargs = p.split_args_kwargs_into_chunks(tuple(xs), named, 2)
    assert [tuple(x.shape) for x in args[1]] == [(2, 3), (4, 3), (8, 3)]
    assert [tuple(x.shape) for x in kwargs[0].values()] == [(2, 3), (4, 3), (8, 3)]
    spec = p.TensorChunkSpec(0)
    merged = p.merge_chunks(args, (spec,) * 3)
    assert type(merged) is tuple
    assert all(close(p, a, b) for a, b in zip(merged, xs, strict=True))
    by_name = p.merge_chunks(kwargs, dict.fromkeys(named, spec))
    assert list(by_name) == list(named)
    assert all(close(p, by_name[name], x) for name, x in named.items())


def test_specs_are_made_of_dimensions(p):
    args, kwargs = p.TensorChunkSpec.from_tuple((0, 1)), p.TensorChunkSpec.from_dict({"z": 1})
    assert [spec.split_dim for spec in args] == [0, 1]
    x, y, z = (numbers(p.L, 4, 6, seed=seed) for seed in range(3))
    first, second = p.split_args_kwargs_into_chunks((x, y), {"z": z}, 2, args, kwargs)
    assert [tuple(part.shape) for part in first[0]] == [(2, 6), (4, 3)]
    assert tuple(second[1]["z"].shape) == (4, 3)


# -------------------------------------------------------------------------------------------------------- pipes


def example(p):
    """A parameter in two stages, a skip connection, and four stages."""

    def forward(self, x, y):
        x = x @ self.shared
        skip = x
        x = (x + y).relu()
        p.pipe_split()
        x = self.first(x @ self.shared)
        p.pipe_split()
        x = (x.relu() + skip) @ self.alone
        p.pipe_split()
        return self.last(x).relu()

    weights = {name: p.L.nn.Parameter(numbers(p.L, 4, 4, seed=i)) for i, name in enumerate(("shared", "alone"))}
    return module(p, forward, first=p.L.nn.Linear(4, 4), last=p.L.nn.Linear(4, 4), **weights)


def aliased(p):
    """Two names of one parameter."""

    def forward(self, x, y):
        x = x @ self.a + y
        p.pipe_split()
        return (x @ self.b).relu()

    weight = p.L.nn.Parameter(numbers(p.L, 4, 4))
    return module(p, forward, a=weight, b=weight)


def layers(p):
    def forward(self, x, y):
        x = self.a(x)
        p.pipe_split()
        x = self.b(x)
        p.pipe_split()
        return self.c(x) - y

    return module(p, forward, a=perceptron(p), b=perceptron(p), c=perceptron(p))


def written_to(p):
    """A stage that writes to a value in place, and a keyword argument that all stages use."""

    def forward(self, x, y=None):
        x = self.a(x)
        p.pipe_split()
        x.add_(y)
        x = self.b(x)
        p.pipe_split()
        return x.relu() * y

    return module(p, forward, a=p.L.nn.Linear(4, 4), b=p.L.nn.Linear(4, 4))


@pytest.mark.parametrize(("make", "stages"), [(example, 4), (aliased, 2), (layers, 3), (written_to, 3)])
def test_a_pipe_has_the_models_results_and_names(p, make, stages):
    model, x, y = make(p), numbers(p.L, 6, 4, seed=2), numbers(p.L, 6, 4, seed=3)
    pipe = p.pipeline(model, (x,), {"y": y}) if make is written_to else p.pipeline(model, (x, y))
    assert pipe.num_stages == stages
    with p.L.no_grad():  # with gradients, PyTorch's stages refuse to write to what they receive
        found = pipe(x, y)
    assert type(found) is tuple
    assert close(p, found[0], model(x, y))
    names = set(model.state_dict())
    for index in range(stages):
        part = pipe.get_stage_module(index)
        assert set(part.state_dict()) <= names
        assert part is pipe.split_gm.get_submodule(f"submod_pp_{index}")
    assert [name for name, _ in pipe.split_gm.named_children()] == [f"submod_pp_{i}" for i in range(stages)]
    with pytest.raises(ValueError, match=str(stages)):
        pipe.get_stage_module(stages)


def test_a_transformer_is_split_before_layers(p):
    nn = p.L.nn
    model = nn.Sequential(*[nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True) for _ in range(4)])
    model = model.to(p.L.float64).eval()
    x = numbers(p.L, 2, 3, 8)
    pipe = p.pipeline(model, (x,), split_spec={str(i): p.SplitPoint.BEGINNING for i in (1, 2, 3)})
    assert pipe.num_stages == 4
    assert bool(p.L.allclose(pipe(x)[0], model(x), atol=1e-7))
    parts = [len({name.split(".")[0] for name in pipe.get_stage_module(i).state_dict()}) for i in range(4)]
    assert parts == [1] * 4


def test_split_points_have_pytorchs_values():
    assert {point.name: point.value for point in rg.pipelining.SplitPoint} == {
        point.name: point.value for point in theirs.SplitPoint
    }
