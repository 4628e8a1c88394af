"""Serialize a payload: a header of bytes, and the memory of its tensors without copying."""

import copyreg
import pickle
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any

from retrograd.backend import from_buffer
from retrograd.core import Tensor, registry
from retrograd.core.device import array_devices
from retrograd.core.op import compound
from retrograd.core.tensor import make
from retrograd.ops.layout import array_device, place

_PLAIN = "biufc"  # kinds of dtypes that `str` describes fully; NumPy's own pickling takes much longer


def pack(payload: Any) -> tuple[bytes, list[memoryview]]:
    """Return a header and its buffers: the tensors' own memory, copied only if it has gaps.

    payload: tensors and picklable data, nested in picklable containers.  Tensors
    outside transforms and graphs are sent: their values and layout, dtype and `requires_grad`. Those on a device
    arrive in host memory; a stage moves its inputs to its device.

    Raises what pickle raises (TypeError, AttributeError, pickle.PicklingError) for data that cannot be pickled.
    Out-of-band buffers are described in PEP 574.

    >>> import retrograd as rg
    >>> header, buffers = pack({"x": rg.ones(3), "scale": 2.0})
    >>> [buffer.nbytes for buffer in buffers]
    [12]
    >>> unpack(header, buffers)
    {'x': tensor([1., 1., 1.]), 'scale': 2.0}
    """
    file = BytesIO()
    buffers: list[memoryview] = []
    pickler = pickle.Pickler(file, 5, buffer_callback=_out_of_band(buffers))
    pickler.dispatch_table = _REDUCERS
    pickler.dump(payload)
    return file.getvalue(), buffers


def unpack(header: bytes | bytearray | memoryview, buffers: Sequence[Any]) -> Any:
    """Return the payload; its tensors use the buffers' memory and own it from now on."""
    return pickle.loads(header, buffers=buffers)


def buffers_of(x: Tensor) -> Sequence[Any]:
    """Return the buffers of `pack(x)`, or the array that has the same bytes: this takes a small part of the time."""
    value = x.value
    in_host_memory = type(value) not in array_devices and compound(x) is None
    if in_host_memory and value.flags.c_contiguous and value.dtype.kind in _PLAIN:
        return [value]
    return pack(x)[1]


def _out_of_band(buffers: list[memoryview]) -> Callable[[pickle.PickleBuffer], bool]:
    """Return pickle's buffer callback, which appends buffers to the list, except empty ones."""

    def keep(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if not raw.nbytes:
            return True
        buffers.append(raw)
        return False

    return keep


def _reduce_tensor(x: Tensor) -> tuple[Any, ...]:
    """Return how to rebuild a tensor: only its values are sent, always in a separate buffer."""
    if x.level is not None:
        raise TypeError("a tensor inside a function transform or trace can't be sent to another process")
    x = place(x.detach(), None).requires_grad_(x.requires_grad) if array_device(x) is not None else x
    dense, order = _dense(x)
    value = dense.value
    if value.dtype.kind in _PLAIN and value.size and not _is_ragged(x):
        return _tensor_from_buffer, (pickle.PickleBuffer(value), value.dtype.str, value.shape, order, x.requires_grad)
    return _tensor_from_value, (value, order, x.requires_grad)


class _Reducers(dict[type, Callable[[Any], Any]]):
    """Pickle's dispatch table: a reducer for tensors, and the default for other classes."""

    def __missing__(self, cls: type) -> Callable[[Any], Any]:
        return _reduce_tensor if issubclass(cls, Tensor) else copyreg.dispatch_table[cls]


_REDUCERS = _Reducers({Tensor: _reduce_tensor})  # faster than a method of the pickler, which pickle would ask first


def _dense(x: Tensor) -> tuple[Tensor, tuple[int, ...] | None]:
    """Return a tensor without gaps, and the order of dimensions in which it is contiguous; None: as they are.

    The layout is preserved, since sums over another one may differ in the last bit.
    """
    if x.value.flags.c_contiguous or _is_ragged(x):
        return x, None
    strides = x.stride()
    order = tuple(sorted(range(x.ndim), key=lambda d: -abs(strides[d])))
    permuted = registry["permute"](x.detach(), order)
    return (permuted if permuted.value.flags.c_contiguous else permuted.contiguous()), order


def _is_ragged(x: Tensor) -> bool:
    return any(type(size) is not int for size in x.shape)


def _tensor_from_buffer(
    buffer: Any, dtype: str, shape: tuple[int, ...], order: tuple[int, ...] | None, requires_grad: bool
) -> Tensor:
    """Return a numeric tensor in received memory."""
    return _tensor_from_value(from_buffer(buffer, dtype, -1, 0).reshape(shape), order, requires_grad)


def _tensor_from_value(value: Any, order: tuple[int, ...] | None, requires_grad: bool) -> Tensor:
    """Return a tensor from received values."""
    x = make(value, None, None)
    if order is not None:
        x = registry["permute"](x, tuple(sorted(range(len(order)), key=order.__getitem__))).detach()
    return x.requires_grad_() if requires_grad else x
