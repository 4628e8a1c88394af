"""Run the cases of a test as one item of pytest, which needs 3 ms of CPU for each item."""

import functools
import inspect
import itertools
import os
import random
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

SEPARATELY = os.environ.get("RETROGRAD_TEST_CASES") == "separate"  # each case is an item, for -k and --pdb


def group_cases(test: Callable) -> Callable:
    """Run a test in all cases of the `pytest.mark.parametrize` below this decorator, as one test.

    All cases run. An ExceptionGroup has the errors of those that fail, each with the case in a note. The cases share
    the fixtures, so these must not change. With RETROGRAD_TEST_CASES=separate the decorator does nothing.

    >>> @group_cases
    ... @pytest.mark.parametrize("a", [1, 2])
    ... def test_less_than_2(a):
    ...     assert a < 2
    >>> test_less_than_2()
    Traceback (most recent call last):
    ExceptionGroup: test_less_than_2: 1 of 2 cases fail: a=2 (1 sub-exception)
    """
    if SEPARATELY:
        return test
    marks = [mark for mark in test.pytestmark if mark.name == "parametrize"]
    tables = [_rows(mark) for mark in marks]
    assert tables, f"{test.__name__} has no cases"
    signature = inspect.signature(test)

    @functools.wraps(test)
    def run(**fixtures: Any) -> None:
        count, errors = 0, {}
        for case in itertools.product(*tables):
            count += 1
            name = ", ".join(name for name, _ in case)
            error = _error(test, {**fixtures, **{n: value for _, row in case for n, value in row.items()}}, name)
            if error:
                errors[name, count] = error
        if errors:
            found = textwrap.shorten("; ".join(name for name, _ in errors), 200, placeholder=" ...")
            raise BaseExceptionGroup(
                f"{test.__name__}: {len(errors)} of {count} cases fail: {found}", [*errors.values()]
            )
        assert count, f"{test.__name__} has no cases"

    given = {name for mark in marks for name in _names(mark)}
    run.__signature__ = signature.replace(parameters=[p for p in signature.parameters.values() if p.name not in given])
    run.pytestmark = [mark for mark in test.pytestmark if mark not in marks]
    return run


def _names(mark: pytest.Mark) -> list[str]:
    """Return the names of the arguments of a table of cases."""
    names = mark.args[0]
    return names.replace(",", " ").split() if isinstance(names, str) else list(names)


def _rows(mark: pytest.Mark) -> list[tuple[str, dict[str, Any]]]:
    """Return the name and the arguments of each row of a table of cases, which may change later, like the registry."""
    names, ids = _names(mark), mark.kwargs.get("ids")
    shown = ids if callable(ids) else repr
    listed = list(ids) if ids and not callable(ids) else None
    rows = []
    for i, row in enumerate(mark.args[1]):
        values = row if len(names) > 1 else (row,)
        text = ", ".join(f"{name}={shown(value)}" for name, value in zip(names, values, strict=True))
        rows.append((str(listed[i]) if listed else text, dict(zip(names, values, strict=True))))
    return rows


def _error(test: Callable, arguments: dict[str, Any], name: str) -> BaseException | None:
    """Run a case, seeded as each test is; return its error, or None."""
    random.seed(0)
    np.random.seed(0)
    try:
        test(**arguments)
    except pytest.skip.Exception:
        return AssertionError(f"{name}: a case of a group can't be skipped")
    except (Exception, pytest.fail.Exception) as error:
        error.add_note(f"case {name}")
        return error
    return None
