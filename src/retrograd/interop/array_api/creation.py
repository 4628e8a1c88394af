"""Array creation from sizes and numbers.  Floats have the default dtype, integers int64."""

from typing import Any

import numpy as np

from retrograd.core import Tensor, operator_named
from retrograd.core import dtype as dtypes
from retrograd.ops import as_tensor, create
from retrograd.ops.family import cast_to
from retrograd.ops.functions import functions
from retrograd.ops.layout import check_device


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """Return an array, a number, or nested sequences of them as a tensor; copy=None shares memory if possible.

    Raises ValueError if copy is False and a copy is needed.
    """
    check_device(device)
    made = as_tensor.as_tensor(obj, dtype)
    shared = made is obj or (hasattr(obj, "__array_interface__") and made.dtype == getattr(obj, "dtype", None))
    if copy is False and not shared:
        raise ValueError(f"asarray: a {type(obj).__name__} can't become an array of dtype {made.dtype} without a copy")
    return operator_named("clone")(made) if copy and shared else made


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Numbers from start (or 0) up to, but not including, stop, in steps; empty if the step leads away from stop."""
    start, stop = (0, start) if stop is None else (start, stop)
    if step and (stop - start) / step <= 0:
        stop = start
    return functions["arange"](start, stop, step, dtype=dtype, device=device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones on diagonal k of a matrix, zeros elsewhere."""
    check_device(device)
    columns = n_rows if n_cols is None else n_cols
    at = create.arange(n_rows).reshape(-1, 1) + k == create.arange(columns)
    return cast_to(at, dtypes.get_default_dtype() if dtype is None else np.dtype(dtype))


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A constant tensor, in the value's own dtype by default."""
    return functions["full"]((shape,) if isinstance(shape, int) else shape, fill_value, dtype=dtype, device=device)


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Tensor:
    """Return `num` equally spaced values from start to stop, which is included unless endpoint is False."""
    if not endpoint and num:
        stop = start + (stop - start) * (num - 1) / num
    return functions["linspace"](start, stop, num, dtype=dtype, device=device)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Return another library's array as a tensor that shares its memory unless copy is True."""
    check_device(device)
    return as_tensor.from_dlpack(x, copy=copy)
