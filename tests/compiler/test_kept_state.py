"""State that steps keep between calls has the eager values, to the bit, and needs few recordings."""

import warnings

import pytest

import retrograd as rg

from .common_steps import PREAMBLE
from .comparison import numbers, state_of
from .kept_state import STATES
from .test_called_functions import Captures
from .test_common_steps import compile_source, observe_any, way_of

CALLS = 10


def outcomes(code, compile):
    """Return what is observed of calls of a step, the state and the parameters after each, and the step."""
    names = {"__name__": "steps"}
    exec(compile_source(PREAMBLE + code), names)
    step, seen = compile(names["step"]), []
    for i in range(CALLS):
        result = step(numbers(4, 3, seed=i), numbers(4, 3, seed=i + 50))
        kept = names.get("state", lambda: None)()
        seen.append((observe_any(result), repr(kept), state_of(names["model"].parameters())))
    return seen, step


@pytest.mark.parametrize("name", STATES)
def test_a_step_keeps_the_eager_state_with_few_recordings(name, monkeypatch):
    way, recordings, code = STATES[name]
    expected, _ = outcomes(code, lambda f: f)
    captures = Captures(monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, step = outcomes(code, rg.compile)
    assert found == expected
    assert (way_of(step), len(captures.all)) == (way, min(recordings, len(captures.all)))
