"""GPUs under the names of torch.cuda, through CuPy: tensors are on the GPU that is current in this process.

Without CuPy or a GPU there is no device: code that chooses it by `is_available()` runs unchanged on the CPU, and
functions that need a device raise a RuntimeError. CuPy is imported at the first question about a device. Little
of this has run on a GPU: docs/devices.md says what was tested and how.

>>> from retrograd import cuda
>>> "cuda" if cuda.is_available() else "cpu"
'cpu'
"""

import sys
from typing import Any

from retrograd import cpu
from retrograd.backend.devices import device_named
from retrograd.core.errors import OutOfMemoryError
from retrograd.cuda.graphs import CUDAGraph, graph
from retrograd.cuda.memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_summary,
    reset_peak_memory_stats,
)
from retrograd.cuda.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    set_rng_state,
    set_rng_state_all,
)
from retrograd.cuda.runtime import check_index, device_index, find_library, imported_library, require_library
from retrograd.cuda.streams import Event, Stream, StreamContext, current_stream, default_stream, set_stream, stream
from retrograd.foundation.lazy_imports import lazy_names
from retrograd.ops import layout

__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CUDAGraph", "CharTensor", "DoubleTensor", "Event",
    "FloatTensor", "HalfTensor", "IntTensor", "LongTensor", "OutOfMemoryError", "ShortTensor", "Stream",
    "StreamContext", "amp", "current_device", "current_stream", "default_stream", "device", "device_count",
    "empty_cache", "get_arch_list", "get_device_capability", "get_device_name", "get_device_properties",
    "get_rng_state", "get_rng_state_all", "graph", "init", "initial_seed", "ipc_collect", "is_available",
    "is_bf16_supported", "is_current_stream_capturing", "is_initialized", "manual_seed", "manual_seed_all",
    "max_memory_allocated", "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_reserved",
    "memory_summary", "reset_peak_memory_stats", "set_device", "set_rng_state", "set_rng_state_all", "set_stream",
    "stream", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """Whether there is a CUDA device, and CuPy to use it."""
    return find_library() is not None


def is_initialized() -> bool:
    """Whether a program has asked for a CUDA device and there is one."""
    return imported_library() is not None


def init() -> None:
    """Start CuPy; a RuntimeError without a device."""
    require_library("init")
    device_named("cuda")


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the CUDA device computes in bfloat16: those of compute capability 8.0 and later do."""
    return is_available() and get_device_capability() >= (8, 0)


def device_count() -> int:
    """Return the number of CUDA devices, 0 without CuPy."""
    library = find_library()
    return 0 if library is None else library.cuda.runtime.getDeviceCount()


def current_device() -> int:
    """Return the index of the device that has this process's tensors. RuntimeError without a device."""
    return require_library("current_device").cuda.Device().id


def set_device(device: Any) -> None:
    """Choose the device that has this process's tensors, before the first of them is made there.

    A negative index changes nothing. RuntimeError without a device, and for an index that no device has.
    """
    library = require_library("set_device")
    index = device_index(device)
    if index is not None and index >= 0:
        check_index(library, index)
        library.cuda.Device(index).use()


class device:
    """A block in which a device is current: `with rg.cuda.device(0): ...`. RuntimeError without a device."""

    def __init__(self, device: Any) -> None:
        self._index = device_index(device)
        self._before: int | None = None

    def __enter__(self) -> None:
        self._before = current_device()
        set_device(self._index)

    def __exit__(self, *exception: Any) -> None:
        set_device(self._before)


def synchronize(device: Any = None) -> None:
    """Wait for all work on the device. RuntimeError without a device."""
    library = require_library("synchronize")
    library.cuda.Device(device_index(device)).synchronize()


def get_device_properties(device: Any = None) -> Any:
    """Return the name, compute capability, memory and processors of a device as attributes of an object.

    RuntimeError without a device.
    """
    library = require_library("get_device_properties")
    index = current_device() if device_index(device) is None else device_index(device)
    check_index(library, index)
    found = library.cuda.runtime.getDeviceProperties(index)
    return _CudaDeviceProperties(
        found["name"].decode(), found["major"], found["minor"], found["totalGlobalMem"], found["multiProcessorCount"]
    )


class _CudaDeviceProperties:
    """The properties of a device, under the names of PyTorch."""

    def __init__(self, name: str, major: int, minor: int, total_memory: int, multi_processor_count: int) -> None:
        self.name, self.major, self.minor = name, major, minor
        self.total_memory, self.multi_processor_count = total_memory, multi_processor_count

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name={self.name!r}, major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory >> 20}MB, multi_processor_count={self.multi_processor_count})"
        )


def get_device_name(device: Any = None) -> str:
    """Return the name of a device. RuntimeError without a device."""
    require_library("get_device_name")
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return the compute capability of a device, as (9, 0). RuntimeError without a device."""
    require_library("get_device_capability")
    found = get_device_properties(device)
    return found.major, found.minor


def get_arch_list() -> list[str]:
    """Return the architectures that kernels are compiled for: that of the device, at the first use of each kernel."""
    if not is_available():
        return []
    major, minor = get_device_capability()
    return [f"sm_{major}{minor}"]


def is_current_stream_capturing() -> bool:
    """Whether the current stream records a CUDA graph; False without a device."""
    library = imported_library()
    return library is not None and bool(library.cuda.get_current_stream().is_capturing())


def ipc_collect() -> None:
    """Return memory of tensors that other processes have released: none, tensors are not shared between processes.

    RuntimeError without a device.
    """
    require_library("ipc_collect")


def get_device_module(device: Any = None) -> Any:
    """Return the module of a device by its name: `rg.cpu` for None and the CPU, `rg.cuda` for CUDA.

    Raises RuntimeError for a device without a module.

    >>> import retrograd as rg
    >>> rg.get_device_module().device_count()
    1
    """
    kind = layout.device("cpu" if device is None else device).type
    if kind not in ("cpu", "cuda"):
        raise RuntimeError(f"get_device_module: device '{kind}' has no module; there are cpu and cuda")
    return cpu if kind == "cpu" else sys.modules[__name__]


__getattr__, __dir__ = lazy_names(
    "retrograd.cuda",
    {
        "amp": "retrograd.cuda.amp",
        "FloatTensor": "retrograd.cuda.legacy",
        "DoubleTensor": "retrograd.cuda.legacy",
        "HalfTensor": "retrograd.cuda.legacy",
        "BFloat16Tensor": "retrograd.cuda.legacy",
        "BoolTensor": "retrograd.cuda.legacy",
        "ByteTensor": "retrograd.cuda.legacy",
        "CharTensor": "retrograd.cuda.legacy",
        "ShortTensor": "retrograd.cuda.legacy",
        "IntTensor": "retrograd.cuda.legacy",
        "LongTensor": "retrograd.cuda.legacy",
    },
)
