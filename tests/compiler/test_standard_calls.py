"""Functions of the standard library without effects are parts of programs, with guards of what they read."""

import warnings

import pytest

import retrograd as rg

from .common_steps import PREAMBLE, WHOLE
from .comparison import numbers
from .standard_calls import REFUSED, STEPS
from .test_common_steps import compile_source, observe_any, way_of

CALLS = 6


def outcomes(code, compile):
    """Return what is observed of calls of a step, between which its surroundings change, and the step."""
    names = {"__name__": "steps"}
    exec(compile_source(PREAMBLE + code), names)
    step, seen = compile(names["step"]), []
    for i in range(CALLS):
        names.get("change", lambda i: None)(i)
        seen.append(observe_any(step(numbers(4, 3, seed=i), numbers(4, 3, seed=i + 50))))
    return seen, step


@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_a_program_that_follows_the_changes(name):
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("default")
        expected, _ = outcomes(STEPS[name], lambda f: f)
        found, step = outcomes(STEPS[name], rg.compile)
    assert found == expected
    assert way_of(step) == WHOLE


@pytest.mark.parametrize("name", REFUSED)
def test_a_step_whose_results_no_guard_can_check_runs_in_parts(name):
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("default")
        _, step = outcomes(REFUSED[name], rg.compile)
    assert way_of(step) != WHOLE
