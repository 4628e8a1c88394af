"""One run of a plain function at its own level: trees of arrays and numbers, and pullbacks of cotangents."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import optree

from retrograd.core import Tensor
from retrograd.core import dtype as dtypes
from retrograd.foundation.describe_value import describe
from retrograd.func.forward import run_dual
from retrograd.func.vjp_run import VjpRun, unwrap_tree
from retrograd.levels import value_at
from retrograd.levels.dual import tangent_of
from retrograd.ops.create import as_tensor

NUMBERS = (int, float, complex)  # Python's numbers; bool is a subclass of int


def has_tensor(*trees: Any) -> bool:
    """Return whether a leaf is a tensor: if so, results are tensors, else arrays."""
    together: Any = trees
    leaves: list = optree.tree_leaves(together)
    return any(isinstance(leaf, Tensor) for leaf in leaves)


def as_differentiable(name: str, x: Any) -> Tensor:
    """Return a leaf of an argument as a tensor that can require a gradient.

    Python's numbers are float64 or complex128, as in NumPy.  Integers and booleans, numbers and arrays, count as
    float64, as in HIPS autograd.
    """
    if hasattr(x, "dtype"):
        return as_tensor(x, None if dtypes.is_differentiable(x.dtype) else dtypes.float64)
    if not isinstance(x, NUMBERS):
        raise TypeError(
            f"{name}: can't differentiate with respect to {describe(x)}, which is no number or array; leave the "
            "argument out of argnum"
        )
    return as_tensor(x, dtypes.complex128 if isinstance(x, complex) else dtypes.float64)


def to_arrays(tensors: Sequence[Tensor], plain: bool) -> list:
    """Return tensors as arrays that share no memory, numbers as NumPy scalars; tensors in a graph as they are."""
    out: list = []
    roots: set[int] = set()
    for t in tensors:
        if not plain or t.level is not None or t.requires_grad:
            out.append(t)
            continue
        array = t.value
        root = id(array if array.base is None else array.base)
        shared = root in roots or not array.flags.writeable  # cotangents may share memory, or be expanded
        roots.add(root)
        out.append(array[()] if not array.ndim else array.copy() if shared else array)
    return out


def tree_to_arrays(tree: Any, plain: bool) -> Any:
    """Apply `to_arrays` to a tree."""
    return optree.tree_map(lambda x: to_arrays([x], plain)[0] if isinstance(x, Tensor) else x, tree)


def _is_differentiable_output(out: Any) -> bool:
    """Return whether a result is a floating number or an array; integers and booleans have no derivative."""
    if hasattr(out, "dtype"):
        return bool(out.shape) or dtypes.is_differentiable(out.dtype)
    return isinstance(out, (float, complex))


class ArrayVjpRun(VjpRun):
    """One run of a plain function of plain arrays."""

    def __init__(self, name: str, fun: Callable, x: Any) -> None:
        super().__init__(name, fun, x, partial(as_differentiable, name))

    def single_output(self) -> Tensor:
        """Return the function's only result as a tensor, one level below."""
        if len(self.outs) != 1 or not _is_differentiable_output(self.outs[0]):
            raise TypeError(f"{self.name}: the function must return one floating number or one array, got {self.out!r}")
        return as_differentiable(self.name, value_at(self.level, self.outs[0]))


def array_jvp(name: str, fun: Callable, x: Any, tangent: Any) -> tuple[Any, Any]:
    """Return the function's value and its derivative along a tangent, a tree like x; both one level below."""
    leaves, spec = optree.tree_flatten(x)
    tangents = optree.tree_leaves(tangent)
    if len(leaves) != len(tangents):
        raise ValueError(f"{name}: the tangent has {len(tangents)} leaves, the argument {len(leaves)}")
    primals = [as_differentiable(name, leaf) for leaf in leaves]
    fitted = [_check_tangent(name, t, primal) for t, primal in zip(tangents, primals, strict=True)]
    level, _, out = run_dual(fun, fun, spec, primals, fitted)
    return unwrap_tree(level, out), optree.tree_map(lambda o: tangent_of(level, as_tensor(o)), out)


def _check_tangent(name: str, t: Any, primal: Tensor) -> Tensor:
    """Return a tangent in the dtype of its primal."""
    tangent = as_tensor(t, primal.dtype)
    if tangent.shape != primal.shape:
        raise ValueError(f"{name}: a tangent has shape {tangent.shape}, its primal {primal.shape}")
    return tangent
