"""Checkpoints of ranks: any number of ranks reads what any other number has written, and saves are whole or nothing."""

import json
import math
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import retrograd as rg
import retrograd.distributed as dist
import retrograd.distributed.checkpoint as checkpoint
from retrograd.distributed.checkpoint import api, boxes, layout, running_saves
from retrograd.distributed.fsdp import full_state_dict, fully_shard
from retrograd.distributed.local_slice import LocalSlice
from retrograd.distributed.tensor import Replicate, Shard, distribute_tensor
from retrograd.distributed.tensor.placements import StridedShard
from retrograd.interop import file_locks

from . import killed_saves


def values(seed, *shape, dtype=None):
    return rg.from_numpy(np.random.default_rng(seed).standard_normal(shape)).to(dtype or rg.float64)


def model(seed):
    made = rg.nn.Sequential(rg.nn.Linear(4, 7), rg.nn.BatchNorm1d(7), rg.nn.Linear(7, 3)).double()
    for i, p in enumerate(made.parameters()):
        p.data = values(10 * seed + i, *p.shape)
    return made


def sharded(seed):
    module = model(seed)
    fully_shard(module[0])
    return fully_shard(module)


@pytest.mark.parametrize("written_by", [1, 2, 3])
@pytest.mark.parametrize("read_by", [1, 2, 4])
def test_any_number_of_ranks_reads_the_checkpoint_of_any_other(tmp_path, written_by, read_by):
    def write():
        state = {"model": sharded(0).state_dict(), "lists": [1, {"text": "a/b~"}], "step": 5, "none": None}
        checkpoint.save(state, checkpoint_id=tmp_path)

    def read():
        module = sharded(1)
        state = {"model": module.state_dict(), "lists": [0, {"text": ""}], "step": 0, "none": 1}
        checkpoint.load(state, checkpoint_id=tmp_path)
        rest = {name: value for name, value in state.items() if name != "model"}
        return {name: value.numpy().copy() for name, value in full_state_dict(module).items()}, rest

    dist.run_threads(write, written_by)
    expected = model(0).state_dict()
    for found, rest in dist.run_threads(read, read_by):
        assert rest == {"lists": [1, {"text": "a/b~"}], "step": 5, "none": None}
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value.numpy())


@pytest.mark.parametrize("written", [2, 3, 5])
def test_the_state_dict_of_a_divided_model_is_saved_and_loaded_as_slices(tmp_path, written):
    def write():
        checkpoint.save({"model": sharded(0).state_dict()}, checkpoint_id=tmp_path)

    def read():
        module = sharded(1)
        checkpoint.load({"model": module.state_dict()}, checkpoint_id=tmp_path)
        return {name: value.numpy().copy() for name, value in full_state_dict(module).items()}

    dist.run_threads(write, written)
    for found in dist.run_threads(read, 2):
        for name, value in model(0).state_dict().items():
            np.testing.assert_array_equal(found[name], value.numpy())


@pytest.mark.parametrize("background", [False, True])
def test_tensors_that_some_ranks_have_are_saved_by_these(tmp_path, background):
    """As the buffers of a stage of a pipeline."""
    owners = {"all": (0, 1, 2, 3), "last": (3,), "first": (0, 1), "some": (1, 3), "scalar": (2, 3)}

    def tensor(name):
        return values(len(name), *(() if name == "scalar" else (3, 5)))

    def script():
        state = {name: tensor(name) for name, ranks in owners.items() if dist.get_rank() in ranks}
        if background:
            checkpoint.async_save(state, checkpoint_id=tmp_path).result()
        else:
            checkpoint.save(state, checkpoint_id=tmp_path)

    dist.run_threads(script, 4)
    found = {name: rg.zeros_like(tensor(name)) for name in owners}
    checkpoint.load(found, checkpoint_id=tmp_path)
    for name, x in found.items():
        assert rg.equal(x, tensor(name))


def test_slices_that_several_ranks_have_are_saved_once(tmp_path):
    """As the state of a parameter that two stages share, divided among the replicas of each."""
    x = values(0, 4, 3)

    def script():
        low = 5 * (dist.get_rank() % 2)
        mine = LocalSlice(x.reshape(-1)[low : low + 5 + low // 5 * 2], (4, 3), low)
        checkpoint.save({"x": mine, "empty": LocalSlice(rg.zeros(0), (0, 2), 0)}, checkpoint_id=tmp_path)

    for ranks in (2, 4, 6):
        dist.run_threads(script, ranks)
        found = {"x": rg.zeros_like(x), "empty": rg.zeros(0, 2)}
        checkpoint.load(found, checkpoint_id=tmp_path)
        assert rg.equal(found["x"], x)
        manifest = json.loads((tmp_path / layout.MANIFEST).read_text())
        assert [len(manifest["tensors"][name]["parts"]) for name in ("x", "empty")] == [ranks, 1]


PLACEMENTS = [Replicate(), Shard(0), Shard(1), Shard(2)]


@pytest.mark.parametrize("written_by", [1, 2, 3])
@pytest.mark.parametrize("saved", PLACEMENTS)
def test_parts_along_any_dimension_are_read_along_any_other(tmp_path, written_by, saved):
    whole = values(0, 5, 4, 3)

    def part(kind, x):
        return distribute_tensor(x, dist.init_device_mesh("cpu", (dist.get_world_size(),)), [kind])

    dist.run_threads(lambda: checkpoint.save({"x": part(saved, whole)}, checkpoint_id=tmp_path), written_by)

    def read(kind):
        found = {"x": part(kind, rg.zeros_like(whole))}
        checkpoint.load(found, checkpoint_id=tmp_path)
        return found["x"].full_tensor().numpy()

    def read_flat():  # as a part of `ZeroRedundancyOptimizer`, which need not begin with a row
        low, high = ((61 * n) // dist.get_world_size() for n in (dist.get_rank(), dist.get_rank() + 1))
        mine = LocalSlice(rg.zeros(min(high, 60) - low, dtype=rg.float64), (5, 4, 3), low)
        checkpoint.load({"x": mine}, checkpoint_id=tmp_path)
        np.testing.assert_array_equal(mine.tensor.numpy(), whole.numpy().reshape(-1)[low:high])

    for ranks in (1, 2, 4):
        dist.run_threads(read_flat, ranks)
        for kind in PLACEMENTS:
            for found in dist.run_threads(read, ranks, kind):
                np.testing.assert_array_equal(found, whole.numpy())


def test_a_checkpoint_has_the_old_version_unless_another_dimension_is_divided(tmp_path):
    def save(*dims):
        mesh = dist.init_device_mesh("cpu", (2,))
        state = {str(dim): distribute_tensor(values(0, 4, 3), mesh, [Shard(dim)]) for dim in dims}
        checkpoint.save(state, checkpoint_id=tmp_path)

    for dims, version, stored in (((0,), 1, [None]), ((0, 1), 2, [None, 1])):
        dist.run_threads(save, 2, *dims)
        manifest = json.loads((tmp_path / layout.MANIFEST).read_text())
        assert manifest["version"] == version
        assert [entry.get("dim") for entry in manifest["tensors"].values()] == stored


def test_parts_along_different_dimensions_are_refused(tmp_path):
    def script():
        mesh = dist.init_device_mesh("cpu", (2,))
        part = distribute_tensor(values(0, 2, 2), mesh, [Shard(dist.get_rank())], src_data_rank=None)
        with pytest.raises(ValueError, match="the ranks have divided x along different dimensions"):
            checkpoint.save({"x": part}, checkpoint_id=tmp_path)

    dist.run_threads(script, 2)


MESHES = [(1,), (3,), (2, 2), (2, 3), (1, 2, 2)]


@st.composite
def divisions(draw, ndim):
    """Return the shape of a mesh, and placements; those of one dimension may be in either order."""
    shape = draw(st.sampled_from(MESHES))
    found = [draw(st.sampled_from([Replicate(), *map(Shard, range(ndim))])) for _ in shape]
    if len(found) > 1 and isinstance(found[0], Shard) and found[0] in found[1:] and draw(st.booleans()):
        found[0] = StridedShard(found[0].dim, split_factor=2)
    return shape, found


@given(shape=st.lists(st.integers(0, 7), min_size=1, max_size=3), data=st.data())
@settings(max_examples=30, deadline=None)
def test_any_mesh_reads_what_any_other_has_saved_along_any_dimensions(tmp_path_factory, shape, data):
    written, *read = [data.draw(divisions(len(shape))) for _ in range(4)]
    whole, folder = rg.arange(math.prod(shape)).reshape(shape), tmp_path_factory.mktemp("saved")

    def part(division, x):
        mesh_shape, placements = division
        return distribute_tensor(x, dist.init_device_mesh("cpu", mesh_shape), placements, src_data_rank=None)

    def save():
        checkpoint.save({"x": part(written, whole)}, checkpoint_id=folder)

    def load(division):
        found = {"x": part(division, rg.full_like(whole, -1))}
        checkpoint.load(found, checkpoint_id=folder)
        assert rg.equal(found["x"].to_local(), part(division, whole).to_local())

    dist.run_threads(save, math.prod(written[0]))
    for division in read:
        dist.run_threads(load, math.prod(division[0]), division)


@given(
    bounds=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)).map(lambda r: (r[0], sum(r))), max_size=4),
    page=st.sampled_from([0, 16, 4096]),
    data=st.data(),
)
@settings(max_examples=200)
def test_boxes_have_the_elements_of_a_range_and_are_read_in_pieces(bounds, page, data):
    dim = data.draw(st.integers(0, max(len(bounds) - 1, 0)))
    count = math.prod(high - low for low, high in bounds)
    low, high = sorted(data.draw(st.tuples(st.integers(0, count), st.integers(0, count))))
    whole = rg.arange(7 ** len(bounds)).reshape([7] * len(bounds))
    inside = whole[tuple(slice(*r) for r in bounds)]
    flat = (inside.movedim(dim, 0) if bounds else inside).reshape(-1)[low:high].clone()  # as it is read from a file
    found = boxes.boxes_of(bounds, dim, low, high)
    assert sum(math.prod(box.sizes()) for box in found) == high - low
    for box in found:
        assert rg.equal(box.view(flat), whole[tuple(slice(*r) for r in box.bounds)])
        some = [sorted(data.draw(st.tuples(*[st.integers(*r)] * 2))) for r in box.bounds]
        if any(first == last for first, last in some):
            continue
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(boxes, "PAGE", page)
            pieces = list(box.pieces(some, 8))
        copy = rg.full([high - low for low, high in some], -1)
        for piece in pieces:
            boxes.narrowed(copy, some, piece.bounds).copy_(piece.view(flat[piece.low : piece.high]))
        assert rg.equal(copy, whole[tuple(slice(*r) for r in some)])
        if not page:
            assert sum(piece.high - piece.low for piece in pieces) == copy.numel()


def test_a_rank_reads_only_its_part_of_two_dimensions(tmp_path, monkeypatch):
    whole, read, load_ranges = values(0, 8, 4096), [], layout.load_ranges

    def part(x):
        mesh = dist.init_device_mesh("cpu", (2, 2))
        return distribute_tensor(x, mesh, [Shard(0), Shard(1)], src_data_rank=None)

    def count_elements(path, name, ranges):
        read.extend(high - low for low, high in ranges)
        return load_ranges(path, name, ranges)

    def load():
        found = {"x": part(rg.zeros_like(whole))}
        checkpoint.load(found, checkpoint_id=tmp_path)
        assert rg.equal(found["x"].to_local(), part(whole).to_local())

    monkeypatch.setattr(layout, "load_ranges", count_elements)
    for save in (lambda: whole, lambda: part(whole)):
        dist.run_threads(lambda save=save: checkpoint.save({"x": save()}, checkpoint_id=tmp_path), 4)
        read.clear()
        dist.run_threads(load, 4)
        assert sum(read) == whole.numel()
    assert json.loads((tmp_path / layout.MANIFEST).read_text())["version"] == layout.WITH_BOXES


@pytest.mark.parametrize(
    ("boxes", "words"),
    [
        ([((0, 2), (0, 2)), ((0, 2), (1, 4))], "overlap at"),
        ([((0, 2), (0, 2)), ((0, 2), (2, 3))], "end at element 6 of 8"),
    ],
)
def test_boxes_that_do_not_cover_a_tensor_once_are_refused(tmp_path, boxes, words):
    def script():
        (low, high), (left, right) = box = boxes[dist.get_rank()]
        mine = LocalSlice(rg.zeros(high - low, right - left), (2, 4), 0, box=box)
        with pytest.raises(ValueError, match=words):
            checkpoint.save({"x": mine}, checkpoint_id=tmp_path)

    dist.run_threads(script, 2)


def test_a_rank_reads_its_elements_only_and_each_once(tmp_path, monkeypatch):
    x = values(0, 6, 5)
    dist.run_threads(lambda: checkpoint.save({"x": x}, checkpoint_id=tmp_path), 4)
    read, load_ranges = [], layout.load_ranges

    def count_elements(path, name, ranges):
        read.extend(high - low for low, high in ranges)
        return load_ranges(path, name, ranges)

    monkeypatch.setattr(layout, "load_ranges", count_elements)

    def load():
        low = 10 * dist.get_rank()
        mine = LocalSlice(rg.zeros(2, 5, dtype=rg.float64), (6, 5), low)
        checkpoint.load({"x": mine}, checkpoint_id=tmp_path)
        np.testing.assert_array_equal(mine.tensor.numpy(), x[2 * dist.get_rank() : 2 * dist.get_rank() + 2].numpy())

    dist.run_threads(load, 3)
    assert sum(read) == 30


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int64", "bool", "complex64"])
def test_dtypes_and_empty_and_scalar_tensors_are_kept(tmp_path, dtype):
    kinds = {"a": (3, 5), "empty": (0, 4), "scalar": ()}
    saved = {name: (values(1, *shape) * 3).to(getattr(rg, dtype)) for name, shape in kinds.items()}
    dist.run_threads(lambda: checkpoint.save(saved, checkpoint_id=tmp_path), 2)
    found = {name: rg.zeros_like(x) for name, x in saved.items()}
    checkpoint.load(found, checkpoint_id=tmp_path)
    for name, x in saved.items():
        assert rg.equal(found[name], x)


def test_a_save_that_fails_on_one_rank_raises_on_all_and_leaves_the_earlier_checkpoint(tmp_path, monkeypatch):
    def save(value):
        checkpoint.save({"x": rg.full((4,), value)}, checkpoint_id=tmp_path)

    dist.run_threads(save, 2, 1.0)
    write_part = layout.write_part

    def full_disk(folder, number, rank, tensors):
        if rank == 1:
            raise OSError(28, "No space left on device")
        return write_part(folder, number, rank, tensors)

    monkeypatch.setattr(layout, "write_part", full_disk)

    def fail():
        with pytest.raises(OSError, match="No space left"):
            save(2.0)
        return True

    assert dist.run_threads(fail, 2) == [True, True]
    found = {"x": rg.zeros(4)}
    checkpoint.load(found, checkpoint_id=tmp_path)
    assert found["x"].tolist() == [1.0] * 4
    monkeypatch.setattr(layout, "write_part", write_part)
    dist.run_threads(save, 3, 3.0)
    checkpoint.load(found, checkpoint_id=tmp_path)
    assert found["x"].tolist() == [3.0] * 4
    assert len(list(tmp_path.iterdir())) == 1 + 2  # the manifest, and files of the two ranks with elements


def test_a_save_that_is_killed_at_any_moment_leaves_a_checkpoint_and_nothing_for_long(tmp_path):
    command = [sys.executable, "-m", killed_saves.__name__, str(tmp_path / "checkpoint")]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10


def test_a_save_does_not_remove_the_files_of_one_that_runs(tmp_path, monkeypatch):
    write_part, later_is_complete = layout.write_part, threading.Event()

    def late(folder, number, rank, tensors):
        rows = write_part(folder, number, rank, tensors)
        assert number > 1 or later_is_complete.wait(60)
        return rows

    monkeypatch.setattr(layout, "write_part", late)
    pending = checkpoint.async_save({"x": rg.ones(2)}, checkpoint_id=tmp_path)
    checkpoint.save({"x": rg.zeros(2)}, checkpoint_id=tmp_path)
    later = [layout.MANIFEST, "save-2-rank-0.safetensors"]
    assert sorted(path.name for path in tmp_path.iterdir() if "save-1" not in path.name) == later
    assert (tmp_path / "save-1.started").is_file()
    later_is_complete.set()
    pending.result()
    assert sorted(path.name for path in tmp_path.iterdir()) == later


def before_first(monkeypatch, module, name, happens):
    """Let something happen, once, before a function of a module runs."""
    function = getattr(module, name)

    def late(*arguments):
        monkeypatch.setattr(module, name, function)
        happens()
        return function(*arguments)

    monkeypatch.setattr(module, name, late)


def begun_and_running(folder):
    """Return a save that has begun; its locked file must be in the folder."""
    save = running_saves.RunningSave.begin(folder)
    assert file_locks.is_locked(folder / f"save-{save.number}.started")
    return save


def test_a_save_whose_file_is_removed_before_it_is_locked_makes_another(tmp_path, monkeypatch):
    before_first(monkeypatch, file_locks, "lock_file", lambda: running_saves.remove_leftovers(tmp_path))
    begun_and_running(tmp_path).end(tmp_path)


def test_a_file_that_is_locked_after_it_was_found_without_a_lock_stays(tmp_path, monkeypatch):
    mark = tmp_path / "save-1.started"
    mark.touch()
    held = []
    before_first(monkeypatch, running_saves, "completed_save", lambda: held.append(file_locks.open_locked(mark)))
    running_saves.remove_leftovers(tmp_path)
    assert mark.exists()
    os.close(held[0])
    running_saves.remove_leftovers(tmp_path)
    assert not mark.exists()


def test_jobs_that_begin_at_once_have_different_numbers(tmp_path, monkeypatch):
    others = []
    before_first(monkeypatch, running_saves, "open_new_locked", lambda: others.append(begun_and_running(tmp_path)))
    save = begun_and_running(tmp_path)
    assert (others[0].number, save.number) == (1, 2)
    for one in (*others, save):
        one.end(tmp_path)


def test_a_save_that_completes_while_another_job_removes_leftovers_stays(tmp_path, monkeypatch):
    checkpoint.save({"x": rg.zeros(2)}, checkpoint_id=tmp_path)
    before_first(
        monkeypatch, running_saves, "_numbered", lambda: checkpoint.save({"x": rg.ones(2)}, checkpoint_id=tmp_path)
    )
    running_saves.remove_leftovers(tmp_path)
    found = {"x": rg.zeros(2)}
    checkpoint.load(found, checkpoint_id=tmp_path)
    assert found["x"].tolist() == [1.0, 1.0]


def test_files_of_a_failed_save_are_removed(tmp_path, monkeypatch):
    write_part = layout.write_part

    def full_disk(folder, number, rank, tensors):
        write_part(folder, number, rank, tensors)
        if rank == 1:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(layout, "write_part", full_disk)

    def script():
        with pytest.raises(OSError, match="No space left"):
            checkpoint.save({"x": rg.ones(4)}, checkpoint_id=tmp_path)

    dist.run_threads(script, 2)
    assert list(tmp_path.iterdir()) == []


def test_a_save_in_the_background_writes_what_the_state_was_when_it_started(tmp_path):
    def script():
        x = rg.full((6,), 1.0)
        pending = checkpoint.async_save({"x": x, "step": 1}, checkpoint_id=tmp_path)
        x.zero_()
        assert not (tmp_path / layout.MANIFEST).exists()
        dist.barrier()
        pending.result()
        assert pending.done()
        pending.result()  # again: nothing happens

    dist.run_threads(script, 2)
    found = {"x": rg.zeros(6), "step": 0}
    checkpoint.load(found, checkpoint_id=tmp_path)
    assert (found["x"].tolist(), found["step"]) == ([1.0] * 6, 1)


def test_saves_in_the_background_may_overlap_and_the_latest_stays(tmp_path):
    def script(first, second):
        pending = [checkpoint.async_save({"x": rg.full((6,), v)}, checkpoint_id=tmp_path) for v in (1.0, 2.0)]
        pending[first].result()
        pending[second].result()

    for order in ((0, 1), (1, 0)):
        dist.run_threads(script, 2, *order)
        found = {"x": rg.zeros(6)}
        checkpoint.load(found, checkpoint_id=tmp_path)
        assert found["x"].tolist() == [2.0] * 6


def test_no_rank_waits_in_a_background_save_for_the_copy_of_another(tmp_path, monkeypatch):
    others_continue, copy = threading.Event(), api._Plan.copy

    def late_copy(plan):
        assert dist.get_rank() == 0 or others_continue.wait(60), "rank 0 waits for this copy"
        copy(plan)

    monkeypatch.setattr(api._Plan, "copy", late_copy)

    def script():
        pending = checkpoint.async_save({"x": rg.ones(6)}, checkpoint_id=tmp_path)
        if dist.get_rank() == 0:
            others_continue.set()
        pending.result()

    dist.run_threads(script, 2)
    assert (tmp_path / layout.MANIFEST).is_file()


def test_a_copy_that_fails_is_raised_on_all_ranks_by_the_result(tmp_path, monkeypatch):
    def no_memory(plan):
        if dist.get_rank() == 1:
            raise MemoryError("no memory for a copy")

    monkeypatch.setattr(api._Plan, "copy", no_memory)

    def script():
        pending = checkpoint.async_save({"x": rg.ones(6)}, checkpoint_id=tmp_path)
        with pytest.raises(MemoryError, match="no memory for a copy"):
            pending.result()
        return True

    assert dist.run_threads(script, 2) == [True, True]
    assert not (tmp_path / layout.MANIFEST).exists()


def test_an_error_in_the_background_is_raised_on_all_ranks(tmp_path):
    def script():
        bad = rg.zeros(2, dtype=rg.complex128) if dist.get_rank() else rg.zeros(2)
        pending = checkpoint.async_save({"x": LocalSlice(bad, (4,), 2 * dist.get_rank())}, checkpoint_id=tmp_path)
        with pytest.raises(TypeError, match="complex128"):
            pending.result()
        return True

    assert dist.run_threads(script, 2) == [True, True]


@pytest.mark.parametrize(
    ("slices", "words"),
    [
        ([(0, 2), (3, 2)], "gaps or overlap at element 2"),
        ([(0, 3), (2, 3)], "gaps or overlap"),
        ([(0, 2), (2, 2)], "end at element 4 of 5"),
    ],
)
def test_slices_that_do_not_fit_are_refused_on_all_ranks(tmp_path, slices, words):
    def script():
        low, count = slices[dist.get_rank()]
        with pytest.raises(ValueError, match=words):
            checkpoint.save({"x": LocalSlice(rg.zeros(count), (5,), low)}, checkpoint_id=tmp_path)
        return True

    assert dist.run_threads(script, 2) == [True, True]


def test_keys_of_one_name_are_refused(tmp_path):
    with pytest.raises(TypeError, match=r"the keys \('x', 1\) and \('x', '1'\) have the same name, 'x/1'"):
        checkpoint.save({"x": {1: rg.ones(1), "1": rg.zeros(1)}}, checkpoint_id=tmp_path)


def test_what_a_checkpoint_lacks_is_refused_before_anything_changes(tmp_path):
    checkpoint.save({"x": rg.ones(3), "step": 1}, checkpoint_id=tmp_path)
    for state, error, words in (
        ({"x": rg.zeros(3), "y": rg.zeros(3)}, KeyError, "no tensor 'y'"),
        ({"x": rg.zeros(3), "steps": 0}, KeyError, "no value 'steps'"),
        ({"step": 0, "x": rg.zeros(2)}, ValueError, r"float32\[3\] in the checkpoint, and float32\[2\] here"),
        ({"step": 0, "x": rg.zeros(3, dtype=rg.float64)}, ValueError, r"float64\[3\] here"),
    ):
        with pytest.raises(error, match=words):
            checkpoint.load(state, checkpoint_id=tmp_path)
        assert not state["x"].any()
        assert state.get("step", 0) == 0
    with pytest.raises(FileNotFoundError, match="holds no complete checkpoint"):
        checkpoint.load({}, checkpoint_id=tmp_path / "none")
    with pytest.raises(TypeError, match="x is a object"):
        checkpoint.save({"x": object()}, checkpoint_id=tmp_path)


def test_a_damaged_manifest_or_file_is_refused(tmp_path):
    checkpoint.save({"x": rg.ones(100)}, checkpoint_id=tmp_path)
    (part,) = tmp_path.glob("*.safetensors")
    os.truncate(part, part.stat().st_size - 8)
    with pytest.raises(ValueError, match="ends early"):
        checkpoint.load({"x": rg.zeros(100)}, checkpoint_id=tmp_path)
    Path(tmp_path, layout.MANIFEST).write_text("{")
    with pytest.raises(ValueError, match="is damaged or no manifest"):
        checkpoint.load({"x": rg.zeros(100)}, checkpoint_id=tmp_path)
