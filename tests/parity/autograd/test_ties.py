"""Gradients at ties, at NaN, at zero powers and at repeated indices, as in PyTorch."""

import pytest

from .adapter import data, leaf, parity

NAN = float("nan")
TIES = {
    "max": lambda m, x: x.max(),
    "min": lambda m, x: x.min(),
    "max along a dimension": lambda m, x: x.max(0)[0],
    "min along a dimension": lambda m, x: x.min(0)[0],
    "maximum": lambda m, x: m.maximum(x, x.flip(0)),
    "minimum": lambda m, x: m.minimum(x, x.flip(0)),
    "clamp": lambda m, x: x.clamp(1, 2),
}
SHARED = {
    "amax": lambda m, x: x.amax(),
    "amin": lambda m, x: x.amin(),
    "amax along a dimension": lambda m, x: x.amax(0),
}
VALUES = {"ties": (2, 1, 2, 1), "NaNs": (NAN, 1, NAN, 2), "equal": (1, 1, 1, 1)}


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("name", TIES)
@parity
def test_gradients_of_equal_elements(m, name, values):
    x = leaf(m, *VALUES[values])
    TIES[name](m, x).sum().backward()
    return str(data(x.grad + 0))


@pytest.mark.parametrize("values", ["ties", "equal"])
@pytest.mark.parametrize("name", SHARED)
@parity
def test_gradients_that_are_shared(m, name, values):
    x = leaf(m, *VALUES[values])
    SHARED[name](m, x).sum().backward()
    return x.grad


@pytest.mark.parametrize("name", SHARED)
@parity(
    known="PyTorch's max() shares among NaNs, its amax() divides by zero; ours share", ours="'[0.5, 0.0, 0.5, 0.0]'"
)
def test_gradients_that_are_shared_by_nans(m, name):
    x = leaf(m, *VALUES["NaNs"])
    SHARED[name](m, x).sum().backward()
    return str(data(x.grad))


@parity
def test_powers_at_zero(m):
    x, n = leaf(m, 0, 0, 0), leaf(m, 0, 1, 2)
    return m.autograd.grad((x**n).sum(), (x, n)), [m.autograd.grad((x**k).sum(), x) for k in (0, 1, 2)]


INDICES = {
    "index": lambda m, x, i: x[i],
    "index_select": lambda m, x, i: x.index_select(0, i),
    "gather": lambda m, x, i: x.gather(0, i),
    "take_along_dim": lambda m, x, i: m.take_along_dim(x, i, 0),
    "embedding": lambda m, x, i: m.nn.functional.embedding(i, x[:, None])[:, 0],
}


@pytest.mark.parametrize("name", INDICES)
@parity
def test_repeated_indices_accumulate(m, name):
    x = leaf(m, 1, 2, 3)
    weights = m.tensor([1.0, 10.0, 100.0, 1000.0])
    (INDICES[name](m, x, m.tensor([0, 2, 0, 0])) * weights).sum().backward()
    return x.grad
