"""Products of tensors: order of a chain, scales, in-place forms, sizes of 0."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.ops import products
from retrograd.testing import assert_close

from .test_solve import random, tensor


def test_a_chain_is_multiplied_in_the_cheapest_order(monkeypatch):
    multiplied = []

    def counting(a, b):
        multiplied.append((a.shape, b.shape))
        return a @ b

    monkeypatch.setattr(products, "mm", counting)
    sizes = [(30, 35), (35, 15), (15, 5), (5, 10), (10, 20), (20, 25)]  # the textbook's: 15125 multiplications
    rg.linalg.multi_dot([rg.ones(*s) for s in sizes])
    assert sum(m * k * n for (m, k), (_, n) in multiplied) == 15125


def test_input_is_ignored_with_beta_0():
    A, B = rg.ones(2, 2), rg.ones(2, 2)
    nan = rg.full((2, 2), float("nan"))
    assert rg.addmm(nan, A, B, beta=0).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert rg.addmv(nan[0], A, B[0], beta=0).tolist() == [2.0, 2.0]


def test_sums_with_products_are_written_in_place():
    x, A, v = rg.ones(2, 2), rg.ones(2, 2), rg.ones(2)
    x.addmm_(A, A, beta=2)
    assert x.tolist() == [[4.0, 4.0], [4.0, 4.0]]
    y = rg.zeros(2)
    y.addmv_(A, v, alpha=3)
    assert y.tolist() == [6.0, 6.0]
    assert rg.zeros(2, 2).addr_(v, v).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert rg.zeros(3, 2, 2).baddbmm_(rg.ones(3, 2, 4), rg.ones(3, 4, 2)).sum().item() == 48.0


def test_contractions_over_dimensions_without_entries_are_zero():
    assert rg.tensordot(rg.ones(2, 0), rg.ones(0, 3), 1).tolist() == [[0.0] * 3] * 2
    assert rg.kron(rg.ones(0, 2), rg.ones(3, 2)).shape == (0, 4)


def test_dims_of_tensordot_may_count_from_the_end_and_be_plain_numbers():
    a, b = random(2, 3, 4), random(4, 5, 3, seed=1)
    expected = np.einsum("ijk,klj->il", a, b)
    assert_close(rg.tensordot(tensor(a), tensor(b), dims=([-1, 1], [0, -1])).numpy(), expected, atol=1e-12)
    assert_close(rg.tensordot(tensor(a), tensor(b), dims=(2, 0)).numpy(), np.tensordot(a, b, (2, 0)), atol=1e-12)


def test_names_of_one_operator():
    assert rg.linalg.matmul is rg.matmul
    assert rg.ger is rg.outer
    assert rg.matrix_power is rg.linalg.matrix_power
    assert rg.inverse is rg.linalg.inv
    assert rg.det is rg.linalg.det


def test_powers_take_logarithmically_many_products(monkeypatch):
    count = []
    monkeypatch.setattr(products, "matmul", lambda a, b: count.append(1) or a @ b)
    assert rg.matrix_power(tensor([[1.0, 1.0], [0.0, 1.0]]), 100).tolist() == [[1.0, 100.0], [0.0, 1.0]]
    assert len(count) == 8


def test_integers_have_powers_and_chains():
    A = rg.tensor([[1, 1], [0, 1]])
    assert rg.matrix_power(A, 5).tolist() == [[1, 5], [0, 1]]
    assert rg.linalg.multi_dot([A, A, A]).tolist() == [[1, 3], [0, 1]]
    assert rg.kron(A, A).dtype == "int64"


def test_the_vandermonde_matrix_has_a_gradient_at_zero():
    x = tensor([0.0, 2.0], requires_grad=True)
    rg.linalg.vander(x, N=4).sum().backward()
    assert x.grad.tolist() == [1.0, 17.0]


def test_cross_products_need_three_entries():
    with pytest.raises(ValueError, match="cross: no dimension has size 3"):
        rg.cross(rg.ones(2), rg.ones(2))
    with pytest.raises(IndexError, match=r"linalg.cross: dim 4"):
        rg.linalg.cross(rg.ones(3), rg.ones(3), dim=4)


def test_several_dimensions_are_named_axes_as_in_numpy():
    a, b = rg.rand(2, 3, 4), rg.rand(3, 4, 5)
    assert_close(rg.tensordot(a, b, axes=([1, 2], [0, 1])), rg.tensordot(a, b, dims=([1, 2], [0, 1])))
    assert_close(rg.rot90(a, axes=(1, 2)), rg.rot90(a, dims=(1, 2)))
    assert_close(rg.permute(a, axes=(2, 0, 1)), rg.permute(a, dims=(2, 0, 1)))
    with pytest.raises(TypeError, match="two values for 'dims'"):
        rg.tensordot(a, b, dims=1, axes=1)
