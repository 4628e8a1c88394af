"""Tangents and cotangents may be arrays wherever primals may; lists are refused with the way out."""

import numpy as np
import pytest

import retrograd as rg
from retrograd import func
from retrograd.autograd import forward_ad, functional

X = np.array([1.0, 2.0])
V = np.array([1.0, -1.0])


def square(x):
    return x * x


def cubes(x):
    return (x**3).sum()


def make_dual(x, v):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(square(forward_ad.make_dual(x, v))).tangent


def backward(x, v):
    leaf = rg.tensor(X, requires_grad=True)
    square(leaf).backward(v)
    return leaf.grad


def grad(x, v):
    leaf = rg.tensor(X, requires_grad=True)
    return rg.autograd.grad(square(leaf), leaf, v)[0]


# A call with a primal and a tangent or cotangent, and its result for X and V.
CALLS = {
    "func.jvp": (lambda x, v: func.jvp(square, (x,), (v,))[1], 2 * X * V),
    "func.vjp": (lambda x, v: func.vjp(square, x)[1](v)[0], 2 * X * V),
    "func.linearize": (lambda x, v: func.linearize(square, x)[1](v), 2 * X * V),
    "make_dual": (make_dual, 2 * X * V),
    "functional.jvp": (lambda x, v: functional.jvp(square, x, v)[1], 2 * X * V),
    "functional.vjp": (lambda x, v: functional.vjp(square, x, v)[1], 2 * X * V),
    "functional.hvp": (lambda x, v: functional.hvp(cubes, x, v)[1], 6 * X * V),
    "functional.vhp": (lambda x, v: functional.vhp(cubes, x, v)[1], 6 * X * V),
    "functional.jacobian": (lambda x, v: functional.jacobian(square, x), np.diag(2 * X)),
    "functional.hessian": (lambda x, v: functional.hessian(cubes, x), np.diag(6 * X)),
    "backward": (backward, 2 * X * V),
    "grad": (grad, 2 * X * V),
}


@pytest.mark.parametrize("name", CALLS)
def test_arrays_are_taken_for_tensors(name):
    call, expected = CALLS[name]
    for x in (X, rg.tensor(X)):
        for v in (V, rg.tensor(V)):
            found = call(x, v)
            assert isinstance(found, rg.Tensor)
            np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("name", [name for name in CALLS if name not in ("functional.jacobian", "functional.hessian")])
def test_a_list_is_refused_with_the_way_out(name):
    with pytest.raises((TypeError, RuntimeError), match=r"rg\.tensor"):
        CALLS[name][0](rg.tensor(X), [1.0, -1.0])


@pytest.mark.parametrize("name", ["func.jvp", "func.vjp", "func.linearize"])
def test_an_array_of_another_dtype_is_refused_with_the_way_out(name):
    with pytest.raises(RuntimeError, match=r"is float64, but float32 is expected; convert with \.to\('float32'\)"):
        CALLS[name][0](rg.tensor(X, dtype="float32"), V)


def test_an_array_as_output_is_refused_because_it_left_the_graph():
    with pytest.raises(TypeError, match=r"outputs of the user-provided function .* must be either a Tensor"):
        functional.vjp(lambda x: np.ones(2), X, V)
