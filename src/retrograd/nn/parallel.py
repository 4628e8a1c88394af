"""Modules over several devices, under the names of torch.nn.parallel: there is one device, which runs the module."""

from collections.abc import Sequence
from typing import Any

from retrograd.nn.module import Module


class DataParallel(Module):
    """Call a module, as PyTorch's class does on a machine without GPUs; keys of the state dict begin with `module.`.

    `device_ids`, `output_device` and `dim` would say how to divide a batch over GPUs, and have no effect.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> model = nn.DataParallel(nn.Linear(2, 3))
    >>> model(rg.ones(4, 2)).shape, list(model.state_dict())
    ((4, 3), ['module.weight', 'module.bias'])
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        self.module = module
        self.dim = dim
        self.device_ids: list[Any] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Return the result of the module."""
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Return `module(*inputs, **module_kwargs)`, or `module(inputs)` if `inputs` is not a tuple, on the one device.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> data_parallel(nn.Flatten(), rg.ones(2, 3, 4)).shape
    (2, 12)
    """
    return module(*(inputs if isinstance(inputs, tuple) else (inputs,)), **(module_kwargs or {}))
