"""The example inputs of an export: tensors by name, and examples of other sizes."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import optree

from retrograd.core import Tensor, operator_named
from retrograd.export.dynamic_shapes import InputDim
from retrograd.nn.module import Module
from retrograd.ops.create import as_tensor

_select = operator_named("index_select")


class Example:
    """Arguments of a module or function."""

    def __init__(self, root: Any, args: tuple, kwargs: dict[str, Any]) -> None:
        function = root.forward if isinstance(root, Module) and not hasattr(root, "__signature__") else root
        self._bound = inspect.signature(function).bind(*args, **kwargs)
        self._bound.apply_defaults()

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments by name, including defaults."""
        return dict(self._bound.arguments)

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors in the arguments, by the names of their placeholders."""
        found = [pair for name, value in self._bound.arguments.items() for pair in named_leaves(name, value)]
        return {name: leaf for name, leaf in found if isinstance(leaf, Tensor)}

    def resized(self, sizes: Mapping[InputDim, int]) -> tuple[tuple, dict[str, Any]]:
        """Return the arguments with other sizes, filled with their own elements, repeated if necessary."""
        arguments = inspect.BoundArguments(self._bound.signature, type(self._bound.arguments)())
        for name, value in self._bound.arguments.items():
            spec = optree.tree_structure(value)
            leaves = [
                _resized(leaf, {p.dim: s for p, s in sizes.items() if p.input == full})
                for full, leaf in named_leaves(name, value)
            ]
            arguments.arguments[name] = optree.tree_unflatten(spec, leaves)
        return arguments.args, arguments.kwargs


def named_leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of an argument, with the names that `fx.trace` gives them."""
    paths, leaves, _ = optree.tree_flatten_with_path(value)
    return ((("_".join(map(str, (name, *path)))), leaf) for path, leaf in zip(paths, leaves, strict=True))


def _resized(x: Any, sizes: Mapping[int, int]) -> Any:
    for dim, size in sizes.items():
        if x.shape[dim] != size:
            x = _select(x, dim, as_tensor([i % x.shape[dim] for i in range(size)]))
    return x
