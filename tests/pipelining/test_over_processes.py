"""Pipelines whose ranks are processes train like the unsplit model."""

import json
import os
import subprocess
import sys

import pytest

from . import matrix

# Rank 1 makes the pipeline, and does not come to the first step.
ABSENT = """
import os
import threading
import retrograd as rg
from retrograd.pipelining import Pipeline

model = rg.nn.Sequential(rg.nn.Linear(2, 2), rg.nn.Linear(2, 2))
pipeline = Pipeline(model, stages=2, loss_fn=rg.nn.functional.mse_loss, timeout=1)
if os.environ["RANK"] == "1":
    threading.Event().wait()
pipeline.step(rg.ones(2, 2), target=rg.ones(2, 2))
"""


@pytest.mark.skipif("RETROGRAD_PURE" in os.environ, reason="the compiled pass has run it")
def test_over_mpi_every_schedule_gives_the_numbers_of_the_unsplit_model():
    pytest.importorskip("mpi4py")
    command = [sys.executable, "-m", "retrograd", "run", "-n", str(matrix.RANKS), matrix.__file__, "auto"]
    output = subprocess.check_output(command, text=True)
    differences = json.loads(output.rpartition("MATRIX")[2])
    assert differences == {}


def test_a_rank_that_does_not_come_to_the_first_step_is_waited_for_until_the_timeout(tmp_path):
    pytest.importorskip("mpi4py")
    script = tmp_path / "absent.py"
    script.write_text(ABSENT)
    command = [sys.executable, "-m", "retrograd", "run", "-n", "2", str(script)]
    found = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=120)
    assert found.returncode == 75
    assert "TimeoutError: rank 0 has waited 1 s for the first message of another rank" in found.stderr
