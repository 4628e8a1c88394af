"""Warnings show the user's line, however the program was started."""

import subprocess
import sys
from pathlib import Path

import pytest

import retrograd as rg

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


# Where `warn_user` does not exist yet, or the caller gives the level.
OF_A_LEVEL = {
    "core/overrides.py", "core/tensor_class.py", "foundation/source_location.py", "kernels/__init__.py",
    "library/api.py",
}  # fmt: skip


def test_warnings_find_the_users_line_by_themselves_instead_of_counting_frames():
    package = Path(rg.__file__).parent
    found = {str(path.relative_to(package)) for path in package.rglob("*.py") if "stacklevel=" in path.read_text()}
    assert found <= OF_A_LEVEL
