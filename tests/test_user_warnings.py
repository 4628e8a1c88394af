"""Warnings show the user's line, however the program was started."""

import subprocess
import sys

import pytest

PROGRAM = "import retrograd as rg\nloss = rg.nn.functional.mse_loss(rg.ones(2, 1), rg.ones(2))\nprint(loss.item())\n"
STARTS = {
    "a file": ["program.py"],
    "a module": ["-m", "program"],
    "the command line": ["-c", PROGRAM],
    "the standard input": [],
    "the prompt": ["-i", "-q"],
}


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_a_program_continues_after_a_warning(start, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, *start], cwd=tmp_path, input="" if start and start[0] != "-i" else PROGRAM,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip().endswith("0.0")
    assert "UserWarning: mse_loss" in done.stderr
    assert "Error" not in done.stderr
