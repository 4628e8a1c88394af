"""Batches of data loaders contain the same values, in the same containers, as PyTorch's."""

import collections

import numpy as np
import pytest
import torch.utils.data

from retrograd.utils import data

Point = collections.namedtuple("Point", "x y")
BATCHES = [
    [1, 2], [1.5, 2.5], ["a", "b"], [np.float32(1), np.float32(2)], [np.ones((2, 3)), np.zeros((2, 3))],
    [(1, "a", [2.0]), (3, "b", [4.0])], [{"x": 1, "y": {"z": np.ones(2)}}] * 3, [Point(1, 2.0), Point(3, 4.0)],
]  # fmt: skip


def plainly(value):
    if hasattr(value, "numpy"):
        return value.numpy().dtype, value.tolist()
    if isinstance(value, dict):
        return {name: plainly(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plainly(part) for part in value]
    return value


@pytest.mark.parametrize("batch", BATCHES, ids=str)
def test_batches_are_collated_equally(batch):
    theirs = torch.utils.data.default_collate(batch)
    assert plainly(data.default_collate(batch)) == plainly(theirs)


@pytest.mark.parametrize("options", [{"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}])
def test_loaders_yield_equal_batches(options):
    items = np.arange(8.0)
    ours, theirs = data.DataLoader(items, **options), torch.utils.data.DataLoader(items, **options)
    assert len(ours) == len(theirs)
    assert [np.asarray(a).tolist() for a in ours] == [np.asarray(b).tolist() for b in theirs]


@pytest.mark.parametrize("lengths", [[3, 4], [0.5, 0.5], [0.3, 0.3, 0.4]])
def test_splits_have_the_same_sizes(lengths):
    sizes = [[len(part) for part in library.random_split(range(7), lengths)] for library in (data, torch.utils.data)]
    assert sizes[0] == sizes[1]
