"""Functions of arrays that are told what does not fit: an error, or nothing, but never a number in others' memory."""

import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrograd import kernels
from retrograd.kernels import chosen
from retrograd.kernels.grids import plan_of
from retrograd.kernels.windows import windows_of

from . import layouts

pytestmark = pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")

ONES = (1, 1, 1)
GRID = plan_of((1, 5, 6), (1, 3, 2), (1, 3, 5), ONES, (0, 0, 0), ONES)
WIDER = plan_of((1, 7, 9), (1, 3, 2), (1, 5, 8), ONES, (0, 0, 0), ONES)
WINDOWS = windows_of(((1, 1, 0, 1, 1), (2, 2, 0, 1, 3), (3, 1, 1, 1, 7)), (1, 6, 7))
SQUARES = windows_of(((1, 1, 0, 1, 1), (2, 2, 0, 1, 3), (2, 2, 0, 1, 3)), (1, 6, 7))
ERRORS = (TypeError, ValueError, AttributeError, OverflowError, MemoryError)


def x(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def ids(size, *shape):
    return np.random.default_rng(1).integers(0, size, shape)


def ends(*offsets):
    return np.array(offsets, np.int64)


def words(n):
    return np.arange(n, dtype=np.uint64)


ATTENTION = (x(2, 5, 4), x(2, 6, 4), x(2, 6, 3), x(2, 5, 6) > -1, x(1, 5, 6), ends(0, 5), ends(0, 6), 0.5, True)
RAGGED = (x(2, 5, 4), x(2, 6, 4), x(2, 6, 3), None, x(2, 16), ends(0, 2, 5), ends(0, 2, 6), 0.5, False)
BACK = (x(2, 5, 3), x(2, 5), x(2, 5, 3), x(2, 5))  # in front of those
# What fits, and how many arrays at the end are written to.
CALLS = {
    "uniform": [((words(2), words(4), x(16)), 1)],
    "sum_rows": [((x(2, 5, 3), ids(4, 5), x(2, 4, 3)), 1), ((x(2, 5, 19), ids(4, 5), x(2, 4, 19)), 1)],
    "take_along": [((x(2, 4, 3), ids(4, 2, 5, 3), x(2, 5, 3)), 1)],
    "sum_along": [((x(2, 5, 3), ids(4, 2, 5, 3), x(2, 4, 3)), 1)],
    "segment_sum": [((x(2, 6, 3), ends(0, 2, 2, 6), x(2, 3, 3)), 1), ((x(2, 6, 1), ends(0, 2, 2, 6), x(2, 3, 1)), 1)],
    "segment_max": [((x(2, 6, 3), ends(0, 2, 2, 6), x(2, 3, 3)), 1)],
    "segment_softmax": [((x(2, 6, 3), ends(0, 2, 2, 6), x(2, 6, 3)), 1)],
    "segment_log_softmax": [((x(2, 6, 3), ends(0, 2, 2, 6), x(2, 6, 3)), 1)],
    "sum_windows": [
        ((GRID, x(2, 4, 1, 5, 6), x(2, 3, 2, 1, 3, 2), x(6), x(2, 6, 1, 3, 5)), 1),
        ((GRID, x(33, 2, 1, 5, 6), x(1, 3, 2, 1, 3, 2), None, x(33, 3, 1, 3, 5)), 1),
    ],
    "sum_places": [
        ((GRID, x(2, 4, 1, 5, 6), x(2, 6, 1, 3, 5), x(6, 2, 1, 3, 2), 2), 2),
        ((GRID, x(33, 2, 1, 5, 6), x(33, 3, 1, 3, 5), x(3, 2, 1, 3, 2), 1), 2),
    ],
    "window_maxima": [((WINDOWS, x(3, 1, 6, 7), x(3, 1, 3, 7)), 1), ((SQUARES, x(3, 1, 6, 7), x(3, 1, 3, 3)), 1)],
    "window_places": [((WINDOWS, x(3, 1, 6, 7), ids(9, 3, 1, 3, 7)), 1)],
    "window_maxima_back": [
        ((WINDOWS, x(3, 1, 3, 7), x(3, 1, 6, 7), x(3, 1, 6, 7)), 1),
        ((SQUARES, x(3, 1, 3, 3), x(3, 1, 6, 7), x(3, 1, 6, 7)), 1),
    ],
    "window_sums": [((WINDOWS, x(3, 1, 6, 7), x(3, 1, 3, 7)), 1)],
    "window_sums_back": [((WINDOWS, x(3, 1, 3, 7), x(3, 1, 6, 7)), 1)],
    "attend": [((*given, x(2, 5, 3), x(2, 5)), 2) for given in (ATTENTION, RAGGED)],
    "attend_grad": [
        ((*BACK, *ATTENTION, x(2, 5, 4), x(2, 6, 4), x(2, 6, 3), x(2, 5, 6)), 4),
        ((*BACK, *RAGGED, x(2, 5, 4), x(2, 6, 4), x(2, 6, 3), x(2, 16)), 4),
    ],
}
EACH = [(name, *case) for name, cases in CALLS.items() for case in cases]


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


def longer(d):
    return lambda a: np.concatenate([a, a[(slice(None),) * d + (slice(0, 1),)]], d)


# What an array, a plan or a number may be replaced by.
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
OF_NUMBERS = [lambda _, value=value: value for value in (None, "x", -1, 0, 1, 3, 2**40, 10**30, np.nan, np.inf, 1.5)]


def changes(argument):
    if isinstance(argument, np.ndarray):
        return OF_ARRAYS
    return OF_PLANS if isinstance(argument, tuple) else OF_NUMBERS


def changed(argument, change):
    try:
        with warnings.catch_warnings(action="ignore"):  # of what numbers lose in another dtype
            return change(argument)
    except (ValueError, TypeError, IndexError, OverflowError):  # there is no such dimension or number
        return argument


def movable(a):
    return isinstance(a, np.ndarray) and a.dtype != object and a.dtype.isnative and a.flags.carray


def run(name, arguments, written):
    """Whether a call was taken; what is not its own must stay what it is, and nobody holds its arrays any longer."""
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


@pytest.mark.parametrize(("name", "arguments", "written"), EACH)
def test_what_fits_is_taken(name, arguments, written):
    assert run(name, arguments, written)


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


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_several_arguments_that_do_not_fit_do_no_harm(data):
    name, arguments, written = data.draw(st.sampled_from(EACH))
    arguments = list(arguments)
    for _ in range(3):
        k = data.draw(st.integers(0, len(arguments) - 1))
        arguments[k] = changed(arguments[k], data.draw(st.sampled_from(changes(arguments[k]))))
    run(name, arguments, written)


@pytest.mark.parametrize("name", ["segment_sum", "sum_rows", "take_along", "sum_along", "sum_places", "window_sums"])
def test_results_are_not_written_where_nothing_may_be(name):
    arguments, written = CALLS[name][0]
    k = len(arguments) - written
    locked = read_only(arguments[k])
    with pytest.raises(ValueError, match="do not fit"):
        getattr(chosen, name)(*arguments[:k], locked, *arguments[k + 1 :])
