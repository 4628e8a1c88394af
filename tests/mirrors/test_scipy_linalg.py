"""Factors and special matrices of retrograd.scipy.linalg: SciPy's values, derivatives to second order, refusals."""

import inspect

import numpy as np
import pytest
import scipy.linalg

import retrograd as rg
from retrograd.autograd import gradcheck, gradgradcheck
from retrograd.core import Tensor
from retrograd.func import vmap
from retrograd.scipy import linalg

from ..case_groups import group_cases
from ..tables import FAST_MODE

_r = np.random.default_rng(3)
SQUARE, OTHER = _r.normal(size=(2, 3, 3))
SIDE, SHORT = _r.normal(size=3), _r.normal(size=2)
POSITIVE, SYMMETRIC = SQUARE @ SQUARE.T + np.eye(3), SQUARE + SQUARE.T
BASIS = np.linalg.qr(OTHER)[0]
REAL = BASIS @ (np.triu(SQUARE, 1) + np.diag([1.0, 2.0, -1.5])) @ BASIS.T  # with real eigenvalues
BAND = np.array([[0, 0.1, 0.2], [2.0, 3, 4]])
OTHER4, WIDE = _r.normal(size=(4, 4)), _r.normal(size=(4, 2))
UNBALANCED = SQUARE * [1, 100, 0.01]
ZERO_DIAGONAL = np.array([[0, 1.0, 2], [1, 0, 3], [2, 3, 1]])  # a pivot of LDL has two rows

# function, arguments, options
CASES = [
    ("schur", (REAL,), {}), ("schur", (SQUARE,), {"output": "complex"}),
    ("qz", (BASIS @ REAL, BASIS @ (np.eye(3) + 0.2 * REAL @ REAL)), {}),
    ("qz", (SQUARE, POSITIVE), {"output": "complex"}),
    ("ldl", (SYMMETRIC,), {}), ("ldl", (SYMMETRIC,), {"lower": False}), ("ldl", (ZERO_DIAGONAL,), {}),
    ("rq", (SQUARE,), {}), ("qr", (SQUARE,), {}), ("qr", (SQUARE[:, :2],), {"mode": "economic"}),
    ("polar", (SQUARE,), {}), ("polar", (SQUARE,), {"side": "left"}),
    ("svdvals", (SQUARE,), {}), ("svd", (SQUARE,), {"full_matrices": False}),
    ("pinv", (SQUARE[:, :2],), {}), ("pinvh", (POSITIVE,), {}), ("lstsq", (SQUARE[:, :2], SIDE), {}),
    ("eigvals", (SQUARE,), {}), ("eigvals", (SQUARE, POSITIVE), {}), ("eig", (SQUARE,), {}),
    ("eigh", (SYMMETRIC, POSITIVE), {}), ("eigh", (SYMMETRIC, POSITIVE), {"type": 2}),
    ("eigh", (SYMMETRIC, POSITIVE), {"type": 3}), ("eigh", (SYMMETRIC,), {"subset_by_index": [1, 2]}),
    ("eigh_tridiagonal", (SIDE, SHORT), {"eigvals_only": True}), ("eig_banded", (BAND,), {"eigvals_only": True}),
    ("solveh_banded", (BAND, SIDE), {}), ("cholesky_banded", (BAND,), {}),
    ("cholesky_banded", (BAND[::-1, ::-1].copy(),), {"lower": True}),
    ("fractional_matrix_power", (POSITIVE, 0.3), {}), ("fractional_matrix_power", (POSITIVE, -2), {}),
    ("signm", (REAL,), {}),
    ("solve_continuous_are", (SQUARE, OTHER[:, :2], POSITIVE, np.eye(2)), {}),
    ("solve_discrete_are", (SQUARE, OTHER[:, :2], POSITIVE, np.eye(2)), {}),
    ("circulant", (SIDE,), {}), ("hankel", (SIDE, SHORT), {}), ("hankel", (SIDE,), {}), ("companion", (SIDE,), {}),
    ("solve_circulant", (SIDE, SQUARE), {}), ("matmul_toeplitz", (SIDE, SQUARE), {}),
    ("matmul_toeplitz", ((SIDE, SHORT), SHORT), {}), ("khatri_rao", (SQUARE, OTHER), {}),
    ("hessenberg", (WIDE @ WIDE.T + OTHER4,), {}), ("hessenberg", (OTHER4,), {"calc_q": True}),
    ("orth", (SQUARE[:, :2],), {}), ("null_space", (SQUARE[:2],), {}), ("matrix_balance", (UNBALANCED,), {}),
    ("orthogonal_procrustes", (SQUARE, OTHER), {}), ("qr_multiply", (SQUARE[:, :2], OTHER), {}),
    ("qr_multiply", (SQUARE[:, :2], SYMMETRIC[:2]), {"mode": "left"}),
    ("subspace_angles", (OTHER4[:, :2], WIDE), {}), ("subspace_angles", (OTHER4[:, :1], WIDE), {}),
    ("subspace_angles", (OTHER4[:, :2], OTHER4[:, :2] + 0.1 * WIDE), {}),
    ("cho_solve_banded", ((BAND, False), SIDE), {}), ("cho_solve_banded", ((BAND[::-1, ::-1].copy(), True), SIDE), {}),
    ("convolution_matrix", (SIDE, 4), {}), ("convolution_matrix", (SIDE, 2, "same"), {}),
    ("convolution_matrix", (SIDE, 2, "valid"), {}), ("diagsvd", (SIDE, 3, 5), {}), ("diagsvd", (SIDE, 4, 3), {}),
    ("eigvals_banded", (BAND,), {}), ("eigvalsh_tridiagonal", (SIDE, SHORT), {}), ("fiedler", (SIDE,), {}),
    ("fiedler_companion", (np.array([2.0, 0.3, -0.5, 0.7, 1.2]),), {}), ("leslie", (SIDE, SHORT), {}),
]  # fmt: skip
IDS = [f"{name}-{i}" for i, (name, _, _) in enumerate(CASES)]
SYMMETRIC_INPUTS = {
    "ldl": (0,),
    "pinvh": (0,),
    "eigh": (0, 1),
    "solve_continuous_are": (2, 3),
    "solve_discrete_are": (2, 3),
}
# The phase of a column is LAPACK's, so absolute values are compared.
PHASES = ("schur", "qz", "svd", "eig", "eigh", "orth", "null_space")


def convert(function, x):
    if isinstance(x, tuple):
        return tuple(convert(function, part) for part in x)
    return function(x) if isinstance(x, np.ndarray) else x


def as_tuple(found):
    return found if isinstance(found, tuple) else (found,)


def results(name, args, options):
    """Return the differentiable results of a function, without the phases that LAPACK chooses."""
    given = [(a + a.mT) / 2 if i in SYMMETRIC_INPUTS.get(name, ()) else a for i, a in enumerate(args)]
    found = [
        x for x in as_tuple(getattr(linalg, name)(*given, **options)) if isinstance(x, Tensor) and x.dtype.kind in "fc"
    ]
    found = [x for x in found if x.numel()]
    return tuple(abs(x) for x in found) if name in PHASES else tuple(found)


@group_cases
@pytest.mark.parametrize(("name", "args", "options"), CASES, ids=IDS)
def test_values_are_those_of_scipy(name, args, options):
    expected = as_tuple(getattr(scipy.linalg, name)(*args, **options))
    found = as_tuple(getattr(linalg, name)(*[convert(rg.tensor, a) for a in args], **options))
    for ours, theirs in zip(found, expected, strict=True):
        assert np.shape(ours) == np.shape(theirs)
        size = np.abs if name in PHASES else np.asarray
        np.testing.assert_allclose(size(np.asarray(ours)), size(theirs), atol=1e-9)
    plain = as_tuple(getattr(linalg, name)(*args, **options))
    assert not any(isinstance(x, Tensor) for x in plain)


@group_cases
@pytest.mark.parametrize(("name", "args", "options"), CASES, ids=IDS)
def test_derivatives_of_first_and_second_order_and_batches_are_right(name, args, options):
    leaves = [i for i, a in enumerate(args) if isinstance(a, np.ndarray)]

    def function(*given):
        filled = [convert(rg.tensor, a) for a in args]
        for i, x in zip(leaves, given, strict=True):
            filled[i] = x
        return results(name, filled, options)

    given = [rg.tensor(args[i], requires_grad=True) for i in leaves]
    assert gradcheck(function, given, check_forward_ad=True, fast_mode=FAST_MODE, atol=1e-5)
    assert gradgradcheck(function, given, fast_mode=True, atol=1e-3, rtol=1e-3)
    plain = [x.detach() for x in given]
    batched = vmap(function)(*[rg.stack([x, x]) for x in plain])
    for found, expected in zip(batched, function(*plain), strict=True):
        np.testing.assert_allclose(found[1].numpy(), expected.numpy(), atol=1e-10)


def orthogonal(generator):
    """Return the orthogonal matrix of a generator, so that derivatives keep it orthogonal."""
    return linalg.expm(generator - generator.mH)


COSSIN = [(2, 1, 1), (4, 2, 2), (5, 2, 3), (5, 1, 3), (4, 1, 1), (5, 3, 4)]


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize(("size", "p", "q"), COSSIN)
def test_the_cosine_sine_decomposition_has_its_values_and_derivatives(size, p, q, dtype):
    generator = _r.normal(size=(size, size)) + (1j * _r.normal(size=(size, size)) if dtype is complex else 0)
    X = orthogonal(rg.tensor(generator))
    for separate in (False, True):
        ours, theirs = (m.cossin(x, p, q, separate) for m, x in ((linalg, X), (scipy.linalg, X.numpy())))
        flat = lambda found: [np.asarray(b) for part in found for b in (part if type(part) is tuple else (part,))]  # noqa: E731
        for found, expected in zip(flat(ours), flat(theirs), strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-7)

    def function(generator):
        U, CS, Vh = linalg.cossin(orthogonal(generator), p, q)
        angles = linalg.cossin(orthogonal(generator), p, q, separate=True)[1]
        return (CS, angles, abs(U), abs(Vh)) if size == 2 * p == 2 * q else (CS, angles)

    given = rg.tensor(generator, requires_grad=True)
    assert gradcheck(function, given, check_forward_ad=True, fast_mode=FAST_MODE, atol=1e-5)
    if dtype is float:
        assert gradgradcheck(function, given, fast_mode=FAST_MODE, atol=1e-3)
    both = vmap(function)(rg.stack([given.detach(), given.detach()]))
    np.testing.assert_allclose(both[0][1].numpy(), function(given.detach())[0].numpy(), atol=1e-10)


def test_blocks_of_a_unitary_matrix_give_its_cosine_sine_decomposition():
    X = orthogonal(rg.tensor(OTHER4))
    whole, blocks = linalg.cossin(X, 1, 2), linalg.cossin((X[:1, :2], X[:1, 2:], X[1:, :2], X[1:, 2:]))
    for a, b in zip(whole, blocks, strict=True):
        assert a.equal(b)
    with pytest.raises(ValueError, match="p and q must be between 0 and 4, got 1 and None"):
        linalg.cossin(X, 1)


def test_a_complex_schur_form_comes_from_the_real_one_with_its_derivatives():
    T, Z = scipy.linalg.schur(SQUARE - 2 * SQUARE.T)
    assert (T.diagonal(-1) != 0).any()
    for found, expected in zip(linalg.rsf2csf(rg.tensor(T), rg.tensor(Z)), scipy.linalg.rsf2csf(T, Z), strict=True):
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)
    pattern = rg.tensor((T != 0).astype(float))

    def function(T, turn):
        return tuple(abs(x) for x in linalg.rsf2csf(T * pattern, rg.tensor(Z) @ orthogonal(turn)))

    given = [rg.tensor(T, requires_grad=True), rg.tensor(OTHER / 5, requires_grad=True)]
    assert gradcheck(function, given, check_forward_ad=True)
    assert gradgradcheck(function, given)


def test_hessenbergs_form_is_unitarily_similar_in_complex_numbers():
    given = rg.tensor(OTHER4 + 1j * _r.normal(size=(4, 4)), requires_grad=True)
    H, Q = linalg.hessenberg(given, calc_q=True)
    np.testing.assert_allclose((Q @ H @ Q.mH).detach().numpy(), given.detach().numpy(), atol=1e-12)
    assert gradcheck(lambda a: linalg.hessenberg(a, calc_q=True), given, check_forward_ad=True)


def test_factors_multiply_to_their_matrices_in_complex_numbers():
    a, b = rg.tensor(SQUARE + 1j * OTHER), rg.tensor(OTHER - 2j * SQUARE)
    S, T, Q, Z = linalg.qz(a, b, "complex")
    for triangle, matrix in ((S, a), (T, b)):
        np.testing.assert_allclose((Q @ triangle @ Z.mH).numpy(), matrix.numpy(), atol=1e-12)
    hermitian = a + a.mH
    L, D, rows = linalg.ldl(hermitian)
    np.testing.assert_allclose((L @ D @ L.mH).numpy(), hermitian.numpy(), atol=1e-12)
    assert rows.dtype.kind == "i"


def test_the_logarithm_of_a_real_matrix_with_negative_eigenvalues_is_differentiable():
    found = linalg.logm(rg.tensor(REAL))
    np.testing.assert_allclose(found.numpy(), scipy.linalg.logm(REAL), atol=1e-10)
    given = rg.tensor(REAL, requires_grad=True)
    assert gradcheck(linalg.logm, given, check_forward_ad=True, fast_mode=FAST_MODE, atol=1e-5)


def test_positions_of_arguments_are_those_of_scipy():
    for name, args, _ in CASES:
        theirs, ours = (list(inspect.signature(getattr(m, name)).parameters.values()) for m in (scipy.linalg, linalg))
        positional = [p.name for p in ours if p.kind is p.POSITIONAL_OR_KEYWORD]
        assert positional == [p.name for p in theirs][: len(positional)], name
        assert len(positional) >= len(args)


def test_refusals_name_the_function_and_a_remedy():
    rotation = rg.tensor([[0.0, 1.0], [-1.0, 0.0]])
    with pytest.raises(TypeError, match=r"linalg\.schur: .* complex eigenvalues .* pass output='complex'"):
        linalg.schur(rotation)
    with pytest.raises(TypeError, match=r"linalg\.schur"):
        linalg.schur(rotation, sort="lhp")
    with pytest.raises(TypeError, match=r"linalg\.rq: only square matrices"):
        linalg.rq(rg.ones(2, 3))
    with pytest.raises(TypeError, match=r"linalg\.qr"):
        linalg.qr(rotation, pivoting=True)
    with pytest.raises(ValueError, match=r"linalg\.polar: side must be 'right' or 'left', got 'up'"):
        linalg.polar(rotation, "up")
    with pytest.raises(ValueError, match=r"linalg\.eigh: type must be 1, 2 or 3, got 4"):
        linalg.eigh(rotation, rg.eye(2), type=4)
