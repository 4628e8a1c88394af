"""Linear systems, inverses, determinants: sizes, singular matrices, named results."""

import warnings

import numpy as np
import pytest

import retrograd as rg
from retrograd.backend import linalg
from retrograd.testing import assert_close

from ..case_groups import group_cases


def tensor(a, **params):
    return rg.tensor(np.asarray(a, np.float64), **params)


def random(*shape, seed=0, dtype="float64"):
    rng = np.random.default_rng(seed)
    real = rng.normal(size=shape)
    return (real + 1j * rng.normal(size=shape) if dtype.startswith("complex") else real).astype(dtype)


@pytest.fixture(params=["scipy", "numpy alone"])
def libraries(request, monkeypatch):
    """Run with SciPy's LAPACK, and without."""
    if request.param == "numpy alone":
        monkeypatch.setattr(linalg, "scipy_linalg", lambda: None)


# ------------------------------------------------------------------------------------------------- sizes


@pytest.mark.usefixtures("libraries")
@group_cases
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("n", [1, 16, 33, 70, 129])
def test_solve_and_its_gradient_hold_for_any_size(n, dtype):
    A, B = random(n, n, dtype=dtype) + 2 * n * np.eye(n, dtype=dtype), random(n, 3, seed=1, dtype=dtype)
    a, b = rg.tensor(A).requires_grad_(), rg.tensor(B).requires_grad_()
    X = rg.linalg.solve(a, b)
    assert X.dtype == dtype
    tolerance = 1e-4 if np.dtype(dtype).itemsize in (4, 8) and dtype != "float64" else 1e-11
    assert_close(A @ X.detach().numpy(), B, rtol=0, atol=tolerance)
    (X * X.conj()).sum().real.backward() if dtype[0] == "c" else (X * X).sum().backward()
    gB = np.linalg.inv(A).conj().T @ (2 * X.detach().numpy())
    assert_close(b.grad.numpy(), gB, rtol=0, atol=tolerance)
    assert_close(a.grad.numpy(), -gB @ X.detach().numpy().conj().T, rtol=0, atol=tolerance)


@pytest.mark.usefixtures("libraries")
@group_cases
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("shape", [(40, 40), (3, 40, 40), (2, 5, 5)])
def test_triangular_solves_read_one_triangle_in_any_layout(shape, unit, upper):
    A, B = random(*shape) + 10 * np.eye(shape[-1]), random(shape[-1], 2, seed=1)
    T = np.triu(A) if upper else np.tril(A)
    if unit:
        T = T - T * np.eye(shape[-1]) + np.eye(shape[-1])
        A, T = A / 20 * (1 - np.eye(shape[-1])), T / 20 * (1 - np.eye(shape[-1])) + np.eye(shape[-1])
    for layout in (np.ascontiguousarray, np.asfortranarray):
        X = rg.linalg.solve_triangular(rg.tensor(layout(A)), rg.tensor(layout(B)), upper=upper, unitriangular=unit)
        assert_close(T @ X.numpy(), np.broadcast_to(B, X.shape), rtol=0, atol=1e-10)


@pytest.mark.usefixtures("libraries")
@group_cases
@pytest.mark.parametrize("shape", [(70, 70), (2, 40, 40), (50, 40), (40, 50), (0, 3), (3, 0, 0), (0, 40, 40)])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_lu_multiplies_to_the_matrix(shape, dtype):
    A = random(*shape, dtype=dtype)
    P, L, U = rg.linalg.lu(rg.tensor(A))
    assert_close((P @ L @ U).numpy(), A, rtol=0, atol=1e-12)
    assert np.abs(L.numpy()).max(initial=0) < (1.5 if dtype == "complex128" else 1 + 1e-12)


def test_one_matrix_solves_many_right_sides_at_once():
    A, B = random(4, 4) + 5 * np.eye(4), random(2, 3, 4, 2, seed=1)
    assert_close(rg.linalg.solve(rg.tensor(A), rg.tensor(B)).numpy(), np.linalg.solve(A, B), rtol=0, atol=1e-12)


def test_empty_systems_have_empty_solutions():
    assert rg.linalg.solve(rg.ones(0, 0), rg.ones(0)).shape == (0,)
    assert rg.linalg.solve(rg.ones(0, 3, 3), rg.ones(0, 3, 2)).shape == (0, 3, 2)
    assert rg.linalg.inv(rg.ones(2, 0, 0)).shape == (2, 0, 0)
    assert rg.linalg.det(rg.ones(2, 0, 0)).tolist() == [1.0, 1.0]


# ------------------------------------------------------------------------------------------- singular matrices


@pytest.mark.usefixtures("libraries")
@pytest.mark.parametrize("n", [3, 50])
def test_singular_matrices_raise_what_pytorch_and_numpy_users_catch(n):
    for call in (lambda a: rg.linalg.solve(a, a), rg.linalg.inv):
        for kind in (rg.linalg.LinAlgError, RuntimeError, np.linalg.LinAlgError):
            with pytest.raises(kind, match=r"linalg.(solve|inv): .*singular"):
                call(rg.zeros(n, n))


def test_the_gradient_of_the_determinant_is_nan_where_the_matrix_is():
    matrices = tensor([[[1.0, 1.0], [1.0, 1.0]], [[np.nan, 1.0], [1.0, 1.0]], [[2.0, 0.0], [0.0, 1.0]]])
    with np.errstate(invalid="ignore"):
        rg.det(matrices.requires_grad_()).sum().backward()
    assert matrices.grad[1].isnan().all()
    assert_close(matrices.grad[[0, 2]], [[[1.0, -1.0], [-1.0, 1.0]], [[1.0, 0.0], [0.0, 2.0]]])


@pytest.mark.usefixtures("libraries")
@pytest.mark.parametrize("n", [2, 50])
def test_ex_functions_say_which_pivot_is_zero_and_do_not_raise(n):
    A = np.eye(n)
    A[1] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result, info = rg.linalg.solve_ex(tensor(A), rg.ones(n, dtype="float64"))
        inverse, of_inverse = rg.linalg.inv_ex(rg.stack([tensor(A), tensor(np.eye(n))]))
    assert (info.item(), str(info.dtype), of_inverse.tolist()) == (2, "int32", [2, 0])
    assert not np.isfinite(result.numpy()[1])
    assert np.isnan(inverse[0].numpy()).all()
    assert_close(inverse[1].numpy(), np.eye(n))
    for call in (lambda: rg.linalg.inv_ex(tensor(A), check_errors=True), lambda: rg.linalg.lu_factor(tensor(A))):
        with pytest.raises(rg.linalg.LinAlgError):
            call()


def test_a_zero_on_the_diagonal_of_a_triangle_gives_infinity_and_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        X = rg.linalg.solve_triangular(tensor([[0.0, 1.0], [0.0, 1.0]]), tensor([[2.0], [1.0]]), upper=True)
    assert X.tolist() == [[np.inf], [1.0]]


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_the_gradient_of_the_determinant_is_the_cofactors_at_any_rank(rank):
    rng = np.random.default_rng(rank)
    A = rng.normal(size=(4, rank)) @ rng.normal(size=(rank, 4))
    a = tensor(A, requires_grad=True)
    rg.linalg.det(a).backward()
    expected = [
        [(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(A, i, 0), j, 1)) for j in range(4)] for i in range(4)
    ]
    assert_close(a.grad.numpy(), np.array(expected), rtol=0, atol=1e-12)


def test_determinants_of_singular_and_negative_matrices_have_logarithms():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [v.item() for v in rg.linalg.slogdet(rg.zeros(2, 2))] == [0.0, -np.inf]
        assert rg.logdet(rg.zeros(2, 2)).item() == -np.inf
        assert np.isnan(rg.logdet(-rg.eye(3)).item())
    with pytest.raises(rg.linalg.LinAlgError, match=r"linalg.inv: .*the input matrix is singular"):
        rg.logdet(rg.zeros(2, 2, requires_grad=True)).backward()


# ------------------------------------------------------------------------------------------------------ results


def test_results_are_named_as_in_pytorch():
    A = rg.eye(3) * 2
    assert rg.linalg.slogdet(A)._fields == ("sign", "logabsdet")
    assert rg.linalg.inv_ex(A)._fields == ("inverse", "info")
    assert rg.linalg.solve_ex(A, A)._fields == ("result", "info")
    assert rg.linalg.lstsq(A, A)._fields == ("solution", "residuals", "rank", "singular_values")


def test_least_squares_returns_the_results_of_the_driver():
    A, B = tensor(random(5, 3)), tensor(random(5, 2, seed=1))
    shapes = {
        driver: [tuple(part.shape) for part in rg.linalg.lstsq(A, B, driver=driver)]
        for driver in (None, "gels", "gelsd", "gelss")
    }
    assert shapes == {
        None: [(3, 2), (0,), (), (0,)],
        "gels": [(3, 2), (2,), (0,), (0,)],
        "gelsd": [(3, 2), (2,), (), (3,)],
        "gelss": [(3, 2), (2,), (), (3,)],
    }


def test_least_squares_of_deficient_rank_is_the_shortest():
    A = random(4, 1) @ random(1, 3, seed=1)
    found = rg.linalg.lstsq(tensor(A), tensor(np.ones(4)))
    assert found.rank.item() == 1
    assert_close(found.solution.numpy(), np.linalg.pinv(A) @ np.ones(4), rtol=0, atol=1e-12)


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss"])
def test_least_squares_of_a_batch_are_those_of_each_example(driver):
    rng = np.random.default_rng(0)
    A, B = tensor(rng.normal(size=(3, 5, 2))), tensor(rng.normal(size=(3, 5, 2)))
    found = rg.func.vmap(lambda a, b: tuple(rg.linalg.lstsq(a, b, driver=driver)))(A, B)
    for i in range(3):
        for part, alone in zip(found, rg.linalg.lstsq(A[i], B[i], driver=driver), strict=True):
            assert_close(part[i], alone)
    A[1] = 1.0  # of rank 1
    found = rg.func.vmap(lambda a, b: tuple(rg.linalg.lstsq(a, b, driver=driver)))(A, B)
    assert_close(found[0][1], rg.linalg.lstsq(A[1], B[1], driver=driver).solution)
    if driver != "gelsy":
        assert_close(found[1][1], ((A[1] @ found[0][1] - B[1]) ** 2).sum(0))


def test_pseudo_inverses_drop_what_is_below_the_bound():
    A = tensor(np.diag([1.0, 1e-3, 0.0]))
    for params, expected in (({}, 1e3), ({"atol": 0.01}, 0.0), ({"rtol": 0.01}, 0.0), ({"rcond": 0.01}, 0.0)):
        assert_close(rg.linalg.pinv(A, **params).numpy(), np.diag([1.0, expected, 0.0]), rtol=1e-9, atol=0)


def test_hermitian_pseudo_inverses_read_the_lower_triangle():
    A = random(3, 3)
    A = A + A.T - 3 * np.eye(3)
    assert_close(rg.linalg.pinv(tensor(np.tril(A)), hermitian=True).numpy(), np.linalg.inv(A), rtol=0, atol=1e-9)


def test_solutions_from_factors_agree_with_those_of_the_matrix():
    A, B = random(40, 40) + 50 * np.eye(40), random(40, 3, seed=1)
    a, b = tensor(A), tensor(B)
    expected = np.linalg.solve(A, B)
    assert_close(rg.linalg.lu_solve(*rg.linalg.lu_factor(a), b).numpy(), expected, rtol=0, atol=1e-12)
    assert_close(rg.lu_solve(b, *rg.linalg.lu_factor(a)).numpy(), expected, rtol=0, atol=1e-12)
    L = rg.linalg.cholesky(tensor(A @ A.T))
    assert_close(rg.cholesky_solve(b, L).numpy(), np.linalg.solve(A @ A.T, B), rtol=0, atol=1e-12)
    assert_close(rg.cholesky_inverse(L).numpy(), np.linalg.inv(A @ A.T), rtol=0, atol=1e-12)


def test_half_precision_and_integers_are_refused_by_the_operators_name():
    for name, call in {
        "linalg.inv": rg.linalg.inv,
        "linalg.det": rg.linalg.det,
        "linalg.pinv": rg.linalg.pinv,
        "linalg.solve": lambda a: rg.linalg.solve(a, a),
    }.items():
        for dtype in ("float16", "int64"):
            for _ in range(2):  # the first call binds the kernel
                with pytest.raises(TypeError, match=f"{name}: .*{dtype}"):
                    call(rg.eye(2, dtype=dtype))


def test_the_exponential_needs_scipy_and_reports_it(monkeypatch):
    monkeypatch.setattr(linalg, "scipy_linalg", lambda: None)
    with pytest.raises(ImportError, match=r"linalg.matrix_exp needs SciPy.*retrograd\[scipy\]"):
        rg.linalg.matrix_exp(rg.eye(2))


def test_the_factors_of_the_matrix_serve_its_gradient(monkeypatch):
    a = tensor(random(50, 50) + 50 * np.eye(50), requires_grad=True)
    X = rg.linalg.solve(a, rg.ones(50, dtype="float64"))
    monkeypatch.setattr(linalg, "lu_factors", None)
    X.sum().backward()
    assert a.grad.shape == (50, 50)


def test_ldl_factors_of_a_matrix_of_rank_one_do_not_raise():
    x = rg.tensor([0.952, 0.952, -1.0])
    LD, pivots, info = rg.linalg.ldl_factor_ex(rg.outer(x, x))
    assert rg.isfinite(LD).all()
    assert pivots.shape == (3,)
    assert info.item() in (0, 2)  # 0 if rounding alone keeps the second block from being 0
