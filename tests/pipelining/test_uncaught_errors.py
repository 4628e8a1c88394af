"""An error that ends a script of several ranks has one short traceback, and one line on every other rank."""

import importlib.util
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from retrograd.cli import main
from retrograd.pipelining.transports.failures import pack_failure, unpack_failure
from retrograd.pipelining.transports.interface import PeerLost, RankMismatchError
from retrograd.pipelining.transports.uncaught import LONGEST, report_uncaught_errors, uncaught_report

SCRIPT = Path(__file__).with_name("failing_step.py")


def peers(rank, lost=()):
    return SimpleNamespace(rank=rank, size=3, lost=lost)


def raised(error):
    try:
        raise error
    except type(error) as found:
        return found


@pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="needs mpi4py")
@pytest.mark.skipif("RETROGRAD_PURE" in os.environ, reason="the compiled pass has run it")
def test_a_failing_stage_has_one_traceback_of_at_most_40_lines(capfd):
    assert main(["run", "-n", "3", str(SCRIPT)]) == 1
    lines = capfd.readouterr().err.splitlines()
    followers = sorted(line for line in lines if line.startswith("retrograd: rank"))
    said = "retrograd.pipelining.runtime.rank.PipelineError: rank 2, stage 2, micro-batch 0"
    assert [line.partition(", action")[0] for line in followers] == [
        f"retrograd: rank {rank} ends with the error of rank 2: {said}" for rank in (0, 1)
    ]
    trace = [line for line in lines if line not in followers]
    assert len(trace) <= LONGEST
    assert '    raise ValueError("this backward pass fails")' in trace
    assert "ValueError: this backward pass fails" in trace
    assert len([line for line in trace if line.startswith("Traceback")]) == 3  # of the error and its two causes


@pytest.mark.parametrize("error", [PeerLost("rank 0 is gone"), RankMismatchError("they differ")])
def test_an_error_of_all_ranks_is_reported_by_the_first_that_is_left(error):
    error = raised(error)
    assert uncaught_report(error, peers(1, lost=[0])).startswith("Traceback")
    said = uncaught_report(error, peers(2, lost=[0]))
    assert said.startswith("retrograd: rank 2 ends with the error of rank 1: ")
    assert said.endswith(f"{error}\n")


def test_an_error_from_another_rank_is_one_line():
    error = raised(unpack_failure(pack_failure(raised(KeyError("x"))), rank=2))
    assert uncaught_report(error, peers(0)) == "retrograd: rank 0 ends with the error of rank 2: KeyError: 'x'\n"


def test_a_long_traceback_keeps_its_beginning_and_its_end():
    def call(depth):
        return call(depth - 1) if depth else {}["inner"]

    error = raised(KeyError("outer"))
    try:
        call(60)
    except KeyError as inner:
        error.__cause__ = ValueError("\n".join(map(str, range(60))))
        error.__cause__.__cause__ = inner
    lines = uncaught_report(error, peers(0)).splitlines()
    assert len(lines) == LONGEST
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "KeyError: 'outer'"
    assert "RETROGRAD_TRACEBACK=full" in lines[LONGEST // 2]


def test_the_full_traceback_is_shown_on_request(monkeypatch):
    monkeypatch.setenv("RETROGRAD_TRACEBACK", "full")
    error = raised(unpack_failure(pack_failure(raised(KeyError("x"))), rank=2))
    assert "on rank 2:\nTraceback" in uncaught_report(error, peers(0))


def test_a_script_s_own_hook_is_kept(monkeypatch):
    def own(*args):
        """Do nothing."""

    monkeypatch.setattr("sys.excepthook", own)
    report_uncaught_errors(peers(0))
    assert sys.excepthook is own
