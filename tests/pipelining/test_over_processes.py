"""Pipelines whose ranks are processes train like the unsplit model."""

import json
import os
import subprocess
import sys

import pytest

from . import matrix


@pytest.mark.skipif("RETROGRAD_PURE" in os.environ, reason="the compiled pass has run it")
def test_over_mpi_every_schedule_gives_the_numbers_of_the_unsplit_model():
    pytest.importorskip("mpi4py")
    command = [sys.executable, "-m", "retrograd", "run", "-n", str(matrix.RANKS), matrix.__file__, "auto"]
    output = subprocess.check_output(command, text=True)
    differences = json.loads(output.rpartition("MATRIX")[2])
    assert differences == {}
