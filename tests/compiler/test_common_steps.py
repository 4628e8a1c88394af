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
    if isinstance(value, dict):
        return (
            type(value).__name__,
            [*value],
            [*map(observe_any, value.values())],
            [*map(observe_any, getattr(value, "__dict__", {}).values())],
        )
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


def test_an_attribute_of_a_result_is_the_member_that_it_was():
    class Out(dict):
        pass

    def f(x):
        out = Out(loss=x * 2)
        out.loss = out["loss"]
        return out

    compiled = rg.compile(f, fullgraph=True)
    for i in range(3):
        out = compiled(numbers(2, seed=i))
        assert out.loss is out["loss"]
        assert type(out) is Out


def test_a_compiled_function_with_an_ordered_dict_and_a_deque_as_results_can_be_saved(tmp_path):
    def f(x):
        return collections.OrderedDict(b=x * 2, a=collections.deque([x + 1]))

    x = numbers(2)
    rg.compile(f, fullgraph=True).aot_compile(((x,), {})).save_compiled_function(tmp_path / "f.zip")
    assert observe_any(rg.compiler.load_compiled_function(tmp_path / "f.zip")(x)) == observe_any(f(x))


def test_a_dataclass_with_slots_is_an_argument_by_its_fields():
    @dataclasses.dataclass(slots=True)
    class Batch:
        x: object
        scale: float

    compiled = rg.compile(lambda batch: batch.x * batch.scale, fullgraph=True)
    for i, scale in enumerate((2.0, 2.0, 3.0)):
        x = numbers(2, seed=i)
        assert observe(compiled(Batch(x, scale))) == observe(x * scale)
