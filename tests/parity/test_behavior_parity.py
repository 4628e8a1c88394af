"""Programs on documented behavior: the same values, structures and errors as in PyTorch, area by area.

Each file of behavior/ lists programs, separated by blank lines; the value of `out` at the end is compared. The last
line of a program may have a mark:

- `#: pattern`, a regular expression that finds the telling words in PyTorch's error, and must find them in ours;
- `#! reason`, where we return another value, or raise where PyTorch does not, or the reverse, and why.

Without a mark the values are equal, or our error is caught where PyTorch's is.
"""

import importlib
import re
import warnings
from functools import partial
from pathlib import Path

import pytest
import torch
import torch._higher_order_ops as higher_order_ops
import torch.fx

import retrograd as rg

from .programs import assert_same, data
from .test_error_words_parity import builtin_class, names

FOLDER = Path(__file__).parent / "behavior"
MARK = re.compile(r"\n#([:!]) (.*)$")
ERROR = "an error"


def rows():
    """Return (file, program, mark, pattern or reason) of each program."""
    found = []
    for path in sorted(FOLDER.glob("*.txt")):
        for paragraph in path.read_text().strip().split("\n\n"):
            mark = MARK.search(paragraph)
            found.append((path.stem, MARK.sub("", paragraph), *(mark.groups() if mark else ("", ""))))
    return found


def ending(program, m):
    """Return the result of a program as data, or (ERROR, the error)."""
    known = names(m)
    known |= {"func": m.func, "ag": m.autograd.graph, "autograd": m.autograd, "fx": m.fx, "module": partial(module, m)}
    known["ho"] = higher_order_ops if m is torch else m.higher_order
    known["inner"] = importlib.import_module(f"{m.__name__}.nested._internal.nested_tensor")
    known["x"] = m.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    exec(NESTED, known)
    m.distributions.Distribution.set_default_validate_args(True)  # PyTorch's own test helpers set False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(program, known)
        except Exception as error:
            return ERROR, error
    return data(known.get("out"))


NESTED = """
def nested(m, *shapes, layout="strided"):
    parts = [(m.arange(1.0 * m.Size(shape).numel()) % 5 - 1).reshape(shape) for shape in shapes]
    return m.nested.nested_tensor(parts, layout=getattr(m, layout))

def jagged(m, *shapes):
    return nested(m, *shapes, layout="jagged")
"""


def module(m, name):
    """Return a module of the library by its name."""
    return importlib.import_module(f"{m.__name__}.{name}")


def is_error(end):
    """Return whether a program ended with an error."""
    return isinstance(end, tuple) and end[0] is ERROR


def assert_ends_as_in_pytorch(ours, theirs, pattern):
    """Assert that values are equal, or that our error has the class and the words of PyTorch's."""
    assert is_error(ours) == is_error(theirs), f"ours: {ours}, PyTorch: {theirs}"
    if not is_error(theirs):
        assert_same(ours, theirs)
        return
    assert isinstance(ours[1], builtin_class(theirs[1])), f"ours: {ours[1]!r}, PyTorch: {theirs[1]!r}"
    assert re.search(pattern, str(ours[1])), f"ours: {ours[1]!r}, PyTorch: {theirs[1]!r}"


ROWS = rows()


@pytest.mark.parametrize(("area", "program", "mark", "pattern"), ROWS, ids=[f"{row[0]} {row[1]}" for row in ROWS])
def test_a_program_behaves_as_in_pytorch(area, program, mark, pattern):
    ours, theirs = ending(program, rg), ending(program, torch)
    if mark == "!":
        with pytest.raises(AssertionError):
            assert_ends_as_in_pytorch(ours, theirs, "")
        return
    if mark == ":":
        assert re.search(pattern, str(theirs[1])), str(theirs[1])
    assert_ends_as_in_pytorch(ours, theirs, pattern)


def test_most_programs_agree():
    marks = [row[2] for row in ROWS]
    assert len(marks) > 500
    assert marks.count(":") > 160
    assert marks.count("!") < len(marks) / 8
