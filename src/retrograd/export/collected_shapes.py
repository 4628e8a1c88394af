"""Declarations of sizes that vary, by tensor or by further examples: both make the `dynamic_shapes` of `export`."""

from dataclasses import is_dataclass
from typing import Any

import optree

from retrograd.core import Tensor
from retrograd.export.dynamic_shapes import Dim
from retrograd.export.example_inputs import Example
from retrograd.export.program import ExportedProgram
from retrograd.nn.module import Module
from retrograd.utils import _pytree


class ShapesCollection:
    """Declarations by tensor, for `export(dynamic_shapes=)`: easier than by argument where arguments are nested.

    `shapes[tensor] = {0: Dim("n")}` declares the dimensions of one tensor of the example, and so does
    `shapes[tensor][0] = Dim("n")`. The other ones keep the example's sizes. Raises TypeError for other keys than
    tensors, and ValueError in `export` for a tensor that is not an argument.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> from retrograd.export import Dim, ShapesCollection, export
    >>> class Total(nn.Module):
    ...     def forward(self, data):
    ...         return data["x"].sum()
    >>> x, shapes = rg.ones(3), ShapesCollection()
    >>> shapes[x] = {0: Dim("n")}
    >>> export(Total(), ({"x": x},), dynamic_shapes=shapes).module()({"x": rg.ones(5)})
    tensor(5.)
    """

    def __init__(self) -> None:
        self._shapes: dict[int, tuple[Tensor, Any]] = {}  # with the tensors, whose ids no other ones may get

    def __setitem__(self, tensor: Tensor, shape: Any) -> None:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"ShapesCollection: expected a tensor of the example, got {type(tensor).__name__}")
        self._shapes[id(tensor)] = tensor, shape

    def __getitem__(self, tensor: Tensor) -> Any:
        if id(tensor) not in self._shapes:
            self[tensor] = {}
        return self._shapes[id(tensor)][1]

    def __len__(self) -> int:
        return len(self._shapes)

    def dynamic_shapes(self, m: Module, args: tuple, kwargs: dict[str, Any] | None = None) -> Any:
        """Return the declarations by argument of a module with these arguments."""
        arguments: Any = Example(m, args, kwargs or {}).arguments
        known = {id(leaf) for leaf in optree.tree_leaves(arguments)}
        for key, (tensor, shape) in self._shapes.items():
            if key not in known:
                raise ValueError(f"ShapesCollection: a tensor of shape {tensor.shape}, with {shape}, is no argument")
        found = {key: shape for key, (_, shape) in self._shapes.items()}
        return optree.tree_map(lambda leaf: found.get(id(leaf)), arguments)


class AdditionalInputs:
    """Further examples of the arguments, for `export(dynamic_shapes=)`: sizes that differ between examples vary.

    Raises ValueError in `export` for examples of another structure, or whose arguments other than tensors differ.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> from retrograd.export import AdditionalInputs, export
    >>> examples = AdditionalInputs()
    >>> examples.add((rg.ones(4, 2),))
    >>> program = export(nn.Linear(2, 1), (rg.ones(3, 2),), dynamic_shapes=examples)
    >>> program.module()(rg.ones(7, 2)).shape
    (7, 1)
    """

    def __init__(self) -> None:
        self._examples: list[tuple[tuple, dict[str, Any]]] = []

    def add(self, args: tuple, kwargs: dict[str, Any] | None = None) -> None:
        """Add an example: a tuple of positional arguments, and keyword arguments."""
        if not isinstance(args, tuple):
            raise TypeError(f"AdditionalInputs: args must be a tuple of the arguments, got {type(args).__name__}")
        self._examples.append((args, kwargs or {}))

    def dynamic_shapes(self, m: Module, args: tuple, kwargs: dict[str, Any] | None = None) -> Any:
        """Return the declarations by argument: `Dim.DYNAMIC` where a size differs from that of another example."""
        examples: list[Any] = [Example(m, *each).arguments for each in ((args, kwargs or {}), *self._examples)]
        return optree.tree_map(_varying_sizes, *examples)

    def verify(self, ep: ExportedProgram) -> None:
        """Run a program on all examples, of which each raises what the program raises for it."""
        module = ep.module()
        for args, kwargs in self._examples:
            module(*args, **kwargs)


def _varying_sizes(first: Any, *others: Any) -> tuple | None:
    """Return the declaration for one leaf of several examples; None unless it is a tensor."""
    if not isinstance(first, Tensor):
        if any(other is not first and other != first for other in others):
            raise ValueError(f"AdditionalInputs: only sizes of tensors may differ, got {[first, *others]}")
        return None
    if any(not isinstance(other, Tensor) or other.ndim != first.ndim for other in others):
        raise ValueError(f"AdditionalInputs: the others must be tensors of {first.ndim} dimensions, got {others}")
    sizes = zip(*(x.shape for x in (first, *others)), strict=True)
    return tuple([Dim.DYNAMIC if len(set(each)) > 1 else None for each in sizes])


def register_dataclass(cls: type, *, serialized_type_name: str | None = None) -> None:
    """Let arguments and results of exported programs be instances of a dataclass; ValueError for another class.

    >>> import retrograd as rg
    >>> from dataclasses import dataclass
    >>> from retrograd import nn
    >>> from retrograd.export import export, register_dataclass
    >>> @dataclass
    ... class Pair:
    ...     x: rg.Tensor
    ...     y: rg.Tensor
    >>> register_dataclass(Pair)
    >>> class Swap(nn.Module):
    ...     def forward(self, pair):
    ...         return Pair(pair.y, pair.x)
    >>> module = export(Swap(), (Pair(rg.zeros(1), rg.ones(1)),)).module()
    >>> module(Pair(rg.zeros(1), rg.ones(1))).x
    tensor([1.])
    """
    if not is_dataclass(cls):
        raise ValueError(f"register_dataclass: only dataclasses can be registered, got {cls}")
    _pytree.register_dataclass(cls, serialized_type_name=serialized_type_name)
