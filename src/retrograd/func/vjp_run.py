"""One run of a function at a level with its own graph: a tree of tensors in, and pullbacks of cotangents."""

from collections.abc import Callable, Sequence
from typing import Any

import optree

from retrograd.core import Tensor
from retrograd.levels import GradLevel, value_at
from retrograd.levels.grad import leaf_at, pull_cotangents
from retrograd.levels.sync_views import sync_views
from retrograd.ops.create import as_tensor


class VjpRun:
    """A function's run on a tree of leaves, with its graph; `convert(leaf)` makes each leaf a tensor."""

    def __init__(self, name: str, fun: Callable, x: Any, convert: Callable[[Any], Tensor] = as_tensor) -> None:
        self.name = name
        leaves, self.spec = optree.tree_flatten(x)
        values = [convert(leaf) for leaf in leaves]
        self.level = GradLevel(fun)
        with self.level:
            self.leaves = [leaf_at(self.level, value) for value in values]
            self.out = sync_views(fun(optree.tree_unflatten(self.spec, self.leaves)))
        self.outs = optree.tree_leaves(self.out)

    @property
    def value(self) -> Any:
        """The function's result, one level below."""
        return unwrap_tree(self.level, self.out)

    def pull(self, cotangents: Sequence[Tensor]) -> list[Tensor]:
        """Return the cotangents of the leaves from those of the outputs; zeros where nothing flows."""
        return pull_cotangents(self.level, self.outs, cotangents, self.leaves)

    def tree(self, leaves: Sequence[Any]) -> Any:
        """Return results, one for each leaf, in the structure of the argument."""
        return optree.tree_unflatten(self.spec, leaves)


def unwrap_tree(level: Any, tree: Any) -> Any:
    """Return a tree with the values of the level's tensors one level below."""
    return optree.tree_map(lambda leaf: value_at(level, leaf), tree)
