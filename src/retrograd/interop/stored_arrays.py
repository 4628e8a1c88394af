"""Arrays whose memory moves to a temporary file and back."""

import tempfile
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np


class _View(NamedTuple):
    """An array in the memory that it is a view of: the number of that memory, and the position in it in bytes."""

    number: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype


class StoredArrays:
    """Arrays in a temporary file; memory that several of them share is written once.

    Arrays in memory of `others`, and those of other types than NumPy's, are not written: `is_stored` is False.

    >>> stored = StoredArrays([np.arange(3), np.arange(8)[::2]], others=[])
    >>> stored.is_stored, stored.nbytes
    ([True, True], 88)
    >>> stored.load()
    [array([0, 1, 2]), array([0, 2, 4, 6])]
    """

    def __init__(self, arrays: Sequence[Any], others: Iterable[Any]) -> None:
        external = {id(memory_owner(other)) for other in others}
        wholes: dict[int, tuple[int, np.ndarray]] = {}
        self._views: list[_View | None] = []
        for array in arrays:
            whole = memory_owner(array)
            view = None
            if type(array) is type(whole) is np.ndarray and _is_dense(whole) and id(whole) not in external:
                number, _ = wholes.setdefault(id(whole), (len(wholes), whole))
                view = _View(number, _address(array) - _address(whole), array.shape, array.strides, array.dtype)
            self._views.append(view)
        self._sizes = [whole.nbytes for _, whole in wholes.values()]
        self._file: Any = tempfile.TemporaryFile()  # noqa: SIM115 (open until `load`)
        for _, whole in wholes.values():
            self._file.write(_in_order_of_memory(whole).reshape(-1).view(np.uint8).data)

    @property
    def is_stored(self) -> list[bool]:
        """Whether each array is in the file."""
        return [view is not None for view in self._views]

    @property
    def nbytes(self) -> int:
        """The bytes in the file."""
        return sum(self._sizes)

    def load(self) -> list[Any]:
        """Return the arrays, with None for those that are not stored, and remove the file."""
        with self._file as file:
            file.seek(0)
            buffers = [np.empty(size, np.uint8) for size in self._sizes]
            for buffer in buffers:
                if file.readinto(buffer) != buffer.nbytes:
                    raise OSError(f"the temporary file of offloaded tensors ends before its {self.nbytes} bytes")
        return [
            None
            if view is None
            else np.ndarray(view.shape, view.dtype, buffers[view.number], view.offset, view.strides)
            for view in self._views
        ]

    def close(self) -> None:
        """Remove the file, of arrays that nobody loads."""
        self._file.close()


def memory_owner(array: Any) -> Any:
    """Return the array whose memory this one is a view of; the array itself if it is no view."""
    while getattr(array, "base", None) is not None and hasattr(array.base, "nbytes"):
        array = array.base
    return array


def _in_order_of_memory(array: np.ndarray) -> np.ndarray:
    """Return a view with the dimensions in the order of their strides, as attention returns the heads of a position."""
    return array.transpose(sorted(range(array.ndim), key=lambda dim: -array.strides[dim]))


def _is_dense(array: np.ndarray) -> bool:
    return bool(array.flags.forc or _in_order_of_memory(array).flags.c_contiguous)


def _address(array: np.ndarray) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
