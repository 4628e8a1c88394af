"""The accelerator under the names of torch.accelerator: the GPU of `rg.cuda` where there is one, else none.

The usual line of PyTorch's tutorials runs unchanged:

>>> from retrograd import accelerator
>>> accelerator.current_accelerator().type if accelerator.is_available() else "cpu"
'cpu'
"""

from typing import Any

from retrograd import cuda
from retrograd.ops import layout


def is_available() -> bool:
    """Whether there is an accelerator: a CUDA device, and CuPy to use it."""
    return cuda.is_available()


def device_count() -> int:
    """Return the number of accelerators, 0 if there is none."""
    return cuda.device_count()


def current_accelerator(check_available: bool = False) -> layout.device | None:
    """Return the kind of the accelerator as a device without an index, or None if there is none.

    check_available: changes nothing, since only devices that are there count here.
    """
    return layout.device("cuda") if is_available() else None


def current_device_index() -> int:
    """Return the index of the current accelerator. RuntimeError without one."""
    _require()
    return cuda.current_device()


def set_device_index(device: Any) -> None:
    """Choose the accelerator, by its index or as a device. RuntimeError without one."""
    _require()
    cuda.set_device(device)


class device_index:
    """A block in which an accelerator is current: `with rg.accelerator.device_index(0): ...`; None changes nothing.

    RuntimeError without an accelerator.
    """

    def __init__(self, device: int | None) -> None:
        _require()
        self._block = None if device is None else cuda.device(device)

    def __enter__(self) -> None:
        if self._block is not None:
            self._block.__enter__()

    def __exit__(self, *exception: object) -> None:
        if self._block is not None:
            self._block.__exit__(*exception)


def synchronize(device: Any = None) -> None:
    """Wait for all work on an accelerator, by default the current one. RuntimeError without one."""
    _require()
    cuda.synchronize(device)


def current_stream(device: Any = None) -> Any:
    """Return the current stream of an accelerator. RuntimeError without one."""
    _require()
    return cuda.current_stream(device)


def set_stream(stream: Any) -> None:
    """Make a stream the current one. RuntimeError without an accelerator."""
    _require()
    cuda.set_stream(stream)


def empty_cache() -> None:
    """Return cached memory that nothing uses to the device. RuntimeError without an accelerator."""
    _require()
    cuda.empty_cache()


def memory_allocated(device_index: Any = None) -> int:
    """Return the bytes that tensors take on an accelerator. RuntimeError without one."""
    _require()
    return cuda.memory_allocated(device_index)


def max_memory_allocated(device_index: Any = None) -> int:
    """Return the most bytes that tensors have taken. RuntimeError without an accelerator."""
    _require()
    return cuda.max_memory_allocated(device_index)


def memory_reserved(device_index: Any = None) -> int:
    """Return the bytes that are held, the cached ones included. RuntimeError without an accelerator."""
    _require()
    return cuda.memory_reserved(device_index)


def max_memory_reserved(device_index: Any = None) -> int:
    """Return the most bytes that were held. RuntimeError without an accelerator."""
    _require()
    return cuda.max_memory_reserved(device_index)


def reset_peak_memory_stats(device_index: Any = None) -> None:
    """Reset the maxima of memory to what is taken now. RuntimeError without an accelerator."""
    _require()
    cuda.reset_peak_memory_stats(device_index)


def get_memory_info(device_index: Any = None) -> tuple[int, int]:
    """Return the free and the total bytes of an accelerator. RuntimeError without one."""
    _require()
    return cuda.mem_get_info(device_index)


def _require() -> None:
    if not is_available():
        raise RuntimeError(
            "Cannot access accelerator device when none is available.: ask rg.accelerator.is_available() first; "
            "rg.cuda needs CuPy and a GPU"
        )
