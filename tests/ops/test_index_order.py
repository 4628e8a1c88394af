"""Order of dimensions in index results: integers are applied before index tensors, and lists may be keys."""

import numpy as np
import pytest

import retrograd as rg

from ..case_groups import group_cases

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


KEYS = {
    "apart": lambda i, j: (i, slice(None), j),
    "apart, second": lambda i, j: (slice(None), i, slice(None), j),
    "together": lambda i, j: (slice(None), i, j),
    "three": lambda i, j: (i, slice(None), i, j),
    "with an integer": lambda i, j: (0, slice(None), i, j),
    "with an integer apart": lambda i, j: (i, 1, slice(None), j),
    "new axis": lambda i, j: (i, None, j),
    "mask": lambda i, j: (slice(None), i, slice(None), rg.tensor([True, False, True])),
}
TRANSFORMS = {
    "grad": lambda f, x, i: rg.func.grad(lambda x: (f(x, i) ** 2).sum())(x),
    "jvp": lambda f, x, i: rg.func.jvp(lambda x: f(x, i), (x,), (rg.ones_like(x),))[1],
    "vmap": lambda f, x, i: rg.func.vmap(f, in_dims=(None, 0))(x, rg.stack([i, 1 - i]))[0],
    "trace": lambda f, x, i: rg.fx.trace(f, x, i)(x, i),
}


@group_cases
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_a_transform_writes_where_the_key_reads(key, transform):
    """An index tensor without dimensions counts as an integer there too, though its value is not known."""
    x = rg.tensor(np.arange(72.0).reshape(2, 3, 4, 3))
    ids = rg.tensor([1, 0])

    def write(x, i):
        x = x * 2
        at = KEYS[key](i, ids)
        read = x[at]
        x[at] = read * 3 + rg.arange(read.numel()).view(read.shape)
        return x

    with_numbers = TRANSFORMS[transform](lambda x, i: write(x, 1), x, rg.tensor(1))
    assert TRANSFORMS[transform](write, x, rg.tensor(1)).tolist() == with_numbers.tolist()
