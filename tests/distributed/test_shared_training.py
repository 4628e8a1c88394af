"""Processes that are started with tensors in shared memory read and write the numbers of the one that started them."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from ..ported import harness

SCRIPT = Path(__file__).with_name("shared_training.py")


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_train_one_model_and_write_to_the_tensors_of_a_queue(tmp_path, method):
    changed = tmp_path / SCRIPT.name
    changed.write_text(ast.unparse(harness.Imports("retrograd").visit(ast.parse(SCRIPT.read_text()))))
    ended = subprocess.run(
        [sys.executable, str(changed), method], capture_output=True, text=True, timeout=240, check=False
    )
    # 1 is added to the second row, then 2 to all elements.
    assert ended.stdout == "True True [True, True] [[2.0, 2.0, 2.0], [3.0, 3.0, 3.0]]\n", ended.stderr
