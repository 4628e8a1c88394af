"""Divided tensors have PyTorch's results, gradients and placements on each rank."""

import json
from pathlib import Path

import numpy as np
import pytest

from .rank_scripts import over_gloo, over_mpi

RANKS = 3


@pytest.mark.parametrize("name", ["divided_classes", "divided_tensors"])
def test_divided_tensors_have_pytorchs_results_on_each_rank(name, tmp_path):
    pytest.importorskip("mpi4py")
    script = Path(__file__).with_name(f"{name}.py")
    over_mpi(RANKS, script, ["retrograd", str(tmp_path / "ours")])
    over_gloo(RANKS, script, ["torch", str(tmp_path / "theirs")])
    for rank in range(RANKS):
        mine, peer = (json.loads(Path(f"{tmp_path / name}.{rank}").read_text()) for name in ("ours", "theirs"))
        assert len(peer) > 5
        for program, values in peer.items():
            for p, q in zip(mine[program], values, strict=True):
                if isinstance(q, str):
                    assert p == q, program
                else:
                    np.testing.assert_allclose(p, q, rtol=1e-10, atol=1e-12, err_msg=program)
