"""Synchronization of views before results leave their level; a separate module, because importing optree is slow."""

from typing import Any

import optree

from retrograd.core import Tensor
from retrograd.core.views import sync_view


def sync_views(tree: Any) -> Any:
    """Return a function's result with its views synchronized with their bases, while its level is active."""
    for leaf in (tree,) if isinstance(tree, Tensor) else optree.tree_leaves(tree):
        if isinstance(leaf, Tensor) and leaf._view is not None:
            sync_view(leaf)
    return tree
