"""Order of dimensions in index results: integers are applied before index tensors, and lists may be keys."""

import numpy as np
import pytest

import retrograd as rg

X = np.arange(60.0).reshape(3, 4, 5)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ((0, slice(None), [0, 1]), X[0][:, [0, 1]]),
        ((slice(None), [1, 2], slice(None)), X[:, [1, 2]]),
        ((..., 1, [0, 2]), X[:, 1][:, [0, 2]]),
        ((None, 0, slice(None), X[0, 0] > 2), X[None, 0][:, :, X[0, 0] > 2]),
    ],
)
def test_integers_select_before_index_tensors(key, expected):
    x = rg.tensor(X)
    assert x[key].numpy().tolist() == expected.tolist()
    assert x[key].is_contiguous()


def test_a_write_goes_to_the_elements_that_the_key_reads():
    x = rg.tensor(X.copy())
    x[0, :, [0, 1]] = rg.arange(8.0).reshape(4, 2).to(rg.float64)
    assert x[0, :, [0, 1]].tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]
    assert np.array_equal(x.numpy()[1:], X[1:])


@pytest.mark.parametrize("key", [[[0, 1], [1, 2]], [slice(0, 2), [1]], [None, 0], [..., 0], [[0, 1], [1]]])
def test_a_list_that_holds_more_than_numbers_is_a_key_of_several_parts(key):
    x = rg.tensor(X)
    assert x[key].tolist() == x[tuple(key)].tolist()


def test_a_list_of_index_tensors_is_a_key_of_several_parts():
    x, first, second = rg.tensor(X), rg.tensor([0, 1]), rg.tensor([1, 2])
    assert x[[first, second]].shape == (2, 5)


def test_a_tensor_of_bytes_is_a_mask():
    x = rg.tensor([5.0, 6.0, 7.0])
    assert x[rg.tensor([0, 1, 1], dtype=rg.uint8)].tolist() == [6.0, 7.0]


def test_a_batch_of_integers_and_index_tensors_is_a_loop():
    x, ids = rg.tensor(X), rg.tensor([[0, 1], [2, 3]])
    out = rg.func.vmap(lambda i: x[0, :, i])(ids)
    assert out.tolist() == rg.stack([x[0, :, i] for i in ids]).tolist()
