"""NumPy's ufuncs on tensors, and their methods `reduce`, `accumulate`, `outer` and `at`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd.core import Operator, Tensor, registry
from retrograd.core.dtype import is_differentiable
from retrograd.interop.function_table import UFUNCS
from retrograd.interop.numpy_protocol import complex_order, ufunc_cache
from retrograd.interop.numpy_protocol.complex_order import real_or_complex
from retrograd.interop.numpy_protocol.products import matmul, matvec, vecdot, vecmat
from retrograd.interop.numpy_protocol.table import (
    DIRECT,
    NUMBERS,
    O,
    as_floating,
    cast,
    cast_safely,
    functions,
    operand,
    refuse,
    tensor,
    ufuncs,
    values,
    write_into,
)
from retrograd.ops.index import fill_slots, static_index

ufuncs |= {"matmul": matmul, "matvec": matvec, "vecdot": vecdot, "vecmat": vecmat}


def elementwise(operator: Callable) -> Callable:
    """Return the operator, extended to all operands that NumPy accepts."""
    inlined = not isinstance(operator, Operator) or operator.composite
    taken = {*NUMBERS, Tensor} if inlined else DIRECT

    def on_operands(*inputs: Any) -> Any:
        for x in inputs:
            if type(x) not in taken:
                break
        else:
            return operator(*inputs)
        if any(_answers_itself(x) for x in inputs):
            return NotImplemented
        return operator(*[x if type(x) in taken else operand(x) for x in inputs])

    return on_operands


def _answers_itself(x):
    """Whether an operand is of another library's class, which may implement the ufunc."""
    known = getattr(type(x), "__array_ufunc__", None)
    return known is not None and not isinstance(x, (Tensor, np.ndarray, np.generic))


def _ufunc(function: Callable) -> Callable:
    ufuncs[function.__name__] = elementwise(function)
    return function


ufuncs |= {name: elementwise(getattr(O, ours)) for name, ours in UFUNCS.items()}
for _name in ("fmax", "fmin", "greater", "greater_equal", "less", "less_equal", "maximum", "minimum"):
    ufuncs[_name] = real_or_complex(ufuncs[_name], getattr(complex_order, _name))


def _on_floats(name):
    """Let a function convert integers and booleans to floats, as NumPy's does."""
    of_floats = ufuncs[name]

    def function(*inputs: Any) -> Any:
        known = [x for x in inputs if hasattr(x, "dtype")]
        if any(is_differentiable(x.dtype) for x in known):
            return of_floats(*inputs)
        return of_floats(*[as_floating(x) if hasattr(x, "dtype") else x for x in inputs])

    ufuncs[name] = function


for _name in ("fabs", "frexp", "heaviside", "rint"):
    _on_floats(_name)


@_ufunc
def divmod(a, b):
    """The floor quotient and the remainder."""
    return O.floor_divide(a, b), O.remainder(a, b)


@_ufunc
def modf(x):
    """The fractional and the integer part of x, both with its sign."""
    x = as_floating(x)
    whole = O.trunc(x)
    return x - whole, whole


# --------------------------------------------------------------------------------------------- calls and methods

REDUCE = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
}
ACCUMULATE = {"add": "cumsum", "multiply": "cumprod", "maximum": "cummax", "minimum": "cummin"}


def apply(ufunc: np.ufunc, method: str, inputs: tuple, kwargs: dict) -> Any:
    """Implement `Tensor.__array_ufunc__`."""
    function = ufuncs.get(ufunc.__name__)
    if function is not None:
        ufunc_cache[ufunc] = function
    if any(_answers_itself(x) for x in inputs):
        return NotImplemented
    if method == "__call__" and function is not None:
        return _call(ufunc, function, inputs, **kwargs)
    if function is None or method not in _METHODS:
        named = ufunc.__name__ + ("" if method == "__call__" else f".{method}")
        refuse(named, "no counterpart for tensors; x.detach().numpy() leaves the graph for it")
    return _METHODS[method](ufunc, *inputs, **kwargs)


def _call(ufunc, function, inputs, out=None, where=True, dtype=None, casting=None, order=None, subok=None, **rest):
    """Run `ufunc(...)` with arguments; memory order and subclasses are ignored for tensors."""
    if rest:
        refuse(ufunc.__name__, f"{', '.join(rest)} not supported for tensors")
    if dtype is not None:
        inputs = [cast_safely(ufunc.__name__, x, dtype, casting) for x in inputs]
    result = function(*inputs)
    if where is not True:
        result = _only_where(ufunc, where, result, out)
    return result if out is None else _write_results(ufunc, out, result, inputs)


def _only_where(ufunc, where, result, out):
    """Return the result where the mask is true, elsewhere the values of `out`, or 0."""
    if isinstance(result, tuple):
        refuse(ufunc.__name__, "where= is not supported for several results")
    rest = out[0] if out is not None and isinstance(out[0], Tensor) else 0
    return O.where(tensor(where), result, rest)


def _write_results(ufunc, out, result, inputs):
    if not isinstance(result, tuple):
        return write_into(ufunc.__name__, out, result, inputs)
    pairs = zip(out, result, strict=True)
    return tuple([r if o is None else write_into(ufunc.__name__, o, r, inputs) for o, r in pairs])


def _reduce(ufunc, x, axis=0, dtype=None, out=None, keepdims=False, **initial_and_where):
    """Implement `ufunc.reduce`: along the first axis by default."""
    x = tensor(x) if dtype is None else cast(tensor(x), dtype)
    if ufunc.__name__ == "logaddexp" and not initial_and_where:
        result = O.logsumexp(x, axis, keepdims)
        return result if out is None else write_into("logaddexp.reduce", out, result, (x,))
    reducing = functions[_method_name(ufunc, "reduce", REDUCE)]
    return reducing(x, axis=axis, out=out, keepdims=keepdims, **initial_and_where)


def _accumulate(ufunc, x, axis=0, dtype=None, out=None):
    """Implement `ufunc.accumulate`: the cumulative reductions."""
    x = tensor(x) if dtype is None else cast(tensor(x), dtype)
    scan = {**ACCUMULATE, "logaddexp": "logcumsumexp"}
    result = getattr(O, _method_name(ufunc, "accumulate", scan))(x, axis)
    result = result[0] if isinstance(result, tuple) else result
    return result if out is None else write_into(f"{ufunc.__name__}.accumulate", out, result, (x,))


def _method_name(ufunc, method, known):
    if ufunc.__name__ not in known:
        refuse(f"{ufunc.__name__}.{method}", "no counterpart for tensors")
    return known[ufunc.__name__]


def _outer(ufunc, a, b, **kwargs):
    """Implement `ufunc.outer`: combine each element of a with each of b."""
    a, b = tensor(a), tensor(b)
    column = O.reshape(a, (*a.shape, *(1,) * b.ndim))
    return apply(ufunc, "__call__", (column, b), kwargs)


def _ufunc_at(ufunc, x, indices, *operands):
    """Implement `ufunc.at`: x changes in place; repeated indices accumulate.  Sums and differences only."""
    sign = {"add": 1, "subtract": -1}.get(ufunc.__name__)
    if sign is None:
        refuse(f"{ufunc.__name__}.at", "only add.at and subtract.at are there for tensors")
    if not isinstance(x, Tensor):
        refuse(f"{ufunc.__name__}.at", "an array can't take up a tensor without losing its gradient; use rg.tensor")
    spec, ids = static_index(x, indices if isinstance(indices, tuple) else (indices,))
    window = np.broadcast_to(False, x.shape)[fill_slots(spec, [values(i) for i in ids])].shape
    added = O.broadcast_to(cast(tensor(operands[0]), x.dtype), window)
    total = registry["index_put_sum"](added, ids, shape=x.shape, spec=spec)
    x.add_(total, alpha=sign)


_METHODS: dict[str, Callable] = {"reduce": _reduce, "accumulate": _accumulate, "outer": _outer, "at": _ufunc_at}
