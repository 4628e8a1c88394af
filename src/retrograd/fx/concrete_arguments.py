"""Concrete arguments of traced code: placeholders for unknown values, and checks of the known ones."""

import operator
from typing import Any

from retrograd.core import dtype as dtypes
from retrograd.foundation.source_location import warn_user
from retrograd.fx.node import has_side_effect
from retrograd.fx.proxy import Proxy
from retrograd.ops.methods import _assert

DType = dtypes.DType


class PHBase:
    """The type of `PH`, the placeholder in `concrete_args` for unknown values.

    >>> from retrograd import fx
    >>> f = lambda d: d["a"] * d["factors"][0] + d["factors"][1]
    >>> module = fx.symbolic_trace(f, concrete_args={"d": {"a": fx.PH, "factors": [2, fx.PH]}})
    >>> module({"a": 5, "factors": [2, 1]})
    11
    """

    def __repr__(self) -> str:
        return "PH"

    def __copy__(self) -> "PHBase":
        return self

    def __deepcopy__(self, memo: dict) -> "PHBase":
        return self


class _OnlyPH(PHBase):
    def __reduce__(self) -> str:
        return "PH"


class PHWithMeta(PHBase):
    """A placeholder whose attributes the value's node gets: `ph_key`, and others that are assigned.

    >>> from retrograd import fx
    >>> module = fx.symbolic_trace(lambda x: x + 1, concrete_args={"x": fx.concrete_arguments.PHWithMeta("input")})
    >>> next(iter(module.graph.nodes)).ph_key
    'input'
    """

    def __init__(self, ph_key: str | None = None) -> None:
        self.ph_key = ph_key


PH = _OnlyPH()


has_side_effect(_assert)


@has_side_effect
def _assert_is_none(value: Any, msg: str) -> None:
    """Raise AssertionError unless a value is None."""
    if value is not None:
        raise AssertionError(msg)


def record_check(name: str, proxy: Proxy, value: Any) -> None:
    """Record the check that an argument has its concrete value; warn if there is none for such values."""
    message = f"{name} has been specialized to have value {value} but got another value"
    if isinstance(value, (bool, int, float, complex, str, DType)):
        _assert(operator.eq(proxy, value), message)
    elif value is None:
        proxy.tracer.create_proxy("call_function", _assert_is_none, (proxy, message), {})
    else:
        warn_user(
            f"Was not able to add assertion to guarantee correct input {name} to specialized function: a "
            f"{type(value).__name__} is not compared. It is up to the user to pass the one of concrete_args"
        )
