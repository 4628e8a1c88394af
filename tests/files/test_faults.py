"""Saving to a full, broken or read-only disk: the old file remains, and the error names the path."""

import errno
import shutil
import struct

import pytest

from retrograd.interop import program_files
from retrograd.utils.event_files import EventFile, encode_record
from retrograd.utils.tensorboard import SummaryWriter

from .faults import SAVERS, Disk, check_failure, files_of_at_most, listed, read_only

DRAWN = ("write_html", "plot_curves")  # which take a while, and share how they write


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return what every saver has written, to be copied."""
    folders = {}
    for title, saver in SAVERS.items():
        folders[title] = tmp_path_factory.mktemp("saved")
        saver.save(folders[title] / saver.name, 0)
    return folders


@pytest.fixture(params=[title for title in SAVERS if title != "write_png"])  # which writes as plot_curves does
def title(request):
    return request.param


@pytest.fixture
def start(title, saved, tmp_path):
    """Return copies of the saved files: (saver, path, files in its folder, loaded value) for each name of a folder."""

    def copy_of_saved(name):
        folder, saver = shutil.copytree(saved[title], tmp_path / name), SAVERS[title]
        return saver, folder / saver.name, listed(folder), saver.read(folder / saver.name)

    return copy_of_saved


def sizes(path):
    program_files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
    return sorted(file.stat().st_size for file in program_files)


def test_a_full_disk_leaves_the_old_file_and_an_error_that_names_the_path(title, start):
    largest = sizes(start("size")[1])[-1]
    for limit in (largest // 2,) if title in DRAWN else (0, 1, 100, largest // 3, largest // 2, largest - 60):
        saver, path, before, old = start(str(limit))
        with files_of_at_most(limit), pytest.raises(OSError, match="File too large") as caught:
            saver.save(path, 1)
        check_failure(saver, path, caught.value, before, old)
        saver.save(path, 1)
        assert saver.read(path) != old


@pytest.mark.parametrize("stays", [False, True])
def test_a_disk_that_breaks_anywhere_leaves_the_old_file_or_the_new_one(title, start, stays):
    ends = set()
    for number in range(2 if title in DRAWN else 60):
        saver, path, before, old = start(str(number))
        with Disk(number, errno.EIO, stays)() as disk:
            try:
                saver.save(path, 1)
                failed = None
            except OSError as error:
                failed = error
        ends.add("new" if failed is None or saver.read(path) != old else "old")
        if failed is not None and saver.read(path) == old:
            check_failure(saver, path, failed, before, old, tidy=not stays)
            saver.save(path, 2)
        assert failed is None or str(path) in str(failed)
        assert saver.read(path) != old
        if disk.count <= number:
            break
    assert "old" in ends


@pytest.mark.parametrize("stays", [False, True])
def test_where_folders_can_not_be_exchanged_the_old_program_comes_back_at_once_or_when_it_is_read(
    saved, tmp_path, monkeypatch, stays
):
    monkeypatch.setattr(program_files, "_exchange_atomically", lambda a, b: False)
    saver, notes = SAVERS["export.save"], []
    for number in range(60):
        path = shutil.copytree(saved["export.save"], tmp_path / str(number)) / saver.name
        with Disk(number, errno.EIO, stays)() as disk:
            try:
                saver.save(path, 1)
            except OSError as error:
                notes += getattr(error, "__notes__", [])
        if not path.exists():
            old = next(path.parent.glob(".program.*.old"))
            assert str(old) in notes[-1]
        assert saver.read(path) in (0, 1)  # which brings it back
        assert path.is_dir()
        if disk.count <= number:
            break
    assert bool(notes) == stays


def test_a_folder_that_is_read_only_is_named(title, start):
    saver, path, before, old = start("folder")
    folder = path if title.startswith("Checkpoints") else path.parent
    with read_only(folder), pytest.raises(PermissionError) as caught:
        saver.save(path, 1)
    check_failure(saver, path, caught.value, before, old)


def test_without_a_fault_all_savers_save(title, start):
    saver, path, before, old = start("whole")
    with Disk(-1, errno.EIO)() as disk:
        saver.save(path, 1)
    assert disk.count > 1
    assert saver.read(path) != old
    assert title.startswith("Checkpoints") or listed(path.parent) == before


def test_a_saver_that_writes_in_place_would_be_found(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old" * 100)
    before = path.read_bytes()
    saver = SAVERS["profiler"]._replace(save=lambda path, version: path.write_text("new" * 100))
    with files_of_at_most(50), pytest.raises(OSError, match="File too large") as caught:
        saver.save(path, 1)
    with pytest.raises(AssertionError):
        check_failure(saver, path, caught.value, ["a.txt"], before)


# --------------------------------------------------------------------------------------------------- event files


def records(data):
    """Return the events of a file, and the number of bytes after the last complete one."""
    found, at = [], 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 8], "little")
        event = data[at + 12 : at + 12 + size]
        if encode_record(event) != data[at : at + 16 + size]:
            break
        found.append(event)
        at += 16 + size
    return found, len(data) - at


def test_an_event_file_ends_with_a_whole_record_and_continues_when_there_is_room(tmp_path):
    file = EventFile(tmp_path)
    whole = len(file.path.read_bytes())
    events = [struct.pack("<d", number) * 7 for number in range(40)]
    for event in events:
        file.add(event)
    for room in (0, 1, 20, 500):
        with files_of_at_most(whole + room), pytest.raises(OSError, match="too large") as caught:
            file.flush()
        assert str(file.path) in str(caught.value)
        found, torn = records(file.path.read_bytes())
        assert (len(found), torn) == (1, 0)
    file.close()
    assert records(file.path.read_bytes()) == ([found[0], *events], 0)
    with pytest.raises(ValueError, match="is closed"):
        file.add(events[0])


def test_an_event_file_that_is_forgotten_is_written(tmp_path):
    file = EventFile(tmp_path)
    path = file.path
    file.add(struct.pack("<d", 7.0))
    del file
    assert records(path.read_bytes())[0][1:] == [struct.pack("<d", 7.0)]


def test_a_writer_of_summaries_names_its_file(tmp_path):
    with SummaryWriter(tmp_path / "run", max_queue=10_000) as writer:
        [path] = (tmp_path / "run").iterdir()
        for step in range(1000):
            writer.add_scalar("loss", 1.0, step)
        with files_of_at_most(path.stat().st_size + 100), pytest.raises(OSError, match="File too large") as caught:
            writer.flush()
        assert str(path) in str(caught.value)
        assert records(path.read_bytes())[1] == 0
    found, torn = records(path.read_bytes())
    assert (len(found) > 1000, torn) == (True, 0)
    with (tmp_path / "none").open("w"), pytest.raises(OSError, match="none"):
        SummaryWriter(tmp_path / "none" / "run")
