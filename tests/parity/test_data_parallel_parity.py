"""A script for DistributedDataParallel runs over MPI with other imports, to PyTorch's losses over gloo."""

import ast
import json
from pathlib import Path

import numpy as np
import pytest
import torch

import retrograd as rg

from ..ported import harness
from .rank_scripts import over_gloo, over_mpi

RANKS = 2


def test_a_script_has_pytorchs_losses_when_its_imports_are_changed(tmp_path):
    pytest.importorskip("mpi4py")
    script = harness.FOLDER / "ddp.py"
    changed = tmp_path / "ddp.py"
    changed.write_text(ast.unparse(harness.Imports("retrograd").visit(ast.parse(script.read_text()))))
    over_mpi(RANKS, changed, [str(tmp_path / "ours")])
    over_gloo(RANKS, script, [str(tmp_path / "theirs")])
    for rank in range(RANKS):
        mine, peer = (json.loads(Path(f"{tmp_path / name}.{rank}").read_text()) for name in ("ours", "theirs"))
        assert len(peer["losses"]) == 10
        assert min(peer["losses"]) < peer["losses"][0]
        np.testing.assert_allclose(mine["losses"], peer["losses"], rtol=1e-5)
        assert mine["same"] is peer["same"] is True


def test_hooks_exchange_gradients_to_pytorchs_parameters(tmp_path):
    pytest.importorskip("mpi4py")
    script = Path(__file__).with_name("communication_hooks.py")
    over_mpi(RANKS, script, ["retrograd", str(tmp_path / "ours")])
    over_gloo(RANKS, script, ["torch", str(tmp_path / "theirs")])
    for rank in range(RANKS):
        mine, peer = (json.loads(Path(f"{tmp_path / name}.{rank}").read_text()) for name in ("ours", "theirs"))
        assert mine["last"] == peer["last"] == 3
        assert len(mine["messages"]) == 4
        for name in ("none", "allreduce", "fp16", "fp16_wrapper", "messages"):
            for p, q in zip(mine[name], peer[name], strict=True):
                # A sum of numbers of 16 bits may be rounded once or twice.
                np.testing.assert_allclose(p, q, rtol=1e-5, atol=2e-3 if "16" in name else 1e-5, err_msg=name)


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize(("count", "replicas"), [(10, 3), (9, 3), (2, 5), (1, 1), (7, 2)])
def test_a_distributed_sampler_gives_pytorchs_indices_in_the_order_of_the_data(count, replicas, drop_last):
    for rank in range(replicas):
        keywords = {"num_replicas": replicas, "rank": rank, "shuffle": False, "drop_last": drop_last}
        theirs = torch.utils.data.DistributedSampler(range(count), **keywords)
        ours = rg.utils.data.DistributedSampler(range(count), **keywords)
        assert list(ours) == list(theirs)
        assert len(ours) == len(theirs)
