"""Factorisations: reconstruction at any size, equal eigenvalues, phases, named results."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.testing import assert_close

from .test_solve import libraries, random, tensor

__all__ = ["libraries"]  # the fixture

SINGLE = {"float32": 2e-4, "complex64": 2e-4, "float64": 1e-11, "complex128": 1e-11}


def leaf(a):
    return rg.tensor(a).requires_grad_()


def definite(n, dtype):
    A = random(n, n, dtype=dtype)
    return A @ A.conj().T / n + np.eye(n, dtype=dtype)


@pytest.mark.usefixtures("libraries")
@pytest.mark.parametrize("dtype", SINGLE)
@pytest.mark.parametrize("n", [2, 40])
def test_factors_multiply_to_the_matrix_in_its_dtype(n, dtype):
    A, H = rg.tensor(random(2, n + 1, n, dtype=dtype)), rg.tensor(definite(n, dtype))
    Q, R = rg.linalg.qr(A)
    U, S, Vh = rg.linalg.svd(A, full_matrices=False)
    L, V = rg.linalg.eigh(H)
    C, D = rg.linalg.cholesky(H), rg.linalg.cholesky(H, upper=True)
    for whole, product in (
        (A, Q @ R),
        (A, (U * S[..., None, :]) @ Vh),
        (H, (V * L) @ V.mH),
        (H, C @ C.mH),
        (H, D.mH @ D),
    ):
        assert product.dtype == dtype
        assert_close(product.numpy(), whole.numpy(), rtol=0, atol=SINGLE[dtype] * 10)


@pytest.mark.usefixtures("libraries")
@pytest.mark.parametrize("dtype", SINGLE)
def test_gradients_of_what_phases_do_not_change_are_those_of_the_matrix(dtype):
    A = random(40, 40, dtype=dtype)
    weights = rg.tensor(random(40, 40, seed=1, dtype=dtype))
    expected = None
    for rebuild in (
        lambda a: a,
        lambda a: (lambda U, S, Vh: (U * S) @ Vh)(*rg.linalg.svd(a)),
        lambda a: (lambda Q, R: Q @ R)(*rg.linalg.qr(a)),
        lambda a: (lambda P, L, U: P @ L @ U)(*rg.linalg.lu(a)),
    ):
        a = leaf(A)
        (rebuild(a) * weights).sum().real.backward() if dtype[0] == "c" else (rebuild(a) * weights).sum().backward()
        expected = a.grad.numpy() if expected is None else expected
        assert_close(a.grad.numpy(), expected, rtol=0, atol=SINGLE[dtype] * 100)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_projectors_on_eigenvectors_have_the_gradient_of_a_difference_quotient(dtype):
    A, T = definite(4, dtype), definite(4, dtype).T

    def top(a):
        return rg.linalg.eigh(a).eigenvectors[:, -1:]

    a = leaf(A)
    v = top(a)
    weights = rg.tensor(random(4, 4, dtype=dtype))
    loss = (v @ v.mH * weights).sum()
    (loss.real if dtype[0] == "c" else loss).backward()
    step = 1e-6
    ends = [(lambda v: (v @ v.mH * weights).sum().numpy().real)(top(rg.tensor(A + s * step * T))) for s in (1, -1)]
    assert_close((a.grad.numpy().conj() * T).sum().real, (ends[0] - ends[1]) / (2 * step), rtol=1e-6, atol=1e-8)


def test_triangles_may_be_named_in_small_letters():
    a = rg.tensor([[2.0, 5.0], [1.0, 2.0]])
    assert rg.linalg.eigvalsh(a, "u").tolist() == rg.linalg.eigh(a, "U").eigenvalues.tolist() == [-3, 7]
    assert rg.linalg.eigvalsh(a, "l").tolist() == [1, 3]


def test_equal_eigenvalues_spoil_the_gradient_of_vectors_and_not_of_values():
    a = rg.eye(3, requires_grad=True)
    rg.linalg.eigvalsh(a).sum().backward()
    assert_close(a.grad.numpy(), np.eye(3, dtype="float32"), rtol=0, atol=1e-6)
    b = rg.eye(3, requires_grad=True)
    rg.linalg.svdvals(b).sum().backward()
    assert_close(b.grad.numpy(), np.eye(3, dtype="float32"), rtol=0, atol=1e-6)
    for function in (lambda x: rg.linalg.eigh(x)[0], lambda x: rg.linalg.svd(x).S):
        c = rg.eye(3, requires_grad=True)
        function(c).sum().backward()
        assert_close(c.grad.numpy(), np.eye(3, dtype="float32"), rtol=0, atol=1e-6)
    for function in (lambda x: rg.linalg.eigh(x)[1], lambda x: rg.linalg.svd(x).U):
        c = rg.eye(3, requires_grad=True)
        function(c).sum().backward()
        assert not np.isfinite(c.grad.numpy()).all()


def test_gradients_of_hermitian_factorisations_are_hermitian():
    for function in (rg.linalg.cholesky, lambda a: rg.linalg.eigh(a)[1], rg.linalg.eigvalsh):
        a = leaf(definite(4, "float64"))
        (function(a) * tensor(random(4, 4))[0]).sum().backward()
        assert_close(a.grad.numpy(), a.grad.numpy().T, rtol=0, atol=1e-12)


def test_one_triangle_is_read():
    A = definite(4, "complex128")
    for uplo, triangle in (("L", np.tril), ("U", np.triu)):
        assert_close(rg.linalg.eigvalsh(rg.tensor(triangle(A)), uplo).numpy(), np.linalg.eigvalsh(A), atol=1e-12)
        upper = uplo == "U"
        factor = rg.linalg.cholesky(rg.tensor(triangle(A)), upper=upper).numpy()
        assert_close(factor, np.linalg.cholesky(A, upper=upper), atol=1e-12)


def test_real_matrices_have_complex_eigenvalues_and_real_gradients():
    a = rg.tensor([[0.0, 1.0], [-1.0, 0.0]], requires_grad=True)
    values, vectors = rg.linalg.eig(a)
    assert (values.dtype, vectors.dtype) == ("complex64", "complex64")
    assert rg.linalg.eigvals(rg.eye(2)).dtype == "complex64"
    (values.imag**2).sum().backward()
    assert a.grad.dtype == "float32"
    assert_close(a.grad.numpy(), np.array([[0.0, 2.0], [-2.0, 0.0]], "float32"), atol=1e-6)


def test_values_agree_with_and_without_their_gradient():
    A = random(3, 40, 40)
    for function in (rg.linalg.svdvals, rg.linalg.eigvalsh):
        with_vectors, alone = function(leaf(A)), function(rg.tensor(A))
        assert_close(with_vectors.detach().numpy(), alone.numpy(), rtol=0, atol=1e-11)


def test_whole_bases_have_no_gradient_beyond_the_singular_values():
    a = leaf(random(4, 2))
    rg.linalg.svd(a).U[:, 2:].sum().backward()
    assert not a.grad.numpy().any()


def test_the_complete_factor_of_a_tall_matrix_has_no_derivative_and_reports_it():
    a = leaf(random(4, 2))
    Q, _ = rg.linalg.qr(a, "complete")
    assert Q.shape == (4, 4)
    with pytest.raises(NotImplementedError, match=r"linalg.qr: mode 'complete' has no derivative .* 4 and 2"):
        Q.sum().backward()


def test_mode_r_gives_an_empty_factor_and_still_a_gradient():
    a = leaf(random(4, 2))
    Q, R = rg.linalg.qr(a, mode="r")
    assert Q.shape == (0,)
    R.sum().backward()
    b = leaf(random(4, 2))
    rg.linalg.qr(b).R.sum().backward()
    assert_close(a.grad.numpy(), b.grad.numpy())


def test_matrices_that_are_not_positive_definite_are_reported():
    A = np.stack([np.eye(3), np.diag([1.0, -1.0, 1.0])])
    L, info = rg.linalg.cholesky_ex(tensor(A))
    assert info.tolist() == [0, 2]
    assert_close(L.numpy()[1], np.diag([1.0, -1.0, 1.0]))  # the first column, and the rest of the matrix
    assert_close(L.numpy()[0], np.eye(3))
    for call in (lambda: rg.linalg.cholesky(tensor(A)), lambda: rg.linalg.cholesky_ex(tensor(A), check_errors=True)):
        with pytest.raises(rg.linalg.LinAlgError, match="not positive definite"):
            call()


def test_results_are_named_as_in_pytorch():
    A = rg.eye(3) * 2
    names = {
        rg.linalg.qr: ("Q", "R"),
        rg.linalg.eigh: ("eigenvalues", "eigenvectors"),
        rg.linalg.eig: ("eigenvalues", "eigenvectors"),
        rg.linalg.svd: ("U", "S", "Vh"),
        rg.svd: ("U", "S", "V"),
        rg.linalg.lu: ("P", "L", "U"),
        rg.linalg.lu_factor: ("LU", "pivots"),
        rg.linalg.lu_factor_ex: ("LU", "pivots", "info"),
        rg.linalg.cholesky_ex: ("L", "info"),
    }
    assert {f: f(A)._fields for f in names} == names


def test_unpacked_factors_are_those_of_lu():
    A = tensor(random(5, 4))
    P, L, U = rg.lu_unpack(*rg.linalg.lu_factor(A))
    for one, other in zip((P, L, U), rg.linalg.lu(A), strict=True):
        assert_close(one.numpy(), other.numpy())
    assert [tuple(x.shape) for x in rg.lu_unpack(*rg.linalg.lu_factor(A), unpack_data=False)] == [(5, 5), (0,), (0,)]


def test_products_of_reflections_are_the_factor_of_qr():
    A = random(5, 3)
    (h, tau), (Q, _) = np.linalg.qr(A, "raw"), np.linalg.qr(A)
    assert_close(rg.linalg.householder_product(tensor(h.T), tensor(tau)).numpy(), Q, atol=1e-12)


def test_a_shift_moves_eigenvalues_and_no_eigenvector():
    A, shift = tensor(definite(3, "float64")), tensor(np.eye(3))
    _, moved = rg.func.jvp(lambda a: rg.linalg.eigh(a).eigenvalues, (A,), (shift,))
    _, turned = rg.func.jvp(lambda a: rg.linalg.eigh(a).eigenvectors, (A,), (shift,))
    assert_close(moved.numpy(), np.ones(3), atol=1e-12)
    assert_close(turned.numpy(), np.zeros((3, 3)), atol=1e-12)
