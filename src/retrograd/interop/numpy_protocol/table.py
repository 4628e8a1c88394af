"""The table of NumPy functions on tensors by dotted name, and helpers of its functions."""

import sys
from collections.abc import Callable
from functools import wraps
from types import SimpleNamespace
from typing import Any

import numpy as np

from retrograd import ops
from retrograd.core import Tensor
from retrograd.core import dtype as dtypes
from retrograd.core.dtype import category
from retrograd.core.state import current
from retrograd.core.views import requires_grad_synced
from retrograd.ops.create import as_tensor
from retrograd.ops.family import cast_to
from retrograd.ops.methods import concrete

functions: dict[str, Callable] = {}  # "concatenate", "linalg.solve"
ufuncs: dict[str, Callable] = {}  # NumPy's and SciPy's ufuncs, by their `__name__`

_HOMES = ("fft", "linalg", "special")
O = SimpleNamespace(  # noqa: E741 (the operators, by their public names; `O.linalg.det`)
    **{home: SimpleNamespace(**ops.public(home)) for home in _HOMES},
    nn=SimpleNamespace(**ops.public("nn.functional")),
    **{name: member for name, member in ops.public().items() if name not in _HOMES},
)

SEQUENCES: Any = (list, tuple, type({}.values()))
NUMBERS = (bool, int, float, complex)
DIRECT = {*NUMBERS, np.ndarray, np.float64, np.float32, Tensor}  # passed to operators unchanged


def implements(*names: str, home: str = "") -> Callable[[Callable], Callable]:
    """Decorator: register a function on tensors for NumPy's functions of these names, by default its own."""

    def register(function: Callable) -> Callable:
        own = names or (f"{home}.{function.__name__}".lstrip("."),)
        code = function.__code__
        takes_out = "out" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        made = _support_out(own[0], function) if takes_out else function
        functions.update(dict.fromkeys(own, made))
        return function

    return register


def dotted_name(function: Callable) -> str:
    """Return the NumPy function of a name in the table: np.linalg.solve is "linalg.solve", also for an alias."""
    home = (getattr(function, "__module__", None) or "").removeprefix("numpy").lstrip(".")
    return f"{home}.{getattr(function, '__name__', '')}".lstrip(".")


def holds_tensor(value: Any) -> bool:
    """Whether a value is a tensor, or a list, tuple or dict that contains one."""
    if isinstance(value, SEQUENCES):
        return any(map(holds_tensor, value))
    return isinstance(value, Tensor)


# ------------------------------------------------------------------------------------------------ operands


def tensor(x: Any) -> Tensor:
    """Convert an array, number or nested list to a tensor, in NumPy's dtype; lists of tensors are stacked."""
    if isinstance(x, Tensor):
        return x
    if type(x) is np.ndarray:
        return as_tensor(x)
    if holds_tensor(x):
        return O.stack(list(promote_operands(*[tensor(member) for member in x])))
    return as_tensor(np.asarray(x))


def operand(x: Any) -> Any:
    """Return an operand of an elementwise operator; Python scalars stay, because they adapt to the other's dtype."""
    return x if type(x) in NUMBERS else tensor(x)


def promote_operands(*xs: Any) -> tuple[Tensor, ...]:
    """Return operands as tensors of the promoted dtype."""
    known = tuple([tensor(x) for x in xs])
    if len({x.dtype for x in known}) == 1:
        return known
    dtype = dtypes.result_type(*known)
    return tuple([cast(x, dtype) for x in known])


def as_floating(x: Any) -> Tensor:
    """Return an operand as a tensor of floating or complex dtype."""
    x = tensor(x)
    return cast(x, dtypes.float_of(x.dtype))


def cast(x: Tensor, dtype: Any) -> Tensor:
    """Return x in the dtype, by default its own."""
    return x if dtype is None else cast_to(x, np.dtype(dtype))


def cast_safely(name: str, x: Any, dtype: Any, casting: Any = "same_kind") -> Tensor:
    """Return x in a dtype that NumPy's rule `casting` permits, by default its own."""
    x, casting = tensor(x), casting or "same_kind"
    if dtype is not None and not np.can_cast(x.dtype, np.dtype(dtype), casting):
        raise TypeError(f"np.{name}: cannot cast {x.dtype} to {np.dtype(dtype)} with casting {casting!r}")
    return cast(x, dtype)


def values(x: Any) -> np.ndarray:
    """Return the plain values, for a query whose result has no derivative."""
    if isinstance(x, (list, tuple)):
        return np.asarray([values(member) for member in x]) if holds_tensor(x) else np.asarray(x)
    return concrete(x) if isinstance(x, Tensor) else x


def axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return the axes in `axis`, counted from the front; None means all."""
    if axis is None:
        return tuple(range(ndim))
    return np.lib.array_utils.normalize_axis_tuple(axis, ndim)


def over(operator: Callable, x: Tensor, axis: Any, keepdims: bool, dtype: Any = None, **params: Any) -> Tensor:
    """Reduce over axes (None: all); an empty tuple reduces over no axis, where operators reduce over all of them."""
    if dtype is not None:
        params["dtype"] = dtype
    if axis == ():
        return operator(O.unsqueeze(x, 0), (0,), **params)
    if axis is None and not keepdims:
        return operator(x, **params)
    return operator(x, (axis,) if type(axis) is int else axis, keepdim=keepdims, **params)


def prepend_number(x: Tensor, axis: int, first: Any) -> Tensor:
    """Return x with a number in front of the elements along an axis."""
    shape = tuple(1 if i == axis % x.ndim else n for i, n in enumerate(x.shape))
    return O.cat([O.full(shape, first, dtype=x.dtype), x], axis)


def rearrange(function: Callable, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Apply a function that only moves, repeats and drops elements, by applying it to their indices."""
    plain = {name: values(a) for name, a in kwargs.items()}
    places = function(np.arange(x.numel()).reshape(x.shape), *map(values, args), **plain)
    return O.reshape(x, (-1,))[places]


# ------------------------------------------------------------------------------------------------- out=, errors


def _support_out(name: str, function: Callable) -> Callable:
    """Return the function with support for `out=`, by name or position: a tensor that receives the result."""
    positional = function.__code__.co_varnames[: function.__code__.co_argcount]
    position = positional.index("out") if "out" in positional else sys.maxsize

    @wraps(function)
    def writing(*args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        if len(args) > position:
            out, args = args[position], (*args[:position], None, *args[position + 1 :])
        result = function(*args, **kwargs)
        return result if out is None else write_into(name, out, result, (*args, *kwargs.values()))

    return writing


def write_into(name: str, out: Any, result: Any, operands: tuple) -> Any:
    """Write the result of NumPy's function `name` into its `out=`, and return that."""
    target = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    if not isinstance(target, Tensor):
        raise TypeError(
            f"np.{name}: out= must be a tensor where an operand is one, got {type(target).__name__}, which would lose "
            f"the gradient; for `array += tensor` write `array = array + tensor`"
        )
    tensors = [a for a in (result, target, *operands) if isinstance(a, Tensor)]
    if current().grad_enabled and any(map(requires_grad_synced, tensors)):
        raise RuntimeError(
            f"np.{name}: out= takes no part in automatic differentiation, but an operand requires grad; "
            f"use x.copy_(result), or no_grad()"
        )
    if target.shape != result.shape:
        raise RuntimeError(f"np.{name}: out has shape {target.shape}, but the result has shape {result.shape}")
    if category(result.dtype) > category(target.dtype):
        raise RuntimeError(f"np.{name}: the result is {result.dtype}, which can't be written into out, {target.dtype}")
    return target.copy_(result)


def refuse(name: str, why: str) -> None:
    """Raise an error that names the NumPy function and the unsupported case."""
    raise TypeError(f"np.{name}: {why}")


def only_default(name: str, **given: Any) -> None:
    """Refuse arguments that have no counterpart: `name=(value, default)`."""
    for argument, (value, default) in given.items():
        if value is not default and (type(value) is not type(default) or value != default):
            shown = "a tensor" if holds_tensor(value) else repr(value)
            refuse(name, f"{argument}={shown} is not supported for tensors")
