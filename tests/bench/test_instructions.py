"""The counts of instructions: programs run, and a version that takes more than the bound is found."""

import importlib
from pathlib import Path

import pytest

import retrograd

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setattr("shutil.which", lambda name: name)
    return importlib.import_module("instructions")


def table(script, monkeypatch, ours, base, failed=()):
    counts = {script.SOURCES: (ours, list(failed)), Path("other"): (base, [])}
    monkeypatch.setattr(script, "count_instructions", lambda sources, only: counts[sources])
    arguments = script.parser(script.__doc__, 1)
    arguments.add_argument("--base", type=Path)
    (found,) = script.report(arguments.parse_args(["--base", "other"]))
    return found


@pytest.mark.parametrize(("count", "met"), [(102.9, True), (103.1, False)])
def test_a_program_that_takes_three_percent_more_instructions_is_an_error(script, monkeypatch, count, met):
    name = next(iter(script.PROGRAMS))
    assert table(script, monkeypatch, {name: count}, {name: 100.0}).all_met is met


def test_a_program_that_fails_is_an_error_and_one_that_the_base_lacks_is_none(script, monkeypatch):
    first, second, *_ = script.PROGRAMS
    assert table(script, monkeypatch, {first: 1.0, second: 1.0}, {first: 1.0}).all_met
    assert not table(script, monkeypatch, {first: 1.0}, {first: 1.0}, ["failed second: NameError: x"]).all_met


def test_instructions_of_a_repetition_are_those_of_further_ones(script):
    assert script._slope({5: 1000, 25: 3000}) == 100


def test_there_are_20_programs_and_each_runs(script):
    assert len(script.PROGRAMS) == 20
    state = retrograd.get_rng_state()
    try:
        for make, repetitions in script.PROGRAMS.values():
            step = make(retrograd)
            step()
            step()
            assert repetitions > 0
    finally:
        retrograd.set_rng_state(state)


def test_a_program_that_fails_is_reported_with_its_error(script, capfd, monkeypatch):
    programs = importlib.import_module("instructions_programs")

    def broken(m):
        raise NameError("x")

    monkeypatch.setitem(programs.PROGRAMS, "broken", (broken, 1))
    monkeypatch.setattr(programs.os, "_exit", lambda status: None)
    programs.run_program(retrograd, "broken", 1)
    assert capfd.readouterr().out == "failed broken: NameError: x\n"
