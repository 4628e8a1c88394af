"""The names of `torch._utils` that libraries use."""

from collections.abc import Iterable
from typing import Any

from retrograd import cuda
from retrograd.core import Tensor, operator_named
from retrograd.core.device import device as _device

_cat = operator_named("cat")


def _flatten_dense_tensors(tensors: Iterable[Tensor]) -> Tensor:
    """Return the elements of tensors in one.

    >>> import retrograd as rg
    >>> _flatten_dense_tensors([rg.ones(2), rg.zeros(1, 1)])
    tensor([1., 1., 0.])
    """
    return _cat([x.reshape(-1) for x in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Return views of a flat tensor with the shapes of others."""
    others = [*tensors]
    return tuple([part.view_as(x) for part, x in zip(flat.split([x.numel() for x in others]), others, strict=True)])


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """Return the index of a device; -1 for the CPU, where `allow_cpu` is set."""
    if isinstance(device, int):
        return device
    found = _device(device)
    if found.type == "cpu":
        if not allow_cpu:
            raise ValueError(f"Expected a non cpu device, but got: {found}")
        return -1
    return found.index or 0


def _element_size(dtype: Any) -> int:
    """Return the number of bytes of an element."""
    return int(dtype.itemsize)


def _get_available_device_type() -> str | None:
    """Return "cuda" with a GPU, else None."""
    return "cuda" if cuda.is_available() else None


def _get_device_module(device_type: str) -> Any:
    """Return `torch.cuda`; RuntimeError for other devices."""
    if device_type != "cuda":
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as 'torch.{device_type}'."
        )
    return cuda
