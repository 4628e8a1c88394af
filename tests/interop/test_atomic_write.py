"""Files are replaced atomically: completely or not at all."""

import os

import pytest

from retrograd.interop.atomic_write import atomic_replace


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    return path


def test_the_new_content_appears_only_when_all_is_written(old):
    with atomic_replace(old) as unfinished, open(unfinished, "w") as file:
        file.write("ne")
        file.flush()
        assert old.read_text() == "old"
        file.write("w")
    assert old.read_text() == "new"
    assert os.listdir(old.parent) == ["file"]


def test_a_failure_in_the_middle_leaves_the_old_file_and_nothing_else(old):
    def write_half():
        with atomic_replace(old) as unfinished, open(unfinished, "w") as file:
            file.write("ne")
            file.flush()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_half()
    assert old.read_text() == "old"
    assert os.listdir(old.parent) == ["file"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_at_the_end_leaves_the_old_file_and_nothing_else(old, step, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="No space left"), atomic_replace(old) as unfinished:
        unfinished.write_text("new")
    assert old.read_text() == "old"
    assert os.listdir(old.parent) == ["file"]


def test_a_failure_before_anything_is_written_leaves_no_file(tmp_path):
    with pytest.raises(ZeroDivisionError), atomic_replace(tmp_path / "file"):
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == []


def test_the_content_is_on_the_disk_before_it_takes_the_name(old, monkeypatch):
    done = []
    for step in ("fsync", "replace"):
        real = getattr(os, step)
        monkeypatch.setattr(os, step, lambda *args, step=step, real=real: (done.append(step), real(*args)))
    with atomic_replace(old) as unfinished:
        unfinished.write_text("new")
    assert done == ["fsync", "replace"]


def test_a_link_stays_a_link_to_the_file_that_is_replaced(old, tmp_path):
    link = tmp_path / "folder" / "link"
    link.parent.mkdir()
    link.symlink_to(old)
    with atomic_replace(link) as unfinished:
        unfinished.write_text("new")
    assert link.is_symlink()
    assert old.read_text() == "new"


def test_a_path_without_a_folder_is_one_in_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with atomic_replace("file") as unfinished:
        unfinished.write_text("new")
    assert (tmp_path / "file").read_text() == "new"
