"""The names of `torch._C._nn` that libraries use."""

from typing import Any

from retrograd.core import Tensor
from retrograd.core.device import device as _device
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
