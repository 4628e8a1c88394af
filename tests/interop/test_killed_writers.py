"""A writer that is killed at any moment leaves the old file or the new one, and the next one removes what it left."""

import os
import re
import signal
import sys
from pathlib import Path

import pytest

import retrograd as rg
from retrograd.interop import program_files, safetensors
from retrograd.interop.atomic_write import atomic_replace
from retrograd.interop.file_locks import open_locked, remove_unlocked

pytestmark = pytest.mark.skipif(not hasattr(os, "fork") or sys.platform == "darwin", reason="needs fork and flock")


class Scaled(rg.nn.Module):
    """A program whose weight is the value that was saved."""

    def __init__(self, value):
        super().__init__()
        self.weight = rg.nn.Parameter(rg.full((3,), value))

    def forward(self, x):
        return x * self.weight


def export(value, path):
    rg.export.save(rg.export.export(Scaled(value), (rg.ones(3),)), path)


WRITERS = {
    "rg.save": ("a.pt", lambda value, path: rg.save(rg.full((3,), value), path), rg.load),
    "rg.save, safetensors": ("a.safetensors", lambda value, path: rg.save({"w": rg.full((3,), value)}, path), None),
    "save_file": ("b.safetensors", lambda value, path: safetensors.save_file({"w": rg.full((3,), value)}, path), None),
    "export.save, folder": ("a.pt2", export, lambda path: rg.export.load(path).module()(rg.ones(3))),
    "export.save, folder, two renames": ("a.pt2", export, lambda path: rg.export.load(path).module()(rg.ones(3))),
    "export.save, zip": ("a.zip", export, lambda path: rg.export.load(path).module()(rg.ones(3))),
}


def killed(write, value, path, call):
    """Return whether a child process that writes was killed at the given change of the folder."""
    child = os.fork()
    if child:
        status = os.waitpid(child, 0)[1]
        assert os.WIFSIGNALED(status) or status == 0
        return os.WIFSIGNALED(status)
    left = call

    def count(name, arguments):
        nonlocal left
        if name in ("open", "os.rename", "os.remove", "os.scandir") and str(arguments[0]).startswith(str(path.parent)):
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    write(value, path)
    os._exit(0)


@pytest.mark.parametrize("writer", WRITERS)
def test_a_killed_writer_leaves_a_whole_file_and_the_next_one_no_other(writer, tmp_path, monkeypatch):
    name, write, load = WRITERS[writer]
    if "two renames" in writer:  # as on systems that can't exchange folders
        monkeypatch.setattr(program_files, "_exchange_atomically", lambda a, b: False)
    load = load or (lambda path: rg.load(path)["w"])
    path, call, leftovers = tmp_path / name, 1, 0
    write(1.0, path)
    while killed(write, 2.0, path, call):
        assert load(path).tolist() in ([1.0] * 3, [2.0] * 3)
        leftovers += len(os.listdir(tmp_path)) > 1
        write(1.0, path)
        assert load(path).tolist() == [1.0] * 3
        assert os.listdir(tmp_path) == [name]
        call += 1
    assert call > 3
    assert leftovers


def test_the_next_writer_brings_back_a_folder_that_a_killed_one_has_renamed(tmp_path, monkeypatch):
    monkeypatch.setattr(program_files, "_exchange_atomically", lambda a, b: False)
    path, call, gone = tmp_path / "a.pt2", 1, 0
    export(1.0, path)
    while killed(export, 2.0, path, call):
        gone += not path.exists()
        # It fails before it renames anything.
        with pytest.raises(ZeroDivisionError):
            program_files.write(path, lambda folder: 1 / 0, is_zip=False)
        assert os.listdir(tmp_path) == ["a.pt2"]
        assert rg.export.load(path).module()(rg.ones(3)).tolist() in ([1.0] * 3, [2.0] * 3)
        call += 1
    assert gone


def test_a_folder_that_a_running_writer_has_renamed_is_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(program_files, "_exchange_atomically", lambda a, b: False)
    path, replace, found = tmp_path / "a.pt2", os.replace, []
    export(1.0, path)

    def load_between(source, target):
        replace(source, target)
        if str(target).endswith(".old"):
            with pytest.raises(FileNotFoundError):
                rg.export.load(path)
            found.extend(Path(target).iterdir())

    monkeypatch.setattr(os, "replace", load_between)
    export(2.0, path)
    assert found
    assert rg.export.load(path).module()(rg.ones(3)).tolist() == [2.0] * 3
    assert os.listdir(tmp_path) == ["a.pt2"]


def test_a_file_that_another_process_writes_stays(tmp_path):
    path = tmp_path / "file"
    with atomic_replace(path) as unfinished:
        unfinished.write_text("outer")
        child = os.fork()
        if not child:
            with atomic_replace(path) as other:
                other.write_text("inner")
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert path.read_text() == "inner"
        assert unfinished.read_text() == "outer"
    assert path.read_text() == "outer"
    assert os.listdir(tmp_path) == ["file"]


def test_files_of_other_names_stay(tmp_path):
    others = [".b.1-1.tmp", "a.1-1.tmp", ".a.tmp", ".a.1-1.tmp2", ".a.b.1-1.tmp"]
    for name in [*others, ".a.1-1.tmp"]:
        (tmp_path / name).touch()
    with atomic_replace(tmp_path / "a") as unfinished:
        unfinished.write_text("new")
    assert sorted(os.listdir(tmp_path)) == sorted([*others, "a"])


def test_a_file_is_removed_only_without_a_lock(tmp_path):
    path = tmp_path / "file"
    mark = open_locked(path)
    remove_unlocked(path)
    assert path.exists()
    os.close(mark)
    remove_unlocked(path)
    assert not path.exists()
    remove_unlocked(path)


SOURCES = Path(rg.__file__).parent
WRITES = re.compile(r"""\.write_text\(|\.write_bytes\(|open\([^)]*["'][wx]b?["']""")
EXAMPLE = re.compile(r"\s*(>>>|\.\.\.) ")
IN_PLACE = {
    "bench/script.py": "the report of a benchmark, which may go to a pipe",
    "multiprocessing.py": "in a temporary folder of the parent process",
    "pipelining/transports/ray_worker.py": "the standard streams",
    "pipelining/transports/status_file.py": "in a folder with a lock of its own",
    "utils/event_files.py": "a log, which grows",
    "utils/tensorboard_plugins.py": "a sound, in memory",
}


def test_every_writer_of_files_replaces_them_atomically():
    found = {
        str(path.relative_to(SOURCES))
        for path in SOURCES.rglob("*.py")
        if any(WRITES.search(line) and not EXAMPLE.match(line) for line in path.read_text().split("\n"))
    }
    found = {name for name in found if "atomic_replace" not in (SOURCES / name).read_text()}
    assert found == {str(Path(name)) for name in IN_PLACE}
