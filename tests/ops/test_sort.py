"""Sorting, ranks, searching and unique values: ties, NaN, zeros of either sign, large rows, dtypes."""

import math

import numpy as np
import pytest

import retrograd as rg
from retrograd.testing import assert_close

DTYPES = ["bool", "uint8", "int16", "int32", "int64", "float16", "float32", "float64"]


def gradient(f, x):
    x = rg.tensor(x, dtype="float64", requires_grad=True)
    return rg.autograd.grad(f(x).sum(), x)[0]


def rows(dtype, rng, many=2000):
    """Return rows with many ties, large enough for every algorithm; floats with NaN and zeros of either sign."""
    x = rng.integers(0, 2 if dtype == "bool" else 100, (3, many)).astype(dtype)
    if x.dtype.kind == "f":
        x[:, 10:20], x[:, 30], x[:, 40], x[:, 50] = np.nan, -0.0, -np.inf, np.inf
        x[:, 15] = -x[:, 15]
    return x


def stable_order(x, descending):
    if not descending:
        return np.argsort(x, axis=-1, kind="stable")
    return x.shape[-1] - 1 - np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]


# --------------------------------------------------------------------------------------------------- sorting


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_equal_elements_keep_their_order_and_nan_is_the_largest(dtype, descending, rng):
    x = rows(dtype, rng)
    values, indices = rg.sort(rg.tensor(x), descending=descending)
    np.testing.assert_array_equal(indices.numpy(), stable_order(x, descending))
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, stable_order(x, descending), -1))
    np.testing.assert_array_equal(rg.argsort(rg.tensor(x.T), 0, descending).numpy(), indices.numpy().T)


def test_integers_far_apart_are_sorted_as_exactly_as_near_ones():
    x = np.array([2**62, -(2**62), 2**62 + 1, 0] * 200)
    np.testing.assert_array_equal(rg.argsort(rg.tensor(x)).numpy(), np.argsort(x, kind="stable"))


def test_the_gradient_of_sorted_values_goes_back_to_where_they_came_from():
    weights = rg.tensor([1.0, 10.0, 100.0], dtype="float64")
    for sort in (lambda x: rg.sort(x).values, rg.msort):
        assert gradient(lambda x, sort=sort: sort(x) * weights, [3.0, 1.0, 2.0]).tolist() == [100, 1, 10]


def test_sort_names_its_results_and_takes_a_number():
    out = rg.sort(rg.tensor(3.0))
    assert (out.values.item(), out.indices.item()) == (3, 0)


@pytest.mark.parametrize("name", ["sort", "argsort", "msort", "unique"])
def test_complex_numbers_have_no_order(name):
    with pytest.raises(TypeError, match=f"^{name}: complex numbers have no order"):
        getattr(rg, name)(rg.tensor([1j]))


# ----------------------------------------------------------------------------------------------------- ranks


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("k", [0, 1, 7, 150, 1999])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_k_largest_are_the_first_of_all_sorted(dtype, k, largest, rng):
    x = rows(dtype, rng)
    expected = stable_order(x, largest)[:, :k]
    np.testing.assert_array_equal(rg.topk(rg.tensor(x), k, largest=largest).indices.numpy(), expected)
    np.testing.assert_array_equal(rg.topk(rg.tensor(x.T), k, 0, largest).indices.numpy(), expected.T)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", ["int16", "int64", "float32", "float64"])
def test_elements_at_the_end_of_their_range_are_each_among_the_k_largest_once(dtype, largest):
    low, high = (-math.inf, math.inf) if "float" in dtype else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    x = np.full((3, 700), low if largest else high, dtype)
    x[:, 9] = 3
    np.testing.assert_array_equal(rg.topk(rg.tensor(x), 5, largest=largest).indices.numpy(), [[9, 0, 1, 2, 3]] * 3)


@pytest.mark.parametrize("k", [1, 8, 1000, 2000])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_kth_value_is_that_of_all_sorted(dtype, k, rng):
    x = rows(dtype, rng)
    np.testing.assert_array_equal(rg.kthvalue(rg.tensor(x), k).indices.numpy(), stable_order(x, False)[:, k - 1])
    values = rg.kthvalue(rg.tensor(x.T), k, 0, keepdim=True).values
    np.testing.assert_array_equal(values.numpy(), np.sort(x.T, axis=0)[k - 1 : k])


def test_the_gradient_of_the_chosen_goes_to_them_alone():
    assert gradient(lambda x: rg.topk(x, 2).values, [3.0, 1.0, 2.0]).tolist() == [1, 0, 1]
    assert gradient(lambda x: rg.kthvalue(x, 2).values, [3.0, 1.0, 2.0]).tolist() == [0, 0, 1]


# ------------------------------------------------------------------------------------------------- searching


def test_searchsorted_takes_the_side_by_side_and_by_right():
    sequence, values = rg.tensor([1.0, 2.0, 2.0, 3.0]), rg.tensor([2.0, math.nan, 0.0])
    assert rg.searchsorted(sequence, values).tolist() == [1, 4, 0]
    assert rg.searchsorted(sequence, values, right=True).tolist() == [3, 4, 0]
    assert rg.searchsorted(sequence, values, side="right").tolist() == [3, 4, 0]


def test_numbers_can_be_searched_for():
    assert rg.searchsorted(rg.tensor([1, 2, 3]), 2.5).item() == 2
    assert rg.bucketize(2, rg.tensor([1, 2, 3])).item() == 1


def test_indices_can_be_int32():
    assert rg.searchsorted(rg.tensor([1.0]), rg.tensor([2.0]), out_int32=True).dtype == np.int32


def test_a_sorter_says_in_which_order_the_sequence_is_sorted():
    sequence = rg.tensor([[3.0, 1.0, 2.0]])
    assert rg.searchsorted(sequence, rg.tensor([[2.5]]), sorter=rg.argsort(sequence)).tolist() == [[2]]


# -------------------------------------------------------------------------------------------------- equal values


def test_nan_is_equal_to_nothing_not_even_nan():
    values, inverse, counts = rg.unique(rg.tensor([math.nan, 1.0, math.nan]), return_inverse=True, return_counts=True)
    assert (inverse.tolist(), counts.tolist(), values.shape) == ([1, 0, 2], [1, 1, 1], (3,))
    assert rg.unique(rg.tensor([math.nan, math.nan])).shape == (2,)
    assert rg.isin(rg.tensor([math.nan]), rg.tensor([math.nan])).tolist() == [False]


def test_different_slices_along_a_dimension_are_sorted_by_their_elements():
    x = rg.tensor([[1, 2], [0, 3], [1, 2]])
    values, inverse, counts = rg.unique(x, return_inverse=True, return_counts=True, dim=0)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([[0, 3], [1, 2]], [1, 0, 1], [1, 2])
    assert rg.unique(x, dim=1).tolist() == [[1, 2], [0, 3], [1, 2]]


@pytest.mark.parametrize("name", ["unique", "unique_consecutive"])
def test_indices_of_all_elements_have_the_shape_of_the_input(name):
    x = rg.tensor([[3, 3], [1, 3]])
    values, inverse = getattr(rg, name)(x, return_inverse=True)
    assert values[inverse].tolist() == x.tolist()


@pytest.mark.parametrize("name", ["unique", "unique_consecutive"])
def test_of_nothing_there_is_nothing(name):
    for out in getattr(rg, name)(rg.zeros(0), return_inverse=True, return_counts=True):
        assert out.shape == (0,)


def test_of_equal_elements_the_first_has_the_gradient():
    x = [2.0, 1.0, 2.0]
    for f in (rg.unique, lambda x: rg.unique(x, return_inverse=True)[0], lambda x: rg.unique(x, dim=0)):
        assert gradient(lambda x, f=f: f(x) * rg.tensor([1.0, 5.0]), x).tolist() == [5, 1, 0]


def test_large_inputs_have_the_same_different_elements_as_numpy_s(rng):
    x = rng.integers(0, 50, 3000).astype("float32")
    for ours, its in zip(
        rg.unique(rg.tensor(x), return_inverse=True, return_counts=True),
        np.unique(x, return_inverse=True, return_counts=True),
        strict=True,
    ):
        assert_close(ours.numpy(), its)


def test_isin_takes_a_number_on_either_side():
    assert rg.isin(2, rg.tensor([2, 9])).item() is True
    assert rg.isin(rg.tensor([1, 2]), 2, invert=True).tolist() == [True, False]


def test_of_an_empty_matrix_there_are_no_different_elements():
    values, counts = rg.unique(rg.zeros(0, 3), return_counts=True)
    assert (values.shape, counts.tolist()) == ((0,), [])
