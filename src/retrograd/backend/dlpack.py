"""Memory of NumPy arrays shared with other libraries by DLPack, whose options NumPy 2.0 does not know."""

from types import SimpleNamespace
from typing import Any

import numpy as np


def _from_older(obj: Any, copy: bool | None = None) -> np.ndarray:
    """Return the memory of another library's array, or a copy of it.

    NumPy 2.0 shows it read-only, because it does not ask the exporter for DLPack 1, which can say that it is.
    """
    shared = np.from_dlpack(obj)
    interface = shared.__array_interface__ | {"data": (shared.ctypes.data, False)}
    return shared.copy() if copy else np.asarray(SimpleNamespace(__array_interface__=interface, owner=shared))


def _to_older(array: np.ndarray, *, stream: Any, max_version: Any, dl_device: Any, copy: bool | None) -> Any:
    """Return a capsule for the memory of an array, or of a copy; DLPack before 1 has no other options."""
    if dl_device not in (None, (1, 0)):
        raise BufferError(f"__dlpack__: NumPy exports to the CPU only, not to dl_device={dl_device}")
    return (array.copy() if copy else array).__dlpack__(stream=stream)


_old = np.lib.NumpyVersion(np.__version__) < "2.1.0"
from_dlpack: Any = _from_older if _old else np.from_dlpack
to_dlpack: Any = _to_older if _old else np.ndarray.__dlpack__
