"""Functions of HIPS autograd's NumPy and SciPy modules that NumPy and SciPy lack."""

import numpy as np
import pytest

import retrograd as rg
import retrograd.hips as hips
import retrograd.numpy as rnp
import retrograd.scipy as rscipy
from retrograd.hips.test_util import check_grads

V = np.array([0.3, -0.5, 0.9])
M = np.random.default_rng(3).normal(size=(3, 3))


@pytest.mark.parametrize("given", [V, rg.tensor(V)])
def test_where_takes_its_arguments_by_name(given):
    found = rnp.where(condition=given > 0, x=given, y=0.0)
    assert np.asarray(found).tolist() == [0.3, 0.0, 0.9]
    assert [np.asarray(i).tolist() for i in rnp.where(condition=given > 0)] == [[0, 2]]
    assert hips.grad(lambda x: rnp.sum(rnp.where(x > 0, y=0.0, x=x**2)))(V).tolist() == [0.6, 0.0, 1.8]


@pytest.mark.parametrize("offset", [0, 1, -2])
def test_diagonals_are_made_and_read(offset):
    made = rnp.make_diagonal(np.stack([V, 2 * V]), offset, -1, -2)
    assert made.shape == (2, 3 + abs(offset), 3 + abs(offset))
    np.testing.assert_array_equal(np.diagonal(made, offset, -1, -2), [V, 2 * V])
    assert np.count_nonzero(made) == 6
    check_grads(lambda x: rnp.make_diagonal(x, offset))(V)


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64"])
def test_classes_of_integers_take_tensors_and_are_dtypes(name):
    kind, own = getattr(rnp, name), getattr(np, name)
    seen = []

    def gathered(x):
        seen.append(kind(x))
        return rnp.sum(x[seen[0]])

    assert hips.grad(gathered)(np.array([1.0, 0.0, 1.0])).tolist() == [1.0, 2.0, 0.0]
    assert seen[0].dtype == own
    assert np.zeros(2, kind).dtype == own
    assert type(kind(3)) is own
    assert isinstance(own(3), kind)
    assert np.issubdtype(kind, np.integer)


@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_error_functions_take_complex_numbers(name):
    z = np.array([0.3 + 0.4j, -1.0 - 2.0j])
    check_grads(getattr(rscipy.special, name))(z)
    slope = hips.holomorphic_grad(lambda z: rnp.sum(getattr(rscipy.special, name)(z)))(z)
    np.testing.assert_allclose(slope, (1 if name == "erf" else -1) * 2 / np.sqrt(np.pi) * np.exp(-z * z))


def test_roots_of_real_matrices_may_be_complex():
    root = rscipy.linalg.sqrtm(rg.tensor(M))
    np.testing.assert_allclose((root @ root).numpy(), M, atol=1e-12)
    assert root.dtype == rg.complex128
    check_grads(lambda a: rnp.real(rscipy.linalg.sqrtm(a)) + rnp.imag(rscipy.linalg.sqrtm(a)))(M)
    assert rscipy.linalg.sqrtm(rg.tensor(M @ M.T)).dtype == rg.float64


def test_convolutions_over_no_axes_are_sums_of_products():
    found = rscipy.signal.convolve(rg.tensor(M), rg.tensor(M[:, :2]), axes=([], []), dot_axes=([0], [0]))
    np.testing.assert_allclose(found.numpy(), np.tensordot(M, M[:, :2], ([0], [0])))


# Two numbers with one real part, equal ones, and NaN in either part and on either side.
Z = np.array([1 + 1j, np.nan, 2 - 1j, complex(2, np.nan), 2 + 3j, 0])
W = np.array([1 + 2j, 1, 2 - 1j, 0, np.nan, 3 - 1j])


@pytest.mark.parametrize(
    "name", ["maximum", "minimum", "fmax", "fmin", "greater", "greater_equal", "less", "less_equal"]
)
def test_complex_numbers_have_numpys_order(name):
    found = getattr(rnp, name)(rg.tensor(Z), W).numpy()
    with np.errstate(invalid="ignore"):
        expected = getattr(np, name)(Z, W)
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected, equal_nan=found.dtype.kind == "c")


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
@pytest.mark.parametrize("places", [[0, 1, 4], [0, 2, 4, 4], [4, 2, 0, 0], [5]])
def test_extremes_of_complex_numbers_are_numpys(name, places):
    found, expected = getattr(rnp, name)(rg.tensor(Z[places])).item(), getattr(np, name)(Z[places])
    assert found == expected or (np.isnan(found) and np.isnan(expected))


def test_derivatives_of_extremes_of_complex_numbers_are_those_of_differences():
    z, w = np.array([1 + 1j, 2.5 - 1j, 2 + 3j, 0]), np.array([1.5 + 2j, 3 - 1j, 0, 1])
    for function in (rnp.maximum, rnp.minimum, rnp.fmax, rnp.fmin):
        check_grads(function, (0, 1))(z, w)
    check_grads(lambda z: rnp.clip(z, 0.5, 1.5 + 1j))(z)
    assert hips.grad(lambda z: rnp.real(rnp.max(z)))(np.array([2j, 2j, 1j])).tolist() == [0.5, 0.5, 0.0]
