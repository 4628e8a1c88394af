"""Medians, modes, quantiles, covariances: ties, NaN, empty inputs, layout of results."""

import math
import warnings

import numpy as np
import pytest

import retrograd as rg
from retrograd.testing import assert_close

NAN = math.nan


def gradient(f, x):
    x = rg.tensor(x, dtype="float64", requires_grad=True)
    return rg.autograd.grad(f(x).sum(), x)[0]


# ------------------------------------------------------------------------------------------- medians, modes


def test_the_median_of_an_even_number_is_the_lower_one():
    assert rg.median(rg.tensor([4, 1, 3, 2])).item() == 2
    assert rg.median(rg.tensor([[4.0, 1.0, 3.0, 2.0]]), 1).indices.tolist() == [3]


def test_equals_share_the_gradient_of_the_median_of_all():
    assert gradient(rg.median, [1.0, 2.0, 2.0, 5.0]).tolist() == [0, 0.5, 0.5, 0]
    assert gradient(rg.nanmedian, [1.0, 2.0, 2.0, 5.0, NAN]).tolist() == [0, 0.5, 0.5, 0, 0]


@pytest.mark.parametrize(("row", "place"), [([1.0] * 4, 1), ([1.0] * 7, 3), ([3.0, 2.0, 2.0, 1.0, 2.0], 2)])
def test_along_a_dimension_equals_are_ranked_in_their_order(row, place):
    assert rg.median(rg.tensor(row), 0).indices.item() == place


def test_nan_is_the_median_where_there_is_one_and_the_first_has_the_gradient():
    x = [2.0, NAN, 1.0, NAN]
    assert math.isnan(rg.median(rg.tensor(x)).item())
    values, indices = rg.median(rg.tensor([x, [4.0, 2.0, 1.0, 3.0]]), 1)
    assert (indices.tolist(), values[1].item()) == ([1, 1], 2)
    assert gradient(lambda t: rg.median(t, 0).values, x).tolist() == [0, 1, 0, 0]


def test_the_median_without_nan_leaves_it_out_row_by_row():
    x = rg.tensor([[2.0, NAN, 1.0], [NAN, NAN, 5.0], [3.0, 1.0, 2.0], [NAN, NAN, NAN]])
    values, indices = rg.nanmedian(x, 1)
    assert values[:3].tolist() == [1, 5, 2]
    assert indices.tolist() == [2, 2, 2, 0]
    assert math.isnan(values[3].item())


def test_the_median_of_nothing_is_nan_but_of_no_integers_or_along_a_dimension_refused():
    assert math.isnan(rg.median(rg.zeros(0)).item())
    for call in (lambda: rg.median(rg.zeros(0, dtype="int64")), lambda: rg.median(rg.zeros(0, 3), 0)):
        with pytest.raises(ValueError, match=r"median: .*nothing to choose from"):
            call()


def test_large_medians_are_those_of_numpy(rng):
    x = rng.normal(size=(31, 101)).astype("float32")
    assert rg.median(rg.tensor(x)).item() == np.median(x)
    assert_close(rg.median(rg.tensor(x), 0).values.numpy(), np.median(x, axis=0))
    assert_close(rg.median(rg.tensor(x), 1).values.numpy(), np.median(x, axis=1))


def test_the_mode_is_the_smallest_of_the_most_frequent_and_its_index_the_last():
    assert [t.item() for t in rg.mode(rg.tensor([5, 1, 5, 1, 0]))] == [1, 3]
    values, indices = rg.mode(rg.tensor([[2.0, 3.0], [2.0, 1.0]]), 0, keepdim=True)
    assert (values.tolist(), indices.tolist()) == ([[2, 1]], [[1, 1]])


def test_the_gradient_of_the_mode_goes_to_its_index():
    assert gradient(lambda x: rg.mode(x).values, [2.0, 1.0, 2.0]).tolist() == [0, 0, 1]


# ------------------------------------------------------------------------------------------------ quantiles


def test_several_quantiles_are_the_first_dimension():
    x = rg.tensor(np.arange(12.0).reshape(3, 4))
    q = rg.tensor([0.0, 0.5, 1.0], dtype="float64")
    assert rg.quantile(x, q, 1).tolist() == [[0, 4, 8], [1.5, 5.5, 9.5], [3, 7, 11]]
    assert rg.quantile(x, q, 1, keepdim=True).shape == (3, 3, 1)
    assert rg.quantile(x, q, keepdim=True).shape == (3, 1, 1)
    assert rg.quantile(x, 0.5, 0).shape == (4,)


@pytest.mark.parametrize(
    ("interpolation", "expected"),
    [("linear", 2.6), ("lower", 2), ("higher", 4), ("nearest", 2), ("midpoint", 3)],
)
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_between_two_elements_the_interpolation_decides(name, interpolation, expected):
    x = rg.tensor([4.0, 1.0, 2.0, 8.0], dtype="float64")
    assert getattr(rg, name)(x, 1.3 / 3, interpolation=interpolation).item() == pytest.approx(expected)


def test_the_gradient_goes_to_the_two_elements_in_between_and_to_q():
    x = rg.tensor([5.0, 1.0, 2.0, 3.0], dtype="float64", requires_grad=True)
    q = rg.tensor(0.3, dtype="float64", requires_grad=True)
    by_x, by_q = rg.autograd.grad(rg.quantile(x, q), [x, q])
    assert_close(by_x.numpy(), np.array([0, 0.1, 0.9, 0]))
    assert by_q.item() == pytest.approx(3.0)


def test_nan_is_every_quantile_of_its_row_and_has_the_gradient():
    out = rg.quantile(rg.tensor([[1.0, NAN], [1.0, 2.0]]), 0.0, 1)
    assert_close(out.numpy(), np.float32([NAN, 1]), equal_nan=True)
    assert gradient(lambda x: rg.quantile(x, 0.5), [1.0, 2.0, NAN]).tolist() == [0, 0, 1]


def test_quantiles_without_nan_count_what_is_there_row_by_row():
    x = rg.tensor([[1.0, NAN, 3.0], [NAN, NAN, 5.0], [NAN, NAN, NAN]])
    assert_close(rg.nanquantile(x, 0.5, 1).numpy(), np.float32([2, 5, NAN]), equal_nan=True)


def test_many_quantiles_at_once_are_those_of_numpy(rng):
    x, q = rng.normal(size=(4, 500)), rng.uniform(size=30)
    assert_close(rg.quantile(rg.tensor(x), rg.tensor(q), 1).numpy(), np.quantile(x, q, axis=1))
    assert_close(rg.quantile(rg.tensor(x), rg.tensor(q[:2]), 1).numpy(), np.quantile(x, q[:2], axis=1))


@pytest.mark.parametrize("q", [-0.1, 1.5, math.nan])
def test_parts_that_are_none_are_refused(q):
    with pytest.raises(ValueError, match="quantile: q must be from 0 to 1"):
        rg.quantile(rg.ones(3), q)
    with pytest.raises(ValueError, match="quantile: q must be from 0 to 1"):
        rg.quantile(rg.ones(3), rg.tensor([q]))


def test_q_has_the_dtype_of_the_input():
    with pytest.raises(TypeError, match=r"quantile: q must be a number, or float32 .*, got float64"):
        rg.quantile(rg.ones(3), rg.tensor([0.5], dtype="float64"))


# ---------------------------------------------------------------------------------------------- covariances


def test_weights_count_columns():
    x = rg.tensor([[1.0, 2.0, 4.0], [3.0, 1.0, 0.0]], dtype="float64")
    columns = [0, 1, 1, 2]
    assert_close(rg.cov(x, fweights=rg.tensor([1, 2, 1])).numpy(), rg.cov(x[:, columns]).numpy())


def test_covariances_differentiate_in_the_weights():
    x = rg.tensor([1.0, 2.0, 4.0], dtype="float64")
    slope = gradient(lambda w: rg.cov(x, aweights=w, correction=0), [1.0, 1.0, 1.0])
    assert_close(slope.numpy(), (np.array([16, 1, 25]) / 9 - 14 / 9) / 3)


def test_without_freedom_covariances_are_nan_or_infinite_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert math.isnan(rg.cov(rg.tensor([1.0])).item())
        assert rg.cov(rg.tensor([1.0, 2.0]), correction=2).item() == math.inf
        assert math.isnan(rg.corrcoef(rg.tensor([[1.0, 1.0], [1.0, 2.0]]))[0, 1].item())


def test_one_variable_has_a_variance_that_is_a_number():
    assert rg.cov(rg.tensor([1, 2, 3])).item() == 1
    assert rg.cov(rg.tensor([[1.0, 2.0, 3.0]])).shape == ()
    assert rg.corrcoef(rg.tensor([1.0, 2.0, 4.0])).item() == 1


def test_covariances_of_complex_variables_are_hermitian():
    c = rg.cov(rg.tensor([[1 + 1j, 2.0, 3j], [1.0, 1j, 4.0]], dtype="complex128")).numpy()
    assert_close(c, c.conj().T)
