"""Closure conversion: a function's tensors, its arguments and those that it reads from outside, as inputs.

A solver runs a function on plain arrays, and its derivative rules run it at other levels. So the tensors that the
function closes over must be inputs of the operator that the solver is: else their gradients would be lost silently.
"""

from collections.abc import Callable, Sequence
from typing import Any

import optree

from retrograd.core import Level, Op, Tensor, at, call, current, registry
from retrograd.core.dtype import float64, is_differentiable
from retrograd.core.tensor import make
from retrograd.core.views import requires_grad_synced
from retrograd.foundation.source_location import user_line
from retrograd.interop.numpy_protocol.table import cast, tensor
from retrograd.levels import VmapLevel, outputs, value_at
from retrograd.levels.sync_views import sync_views
from retrograd.levels.tangent_table import TangentTableLevel, forward_levels


class Closure:
    """Functions of x, with all other tensors that they read as an explicit list, `tensors`.

    `tensors` are the tensors in `args`, then those that the functions close over: tensors of a transform, tensors that
    require grad, and those with a tangent. Each function runs once, at the start, to find them.
    """

    def __init__(self, name: str, functions: Sequence[Callable], args: tuple, start: Tensor) -> None:
        tree: Any = args
        self.name = name
        self._functions = functions
        self._leaves, self._spec = optree.tree_flatten(tree, none_is_leaf=True)
        self._positions = [i for i, leaf in enumerate(self._leaves) if isinstance(leaf, Tensor)]
        self._tables = _tangent_tables()
        own = [self._leaves[i] for i in self._positions]
        self._outer = self._find_outer(own, start)
        self.tensors = [*own, *self._outer]

    def _find_outer(self, own: list[Tensor], start: Tensor) -> list[Tensor]:
        finder = _FindingLevel(self._functions[0], self._tables)
        x, *given = [example_of(t) for t in (start, *own)]
        with at(None, True):
            for function in self._functions:
                self._run(function, finder, x, given)
        return finder.found

    def __call__(self, index: int, x: Tensor, tensors: Sequence[Tensor]) -> Tensor:
        """Return the result of one of the functions at x, with these tensors in place of its own."""
        count = len(self._positions)
        if not self._outer:  # without a level, so that the function runs at full speed
            return self._check_unread(tensor(self._functions[index](x, *self._fill(tensors))), x, tensors)
        outer = {id(old): new for old, new in zip(self._outer, tensors[count:], strict=True)}
        level = _ReplacingLevel(self.name, self._functions[index], outer, self._tables)
        return self._run(self._functions[index], level, x, tensors[:count])

    def _run(self, function: Callable, level: "ClosureLevel", x: Tensor, own: Sequence[Tensor]) -> Tensor:
        with level:
            inside = [make(t, level, None) for t in (x, *own)]
            out = sync_views(tensor(function(inside[0], *self._fill(inside[1:]))))
        return level.lowered(out)

    def _fill(self, own: Sequence[Tensor]) -> tuple:
        leaves = list(self._leaves)
        for position, t in zip(self._positions, own, strict=False):
            leaves[position] = t
        filled: Any = optree.tree_unflatten(self._spec, leaves)
        return tuple(filled)

    def _check_unread(self, out: Tensor, *given: Any) -> Tensor:
        """Return the result, which on the ground must not require grad: its inputs do not."""
        if current().level is None and requires_grad_synced(out) and not _require_grad(given):
            raise unknown_tensor(self.name, out)
        return out


class ClosureLevel(Level):
    """Runs a function's operators one level below; `outside` decides about the tensors that it reads from outside."""

    own_mode = False
    tables: list[TangentTableLevel]  # of the program that the function was converted in

    def process(self, op: Op, args: tuple, params: dict) -> Any:
        """Run the operator on the values of the level's tensors and on those that replace outer ones."""
        below = tuple([self.lowered(a) if isinstance(a, Tensor) else a for a in args])
        return outputs(call(op, below, params), lambda o: make(o, self, None))

    def lowered(self, x: Tensor) -> Tensor:
        """Return a tensor one level below."""
        found: Tensor = x.value if x.level is self else self.outside(x)
        return found

    def outside(self, x: Tensor) -> Tensor:
        """Return the tensor to use for one from outside."""
        raise NotImplementedError


class _FindingLevel(ClosureLevel):
    """Collects the tensors from outside that have a derivative, and uses an example of each."""

    def __init__(self, function: Callable, tables: list[TangentTableLevel]) -> None:
        self.function = function
        self.found: list[Tensor] = []
        self._examples: dict[int, Tensor] = {}
        self.tables = tables

    def outside(self, x: Tensor) -> Tensor:
        if not _has_derivative(x, self.tables):
            return x
        if id(x) not in self._examples:
            self.found.append(x)
            self._examples[id(x)] = example_of(x)
        return self._examples[id(x)]


class _ReplacingLevel(ClosureLevel):
    """Replaces the tensors from outside that were found; another one that has a derivative is an error."""

    def __init__(self, name: str, function: Callable, outer: dict[int, Tensor], tables: list) -> None:
        self.function = function
        self._name = name
        self._outer = outer
        self.tables = tables

    def outside(self, x: Tensor) -> Tensor:
        found = self._outer.get(id(x))
        if found is not None:
            return found
        if _has_derivative(x, self.tables):
            raise unknown_tensor(self._name, x)
        return x


def unknown_tensor(name: str, x: Tensor) -> RuntimeError:
    """Return the error for a tensor that the function reads now, but did not read at the start."""
    return RuntimeError(
        f"{name}: at {user_line()} the function reads a tensor with a gradient, {x.aval}, that it did not read at the "
        f"start: its gradient would be lost. Pass the tensor in args=, or detach it"
    )


def _tangent_tables() -> list[TangentTableLevel]:
    """Return the active levels of dual tensors, those around the functions of outer solvers among them."""
    found, level = forward_levels(), current().level
    while level is not None:
        found += level.tables if isinstance(level, ClosureLevel) else []
        level = level.parent
    return found


def has_derivative(x: Tensor) -> bool:
    """Return whether a tensor belongs to a transform, requires grad, or has a tangent, at any active level."""
    return _has_derivative(x, _tangent_tables())


def _has_derivative(x: Tensor, tables: list[TangentTableLevel]) -> bool:
    """Return whether a tensor belongs to a transform, requires grad, or has a tangent."""
    return x.level is not None or requires_grad_synced(x) or any(t.tangent(x) is not None for t in tables)


def as_floats(x: Any) -> Tensor:
    """Return an operand as a floating or complex tensor; integers become float64, as in SciPy."""
    x = tensor(x)
    return x if is_differentiable(x.dtype) else cast(x, float64)


def example_of(x: Tensor) -> Tensor:
    """Return a plain tensor like x: its value, and under `vmap` that of the first example."""
    while x.level is not None:
        level = x.level
        with at(level.parent, False):
            x = _first_example(level, x) if isinstance(level, VmapLevel) and level.differs(x) else value_at(level, x)
    with at(None, False):
        return make(x.value, None, None)


def differs_between_examples(x: Tensor) -> bool:
    """Return whether x differs between the examples of a `vmap`."""
    while x.level is not None:
        level = x.level
        if isinstance(level, VmapLevel) and level.differs(x):
            return True
        with at(level.parent, False):
            x = value_at(level, x)
    return False


def _require_grad(given: tuple) -> bool:
    x, tensors = given
    return any(requires_grad_synced(t) for t in (x, *tensors))


def _first_example(level: VmapLevel, x: Tensor) -> Tensor:
    first: Tensor = x.value[0] if level.size else registry["zeros"](x.shape, dtype=x.dtype)
    return first
