"""Scripts for FSDP2 and distributed checkpoints run over MPI with other imports, to PyTorch's losses over gloo."""

import ast
import json
from pathlib import Path

import numpy as np
import pytest

from ..ported import harness
from .rank_scripts import over_gloo, over_mpi


@pytest.mark.parametrize(
    ("name", "ranks", "arguments", "tolerance"),
    [
        ("dcp_app_state", 2, [], 1e-5),
        ("fsdp2_transformer", 2, [], 1e-5),
        ("fsdp2_transformer", 2, ["mixed"], 1e-3),  # activations are bfloat16, of 8 bits
        ("fsdp2_transformer", 4, ["hybrid"], 1e-5),
        ("fsdp2_transformer", 2, ["columns"], 1e-5),
        ("fsdp2_transformer", 4, ["hybrid", "columns"], 1e-5),
    ],
)
def test_a_script_has_pytorchs_losses_before_and_after_a_checkpoint(tmp_path, name, ranks, arguments, tolerance):
    pytest.importorskip("mpi4py")
    script = harness.FOLDER / f"{name}.py"
    changed = tmp_path / f"{name}.py"
    changed.write_text(ast.unparse(harness.Imports("retrograd").visit(ast.parse(script.read_text()))))
    over_mpi(ranks, changed, [str(tmp_path / "ours"), *arguments])
    over_gloo(ranks, script, [str(tmp_path / "theirs"), *arguments])
    for rank in range(ranks):
        mine, peer = (json.loads(Path(f"{tmp_path / kind}.{rank}").read_text()) for kind in ("ours", "theirs"))
        assert mine.keys() == peer.keys()
        for key, losses in peer.items():
            np.testing.assert_allclose(mine[key], losses, rtol=tolerance, err_msg=key)
