"""Ranks hold no more for backward passes than the limit that a schedule was searched for, and as much as planned."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("memory_script.py")


@pytest.mark.skipif("RETROGRAD_PURE" in os.environ, reason="the compiled pass has run it")
def test_ranks_hold_what_was_planned_and_no_more_than_their_limit():
    pytest.importorskip("mpi4py")
    command = [sys.executable, "-m", "retrograd", "run", "-n", "2", str(SCRIPT)]
    found = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert found.returncode == 0, found.stdout
