"""Operands and results of control-flow operators: trees of tensors, and their checks."""

from collections.abc import Callable, Sequence
from typing import Any

import optree

from retrograd.backend.devices import move
from retrograd.core import Tensor, operator_named
from retrograd.core.level import graph_level
from retrograd.core.tensor import count_of
from retrograd.fx.tracer import TraceLevel
from retrograd.levels import VmapLevel
from retrograd.ops.create import as_tensor

_clone, _where = operator_named("clone"), operator_named("where")


def flatten(tree: Any) -> tuple[list, Any]:
    """Return the leaves of a tree, None among them, and its structure."""
    return optree.tree_flatten(tree, none_is_leaf=True)


def trace_level() -> TraceLevel | None:
    """Return the innermost level if it records a graph."""
    level = graph_level()
    return level if isinstance(level, TraceLevel) else None


def check_functions(names: str, *functions: Any) -> None:
    """Raise a RuntimeError unless all are callable."""
    if not all(callable(function) for function in functions):
        raise RuntimeError(f"Expect {names} to be callable.")


# ------------------------------------------------------------------------------- values that differ in a batch


def is_batched(x: Any) -> bool:
    """Return whether a tensor differs between the examples of a `vmap` at any level."""
    while isinstance(x, Tensor) and x.level is not None:
        if isinstance(x.level, VmapLevel) and x.tag is not None:
            return True
        x = x.value
    return False


def is_traced(x: Tensor) -> bool:
    """Return whether a tensor is computed in a trace at any level."""
    while x.level is not None:
        if x.level.traces:
            return True
        x = x.value
    return False


def read_examples(x: Tensor) -> Any:
    """Return the array of a tensor with the values of all examples, in host memory; traces below guard it."""
    while x.level is not None:
        x = x.value if isinstance(x.level, VmapLevel) else x.level.read(x)
    return move(x.value, None)


def select(mask: Tensor, chosen: Sequence[Any], others: Sequence[Any]) -> list:
    """Return the leaves chosen where the mask holds, and the others elsewhere."""
    mask = mask.reshape(()) != 0
    return [a if a is b else _where(mask, as_tensor(a), as_tensor(b)) for a, b in zip(chosen, others, strict=True)]


# --------------------------------------------------------------------------------------------------- checks


def check_same_avals(names: tuple[str, str], left: Sequence[Any], right: Sequence[Any], prefix: str = "") -> None:
    """Raise a RuntimeError unless two lists have as many leaves, of equal shapes and dtypes."""
    expected = f"{prefix}Expected {names[0]} and {names[1]} to have same"
    if len(left) != len(right):
        raise RuntimeError(f"{expected} number of outputs but got lhs:{len(left)} and rhs:{len(right)}")
    faults = [
        f"pair[{i}] differ in {fault}"
        for i, pair in enumerate(zip(left, right, strict=True))
        for fault in _differences(*pair)
    ]
    if faults:
        raise RuntimeError("\n".join([f"{expected} metadata but found:", *faults]))


def _differences(a: Any, b: Any) -> list[str]:
    """Return the differences between the types of two leaves: tensors, avals or numbers."""
    u, v = getattr(a, "aval", a), getattr(b, "aval", b)
    if not (hasattr(u, "shape") and hasattr(v, "shape")):
        return [] if type(u) is type(v) else [f"'type: {type(a).__name__} vs {type(b).__name__}'"]
    pairs = {"shape": (u.shape, v.shape), "dtype": (u.dtype, v.dtype)}
    return [f"'{name}: {x} vs {y}'" for name, (x, y) in pairs.items() if x != y]


def call_without_writes(label: str, function: Callable, operands: Sequence[Any]) -> Any:
    """Return the result of a function of operands; raise a RuntimeError if it wrote to a tensor among them."""
    tensors = [leaf for leaf in flatten(tuple(operands))[0] if isinstance(leaf, Tensor)]
    versions = [count_of(x) for x in tensors]
    out = function(*operands)
    if [count_of(x) for x in tensors] != versions:
        raise RuntimeError(f"{label} might be modifying the input! It writes to an operand; write to a clone.")
    return out


def copy_aliases(results: Sequence[Any], operands: Sequence[Any]) -> list:
    """Return the results with copies in place of operands and of views of them."""
    known = {id(_owner(x)) for x in operands if isinstance(x, Tensor)}
    return [_clone(x) if isinstance(x, Tensor) and id(_owner(x)) in known else x for x in results]


def _owner(x: Tensor) -> Tensor:
    return x if x._base is None else x._base
