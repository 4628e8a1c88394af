"""One run of a function at a level of its own, with its graph: trees of tensors in, and cotangents back to them."""

from collections.abc import Callable, Sequence
from typing import Any

import optree

from retrograd.core import Tensor
from retrograd.levels import GradLevel, value_at
from retrograd.levels.grad import leaf_at, pulled_back
from retrograd.levels.sync_views import settled
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


def lowered(level: Any, tree: Any) -> Any:
    """A tree of anything, with the values of the level's tensors one level below."""
    return optree.tree_map(lambda leaf: value_at(level, leaf), tree)
