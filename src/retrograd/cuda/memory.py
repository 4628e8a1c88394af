"""Memory of the device: CuPy's default pool."""

from typing import Any

from retrograd.backend.devices import cupy_device
from retrograd.cuda.runtime import check_index, device_index, imported_library, require_library

_peaks: dict[int, Any] = {}  # id of CuPy's module -> `PeakMemory`, made at the first question


def _pool() -> Any:
    """Return the pool of the device in use; None if no program has asked for a device."""
    library = imported_library()
    return None if library is None else library.get_default_memory_pool()


def memory_allocated(device: Any = None) -> int:
    """Return the bytes that tensors occupy on the device; 0 without one."""
    pool = _pool()
    return 0 if pool is None else pool.used_bytes()


def memory_reserved(device: Any = None) -> int:
    """Return the bytes that the pool holds on the device, those of freed tensors included; 0 without a device."""
    pool = _pool()
    return 0 if pool is None else pool.total_bytes()


def max_memory_reserved(device: Any = None) -> int:
    """Return the most bytes that the pool has held since `empty_cache`; 0 without a device.

    The pool returns nothing to the system by itself, so these are the bytes that it holds now.
    """
    return memory_reserved(device)


def _peak() -> Any:
    library = imported_library()
    if library is None:
        return None
    if id(library) not in _peaks:
        _peaks.clear()
        _peaks[id(library)] = cupy_device().PeakMemory(library)
    return _peaks[id(library)]


def max_memory_allocated(device: Any = None) -> int:
    """Return the most bytes that tensors have occupied on the device; 0 without one.

    CuPy keeps no such number, so it is taken from the first call of this function or of `reset_peak_memory_stats` on,
    at each allocation of the thread of that call.
    """
    peak = _peak()
    return 0 if peak is None else peak.observe()


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let `max_memory_allocated` count from now on. RuntimeError without a device."""
    require_library("reset_peak_memory_stats")
    _peak().reset()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return the free and the total bytes of a device. RuntimeError without a device."""
    library = require_library("mem_get_info")
    check_index(library, device_index(device))
    free, total = library.cuda.Device(device_index(device)).mem_info
    return free, total


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Return a text with the bytes in use, the most so far, and those that the pool holds.

    RuntimeError without a device.
    """
    require_library("memory_summary")
    return f"allocated {memory_allocated()} bytes, at most {max_memory_allocated()}; reserved {memory_reserved()} bytes"


def empty_cache() -> None:
    """Return the memory of freed tensors to the system; nothing without a device."""
    pool = _pool()
    if pool is not None:
        pool.free_all_blocks()
