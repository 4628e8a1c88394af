"""Gradients computed from an input require grad, and have derivative zero where they do not vary with it."""

import pytest

import retrograd as rg
from retrograd.nn import functional as F

PIECEWISE = {
    "leaky_relu": F.leaky_relu,
    "hardtanh": F.hardtanh,
    "relu6": F.relu6,
    "softshrink": F.softshrink,
    "hardshrink": F.hardshrink,
    "threshold": lambda x: F.threshold(x, 0.1, 5.0),
    "prelu": lambda x: F.prelu(x, rg.tensor([0.2])),
    "rrelu": lambda x: F.rrelu(x, training=False),
    "abs": rg.abs,
    "max": lambda x: x.max(),
    "max_pool1d": lambda x: F.max_pool1d(x.reshape(1, 1, -1), 2),
    "avg_pool1d": lambda x: F.avg_pool1d(x.reshape(1, 1, -1), 2),
    "pad": lambda x: F.pad(x.reshape(1, -1), (1, 1), mode="reflect"),
}


@pytest.mark.parametrize("name", PIECEWISE)
def test_the_gradient_of_a_piecewise_linear_function_has_derivative_zero(name):
    x = rg.tensor([-1.5, 2.0, 0.3, 0.7], requires_grad=True)
    (g,) = rg.autograd.grad(PIECEWISE[name](x).sum(), x, create_graph=True)
    assert g.requires_grad
    (second,) = rg.autograd.grad(g.sum(), x)
    assert second.tolist() == [0.0] * 4


@pytest.mark.parametrize("f", [rg.sum, lambda x: x * 3.0, lambda x: x[1:]])
def test_a_gradient_that_needs_nothing_of_the_input_does_not_require_grad(f):
    x = rg.tensor([-1.5, 2.0], requires_grad=True)
    (g,) = rg.autograd.grad(f(x).sum(), x, create_graph=True)
    assert not g.requires_grad


def test_zero_is_added_to_derivatives_that_are_not():
    x = rg.tensor([-1.5, 2.0], requires_grad=True)
    (g,) = rg.autograd.grad((F.leaky_relu(x) + x**3).sum(), x, create_graph=True)
    (second,) = rg.autograd.grad(g.sum(), x)
    assert second.tolist() == (6.0 * x).tolist()


def test_a_non_leaf_in_the_middle_gets_its_derivative_through_the_zero():
    x = rg.tensor([0.5, 2.0], requires_grad=True)
    y = x * x
    (g,) = rg.autograd.grad(F.relu6(y).sum(), y, create_graph=True)
    assert rg.autograd.grad(g.sum(), x)[0].tolist() == [0.0, 0.0]


def test_backward_with_create_graph_leaves_a_grad_that_has_derivatives():
    x = rg.tensor([-1.5, 2.0], requires_grad=True)
    with pytest.warns(UserWarning, match="create_graph"):
        F.hardtanh(x).sum().backward(create_graph=True)
    assert x.grad.requires_grad
    assert rg.autograd.grad(x.grad.sum(), x)[0].tolist() == [0.0, 0.0]


def test_the_power_zero_of_a_matrix_has_the_gradient_zero():
    x = rg.tensor([1.0, 0.0], requires_grad=True)
    out = rg.linalg.matrix_power(x.diag(), 0)
    assert out.requires_grad
    assert rg.autograd.grad(out.sum(), x)[0].tolist() == [0.0, 0.0]


def test_the_norm_of_order_zero_requires_grad_and_has_no_gradient():
    x = rg.tensor([1.0, 0.0], requires_grad=True)
    out = rg.linalg.vector_norm(x, 0)
    assert out.requires_grad
    assert rg.autograd.grad(out, x, allow_unused=True) == (None,)
