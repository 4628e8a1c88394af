"""Derivatives at ties, kinks, zeros and repeated indices; the convention for complex numbers."""

import numpy as np
import pytest
import torch

import retrograd as rg

from .adapter import data, leaf, parity


@parity
def test_ties_share(m):
    x, y = leaf(m, 2, 1, 2), leaf(m, 2, 2, 1)
    m.maximum(x, y).sum().backward()
    z = leaf(m, 3, 3, 1)
    z.amax().backward()
    w = leaf(m, 3, 3, 1)
    w.max().backward()
    return x.grad, y.grad, z.grad, w.grad


@parity
def test_kinks(m):
    x = leaf(m, 0, -1, 1)
    m.autograd.backward([x.abs().sum(), x.relu().sum(), x.clamp(0, 1).sum()])
    return x.grad


@parity
def test_power_at_zero(m):
    x, e = leaf(m, 0, 0, 2), leaf(m, 0, 2, 0)
    (x**e).sum().backward()
    y = leaf(m, 0, 2)
    (y**0).sum().backward()
    return x.grad, e.grad, y.grad


@parity
def test_repeated_indices_accumulate(m):
    x = leaf(m, 1, 2, 3)
    (x[m.tensor([0, 0, 2])] * m.tensor([1.0, 10.0, 100.0])).sum().backward()
    return x.grad


@parity
def test_products_of_zeros(m):
    grads = []
    for values in ([2, 0, 3], [0, 0, 3], [1, 2, 3]):
        x = leaf(m, *values)
        x.prod().backward()
        grads.append(x.grad)
    return grads


@parity
def test_square_root_at_zero_and_masked(m):
    x = leaf(m, 0, 4)
    y = leaf(m, 0, 4)
    with np.errstate(all="ignore"):  # NumPy warns where PyTorch does not
        m.where(x > 0, x.sqrt(), x).sum().backward()
        y.sqrt().sum().backward()
    return x.grad, y.grad


@parity
def test_a_complex_gradient_is_the_direction_of_steepest_ascent(m):
    z = m.tensor([3 + 4j], requires_grad=True)
    (z * z.conj()).abs().sum().backward()
    w = m.tensor([1 + 2j], requires_grad=True)
    (w * (2 + 1j)).abs().sum().backward()
    return [complex(round(v.real, 4), round(v.imag, 4)) for g in (z.grad, w.grad) for v in data(g)]


# ------------------------------------------------------------------------------------------------ no gradient at all

CONSTANTS = {
    "linalg.vector_norm of order 0": lambda m, x: m.linalg.vector_norm(x, ord=0, dim=0),
    "norm of order 0": lambda m, x: m.norm(x, 0),
    "linalg.matrix_power 0": lambda m, x: m.linalg.matrix_power(x, 0),
    "cdist of order 0": lambda m, x: m.cdist(x, x.detach() + 1, p=0.0),
    "pdist of order 0": lambda m, x: m.nn.functional.pdist(x, p=0.0),
    "residuals of lstsq": lambda m, x: m.linalg.lstsq(x, x.detach())[1],
}


@pytest.mark.parametrize("function", CONSTANTS.values(), ids=CONSTANTS)
def test_constants_that_require_grad_give_zeros_or_no_gradient(function):
    ours, theirs = (gradient_of_constant(m, function, 1.0) for m in (rg, torch))
    assert ours == theirs


@pytest.mark.parametrize("function", list(CONSTANTS.values())[:2], ids=list(CONSTANTS)[:2])
def test_a_norm_of_order_0_passes_no_gradient_to_operands_without_a_derivative(function):
    with np.errstate(invalid="ignore"):
        ours, theirs = (gradient_of_constant(m, function, -1.0) for m in (rg, torch))
    assert ours == theirs


def gradient_of_constant(m, function, corner):
    """Return the gradient, as a list or None, of a constant function of the square roots of a matrix."""
    x = m.tensor([[corner, 2.0, 0.5], [1.0, 3.0, 0.5], [1.0, 2.0, 4.0]], requires_grad=True)
    (g,) = m.autograd.grad(function(m, x.sqrt()).sum(), x, allow_unused=True)
    return None if g is None else g.tolist()
