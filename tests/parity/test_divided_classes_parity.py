"""Losses and lookups with divided classes and rows have PyTorch's results and gradients on each rank."""

import json
from pathlib import Path

import numpy as np
import pytest

from .rank_scripts import over_gloo, over_mpi

RANKS = 3


def test_divided_classes_and_rows_have_pytorchs_results_and_gradients(tmp_path):
    pytest.importorskip("mpi4py")
    script = Path(__file__).with_name("divided_classes.py")
    over_mpi(RANKS, script, ["retrograd", str(tmp_path / "ours")])
    over_gloo(RANKS, script, ["torch", str(tmp_path / "theirs")])
    for rank in range(RANKS):
        mine, peer = (json.loads(Path(f"{tmp_path / name}.{rank}").read_text()) for name in ("ours", "theirs"))
        assert len(mine) == 6
        for name, values in peer.items():
            for p, q in zip(mine[name], values, strict=True):
                np.testing.assert_allclose(p, q, rtol=1e-10, atol=1e-12, err_msg=name)
