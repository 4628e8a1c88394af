"""Closeness of tensors and arrays."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from retrograd.core import Tensor
from retrograd.core.dtype import TABLE
from retrograd.core.op import compound


class _Checks(NamedTuple):
    """The tolerances of a comparison, and the attributes that must agree."""

    rtol: float | None
    atol: float | None
    equal_nan: bool
    device: bool
    dtype: bool
    layout: bool
    stride: bool


def assert_close(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    *,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Check that every `|actual - expected| <= atol + rtol * |expected|`, and that shapes and dtypes agree.

    check_device, check_dtype, check_layout, check_stride: whether these must agree, too, of tensors, and the dtypes of
    arrays. msg: the message of an error, or a function that makes it of the one below.

    Accepts tensors, arrays, and numbers or lists, whose dtype is not compared.  Nested tensors, and lists of their
    expected components, are compared component by component, as are dicts, and lists and tuples of tensors.  A default
    tolerance follows from the less precise dtype, as in torch.testing.assert_close: (rtol, atol) is (1e-7, 1e-7) for
    float64, (1.3e-6, 1e-5) for float32, (1e-3, 1e-5) for float16 and (0, 0) for integers and booleans.

    Raises AssertionError with the worst entry, its index, both values, and how many entries differ.

    >>> assert_close(np.float32([1, 2]), np.float32([1, 2.000001]))
    >>> assert_close(np.array([1.0, 2.0]), [1.0, 2.5])
    Traceback (most recent call last):
    AssertionError: 1 of 2 entries (50.0%) are not close. The worst is at index (1,): 2.0, expected 2.5...
    """
    checks = _Checks(rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride)
    try:
        _assert_close(actual, expected, checks)
    except AssertionError as error:
        if msg is None:
            raise
        raise AssertionError(msg(str(error)) if callable(msg) else msg) from None


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Call `assert_close`, which replaces it; NaN equals NaN, and dtypes may differ.

    >>> assert_allclose(np.array([1.0, np.nan]), np.array([1.0, np.nan]))
    """
    assert_close(actual, expected, rtol, atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


def _assert_close(actual: Any, expected: Any, checks: _Checks) -> None:
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            raise AssertionError(f"the keys are {list(actual)}, expected {list(expected)}")
        _assert_parts_close({key: (actual[key], expected[key]) for key in actual}, checks)
        return
    if isinstance(actual, Tensor) and isinstance(expected, Tensor):
        _check_attributes(actual, expected, checks)
    if _has_parts(actual) or _has_parts(expected):
        parts, wanted = list(actual), list(expected)
        if len(parts) != len(wanted):
            raise AssertionError(f"there are {len(parts)} components, expected {len(wanted)}")
        _assert_parts_close(dict(enumerate(zip(parts, wanted, strict=True))), checks)
        return
    a, e = array_of(actual), array_of(expected)
    _check_shape_and_dtype(actual, expected, a, e, checks.dtype)
    rtol, atol = _tolerances(a, e, checks.rtol, checks.atol)
    a, e = np.broadcast_arrays(_wide(a), _wide(e))
    bad = ~np.isclose(a, e, rtol=rtol, atol=atol, equal_nan=checks.equal_nan)
    if bad.any():
        raise AssertionError(_worst(a, e, bad, rtol, atol))


def _has_parts(value: Any) -> bool:
    """Return whether a value is compared part by part: composite tensors, and lists and tuples of tensors."""
    if isinstance(value, Tensor):
        return compound(value) is not None
    return isinstance(value, list | tuple) and any(isinstance(part, Tensor | Mapping) for part in value)


def _assert_parts_close(parts: Mapping[Any, tuple[Any, Any]], checks: _Checks) -> None:
    """Compare (actual, expected) of each component."""
    for name, (part, wanted) in parts.items():
        try:
            _assert_close(part, wanted, checks)
        except AssertionError as error:
            raise AssertionError(f"component {name}: {error}") from None


def _check_attributes(actual: Tensor, expected: Tensor, checks: _Checks) -> None:
    if checks.device and actual.device != expected.device:
        raise AssertionError(f"devices differ: {actual.device}, expected {expected.device}")
    if checks.layout and actual.layout != expected.layout:
        raise AssertionError(f"layouts differ: {actual.layout}, expected {expected.layout}")
    if checks.stride and actual.stride() != expected.stride():
        raise AssertionError(f"strides differ: {actual.stride()}, expected {expected.stride()}")


def array_of(value: Any) -> np.ndarray:
    """Return the array of a tensor on the ground, or the NumPy array of another value."""
    if isinstance(value, Tensor):
        if value.level is not None:
            raise TypeError(f"assert_close: expected values, got a tensor inside a {type(value.level).__name__}")
        return value.value
    return np.asarray(value)


def _check_shape_and_dtype(actual: Any, expected: Any, a: np.ndarray, e: np.ndarray, check_dtype: bool) -> None:
    if a.shape != e.shape:
        raise AssertionError(f"shapes differ: {a.shape}, expected {e.shape}")
    if check_dtype and hasattr(actual, "dtype") and hasattr(expected, "dtype") and a.dtype != e.dtype:
        raise AssertionError(f"dtypes differ: {a.dtype}, expected {e.dtype}")


def _tolerances(a: np.ndarray, e: np.ndarray, rtol: float | None, atol: float | None) -> tuple[float, float]:
    defaults = [TABLE[x.dtype.name].tolerance if x.dtype.name in TABLE else (0.0, 0.0) for x in (a, e)]
    return (
        max(pair[0] for pair in defaults) if rtol is None else rtol,
        max(pair[1] for pair in defaults) if atol is None else atol,
    )


def _wide(a: np.ndarray) -> np.ndarray:
    """Return the values in a dtype in which differences are exact enough; large integers stay integers."""
    return a if a.dtype.kind in "iub" else a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)


def _worst(a: np.ndarray, e: np.ndarray, bad: np.ndarray, rtol: float, atol: float) -> str:
    with np.errstate(invalid="ignore"):
        excess = np.abs(np.subtract(a, e, dtype=np.result_type(a, e, np.float64))) - rtol * np.abs(_wide(e))
    excess = np.where(bad, np.where(np.isnan(excess), np.inf, excess), -np.inf)
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(excess)), a.shape))
    x, y = a[index].item(), e[index].item()
    return (
        f"{bad.sum()} of {bad.size} entries ({bad.mean():.1%}) are not close. The worst is at index {index}: "
        f"{x!r}, expected {y!r}; they differ by {abs(x - y):.3g}, with rtol={rtol:g} and atol={atol:g}"
    )
