"""Indexing: views, shapes of masks, booleans and lists as in NumPy, errors that name the index."""

import numpy as np
import pytest

import retrograd as rg


@pytest.mark.parametrize(
    "member",
    [
        lambda x: x[1],
        lambda x: x[-2],
        lambda x: x[..., 1],
        lambda x: x[np.int64(1)],
        lambda x: x.select(0, 1),
        lambda x: x.unbind()[1],
    ],
)
def test_one_element_is_a_view_that_writes_reach_the_tensor_through(member):
    x = rg.zeros(3)
    v = member(x)
    assert v.shape == ()
    assert np.shares_memory(v.numpy(), x.numpy())
    v.fill_(5.0)
    assert x.tolist() == [0, 5, 0]


def test_an_element_of_a_matrix_and_a_tensor_without_dimensions_are_views():
    x, number = rg.zeros(2, 2), rg.zeros(())
    x[1, 0].fill_(3.0)
    number[()].fill_(2.0)
    number[...].add_(1.0)
    assert x.tolist() == [[0, 0], [3, 0]]
    assert number.item() == 3


@pytest.mark.parametrize(
    ("shape", "mask", "key"),
    [
        ((4,), (3,), lambda m: m),
        ((4,), (5,), lambda m: m),
        ((4, 3), (2, 2), lambda m: m),
        ((4, 3), (4,), lambda m: (slice(None), m)),
        ((4, 3), (4,), lambda m: (..., m)),
        ((4, 3), (4, 3, 1), lambda m: m),
    ],
)
def test_masks_that_do_not_match_the_dimensions_they_cover_are_refused_with_both_shapes(shape, mask, key):
    with pytest.raises(IndexError, match="mask of shape") as caught:
        rg.zeros(shape)[key(rg.zeros(mask, dtype="bool"))]
    assert str(mask) in str(caught.value)
    assert str(shape) in str(caught.value)


MASK = np.array([True, False, True])


@pytest.mark.parametrize(
    "key",
    [
        True,
        False,
        np.True_,
        np.array(False),
        (True, 0),
        (slice(None), False),
        (0, True, slice(None)),
        [],
        (slice(None), []),
        [True, False],
        (slice(None), MASK),
        (..., MASK, 0),
        (..., MASK, slice(1, 3)),
        (None, slice(None), MASK),
        (1, MASK),
        ([1, 0], ..., 2),
        MASK[None].repeat(2, 0),
    ],
    ids=repr,
)
def test_keys_mean_what_they_mean_to_numpy_and_gradients_reach_what_was_taken(key):
    array = np.arange(24.0).reshape(2, 3, 4)
    x = rg.tensor(array, requires_grad=True)
    out = x[key]
    np.testing.assert_array_equal(out.detach().numpy(), array[key])
    assert out.shape == array[key].shape
    (g,) = rg.autograd.grad(out.sum(), x)
    np.testing.assert_array_equal(g.numpy(), np.isin(array, array[key]))


def test_a_boolean_tensor_without_dimensions_adds_a_dimension():
    x = rg.ones(2, 3)
    assert x[rg.tensor(True)].shape == (1, 2, 3)
    assert x[rg.tensor(False)].shape == (0, 2, 3)


def test_a_boolean_key_writes_everything_or_nothing():
    x = rg.zeros(2)
    x[False] = 3.0
    assert x.tolist() == [0.0, 0.0]
    x[True] = 5.0
    assert x.tolist() == [5.0, 5.0]


def test_index_select_refuses_an_index_that_is_no_vector_of_integers():
    with pytest.raises(TypeError, match=r"index_select: .* got float32"):
        rg.index_select(rg.ones(3), 0, rg.ones(2))
    with pytest.raises(TypeError, match=r"index_select: .* got bool"):
        rg.index_select(rg.ones(3), 0, rg.tensor([True, False, True]))
    with pytest.raises(ValueError, match=r"index_select: .* got shape \(1, 1\)"):
        rg.index_select(rg.ones(3), 0, rg.tensor([[0]]))


@pytest.mark.parametrize("shape", [(2, 2), (3,), (4, 2)])
def test_take_along_dim_refuses_indices_that_do_not_broadcast(shape):
    with pytest.raises(ValueError, match="take_along_dim: indices of shape"):
        rg.take_along_dim(rg.ones(3, 4), rg.zeros(shape, dtype="int64"), 1)


def test_one_hot_refuses_fractions():
    with pytest.raises(TypeError, match=r"one_hot: .*expected integers, got float32"):
        rg.one_hot(rg.tensor([0.0, 1.0]), 3)


def test_sequences_are_indices_as_lists_are():
    x = rg.arange(6).reshape(3, 2)
    assert x[range(2)].tolist() == x[(0, 1),].tolist() == x[[0, 1]].tolist() == [[0, 1], [2, 3]]
    x[range(2), (1, 0)] = -1
    assert x.tolist() == [[0, -1], [-1, 3], [4, 5]]


@pytest.mark.parametrize("shape", [(200, 100), (40, 30, 20), (3, 1, 7000), (20000,), (0, 20000), (20000, 0)])
@pytest.mark.parametrize("dtype", ["bool", "float32", "int64"])
def test_nonzero_elements_of_large_tensors_come_in_row_major_order(shape, dtype, rng):
    x = (rng.random(shape) > 0.7).astype(dtype)
    for view in (x, x.T, x[::-1]):
        np.testing.assert_array_equal(rg.nonzero(rg.tensor(view)).numpy(), np.argwhere(view))


@pytest.mark.parametrize("key", [[3, -1, 0], [[-4, 1], [2, 2]]])
def test_one_index_tensor_takes_rows_of_any_layout(key, rng):
    x, index = rng.random((4, 8)), np.array(key)
    for view in (x, x.T[:4].T, x[:, ::2], np.asfortranarray(x)):
        for given, expected in ((index, view[index]), ((slice(None), index), view[:, index])):
            parts = given if type(given) is tuple else (given,)
            found = rg.from_numpy(view)[tuple(rg.tensor(p) if isinstance(p, np.ndarray) else p for p in parts)]
            np.testing.assert_array_equal(found.numpy(), expected)
            assert found.is_contiguous()


def test_one_index_tensor_between_slices_takes_from_its_dimension(rng):
    x, index = rng.random((2, 3, 4)), rg.tensor([2, 0, -1])
    np.testing.assert_array_equal(rg.from_numpy(x)[:, index, :].numpy(), x[:, [2, 0, -1], :])
    np.testing.assert_array_equal(rg.from_numpy(x)[..., index].numpy(), x[..., [2, 0, -1]])
    with pytest.raises(IndexError, match="index 3 is out of bounds for dimension 1 with size 3"):
        rg.from_numpy(x)[:, rg.tensor([3])]
    with pytest.raises(IndexError, match="index 0 is out of bounds for dimension 1 with size 0"):
        rg.zeros(2, 0)[:, rg.tensor([0])]
