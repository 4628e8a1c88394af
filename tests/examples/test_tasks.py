"""The scripts of the ten tasks of a new user run, and the table of docs/tasks.md has their lengths."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import retrograd as rg
from retrograd import nn

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "examples" / "tasks").glob("*.py"))
NEEDS = {
    "cnn": ("sklearn",),
    "ported": ("sklearn",),
    "grid_search": ("sklearn",),
    "ode": ("scipy",),
    "notebook": ("matplotlib",),
    "mpi_pipeline": ("mpi4py", "typer"),
}


def write_checkpoint(path):
    """Write a checkpoint as a training loop does, with an input and its output."""
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = rg.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = rg.optim.lr_scheduler.StepLR(optimizer, step_size=10)
    x = rg.randn(6, 4)
    model(x).square().mean().backward()
    optimizer.step()
    scheduler.step()
    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler}
    states = {name: part.state_dict() for name, part in parts.items()}
    rg.save({**states, "epoch": 1, "input": x, "output": model.eval()(x).detach()}, path)


@pytest.mark.skipif("RETROGRAD_PURE" in os.environ, reason="the compiled pass has run them")
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_task_of_a_new_user_runs(path, tmp_path):
    for package in NEEDS.get(path.stem, ()):
        pytest.importorskip(package)
    if path.stem == "c_operator" and not shutil.which("cc"):
        pytest.skip("needs a C compiler")
    command, arguments = [sys.executable], []
    if path.stem == "mpi_pipeline":
        command += ["-m", "retrograd", "run", "-n", "2", "--transport", "mpi"]
    if path.stem == "checkpoint":
        arguments = [str(tmp_path / "checkpoint.pt")]
        write_checkpoint(arguments[0])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    done = subprocess.run([*command, path, *arguments], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_table_has_every_script_with_its_length():
    rows = re.findall(r"\(\.\./examples/tasks/(\w+)\.py\).*?\| (\d+) \|", (ROOT / "docs" / "tasks.md").read_text())
    lengths = {path.stem: sum(bool(line.strip()) for line in path.read_text().splitlines()) for path in SCRIPTS}
    assert {name: int(length) for name, length in rows} == lengths
