"""Collective operations give over MPI what PyTorch's give over gloo, in two processes each."""

import json
from pathlib import Path

import pytest

from ..distributed import collective_cases
from .rank_scripts import over_gloo, over_mpi


def test_operations_between_two_ranks_give_pytorchs_numbers(tmp_path):
    pytest.importorskip("mpi4py")
    script = Path(collective_cases.__file__)
    over_mpi(2, script, [str(tmp_path / "ours"), "retrograd"])
    over_gloo(2, script, [str(tmp_path / "theirs"), "torch"])
    for rank in range(2):
        ours, theirs = (json.loads(Path(f"{tmp_path / name}.{rank}").read_text()) for name in ("ours", "theirs"))
        assert list(ours) == list(theirs) == list(collective_cases.CASES)
        for name, expected in theirs.items():
            assert ours[name] == expected, f"{name} on rank {rank}"
