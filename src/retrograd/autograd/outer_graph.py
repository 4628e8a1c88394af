"""The graphs outside a transform that a backward pass inside it visits: their leaves and saved values."""

from collections.abc import Iterator
from typing import Any

from retrograd.core import GradFn, Level, Tensor
from retrograd.core.blocks import generator_block
from retrograd.core.engine import edge_of, needed_for, reachable_from
from retrograd.core.hooks import Hooks
from retrograd.core.level import graph_below
from retrograd.core.views import requires_grad_synced


class OuterGraph:
    """The nodes below a level that a pass from some tensors visits, up to some edges or to all leaves.

    `leaves` receive gradients, and so do `retained`, results that retain theirs. `has_hooks` says whether a hook runs
    in this pass. The saved values of the nodes are stored, so that the pass can be repeated after it has freed them.
    """

    def __init__(self, level: Level, roots: list[Tensor], ends: list | None) -> None:
        self.leaves: list[Tensor] = []
        self.retained: list[Tensor] = []
        self.has_hooks = False
        self._saved: list[tuple[GradFn, Any]] = []
        self._retaining: list[Hooks] = []
        below: Level | None = level
        while below is not None:
            roots = [lower for root in roots for lower in _tensors_below(below, root)]
            below = graph_below(below)
            starts = [edge_of(r)[0] for r in roots if r.level is below and requires_grad_synced(r)]
            for node in reachable_from(starts) if ends is None else needed_for(starts, ends) & reachable_from(starts):
                self._visit(node)

    def _visit(self, node: Tensor | GradFn) -> None:
        hooks = node._hooks
        self.has_hooks = self.has_hooks or (hooks is not None and hooks.any())
        if isinstance(node, Tensor):
            self.leaves.append(node)
            return
        self._saved.append((node, node.saved))
        if hooks is not None and hooks.retaining:
            self._retaining.append(hooks)
            found = [reference() for reference, _ in hooks.retaining.values()]
            self.retained += [tensor for tensor in found if tensor is not None]

    @generator_block
    def restore_saved(self) -> Iterator[None]:
        """Return a block in which the nodes have their saved values, and a pass sets no retained gradients."""
        freed = [(node, saved) for node, saved in self._saved if node.freed and saved is not None]
        for node, saved in freed:
            node.saved, node.freed = saved, False
        retaining = [(hooks, hooks.retaining) for hooks in self._retaining]
        for hooks in self._retaining:
            hooks.retaining = {}
        try:
            yield
        finally:
            for node, _ in freed:
                node.saved, node.freed = None, True
            for hooks, known in retaining:
                hooks.retaining = known


def _tensors_below(level: Level, x: Tensor) -> list[Tensor]:
    """Return the value of a tensor one level below, and its tag if that is a tensor."""
    if x.level is not level:
        return [x]
    return [x.value, x.tag] if isinstance(x.tag, Tensor) else [x.value]
