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
from retrograd.pipelining.transports.status_file import STATUS_VARIABLE, create_status_file
from retrograd.pipelining.transports.uncaught import LONGEST, error_at_end, report_uncaught_errors, uncaught_report

SCRIPT = Path(__file__).with_name("failing_step.py")


def peers(rank, lost=()):
    return SimpleNamespace(rank=rank, size=3, lost=lost, left={})


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
    said = "retrograd.pipelining.runtime.rank.PipelineError: rank 2, stage 2, microbatch 0"
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


def test_an_error_because_another_script_has_failed_names_that_script_and_its_error():
    known = peers(0)
    known.left = {2: None, 1: (1, "KeyError: 'x'\n")}
    error = raised(RuntimeError("the step has ended"))
    error.__cause__ = PeerLost("the script of ranks 1-2 is over")
    assert uncaught_report(error, known) == "retrograd: rank 0 ends with the error of rank 1: KeyError: 'x'\n"
    assert error_at_end() == (1, "KeyError: 'x'\n")  # which the other ranks get when this script ends
    known.left = {1: None}
    assert "Traceback" in uncaught_report(error, known)


def test_a_rank_whose_script_is_over_without_an_error_is_not_named_as_the_rank_of_an_error():
    known = peers(1)
    known.left = {0: None}
    assert uncaught_report(raised(PeerLost("the script of rank 0 is over")), known).startswith("Traceback")
    known = peers(2)
    known.left = {0: None}
    said = uncaught_report(raised(PeerLost("the script of rank 0 is over")), known)
    assert said.startswith("retrograd: rank 2 ends with the error of rank 1: ")


@pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="needs mpi4py")
@pytest.mark.skipif("RETROGRAD_PURE" in os.environ, reason="the compiled pass has run it")
def test_an_error_in_the_script_of_one_rank_has_the_only_traceback(capfd):
    assert main(["run", "-n", "3", str(SCRIPT), "here"]) == 1
    lines = capfd.readouterr().err.splitlines()
    assert sorted(line for line in lines if line.startswith("retrograd")) == [
        f"retrograd: rank {rank} ends with the error of rank 1: ValueError: this script fails" for rank in (0, 2)
    ]
    assert len([line for line in lines if line.startswith("Traceback")]) == 1


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


def test_of_ranks_with_the_same_error_the_first_shows_it_and_others_name_that_one(tmp_path, monkeypatch):
    found = []
    for rank, text in ((1, "no data"), (0, "no data"), (2, "another")):
        monkeypatch.setenv(STATUS_VARIABLE, str(create_status_file(tmp_path, rank)))
        monkeypatch.setenv("RANK", str(rank))
        found.append(uncaught_report(raised(OSError(text)), None))
    assert found[0].startswith("Traceback")
    assert found[1] == "retrograd: rank 0 ends with the error of rank 1: OSError: no data\n"
    assert found[2].startswith("Traceback")


def test_a_folder_that_cannot_be_written_costs_only_the_merging(tmp_path, monkeypatch):
    monkeypatch.setenv(STATUS_VARIABLE, str(create_status_file(tmp_path, 1)))
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setattr("os.link", lambda *paths: raised_now(PermissionError("link")))
    assert uncaught_report(raised(OSError("no data")), None).startswith("Traceback")


def raised_now(error):
    raise error


@pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="needs mpi4py")
@pytest.mark.skipif("RETROGRAD_PURE" in os.environ, reason="the compiled pass has run it")
def test_an_error_of_all_ranks_before_the_first_step_has_one_traceback(tmp_path, capfd):
    script = tmp_path / "early.py"
    script.write_text("from retrograd.pipelining import Pipeline\nopen('/no/such/data')\n")
    assert main(["run", "-n", "3", str(script)]) == 1
    lines = capfd.readouterr().err.splitlines()
    assert len([line for line in lines if line.startswith("Traceback")]) == 1
    followers = [line for line in lines if "ends with the error of rank" in line]
    assert len(followers) == 2
    assert len(lines) - len(followers) <= LONGEST
