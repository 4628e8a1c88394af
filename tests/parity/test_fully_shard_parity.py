"""Scripts for FSDP2 and distributed checkpoints run over MPI with other imports, to PyTorch's losses over gloo."""

import ast
import json
from pathlib import Path

import numpy as np
import pytest

from ..ported import harness
from .rank_scripts import over_gloo, over_mpi

RANKS = 2


@pytest.mark.parametrize(
    ("name", "arguments", "tolerance"),
    [
        ("dcp_app_state", [], 1e-5),
        ("fsdp2_transformer", [], 1e-5),
        ("fsdp2_transformer", ["mixed"], 1e-3),  # activations are bfloat16, of 8 bits
    ],
)
def test_a_script_has_pytorchs_losses_before_and_after_a_checkpoint(tmp_path, name, arguments, tolerance):
    pytest.importorskip("mpi4py")
    script = harness.FOLDER / f"{name}.py"
    changed = tmp_path / f"{name}.py"
    changed.write_text(ast.unparse(harness.Imports("retrograd").visit(ast.parse(script.read_text()))))
    over_mpi(RANKS, changed, [str(tmp_path / "ours"), *arguments])
    over_gloo(RANKS, script, [str(tmp_path / "theirs"), *arguments])
    for rank in range(RANKS):
        mine, peer = (json.loads(Path(f"{tmp_path / kind}.{rank}").read_text()) for kind in ("ours", "theirs"))
        assert mine.keys() == peer.keys()
        for key, losses in peer.items():
            np.testing.assert_allclose(mine[key], losses, rtol=tolerance, err_msg=key)
