"""Laws of every transform, checked on the random programs of tests/func/programs.py."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import retrograd as rg
from retrograd.func import grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
from retrograd.testing import assert_close

from .programs import DTYPE, built, points, programs, tensor

laws = settings(max_examples=150, derandomize=True)
batches = st.lists(points, min_size=1, max_size=3)


def scalar(f):
    return lambda x: (f(x) * rg.tensor([1.0, -2.0, 0.5], dtype=DTYPE)).sum()


def close(actual, expected):
    assert_close(actual, expected, rtol=1e-8, atol=1e-8)


def difference(f, x, t, step=1e-4):
    """Return the derivative of f at x along t, by central differences of fourth order."""
    near = [f(x + k * step * t) for k in (-2, -1, 1, 2)]
    return (near[0] - 8 * near[1] + 8 * near[2] - near[3]) / (12 * step)


@given(programs, points, points)
@laws
def test_the_forward_derivative_is_the_difference_quotient(steps, x, t):
    steps = [s for s in steps if s[0] != "chosen"]  # its value jumps
    f, x, t = built(steps), tensor(x), tensor(t)
    assert_close(jvp(f, (x,), (t,))[1], difference(f, x, t), rtol=1e-5, atol=1e-5)


@given(programs, points, points, points)
@laws
def test_jvp_and_vjp_are_transposes(steps, x, t, g):
    f, x, t, g = built(steps), tensor(x), tensor(t), tensor(g)
    out, along = jvp(f, (x,), (t,))
    value, pull = vjp(f, x)
    close(value, out)
    close((pull(g)[0] * t).sum(), (g * along).sum())


@given(programs, points, points)
@laws
def test_linearize_is_jvp(steps, x, t):
    f, x, t = built(steps), tensor(x), tensor(t)
    out, push = linearize(f, x)
    expected = jvp(f, (x,), (t,))
    close(out, expected[0])
    close(push(t), expected[1])
    close(push(2 * t), 2 * expected[1])


@given(programs, points)
@laws
def test_jacobians_by_rows_and_by_columns_agree(steps, x):
    f, x = built(steps), tensor(x)
    close(jacrev(f)(x), jacfwd(f)(x))
    close(jacrev(f, chunk_size=2)(x), jacfwd(f, chunk_size=2)(x))


@given(programs, points)
@laws
def test_the_hessian_is_symmetric_and_the_same_in_every_order(steps, x):
    f, x = scalar(built(steps)), tensor(x)
    expected = hessian(f)(x)
    close(expected, expected.t())
    for outer, inner in itertools.product((jacfwd, jacrev), repeat=2):
        close(outer(inner(f))(x), expected)


@given(programs, batches)
@laws
def test_a_batch_is_a_loop(steps, xs):
    f, xs = built(steps), tensor(xs)
    close(vmap(f)(xs), rg.stack([f(x) for x in xs]))
    close(vmap(f, 1, 1)(xs.t()), rg.stack([f(x) for x in xs], 1))


@given(programs, batches)
@laws
def test_the_gradient_of_a_batch_is_the_batch_of_gradients(steps, xs):
    f, xs = scalar(built(steps)), tensor(xs)
    expected = rg.stack([grad(f)(x) for x in xs])
    close(vmap(grad(f))(xs), expected)
    close(grad(lambda xs: vmap(f)(xs).sum())(xs), expected)


@given(programs, points)
@laws
def test_autograd_agrees_with_the_transforms(steps, x):
    f, x = scalar(built(steps)), tensor(x)
    leaf = x.clone().requires_grad_()
    close(rg.autograd.grad(f(leaf), leaf)[0], grad(f)(x))


# ------------------------------------------------------------------------------------------------- nested twice


def by_loop(f):
    return lambda x: rg.stack([f(row) for row in rg.stack([x, x * 0.5])])


def by_vmap(f):
    return lambda x: vmap(f)(rg.stack([x, x * 0.5]))


def slope(f):
    """Return the gradient of a sum of f, in reverse mode."""
    return grad(lambda x: f(x).sum())


def slope_by_columns(f):
    """Return the same in forward mode, column by column."""
    return lambda x: rg.stack([jvp(lambda x: f(x).sum(), (x,), (t,))[1] for t in rg.eye(3, dtype=DTYPE)])


def along(f):
    return lambda x: jvp(f, (x,), (rg.cos(x),))[1]


def along_by_pulling(f):
    """Return J t by two reverse passes: the vjp is linear in the cotangent, and the transpose of this map is J."""

    def g(x):
        out, pull = vjp(f, x)
        _, transpose = vjp(lambda c: pull(c)[0], rg.zeros_like(out))
        return transpose(rg.cos(x))[0]

    return g


# Two ways to write each transform; for any nesting, both must agree.
WAYS = {"vmap": (by_vmap, by_loop), "grad": (slope, slope_by_columns), "jvp": (along, along_by_pulling)}


KINDS = [*itertools.product(WAYS, repeat=2), ("grad", "vmap", "jvp"), ("vmap", "grad", "grad")]


@pytest.mark.parametrize("kinds", KINDS)
@given(steps=programs, x=points)
@settings(max_examples=20, derandomize=True)
def test_nested_transforms_agree_with_other_ways_to_write_them(kinds, steps, x):
    f = h = built(steps)
    for kind in kinds:
        f, h = WAYS[kind][0](f), WAYS[kind][1](h)
    close(f(tensor(x)), h(tensor(x)))
