"""Overrides: operands of other classes compute the result by `__tensor_function__`, and `out=` takes it."""

from numpy import ndarray

from retrograd.core.dtype import category
from retrograd.core.level import current
from retrograd.core.op import is_foreign
from retrograd.core.tensor import TensorBase
from retrograd.core.views import is_writable, requires_grad_synced


def call_override(op, args, params):
    """Let the foreign classes among the operands compute the result."""
    grouped = tuple(op.schema.group(args).values())
    return override_result(op, [a for a in args if is_foreign(a)], grouped, params)


def override_result(func, foreign, args, kwargs):
    """Return the first result that a foreign operand's class gives for `func`; a TypeError if none does."""
    types = tuple(dict.fromkeys(type(a) for a in foreign))
    for a in foreign:
        result = type(a).__tensor_function__(func, types, args, kwargs)
        if result is not NotImplemented:
            return result
    names = ", ".join(t.__name__ for t in types)
    raise TypeError(f"no implementation of {func.__name__} for {names}: __tensor_function__ returned NotImplemented")


def foreign_objects(value):
    """Return the objects with a `__tensor_function__` in a value for one of the params."""
    if isinstance(value, (tuple, list)):
        return [found for member in value for found in foreign_objects(member)]
    return [value] if is_foreign(value) else []


class ForeignParams:
    """An extra input of a call that has foreign objects among its params only: it lets these handle the call."""

    @classmethod
    def __tensor_function__(cls, func, types, args, kwargs):
        """Return the result that a foreign object among the params computes."""
        args = [tuple([m for m in a if type(m) is not cls]) if isinstance(a, tuple) else a for a in args]
        return override_result(
            func, [found for value in kwargs.values() for found in foreign_objects(value)], tuple(args), kwargs
        )


def write_out(op, args, kwargs):
    """Run `op(..., out=tensor)`: write the result into an existing tensor."""
    rest = dict(kwargs)
    out = rest.pop("out")
    outs = out if isinstance(out, (tuple, list)) else (out,)
    inputs, _ = op.schema.bind(args, rest)
    if current().grad_enabled and (op.differentiable or op.composite):
        for a in (*inputs, *outs):
            if isinstance(a, TensorBase) and requires_grad_synced(a):
                raise RuntimeError(
                    f"{op.name}: out= takes no part in automatic differentiation, but the argument of shape {a.shape} "
                    f"requires grad; use x.copy_(result), or no_grad()"
                )
    result = op(*args, **rest)
    results = result if isinstance(result, tuple) else (result,)
    if len(outs) != len(results):
        raise TypeError(f"{op.name}: out has {len(outs)} tensors, the result {len(results)}")
    for target, r in zip(outs, results, strict=True):
        if not isinstance(target, TensorBase):
            raise TypeError(f"{op.name}: out must be a Tensor, got {type(target).__name__}")
        if target.shape != r.shape:
            raise RuntimeError(f"{op.name}: out has shape {target.shape}, but the result has shape {r.shape}")
        if category(r.dtype) > category(target.dtype):
            raise RuntimeError(f"{op.name}: the result is {r.dtype}, which can't be written into out, {target.dtype}")
        if type(target.value) is ndarray and not is_writable(target):  # before another one is written
            raise RuntimeError(f"{op.name}: the memory of out is read-only, or its elements share it; clone it first")
    for target, r in zip(outs, results, strict=True):
        target.copy_(r)
    return out
