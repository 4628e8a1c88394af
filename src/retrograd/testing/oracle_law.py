"""Operators compared with their oracles: functions of NumPy or SciPy, or formulas, that compute the same numbers."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from retrograd.core import Op, Tensor
from retrograd.testing.calculus import run
from retrograd.testing.closeness import assert_close


def oracle_of(op: Op) -> Callable | None:
    """Return the oracle of an operator, as a function of arrays and params; None if its class defines none."""
    oracle = op.definition.oracle
    if isinstance(oracle, str):
        module, _, name = oracle.rpartition(".")
        function = getattr(import_module(module), name)
        return partial(_call_numpy, function) if module.partition(".")[0] in ("numpy", "scipy") else function
    return None if oracle is None else partial(oracle, np)


def _call_numpy(function: Callable, *arrays: Any, dtype: Any = None, **params: Any) -> Any:
    """Call a function of NumPy or SciPy, with its names for dimensions."""
    if "dim" in params:
        params["axis"] = None if params["dim"] == () else params["dim"]
    if "keepdim" in params:
        params["keepdims"] = params["keepdim"]
    given = {name: value for name, value in params.items() if name not in ("dim", "keepdim")}
    if dtype is None or function.__module__.startswith("scipy"):  # SciPy's compute in the type of their arguments
        return function(*arrays, **given)
    return function(*arrays, dtype=dtype, **given)


def law_oracle(op: Op, args: tuple, params: dict) -> None:
    """Check that the result is that of the operator's oracle, if it has one."""
    oracle = oracle_of(op)
    if oracle is not None:
        agree_with_oracle(oracle, op, args, params)


def agree_with_oracle(oracle: Callable, op: Op, args: tuple, params: dict) -> None:
    """Check that the result is that of a function of arrays, to 12 digits, or 6 in single precision."""
    expected = oracle(*[a.value if isinstance(a, Tensor) else a for a in args], **params)
    expected = expected if isinstance(expected, (tuple, list)) else [expected]
    for out, e in zip(run(op, args, params), expected, strict=True):
        error = 1e-6 if out.dtype.itemsize < 8 and out.dtype.kind == "f" else 1e-12
        assert_close(out.value, np.asarray(e).astype(out.dtype), error, error, equal_nan=True)
