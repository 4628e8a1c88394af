"""GPUs through CuPy: the device "cuda", and what only such a device has: streams, events, memory pools, pinned memory.

Functions on CuPy's arrays are those of the backend (`library_names` has what CuPy lacks). CuPy is imported when a
program first asks for the device. Facts of CuPy are those of version 14.2.
"""

import importlib
from functools import partial
from typing import Any

import numpy as np

from retrograd.backend import cuda_kernels
from retrograd.backend.library_device import LibraryDevice

NAME = "cuda"
# Arguments of CuPy's `set_compute_type` for float32: `cupy._core._routines_linalg.COMPUTE_TYPE_*`.
COMPUTE_DEFAULT, COMPUTE_TF32 = 1, 7

_settings = {"tf32": False}
_found: list[Any] = []  # CuPy's module, or None where it is not installed or there is no GPU; empty before the search


def find_cupy() -> Any:
    """Return CuPy's module if it is installed and there is a GPU, None otherwise; the search happens once."""
    if not _found:
        _found.append(_import_cupy())
    return _found[0]


def _import_cupy() -> Any:
    try:
        cupy = importlib.import_module("cupy")
        return cupy if cupy.cuda.is_available() else None
    except ImportError:
        return None


def forget_cupy() -> None:
    """Search for CuPy again at the next call of `find_cupy`; tests that replace it need this."""
    _found.clear()


def imported_cupy() -> Any:
    """Return CuPy's module if a program has asked for a GPU and there is one; None otherwise. It imports nothing."""
    return _found[0] if _found else None


def make_device() -> "CudaDevice | None":
    """Return a new device for the GPU; None without CuPy or a GPU."""
    cupy = find_cupy()
    if cupy is None:
        return None
    if _settings["tf32"]:
        use_tf32(True)
    return CudaDevice(cupy, importlib.import_module("cupyx.scipy.special"))


class CudaDevice(LibraryDevice):
    """The GPU that is current in CuPy.

    Its arrays are `cupy.ndarray`, its namespace has CuPy's functions and the kernels of `cuda_kernels`. CuPy's arrays
    know their GPU, types of arrays do not, so tensors are on one GPU per process: `set_index` chooses it.
    """

    def __init__(self, cupy: Any, special: Any) -> None:
        self._launch = cuda_kernels.Launcher(cupy)
        kernels = cuda_kernels.replacements(self._launch)
        functions = {"matmul": partial(cuda_kernels.recorded_product, self._launch)}
        super().__init__(NAME, cupy, special=special, sparse=SparseNames, kernels=kernels, functions=functions)

    def has_index(self, index: int | None) -> bool:
        """Return whether an index is that of the current GPU; None is."""
        return index is None or index == self._library.cuda.Device().id

    def from_host(self, array: Any) -> Any:
        """Return a copy on the GPU, which the host does not wait for.

        CuPy stages pageable memory in its own pinned buffer, and copies pinned memory from where it is.
        """
        if array.ndim == 0:
            return self._library.full((), array.item(), array.dtype)
        return self._library.asarray(array, blocking=False)

    def from_dlpack(self, obj: Any, copy: bool | None) -> Any:
        """Return an array that shares the memory of another library's array on the GPU, or has a copy of it."""
        return self._library.from_dlpack(obj, copy=copy)

    def uniform(self, state: Any, size: Any, dtype: Any) -> Any:
        """Return what NumPy's Philox generator in a state draws, computed on the GPU."""
        if self._library.cuda.get_current_stream().is_capturing():
            raise RuntimeError("rand: random numbers cannot be drawn for a CUDA graph, which would repeat them")
        return cuda_kernels.uniform(self._launch, state, size, np.dtype(dtype))

    def update_kernel(self, name: str) -> Any:
        """Return the kernel of an optimizer's step."""
        return getattr(self.kernels, name)


class SparseNames:
    """The name of scipy.sparse that products with sparse matrices use, for CuPy's matrices."""

    @staticmethod
    def csr_array(parts: Any, shape: Any) -> Any:
        """Return a matrix from its values, columns and the offsets of its rows; entries may occur again."""
        made = importlib.import_module("cupyx.scipy.sparse").csr_matrix(parts, shape=shape)
        made.has_canonical_format = True  # or each product would wait for a search for repeated entries
        return made


def pinned_copy(array: Any) -> Any:
    """Return a copy of a NumPy array in memory that is not paged out, so that copies of it to the GPU need no staging.

    Raises RuntimeError without a GPU.
    """
    if find_cupy() is None:
        raise RuntimeError("pin_memory: there is no accelerator that memory could be pinned for")
    out = importlib.import_module("cupyx").empty_pinned(array.shape, array.dtype)
    out[...] = array
    return out


def is_pinned(array: Any) -> bool:
    """Return whether a NumPy array is in pinned memory that CuPy allocated."""
    cupy = imported_cupy()
    owner = array
    while isinstance(owner, (np.ndarray, memoryview)):
        owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
    return cupy is not None and isinstance(owner, cupy.cuda.PinnedMemoryPointer)


def use_tf32(allowed: bool) -> None:
    """Compute products of float32 in TF32 or in float32, on GPUs that have it: now, or once one is in use."""
    _settings["tf32"] = allowed
    if imported_cupy() is not None:
        core = importlib.import_module("cupy._core")
        core.set_compute_type(np.dtype("float32"), COMPUTE_TF32 if allowed else COMPUTE_DEFAULT)


class PeakMemory:
    """The most bytes that tensors have occupied, observed at each allocation of this thread once it is entered."""

    def __init__(self, cupy: Any) -> None:
        self._pool = cupy.get_default_memory_pool()
        self.most = self._pool.used_bytes()
        self._hook = _hook_class(cupy)(self)
        self._hook.__enter__()

    def observe(self) -> int:
        """Compare the bytes in use now with the most so far; return the most."""
        self.most = max(self.most, self._pool.used_bytes())
        return self.most

    def reset(self) -> None:
        """Count from the bytes in use now on."""
        self.most = self._pool.used_bytes()


def _hook_class(cupy: Any) -> Any:
    class PeakHook(cupy.cuda.MemoryHook):
        name = "retrograd.PeakMemory"

        def __init__(self, peak: PeakMemory) -> None:
            self._peak = peak

        def malloc_postprocess(self, **facts: Any) -> None:
            """Look at the pool after each allocation."""
            self._peak.observe()

    return PeakHook
