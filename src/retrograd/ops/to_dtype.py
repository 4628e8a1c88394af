"""Conversion of tensors to another dtype or device."""

from retrograd.core import Tensor, call
from retrograd.core import dtype as dtypes
from retrograd.core.device import DEVICE_NAMES
from retrograd.core.op import is_foreign
from retrograd.core.overrides import override_result
from retrograd.foundation.describe_value import describe
from retrograd.foundation.suggestions import did_you_mean, suggest_keywords
from retrograd.ops.functions import check_tensor, function, overridable
from retrograd.ops.layout import (
    array_device,
    check_device,
    copy_in_format,
    find_device,
    is_device,
    place,
    preserve_format,
    to_format,
)
from retrograd.ops.methods import method
from retrograd.ops.pointwise import to as to_dtype


def cast(x, dtype):
    """The operator `to`; x itself if it has the dtype."""
    return call(to_dtype, (x,), {"dtype": dtype}) if isinstance(dtype, dtypes.DType) else to_dtype(x, dtype)


@method
def to(x, *target, dtype=None, device=None, other=None, non_blocking=False, copy=False,
       memory_format=preserve_format) -> Tensor:  # fmt: skip
    """The tensor converted to another dtype; itself if it already has it and no copy is requested.

    `x.to(dtype)`, `x.to(device)`, `x.to(device, dtype)` or `x.to(other)`, which gives the dtype and the device of
    another tensor; then perhaps `non_blocking` (which changes nothing here) and `copy`.  As in PyTorch, True or False
    in place of a dtype is the dtype bool.

    >>> import retrograd as rg
    >>> rg.tensor([1.5, 2.0]).to(rg.int64), rg.arange(2).to("cpu", rg.float32)
    (tensor([1, 2]), tensor([0., 1.]))
    """
    if len(target) == 1 and isinstance(target[0], dtypes.DType) and not copy and memory_format is preserve_format:
        return x if x.dtype is target[0] or x.dtype == target[0] else cast(x, target[0])
    named = {"dtype": dtype, "device": device, "other": other}
    if foreign := [a for a in (*target, *named.values()) if is_foreign(a)]:
        given = {**named, "copy": copy or None, "memory_format": memory_format}
        return override_result(to, foreign, (x, *target), {name: a for name, a in given.items() if a is not None})
    moved = place(x, target_device(x, target, device, other))
    dtype, rest = target_dtype(target, dtype, device, other)
    if moved is not x:
        x, copy = moved, False
    return _convert(x, dtype, copy or (len(rest) > 1 and rest[1]), memory_format)


def target_dtype(target, dtype=None, device=None, other=None):
    """Return the dtype that arguments of `to` ask for, None for none, and the positional arguments after it.

    Raises RuntimeError for a device that has no tensors.
    """
    rest = list(target)
    if rest and isinstance(rest[0], Tensor):
        other = rest.pop(0)
    elif rest and is_device(rest[0]):
        device = rest.pop(0)
    if other is not None:
        dtype = other.dtype
    elif rest:
        if isinstance(rest[0], bool) and device is not None:
            raise TypeError(f"to: expected a dtype after the device, got {rest[0]}; name it, non_blocking={rest[0]}")
        dtype = dtypes.bool_ if isinstance(rest[0], bool) else rest[0]
        check_dtype_name(dtype)
        del rest[0]
    check_device(device)
    return dtype, rest


def check_dtype_name(given):
    """Raise a RuntimeError for a text that names no dtype, and so no device either."""
    try:
        if isinstance(given, str):
            dtypes.as_dtype(given)
    except TypeError:
        similar = did_you_mean(given, [*dtypes.TABLE, *DEVICE_NAMES])
        raise RuntimeError(
            f"to: expected a dtype, such as 'float32', or a device: Expected one of {', '.join(DEVICE_NAMES)} device "
            f"type at start of device string: {given}{similar}"
        ) from None


def target_device(x, target, device=None, other=None):
    """Return the `ArrayDevice` that arguments of `to` ask for, None for host memory; that of x if they name none."""
    if target and isinstance(target[0], Tensor):
        other = target[0]
    elif target and is_device(target[0]):
        device = target[0]
    if other is not None:
        return array_device(other)
    return array_device(x) if device is None else find_device(device)


def _convert(x, dtype, copy, memory_format):
    if dtype is not None and x.dtype != dtype:
        return to_format(cast(x, dtype), memory_format)
    return copy_in_format(x, memory_format) if copy else to_format(x, memory_format)


def _define_conversion(name, dtype):
    def convert(x, memory_format=preserve_format) -> Tensor:
        return to_format(x if x.dtype == dtype else cast(x, dtype), memory_format)

    convert.__name__, convert.__doc__ = name, f"The tensor in {dtype}; itself if it is so already."
    return method(convert)


for _name, _dtype in dtypes.ALIASES.items():
    _define_conversion(_name, _dtype)


@method
def bfloat16(x, memory_format=preserve_format) -> Tensor:
    """Return the tensor in bfloat16; itself if it is so already.

    >>> import retrograd as rg
    >>> rg.tensor([1.001]).bfloat16()
    tensor([1.], dtype=bfloat16)
    """
    return to_format(x if dtypes.is_bfloat16(x.dtype) else cast(x, dtypes.as_dtype("bfloat16")), memory_format)


@method
def type_as(x, other) -> Tensor:
    """The tensor converted to the dtype of the other."""
    dtype = check_tensor("type_as", other).dtype
    return x if x.dtype == dtype else cast(x, dtype)


# ------------------------------------------------------------------------------------------------- dtypes


def _dtype_of(name, value):
    if value is None:  # NumPy's default
        raise TypeError(f"{name}: expected a dtype, got None")
    try:
        dtype = dtypes.as_dtype(value)
        dtypes.category(dtype)
        return dtype
    except TypeError as error:
        raise TypeError(f"{name}: expected a dtype, got {describe(value)}: {error}") from None


@function()
def can_cast(from_, to) -> bool:
    """Whether a dtype can be cast to another in results: complex not to real, floats not to integers.

    >>> import retrograd as rg
    >>> rg.can_cast(rg.float64, rg.int32), rg.can_cast(rg.int64, rg.float16)
    (False, True)
    """
    return dtypes.category(_dtype_of("can_cast", from_)) <= dtypes.category(_dtype_of("can_cast", to))


@function()
def promote_types(type1, type2):
    """The common dtype to which two dtypes are promoted.

    >>> import retrograd as rg
    >>> rg.promote_types(rg.int64, rg.float32)
    dtype('float32')
    """
    return dtypes.promote(_dtype_of("promote_types", type1), _dtype_of("promote_types", type2))


@function()
@overridable
@suggest_keywords
def result_type(tensor1: Tensor | float, tensor2: Tensor | float):
    """The common dtype of two tensors or numbers; numbers and tensors without dimensions give way to tensors.

    >>> import retrograd as rg
    >>> rg.result_type(rg.arange(2), 1.5)
    dtype('float32')
    """
    return dtypes.result_type(tensor1, tensor2)
