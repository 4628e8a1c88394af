"""Norms at 0, of empty and of complex tensors; operators derived from norms."""

import math
import warnings

import numpy as np
import pytest

import retrograd as rg
from retrograd.testing import assert_close

from .test_solve import random, tensor


@pytest.mark.parametrize("order", [2, 1, 3, 0.5, math.inf, -1, -math.inf])
def test_the_gradient_at_zero_is_zero(order):
    x = rg.zeros(3, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = rg.linalg.vector_norm(x, order)
        y.backward()
    assert (y.item(), x.grad.tolist()) == (0.0, [0.0, 0.0, 0.0])


@pytest.mark.parametrize("order", ["fro", 1, -1, math.inf, -math.inf])
def test_the_gradient_of_a_zero_matrix_is_zero(order):
    x = rg.zeros(3, 2, requires_grad=True)
    rg.linalg.matrix_norm(x, order).backward()
    assert not x.grad.numpy().any()


def test_the_gradient_of_a_gradient_at_zero_is_finite():
    x = rg.zeros(3, requires_grad=True)
    (g,) = rg.autograd.grad(rg.linalg.norm(x), x, create_graph=True)
    (h,) = rg.autograd.grad(g.sum(), x)
    assert np.isfinite(h.numpy()).all()


def test_norms_of_nothing():
    assert [rg.linalg.vector_norm(rg.ones(0), p).item() for p in (2, 1, 0, 3)] == [0.0] * 4
    for p in (math.inf, -1, -math.inf):
        with pytest.raises(ValueError, match=r"linalg.vector_norm: .*nothing to choose from"):
            rg.linalg.vector_norm(rg.ones(0), p)
    assert rg.linalg.matrix_norm(rg.ones(0, 3)).item() == 0.0
    assert rg.linalg.cond(rg.ones(2, 0, 0)).tolist() == [0.0, 0.0]
    assert rg.linalg.matrix_rank(rg.ones(0, 2)).item() == 0


@pytest.mark.parametrize("dim", [None, (-1,), (0,), (0, 1), (1, 2)])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_the_euclidean_norm_over_any_dimensions(dim, keepdim, dtype):
    x = random(2, 3, 4, dtype=dtype)
    for layout in (np.ascontiguousarray, np.asfortranarray):
        out = rg.linalg.norm(rg.tensor(layout(x)), dim=dim, keepdim=keepdim)
        expected = np.sqrt((np.abs(x) ** 2).sum(axis=dim, keepdims=keepdim))
        assert out.dtype == expected.dtype
        assert_close(out.numpy(), expected, rtol=1e-6, atol=0)


def test_a_dtype_may_be_passed():
    x = rg.tensor([3.0, 4.0])
    assert rg.linalg.vector_norm(x, dtype=rg.float64).dtype == "float64"
    assert rg.linalg.matrix_norm(x[None], dtype="float64").dtype == "float64"
    with pytest.raises(TypeError, match=r"linalg.norm: dtype complex64 does not suit float32"):
        rg.linalg.norm(x, dtype="complex64")


def test_an_order_turns_one_dimension_into_vectors_and_two_into_matrices():
    x = random(2, 3)
    for order in (1, 2, math.inf, -1, "fro", "nuc"):
        assert_close(rg.linalg.norm(tensor(x), order).item(), np.linalg.norm(x, order), atol=1e-12)
    assert_close(rg.linalg.norm(tensor(x), 1, dim=1).numpy(), np.abs(x).sum(1), atol=1e-12)
    assert_close(rg.norm(tensor(x), "nuc").item(), np.linalg.norm(x, "nuc"), atol=1e-12)


def test_singular_matrices_have_infinite_condition_numbers():
    A = tensor([[1.0, 2.0], [2.0, 4.0]])
    for p in ("fro", "nuc", 1, -1, math.inf):
        assert rg.linalg.cond(A, p).item() == math.inf
    assert rg.linalg.cond(A).item() > 1e15


def test_ranks_count_singular_values_above_the_bound():
    A = rg.diagonal(tensor([1.0, 0.1, 1e-20])[None] * rg.eye(3, dtype="float64")) * rg.eye(3, dtype="float64")
    for params, expected in (({}, 2), ({"tol": 0.5}, 1), ({"atol": 1e-30}, 3), ({"rtol": 0.5}, 1), ({"tol": 2.0}, 0)):
        for hermitian in (False, True):
            rank = rg.linalg.matrix_rank(A, hermitian=hermitian, **params)
            assert (rank.item(), rank.dtype) == (expected, "int64")
    assert not rg.linalg.matrix_rank(A.requires_grad_()).requires_grad


def test_slices_are_bounded_in_place():
    x = rg.tensor([[3.0, 4.0], [0.3, 0.4]])
    x.renorm_(2, 0, 1.0)
    assert_close(x.numpy(), np.array([[0.6, 0.8], [0.3, 0.4]], "float32"), rtol=0, atol=1e-6)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 0, 3)])
def test_the_norms_of_matrices_without_elements_are_zero(shape):
    for order in ("fro", "nuc", 1, 2, math.inf):
        out = rg.linalg.matrix_norm(rg.ones(shape), order, keepdim=True)
        assert out.tolist() == rg.zeros(*shape[:-2], 1, 1).tolist()
    with pytest.raises(ValueError, match=r"linalg.matrix_norm: .*nothing to choose from"):
        rg.linalg.matrix_norm(rg.ones(shape), -2)
