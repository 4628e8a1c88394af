"""Batches of cotangents for nested tensors: `is_grads_batched`, and all rows of Jacobians at once."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.autograd import grad
from retrograd.func import vmap
from retrograd.nested import nested_tensor

LENGTHS = (2, 0, 4, 1)


def rows(lengths=LENGTHS, seed=0):
    r = np.random.default_rng(seed)
    return [rg.tensor(r.uniform(-1, 1, (n, 3))) for n in lengths]


def f(c, w):
    return (c * w).sin() * c


def weight():
    return rg.tensor([1.0, -2.0, 0.5], dtype="float64", requires_grad=True)


def cotangents(count=3):
    """Return one batch of nested cotangents, and these one by one."""
    alone = [nested_tensor(rows(seed=k)) for k in range(1, count + 1)]
    return rg.stack(alone), alone


def assert_parts(found, expected):
    assert found.is_nested
    for a, b in zip(found.unbind(), expected.unbind(), strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-12)


def test_a_batch_of_nested_cotangents_gives_the_gradients_of_single_passes():
    x, w = nested_tensor(rows(), requires_grad=True), weight()
    y = f(x, w)
    batch, alone = cotangents()
    assert batch.shape == (3, *y.shape)
    gx, gw = grad(y, [x, w], batch, is_grads_batched=True, retain_graph=True)
    assert gx.shape == (3, *x.shape)
    for k, g in enumerate(alone):
        ex, ew = grad(y, [x, w], g, retain_graph=True)
        assert_parts(gx[k], ex)
        np.testing.assert_allclose(gw[k].numpy(), ew.numpy())


def test_a_batch_of_plain_cotangents_gives_a_batch_of_nested_gradients():
    x = nested_tensor(rows(), requires_grad=True)
    y = f(x, weight()).values().sum(0)
    (found,) = grad(y, x, rg.eye(3, dtype="float64"), is_grads_batched=True, retain_graph=True)
    for k in range(3):
        (expected,) = grad(y, x, rg.eye(3, dtype="float64")[k], retain_graph=True)
        assert_parts(found[k], expected)


def test_a_batch_of_nested_cotangents_with_a_graph_is_differentiated_again():
    x, w = nested_tensor(rows(), requires_grad=True), weight()
    batch, alone = cotangents()
    (g,) = grad(f(x, w), x, batch, is_grads_batched=True, create_graph=True)
    (found,) = grad((g * g).sum() if g.ndim == 0 else sum((g[k] * g[k]).values().sum() for k in range(3)), w)
    expected = 0
    for c in alone:
        (g,) = grad(f(x, w), x, c, create_graph=True)
        expected = expected + grad((g * g).values().sum(), w)[0]
    np.testing.assert_allclose(found.numpy(), expected.numpy())


def test_batches_of_cotangents_of_another_structure_are_refused():
    x = nested_tensor(rows(), requires_grad=True)
    wrong = rg.stack([nested_tensor(rows((1, 1, 4, 1)))] * 2)
    with pytest.raises(RuntimeError, match=r"in component 0 the size j is 2 and 1|has shape"):
        grad(x.sin(), x, wrong, is_grads_batched=True)


def test_backward_inside_a_batch_around_a_nested_leaf():
    def slope(w):
        x = nested_tensor(rows(), requires_grad=True)
        f(x, w).values().sum().backward()
        return x.grad

    ws = rg.tensor([[1.0, 2.0, 3.0], [0.5, 0.0, 1.0]], dtype="float64")
    found = vmap(slope)(ws)
    for k in range(2):
        x = nested_tensor(rows(), requires_grad=True)
        assert_parts(found[k], grad(f(x, ws[k]).values().sum(), x)[0])
