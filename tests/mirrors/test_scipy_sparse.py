"""Sparse linear algebra of SciPy with sparse tensors: values, derivatives, transforms, refusals."""

import math

import numpy as np
import pytest

import retrograd as rg
from retrograd.autograd import gradcheck, gradgradcheck

sparse = pytest.importorskip("scipy.sparse")
from scipy.sparse import linalg as scipy_linalg  # noqa: E402

from retrograd.scipy.sparse import linalg  # noqa: E402

SIZE = 5
KRYLOV = ["cg", "cgs", "bicg", "bicgstab", "gmres", "lgmres", "gcrotmk", "minres", "tfqmr"]


@pytest.fixture
def r():
    return np.random.default_rng(0)


@pytest.fixture
def array(r):
    return sparse.csr_array(sparse.random_array((SIZE, SIZE), density=0.4, rng=r) + 4 * sparse.eye_array(SIZE))


@pytest.fixture
def weights(array):
    return rg.tensor(array.data, requires_grad=True)


@pytest.fixture
def matrix(array):
    """The function from values to a matrix."""
    return lambda values: rg.sparse_csr_tensor(array.indptr, array.indices, values, array.shape)


@pytest.fixture
def symmetric(matrix):
    def make(values):
        half = matrix(values)
        return half + half.t().to_sparse_csr()

    return make


def vector(r, *more):
    return rg.tensor(r.standard_normal((SIZE, *more)), requires_grad=True)


def close(a, b, rtol=1e-10):
    return np.allclose(a.detach().numpy() if isinstance(a, rg.Tensor) else a, b, rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("layout", [rg.sparse_coo, rg.sparse_csr, rg.sparse_csc, rg.sparse_bsr])
@pytest.mark.parametrize("columns", [(), (1,), (2,)])
def test_spsolve_takes_every_layout_and_gives_scipys_shape(r, array, layout, columns):
    b = vector(r, *columns)
    blocks = {"blocksize": (5, 5)} if layout is rg.sparse_bsr else {}
    A = rg.sparse.from_scipy(array).to_dense().to_sparse(layout=layout, **blocks)
    found = linalg.spsolve(A, b)
    expected = scipy_linalg.spsolve(array, b.detach().numpy())
    assert found.shape == expected.shape
    assert close(found, expected)


def test_a_direct_solution_has_all_derivatives(r, weights, matrix):
    for b in (vector(r), vector(r, 2)):
        for solve in (
            lambda w, b: linalg.spsolve(matrix(w), b),
            lambda w, b: linalg.splu(matrix(w)).solve(b, "T"),
            lambda w, b: linalg.factorized(matrix(w))(b),
        ):
            assert gradcheck(solve, (weights, b), check_forward_ad=True, check_batched_grad=True)
            assert gradgradcheck(solve, (weights, b))


def test_factors_of_a_complex_matrix_solve_with_its_adjoint(r, array):
    A = rg.sparse.from_scipy(array * (1 + 0.5j))
    b = rg.tensor(r.standard_normal(SIZE) + 1j)
    x = linalg.splu(A).solve(b, "H")
    assert close(A.to_dense().conj().mT @ x, b.numpy())
    values = A.values().clone().requires_grad_()

    def solve(values, b):
        A = rg.sparse_csr_tensor(array.indptr, array.indices, values, array.shape)
        return linalg.splu(A).solve(b, "H")

    assert gradcheck(solve, (values, b.requires_grad_()))


def test_the_backward_pass_uses_the_factors_of_the_forward_pass(r, weights, matrix, monkeypatch):
    calls = []
    splu = scipy_linalg.splu
    monkeypatch.setattr(scipy_linalg, "splu", lambda *args, **given: calls.append(args) or splu(*args, **given))
    linalg.spsolve(matrix(weights), vector(r)).sum().backward()
    assert len(calls) == 1


def test_factors_do_not_see_later_writes(r, array):
    A = rg.sparse.from_scipy(array.copy())
    factors = linalg.splu(A)
    b = vector(r)
    before = factors.solve(b).detach().numpy()
    A.values().mul_(2)
    assert close(factors.solve(b), before)
    assert factors.shape == (SIZE, SIZE)
    assert factors.nnz > 0
    assert repr(factors).startswith("FactorizedMatrix(5 x 5")


def test_a_constant_matrix_of_scipy_takes_tensors(r, array):
    b = vector(r)
    assert gradcheck(lambda b: linalg.spsolve(array, b), (b,))
    assert close(linalg.spsolve(array, b.detach().numpy()), scipy_linalg.spsolve(array, b.detach().numpy()))


def test_a_triangular_system_has_derivatives(r, array):
    for lower in (True, False):
        half = sparse.csr_array(sparse.tril(array) if lower else sparse.triu(array))
        w, b = rg.tensor(half.data, requires_grad=True), vector(r)

        def solve(w, b, half=half, lower=lower):
            return linalg.spsolve_triangular(rg.sparse_csr_tensor(half.indptr, half.indices, w, half.shape), b, lower)

        assert close(solve(w, b), scipy_linalg.spsolve_triangular(half, b.detach().numpy(), lower))
        assert gradcheck(solve, (w, b))


@pytest.mark.parametrize("name", KRYLOV)
def test_an_iterative_solution_has_derivatives(r, weights, symmetric, name):
    solver, b = getattr(linalg, name), vector(r)
    x, info = solver(symmetric(weights), b, rtol=1e-13)
    assert info == 0
    assert close(symmetric(weights) @ x, b.detach().numpy())
    assert gradcheck(lambda w, b: solver(symmetric(w), b, rtol=1e-13)[0], (weights, b), atol=1e-5)


def test_preconditioners_are_transposed_in_the_backward_pass(r, array, weights, matrix):
    b = vector(r)
    upper = rg.sparse.from_scipy(sparse.csr_array(np.linalg.inv(np.triu(array.toarray()))))
    for M in (upper, upper.to_dense(), rg.sparse.to_scipy(upper)):
        f = lambda w, b, M=M: linalg.gmres(matrix(w), b, M=M, rtol=1e-13)[0]  # noqa: E731
        assert gradcheck(f, (weights, b), atol=1e-5)
    assert linalg.spilu(matrix(weights)).shape == (SIZE, SIZE)


def test_an_iteration_that_does_not_converge_is_reported(r, weights, symmetric):
    x, info = linalg.cg(symmetric(weights), vector(r), rtol=1e-15, maxiter=1)
    assert info > 0
    with pytest.warns(RuntimeWarning, match="cg did not converge in the linear system of a derivative"):
        (x * rg.arange(5.0)).sum().backward()


def test_eigenpairs_have_derivatives_to_second_order(weights, symmetric):
    def pairs(w):
        return linalg.eigsh(symmetric(w), k=2, v0=np.ones(SIZE))

    w, v = pairs(weights)
    expected = np.linalg.eigvalsh(symmetric(weights).to_dense().detach().numpy())[-2:]
    assert close(w, expected)
    assert close(symmetric(weights) @ v, (v * w).detach().numpy())
    assert gradcheck(lambda x: pairs(x)[0], (weights,), check_forward_ad=True)
    assert gradcheck(lambda x: pairs(x)[1].abs(), (weights,))
    assert gradgradcheck(lambda x: pairs(x)[0], (weights,))
    alone = linalg.eigsh(symmetric(weights), k=2, return_eigenvectors=False, v0=np.ones(SIZE))
    assert close(alone, expected)


def test_an_eigenvalue_that_is_not_simple_has_no_derivative():
    A = rg.eye(4, dtype=rg.float64).to_sparse().requires_grad_()
    with pytest.raises(RuntimeError, match="singular at the solution"):
        linalg.eigsh(A, k=2)[0].sum().backward()


@pytest.mark.parametrize("scale", [1.0, 20.0, -20.0])
def test_exponentials_are_scipys_to_the_last_digits(r, array, scale):
    b = vector(r, 2)
    found = linalg.expm_multiply(rg.sparse.from_scipy(array * scale), b)
    expected = scipy_linalg.expm_multiply(array * scale, b.detach().numpy())
    assert np.abs(found.detach().numpy() / expected - 1).max() < 1e-11


def test_exponentials_have_derivatives_and_a_grid_of_times(r, array, weights, matrix):
    b, weak = vector(r), (weights.detach() / 8).requires_grad_()
    assert gradcheck(lambda w, b: linalg.expm_multiply(matrix(w), b), (weights, b), check_forward_ad=True)
    assert gradgradcheck(lambda w, b: linalg.expm_multiply(matrix(w), b), (weak, b))
    for given in ({"num": 4, "endpoint": False}, {"num": 3}, {}):
        found = linalg.expm_multiply(rg.sparse.from_scipy(array), b, 0.25, 0.75, **given)
        assert close(found, scipy_linalg.expm_multiply(array, b.detach().numpy(), 0.25, 0.75, **given), rtol=1e-11)
    assert gradcheck(lambda w, b: linalg.expm_multiply(matrix(w), b, 0.0, 1.0, 3), (weak, vector(r, 2)))


@pytest.mark.parametrize("ord", [None, "fro", 1, -1, math.inf, -math.inf])
def test_norms_are_scipys(array, weights, matrix, ord):
    assert linalg.norm(matrix(weights), ord).item() == pytest.approx(scipy_linalg.norm(array, ord))
    assert gradcheck(lambda w: linalg.norm(matrix(w), ord), (weights,))


def test_many_systems_are_solved_together_under_vmap(r, weights, matrix, monkeypatch):
    A, many = matrix(weights.detach()), rg.tensor(r.standard_normal((3, SIZE)))
    calls = []
    splu = scipy_linalg.splu
    monkeypatch.setattr(scipy_linalg, "splu", lambda *args, **given: calls.append(args) or splu(*args, **given))
    found = rg.func.vmap(lambda b: linalg.spsolve(A, b))(many)
    assert len(calls) == 1
    assert close(found, np.stack([linalg.spsolve(A, b).numpy() for b in many]))
    scaled = rg.stack([weights.detach() * n for n in (1, 2, 3)])
    found = rg.func.vmap(lambda w, b: linalg.spsolve(matrix(w), b))(scaled, many)
    expected = [linalg.spsolve(matrix(w), b).numpy() for w, b in zip(scaled, many, strict=True)]
    assert close(found, np.stack(expected))


def test_what_does_not_fit_is_refused_by_name(r, array):
    A, b = rg.sparse.from_scipy(array), vector(r)
    with pytest.raises(TypeError, match=r"spsolve: A must be a sparse tensor .* got Tensor; .*to_sparse"):
        linalg.spsolve(A.to_dense(), b)
    with pytest.raises(TypeError, match=r"cg: A must be a sparse tensor .* rg.implicit.root"):
        linalg.cg(scipy_linalg.aslinearoperator(np.eye(SIZE)), b)
    with pytest.raises(TypeError, match="spsolve: b must be dense"):
        linalg.spsolve(A, A)
    with pytest.raises(ValueError, match=r"b of shape \(4,\) does not fit A of shape \(5, 5\)"):
        linalg.spsolve(A, b[:4])
    with pytest.raises(ValueError, match="square matrix"):
        linalg.splu(A.to_sparse()[:4])
    with pytest.raises(ValueError, match="b must be a vector"):
        linalg.cg(A, vector(r, 2))
    with pytest.raises(RuntimeError, match="singular"):
        linalg.spsolve(rg.zeros(2, 2).to_sparse(), rg.ones(2))
    with pytest.raises(ValueError, match="trans must be"):
        linalg.splu(A).solve(b, "X")
