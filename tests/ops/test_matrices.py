"""Matrices built from vectors: powers at zero, writes to diagonals, dtypes of index arguments."""

import pytest

import retrograd as rg


def test_powers_have_their_derivatives_at_zero_too():
    x = rg.zeros(2, dtype=rg.float64, requires_grad=True)
    (g,) = rg.autograd.grad(rg.vander(x, 3, increasing=True).sum(), x, create_graph=True)
    assert g.tolist() == [1.0, 1.0]
    (h,) = rg.autograd.grad(g.sum(), x)
    assert h.tolist() == [2.0, 2.0]
    assert rg.vander(rg.tensor([True])).dtype == rg.int64


def test_the_diagonal_of_a_matrix_by_diag_is_a_copy():
    x = rg.ones(2, 2)
    x.diag().fill_(7.0)
    assert x.tolist() == [[1.0, 1.0]] * 2
    x.diagonal().fill_(7.0)
    assert x.tolist() == [[7.0, 1.0], [1.0, 7.0]]


@pytest.mark.parametrize(
    ("shape", "wrap", "places"),
    [
        ((3, 2), False, [0, 3]),
        ((5, 2), True, [0, 3, 6, 9]),
        ((7, 3), True, [0, 4, 8, 12, 16, 20]),
        ((2, 3), True, [0, 4]),
        ((2, 2, 2), False, [0, 7]),
        ((0, 2), True, []),
    ],
)
def test_fill_diagonal_writes_where_pytorch_does(shape, wrap, places):
    x = rg.zeros(shape)
    assert x.fill_diagonal_(1.0, wrap) is x
    assert x.flatten().nonzero().flatten().tolist() == places


def test_a_filled_diagonal_gets_no_gradient():
    x = rg.ones(2, 2, requires_grad=True)
    y = x * 3
    y.fill_diagonal_(0.0)
    y.sum().backward()
    assert x.grad.tolist() == [[0.0, 3.0], [3.0, 0.0]]
    with pytest.raises(ValueError, match="fill_diagonal_: expected a matrix"):
        rg.zeros(2, 2, 3).fill_diagonal_(1.0)


def test_indices_of_triangles_have_the_requested_dtype_and_may_be_empty():
    assert rg.tril_indices(2, 3, -1).dtype == rg.int64
    assert rg.triu_indices(3, 3, dtype=rg.int32).dtype == rg.int32
    assert rg.triu_indices(0, 3).shape == rg.tril_indices(2, 2, -5).shape == (2, 0)


def test_turning_four_times_comes_back():
    x = rg.arange(6).reshape(2, 3)
    assert rg.rot90(x, 4).tolist() == x.tolist()
    assert rg.rot90(rg.rot90(x), -1).tolist() == x.tolist()
    assert x.t().tolist() == x.mT.tolist() == x.swapaxes(0, 1).tolist() == x.swapdims(0, 1).tolist()
