"""Modules over several devices, under the names of torch.nn.parallel: there is one device, which runs the module.

`DistributedDataParallel` trains replicas in several processes.
"""

from collections.abc import Sequence
from typing import Any

from retrograd.core import Tensor, registry
from retrograd.foundation.lazy_imports import lazy_names
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.nn.module import Module
from retrograd.ops.layout import check_device

__all__ = [
    "DataParallel",
    "DistributedDataParallel",  # noqa: F822  # a higher layer adds it
    "data_parallel", "gather", "parallel_apply", "scatter",
]  # fmt: skip

__getattr__, __dir__ = lazy_names(__name__, {})
__path__: list[str] = []  # this module is a package too: `module_aliases.py` has its modules


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


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Return the inputs for each device of a list: parts of the tensors along `dim`, and other values for each.

    Tensors may be nested in tuples, lists and dicts.  Devices are the CPU, once for each part.  There are fewer
    parts if a tensor has fewer entries along `dim` than there are devices.

    Raises RuntimeError for other devices.

    >>> import retrograd as rg
    >>> scatter((rg.arange(4), "sum"), ["cpu", "cpu"])
    [(tensor([0, 1]), 'sum'), (tensor([2, 3]), 'sum')]
    """
    for where in target_gpus:
        check_device(where)
    return _parts(inputs, len(target_gpus), dim)


def _parts(value: Any, count: int, dim: int) -> list[Any]:
    if isinstance(value, Tensor):
        return list(value.chunk(count, dim))
    if isinstance(value, dict) and value:
        pairs = zip(*[[(key, part) for part in _parts(v, count, dim)] for key, v in value.items()], strict=False)
        return [type(value)(p) for p in pairs]
    if isinstance(value, (tuple, list)) and value:
        rows = zip(*[_parts(v, count, dim) for v in value], strict=False)
        return [type(value)(*row) if hasattr(value, "_fields") else type(value)(row) for row in rows]
    return [value] * count


def gather(outputs: Sequence[Any], target_device: Any, dim: int = 0) -> Any:
    """Return the results of several devices as one: tensors are concatenated along `dim`.

    Tensors may be nested in tuples, lists and dicts, alike in all results; scalars become a vector.

    Raises RuntimeError for another device than the CPU.

    >>> import retrograd as rg
    >>> gather([(rg.zeros(1), rg.tensor(1.0)), (rg.ones(2), rg.tensor(2.0))], "cpu")
    (tensor([0., 1., 1.]), tensor([1., 2.]))
    """
    check_device(target_device)
    return _join(list(outputs), dim)


def _join(values: list[Any], dim: int) -> Any:
    first = values[0]
    if isinstance(first, Tensor):
        return registry["cat" if first.ndim else "stack"](values, dim)
    if isinstance(first, dict):
        return type(first)((key, _join([v[key] for v in values], dim)) for key in first)
    if isinstance(first, (tuple, list)):
        joined = [_join(list(row), dim) for row in zip(*values, strict=True)]
        return type(first)(*joined) if hasattr(first, "_fields") else type(first)(joined)
    return first


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """Return the results of modules called with their inputs, one after the other: they share the one device.

    inputs: for each module its arguments, a tuple or one value.

    Raises ValueError unless all lists have the same length; RuntimeError for other devices than the CPU.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> parallel_apply([nn.Identity(), nn.ReLU()], [rg.ones(1), (-rg.ones(1),)])
    [tensor([1.]), tensor([0.])]
    """
    for where in devices or ():
        check_device(where)
    keywords = kwargs_tup or [{}] * len(modules)
    calls = zip(modules, inputs, keywords, devices or [None] * len(modules), strict=True)
    return [
        module(*(given if isinstance(given, (tuple, list)) else (given,)), **options)
        for module, given, options, _ in calls
    ]


suggest_in_module(globals())
