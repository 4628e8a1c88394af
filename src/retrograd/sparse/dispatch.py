"""Dispatch of operators on sparse tensors to operators on their values.

Rules are registered by name.  A composite operator without one is composed of others; any other operator is refused by
name: nothing makes a sparse tensor dense but `to_dense`.
"""

from collections.abc import Callable
from typing import Any

from retrograd.backend.sparse_array import Sparse, name_of_layout
from retrograd.core import Op, Tensor, current, registry
from retrograd.core.dispatch import seen_whole
from retrograd.core.dtype import promote
from retrograd.core.op import CompositeArray, composite_arrays
from retrograd.core.tensor import bump_version
from retrograd.core.views import leave_memory
from retrograd.levels.tangent_table import LevelOperator
from retrograd.ops import layout as layouts
from retrograd.ops.create import as_tensor
from retrograd.ops.mutate import check_write, is_recorded, write_into
from retrograd.sparse.primitives import Pattern, dense, is_sparse, pattern_of, unique_entries, values_of, wrap

Rule = Callable[[Op, tuple, dict], Any]

_rules: dict[str, Rule] = {}


def rule_for(*names: str) -> Callable[[Rule], Rule]:
    """Decorator: register a rule for operators of these names."""

    def register(rule: Rule) -> Rule:
        for name in names:
            assert name in registry, name
            assert name not in _rules, name
            _rules[name] = rule
        return rule

    return register


def refuse(name: str, x: Tensor, why: str = "") -> NotImplementedError:
    """Return the error for an operator that sparse tensors do not have."""
    backend = f"{name_of_layout(pattern_of(x).layout)}CPU"
    why = why or "sparse tensors have no such operator"
    return NotImplementedError(
        f"{name}: Could not run 'aten::{name}' with arguments from the '{backend}' backend: {why}, got a sparse tensor "
        f"of shape {x.shape}; x.to_dense() is dense"
    )


def layout_of(x: Tensor) -> layouts.layout:
    """Return the layout of a sparse tensor."""
    found: layouts.layout = getattr(layouts, pattern_of(x).layout)
    return found


class SparseTensors(CompositeArray):
    """The core's interface to sparse tensors."""

    complete = False

    def call(self, op: Op, args: tuple, params: dict) -> Any:
        """Run an operator by operators on the values; NotImplemented for the two primitives and composite ones."""
        if op.definition.accepts_nested or seen_whole():
            return NotImplemented
        rule = _on_values if issubclass(op.definition, LevelOperator) else _rules.get(op.name)
        out = NotImplemented if rule is None else self._run(rule, op, args, params)
        if out is NotImplemented and not op.composite:
            raise refuse(op.name, next(a for a in args if is_sparse(a)))
        return out

    def _run(self, rule: Rule, op: Op, args: tuple, params: dict) -> Any:
        """Apply a rule, which makes arrays of a pattern on the device of the values."""
        device = layouts.device_of_operands(args)
        if device is None or op.name == "to_device":
            return rule(op, args, params)
        with layouts.making_on(device):
            return rule(op, args, params)

    def plain(self, x: Tensor) -> tuple[Tensor, Callable[[Tensor, int], Tensor]]:
        """Return the values, and the function that makes a sparse tensor of others, with `front` more dimensions."""
        pattern = pattern_of(x)

        def rebuild(rows: Tensor, front: int) -> Tensor:
            whole, dense = pattern, rows.shape[front + pattern.lead :]
            for size in reversed(rows.shape[:front]):
                whole = whole.repeated(size)
            return wrap(rows.reshape(whole.values_shape(dense)) if front else rows, whole)

        return values_of(x), rebuild

    def numel(self, x: Tensor) -> int:
        """Return the number of elements, zeros included."""
        count = 1
        for size in x.shape:
            count *= size
        return count

    def layout(self, x: Tensor) -> layouts.layout:
        """Return the layout."""
        return layout_of(x)

    def values(self, x: Tensor) -> Tensor:
        """Return the values, with gradients; refuse entries that may repeat positions."""
        pattern = pattern_of(x)
        if not getattr(pattern, "coalesced", True):
            raise RuntimeError(
                "values: Cannot get values on an uncoalesced tensor, please call .coalesce() first; x._values() are "
                "those of all entries"
            )
        return values_of(x)

    def sparse_dim(self, x: Tensor) -> int:
        """Return the number of sparse dimensions."""
        pattern = pattern_of(x)
        return len(pattern.sizes) - len(getattr(pattern, "batch", ()))

    def dense_dim(self, x: Tensor) -> int:
        """Return the number of dense dimensions."""
        return x.ndim - len(pattern_of(x).sizes)

    def to_dense(self, x: Tensor, dtype: Any, masked_grad: bool) -> Tensor:
        """Return the dense tensor."""
        if dtype is not None:
            raise RuntimeError("to_dense: dtype argument is not supported by sparse_to_dense; convert with .to(dtype)")
        return _dense_of[0](x) if masked_grad else dense(x)

    def add_to(self, x: Tensor, other: Tensor, sign: int) -> bool:
        """Add the entries of a sparse tensor to a dense one of the same shape, which has at least its dtype."""
        if x.shape != other.shape or promote(x.dtype, other.dtype) != x.dtype:
            return False
        unique, rows = unique_entries(other)
        at = tuple(as_tensor(row) for row in unique.indices)
        x[at] = x[at] + (rows if sign > 0 else -rows)
        return True

    def write(self, name: str, x: Tensor, src: Any) -> Tensor:
        """Write a sparse tensor into x: into its values if the patterns agree, else with its pattern."""
        if name == "zero_" and not is_sparse(src):
            src = registry["zeros_like"](x)
        if not is_sparse(src):
            raise refuse(name, x, "only sparse tensors can be written into sparse ones")
        if src.shape != x.shape:
            raise RuntimeError(f"{name}: a sparse tensor of shape {src.shape} does not fit into one of {x.shape}")
        mine, its = pattern_of(x), pattern_of(src)
        if mine == its:
            write_into(name, values_of(x), values_of(src))
            return x
        return replace_entries(name, x, src, its)

    def write_item(self, x: Tensor, key: Any, value: Any) -> None:
        """Refuse x[key] = value."""
        raise TypeError(
            "x[...] = value: Cannot assign to a sparse tensor: it gets no entries by index; make another one"
        )


def replace_entries(name: str, x: Tensor, src: Tensor, pattern: Pattern) -> Tensor:
    """Give x the entries of another sparse tensor of its shape, and return x."""
    check_write(name, x, src)
    if x.level is not None or current().level is not None:
        raise RuntimeError(f"{name}: inside a transform a write can't change which entries a sparse tensor has")
    if is_recorded(x, src):
        raise RuntimeError(
            f"{name}: a recorded write can't change which entries a sparse tensor has, here of shape {x.shape}; use "
            f"the function that returns a new tensor"
        )
    leave_memory(x)
    x.value = Sparse(src.value.values.astype(x.dtype), pattern)
    bump_version(x)
    return x


def _on_values(op: Op, args: tuple, params: dict) -> Any:
    """Run an operator on the values of sparse tensors with one pattern."""
    pattern = pattern_of(next(a for a in args if is_sparse(a)))
    return wrap(op(*[values_of(a) if is_sparse(a) else a for a in args], **params), pattern)


rule_for("to_device")(_on_values)
_dense_of: list[Callable[[Tensor], Tensor]] = []  # the conversion, which is above this module
composite_arrays[Sparse] = SparseTensors()
