"""Whatever assumes equal parameters or arguments on all ranks refuses others on all of them, and changes nothing."""

import pytest

import retrograd.distributed as dist
from retrograd.distributed import exchange
from retrograd.pipelining.transports.interface import RankMismatchError

from .differing_ranks import CASES, refusal


@pytest.mark.parametrize("name", CASES)
def test_ranks_that_differ_are_refused_on_all_of_them(name):
    first, second = dist.run_threads(refusal, 2, name)
    assert first == second
    assert "on rank 0;" in first


def test_ranks_with_other_versions_are_refused_at_the_first_operation(monkeypatch):
    monkeypatch.setattr(exchange, "library_versions", lambda: {"version of NumPy": f"2.{dist.get_rank()}"})

    def refused():
        with pytest.raises(
            RankMismatchError, match=r"version of NumPy: 2\.0 on rank 0; 2\.1 on rank 1\n.* install the"
        ):
            dist.barrier()

    dist.run_threads(refused, 2)
