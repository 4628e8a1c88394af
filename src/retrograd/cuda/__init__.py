"""The questions that programs ask about GPUs, under the names of torch.cuda: there is none, tensors are on the CPU.

Code that chooses its device by `is_available()` runs unchanged. Functions that need a device raise a RuntimeError.

>>> from retrograd import cuda
>>> "cuda" if cuda.is_available() else "cpu"
'cpu'
"""

import sys
from collections.abc import Callable
from typing import Any, NoReturn

from retrograd import cpu
from retrograd.core.errors import OutOfMemoryError as OutOfMemoryError
from retrograd.foundation.lazy_imports import lazy_names
from retrograd.ops import layout


def is_available() -> bool:
    """Whether there is a CUDA device: never."""
    return False


def is_initialized() -> bool:
    """Whether CUDA has been started: never."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the CUDA device computes in bfloat16: never, for there is none."""
    return False


def device_count() -> int:
    """Return the number of CUDA devices, 0."""
    return 0


def get_arch_list() -> list[str]:
    """Return the architectures of the CUDA kernels, an empty list."""
    return []


def get_rng_state_all() -> list[Any]:
    """Return the states of the random numbers of all CUDA devices, an empty list."""
    return []


def set_rng_state_all(new_states: list[Any]) -> None:
    """Accept an empty list, as `get_rng_state_all` returns; a state is refused, because it has no device.

    RuntimeError: `new_states` has entries.
    """
    if len(new_states):
        _refuse("set_rng_state_all")


def manual_seed(seed: int) -> None:
    """Seed the random numbers of the CUDA device, of which there are none: `rg.manual_seed` seeds the CPU's."""


def manual_seed_all(seed: int) -> None:
    """Seed the random numbers of all CUDA devices, of which there are none: `rg.manual_seed` seeds the CPU's."""


def empty_cache() -> None:
    """Return unused memory of CUDA devices to the system; there is none."""


def memory_allocated(device: Any = None) -> int:
    """Return the bytes that tensors occupy on a CUDA device, 0."""
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """Return the most bytes that tensors have occupied on a CUDA device, 0."""
    return 0


def memory_reserved(device: Any = None) -> int:
    """Return the bytes that the allocator holds on a CUDA device, 0."""
    return 0


def max_memory_reserved(device: Any = None) -> int:
    """Return the most bytes that the allocator has held on a CUDA device, 0."""
    return 0


def _refuse(name: str) -> NoReturn:
    raise RuntimeError(
        f"cuda.{name}: there is no CUDA device, tensors are NumPy arrays on the CPU; ask cuda.is_available() first"
    )


def _refusal(name: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any, **keywords: Any) -> NoReturn:
        _refuse(name)

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Raise a RuntimeError: {name} needs a CUDA device, and there is none."
    return refuse


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


Event, Stream = _refusal("Event"), _refusal("Stream")
current_device, set_device = _refusal("current_device"), _refusal("set_device")
current_stream, stream, synchronize = _refusal("current_stream"), _refusal("stream"), _refusal("synchronize")
get_device_capability, get_device_name = _refusal("get_device_capability"), _refusal("get_device_name")
get_device_properties, mem_get_info = _refusal("get_device_properties"), _refusal("mem_get_info")
memory_summary, reset_peak_memory_stats = _refusal("memory_summary"), _refusal("reset_peak_memory_stats")
get_rng_state, set_rng_state = _refusal("get_rng_state"), _refusal("set_rng_state")
init, ipc_collect = _refusal("init"), _refusal("ipc_collect")

__getattr__, __dir__ = lazy_names("retrograd.cuda", {"amp": "retrograd.cuda.amp"})
