"""Checks of an operator's values: its schema, abstract function and graph, and independence of memory layout."""

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd import fx
from retrograd.core import Aval, Tensor
from retrograd.core.op import AuxOutput
from retrograd.func import vjp
from retrograd.ops.as_tensor import as_tensor
from retrograd.testing.calculus import dense, directions, pull, seeded
from retrograd.testing.closeness import assert_close
from retrograd.testing.probe import LAYOUTS, Outcome, Probe

Close = Callable[[Any, Any], None]


def tolerant(atol: float | None, rtol: float | None) -> Close:
    """Return the comparison of results with these tolerances."""
    return lambda actual, expected: assert_close(actual, expected, rtol, atol, equal_nan=True)


def check_same_outcome(actual: Outcome, expected: Outcome, close: Close, what: str) -> None:
    """Check that two calls gave the same."""
    pairs = [(actual.tensors, expected.tensors, "output"), (actual.mutated, expected.mutated, "written argument")]
    for found, wanted, kind in pairs:
        assert len(found) == len(wanted), f"{what}: {len(found)} tensors come out, expected {len(wanted)}"
        for i, (a, e) in enumerate(zip(found, wanted, strict=True)):
            check_close(a, e, close, f"{what}, {kind} {i}")


def check_close(actual: Tensor, expected: Tensor, close: Close, what: str) -> None:
    """Check that two tensors are close, with a description in the error."""
    try:
        close(actual, expected)
    except AssertionError as error:
        raise AssertionError(f"{what}: {error}") from None


# -------------------------------------------------------------------------------------------------------- schema


def check_schema(probe: Probe, close: Close) -> None:
    """Check that only declared arguments are written to, and that results have new memory as the schema declares."""
    for call in [probe.map_arrays(np.copy), *[call for call, _ in _layouts(probe)], *probe.variants()]:
        inputs, before = call.tensors, [t.value.copy() for t in call.tensors]
        call.run(inputs, copy=False)  # also refuses results of another kind, or that alias memory
        for i, (name, t, old) in enumerate(zip(call.names, inputs, before, strict=True)):
            if i not in call.mutated:
                _check_unchanged(name, t.value, old)


def _check_unchanged(name: str, now: np.ndarray, old: np.ndarray) -> None:
    changed = np.argwhere((now != old) & ~((now != now) & (old != old)))
    if len(changed):
        place = tuple(changed[0].tolist())
        raise AssertionError(
            f"Argument {name} is not defined as mutable but was mutated: the kernel writes to the argument {name!r}, "
            f"which the schema does not say: at {place} it was {old[place]}, and is {now[place]}; name it in "
            "mutates_args, or write to a copy"
        )


# ------------------------------------------------------------------------------------------- abstract function


def check_fake(probe: Probe, close: Close) -> None:
    """Check that the abstract function predicts the shapes and dtypes of the results, also for other inputs."""
    if probe.op.composite:
        return  # it has none: levels intercept its parts
    _check_avals(probe)
    for call in [*probe.with_other_sizes(), probe.with_other_dtypes()]:
        if call.accepts():
            _check_avals(call)


def _check_avals(probe: Probe) -> None:
    outcome = probe.run(probe.tensors)
    op, custom = probe.op, probe.custom
    got = [t.aval for t in outcome.tensors]
    derived = custom is not None and custom.registrations.abstract is None
    if custom is not None and derived and probe.mutated:
        op, got = custom.functional, got + [t.aval for t in outcome.mutated]
    given = ", ".join(f"{name}: {t.aval}" for name, t in zip(probe.names, probe.tensors, strict=True))
    source = "a run on zeros, in place of an abstract function," if derived else "the abstract function"
    try:
        said = op.definition.shape(*[a.aval if isinstance(a, Tensor) else a for a in probe.inputs], **probe.params)
    except NotImplementedError:
        return  # it raises that the shape depends on values
    except Exception as error:
        raise AssertionError(f"for {given} {source} raises {type(error).__name__}: {error}") from error
    found = [said] if isinstance(said, Aval) else [a for a in said if not isinstance(a, AuxOutput)]
    shapes = [(g.shape, f.shape) for g, f in zip(got, found, strict=False) if g.shape != f.shape]
    words = f": Shapes {shapes[0][0]} and {shapes[0][1]} are not equal" if shapes else ""
    assert found == got, f"for {given} {source} says {found}, but the kernel returns {got}{words}"


# ------------------------------------------------------------------------------------------------------- graphs


def check_tracing(probe: Probe, close: Close) -> None:
    """Check that a traced graph equals the call, also on other values, and one of the gradients too."""
    _check_graph(probe, lambda *xs: probe.run(xs), close, "the traced graph")
    if not probe.has_gradient():
        return
    f, xs = probe.float_map()
    gs, outputs = directions(f(*xs), 1), probe.floating_outputs()

    def gradients(*tensors: Tensor) -> Outcome:
        part, along = probe.with_tensors(tensors).float_map(outputs)
        return Outcome(vjp(part, *along)[1](gs), (), ())

    _check_graph(probe, gradients, close, "the traced graph of its gradients")


def _check_graph(probe: Probe, function: Callable[..., Outcome], close: Close, what: str) -> None:
    try:
        graph = fx.trace(lambda *xs: tuple(function(*xs)), *probe.tensors)
    except NotImplementedError:
        return  # an error is fine, a wrong value is not
    for call in [probe, *probe.variants()]:
        expected = function(*call.tensors)
        try:
            with seeded():
                found = Outcome(*graph(*call.tensors))
        except RuntimeError:
            if call is probe:
                raise
            continue  # a guard: the graph is valid for these values only
        values = "" if call is probe else ", on other values than it was traced with"
        check_same_outcome(found, expected, close, f"{what}{values}")
        assert all(map(_equal_or_nan, found.non_tensors, expected.non_tensors)), (
            f"{what}{values}: the values in the result that are no tensors are constants of the graph, "
            f"{found.non_tensors}, but the call gives {expected.non_tensors}; return a tensor where the value depends "
            "on the inputs"
        )


def _equal_or_nan(a: Any, b: Any) -> bool:
    return bool(a == b) or (a != a and b != b)


# ------------------------------------------------------------------------------------------------------- strides


def _layouts(probe: Probe) -> list[tuple[Probe, str]]:
    """Return the call with other memory layouts; built-in operators may refuse one, as view() does."""
    return [(call, what) for call, what in probe.with_other_layouts() if probe.custom or call.accepts(copy=False)]


def check_strides(probe: Probe, close: Close) -> None:
    """Check that result and gradients do not depend on the memory layout of inputs and cotangents."""
    expected = probe.run(probe.tensors)
    layouts = _layouts(probe)
    for call, what in layouts:
        check_same_outcome(call.run(call.tensors, copy=False), expected, close, f"with {what}")
    if not probe.has_gradient():
        return
    f, xs = probe.float_map()
    gs = directions(f(*xs), 1)
    gradients = Outcome(dense(pull(f, xs, gs), xs), (), ())
    for layout, what in LAYOUTS.items():
        there = tuple([as_tensor(layout(g.value)) for g in gs])
        found = dense(pull(f, xs, there), xs)
        check_same_outcome(
            Outcome(found, (), ()), gradients, close, f"gradients, for gradients of the outputs with {what}"
        )
    for call, what in layouts:
        found = dense(pull(*call.float_map(copy=False), gs), xs)
        check_same_outcome(Outcome(found, (), ()), gradients, close, f"gradients, with {what}")
