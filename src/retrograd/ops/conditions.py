"""Conditions that a program checks: each function raises one class of error, as `torch._check` and its kin."""

from retrograd.core import Tensor
from retrograd.core import dtype as dtypes
from retrograd.foundation.describe_value import describe
from retrograd.ops.functions import function


def _check_with(error, cond, message):
    """Raise an error of a class unless a condition holds; `message` is a function that returns its text."""
    if not isinstance(cond, bool):
        hint = "; for tensors there is _check_tensor_all" if isinstance(cond, Tensor) else ""
        raise TypeError(f"cond must be a bool, but got {describe(cond)}{hint}")
    if not cond:
        raise error(_text(message))


def _text(message):
    if message is None:
        return "Expected cond to be True, but got False"
    if not callable(message):
        raise TypeError(f"message must be a callable, but got {describe(message)}")
    return str(message())


@function()
def _check(cond, message=None) -> None:
    """Raise RuntimeError unless a boolean is True; the function `message` returns the text.

    >>> import retrograd as rg
    >>> n = 3
    >>> rg._check(n % 2 == 0, lambda: f"expected an even number, got {n}")
    Traceback (most recent call last):
    RuntimeError: expected an even number, got 3
    """
    _check_with(RuntimeError, cond, message)


@function()
def _check_is_size(i, message=None, *, max=None) -> None:
    """Raise RuntimeError unless an integer is a size, 0 or larger; `max` is not looked at."""
    _check_with(RuntimeError, bool(i >= 0), message)


@function()
def _check_index(cond, message=None) -> None:
    """Raise IndexError unless a boolean is True, as `_check`."""
    _check_with(IndexError, cond, message)


@function()
def _check_value(cond, message=None) -> None:
    """Raise ValueError unless a boolean is True, as `_check`."""
    _check_with(ValueError, cond, message)


@function()
def _check_type(cond, message=None) -> None:
    """Raise TypeError unless a boolean is True, as `_check`."""
    _check_with(TypeError, cond, message)


@function()
def _check_not_implemented(cond, message=None) -> None:
    """Raise NotImplementedError unless a boolean is True, as `_check`."""
    _check_with(NotImplementedError, cond, message)


def _check_tensor_all_with(error, cond, message=None):
    """Raise an error of a class unless all elements of a boolean tensor are True."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {describe(cond)}")
    if cond.dtype != dtypes.bool_:
        raise TypeError(f"cond tensor must have dtype bool, but got {cond.dtype}")
    _check_with(error, bool(cond.all()), message)


@function()
def _check_tensor_all(cond, message=None) -> None:
    """Raise RuntimeError unless all elements of a boolean tensor are True, as `_check`.

    >>> import retrograd as rg
    >>> rg._check_tensor_all(rg.ones(3) > 0)
    """
    _check_tensor_all_with(RuntimeError, cond, message)


@function()
def _assert_async(input, assert_msg="Expected Tensor with single nonzero value, but got zero") -> None:
    """Raise RuntimeError unless the only element of a tensor is nonzero."""
    if not input.is_nonzero():
        raise RuntimeError(assert_msg)
