"""Graphs run users' Functions of every kind as eager code does: values, derivatives, writes."""

import copy
import pickle
from collections import namedtuple

import pytest

import retrograd as rg
from retrograd import fx
from retrograd.autograd import Function, forward_ad
from retrograd.autograd.function import NestedIOFunction, once_differentiable
from retrograd.testing import assert_close
from retrograd.utils.checkpoint import checkpoint

from ..case_groups import group_cases

Pair = namedtuple("Pair", "first second")


class Several(Function):
    """Two outputs with a gradient, one without, and a number; the context has an attribute and saved tensors."""

    @staticmethod
    def forward(ctx, x, scale, y=None):
        largest = x.argmax()
        ctx.save_for_backward(x)
        ctx.scale = scale
        ctx.mark_non_differentiable(largest)
        return x * scale, largest, x.sum(), 3

    @staticmethod
    def backward(ctx, g, _, h, __):
        (x,) = ctx.saved_tensors
        return g * 5 * ctx.scale + h * x, None, None


class Fixed(Function):
    """A floating-point output that is marked as not differentiable."""

    @staticmethod
    def forward(ctx, x):
        sign = x.sign()
        ctx.mark_non_differentiable(sign)
        return x * sign, sign

    @staticmethod
    def backward(ctx, g, _):
        return g * 11


class Dirty(Function):
    """Write to the argument."""

    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 13


class DirtySetup(Function):
    """Write to the first argument, and return a second output."""

    @staticmethod
    def forward(x, y):
        x.add_(y)
        return x, x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_dirty(inputs[0])
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx, g, h):
        (y,) = ctx.saved_tensors
        return g * 2 + h, g * 3 + h * y


class Once(Function):
    """A backward that is not differentiable."""

    @staticmethod
    def forward(ctx, x):
        return x.exp()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g * 17


class Unmaterialized(Function):
    """Gets None for outputs without a gradient."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x + 1, x + 2

    @staticmethod
    def backward(ctx, g, h):
        return (g if h is None else g + h) * 19


class Listed(Function):
    """Tensors in containers have no gradient, but their values count."""

    @staticmethod
    def forward(ctx, x, others, options):
        ctx.factor = options["factor"]
        return x * others[0][0] + others[1] + options["shift"]

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor, None, None


class Containers(Function):
    """Results in containers."""

    @staticmethod
    def forward(ctx, x):
        return x * 2, [x + 1, (x + 2, None)], {"a": x + 3}, Pair(x + 4, 5)

    @staticmethod
    def backward(ctx, g, *others):
        return g * 23


class Both(NestedIOFunction):
    """Arguments and results are nested, with gradients."""

    @staticmethod
    def forward_extended(ctx, pair, factor):
        ctx.factor = factor
        return {"sum": pair["a"] + pair["b"], "parts": [pair["a"] * 1, pair["b"] * 1]}

    @staticmethod
    def backward_extended(ctx, grads):
        a, b = grads["parts"]
        return {"a": grads["sum"] * ctx.factor + a, "b": grads["sum"] + 3 * b}, None


class Same(Function):
    """Return the argument itself."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return -g


class Square(Function):
    """A Function for all transforms, whose derivatives are 3 x in backward, and 5 x forward."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return g * 3 * ctx.saved_tensors[0]

    @staticmethod
    def jvp(ctx, t):
        return t * 5 * ctx.saved_tensors[0]


class OwnVmap(Function):
    """A Function whose batching rule differs from its forward: it negates, so that a test can tell which one ran."""

    @staticmethod
    def forward(x):
        return x * 2

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Save nothing."""

    @staticmethod
    def backward(ctx, g):
        return g * 29

    @staticmethod
    def vmap(info, in_dims, x):
        return -OwnVmap.apply(x), in_dims[0]


def several(x):
    y, largest, total, number = Several.apply(x, 2.0)
    return y + total * number + largest


def dirty(x):
    y = x * 1
    z = Dirty.apply(y)
    return y * z


def dirty_view(x):
    y = x * 1
    Dirty.apply(y[0])
    return y * y


def dirty_setup(x):
    y = x * 1
    z, w = DirtySetup.apply(y, x)
    return y * z + w


def both(x):
    out = Both.apply({"a": x, "b": x * 2}, 31.0)
    return out["sum"] + out["parts"][0] * out["parts"][1]


def containers(x):
    y, (z, (w, none)), d, pair = Containers.apply(x)
    assert none is None
    assert pair.second == 5
    return y * z * w * d["a"] * pair.first


def detached(x):
    with rg.no_grad():
        y = Square.apply(x)
    return y * x


def differentiated(x):
    z = x.clone().requires_grad_()
    y = Square.apply(z)
    [g] = rg.autograd.grad(y.sum(), z, create_graph=True)
    return y * g


def dual_square(x):
    with forward_ad.dual_level():
        primal, tangent = forward_ad.unpack_dual(Square.apply(forward_ad.make_dual(x, x + 1)))
    return primal * tangent


PROGRAMS = {
    "several outputs": several,
    "an output without gradient": lambda x: Fixed.apply(x)[0] * Fixed.apply(x)[1],
    "a write": dirty,
    "a write in setup_context": dirty_setup,
    "a write to a view": dirty_view,
    "once differentiable": Once.apply,
    "None for a gradient": lambda x: Unmaterialized.apply(x)[0],
    "containers of arguments": lambda x: Listed.apply(x, [(x, 1), x + 1], {"factor": 37.0, "shift": x}),
    "containers of results": containers,
    "nested": both,
    "the argument itself": lambda x: Same.apply(x) * x,
    "no_grad": detached,
    "every transform": lambda x: Square.apply(x),
    "in a checkpoint": lambda x: checkpoint(lambda x: Square.apply(x).sin(), x, use_reentrant=False),
    "differentiated inside": differentiated,
    "in a dual level": dual_square,
    "in func.grad": lambda x: rg.func.grad(lambda x: Square.apply(x).sin().sum())(x),
    "in func.vjp": lambda x: rg.func.vjp(Square.apply, x)[1](x)[0],
    "in func.jvp": lambda x: rg.func.jvp(Square.apply, (x,), (x + 1,))[1],
    "in func.vmap": lambda x: rg.func.vmap(Square.apply)(x),
    "in func.vmap of its own": lambda x: rg.func.vmap(OwnVmap.apply)(x),
    "in func.vmap of func.grad": lambda x: rg.func.vmap(rg.func.grad(lambda x: Square.apply(x).sum()))(x),
    "in func.jacrev": lambda x: rg.func.jacrev(Square.apply)(x[0]),
}


def gradient_of(f, x):
    """Return the value and the gradient at a copy of x, after which x is compared with what it was."""
    x = x.detach().clone().requires_grad_()
    before = x.detach().clone()
    out = f(x)
    (out * out).sum().backward()
    assert_close(x.detach(), before, rtol=0, atol=0)
    return out.detach(), x.grad


def stored(module):
    return pickle.loads(pickle.dumps(module))


RUNS = {
    "code": lambda module: module,
    "interpreted": lambda module: fx.Interpreter(module).run,
    "transformed": lambda module: fx.Transformer(module).transform(),
    "copied": copy.deepcopy,
    "pickled": stored,
    "traced again": lambda module: fx.trace(module, rg.ones(2, 3)),
    "traced symbolically": fx.symbolic_trace,
}


@group_cases
@pytest.mark.parametrize("f", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_graph_runs_and_differentiates_as_the_program_does(f, run):
    example, x = rg.ones(2, 3), rg.randn(2, 3)
    module = fx.trace(f, example)
    assert example.tolist() == [[1.0] * 3] * 2
    module.graph.lint()
    for found, expected in zip(gradient_of(run(module), x), gradient_of(f, x), strict=True):
        assert_close(found, expected)


def test_a_node_names_the_function():
    module = fx.trace(lambda x: Several.apply(x, 2.0)[0], rg.ones(2))
    [node] = [n for n in module.graph.nodes if n.target is Several._operator]
    assert (node.name, node.args[1:], node.kwargs) == ("several", (2.0,), {})
    assert "several = Several(x, 2.0)" in module.code


@pytest.mark.parametrize("f", [f for name, f in PROGRAMS.items() if name in ("several outputs", "every transform")])
def test_a_symbolic_trace_records_a_function_as_one_node(f):
    module, x = fx.symbolic_trace(f), rg.randn(2, 3)
    for found, expected in zip(gradient_of(module, x), gradient_of(f, x), strict=True):
        assert_close(found, expected)


def test_a_symbolic_trace_finds_proxies_in_containers():
    f, x = PROGRAMS["containers of arguments"], rg.randn(2, 3)
    for found, expected in zip(gradient_of(fx.symbolic_trace(f), x), gradient_of(f, x), strict=True):
        assert_close(found, expected)


def test_transforms_of_a_graph_use_the_rules_of_a_function():
    module, x = fx.trace(Square.apply, rg.ones(2)), rg.tensor([2.0, 3.0])
    assert rg.func.grad(lambda x: module(x).sum())(x).tolist() == [6.0, 9.0]
    assert rg.func.jvp(module, (x,), (rg.ones(2),))[1].tolist() == [10.0, 15.0]
    assert rg.func.vmap(fx.trace(OwnVmap.apply, rg.ones(())))(x).tolist() == [-4.0, -6.0]


def test_a_write_without_return_is_refused_by_name():
    class Silent(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            return x.sum()

    x = rg.ones(2)
    with pytest.raises(RuntimeError, match=r"Silent: forward writes to an argument of shape \(2,\)"):
        fx.trace(lambda x: Silent.apply(x * 1), x)
    assert x.tolist() == [1.0, 1.0]


def test_a_function_that_writes_to_an_input_of_the_graph_writes_to_the_argument():
    module, x = fx.trace(lambda x: Dirty.apply(x) + 1, rg.ones(2)), rg.tensor([1.0, 2.0])
    assert module(x).tolist() == [3.0, 5.0]
    assert x.tolist() == [2.0, 4.0]


@pytest.mark.parametrize("transform", [lambda f: rg.func.grad(lambda x: f(x).sum()), rg.func.vmap])
def test_a_transform_in_a_trace_refuses_a_context_that_it_would_lose(transform):
    with pytest.raises(RuntimeError, match=r"Once: .*forward takes ctx.*a trace around it.*define setup_context"):
        fx.trace(lambda x: transform(Once.apply)(x), rg.ones(2))
