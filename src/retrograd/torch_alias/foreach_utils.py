"""The names of `torch.utils._foreach_utils`: tensors are grouped for functions on lists of tensors."""

from typing import Any

from retrograd.core import Tensor


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Return the devices on which one kernel takes a list: none."""
    return []


_get_fused_kernels_supported_devices = _get_foreach_kernels_supported_devices


def _device_has_foreach_support(device: Any) -> bool:
    """Return whether functions on lists accept tensors on a device."""
    return True


def _has_foreach_support(tensors: list[Tensor | None], device: Any) -> bool:
    """Return whether functions on lists accept these tensors."""
    return all(x is None or type(x) is Tensor for x in tensors)


def _group_tensors_by_device_and_dtype(
    tensorlistlist: list[list[Any]], with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]]:
    """Return parts of lists, and positions of their entries, by device and dtype of the first list's tensors."""
    groups: dict[tuple[Any, Any], list[int]] = {}
    for i, x in enumerate(tensorlistlist[0]):
        groups.setdefault((x.device, x.dtype), []).append(i)
    return {
        key: ([[entries[i] for i in chosen] if entries else [] for entries in tensorlistlist], chosen * with_indices)
        for key, chosen in groups.items()
    }
