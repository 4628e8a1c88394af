"""Reductions and extremes in special cases: zeros, ties, empty inputs, infinities, dtypes."""

import math
import warnings

import numpy as np
import pytest

import retrograd as rg
from retrograd.testing import assert_close

from ..case_groups import group_cases


def gradient(f, x):
    x = rg.tensor(x, dtype="float64", requires_grad=True)
    return rg.autograd.grad(f(x), x)[0]


def hessian(f, x):
    x = rg.tensor(x, dtype="float64", requires_grad=True)
    (g,) = rg.autograd.grad(f(x), x, create_graph=True)
    return [rg.autograd.grad(g[i], x, retain_graph=True)[0].tolist() for i in range(x.shape[0])]


# ------------------------------------------------------------------------------------------------------ sums


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int32", "int64"])
def test_integers_and_booleans_add_and_multiply_up_in_int64(dtype):
    x = rg.tensor(np.ones(300, dtype))
    for result in (rg.sum(x), rg.cumsum(x, 0), rg.prod(x), rg.cumprod(x, 0)):
        assert result.dtype == np.int64
    assert rg.sum(x).item() == 300


def test_sum_takes_a_dtype_and_its_gradient_has_that_of_the_input():
    x = rg.tensor([1.0, 2.0], dtype="float32", requires_grad=True)
    total = rg.sum(x, dtype="float64")
    assert total.dtype == np.float64
    assert rg.autograd.grad(total, x)[0].dtype == np.float32


def test_no_dimensions_and_the_empty_tuple_mean_all():
    x = rg.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert rg.sum(x, dim=()).item() == rg.sum(x).item() == 10
    assert rg.sum(rg.tensor(3.0), dim=0).item() == rg.sum(rg.tensor(3.0), dim=-1).item() == 3
    with pytest.raises(IndexError, match="dim 1 is out of range"):
        rg.sum(rg.tensor(3.0), dim=1)


@pytest.mark.parametrize("shape", [(70, 16, 8, 8), (300, 5, 4), (3, 2, 900), (9, 3, 2, 7, 20), (5000, 1, 1), (2, 3000)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_channels_of_many_images_add_up_as_one_by_one(shape, dtype):
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    x[0, -1] = np.inf
    dims = (0, *range(2, len(shape)))
    tolerance = 1e-4 if dtype == "float32" else 1e-12
    for kept in (False, True):
        expected = x.astype(np.float64).sum(dims, keepdims=kept)
        got = rg.sum(rg.tensor(x), dims, keepdim=kept)
        assert got.shape == expected.shape
        assert got.dtype == x.dtype
        np.testing.assert_allclose(got.numpy(), expected, rtol=tolerance, atol=tolerance)


def test_axis_and_keepdims_are_understood_too():
    assert rg.sum(rg.ones(2, 3), axis=1, keepdims=True).shape == (2, 1)


def test_sums_of_nothing_are_the_neutral_elements():
    nothing = rg.zeros(0, 3)
    assert rg.sum(nothing, 0).tolist() == [0, 0, 0]
    assert rg.prod(nothing, 0).tolist() == [1, 1, 1]
    assert rg.logsumexp(nothing, 0).tolist() == [-math.inf] * 3
    assert rg.any(nothing).item() is False
    assert rg.all(nothing).item() is True


def test_mean_of_nothing_is_nan_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(rg.mean(rg.zeros(0, 3), 0).numpy()).all()
        assert rg.mean(rg.zeros(0, 3), 1).shape == (0,)


def test_mean_of_integers_is_refused_with_two_ways_out():
    with pytest.raises(TypeError, match=r"mean: .*int64; convert with .to\(dtype\), or pass dtype="):
        rg.mean(rg.tensor([1, 2]))
    assert rg.mean(rg.tensor([1, 2]), dtype="float64").item() == 1.5


def test_half_precision_means_do_not_overflow():
    assert rg.mean(rg.full((4,), 60000.0, dtype="float16")).item() == 60000


def test_var_takes_either_word_for_the_correction():
    x = rg.tensor([1.0, 2.0, 6.0])
    assert rg.var(x, unbiased=False).item() == rg.var(x, correction=0).item() == pytest.approx(14 / 3)
    assert rg.var(x).item() == rg.var(x, unbiased=True).item() == 7


def test_var_mean_returns_both():
    var, mean = rg.var_mean(rg.tensor([[1.0, 3.0]]), 1)
    assert (var.item(), mean.item()) == (2, 2)


def test_std_of_equal_elements_has_gradient_zero():
    assert gradient(rg.std, [2.0, 2.0, 2.0]).tolist() == [0, 0, 0]


# -------------------------------------------------------------------------------------------------- products


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ([2.0, 3.0, 4.0], [12, 8, 6]),
        ([2.0, 0.0, 4.0], [0, 8, 0]),
        ([0.0, 3.0, 0.0], [0, 0, 0]),
        ([5.0], [1]),
    ],
)
def test_gradient_of_prod_holds_with_zeros(x, expected):
    assert gradient(rg.prod, x).tolist() == expected


@pytest.mark.parametrize("product", [rg.prod, lambda x: rg.cumprod(x, 0)[-1]], ids=["prod", "cumprod"])
@pytest.mark.parametrize("zeros", [(), (0,), (1, 3), (0, 1, 2)])
def test_second_derivative_of_products_holds_with_zeros(product, zeros):
    x = np.array([2.0, -3.0, 4.0, 0.5])
    x[list(zeros)] = 0
    expected = [[math.prod(np.delete(x, [i, j])) if i != j else 0 for j in range(4)] for i in range(4)]
    assert_close(np.array(hessian(product, x)), np.array(expected))


def test_gradient_of_prod_over_several_dimensions_has_the_order_of_the_input():
    x = np.arange(1.0, 25.0).reshape(2, 3, 4)
    g = gradient(lambda t: rg.sum(rg.prod(t, dim=(0, 2))), x)
    assert_close(g.numpy(), x.prod(axis=(0, 2), keepdims=True) / x)


# -------------------------------------------------------------------------------------------------- extremes


@pytest.mark.parametrize("extreme", [rg.amax, rg.amin])
def test_ties_share_the_gradient_equally(extreme):
    assert gradient(extreme, [1.0, 1.0, 1.0, 1.0]).tolist() == [0.25] * 4


def test_only_the_extreme_elements_get_gradient():
    assert gradient(rg.amax, [1.0, 7.0, 7.0]).tolist() == [0, 0.5, 0.5]
    assert gradient(rg.amin, [1.0, 7.0, 7.0]).tolist() == [1, 0, 0]


def test_the_gradient_of_a_nan_goes_to_the_nan():
    assert gradient(rg.amax, [1.0, math.nan, 7.0]).tolist() == [0, 1, 0]


def test_max_along_a_dimension_sends_the_gradient_to_one_element():
    assert gradient(lambda x: rg.max(x, 0).values, [1.0, 7.0, 7.0]).tolist() == [0, 1, 0]


@pytest.mark.parametrize("name", ["amax", "amin", "argmax", "argmin", "max", "min"])
def test_nothing_has_no_extreme(name):
    with pytest.raises(ValueError, match=r"nothing to choose from: .*\(0, 3\)"):
        getattr(rg, name)(rg.zeros(0, 3))


@pytest.mark.parametrize("name", ["amax", "amin", "argmax", "argmin"])
def test_no_rows_have_no_extremes_to_look_for(name):
    assert getattr(rg, name)(rg.zeros(0, 3), 1).shape == (0,)


def test_max_has_three_faces():
    x = rg.tensor([[1.0, 5.0], [7.0, 2.0]])
    assert rg.max(x).item() == 7
    values, indices = x.max(0, True)
    assert (values.tolist(), indices.tolist()) == ([[7, 5]], [[1, 0]])
    assert x.max(dim=-1).indices.tolist() == [1, 0]
    other = rg.tensor([3.0, 3.0])
    assert rg.max(x, other).tolist() == rg.max(x, other=other).tolist() == [[3, 5], [7, 3]]
    assert rg.min(x, other).tolist() == [[1, 3], [3, 2]]


def test_max_of_a_number_along_its_last_dimension_is_the_number():
    values, indices = rg.max(rg.tensor(3.0), 0)
    assert (values.item(), indices.item()) == (3, 0)


# -------------------------------------------------------------------------------------- exponentials, scans


def test_logsumexp_takes_infinities_without_nan():
    assert rg.logsumexp(rg.tensor([-math.inf, -math.inf]), 0).item() == -math.inf
    assert rg.logsumexp(rg.tensor([math.inf, 1.0]), 0).item() == math.inf
    assert gradient(lambda x: rg.logsumexp(x, 0), [-math.inf, 0.0]).tolist() == [0, 1]
    assert gradient(lambda x: rg.logsumexp(x, 0), [-math.inf, -math.inf]).tolist() == [0, 0]
    assert gradient(lambda x: rg.logsumexp(x, 0), [1.0, math.inf, 3.0])[[0, 2]].tolist() == [0, 0]


def test_cumsum_of_a_number_is_the_number():
    assert rg.cumsum(rg.tensor(3.0), 0).shape == ()
    assert rg.cumprod(rg.tensor(3.0), 0).item() == 3


def test_count_nonzero_counts():
    x = rg.tensor([[0.0, 1.0], [2.0, 3.0]])
    assert rg.count_nonzero(x).item() == 3
    assert rg.count_nonzero(x, 0).tolist() == [1, 2]


@pytest.mark.parametrize("dim", [0, (0, 1), (1,), (0, 2), None])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex128"])
def test_large_sums_are_those_of_numpy_however_they_are_added(dim, dtype, rng):
    x = (rng.normal(size=(20, 30, 40)) * 10).astype(dtype)
    for keepdim in (False, True):
        assert_close(rg.sum(rg.tensor(x), dim, keepdim).numpy(), x.sum(dim, keepdims=keepdim), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("reduce", [rg.var, rg.std, lambda x: rg.var_mean(x)[0]])
@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_variance_of_one_element_or_none_is_nan_without_a_warning(reduce, size, dtype):
    x = rg.ones(size, dtype=dtype, requires_grad=True)
    out = reduce(x)
    assert math.isnan(out.item())
    assert out.dtype == dtype
    assert rg.autograd.grad(out, x)[0].shape == (size,)


@group_cases
@pytest.mark.parametrize("correction", [0, 1, 3])
@pytest.mark.parametrize(("shape", "dim"), [((2, 1), 1), ((0, 3), 1), ((3, 0), 1), ((2, 1, 1), (1, 2)), ((), None)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_variances_without_freedom_have_the_shape_of_others(correction, shape, dim, keepdim):
    x = rg.ones(shape)
    assert rg.var(x, dim, keepdim=keepdim, correction=correction).shape == rg.sum(x, dim, keepdim).shape


@pytest.mark.parametrize("name", ["argmax", "argmin", "amax", "amin"])
def test_the_error_of_a_wrong_dimension_names_the_operator(name):
    with pytest.raises(IndexError, match=f"^{name}: dim 5 is out of range"):
        getattr(rg, name)(rg.ones(2, 3), 5)


# ---------------------------------------------------------------------------------------------- without NaN


def test_sums_and_means_without_nan_leave_it_out_and_give_it_no_gradient():
    x = [1.0, math.nan, 3.0]
    assert rg.nansum(rg.tensor(x)).item() == 4
    assert rg.nanmean(rg.tensor(x)).item() == 2
    assert gradient(rg.nansum, x).tolist() == [1, 0, 1]
    assert gradient(rg.nanmean, x).tolist() == [0.5, 0, 0.5]


def test_of_nan_alone_the_sum_is_0_and_the_mean_nan():
    x = rg.tensor([[math.nan, math.nan], [1.0, 2.0]])
    assert rg.nansum(x, 1).tolist() == [0, 3]
    assert_close(rg.nanmean(x, 1).numpy(), np.float32([math.nan, 1.5]), equal_nan=True)


def test_infinities_that_cancel_are_no_reason_to_leave_anything_out():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert math.isnan(rg.nansum(rg.tensor([math.inf, -math.inf])).item())


def test_the_mean_without_nan_has_the_dtype_of_its_input():
    for dtype in ("float16", "float32", "float64"):
        assert rg.nanmean(rg.ones(3, 2, dtype=dtype), 0).dtype == dtype


# ------------------------------------------------------------------------------------------ dtypes, dimensions


@pytest.mark.parametrize("reduce", [rg.sum, rg.prod, lambda x, dtype: rg.cumsum(x, 0, dtype=dtype)[-1]])
def test_a_lower_dtype_is_taken_before_adding_up(reduce):
    assert reduce(rg.tensor([1.7, 1.7]), dtype="int64").item() in (1, 2)
    assert reduce(rg.tensor([1 + 5j, 2 - 1j]), dtype="float32").dtype == np.float32


@pytest.mark.parametrize("name", ["all", "any"])
def test_no_dimension_means_each_element_on_its_own(name):
    assert getattr(rg, name)(rg.tensor([[2, 0]]), dim=()).tolist() == [[True, False]]
    assert getattr(rg, name)(rg.tensor([[2, 1]]), dim=(0, 1)).item() is True


def test_aminmax_names_its_results_and_shares_the_gradient_of_equals():
    low, high = rg.aminmax(rg.tensor([[1.0, 3.0], [2.0, 2.0]]), dim=1, keepdim=True)
    assert (low.tolist(), high.tolist()) == ([[1], [2]], [[3], [2]])
    assert gradient(lambda x: rg.aminmax(x).max, [3.0, 1.0, 3.0]).tolist() == [0.5, 0, 0.5]


def test_std_mean_takes_either_word_for_the_correction():
    x = rg.tensor([1.0, 2.0, 6.0])
    assert rg.std_mean(x)[0].item() == pytest.approx(math.sqrt(7))
    assert rg.std_mean(x, unbiased=False)[0].item() == rg.std_mean(x, correction=0)[0].item()
    assert rg.std_mean(x)[1].item() == 3


def test_a_truth_value_is_no_dimension():
    with pytest.raises(TypeError, match="dim must be int"):
        rg.sum(rg.ones(3), False)
    assert rg.var(rg.arange(3.0), False).item() == rg.var(rg.arange(3.0), correction=0).item()


def test_logsumexp_of_complex_numbers_is_the_principal_logarithm():
    x = np.array([[1 + 3j, 2 - 3j, 0.5 + 9j], [7j, -20j, 1 + 1j]])
    assert_close(rg.logsumexp(rg.tensor(x), 1).numpy(), np.log(np.exp(x).sum(1)))


def test_logsumexp_takes_integers_for_floats():
    assert_close(rg.logsumexp(rg.tensor([0, 0]), 0).numpy(), np.float32(math.log(2)))


def test_without_freedom_the_deviation_of_complex_numbers_is_real():
    x = rg.tensor([[1 + 1j, 2.0, 3j]])
    assert_close(rg.std(x, 1, correction=3), rg.tensor([math.inf]))
    assert_close(rg.var(x[0, 0]), rg.tensor(math.nan), equal_nan=True)


def test_the_mean_without_nan_has_fractions():
    with pytest.raises(TypeError, match="nanmean: expected a floating or complex dtype, got int64"):
        rg.nanmean(rg.tensor([0.5, math.nan]), dtype=rg.int64)


def test_large_matrices_are_summed_in_the_requested_dtype():
    out = rg.ones(5000, 2).sum((0,), dtype=rg.float64)
    assert (out.dtype, out.tolist()) == ("float64", [5000.0, 5000.0])
