"""The array API standard's protocol of tensors: `__array_namespace__` and `to_device`."""

from types import ModuleType
from typing import Any

from retrograd.core import Tensor
from retrograd.foundation.lazy_imports import add_attribute, lazy_module
from retrograd.ops.layout import check_device

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")  # each contains those before


def _array_namespace(x: Tensor, /, *, api_version: str | None = None) -> ModuleType:
    """Return the functions of the standard: `retrograd.interop.array_api`, imported on first use.

    Raises ValueError for a version that it does not follow.

    >>> import retrograd as rg
    >>> xp = rg.ones(3).__array_namespace__()
    >>> xp.sum(xp.ones(3)).item()
    3.0
    """
    if api_version not in (None, *VERSIONS):
        raise ValueError(f"__array_namespace__: expected a version among {', '.join(VERSIONS)}, got {api_version!r}")
    return lazy_module("retrograd.interop.array_api")


def _to_device(x: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """Return the tensor itself, on the only device.  RuntimeError for others, ValueError for streams."""
    check_device(device)
    if stream is not None:
        raise ValueError(f"to_device: the CPU has no streams, got {stream!r}")
    return x


for _name, _method in {"__array_namespace__": _array_namespace, "to_device": _to_device}.items():
    add_attribute(Tensor, _name, _method)
