"""The device "meta": arrays that have a shape and a dtype, and no elements.

Kernels on it are the shape rules of operators, so a model can be made, and its shapes be computed, without its memory.
"""

import math
from functools import partial
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np

from retrograd.core.aval import Aval
from retrograd.core.device import ArrayDevice, device

NAME = "meta"


class MetaArray:
    """An array without elements, in row-major order. Views share `memory_id`, an object by which they are known."""

    __slots__ = ("dtype", "memory_id", "shape")
    __array_ufunc__ = None

    def __init__(self, shape: tuple[int, ...], dtype: Any, memory_id: object = None) -> None:
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)
        self.memory_id = object() if memory_id is None else memory_id

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))
    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self.size * self.itemsize)
    flags = SimpleNamespace(c_contiguous=True, f_contiguous=False, writeable=True)

    @property
    def strides(self) -> tuple[int, ...]:
        """Return the strides in bytes."""
        sizes = [max(size, 1) for size in self.shape]
        return tuple([math.prod(sizes[dim + 1 :]) * self.itemsize for dim in range(self.ndim)])

    def reshape(self, *shape: Any) -> "MetaArray":
        """Return a view of another shape."""
        sizes = list(shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)
        if -1 in sizes:
            sizes[sizes.index(-1)] = self.size // max(-math.prod(sizes), 1)
        return MetaArray(tuple(sizes), self.dtype, self.memory_id)

    def transpose(self, *dims: Any) -> "MetaArray":
        """Return a view with the dimensions in another order."""
        order = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
        return MetaArray(tuple([self.shape[d] for d in order or range(self.ndim)[::-1]]), self.dtype, self.memory_id)

    def astype(self, dtype: Any, order: str = "K", copy: bool = True) -> "MetaArray":
        """Return an array of another dtype."""
        return self if not copy and np.dtype(dtype) == self.dtype else MetaArray(self.shape, dtype)

    def view(self, dtype: Any) -> "MetaArray":
        """Return a view of an array of one dimension with another dtype."""
        return MetaArray((self.nbytes // np.dtype(dtype).itemsize,), dtype, self.memory_id)

    def copy(self, order: str = "C") -> "MetaArray":
        """Return an array like this one, with memory of its own."""
        return MetaArray(self.shape, self.dtype)

    def __getitem__(self, key: Any) -> "MetaArray":
        """Return the view that a key selects; NumPy computes its shape from one element."""
        return MetaArray(np.broadcast_to(np.empty((), bool), self.shape)[key].shape, self.dtype, self.memory_id)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Do nothing: there is nothing to write to."""

    def _refuse(self, *args: Any) -> NoReturn:
        raise NotImplementedError(
            "Cannot copy out of meta tensor; no data! A tensor on the device 'meta' has a shape and a dtype only; give "
            "a module memory by module.to_empty(device='cpu')"
        )

    __bool__ = __int__ = __float__ = __index__ = __complex__ = __iter__ = _refuse
    item = tolist = __array__ = _refuse
    data = SimpleNamespace(ptr=0)  # where the memory would be

    def __repr__(self) -> str:
        return f"<meta array {self.dtype}{list(self.shape)}>"


class MetaNamespace:
    """The namespace of arrays without elements, with those functions that the core itself calls."""

    __name__ = "retrograd.backend.meta"
    on_device = True

    @staticmethod
    def bind_shape(definition: Any) -> Any:
        """Return the kernel of an operator: it computes the shape and the dtype of each result."""
        if definition.crosses_devices:
            return partial(definition.impl, MetaNamespace)

        def kernel(*arrays: Any, **params: Any) -> Any:
            avals = [Aval(a.shape, a.dtype) if hasattr(a, "dtype") else a for a in arrays]
            out = definition.shape(*avals, **params)
            memory_id = arrays[0].memory_id if definition.view and isinstance(arrays[0], MetaArray) else None
            if isinstance(out, tuple):
                return tuple([MetaArray(one.shape, one.dtype, memory_id) for one in out])
            return MetaArray(out.shape, out.dtype, memory_id)

        return kernel

    @staticmethod
    def ascontiguousarray(array: MetaArray) -> MetaArray:
        """Return the array, which is contiguous."""
        return array

    @staticmethod
    def array(array: Any, **options: Any) -> MetaArray:
        """Return an array like another one, with memory of its own."""
        return MetaArray(array.shape, array.dtype)

    copy = array

    @staticmethod
    def ones(shape: Any, dtype: Any) -> MetaArray:
        """Return an array of a shape."""
        return MetaArray(shape, dtype)

    zeros = ones


class MetaDevice(ArrayDevice):
    """The device whose arrays have no elements."""

    device = device(NAME)
    array_type = MetaArray
    namespace = MetaNamespace()
    has_elements = False

    def from_host(self, array: Any) -> MetaArray:
        """Return an array of the shape and dtype of a NumPy array."""
        return MetaArray(array.shape, array.dtype)

    def to_host(self, array: MetaArray) -> NoReturn:
        """Raise NotImplementedError: there are no elements."""
        array._refuse()

    def share_memory(self, a: MetaArray, b: MetaArray) -> bool:
        """Return whether one array is a view of the other, or both are of a third one."""
        return a.memory_id is b.memory_id
