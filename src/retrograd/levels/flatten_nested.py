"""Tensors of compound arrays as plain ones that hold the same elements: for what goes element by element."""

from collections.abc import Callable
from typing import Any

import optree

from retrograd.core import Tensor
from retrograd.core.dispatch import compound

Rebuilt = Callable[[Tensor, int], Tensor]  # from a plain tensor, with so many dimensions in front of it


def as_plain(x: Any) -> tuple[Any, Rebuilt | None]:
    """The plain tensor with all elements of x, and what makes one like x of others; x and None if it is plain."""
    whole = compound(x) if isinstance(x, Tensor) else None
    return (x, None) if whole is None else whole.plain(x)


class NestedFlattener:
    """A function of pytrees of tensors as one of plain tensors: `args` are its arguments as such."""

    def __init__(self, name: str, func: Callable, args: tuple) -> None:
        self.__wrapped__ = func  # errors name it
        self.__qualname__ = getattr(func, "__qualname__", type(func).__name__)
        self._name = name
        self._inputs: list[tuple[Any, Rebuilt | None]] = []  # the leaves as they were given, and how to get there
        self._outputs: list[tuple[Any, Rebuilt | None]] = []
        self.args: tuple = self._taken_apart(args, self._inputs)

    def __call__(self, *args: Any) -> Any:
        if any(rebuilt for _, rebuilt in self._inputs):
            args = self._put_together(args)
        self._outputs = []
        return self._taken_apart(self.__wrapped__(*args), self._outputs)

    def _put_together(self, args: Any) -> Any:
        leaves, spec = optree.tree_flatten(args)
        pairs = zip(leaves, self._inputs, strict=True)
        return optree.tree_unflatten(spec, [x if rebuilt is None else rebuilt(x, 0) for x, (_, rebuilt) in pairs])

    def _taken_apart(self, tree: Any, found: list) -> Any:
        """The tree of plain tensors; the list gets what was there."""

        def plain(leaf: Any) -> Any:
            x, rebuilt = as_plain(leaf)
            found.append((leaf, rebuilt))
            return x

        return optree.tree_map(plain, tree)

    def check_jacobians(self) -> None:
        """A RuntimeError if there is an output whose Jacobian with respect to an input has no shape."""
        for out, _ in filter(_is_compound, self._outputs):
            for x, _ in filter(_is_compound, self._inputs):
                raise RuntimeError(
                    f"{self._name}: the Jacobian of an output of shape {out.shape} with respect to an input of shape "
                    f"{x.shape} is no tensor; ask for that of each example, by vmap({self._name}(f), fallback='loop'), "
                    f"or of the plain tensors that hold the elements, .values()"
                )

    def jacobian(self, found: Tensor, output: int, argument: int) -> Tensor:
        """The Jacobian of an output with respect to an argument, from that of the plain ones."""
        (_, first), (_, last) = self._outputs[output], self._inputs[argument]
        if last is not None:
            return last(found, self._ndim(output))
        return found if first is None else first(found, 0)

    def _ndim(self, output: int) -> int:
        ndim: int = self._outputs[output][0].ndim
        return ndim


def _is_compound(entry: tuple[Any, Rebuilt | None]) -> bool:
    return entry[1] is not None
