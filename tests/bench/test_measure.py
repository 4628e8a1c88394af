"""Benchmark subjects run in processes of their own and take turns, after their results have been compared."""

import argparse
import json
import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from retrograd.bench import Case, Worker, digest, run_suite
from retrograd.bench.subjects import CPU_LEVELS, cpu_limits
from retrograd.bench.workers import RowError, Sampler, difference
from retrograd.kernels.processors import VECTOR_BYTES

from . import benchmark

OPTIONS = argparse.Namespace(rounds=3, only="", without=[], minima=False)


@pytest.fixture(scope="module")
def found():
    return run_suite(benchmark.SUITE, OPTIONS)


def subjects_of(found, row):
    (samples,) = [r.samples for r in found.rows if r.name == row]
    return set(samples)


def test_every_subject_has_a_sample_of_every_round(found):
    (row,) = [r for r in found.rows if r.name == "all agree"]
    assert {name: len(samples) for name, samples in row.samples.items()} == dict.fromkeys(
        ["retrograd", "peer", "wrong", "failing", "none"], 3
    )


def test_minima_are_one_figure_of_all_rounds():
    found = run_suite(benchmark.SUITE, argparse.Namespace(rounds=3, only="all agree", without=["missing"], minima=True))
    assert {len(taken) for row in found.rows for taken in row.samples.values()} == {1}
    assert "Minima of 3 rounds." in found.notes


def test_the_fastest_sample_is_the_least_of_many(monkeypatch):
    taken = iter([0.02 / 40, *range(20, 0, -1)])  # the first one says how often to repeat the call: 40 times
    monkeypatch.setattr("retrograd.bench.workers.seconds", lambda call: next(taken))
    assert Sampler(lambda row: Case(lambda: None)).fastest("a row") == 1 / 2


def test_a_subject_that_disagrees_is_reported_and_not_timed(found):
    assert subjects_of(found, "one is wrong") == {"retrograd", "peer", "failing", "none"}
    (note,) = [n for n in found.notes if "disagrees" in n]
    assert note.startswith("one is wrong: wrong disagrees with retrograd by ")
    assert not found.fine
    assert not found.all_met


def test_a_subject_that_fails_is_left_out_with_its_reason(found):
    assert subjects_of(found, "one fails") == {"retrograd", "peer", "wrong", "none"}
    assert "one fails: failing failed: ValueError: it can't" in found.notes


def test_a_subject_without_the_row_is_left_out(found):
    assert subjects_of(found, "one has none") == {"retrograd", "peer", "wrong", "failing"}


def test_a_missing_subject_is_left_out_with_a_note(found):
    assert "missing is left out: a_library is not installed" in found.notes
    assert "missing" not in found.subjects


def test_rows_and_subjects_can_be_chosen():
    options = argparse.Namespace(rounds=1, only="agree", without=["wrong", "missing"], minima=False)
    found = run_suite(benchmark.SUITE, options)
    assert [row.name for row in found.rows] == ["all agree"]
    assert set(found.subjects) == {"retrograd", "peer", "failing", "none"}
    assert found.notes == []


def test_a_peer_s_process_has_nothing_of_retrograd_but_the_harness():
    found = run_suite(benchmark.PEERS, OPTIONS)
    assert found.subjects == ["bare"]


def test_a_worker_has_as_many_threads_as_it_was_given(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import os, sys\n"
        "from retrograd.bench import Case, main, parser\n"
        "def cases(name, threads):\n"
        "    settings = [threads, int(os.environ['OMP_NUM_THREADS'])]\n"
        "    return lambda row: Case(lambda: None, lambda: settings)\n"
        "sys.exit(main(parser('one', 1), lambda options: [], cases))\n"
    )
    worker = Worker(str(script), "any", benchmark.Subject(""), 2)
    assert [d["values"] for d in worker.ask("check", "")] == [[2.0], [2.0]]
    worker.close()


def test_a_worker_that_dies_is_named():
    with pytest.raises(RuntimeError, match="'early' ended early, with status 0"):
        Worker(os.devnull, "early", benchmark.Subject(""), 1)


def test_output_of_a_library_is_not_taken_for_the_result(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        "from retrograd.bench import Case, main, parser\n"
        "sys.exit(main(parser('one', 1), lambda options: [], lambda name, threads: lambda row: print('hello')))\n"
    )
    worker = Worker(str(script), "chatty", benchmark.Subject(""), 1)
    assert worker.ask("sample", "any") is None
    worker.close()


def test_a_worker_whose_answer_never_comes_can_be_killed():
    worker = Worker(benchmark.__file__, "endless", benchmark.Subject(""), 1)
    worker.request("sample", "all agree")
    worker.kill()
    with pytest.raises(ValueError, match="closed"):
        worker.request("sample", "all agree")


def test_a_row_s_error_is_one_line():
    worker = Worker(benchmark.__file__, "failing", benchmark.Subject(""), 1)
    with pytest.raises(RowError, match=r"^ValueError: it can't$"):
        worker.ask("sample", "one fails")
    worker.close()


def test_the_script_writes_files_and_returns_its_status(tmp_path):
    files = [f"--{kind}={tmp_path / kind}.{ending}" for kind, ending in (("json", "x"), ("markdown", "md"))]
    command = [sys.executable, benchmark.__file__, *files, "--rounds=1"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    few = ["--only=wrong", *(f"--without={name}" for name in ("peer", "failing", "none", "missing"))]
    check = [sys.executable, benchmark.__file__, "--rounds=1", "--check", *few]
    assert subprocess.run(check, capture_output=True, check=False).returncode == 1
    (table,) = json.loads((tmp_path / "json.x").read_text())["tables"]
    assert [row["name"] for row in table["rows"]] == list(benchmark.ROWS)
    assert "| all agree |" in (tmp_path / "markdown.md").read_text()


@pytest.mark.parametrize("level", CPU_LEVELS)
def test_a_level_of_vectors_limits_every_process_and_is_in_the_results(level, tmp_path):
    few = ["--only=agree", *(f"--without={name}" for name in ("wrong", "failing", "none", "missing"))]
    command = [sys.executable, benchmark.__file__, "--cpu", level, "--json", str(tmp_path / "out"), "--rounds=1", *few]
    text = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert f", limited to {level}; Python" in text
    found = json.loads((tmp_path / "out").read_text())
    assert found["cpu"] == level
    (row,) = [row for row in found["tables"][0]["rows"] if row["name"] == "all agree"]
    assert "retrograd" in row["samples"]  # NumPy was imported under these limits


def test_levels_are_those_of_the_kernels():
    assert set(CPU_LEVELS) == set(VECTOR_BYTES)
    with pytest.raises(ValueError, match="a level must be one of avx512, avx2, sse, got 'neon'"):
        cpu_limits("neon")


# ------------------------------------------------------------------------------------------------- agreement

np = benchmark.np


@pytest.mark.parametrize("spoil", [lambda x: x[:-1], lambda x: x.reshape(2, -1), lambda x: np.full_like(x, np.nan)])
def test_other_shapes_and_numbers_that_are_none_never_agree(spoil):
    x = np.arange(1.0, 101.0)
    assert difference(digest(x), digest(spoil(x))) == float("inf")


def test_one_wrong_number_among_many_is_found():
    x = np.random.default_rng(0).standard_normal(100_000)
    wrong = x.copy()
    wrong[4321] += 100.0
    assert difference(digest(x), digest(x)) == 0
    assert difference(digest(x), digest(wrong)) > 1e-2


def test_differences_are_in_the_largest_number():
    assert difference(digest(np.array([1e-9, 100.0])), digest(np.array([1e-3, 100.0]))) == pytest.approx(1e-5, rel=1e-3)


# --------------------------------------------------------------------------------------------------- samples


class CountingCase:
    """A case that counts its calls, and whose context is entered and left."""

    def __init__(self, **options):
        self.events = []
        self.case = Case(lambda: self.events.append("call"), around=self.around, **options)

    @contextmanager
    def around(self):
        self.events.append("enter")
        yield
        self.events.append("leave")


def test_a_short_call_is_repeated_until_it_can_be_timed():
    counted = CountingCase()
    assert 0 < Sampler(lambda row: counted.case).sample("row") < 1e-3
    assert counted.events.count("call") > 100


def test_a_case_of_one_call_has_one_more_that_does_not_count():
    counted = CountingCase(once=True)
    sampler = Sampler(lambda row: counted.case)
    for _ in range(2):
        sampler.sample("row")
    assert counted.events == ["enter", "call", "call", "leave"] * 2
