"""Kernels called with wrong arguments raise or do nothing, and never access memory out of bounds."""

import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrograd import kernels
from retrograd.kernels import chosen

from ..case_groups import group_cases
from . import layouts
from .calls import CALLS, EACH, GRID, SQUARES, WIDER, WINDOWS

pytestmark = pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")

ERRORS = (TypeError, ValueError, AttributeError, OverflowError, MemoryError)


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


def longer(d):
    return lambda a: np.concatenate([a, a[(slice(None),) * d + (slice(0, 1),)]], d)


# Replacements for an array, a plan or a scalar.
OF_ARRAYS = [
    *(lambda a, t=t: a.astype(t) for t in ("f2", "f4", "f8", "c16", "i8", "i4", "u8", "?", "O", "S8")),
    *(longer(d) for d in range(5)),
    *(lambda a, d=d: np.delete(a, 0, d) for d in range(5)),
    *(lay for lay in layouts.LAYOUTS),
    lambda a: a[:0],
    lambda a: a[..., :0],
    lambda a: a[None],
    lambda a: a[0],
    lambda a: a.reshape(-1),
    lambda a: np.zeros((), a.dtype),
    lambda a: np.asfortranarray(a).view(np.matrix) if a.ndim == 2 else a.view(np.recarray),
    lambda a: a - a.dtype.type(1),
    lambda a: a * 0 + (2**62 if a.dtype == np.int64 else 77),
    read_only,
    lambda a: None,
    lambda a: 3,
    lambda a: "array",
    lambda a: a.tolist(),
]
OF_PLANS = [
    lambda plan: None,
    lambda plan: SimpleNamespace(table=None),
    lambda plan: SimpleNamespace(table=plan.table.astype(float)),
    lambda plan: SimpleNamespace(table=plan.table[:-1]),
    lambda plan: SimpleNamespace(table=plan.table[:5]),
    lambda plan: SimpleNamespace(table=plan.table[:0]),
    lambda plan: SimpleNamespace(table=plan.table[::-1]),
    lambda plan: SimpleNamespace(table=plan.table[None]),
    lambda plan: WIDER,
    lambda plan: WINDOWS,
    lambda plan: SQUARES,
    lambda plan: GRID,
]
OF_SETTINGS = [
    lambda _: None,
    lambda settings: settings[:-1],
    lambda settings: (*settings, 0),
    list,
    *(
        lambda settings, value=value: (value,) * len(settings)
        for value in ("x", None, -1, 0, 3, 2**30, 2**62, 2**70, 1.5)
    ),
]
OF_NUMBERS = [lambda _, value=value: value for value in (None, "x", -1, 0, 1, 3, 2**40, 10**30, np.nan, np.inf, 1.5)]


def changes(argument):
    if isinstance(argument, np.ndarray):
        return OF_ARRAYS
    if isinstance(argument, tuple):
        return OF_PLANS if hasattr(argument, "table") else OF_SETTINGS
    return OF_NUMBERS


def changed(argument, change):
    try:
        with warnings.catch_warnings(action="ignore"):  # of what numbers lose in another dtype
            return change(argument)
    except (ValueError, TypeError, IndexError, OverflowError):  # there is no such dimension or value
        return argument


def movable(a):
    return isinstance(a, np.ndarray) and a.dtype != object and a.dtype.isnative and a.flags.carray


def run(name, arguments, written):
    """Return whether a call was accepted; check that other memory is unchanged, and its arrays are released."""
    held, memories = list(arguments), []
    first = len(arguments) - written
    for k, a in enumerate(arguments):
        if movable(a):
            held[k], memory = layouts.inside(a)
            own = slice(layouts.GUARD, layouts.GUARD + a.nbytes if k >= first else layouts.GUARD)
            memories.append((memory, own, memory.copy()))
    counts = [sys.getrefcount(a) for a in held if isinstance(a, np.ndarray)]
    try:
        getattr(chosen, name)(*held)
    except ERRORS:
        taken = False
    else:
        taken = True
    assert [sys.getrefcount(a) for a in held if isinstance(a, np.ndarray)] == counts
    for memory, own, before in memories:
        memory[own] = before[own] = 0
        np.testing.assert_array_equal(memory, before)
    return taken


@group_cases
@pytest.mark.parametrize(("name", "arguments", "written"), EACH)
def test_fitting_arguments_are_accepted(name, arguments, written):
    assert run(name, arguments, written)


@group_cases
@pytest.mark.parametrize(("name", "arguments", "written"), EACH)
def test_one_argument_that_does_not_fit_does_no_harm(name, arguments, written):
    taken = []
    for k, argument in enumerate(arguments):
        for change in changes(argument):
            taken.append(run(name, [*arguments[:k], changed(argument, change), *arguments[k + 1 :]], written))
    assert not all(taken)
    with pytest.raises(TypeError):
        getattr(chosen, name)(*arguments[:-1])
    with pytest.raises(TypeError):
        getattr(chosen, name)(*arguments, None)


@settings(max_examples=200)
@given(data=st.data())
def test_several_arguments_that_do_not_fit_do_no_harm(data):
    name, arguments, written = data.draw(st.sampled_from(EACH))
    arguments = list(arguments)
    for _ in range(3):
        k = data.draw(st.integers(0, len(arguments) - 1))
        arguments[k] = changed(arguments[k], data.draw(st.sampled_from(changes(arguments[k]))))
    run(name, arguments, written)


@pytest.mark.parametrize(
    "name", ["segment_sum", "sum_rows", "add_rows", "take_along", "sum_along", "conv_weight_sums", "window_sums"]
)
def test_results_are_not_written_where_nothing_may_be(name):
    arguments, written = CALLS[name][0]
    k = len(arguments) - written
    locked = read_only(arguments[k])
    with pytest.raises(ValueError, match="do not fit"):
        getattr(chosen, name)(*arguments[:k], locked, *arguments[k + 1 :])
