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

from retrograd.core import parse
from retrograd.core.errors import OperandValueError
from retrograd.library import custom_ops
from retrograd.library.fake_context import get_ctx
from retrograd.library.operator import CustomOperator
from retrograd.library.schema import CustomSchema

RESERVED = ("prim", "prims", "aten", "at", "torch", "pytorch")  # PyTorch's namespaces
DEVICE_TYPES = ("cpu", "cuda")

__all__ = ["custom_op", "get_ctx", "impl", "impl_abstract", "impl_backward", "impl_save_for_backward"]


def custom_op(qualname: str, func_or_schema: Callable | str | None = None) -> Any:
    """Define an operator by a function that only has the signature, or by a schema; see `rg.library.custom_op`.

    With a schema, the result is None; otherwise this is a decorator, which returns the function.

    Raises ValueError for an overload, a reserved namespace, a function of another name, and an operator that writes to
    its arguments, returns views or nothing; RuntimeError for a second definition.
    """
    custom_ops.check_name(qualname)
    _check_name(qualname)
    if isinstance(func_or_schema, str):
        custom_ops.define_by_schema(qualname, _parse(qualname, func_or_schema))
        return None
    if func_or_schema is None:
        return functools.partial(custom_op, qualname)
    name = qualname.partition("::")[2]
    if func_or_schema.__name__ != name:
        raise ValueError(
            f"custom_op({qualname!r}, ...)(func): expected `func` to have name {name!r} but got "
            f"{func_or_schema.__name__!r}; rename one of them"
        )
    _check_functional(parse(custom_ops.infer_schema(func_or_schema, mutates_args=()), CustomSchema))
    custom_ops.custom_op(qualname, func_or_schema)
    return func_or_schema


class InvalidSchemaError(OperandValueError, AssertionError):
    """The error for a schema that can't be parsed; AssertionError in PyTorch."""


def _parse(qualname: str, text: str) -> CustomSchema:
    """Return the schema of a functional operator."""
    name = qualname.partition("::")[2]
    try:
        schema = parse(text, CustomSchema)
    except OperandValueError as error:
        if "!)" in text:
            raise _NotFunctionalError.of(f"{name}{text}") from None
        raise InvalidSchemaError(f"Invalid function schema: {name}{text}: {error}") from None
    _check_functional(schema.renamed(name))
    return schema


def _check_name(qualname: str) -> None:
    ns, _, name = qualname.partition("::")
    if "." in name:
        raise ValueError(
            f"custom_op: these functions do not handle overloads, that is names with '.', got {qualname}; use "
            "rg.library.custom_op"
        )
    if ns in RESERVED:
        raise ValueError(f"custom_op: {ns!r} is a reserved namespace, please choose something else")


class _NotFunctionalError(ValueError):
    """The error for an operator that is not a function of its arguments' values."""

    @classmethod
    def of(cls, schema: Any) -> "_NotFunctionalError":
        """Return the error for a schema."""
        return cls(
            "custom_op only supports functional operators: they write to no argument, return no view, and return "
            f"something; use rg.library.custom_op. Got the following non-functional schema: {schema}"
        )


def _check_functional(schema: CustomSchema) -> None:
    if schema.mutated or schema.aliases or schema.results == ():
        raise _NotFunctionalError.of(schema)


def _destroy(qualname: str) -> None:
    """Remove an operator."""
    custom_ops.unregister(custom_ops.find_operator(qualname))


def impl(qualname: str, *, device_types: str | Iterable[str] = ("cpu", "cuda"), func: Callable | None = None) -> Any:
    """Decorator: register the kernel for device types; for all, if the operator has no tensor arguments."""
    operator = custom_ops.find_operator(qualname)
    kinds = (device_types,) if isinstance(device_types, str) else tuple(device_types)
    for kind in kinds:
        _check_kind(operator, kind)
    return operator.impl(kinds, func) if operator.schema.inputs else operator.impl_factory(func)


def _check_kind(operator: CustomOperator, kind: str) -> None:
    """Raise for a device type without kernels, and for one that has a kernel already."""
    if kind not in DEVICE_TYPES:
        raise ValueError(f"impl(device_types=[{kind}, ...]): we only support device_type in {DEVICE_TYPES}")
    known = operator.registrations.kernels.get(kind) or operator.registrations.kernels.get("")
    known = known or operator.registrations.composite
    if known is not None:
        raise RuntimeError(
            f"impl(..., device_types={kind}): the operator {operator.name} already has an implementation for this "
            f"device type, that is registered already, at {known.location}"
        )


def impl_abstract(qualname: str, *, func: Callable | None = None) -> Any:
    """Decorator: register the function that returns the result's shape and dtype."""
    return custom_ops.find_operator(qualname).impl_abstract(func)


def impl_save_for_backward(qualname: str, *, func: Callable | None = None) -> Any:
    """Decorator: register `func(inputs, output)`, which returns the values that the gradient formula needs."""
    return _find_differentiable(qualname).impl_save_for_backward(func)


def impl_backward(
    qualname: str, output_differentiability: Sequence[bool] | None = None, *, func: Callable | None = None
) -> Any:
    """Decorator: register the gradient formula `func(ctx, saved, *grads)`, which returns a dict by argument name."""
    register = _find_differentiable(qualname).impl_backward(output_differentiability)
    return register if func is None else register(func)


def _find_differentiable(qualname: str) -> CustomOperator:
    """Return an operator that can have a gradient formula."""
    operator = custom_ops.find_operator(qualname)
    registrations = operator.registrations
    if operator.schema.view_of is not None:
        raise RuntimeError(
            f"{qualname}: cannot register a gradient formula for an operator that returns views by these functions; "
            "use rg.library.register_autograd"
        )
    if registrations.composite is not None:
        raise RuntimeError(
            f"{qualname}: the operator has a CompositeImplicitAutograd kernel, registered at "
            f"{registrations.composite.location}, so that the operators in it have the formulas"
        )
    if registrations.autograd is not None:
        raise RuntimeError(
            f"{qualname}: the operator has a kernel for one of the keys Autograd, AutogradCPU and AutogradCUDA, "
            f"registered at {registrations.autograd.location}; remove it, or don't register a formula"
        )
    return operator
