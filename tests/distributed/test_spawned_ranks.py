"""Scripts that start their ranks by `multiprocessing.spawn`, without a launcher, train like one process."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import retrograd as rg

from ..ported import harness
from ..rank_scripts import run_ranks

SCRIPT = Path(__file__).with_name("spawned_ranks.py")


PIPELINE = """
import json, sys
from pathlib import Path
import retrograd as rg
import retrograd.distributed as dist
from retrograd.pipelining import Pipeline
dist.init_process_group()
rg.manual_seed(0)
model = rg.nn.Sequential(*[rg.nn.Linear(8, 8) for _ in range(4)]).double()
x = rg.arange(64.0).double().reshape(8, 8).sin()
pipeline = Pipeline(model, stages=2, micro_batches=4, loss_fn=rg.nn.functional.mse_loss)
losses = [float(pipeline.step(x, target=x.cos())) for _ in range(2)]
Path(f"{sys.argv[1]}.{dist.get_rank()}").write_text(json.dumps([losses, type(pipeline._transport).__name__]))
"""


def run(tmp_path, case, address):
    """Run the script with the imports changed; return its results and its errors."""
    changed = tmp_path / SCRIPT.name
    changed.write_text(ast.unparse(harness.Imports("retrograd").visit(ast.parse(SCRIPT.read_text()))))
    results = tmp_path / "results.pt"
    command = [sys.executable, str(changed), str(results), case, address]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    return ended, rg.load(results) if results.exists() else None


def losses_of_one_process():
    rg.manual_seed(0)
    model = rg.nn.Sequential(rg.nn.Linear(10, 10), rg.nn.ReLU(), rg.nn.Linear(10, 5)).double()
    optimizer = rg.optim.SGD(model.parameters(), lr=0.1)
    x, y = rg.arange(80.0).double().reshape(8, 10).sin(), rg.arange(40.0).double().reshape(8, 5).cos()
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = rg.nn.MSELoss()(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, list(model.state_dict().values())


@pytest.mark.parametrize("method", ["env", "tcp", "file"])
def test_two_spawned_ranks_train_like_one_process(tmp_path, method):
    address = {"env": "env://", "tcp": "tcp://localhost:{port}", "file": f"file://{tmp_path}/ranks"}[method]
    ended, found = run(tmp_path, "train", address)
    assert ended.returncode == 0, ended.stderr
    losses, state = losses_of_one_process()
    assert found["losses"] == pytest.approx(losses, rel=1e-12)
    assert [max((a - b).abs().max().item() for a, b in zip(found["state"].values(), state, strict=True))] < [1e-12]


def test_the_error_of_a_rank_ends_the_script_with_its_traceback(tmp_path):
    ended, _ = run(tmp_path, "error", "env://")
    assert ended.returncode == 1
    assert "-- Process 1 terminated with the following error:" in ended.stderr
    assert ended.stderr.strip().endswith("ValueError: on purpose")


def test_a_killed_rank_ends_the_script_with_its_signal_or_the_lost_connection(tmp_path):
    ended, _ = run(tmp_path, "killed", "env://")
    assert ended.returncode == 1
    assert (
        "process 1 terminated with signal 9" in ended.stderr or "PeerLost: the script of rank 1 is over" in ended.stderr
    )


def test_a_pipeline_takes_the_connections_of_its_ranks(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(PIPELINE)
    run_ranks(1, script, [str(tmp_path / "alone")])
    run_ranks(2, script, [str(tmp_path / "found")])
    (alone, threads), *found = (json.loads((tmp_path / name).read_text()) for name in ("alone.0", "found.0", "found.1"))
    assert threads == "Threads"
    assert found == [[alone, "Sockets"]] * 2
