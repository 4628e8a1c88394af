"""Splitting a batch into microbatches and merging their results."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import retrograd as rg
from retrograd.pipelining import Replicate, TensorChunkSpec, merge_chunks, split_args_kwargs_into_chunks
from retrograd.pipelining.microbatch import chunk_sizes


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
def test_merging_what_was_split_gives_the_batch(total, chunks):
    x = rg.arange(total * 2).reshape(total, 2)
    parts = split_args_kwargs_into_chunks((x,), {"y": {"inner": x}}, min(chunks, total))
    assert merge_chunks([p.args[0] for p in parts]).tolist() == x.tolist()
    assert merge_chunks([p.kwargs["y"] for p in parts])["inner"].tolist() == x.tolist()
    assert sum(p.weight for p in parts) == pytest.approx(1.0)


def test_weights_are_shares_of_the_examples():
    parts = split_args_kwargs_into_chunks((rg.ones(5, 1),), {}, 2)
    assert [p.weight for p in parts] == [0.6, 0.4]


def test_other_dimensions_can_be_split():
    parts = split_args_kwargs_into_chunks((rg.arange(6).reshape(2, 3),), {}, 3, (TensorChunkSpec(1),))
    assert [p.args[0].tolist() for p in parts] == [[[0], [3]], [[1], [4]], [[2], [5]]]


def test_specs_nested_as_the_outputs_are_say_how_each_is_merged():
    chunks = [(rg.ones(2, 1), {"a": rg.zeros(1, 2), "b": 3}), (rg.ones(2, 2), {"a": rg.zeros(2, 2), "b": 4})]
    merged = merge_chunks(chunks, (TensorChunkSpec(1), {"a": TensorChunkSpec(0), "b": Replicate()}))
    assert (merged[0].shape, merged[1]["a"].shape, merged[1]["b"]) == ((2, 3), (3, 2), 3)


def test_what_is_replicated_comes_whole_and_numbers_do_too():
    table = rg.ones(7)
    parts = split_args_kwargs_into_chunks((rg.ones(4), 3), {"t": table}, 2, None, {"t": Replicate()})
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
def test_what_can_not_be_split_is_refused_by_name(args, specs, message):
    with pytest.raises(ValueError, match=message):
        split_args_kwargs_into_chunks(args, {}, 2, specs)


def test_outputs_that_are_no_tensors_are_the_same_in_all_micro_batches_or_refused():
    assert merge_chunks([{"n": 1}, {"n": 1}]) == {"n": 1}
    for parts in ([1, 2], [rg.ones(()), rg.ones(())]):
        with pytest.raises(ValueError, match="no batch to join"):
            merge_chunks(parts)


def test_numpy_arrays_are_split_like_tensors():
    parts = split_args_kwargs_into_chunks((np.arange(4.0),), {"y": np.arange(4)}, 2)
    assert [p.args[0].tolist() for p in parts] == [[0.0, 1.0], [2.0, 3.0]]
    assert [p.kwargs["y"].tolist() for p in parts] == [[0, 1], [2, 3]]


@pytest.mark.parametrize("spec", [0, "batch", Replicate, TensorChunkSpec, TensorChunkSpec("a")])
def test_what_is_no_spec_is_refused(spec):
    x = rg.ones(4, 2)
    with pytest.raises(TypeError, match=r"split: expected a TensorChunkSpec\(dimension\) or Replicate\(\)"):
        split_args_kwargs_into_chunks((x,), {}, 2, (spec,))
    with pytest.raises(TypeError, match="split: expected a TensorChunkSpec"):
        split_args_kwargs_into_chunks((x,), {"y": x}, 2, None, {"y": spec})
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
        split_args_kwargs_into_chunks(args, {}, chunks)


def test_no_chunks_can_not_be_merged():
    with pytest.raises(ValueError, match="merge: there are no chunks"):
        merge_chunks([])
