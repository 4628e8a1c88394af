"""Steps as people write them have the eager bits, and run as the table of the steps says."""

import collections
import dataclasses
import linecache
import warnings

import pytest

import retrograd as rg

from .common_steps import EAGER, PARTS, PREAMBLE, STEPS, WHOLE
from .comparison import numbers, observe, state_of

CALLS = 6


def observe_any(value):
    """Return what is observed of a result, of other containers too."""
    if isinstance(value, collections.deque):
        return type(value), [*map(observe_any, value)]
    if dataclasses.is_dataclass(value):
        return type(value).__name__, [observe_any(getattr(value, f.name)) for f in dataclasses.fields(value)]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value).__name__, [*map(observe_any, value)]
    return type(value).__name__, observe(value)


def run(code, compile):
    """Return what is observed of calls of a step, and the step."""
    names = {"__name__": "steps"}
    exec(compile_source(PREAMBLE + code), names)
    rg.manual_seed(1)
    step, seen = compile(names["step"]), []
    for i in range(CALLS):
        x, y = numbers(4, 3, seed=i), numbers(4, 3, seed=i + 50)
        seen.append((observe_any(step(x, y)), state_of(names["model"].parameters())))
    return seen, step


def compile_source(code):
    """Return the code of a step; functions in parts read their source, which is put where Python looks for it."""
    name = f"<step {hash(code)}>"
    linecache.cache[name] = len(code), None, code.splitlines(True), name
    return compile(code, name, "exec")


def way_of(step):
    """Return how the calls of a compiled step run."""
    step = getattr(step, "_compiled_call", step)
    if step.refusal():
        return PARTS if step.in_parts is not None else EAGER
    return WHOLE


@pytest.mark.parametrize("name", STEPS)
def test_a_step_has_the_eager_bits_and_runs_as_listed(name, capsys):
    way, code = STEPS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, _ = run(code, lambda f: f)
        found, step = run(code, rg.compile)
    for number, (a, b) in enumerate(zip(found, expected, strict=True)):
        assert a == b, f"call {number}"
    assert way_of(step) == way
