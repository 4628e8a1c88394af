"""Ranks hold no more for backward passes than the limit that a schedule was searched for, and as much as planned."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from retrograd.interop.stored_arrays import StoredArrays

SCRIPT = Path(__file__).with_name("memory_script.py")


@pytest.mark.skipif("RETROGRAD_PURE" in os.environ, reason="the compiled pass has run it")
def test_ranks_hold_what_was_planned_and_no_more_than_their_limit():
    pytest.importorskip("mpi4py")
    command = [sys.executable, "-m", "retrograd", "run", "-n", "2", str(SCRIPT)]
    found = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize("dims", [(0, 1, 2, 3), (0, 2, 1, 3), (3, 2, 1, 0), (1, 0, 3, 2)])
def test_arrays_are_stored_if_their_memory_has_no_gaps_whatever_the_order_of_their_dimensions(dims):
    whole = np.arange(120.0).reshape(2, 3, 4, 5).copy().transpose(dims)
    stored = StoredArrays([whole, whole[1:, :, ::2]], [])
    assert stored.is_stored == [True, True]
    assert stored.nbytes == whole.nbytes
    for found, expected in zip(stored.load(), (whole, whole[1:, :, ::2]), strict=True):
        assert found.strides == expected.strides
        np.testing.assert_array_equal(found, expected)
