"""Before a function's results leave its level; apart from the rest, since optree takes a while to load."""

from typing import Any

import optree

from retrograd.core import Tensor
from retrograd.core.dispatch import sync_view


def settled(tree: Any) -> Any:
    """What a function returns, while its level is active: views take over what has been written to their bases."""
    for leaf in optree.tree_leaves(tree):
        if isinstance(leaf, Tensor) and leaf._view is not None:
            sync_view(leaf)
    return tree
