"""`Tensor.grad_dtype`: the dtype of a leaf's gradient, set and read, and what refuses it."""

import pytest

from .adapter import leaf, outcome, parity


def name(dtype):
    return None if dtype is None else str(dtype).rpartition(".")[2]


@parity
def test_it_is_by_default_that_of_the_leaf(m):
    half = m.ones(2, dtype=m.float16)
    return [name(x.grad_dtype) for x in (leaf(m, 2), half, half.requires_grad_())]


@pytest.mark.parametrize("dtype", ["float64", "float16", "float32"])
@parity
def test_backward_converts_to_it(m, dtype):
    x = m.ones(2, requires_grad=True)
    x.grad_dtype = getattr(m, dtype)
    for _ in range(2):
        (x * 3).sum().backward()
    return name(x.grad_dtype), x.grad


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph")
@parity
def test_gradients_with_a_graph_have_it_too(m):
    x = m.ones(2, requires_grad=True)
    x.grad_dtype = m.float64
    (x * x).sum().backward(create_graph=True)
    return x.grad.detach(), x.grad.requires_grad


@parity
def test_grad_does_not_use_it(m):
    x = m.ones(2, requires_grad=True)
    x.grad_dtype = m.float64
    return m.autograd.grad((x * 3).sum(), x)


@parity
def test_none_allows_any(m):
    x = m.ones(2, requires_grad=True)
    x.grad_dtype = None
    (x * 3).sum().backward()
    first, x.grad = x.grad, m.ones(2, dtype=m.float64)
    return x.grad_dtype, first, x.grad


@pytest.mark.parametrize("chosen", ["float32", "float64"])
@parity
def test_a_grad_must_have_it_to_be_assigned(m, chosen):
    x, found = m.ones(2, requires_grad=True), []
    x.grad_dtype = getattr(m, chosen)
    for dtype in (m.float32, m.float64):
        found.append(outcome(lambda dtype=dtype: setattr(x, "grad", m.ones(2, dtype=dtype)), "grad_dtype"))
        x.grad = None
    return found


@parity
def test_what_refuses_it(m):
    x = m.ones(2, requires_grad=True)
    x.grad = m.ones(2)
    return [
        outcome(lambda: setattr(x, "grad_dtype", m.float64), "Cannot set grad_dtype to", "already a gradient"),
        outcome(lambda: setattr(x, "grad_dtype", m.float32)),
        outcome(lambda: setattr(x, "grad_dtype", 3), "grad_dtype must be a", "dtype or None, but got int"),
        outcome(lambda: (x * 2).grad_dtype, "can only be accessed on leaf tensors"),
    ]
