"""Arrays made of sizes and numbers.  Floats have the default dtype, integers int64."""

from typing import Any

import numpy as np

from retrograd.core import Tensor, operator_named
from retrograd.core import dtype as dtypes
from retrograd.interop.array_api.promotion import cast
from retrograd.ops import create, data
from retrograd.ops.layout import check_device


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """An array, a number, or nested sequences of them, as a tensor; copy=None shares memory where it can.

    Raises ValueError if copy is False and a copy is needed.
    """
    check_device(device)
    made = data.as_tensor(obj, dtype)
    shared = made is obj or (hasattr(obj, "__array_interface__") and made.dtype == getattr(obj, "dtype", None))
    if copy is False and not shared:
        raise ValueError(f"asarray: a {type(obj).__name__} can't become an array of dtype {made.dtype} without a copy")
    return operator_named("clone")(made) if copy and shared else made


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Numbers from start (or 0) up to, but not including, stop, in steps; none where no step leads there."""
    check_device(device)
    start, stop = (0, start) if stop is None else (start, stop)
    if step and (stop - start) / step <= 0:
        stop = start
    return create.arange(start, stop, step, dtype=dtype)


def _filled(name: str) -> Any:
    def function(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
        check_device(device)
        return getattr(create, name)(shape, dtype=dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = getattr(create, name).__doc__
    return function


def _filled_like(name: str) -> Any:
    def function(x: Any, /, *, dtype: Any = None, device: Any = None) -> Tensor:
        check_device(device)
        return operator_named("zeros_like" if name == "empty_like" else name)(x, dtype=dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"`{name.removesuffix('_like')}` in the shape of x, and in its dtype unless another is asked for."
    )
    return function


empty, ones, zeros = _filled("empty"), _filled("ones"), _filled("zeros")
empty_like, ones_like, zeros_like = _filled_like("empty_like"), _filled_like("ones_like"), _filled_like("zeros_like")


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones on diagonal k of a matrix, zeros elsewhere."""
    check_device(device)
    columns = n_rows if n_cols is None else n_cols
    at = create.arange(n_rows).reshape(-1, 1) + k == create.arange(columns)
    return cast(at, dtypes.get_default_dtype() if dtype is None else np.dtype(dtype))


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """One number everywhere, in its own dtype unless another is asked for."""
    check_device(device)
    return create.full((shape,) if isinstance(shape, int) else shape, fill_value, dtype=dtype)


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """One number everywhere, in the shape of x, and in its dtype unless another is asked for."""
    check_device(device)
    return operator_named("full_like")(x, fill_value, dtype=dtype)


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Tensor:
    """`num` numbers at equal distances from start to stop, which is among them unless endpoint is False."""
    check_device(device)
    if not endpoint and num:
        stop = start + (stop - start) * (num - 1) / num
    return create.linspace(start, stop, num, dtype=dtype)


def meshgrid(*arrays: Any, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Coordinates of a grid, one array per axis; "xy" has the second axis first."""
    return tuple(operator_named("meshgrid")(list(arrays), indexing=indexing))


def tril(x: Any, /, *, k: int = 0) -> Tensor:
    """The lower triangle of the last two axes, up to diagonal k."""
    return operator_named("tril")(x, k)


def triu(x: Any, /, *, k: int = 0) -> Tensor:
    """The upper triangle of the last two axes, from diagonal k on."""
    return operator_named("triu")(x, k)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """The array of another library, its memory shared unless copy is True."""
    check_device(device)
    return data.from_dlpack(x, copy=copy)
