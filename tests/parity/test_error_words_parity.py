"""Errors of bad programs: caught by the class that PyTorch raises, and with the telling words of PyTorch's message.

Each file of error_words/ lists programs, separated by blank lines. The last line of a program has a mark:

- `#: pattern`, a regular expression that finds the words in PyTorch's message, and must find them in ours;
- `#~ pattern`, the same where our message says it in other words, so that only the class is compared;
- `#! reason`, where we accept the program or raise an error of another class, and why.
"""

import copy
import importlib
import re
import warnings
from pathlib import Path

import pytest
import torch

import retrograd as rg

FOLDER = Path(__file__).parent / "error_words"
MARK = re.compile(r"\n#([:~!]) (.*)$")
FUNCTIONS = """
class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, g): return g * 2 * ctx.saved_tensors[0]
class Setup(Function):
    @staticmethod
    def forward(x): return x * 2
    @staticmethod
    def setup_context(ctx, inputs, output): pass
    @staticmethod
    def backward(ctx, g): return g * 2
"""


def rows():
    """Return (file, program, mark, pattern or reason) of each program."""
    found = []
    for path in sorted(FOLDER.glob("*.txt")):
        for paragraph in path.read_text().strip().split("\n\n"):
            mark = MARK.search(paragraph)
            found.append((path.stem, paragraph[: mark.start()], *mark.groups()))
    return found


def names(m):
    """Return the names that programs use, in one library."""
    known = {"m": m, "copy": copy, "F": m.nn.functional, "nn": m.nn, "optim": m.optim, "Function": m.autograd.Function}
    known |= {"fw": importlib.import_module(f"{m.__name__}.autograd.forward_ad"), "fn": m.autograd.functional}
    known |= {"ck": importlib.import_module(f"{m.__name__}.utils.checkpoint")}
    known |= {"once": m.autograd.function.once_differentiable}
    known |= {"x": m.ones(2, 3, requires_grad=True), "z": m.ones(2, requires_grad=True)}
    exec(FUNCTIONS, known)
    return known


def error_of(program, m):
    """Return the error of a program; None if it is accepted."""
    known = names(m)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(program, known)
        except Exception as error:
            return error
    return None


def builtin_class(error):
    """Return the built-in class of PyTorch's error."""
    return next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")


ROWS = rows()


def difference(mark, pattern, ours, theirs):
    """Return how our error differs from PyTorch's, as far as the mark asks; "" if it does not."""
    if not isinstance(ours, builtin_class(theirs)):
        return f"ours: {ours!r}, PyTorch: {theirs!r}"
    if mark == ":" and not re.search(pattern, str(ours)):
        return f"{pattern!r} is not in {str(ours)!r}; PyTorch: {str(theirs)!r}"
    return ""


@pytest.mark.parametrize(("area", "program", "mark", "pattern"), ROWS, ids=[f"{row[0]} {row[1]}" for row in ROWS])
def test_errors_have_the_class_and_the_words_of_pytorch(area, program, mark, pattern):
    theirs = error_of(program, torch)
    assert theirs is not None, "PyTorch accepts this"
    if mark != "!":
        assert re.search(pattern, str(theirs)), str(theirs)
    ours = error_of(program, rg)
    found = difference(":" if mark == "~" else mark, pattern, ours, theirs)
    if mark == ":":
        assert not found
    else:  # a mark that is not needed any more is wrong
        assert found
        assert mark == "!" or not difference(mark, pattern, ours, theirs)


def test_most_programs_are_compared_by_words():
    marks = [mark for _, _, mark, _ in ROWS]
    assert len(marks) > 400
    assert marks.count(":") > 470
    assert marks.count("!") < 35
