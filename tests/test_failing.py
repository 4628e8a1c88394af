"""A test that takes too much memory, or whose process dies, is reported by name, and the others run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = """
import ctypes

import numpy as np


def test_of_large_arrays():
    np.ones(5 << 30, np.uint8)


def test_of_null_pointers():
    ctypes.string_at(0)


def test_of_nothing():
    pass
"""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere memory has no limit")


def said(tmp_path, *options):
    """Return pytest's output for these tests, run as those of this project are."""
    file = tmp_path / "test_failing.py"
    file.write_text(TESTS)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), "RETROGRAD_TEST_MEMORY": "4"}
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", *options, str(file)]
    return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)


def test_a_test_without_enough_memory_is_named(tmp_path):
    done = said(tmp_path, "-n0", "-k", "large or nothing")
    assert "1 failed, 1 passed" in done.stdout
    assert "FAILED test_failing.py::test_of_large_arrays" in done.stdout
    assert "MemoryError: Unable to allocate 5.00 GiB" in done.stdout


def test_a_test_in_which_a_process_dies_is_named(tmp_path):
    done = said(tmp_path, "-n1", "-k", "null or nothing")
    assert "1 failed, 1 passed" in done.stdout
    assert "crashed while running 'test_failing.py::test_of_null_pointers'" in done.stdout
    assert "Fatal Python error: Segmentation fault" in done.stderr
    assert "in test_of_null_pointers" in done.stderr
