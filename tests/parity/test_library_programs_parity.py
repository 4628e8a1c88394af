"""Programs on custom operators: the same values and errors as with torch.library, by class and telling words.

library/programs.txt lists programs as those of behavior/; see test_behavior_parity.py for its marks. What a program
defines is removed at its end, in both libraries.
"""

import itertools
import re
import typing
import warnings
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
import torch._custom_ops

import retrograd as rg
import retrograd._custom_ops

from .programs import data
from .test_behavior_parity import ERROR, MARK, assert_ends_as_in_pytorch

numbers = itertools.count()
TEXT = (Path(__file__).parent / "library" / "programs.txt").read_text()


def rows():
    """Return (program, mark, pattern or reason) of each program."""
    for paragraph in TEXT.strip().split("\n\n"):
        mark = MARK.search(paragraph)
        yield (MARK.sub("", paragraph), *(mark.groups() if mark else ("", "")))


def custom(m, ns, defined, fn, mutates=(), name="", **kwargs):
    """Return an operator of `custom_op`, which is removed at the end."""
    op = m.library.custom_op(f"{ns}::{name or fn.__name__}", fn, mutates_args=mutates, **kwargs)
    defined.append(op)
    return op


def older(m, ns, defined, fn, name=""):
    """Define an operator by the functions of `_custom_ops`, by a function or a schema; return its name."""
    qualname = f"{ns}::{name or fn.__name__}"
    m._custom_ops.custom_op(qualname, fn) if isinstance(fn, str) else m._custom_ops.custom_op(qualname)(fn)
    defined.append(qualname)
    return qualname


def remove(m, op):
    """Remove an operator."""
    if isinstance(op, str):
        m._custom_ops._destroy(op)
    elif m is torch:
        op._lib._destroy()
    else:
        m.library.custom_ops.unregister(op)


@contextmanager
def known_names(m):
    """Yield the names that a program knows; what it defines, in a namespace of its own, is removed at the end."""
    defined, ns = [], f"parity_programs_{next(numbers)}"
    lib = m.library.Library(ns, "FRAGMENT")
    names = {**vars(typing), "m": m, "T": m.Tensor, "np": np, "ns": ns, "lib": lib, "old": m._custom_ops}
    names |= {"custom": partial(custom, m, ns, defined), "older": partial(older, m, ns, defined)}
    names["x"] = m.tensor([1.0, 2.0, 3.0], requires_grad=True)
    names["call"] = lambda name, *args, **kwargs: getattr(getattr(m.ops, ns), name)(*args, **kwargs)
    names["words"] = lambda tags: [str(tag).rpartition(".")[2] for tag in tags]
    try:
        yield names
    finally:
        lib._destroy()
        for op in defined:
            remove(m, op)


def ending(program, m):
    """Return the result of a program as data, or (ERROR, the error)."""
    with warnings.catch_warnings(), known_names(m) as names:
        warnings.simplefilter("ignore")
        try:
            exec(program, names)
            return data(names.get("out"))
        except Exception as error:
            return ERROR, error


ROWS = list(rows())


@pytest.mark.parametrize(("program", "mark", "pattern"), ROWS, ids=[row[0] for row in ROWS])
def test_a_program_behaves_as_with_torch_library(program, mark, pattern):
    ours, theirs = ending(program, rg), ending(program, torch)
    if mark == "!":
        with pytest.raises(AssertionError):
            assert_ends_as_in_pytorch(ours, theirs, "")
        return
    if mark == ":":
        assert re.search(pattern, str(theirs[1])), str(theirs[1])
    assert_ends_as_in_pytorch(ours, theirs, pattern)
