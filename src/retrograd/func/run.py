"""One run of a function at a level of its own, with its graph: trees of tensors in, and cotangents back to them."""

from collections.abc import Callable, Sequence
from typing import Any

import optree

from retrograd.core import Tensor, at, registry
from retrograd.core.engine import edge_of, pullback
from retrograd.core.tensor import make
from retrograd.levels import GradLevel, value_at
from retrograd.levels.settle import settled
from retrograd.ops.create import as_tensor


class Run:
    """A function that has run on a tree of leaves, with its graph; `convert(leaf)` makes a tensor of each."""

    def __init__(self, name: str, fun: Callable, x: Any, convert: Callable[[Any], Tensor] = as_tensor) -> None:
        self.name = name
        leaves, self.spec = optree.tree_flatten(x)
        values = [convert(leaf) for leaf in leaves]
        self.level = GradLevel(fun)
        with self.level:
            self.leaves = [leaf_at(self.level, value) for value in values]
            self.out = settled(fun(optree.tree_unflatten(self.spec, self.leaves)))
        self.outs = optree.tree_leaves(self.out)

    @property
    def value(self) -> Any:
        """What the function returned, as it is one level below."""
        return lowered(self.level, self.out)

    def pull(self, cotangents: Sequence[Tensor]) -> list[Tensor]:
        """Cotangents of the outputs, one for each, as those of the leaves; zeros where nothing flows."""
        return pulled_back(self.level, self.outs, cotangents, self.leaves)

    def tree(self, leaves: Sequence[Any]) -> Any:
        """Answers, one for each leaf, in the shape of the argument."""
        return optree.tree_unflatten(self.spec, leaves)


def leaf_at(level: GradLevel, value: Tensor) -> Tensor:
    """A leaf of the level's graph."""
    leaf = make(value, level, None)
    leaf.requires_grad = True
    return leaf


def lowered(level: Any, tree: Any) -> Any:
    """A tree of anything, with the values of the level's tensors one level below."""
    return optree.tree_map(lambda leaf: value_at(level, leaf), tree)


def pulled_back(level: GradLevel, outs: list, cotangents: Sequence[Tensor], leaves: list[Tensor]) -> list[Tensor]:
    """Cotangents of a level's outputs as those of its leaves, both one level below."""
    with level:
        reached = [isinstance(o, Tensor) and o.level is level and o._requires_grad for o in outs]
        roots = [edge_of(o) for o, r in zip(outs, reached, strict=True) if r]
        seeds = [make(g, level, None) for g, r in zip(cotangents, reached, strict=True) if r]
        found: dict = {}
        if roots:
            inputs = [edge_of(leaf) for leaf in leaves]
            found = pullback(roots, seeds, level=level, inputs=inputs, retain_graph=True)
        with at(level, False):
            return [value_at(level, found[x] if x in found else registry["zeros_like"](x)) for x in leaves]
