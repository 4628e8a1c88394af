"""Whatever assumes equal parameters or arguments on all ranks refuses others on all of them, and changes nothing."""

import pytest

import retrograd.distributed as dist

from .differing_ranks import CASES, refusal


@pytest.mark.parametrize("name", CASES)
def test_ranks_that_differ_are_refused_on_all_of_them(name):
    first, second = dist.run_threads(refusal, 2, name)
    assert first == second
    assert "on rank 0;" in first
