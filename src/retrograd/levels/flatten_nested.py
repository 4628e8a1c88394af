"""Nested tensors as plain tensors with the same elements, for functions that work element by element."""

from collections.abc import Callable
from typing import Any

import optree

from retrograd.core import Tensor
from retrograd.core.op import compound

Unflatten = Callable[[Tensor, int], Tensor]  # (plain tensor, number of extra leading dimensions) -> tensor


def flatten_nested(x: Any) -> tuple[Any, Unflatten | None]:
    """Return the plain tensor with all elements of x and the function that rebuilds x; x and None if it is plain."""
    whole = compound(x) if isinstance(x, Tensor) else None
    return (x, None) if whole is None else whole.plain(x)


class NestedFlattener:
    """Wraps a function of pytrees of tensors as a function of plain tensors; `args` are its arguments flattened."""

    def __init__(self, name: str, func: Callable, args: tuple) -> None:
        self.__wrapped__ = func  # errors name it
        self.__qualname__ = getattr(func, "__qualname__", type(func).__name__)
        self._name = name
        # For each leaf: the shape, None for a Python value, and the function that rebuilds it.  A level keeps its
        # function for messages; if that kept tensors of the level, their graph would live until the garbage collector
        # runs.
        self._inputs: list[tuple[Any, Unflatten | None]] = []
        self._outputs: list[tuple[Any, Unflatten | None]] = []
        self.args: tuple = self._flatten_tree(args, self._inputs)

    def __call__(self, *args: Any) -> Any:
        if any(rebuilt for _, rebuilt in self._inputs):
            args = self._unflatten_tree(args)
        self._outputs = []
        return self._flatten_tree(self.__wrapped__(*args), self._outputs)

    def _unflatten_tree(self, args: Any) -> Any:
        leaves, spec = optree.tree_flatten(args)
        pairs = zip(leaves, self._inputs, strict=True)
        return optree.tree_unflatten(spec, [x if rebuilt is None else rebuilt(x, 0) for x, (_, rebuilt) in pairs])

    def _flatten_tree(self, tree: Any, found: list) -> Any:
        """Return the tree with plain tensors; append each leaf's shape and rebuilding function to `found`."""

        def flatten(leaf: Any) -> Any:
            x, rebuilt = flatten_nested(leaf)
            found.append((getattr(leaf, "shape", None), rebuilt))
            return x

        return optree.tree_map(flatten, tree)

    def check_jacobians(self) -> None:
        """Raise a RuntimeError if the Jacobian of some output with respect to some input has no shape."""
        for out, _ in filter(_is_compound, self._outputs):
            for x, _ in filter(_is_compound, self._inputs):
                raise RuntimeError(
                    f"{self._name}: the Jacobian of an output of shape {out} with respect to an input of shape "
                    f"{x} is no tensor; ask for that of each example, by vmap({self._name}(f), fallback='loop'), "
                    f"or of the plain tensors that hold the elements, .values()"
                )

    def jacobian(self, found: Tensor, output: int, argument: int) -> Tensor:
        """Return the Jacobian of an output with respect to an argument, from that of the plain tensors."""
        (out, first), (_, last) = self._outputs[output], self._inputs[argument]
        if last is not None:
            return last(found, len(out))
        return found if first is None else first(found, 0)


def _is_compound(entry: tuple[Any, Unflatten | None]) -> bool:
    return entry[1] is not None
