"""PyTorch's older functions for custom operators, `torch._custom_ops`; see `rg.library` for those to use.

An operator is defined by its signature, and its parts are registered by name.  A second registration of a part is a
RuntimeError, and so is a call that needs a gradient without a formula.

>>> import retrograd as rg
>>> from retrograd import _custom_ops
>>> @_custom_ops.custom_op("docs::shift")
... def shift(x: rg.Tensor, by: float) -> rg.Tensor: ...
>>> @_custom_ops.impl("docs::shift")
... def shift_cpu(x, by):
...     return rg.as_tensor(x.numpy() + by)
>>> rg.ops.docs.shift(rg.zeros(2), 1.0)
tensor([1., 1.])
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from retrograd.library import custom_ops
from retrograd.library.fake_context import get_ctx

__all__ = ["custom_op", "get_ctx", "impl", "impl_abstract", "impl_backward", "impl_save_for_backward"]


def custom_op(qualname: str, func_or_schema: Callable | str | None = None) -> Any:
    """Define an operator by a function that only has the signature, or by a schema; see `rg.library.custom_op`.

    With a schema, the result is None; otherwise this is a decorator, which returns the function.
    """
    if isinstance(func_or_schema, str):
        custom_ops.define_by_schema(qualname, func_or_schema)
        return None
    if func_or_schema is None:
        return functools.partial(custom_op, qualname)
    custom_ops.custom_op(qualname, func_or_schema)
    return func_or_schema


def impl(qualname: str, *, device_types: str | Iterable[str] = ("cpu", "cuda"), func: Callable | None = None) -> Any:
    """Decorator: register the kernel for device types; for all, if the operator has no tensor arguments."""
    operator = custom_ops.find_operator(qualname)
    if not operator.schema.inputs:
        return operator.impl_factory(func)
    return operator.impl(device_types if isinstance(device_types, str) else tuple(device_types), func)


def impl_abstract(qualname: str, *, func: Callable | None = None) -> Any:
    """Decorator: register the function that returns the result's shape and dtype."""
    return custom_ops.find_operator(qualname).impl_abstract(func)


def impl_save_for_backward(qualname: str, *, func: Callable | None = None) -> Any:
    """Decorator: register `func(inputs, output)`, which returns the values that the gradient formula needs."""
    return custom_ops.find_operator(qualname).impl_save_for_backward(func)


def impl_backward(
    qualname: str, output_differentiability: Sequence[bool] | None = None, *, func: Callable | None = None
) -> Any:
    """Decorator: register the gradient formula `func(ctx, saved, *grads)`, which returns a dict by argument name."""
    register = custom_ops.find_operator(qualname).impl_backward(output_differentiability)
    return register if func is None else register(func)
