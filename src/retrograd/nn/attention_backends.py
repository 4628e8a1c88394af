"""The choice of an implementation of attention: there is one, whose results are those of all of PyTorch's."""

import enum
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from retrograd.core.blocks import generator_block
from retrograd.foundation.suggestions import suggest_in_module

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(enum.Enum):
    """PyTorch's implementations of `scaled_dot_product_attention`."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


def sdpa_kernel(
    backends: SDPBackend | Sequence[SDPBackend], set_priority: bool = False
) -> AbstractContextManager[None]:
    """Return a block that accepts a choice of implementations, without effect: each has the same results.

    Raises TypeError for other values.

    >>> with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
    ...     pass
    """
    chosen = [backends] if isinstance(backends, SDPBackend) else list(backends)
    for backend in chosen:
        if not isinstance(backend, SDPBackend):
            raise TypeError(f"sdpa_kernel: expected values of SDPBackend, got {backend!r}")
    return _without_effect()


@generator_block
def _without_effect() -> Iterator[None]:
    yield


class _FlashImplementations:
    """The registered implementations, and the active one."""

    def __init__(self) -> None:
        self.registered: dict[str, Callable[..., Any]] = {}
        self.active: str | None = None
        self.handle: Any = None  # what the function of the active one has returned, which it may need to live


_flash = _FlashImplementations()


def register_flash_attention_impl(impl: str, *, register_fn: Callable[..., Any]) -> None:
    """Register the function that `activate_flash_attention_impl(impl)` calls.

    The function may, for example, override `scaled_dot_product_attention` by `rg.library`.
    """
    _flash.registered[impl] = register_fn


def activate_flash_attention_impl(impl: str) -> None:
    """Call the function that was registered under a name.  Raises ValueError for another name."""
    if impl not in _flash.registered:
        raise ValueError(f"Unknown flash attention impl '{impl}'. Available implementations: {[*_flash.registered]}")
    _flash.handle = _flash.registered[impl]()
    _flash.active = impl


def restore_flash_attention_impl(_raise_warn: bool = True) -> None:
    """Drop the active implementation, and call `remove` of the handle that its function has returned."""
    handle, _flash.handle, _flash.active = _flash.handle, None, None
    if handle is not None and hasattr(handle, "remove"):
        handle.remove()


def list_flash_attention_impls() -> list[str]:
    """Return the names of the registered implementations."""
    return sorted(_flash.registered)


def current_flash_attention_impl() -> str | None:
    """Return the name of the active implementation, or None."""
    return _flash.active


suggest_in_module(globals())
