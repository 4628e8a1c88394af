"""Functions of sizes that may be symbolic in PyTorch's traces: here sizes are Python numbers, or act like these."""

import math

from retrograd.core.aval import SymbolicSize
from retrograd.foundation.describe_value import describe
from retrograd.foundation.suggestions import suggest_keywords
from retrograd.ops.functions import function, overridable


class SymFloat:
    """The class of PyTorch's symbolic floats, for `isinstance`: no number here is one."""


class SymBool:
    """The class of PyTorch's symbolic booleans, for `isinstance`: comparisons of sizes give Python's."""


@function()
@overridable
@suggest_keywords
def sym_int(a: float):
    """Return a number as an integer, truncated towards 0; a symbolic size as it is.

    >>> sym_int(2.7)
    2
    """
    return a if isinstance(a, SymbolicSize) else int(a)


@function()
@overridable
def sym_float(a):
    """Return a number as a float."""
    return float(a)


@function()
@overridable
def sym_not(a):
    """Return the negation of a boolean."""
    return not a


@function()
@overridable
def sym_ite(b, t, f):
    """Return t if b is true, else f; TypeError unless b is a boolean, and t and f have the same type.

    >>> sym_ite(True, 1, 2)
    1
    """
    if not isinstance(b, bool) or type(t) is not type(f):
        raise TypeError(f"sym_ite: expected a bool and two values of one type, got {describe((b, t, f))}")
    return t if b else f


@function()
@overridable
@suggest_keywords
def sym_max(a: float, b: float):
    """Return the larger number, as a float if one of them is a float.

    >>> sym_max(3, 2.5)
    3.0
    """
    return _like(max(a, b), a, b)


@function()
@overridable
def sym_min(a, b):
    """Return the smaller number, as a float if one of them is a float."""
    return _like(min(a, b), a, b)


def _like(found, a, b):
    return float(found) if isinstance(a, float) or isinstance(b, float) else found


@function()
@overridable
@suggest_keywords
def sym_sum(*args: float | list | tuple):
    """Return the sum of numbers, given as arguments or as one sequence.

    >>> sym_sum([1, 2, 3]), sym_sum(1, 2)
    (6, 3)
    """
    return sum(args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args)


@function()
@overridable
def sym_sqrt(a):
    """Return the square root of a number."""
    return math.sqrt(a)
