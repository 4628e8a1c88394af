"""The names of `torch._C._nn` and `torch.nn.utils._named_member_accessor` that libraries use."""

from typing import Any

from retrograd.core import Tensor
from retrograd.core.device import device as _device
from retrograd.nn import Module
from retrograd.ops.dtype_aliases import dtype as _dtype


def _parse_to(*args: Any, **settings: Any) -> tuple[Any, Any, bool, Any]:
    """Return device, dtype, whether to copy without waiting, and memory format of the arguments of `to`.

    >>> import retrograd as rg
    >>> _parse_to("cpu", rg.float64)[:2]
    (device(type='cpu'), dtype('float64'))
    """
    device, dtype = settings.get("device"), settings.get("dtype")
    flags = [x for x in args if isinstance(x, bool)]
    for x in args:
        if isinstance(x, Tensor):
            device, dtype = x.device, x.dtype
        elif isinstance(x, _dtype):
            dtype = x
        elif x is not None and not isinstance(x, bool):
            device = x
    found = None if device is None else _device(device)
    return found, dtype, settings.get("non_blocking", bool(flags[:1] == [True])), settings.get("memory_format")


def swap_tensor(module: Module, name: str, tensor: Tensor | None) -> Any:
    """Put a tensor in the place of a parameter, buffer or attribute of a module; return the earlier one.

    TypeError for another module or value, AttributeError if there is no attribute of this name.

    >>> from retrograd import nn, ones
    >>> layer, weight = nn.Linear(2, 1), ones(1, 2)
    >>> earlier = swap_tensor(layer, "weight", weight)
    >>> layer.weight is weight, isinstance(earlier, nn.Parameter)
    (True, True)
    """
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if tensor is not None and not isinstance(tensor, Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    for members in (module._parameters, module._buffers):
        if name in members:
            earlier, members[name] = members[name], tensor
            return earlier
    earlier = getattr(module, name)
    setattr(module, name, tensor)
    return earlier
