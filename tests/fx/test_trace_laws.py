"""Every operator on every sample: its traced graph is valid and, as code or interpreted, gives the call's result."""

import pytest

from retrograd import fx
from retrograd.core import registry
from retrograd.testing import assert_close, samples_of, seeded

from ..tables import hold, on_tensors, operators_on_arrays

EXEMPT = {"write": "its tensor is no input, but belongs to the model: tests/pipelining holds it to what it promises"}
NAMES = [name for name in operators_on_arrays() if name not in EXEMPT]


def law_traced(op, args, params):
    """Check that the graph gives the call's result: as code, interpreted, and traced again to the same graph."""
    f, tensors = on_tensors(op, args, params)
    module = fx.trace(f, *tensors)
    module.graph.lint()
    again = fx.trace(module, *tensors)
    assert str(again.graph) == str(module.graph)
    for other in (module, fx.Interpreter(module).run, again):
        with seeded():
            actual = other(*tensors)
        for a, expected in zip(actual, f(*tensors), strict=True):
            assert_close(a, expected, rtol=0.0, atol=0.0, equal_nan=True)


@pytest.mark.parametrize("name", NAMES)
def test_traced_is_run(name):
    hold(law_traced, registry[name], list(samples_of(registry[name])))
