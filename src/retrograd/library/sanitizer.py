"""Checks of custom kernels: no undeclared writes, and no results that share memory."""

from collections.abc import Callable, Iterator
from typing import Any

import optree

from retrograd import backend
from retrograd.core import Tensor
from retrograd.core.blocks import generator_block
from retrograd.core.tensor import make
from retrograd.foundation.describe_value import note_call
from retrograd.library.schema import CustomSchema

MAX_COPIED_BYTES = 2**14  # bytes: inputs up to this size are compared with copies


class _State:
    on = False


state = _State()


@generator_block
def sanitize(enabled: bool = True) -> Iterator[None]:
    """Context manager that makes inputs of custom kernels read-only; `sanitize(False)` disables that within it.

    Inputs that the schema marks as mutated may be written to.  A write to another one raises ValueError at the write
    (RuntimeError in a built-in operator).  A kernel that bypasses the flag raises RuntimeError at its end, but only for
    inputs up to 16 KiB.  A result that shares memory with an input or another result is always a RuntimeError.

    >>> import retrograd as rg
    >>> @rg.library.custom_op("docs::clip", mutates_args=())
    ... def clip(x: rg.Tensor) -> rg.Tensor:
    ...     x.numpy()[x.numpy() < 0] = 0
    ...     return x.clone()
    >>> with rg.library.sanitize():
    ...     clip(rg.ones(2))
    Traceback (most recent call last):
    ValueError: assignment destination is read-only
    docs::clip: its kernel writes to an argument that the schema does not mark as mutated; ...
    """
    before, state.on = state.on, enabled
    try:
        yield
    finally:
        state.on = before


def invoke(schema: CustomSchema, function: Callable, args: list, kwargs: dict) -> Any:
    """Call a kernel, with checks if they are on."""
    return _run_checked(schema, function, args, kwargs) if state.on else function(*args, **kwargs)


def _run_checked(schema: CustomSchema, function: Callable, args: list, kwargs: dict) -> Any:
    """Call a kernel with checks."""
    given = schema.given(args, kwargs)
    tensors = _named_tensors(given)
    before = [(where, t.value, _copy(t.value)) for where, t in tensors if where.partition("[")[0] not in schema.mutated]
    writable = (*schema.mutated, schema.view_of)  # the user may write to a view of its argument
    guarded = {n: v if n in writable else _read_only(v) for n, v in given.items()}
    try:
        result = function(*[guarded[p.name] for p in schema.by_position], **{k: guarded[k] for k in kwargs})
    except Exception as error:
        if not isinstance(error, ValueError | RuntimeError) or "read-only" not in str(error):
            note_call(error, f"the kernel of {schema.name}", [*given.values()])
        else:  # raised by NumPy or by a tensor
            error.add_note(
                f"{schema.name}: its kernel writes to an argument that the schema does not mark as mutated; name it in "
                f"mutates_args, or write to a copy"
            )
        raise
    _check_unchanged(schema, before)
    if schema.view_of is None:
        _check_memory(schema, tensors, result)
    return result


def check_memory(schema: CustomSchema, args: list, kwargs: dict, result: Any) -> None:
    """Raise if results of a kernel share memory with an input or with each other."""
    _check_memory(schema, _named_tensors(schema.given(args, kwargs)), result)


def _named_tensors(given: dict[str, Any]) -> list[tuple[str, Tensor]]:
    return [(where, t) for name, value in given.items() for where, t in _named_members(name, value)]


def _named_members(name: str, value: Any) -> list[tuple[str, Tensor]]:
    if isinstance(value, (list, tuple)):
        return [(f"{name}[{i}]", v) for i, v in enumerate(value) if isinstance(v, Tensor)]
    return [(name, value)] if isinstance(value, Tensor) else []


def _read_only(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)([_read_only(v) for v in value])
    return make(backend.read_only(value.value), None, None) if isinstance(value, Tensor) else value


def _copy(array: Any) -> bytes | None:
    """Return the bytes of a small array, to detect writes later."""
    return array.tobytes() if hasattr(array, "tobytes") and array.nbytes <= MAX_COPIED_BYTES else None


def _check_unchanged(schema: CustomSchema, before: list[tuple[str, Any, bytes | None]]) -> None:
    for where, array, entries in before:
        if entries is not None and entries != _copy(array):
            raise RuntimeError(
                f"{schema.name}: its kernel has written to the argument {where!r}, which the schema does not mark as "
                f"mutated; name it in mutates_args, or write to a copy"
            )


def _check_memory(schema: CustomSchema, tensors: list[tuple[str, Tensor]], result: Any) -> None:
    outs: list = [leaf for leaf in optree.tree_leaves(result) if isinstance(leaf, Tensor)]
    for i, out in enumerate(outs):
        for where, t in tensors:
            if backend.shares_memory(t.value, out.value):
                raise RuntimeError(
                    f"{schema.name}: the output of a custom operator may not alias any inputs or other returns: "
                    f"argument {where} is not defined to alias output, but a result of shape {out.shape} shows the "
                    f"memory of the argument {where!r}; return a copy, {where}.clone()"
                )
        if any(backend.shares_memory(other.value, out.value) for other in outs[:i]):
            raise RuntimeError(
                f"{schema.name}: the outputs of a custom operator may not alias any inputs or other returns: two "
                f"results show the same memory, the second of shape {out.shape}; return a copy, .clone()"
            )
