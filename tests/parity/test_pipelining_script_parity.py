"""A script for torch.distributed.pipelining runs over MPI with other imports, to PyTorch's losses over gloo."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from .rank_scripts import over_gloo, over_mpi

SCRIPT = Path(__file__).parent / "pipelining" / "tutorial.py"
VSHAPED = ("ZBVZeroBubble", "DualPipeV")
PLACES = {"torch.distributed.pipelining.schedules": "retrograd.pipelining", "torch.distributed.pipelining":
          "retrograd.pipelining", "torch.distributed": "retrograd.distributed", "torch": "retrograd"}  # fmt: skip


def ours(text):
    """Return the script with its imports changed, and nothing else."""
    text = re.sub(r"^import torch$", "import retrograd as torch", text, flags=re.M)
    return re.sub(r"^(from|import) (torch[\w.]*)", lambda m: f"{m[1]} {PLACES[m[2]]}", text, flags=re.M)


def results(path, ranks):
    """Return the losses that the ranks have written, merged."""
    return {k: v for rank in range(ranks) for k, v in json.loads(Path(f"{path}.{rank}").read_text()).items()}


@pytest.mark.parametrize(
    ("ranks", "names"),
    [
        (2, ["GPipe", "1F1B", "Interleaved1F1B", "LoopedBFS", "InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV"]),
        (4, ["GPipe", "1F1B"]),
    ],
)
def test_a_script_has_pytorchs_losses_when_its_imports_are_changed(tmp_path, ranks, names):
    pytest.importorskip("mpi4py")
    changed = tmp_path / "tutorial.py"
    changed.write_text(ours(SCRIPT.read_text()))
    same = [a == b for a, b in zip(changed.read_text().splitlines(), SCRIPT.read_text().splitlines(), strict=True)]
    assert same.count(False) == 5
    over_mpi(ranks, changed, [str(tmp_path / "ours"), *names])
    over_gloo(ranks, SCRIPT, [str(tmp_path / "theirs"), *names])
    mine, peer = results(tmp_path / "ours", ranks), results(tmp_path / "theirs", ranks)
    expected = {f"{name} by {how}" for name in names for how in ("hand", "tracing")}
    assert mine.keys() == peer.keys() == expected - {f"{name} by tracing" for name in VSHAPED}
    for name in peer:
        assert len(peer[name]) == 3 + name.startswith(("GPipe", "1F1B")), name
        np.testing.assert_allclose(mine[name], peer[name], rtol=2e-5, err_msg=name)
