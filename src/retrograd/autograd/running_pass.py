"""Questions about the backward pass that runs on this thread, as hooks may ask them."""

import weakref
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any

from retrograd.autograd.node_views import Node, as_node, record_of
from retrograd.core import Tensor, current
from retrograd.core.engine import BackwardPass, reachable_from

_numbers = count()
_known: weakref.WeakKeyDictionary[BackwardPass, int] = weakref.WeakKeyDictionary()


def graph_task_id() -> int:
    """Return the number of the running pass, one more than that of the one that asked before; -1 outside of passes."""
    run: Any = current().running
    if run is None:
        return -1
    if run not in _known:
        _known[run] = next(_numbers)
    return _known[run]


class OncePerPass:
    """Call a function when a backward pass first asks for it, and another one at the end of that pass.

    The other one is not called if the pass fails; then the next pass starts from the beginning.
    """

    def __init__(self, start: Callable[[], None], end: Callable[[], None]) -> None:
        self._start, self._end = start, end
        self._run: weakref.ref[BackwardPass] | None = None

    def enter(self) -> None:
        """Call the first function, unless the pass that has called it last still runs."""
        last = None if self._run is None else self._run()
        if last is None or last.callbacks is None:
            run = _running("OncePerPass.enter")
            self._run = weakref.ref(run)
            run.callbacks.append(self._end)
            self._start()


def will_execute(node: Node) -> bool:
    """Return whether the running pass executes a node.

    Raises RuntimeError for anything else than a node, outside of passes, and for the node of a leaf in `grad`.
    """
    if not isinstance(node, Node):
        raise RuntimeError(f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}")
    run = _running("_get_should_execute_nodes")
    edge = record_of(node)
    if isinstance(edge, Tensor) and run.accumulate is None:
        raise RuntimeError(
            "A leaf node was passed to _will_engine_execute_node but we are currently running autograd.grad(): it "
            "captures the gradients of leaves, and executes no nodes there"
        )
    return bool(run.will_run(edge))


def execution_order() -> list[Node]:
    """Return the nodes of the running pass in the order in which it executes them, which the graph decides.

    Raises RuntimeError outside of passes, and where multithreading is enabled, as in PyTorch.
    """
    run = _running("_current_graph_task_execution_order")
    if current().multithreading:
        raise RuntimeError(
            "get_current_graph_task_execution_order expects the current backward to be executed with multithreading "
            "disabled: run it in a block of autograd.set_multithreading_enabled(False)"
        )
    return [as_node(edge) for edge in _order(list(dict.fromkeys(run.roots)), run.needed)]


def _running(name: str) -> Any:
    run = current().running
    if run is None:
        raise RuntimeError(f"{name} should only be called during the backward pass")
    return run


def _order(roots: list, needed: Any) -> list:
    """Return nodes and leaves, each after all that lead to it: leaves as early as possible, else the latest node."""
    edges = {node: _edges(node, needed) for node in reachable_from(roots)}
    waiting: dict[Any, int] = {}
    for targets in edges.values():
        for target in targets:
            waiting[target] = waiting.get(target, 0) + 1
    ready: list[tuple[int, int, Any]] = []
    for root in roots:
        if root not in waiting:
            _push(ready, root)
    found = []
    while ready:
        node = heappop(ready)[2]
        found.append(node)
        for target in edges[node]:
            waiting[target] -= 1
            if waiting[target] == 0:
                _push(ready, target)
    return found


def _edges(node: Any, needed: Any) -> list:
    """Return what a node leads to, each as often as it does, as far as that is needed."""
    targets = () if isinstance(node, Tensor) else node.edges
    return [edge for edge in targets if edge is not None and (needed is None or edge in needed)]


def _push(ready: list, node: Any) -> None:
    heappush(ready, (-(2**64) if isinstance(node, Tensor) else -node.sequence, id(node), node))
