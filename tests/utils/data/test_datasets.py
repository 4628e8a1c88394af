"""Datasets, samplers and batches: their items, their order, and refused arguments."""

import collections

import numpy as np
import pyarrow as pa
import pytest

import retrograd as rg
from retrograd.utils import data

from ...case_groups import group_cases


def plain(value):
    """Return tensors as lists, also within containers."""
    if isinstance(value, rg.Tensor):
        return value.tolist()
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    return type(value)(map(plain, value)) if isinstance(value, (list, tuple)) else value


def test_a_dataset_of_tensors_shares_the_memory_of_arrays():
    array = np.arange(6.0).reshape(3, 2)
    dataset = data.TensorDataset(array, rg.nested.nested_tensor([[1], [2, 3], []]))
    array[1] = 7
    assert plain(dataset[1]) == ([7.0, 7.0], [2, 3])
    assert len(dataset) == 3


def test_datasets_side_by_side_and_after_each_other():
    joined = data.TensorDataset(rg.arange(2)) + data.TensorDataset(rg.arange(5, 8))
    assert [int(joined[i][0]) for i in range(-len(joined), len(joined))] == [0, 1, 5, 6, 7] * 2
    assert data.StackDataset([1, 2], "ab")[0] == (1, "a")
    assert list(data.ChainDataset([range(2), "x"])) == [0, 1, "x"]
    assert len(data.ChainDataset([range(2), "x"])) == 3


@pytest.mark.parametrize(
    ("lengths", "sizes"), [([3, 7], [3, 7]), ([0.5, 0.5], [5, 5]), ([0.33, 0.33, 0.34], [4, 3, 3]), ([10, 0], [10, 0])]
)
def test_a_random_split_has_every_example_once_and_depends_on_the_generator_alone(lengths, sizes):
    parts = data.random_split(range(10), lengths, rg.Generator(3))
    assert [len(part) for part in parts] == sizes
    assert sorted(part[i] for part in parts for i in range(len(part))) == list(range(10))
    again = data.random_split(range(10), lengths, rg.Generator(3))
    assert [part.indices for part in again] == [part.indices for part in parts]


def test_a_random_split_warns_of_empty_parts():
    with pytest.warns(UserWarning, match="split at index 1 is 0"):
        parts = data.random_split(range(10), [1.0, 0.0])
    assert [len(part) for part in parts] == [10, 0]


def test_a_chain_refuses_datasets_that_are_not_iterable():
    class Mapped(data.Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, i):
            return i

    for use in (list, len):
        with pytest.raises(TypeError, match="only supports IterableDataset, got Mapped"):
            use(data.ChainDataset([Mapped()]))


def test_samplers_yield_what_they_say():
    count = range(6)
    orders = [list(data.RandomSampler(count, generator=rg.Generator(s))) for s in (0, 0, 1)]
    assert sorted(orders[0]) == list(count)
    assert orders[0] == orders[1] != orders[2]
    more = list(data.RandomSampler(count, num_samples=9))
    assert sorted(more[:6]) == list(count)
    assert len(set(more[6:])) == 3
    assert set(data.RandomSampler(count, True, 50)) <= set(count)
    assert sorted(data.SubsetRandomSampler([5, 3])) == [3, 5]
    drawn = collections.Counter(data.WeightedRandomSampler([1.0, 3.0], 4000, generator=rg.Generator(0)))
    assert drawn[1] / 4000 == pytest.approx(0.75, abs=0.03)  # 4 standard deviations
    assert sorted(data.WeightedRandomSampler([1.0, 1.0, 0.0], 2, replacement=False)) == [0, 1]
    assert list(data.BatchSampler(count, 4, True)) == [[0, 1, 2, 3]]
    assert [len(data.BatchSampler(count, 4, drop)) for drop in (True, False)] == [1, 2]


@pytest.mark.parametrize("drop_last", [False, True])
def test_replicas_share_the_examples_equally(drop_last):
    samplers = [data.DistributedSampler(range(11), 3, rank, drop_last=drop_last) for rank in range(3)]
    parts = [list(sampler) for sampler in samplers]
    assert {len(part) for part in parts} == {len(sampler) for sampler in samplers} == {3 if drop_last else 4}
    assert len({index for part in parts for index in part}) == (9 if drop_last else 11)
    samplers[0].set_epoch(1)
    assert list(samplers[0]) != parts[0]


Point = collections.namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        ([1, 2], [1, 2]),
        ([1, 2.5], [1.0, 2.5]),
        ([True, False], [True, False]),
        ([1, 2j], [1, 2j]),
        (["a", "b"], ["a", "b"]),
        ([b"a"], [b"a"]),
        ([np.ones(2), np.zeros(2)], [[1.0, 1.0], [0.0, 0.0]]),
        ([np.float32(1), np.float32(2)], [1.0, 2.0]),
        ([(1, "a"), (2, "b")], [[1, 2], ("a", "b")]),
        ([[1, 2], [3, 4]], [[1, 3], [2, 4]]),
        ([{"x": rg.ones(1), "y": {"z": 1}}] * 2, {"x": [[1.0], [1.0]], "y": {"z": [1, 1]}}),
    ],
)
def test_batches_hold_what_examples_hold(batch, expected):
    assert plain(data.default_collate(batch)) == expected


def test_a_batch_of_named_tuples_is_one_and_dtypes_stay():
    made = data.default_collate([Point(1, np.float32(2)), Point(3, np.float32(4))])
    assert type(made) is Point
    assert (made.x.dtype, made.y.dtype) == (rg.int64, rg.float32)
    assert data.default_collate([1.5]).dtype == rg.float64
    converted = data.default_convert(Point(np.ones(2), [np.zeros(1), "a"]))
    assert isinstance(converted.x, rg.Tensor)
    assert converted.y[1] == "a"
    texts, objects = np.array(["a", "b"]), np.array([None])
    assert data.default_convert([texts, objects]) == [texts, objects]


def test_examples_of_different_shapes_make_nested_batches():
    examples = [{"x": rg.ones(n, 2), "y": n} for n in (1, 3)]
    batch = data.nested_collate(examples)
    assert batch["x"].is_nested
    assert [tuple(part.shape) for part in batch["x"]] == [(1, 2), (3, 2)]
    assert batch["y"].tolist() == [1, 3]
    assert data.nested_collate([rg.ones(2), rg.ones(2)]).is_nested


def test_rows_of_arrow_tables_are_examples():
    table = pa.table({
        "a": pa.array([1, 2, 3], pa.int16()),
        "flag": [True, False, True],
        "words": [[1, 2], [], [3]],
        "points": pa.array([[[1, 2]], [[3, 4], [5, 6]], []], pa.list_(pa.list_(pa.float32(), 2))),
        "name": ["x", "y", "z"],
    })  # fmt: skip
    rows = data.ArrowDataset(pa.concat_tables([table.slice(0, 1), table.slice(1)]))
    assert plain(rows[1]) == {"a": 2, "flag": False, "words": [], "points": [[3.0, 4.0], [5.0, 6.0]], "name": "y"}
    assert rows[-3]["a"].dtype == rg.int16
    assert rows[0]["points"].dtype == rg.float32
    batch = next(iter(data.DataLoader(data.ArrowDataset(table, ["a", "words"]), 3, collate_fn=data.nested_collate)))
    assert plain(batch) == {"a": [1, 2, 3], "words": [[1, 2], [], [3]]}


def _column(rows):
    return data.ArrowDataset(pa.table({"a": rows}))


@group_cases
@pytest.mark.parametrize(
    ("make", "error", "told"),
    [
        (lambda: data.TensorDataset(), ValueError, "tensors with dimensions"),
        (lambda: data.TensorDataset(rg.tensor(1)), ValueError, "tensors with dimensions"),
        (lambda: data.TensorDataset(rg.ones(2), rg.ones(3)), ValueError, "differ in length: 2, 3"),
        (lambda: data.StackDataset([1], x=[1]), ValueError, "all by position or all by name"),
        (lambda: data.StackDataset([1], [1, 2]), ValueError, "1, 2"),
        (lambda: data.ConcatDataset([]), ValueError, "should not be an empty iterable"),
        (lambda: data.ConcatDataset([data.IterableDataset()]), TypeError, "ChainDataset"),
        (lambda: data.ConcatDataset([[1]])[1], IndexError, "index 1 is out of range for 1"),
        (lambda: data.Dataset()[0], NotImplementedError, "__getitem__"),
        (lambda: iter(data.IterableDataset()), NotImplementedError, "__iter__"),
        (lambda: data.random_split(range(3), [1, 1]), ValueError, "with the sum 3"),
        (lambda: data.random_split(range(3), [0.5, 0.6]), ValueError, "fractions"),
        (lambda: data.random_split(range(3), [-1, 4]), ValueError, "at least 0"),
        (lambda: data.RandomSampler([1], num_samples=0), ValueError, "num_samples"),
        (lambda: data.RandomSampler([1], replacement=1), TypeError, "replacement"),
        (lambda: data.WeightedRandomSampler([[1.0]], 1), ValueError, "1d sequence"),
        (lambda: data.BatchSampler([1], 0, False), ValueError, "batch_size"),
        (lambda: data.BatchSampler([1], 1, 1), ValueError, "drop_last"),
        (lambda: data.DistributedSampler([1], 2, 2), ValueError, "Invalid rank 2"),
        (lambda: data.default_collate([]), ValueError, "got none"),
        (lambda: data.default_collate([rg.ones(1), rg.ones(2)]), ValueError, "nested_collate"),
        (lambda: data.default_collate([[1], [1, 2]]), ValueError, "should be of equal size"),
        (lambda: data.default_collate([{"a": 1}, {"b": 1}]), ValueError, "example 1 has"),
        (lambda: data.default_collate([None]), TypeError, "NoneType.*; give the loader a collate_fn"),
        (lambda: _column([1, None, None]), ValueError, "2 nulls, the first in row 1"),
        (lambda: _column([1])[1], IndexError, "index 1"),
        (lambda: data.ArrowDataset(pa.table({"a": [1]}), ["b"]), KeyError, "no columns"),
    ],
)  # fmt: skip
def test_mistakes_are_named(make, error, told):
    with pytest.raises(error, match=told):
        make()


@pytest.mark.parametrize("dtype", ["float32", "int16", "bool", "complex64", "float16"])
def test_a_batch_of_arrays_is_a_copy_of_them_in_their_dtype(dtype):
    examples = [np.arange(6).reshape(2, 3).T.astype(dtype), np.ones((3, 2), dtype)]
    batch = data.default_collate(examples)
    assert batch.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(batch.numpy(), np.stack(examples))
    examples[0][:] = 0
    assert batch.numpy().any(axis=(1, 2)).all()


def test_arrays_of_several_kinds_are_collated_as_their_tensors_are():
    mixed = [np.ones(2, np.float32), np.ones(2, np.float64)]
    assert data.default_collate(mixed).dtype == rg.stack([rg.from_numpy(a) for a in mixed]).dtype
    swapped = [np.arange(3, dtype=">i4")] * 2
    assert data.default_collate(swapped).tolist() == [[0, 1, 2]] * 2
    with pytest.raises(ValueError, match="differ in shape"):
        data.default_collate([np.ones(2), np.ones(3)])
    with pytest.raises(TypeError):
        data.default_collate([np.array(["a"]), np.array(["b"])])


def test_subsets_and_stacks_pass_whole_batches_on():
    asked = []

    class Squares(data.Dataset):
        def __len__(self):
            return 9

        def __getitem__(self, index):
            return index**2

        def __getitems__(self, indices):
            asked.append(list(indices))
            return [index**2 for index in indices]

    loader: data.DataLoader[int] = data.DataLoader(data.Subset(Squares(), [5, 1, 3]), batch_size=2)
    assert [batch.tolist() for batch in loader] == [[25, 1], [9]]
    assert asked == [[5, 1], [3]]
    assert data.StackDataset(x=Squares(), y="abcdefghi").__getitems__([2, 4]) == [
        {"x": 4, "y": "c"},
        {"x": 16, "y": "e"},
    ]
    assert data.StackDataset(Squares(), range(9)).__getitems__([3]) == [(9, 3)]
    assert asked[2:] == [[2, 4], [3]]
    assert data.DataLoader[int] is not None
