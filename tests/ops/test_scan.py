"""Scans and differences in special cases: zeros, ties, infinities, ends."""

import math

import numpy as np
import pytest

import retrograd as rg
from retrograd.testing import assert_close


def gradient(f, x):
    x = rg.tensor(x, dtype="float64", requires_grad=True)
    return rg.autograd.grad(f(x).sum(), x)[0]


# ------------------------------------------------------------------------------------- products, exponentials


@pytest.mark.parametrize("zeros", [(), (0,), (1, 3), (0, 1, 2, 3)])
def test_the_derivative_of_cumulative_products_holds_with_zeros(zeros):
    x = np.array([2.0, -3.0, 4.0, 0.5])
    x[list(zeros)] = 0
    expected = [sum(math.prod(np.delete(x[: i + 1], j)) for i in range(j, 4)) for j in range(4)]
    assert_close(gradient(lambda t: rg.cumprod(t, 0), x).numpy(), np.array(expected))


def test_a_long_cumulative_product_is_that_of_numpy_and_its_gradient_too():
    x = np.random.default_rng(0).uniform(0.9, 1.1, 1000)
    assert_close(rg.cumprod(rg.tensor(x), 0).numpy(), np.cumprod(x))
    expected = [np.cumprod(x)[j:].sum() / x[j] for j in range(1000)]
    assert_close(gradient(lambda t: rg.cumprod(t, 0), x).numpy(), np.array(expected))


def test_cumulative_sums_and_products_have_in_place_forms():
    x = rg.tensor([1.0, 2.0, 3.0])
    assert x.cumsum_(0) is x
    assert x.cumprod_(0).tolist() == [1, 3, 18]


def test_the_logarithm_of_cumulative_sums_of_exponentials_does_not_overflow():
    x = rg.tensor([1000.0, 1000.0, -1000.0, 2000.0], dtype="float64")
    expected = [1000, 1000 + math.log(2), 1000 + math.log(2), 2000]
    assert_close(rg.logcumsumexp(x, 0).numpy(), np.array(expected))


def test_its_gradient_is_right_over_a_range_in_which_exponentials_vanish():
    x = [0.0, -800.0, 800.0, 0.0, 800.0]
    share = np.array([[1, 0, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0.5, 0, 0.5]])
    assert_close(gradient(lambda t: rg.logcumsumexp(t, 0), x).numpy(), share.sum(0))


def test_infinities_go_through_it_without_nan():
    low = [-math.inf, -math.inf, 1.0, -math.inf]
    assert rg.logcumsumexp(rg.tensor(low), 0).tolist() == [-math.inf, -math.inf, 1, 1]
    assert gradient(lambda t: rg.logcumsumexp(t, 0)[2:], low).tolist() == [0, 0, 2, 0]
    assert rg.logcumsumexp(rg.tensor([500.0, math.inf, 1.0]), 0).tolist() == [500, math.inf, math.inf]


def test_from_a_nan_on_it_is_nan():
    out = rg.logcumsumexp(rg.tensor([1.0, math.nan, 1.0]), 0).numpy()
    assert np.isnan(out).tolist() == [False, True, True]


# -------------------------------------------------------------------------------------------------- extremes


def test_running_extremes_name_the_last_of_equals_and_give_it_the_gradient():
    x = [1.0, 1.0, 0.0, 2.0, 2.0]
    assert rg.cummax(rg.tensor(x), 0).indices.tolist() == [0, 1, 1, 3, 4]
    assert rg.cummin(rg.tensor(x), 0).indices.tolist() == [0, 1, 2, 2, 2]
    assert gradient(lambda t: rg.cummax(t, 0).values, x).tolist() == [1, 2, 0, 1, 1]


@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_after_a_nan_running_extremes_are_nan(name):
    values, indices = getattr(rg, name)(rg.tensor([1.0, math.nan, 3.0, math.nan]), 0)
    assert np.isnan(values.numpy()).tolist() == [False, True, True, True]
    assert indices.tolist() == [0, 1, 1, 3]


@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_complex_numbers_have_no_running_extremes(name):
    with pytest.raises(TypeError, match=f"^{name}: complex numbers have no order"):
        getattr(rg, name)(rg.tensor([1j]), 0)


@pytest.mark.parametrize("name", ["cummax", "cummin", "cumsum", "cumprod", "logcumsumexp"])
def test_scans_of_a_number_or_of_nothing_are_that(name):
    for x in (rg.tensor(3.0), rg.zeros(0)):
        out = getattr(rg, name)(x, 0)
        out = out if isinstance(out, rg.Tensor) else out.values
        assert (out.shape, out.tolist()) == (x.shape, x.tolist())


# ---------------------------------------------------------------------------------- integrals and differences


def test_the_trapezoidal_rule_is_exact_for_lines():
    x = rg.tensor([0.0, 1.0, 4.0])
    assert rg.trapezoid(2 * x, x).item() == rg.trapz(2 * x, x).item() == 16
    assert rg.cumulative_trapezoid(2 * x, x).tolist() == [1, 16]


def test_integrals_of_one_value_or_none_are_0():
    assert rg.trapezoid(rg.ones(1)).item() == rg.trapezoid(rg.ones(0)).item() == 0
    assert rg.cumulative_trapezoid(rg.ones(1)).shape == (0,)


def test_integrals_of_integers_are_floats():
    assert rg.trapezoid(rg.tensor([1, 2])).dtype == np.float32
    assert rg.trapezoid(rg.tensor([1, 2]), rg.tensor([0, 1])).item() == 1.5


def test_integrals_have_gradients_with_respect_to_the_points_too():
    y = rg.tensor([1.0, 3.0, 2.0], dtype="float64")
    assert gradient(lambda x: rg.trapezoid(y, x), [0.0, 1.0, 2.0]).tolist() == [-2, -0.5, 2.5]


def test_differences_of_truth_values_are_whether_they_differ():
    assert rg.diff(rg.tensor([True, False, False])).tolist() == [True, False]


def test_more_differences_than_there_are_leave_nothing():
    assert rg.diff(rg.tensor([1, 2, 4]), n=9).tolist() == []
    assert rg.diff(rg.tensor([1, 2, 4]), n=0).tolist() == [1, 2, 4]


def test_differences_begin_and_end_with_what_is_put_there():
    x = rg.tensor([1, 4])
    assert rg.diff(x, prepend=rg.tensor([0]), append=rg.tensor([9, 9])).tolist() == [1, 3, 5, 0]


def test_slopes_of_a_parabola_are_exact_inside_and_with_edge_order_2_at_the_ends():
    for places in (rg.tensor([0.0, 1.0, 3.0, 4.0]), rg.tensor([0.0, 2.0, 4.0, 6.0])):
        (out,) = rg.gradient(places * places, spacing=(places,), edge_order=2)
        assert out.tolist() == (2 * places).tolist()
    (out,) = rg.gradient(places * places, spacing=2, edge_order=2)
    assert out.tolist() == (2 * places).tolist()


def test_slopes_along_several_dimensions_are_as_many_tensors():
    x = rg.tensor([[1.0, 2.0], [4.0, 8.0]])
    along0, along1 = rg.gradient(x, spacing=[2.0, 1.0])
    assert (along0.tolist(), along1.tolist()) == ([[1.5, 3], [1.5, 3]], [[1, 1], [4, 4]])
    assert len(rg.gradient(x, dim=(1,))) == 1


def test_slopes_differentiate_in_the_coordinates_too():
    x = rg.tensor([0.0, 1.0, 4.0], dtype="float64")
    assert gradient(lambda t: rg.gradient(x, spacing=[t])[0][:1], [0.0, 2.0, 4.0]).tolist() == [0.25, -0.25, 0]


def test_the_gradient_of_logcumsumexp_is_zero_for_finite_terms_of_an_infinite_sum():
    x = rg.tensor([math.inf, 0.9, 1.6, -math.inf], requires_grad=True)
    rg.logcumsumexp(x, 0)[1:].sum().backward()
    assert x.grad[1:].tolist() == [0, 0, 0]
    y = rg.tensor([-math.inf, 0.5], requires_grad=True)
    rg.logcumsumexp(y, 0)[1].backward()
    assert y.grad.tolist() == [0, 1]


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "softmax", "log_softmax"])
@pytest.mark.parametrize("dtype", [rg.float32, rg.float16, rg.int64])
@pytest.mark.parametrize("dim", [-3, 2])
def test_a_dimension_out_of_range_is_refused_for_every_dtype(name, dtype, dim):
    with pytest.raises(IndexError, match=r"(?i)dim"):
        getattr(rg, name)(rg.ones(2, 2, dtype=dtype), dim)
