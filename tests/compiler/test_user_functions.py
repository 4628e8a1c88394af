"""Users' Functions and custom operators in compiled functions: the eager results, with the eager number of calls."""

import warnings

import numpy as np
import pytest

import retrograd as rg
from retrograd import library

from .comparison import numbers, observe

CALLS = []
SCALE = 3.0


class Growth(rg.autograd.Function):
    """A Function with two differentiable outputs, saved inputs and outputs, attributes, and a global in backward."""

    @staticmethod
    def forward(ctx, x, y, n):
        out = (x * y).exp()
        is_positive = x > 0
        ctx.save_for_backward(x, y, out)
        ctx.n = n
        ctx.mark_non_differentiable(is_positive)
        return out, is_positive, x - y

    @staticmethod
    def backward(ctx, g, _, h):
        x, y, out = ctx.saved_tensors
        return g * out * y * ctx.n * SCALE + h, g * out * x - h, None


class KeepsTensor(rg.autograd.Function):
    """A Function that keeps a tensor as an attribute of ctx."""

    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.x * g


@library.custom_op("test_user_functions::scale", mutates_args=())
def scale(x: rg.Tensor, by: float) -> rg.Tensor:
    """Multiply outside of the library."""
    CALLS.append("scale")
    return rg.from_numpy(x.numpy() * np.float32(by))


scale.register_fake(lambda x, by: rg.empty_like(x))
scale.register_autograd(
    lambda ctx, g: (g * ctx.by, None), setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1])
)


@library.custom_op("test_user_functions::two", mutates_args=())
def two(x: rg.Tensor) -> tuple[rg.Tensor, rg.Tensor]:
    """Return two results."""
    CALLS.append("two")
    return x.sin(), rg.from_numpy(np.sign(x.numpy()))


def save_two(ctx, inputs, output):
    """Save an input and a result."""
    ctx.save_for_backward(inputs[0], output[0])


def differentiate_two(ctx, g, h):
    """Return the gradient of `two`."""
    x, sine = ctx.saved_tensors
    return g * x.cos() + h * sine


two.register_fake(lambda x: (rg.empty_like(x), rg.empty_like(x)))
two.register_autograd(differentiate_two, setup_context=save_two)


@library.custom_op("test_user_functions::fill", mutates_args=("x",))
def fill(x: rg.Tensor, value: float) -> None:
    """Write to an argument."""
    CALLS.append("fill")
    x.numpy()[...] = value


@library.custom_op("test_user_functions::unknown", mutates_args=())
def unknown(x: rg.Tensor) -> rg.Tensor:
    """Return a result of unknown shape."""
    CALLS.append("unknown")
    return rg.from_numpy(x.numpy().copy())


def backward_outside(f):
    """Return a step that calls a function, and runs the backward pass from its results."""

    def step(w, x):
        outs = f(w, x)
        sum(out.square().sum() for out in outs if out.requires_grad).backward()
        return [out.detach() for out in outs], w.grad

    return step


def backward_inside(f):
    """Return a function whose calls include the backward pass."""

    def step(w, x):
        outs = f(w, x)
        sum(out.square().sum() for out in outs if out.requires_grad).backward()
        return [out.detach() for out in outs]

    return step


FUNCTIONS = [
    lambda w, x: Growth.apply(w * x, w.sin(), 3),
    lambda w, x: (scale(w * x, 2.0) + 1,),
    lambda w, x: two(w * x),
]


def trace_of(step, calls=5):
    """Return what is observed of calls, and which custom operators ran."""
    CALLS.clear()
    w, seen = numbers(3).requires_grad_(), []
    for i in range(calls):
        w.grad = None
        seen.append(observe(step(w, numbers(3, seed=i))))
        seen.append(observe(w.grad))
    return seen, list(CALLS)


@pytest.mark.parametrize("f", FUNCTIONS, ids=["Function", "operator", "operator with two results"])
@pytest.mark.parametrize("where", ["inside", "outside"])
def test_results_gradients_and_calls_are_the_eager_ones(f, where):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if where == "inside":
            expected, compiled = trace_of(backward_inside(f)), rg.compile(backward_inside(f), fullgraph=True)
            assert trace_of(compiled) == expected
        else:
            expected, compiled = trace_of(backward_outside(f)), rg.compile(f, fullgraph=True)
            assert trace_of(backward_outside(compiled)) == expected
            assert None not in compiled.programs[-1].graph.programs.values()
    assert compiled.programs


def test_the_ctx_of_each_call_has_its_own_saved_tensors():
    compiled, w = rg.compile(lambda x: Growth.apply(w * x, w, 1)[0]), numbers(3).requires_grad_()
    for _ in range(3):
        first, second = compiled(numbers(3, seed=1)), compiled(numbers(3, seed=2))
        found = [rg.autograd.grad(out.sum(), w)[0] for out in (first, second)]
        eager = [Growth.apply(w * numbers(3, seed=i), w, 1)[0] for i in (1, 2)]
        assert [observe(g) for g in found] == [observe(rg.autograd.grad(out.sum(), w)[0]) for out in eager]


def test_a_global_that_a_users_backward_reads(monkeypatch):
    compiled, w = rg.compile(lambda x: Growth.apply(w * x, w, 1)[0]), numbers(3).requires_grad_()
    for value in (3.0, 3.0, 4.0, 3.0):
        monkeypatch.setitem(globals(), "SCALE", value)
        found = rg.autograd.grad(compiled(numbers(3)).sum(), w)[0]
        assert observe(found) == observe(rg.autograd.grad(Growth.apply(w * numbers(3), w, 1)[0].sum(), w)[0])


def test_gradients_of_gradients_through_a_users_function():
    def second(f):
        w = numbers(3).requires_grad_()
        (g,) = rg.autograd.grad(f(w).sum(), w, create_graph=True)
        return observe(rg.autograd.grad(g.sum(), w)[0])

    compiled = rg.compile(lambda w: Growth.apply(w, w, 2)[0])
    for _ in range(3):
        assert second(compiled) == second(lambda w: Growth.apply(w, w, 2)[0])


def test_a_tensor_as_attribute_of_ctx_runs_eagerly():
    compiled, w = rg.compile(lambda x: KeepsTensor.apply(w * x)), numbers(3).requires_grad_()
    with pytest.warns(UserWarning, match="ctx of KeepsTensor has an attribute x of type Tensor; save tensors by"):
        compiled(numbers(3))
    assert not compiled.programs


def test_an_operator_that_writes_to_its_argument():
    def f(x):
        fill(x, 2.0)
        fill(x[0], 3.0)
        return x * 2

    compiled = rg.compile(f, fullgraph=True)
    for seed in range(3):
        mine, its = numbers(2, 2, seed=seed), numbers(2, 2, seed=seed)
        assert observe(compiled(mine)) == observe(f(its))
        assert observe(mine) == observe(its)


def test_an_operator_without_a_shape_function_runs_eagerly_and_once_per_call():
    compiled = rg.compile(lambda x: unknown(x) + 1)
    CALLS.clear()
    with pytest.warns(UserWarning, match="unknown has no function that tells the shape of its result"):
        compiled(numbers(2))
    compiled(numbers(2))
    assert CALLS == ["unknown", "unknown"]
