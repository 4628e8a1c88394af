"""Splitting a batch into microbatches and merging their results."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import retrograd as rg
from retrograd.pipelining import Replicate, TensorChunkSpec, merge_chunks, split_args_kwargs_into_chunks
from retrograd.pipelining.microbatch import chunk_sizes, split_batch


@given(st.integers(1, 60), st.integers(1, 60))
def test_sizes_add_up_and_differ_by_one_at_most(total, chunks):
    if chunks > total:
        with pytest.raises(ValueError, match=f"{total} examples can't make {chunks}"):
            chunk_sizes(total, chunks)
        return
    sizes = chunk_sizes(total, chunks)
    assert (sum(sizes), len(sizes)) == (total, chunks)
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)


@given(st.integers(1, 12), st.integers(1, 12))
def test_merging_split_chunks_gives_the_batch(total, chunks):
    x = rg.arange(total * 2).reshape(total, 2)
    parts = split_batch((x,), {"y": {"inner": x}}, min(chunks, total))
    assert merge_chunks([p.args[0] for p in parts]).tolist() == x.tolist()
    assert merge_chunks([p.kwargs["y"] for p in parts])["inner"].tolist() == x.tolist()
    assert sum(p.weight for p in parts) == pytest.approx(1.0)


def test_weights_are_shares_of_the_examples():
    parts = split_batch((rg.ones(5, 1),), {}, 2)
    assert [p.weight for p in parts] == [0.6, 0.4]


def test_other_dimensions_can_be_split():
    parts = split_batch((rg.arange(6).reshape(2, 3),), {}, 3, (TensorChunkSpec(1),))
    assert [p.args[0].tolist() for p in parts] == [[[0], [3]], [[1], [4]], [[2], [5]]]


def test_specs_nested_as_the_outputs_are_say_how_each_is_merged():
    chunks = [(rg.ones(2, 1), {"a": rg.zeros(1, 2), "b": 3}), (rg.ones(2, 2), {"a": rg.zeros(2, 2), "b": 4})]
    merged = merge_chunks(chunks, (TensorChunkSpec(1), {"a": TensorChunkSpec(0), "b": Replicate()}))
    assert (merged[0].shape, merged[1]["a"].shape, merged[1]["b"]) == ((2, 3), (3, 2), 3)


def test_replicated_arguments_and_numbers_are_not_split():
    table = rg.ones(7)
    parts = split_batch((rg.ones(4), 3), {"t": table}, 2, None, {"t": Replicate()})
    assert all(p.kwargs["t"] is table and p.args[1] == 3 for p in parts)


@pytest.mark.parametrize(
    ("args", "specs", "message"),
    [
        ((rg.ones(4), rg.ones(3)), None, "batch sizes differ .argument 0: 4, argument 1: 3."),
        ((rg.ones(()),), None, r"argument 0, of shape \(\), has no dimension 0"),
        ((rg.ones(4),), (TensorChunkSpec(1),), "has no dimension 1"),
        ((1, "text"), None, "no argument is a tensor"),
        ((rg.ones(4),), (TensorChunkSpec(), TensorChunkSpec()), "1 arguments but 2 chunk specs"),
    ],
)
def test_arguments_that_can_not_be_split_are_refused_by_name(args, specs, message):
    with pytest.raises(ValueError, match=message):
        split_batch(args, {}, 2, specs)


def test_outputs_that_are_no_tensors_are_the_same_in_all_micro_batches_or_refused():
    assert merge_chunks([{"n": 1}, {"n": 1}]) == {"n": 1}
    for parts in ([1, 2], [rg.ones(()), rg.ones(())]):
        with pytest.raises(ValueError, match="no batch to join"):
            merge_chunks(parts)


def test_numpy_arrays_are_split_like_tensors():
    parts = split_batch((np.arange(4.0),), {"y": np.arange(4)}, 2)
    assert [p.args[0].tolist() for p in parts] == [[0.0, 1.0], [2.0, 3.0]]
    assert [p.kwargs["y"].tolist() for p in parts] == [[0, 1], [2, 3]]


@pytest.mark.parametrize("spec", [0, "batch", TensorChunkSpec, TensorChunkSpec("a")])
def test_objects_that_are_no_chunk_specs_are_refused(spec):
    x = rg.ones(4, 2)
    with pytest.raises(TypeError, match=r"split: expected a TensorChunkSpec\(dimension\) or Replicate\(\)"):
        split_batch((x,), {}, 2, (spec,))
    with pytest.raises(TypeError, match="split: expected a TensorChunkSpec"):
        split_batch((x,), {"y": x}, 2, None, {"y": spec})
    with pytest.raises(TypeError, match="merge: expected a TensorChunkSpec"):
        merge_chunks([x, x], spec)


@pytest.mark.parametrize(
    ("args", "chunks", "kind", "message"),
    [
        ((rg.ones(4),), 2.0, TypeError, "must be an integer, got 2.0"),
        (rg.ones(4, 2), 2, TypeError, "args must be a tuple or list of arguments, got Tensor"),
        (((rg.ones(4), rg.ones(2)),), 2, ValueError, "tensors in argument 0 have batches of 4 and of 2"),
    ],
)
def test_arguments_that_make_no_batch_are_refused(args, chunks, kind, message):
    with pytest.raises(kind, match=message):
        split_batch(args, {}, chunks)


def test_no_chunks_can_not_be_merged():
    with pytest.raises(ValueError, match="merge: there are no chunks"):
        merge_chunks([])


def test_each_tensor_is_split_by_its_own_size():
    args, kwargs = split_args_kwargs_into_chunks((rg.arange(6), 7), {"y": rg.arange(3), "mode": "mean"}, 2)
    assert [(a.tolist(), n) for a, n in args] == [([0, 1, 2], 7), ([3, 4, 5], 7)]
    assert [(k["y"].tolist(), k["mode"]) for k in kwargs] == [([0, 1], "mean"), ([2], "mean")]


def test_specs_may_be_nested_as_the_argument_is():
    x = rg.arange(8).reshape(2, 4)
    spec = {"a": TensorChunkSpec(1), "b": Replicate()}
    args, _ = split_args_kwargs_into_chunks(({"a": x, "b": x},), None, 2, (spec,))
    assert [(part["a"].shape, part["b"] is x) for (part,) in args] == [((2, 2), True)] * 2
    with pytest.raises(TypeError, match="expected a TensorChunkSpec"):
        split_batch(({"a": x, "b": x},), {}, 2, (spec,))  # whose microbatches need one size


def test_arguments_without_tensors_go_to_every_microbatch():
    assert split_args_kwargs_into_chunks((3,), {"a": None}, 2) == ([(3,), (3,)], [{"a": None}, {"a": None}])
    for chunks, kind in ((0, ValueError), (2.0, TypeError)):
        with pytest.raises(kind, match="microbatches"):
            split_args_kwargs_into_chunks((3,), {}, chunks)


def test_specs_are_made_from_dimensions():
    assert TensorChunkSpec.from_tuple((0, 1)) == (TensorChunkSpec(0), TensorChunkSpec(1))
    assert TensorChunkSpec.from_dict({"mask": 2}) == {"mask": TensorChunkSpec(2)}
