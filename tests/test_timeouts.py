"""No test depends on whether a thread or process runs within a short time.

A machine may be so busy that a thread waits seconds for a core.  A test therefore waits long for what must happen, or
makes the order certain and injects the clock.  A short limit is allowed where the awaited thing never happens; the
comment `any load: WHY` there, or in the line above, says so.
"""

import ast
import re
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parent
SHORTEST = 5  # seconds
WAITS = ("wait", "join", "poll")  # methods whose first argument limits a wait, as `timeout` does elsewhere
# Sources without a match are not parsed, which takes time. A comment may stand before the number.
POSSIBLE = re.compile(rf"timeout|timedelta|\.\s*(?:{'|'.join(WAITS)})\s*\(\s*[\d.'\"#]")


def _number(node):
    """Return the number that a constant is, also as text, or None."""
    value = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
    try:
        return None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None


def _limits(tree):
    """Yield the line and the seconds, or None, of everything that limits a wait, durations among them."""
    for node in ast.walk(tree):
        found = _after_option(node.elts if isinstance(node, ast.List | ast.Tuple) else getattr(node, "args", ()))
        if isinstance(node, ast.Call):
            found += [keyword.value for keyword in node.keywords if keyword.arg == "timeout"]
            if isinstance(node.func, ast.Attribute) and node.func.attr in WAITS:
                found += node.args[:1]
        for value in found:
            yield value.lineno, _number(value)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("timedelta"):
            yield node.lineno, _seconds(node)


def _seconds(call):
    """Return the seconds of a call of `timedelta` with constants, or None."""
    positional, named = map(_number, call.args), {keyword.arg: _number(keyword.value) for keyword in call.keywords}
    try:
        return timedelta(*positional, **named).total_seconds()
    except TypeError:
        return None


def _after_option(items):
    """Return what follows "--timeout" in a list or call."""
    pairs = pairwise(items) if isinstance(items, list) else ()
    return [after for before, after in pairs if getattr(before, "value", None) == "--timeout"]


def _short_limits(text):
    """Return the line and the seconds of short limits that no comment explains."""
    if not POSSIBLE.search(text):
        return []
    lines = text.splitlines()
    return [
        (line, seconds)
        for line, seconds in sorted({(line, s) for line, s in _limits(ast.parse(text)) if s and 0 < s < SHORTEST})
        if not any("any load:" in near for near in lines[max(line - 2, 0) : line])
    ]


@pytest.mark.parametrize(
    "line",
    [
        "f(timeout=0.5)",
        "event.wait(1)",
        'main(["run", "--timeout", "0.1"])',
        "store.wait(keys, timedelta(milliseconds=1))",
        "LIMIT = datetime.timedelta(0, 1)",
    ],
)
def test_a_short_limit_is_found(line):
    assert len(_short_limits(line)) == 1
    assert _short_limits(f"{line}  # any load: it never comes") == []


def test_no_test_waits_only_a_short_time():
    found = {
        f"{path.relative_to(TESTS)}:{line}": seconds
        for path in sorted(TESTS.rglob("*.py"))
        for line, seconds in _short_limits(path.read_text())
    }
    assert found == {}


def test_no_example_of_a_property_has_a_time_limit():
    assert settings.default.deadline is None
    assert HealthCheck.too_slow in settings.default.suppress_health_check
    limits = [
        str(path.relative_to(TESTS)) for path in TESTS.rglob("*.py") if re.search(r"\bdeadline=\d", path.read_text())
    ]
    assert limits == []
