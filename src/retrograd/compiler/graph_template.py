"""The autograd graph that a captured call has made, as a template of which each later call can make its own.

A compiled call is one node of the graph around. The nodes inside are made only where a backward pass needs them.
"""

import weakref
from collections.abc import Callable
from typing import Any

from retrograd.autograd.function.context import FunctionCtx, context_like
from retrograd.compiler.plain_values import is_plain_value
from retrograd.compiler.program import External, Slot, result_slots
from retrograd.compiler.recorder import Recorder
from retrograd.core import Aval, Tensor
from retrograd.core.graph import PASS_ON, Snapshot, node, output_aval
from retrograd.core.tensor import alias, count_of


class SavedTemplate:
    """A tensor that nodes save: where each call finds it, and its position in the graph if the call has made it.

    `owner` is the result or external tensor whose version counter it shares; None if only the call can write to it.
    """

    __slots__ = ("edge", "is_snapshot", "number", "owner", "source", "tag")

    def __init__(self, source: Slot | External, owner: Any, value: Any, edge: int | None, number: int) -> None:
        self.source, self.owner = source, owner
        self.is_snapshot, self.tag = isinstance(value, Snapshot), value.tag
        self.edge, self.number = edge, number

    @property
    def is_checked(self) -> bool:
        """Whether the code around a call can write to it."""
        return self.owner is not None or isinstance(self.source, External)


class Ref(int):
    """The index of a saved tensor in the template."""

    __slots__ = ()


class NodeTemplate:
    """A node, with indices in place of other nodes and of tensors.

    An edge is the index of a node in the template, `-1 - i` for the i-th edge out of the graph, or None.
    """

    __slots__ = ("edges", "fn", "number", "outs", "saved")

    def __init__(self, fn: Any, edges: tuple, saved: tuple | None) -> None:
        self.edges, self.saved = edges, saved
        self.outs = fn.out_avals if fn.out_avals is not None else output_aval(fn, 0)
        self.number = 0  # the creation number within the graph
        self.fn: Any = self.make(fn, edges, None, None)  # its fields, without the tensors

    def make(self, like: Any, edges: tuple, saved: tuple | None, versions: tuple | None) -> Any:
        """Return a node of the same operator, with the given edges and saved values."""
        params = like.params
        if like.rules is None:  # of a user's Function or operator
            params = {"ctx": context_like(params["ctx"])}
        fn: Any = node(like.op, like.rules, params, edges, like.has_list_input)
        if like.rules is None:
            params["ctx"]._node = weakref.ref(fn)
        fn.numbers, fn.avals, fn.saved, fn.versions = like.numbers, like.avals, saved, versions
        if isinstance(self.outs, Aval):
            fn.out_kind = self.outs
        else:
            fn.out_avals = self.outs
        return fn


class GraphTemplate:
    """The nodes that a captured call has made, from the results that require grad to the edges out of the call.

    `outputs` has the index of the node and the output number of each such result, `ends` the external tensor at each
    edge out of the graph, in the order in which a backward pass delivers cotangents there. The recorder notes if there
    can be no template.
    """

    def __init__(self, roots: list[Tensor], recorder: Recorder) -> None:
        self._recorder, self._roots = recorder, roots
        self.nodes: list[NodeTemplate] = []
        self.saved: list[SavedTemplate] = []
        self.outputs: list[tuple[int, int]] = []
        self.avals: list[Aval] = []
        self.number_of: dict[int, int] = {}  # of the output that a result is, by the id of the result
        self._saved_indices: dict[int, Ref] = {}
        self._exits: list[tuple[int, int, External]] = []
        self._outer = self._find_outer_positions()
        found = _nodes_inside(roots, recorder.start)
        self._indices = {id(fn): index for index, fn in enumerate(found)}
        for fn in found:
            self._add_node(fn)
        self.ends = self._order_exits()
        self.span = self._count_numbers()
        for root in roots:
            self._add_output(root)
        self.saving = frozenset([i for i, entry in enumerate(self.nodes) if entry.saved is not None])
        self.freed = frozenset([i for i, fn in enumerate(found) if fn.freed])  # by a backward pass of the call itself

    def _find_outer_positions(self) -> dict[tuple[int, int], External]:
        """Return the tensors from outside that are part of a graph, by their positions."""
        found: dict[tuple[int, int], External] = {}
        for watched in self._recorder.watched.values():
            t = watched.tensor
            if t._grad_fn is not None:
                if (id(t._grad_fn), t._output_nr) in found:
                    self._recorder.refuse("two tensors from outside have the same position in a graph")
                found[id(t._grad_fn), t._output_nr] = self._recorder.external(t)
        return found

    def _add_output(self, root: Tensor) -> None:
        index = self._indices.get(id(root._grad_fn))
        if index is None:
            self._recorder.refuse("a result is a leaf, or has the position of a tensor from outside in a graph")
            return
        position = index, root._output_nr
        if position not in self.outputs:
            self.outputs.append(position)
            self.avals.append(output_aval(root._grad_fn, root._output_nr))
        self.number_of[id(root)] = self.outputs.index(position)

    # ------------------------------------------------------------------------------------------------- nodes

    def _add_node(self, fn: Any) -> None:
        if fn.rules is None:
            self._check_function(fn)
        if fn._hooks is not None:
            self._recorder.refuse("a result depends on a node with hooks")
        numbers = fn.numbers or (0,) * len(fn.edges)
        edges = tuple([self._edge(i, e, n) for i, (e, n) in enumerate(zip(fn.edges, numbers, strict=True))])
        saved = () if fn.freed else None if fn.saved is None else _map_saved(self._save, fn)
        self.nodes.append(NodeTemplate(fn, edges, saved))

    def _check_function(self, fn: Any) -> None:
        """Refuse a node of a user's Function or operator whose ctx has attributes that may differ between calls."""
        ctx = fn.params.get("ctx")
        if not isinstance(ctx, FunctionCtx):
            self._recorder.refuse(f"the backward pass of {fn.op.name} is a user's function")
            return
        for name, value in vars(ctx).items():
            if not hasattr(type(ctx), name) and not is_plain_value(value):
                self._recorder.refuse(
                    f"the ctx of {fn.op.name} has an attribute {name} of type {type(value).__name__}; save tensors by "
                    f"save_for_backward"
                )

    def _edge(self, i: int, edge: Any, number: int) -> int | None:
        if edge is None or id(edge) in self._indices:
            return None if edge is None else self._indices[id(edge)]
        external = self._outer.get((id(edge), number))
        if isinstance(edge, Tensor) and id(edge) in self._recorder.watched:
            external = self._recorder.external(edge)
        if external is None:
            self._recorder.refuse("a result depends on a leaf that the call has made, or on a graph of unknown origin")
            return None
        self._exits.append((len(self.nodes), i, external))
        return -len(self._exits)

    def _order_exits(self) -> list[External]:
        """Number the edges out of the graph in the order of a backward pass, the latest node first."""
        order = sorted(range(len(self._exits)), key=lambda i: (-self._exits[i][0], self._exits[i][1]))
        rank = {old: new for new, old in enumerate(order)}
        for entry in self.nodes:
            entry.edges = tuple([e if e is None or e >= 0 else -1 - rank[-1 - e] for e in entry.edges])
        return [self._exits[i][2] for i in order]

    def _count_numbers(self) -> int:
        """Give each node a creation number, with one before it for each of its edges out of the graph."""
        count = 0
        for entry in self.nodes:
            count += 1 + len([e for e in entry.edges if e is not None and e < 0])
            entry.number = count
        return count

    # ---------------------------------------------------------------------------------------- saved tensors

    def _save(self, value: Any, version: int) -> Any:
        """Return a saved value as the template keeps it."""
        if not isinstance(value, Tensor | Snapshot):
            if value is not None and type(value) not in (bool, int, float, complex):
                self._recorder.refuse(f"a node saves a {type(value).__name__}")
            return value
        found = self._saved_indices.get(id(value))
        if found is None:
            found = self._saved_indices[id(value)] = Ref(len(self.saved))
            self.saved.append(self._saved_template(value, version))
        return found

    def _saved_template(self, value: Any, version: int) -> SavedTemplate:
        recorder = self._recorder
        if isinstance(value, Snapshot):
            snapshot: Any = value
            edge, number = snapshot.edge, snapshot.number
            is_overwritten = snapshot.version is None or snapshot.is_overwritten()
        else:
            edge, number = value._grad_fn, value._output_nr
            is_overwritten = count_of(value) != version
        if is_overwritten:
            recorder.refuse("a value that a backward pass needs is overwritten")
        external = self._external_of(value)
        if external is not None:
            return SavedTemplate(external, None, value, None, 0)
        slot = recorder.slot_of_array(value.value)
        inside = None if edge is None else self._indices.get(id(edge))
        if slot is None or (edge is not None and inside is None):
            recorder.refuse("a node saves a tensor of unknown origin")
        return SavedTemplate(slot or Slot(0), self._owner_of(value), value, inside, number)

    def _external_of(self, value: Any) -> External | None:
        """Return the external tensor that a node saves; None if it saves another one."""
        for watched in self._recorder.watched.values():
            t = watched.tensor
            if t is value or (isinstance(value, Snapshot) and t.value is value.value and t.version is value.version):
                return self._recorder.external(t)
        return None

    def _owner_of(self, value: Any) -> Any:
        """Return the result or external tensor that shares the version counter of a saved tensor."""
        for root in self._roots:
            if root is value or (value.version is not None and root.version is value.version):
                return self._recorder.result_of(root)
        return None if value.version is None else self._recorder.known_with(value.version)

    def slots(self) -> list[Slot]:
        """Return the slots that a call keeps for its backward pass."""
        kept = [s.source for s in self.saved if isinstance(s.source, Slot)]
        return kept + [slot for s in self.saved for slot in result_slots(s.owner)]

    # --------------------------------------------------------------------------------------- making the graph

    def make_graph(self, saved: list, counts: list[int], edges: tuple, numbers: tuple | None, last: int) -> tuple:
        """Return the nodes of one call, and those at the ends of the edges out of its graph, where a pass can stop.

        `saved` are its saved tensors and snapshots, [] if all are freed, `counts` their versions, `edges` and `numbers`
        the edges out of the graph, and `last` the highest creation number in the graph.
        """
        tensors = [s if t.is_snapshot or isinstance(t.source, External) else alias(s, None)
                   for s, t in zip(saved, self.saved, strict=bool(saved))]  # fmt: skip
        get = tensors.__getitem__ if saved else lambda index: None
        nodes: list[Any] = []
        exits: list[Any] = [None] * len(edges)
        for entry in self.nodes:
            own, number = [], last - self.span + entry.number
            for edge in entry.edges:
                if edge is not None and edge < 0:
                    i = -1 - edge
                    made = _make_exit(edges[i], 0 if numbers is None else numbers[i], self.ends[i].tensor)
                    made.sequence = number = number - 1
                    exits[i] = made
                    own.append(made)
                else:
                    own.append(None if edge is None else nodes[edge])
            values = versions = None
            if entry.saved is not None:
                values, versions = _fill(entry.saved, get), _fill(entry.saved, counts.__getitem__, 0)
            fn = entry.make(entry.fn, tuple(own), values, versions)
            fn.sequence = last - self.span + entry.number
            if fn.numbers is not None:
                fn.numbers = tuple([0 if made in exits else n for n, made in zip(fn.numbers, own, strict=True)])
            nodes.append(fn)
        self._attach(tensors, nodes)
        return nodes, exits

    def _attach(self, tensors: list, nodes: list) -> None:
        """Give the saved tensors that the call has made their positions in the graph."""
        for t, entry in zip(tensors, self.saved, strict=bool(tensors)):
            if entry.edge is None:
                continue
            if entry.is_snapshot:
                t.edge, t.number = nodes[entry.edge], entry.number
            else:
                t._grad_fn, t._output_nr, t._requires_grad = nodes[entry.edge], entry.number, True


def _nodes_inside(roots: list[Tensor], start: int) -> list[Any]:
    """Return the nodes that were made after creation number `start`, in the order of their creation."""
    stack = [t._grad_fn for t in roots]
    found: dict[int, Any] = {}
    while stack:
        fn = stack.pop()
        if fn is None or isinstance(fn, Tensor) or fn.sequence <= start or id(fn) in found:
            continue
        found[id(fn)] = fn
        stack += fn.edges
    return sorted(found.values(), key=lambda fn: fn.sequence)


def _make_exit(edge: Any, number: int, like: Tensor) -> Any:
    """Return a node that passes its cotangent on along an edge."""
    fn: Any = node(PASS_ON, PASS_ON.rules, {}, (edge,), False)
    fn.out_kind = Aval(like.shape, like.dtype)
    if number:
        fn.numbers = (number,)
    return fn


def _map_saved(save: Callable, fn: Any) -> tuple:
    """Return what `save(value, version)` makes of the saved values of a node."""
    versions = fn.versions or (0,) * len(fn.saved)
    made = []
    for value, version in zip(fn.saved, versions, strict=True):
        if type(value) is tuple:
            each = version or (0,) * len(value)
            made.append(tuple([save(v, n) for v, n in zip(value, each, strict=True)]))
        else:
            made.append(save(value, version))
    return tuple(made)


_KEEP = object()


def _fill(saved: tuple, get: Callable, other: Any = _KEEP) -> tuple:
    """Return the saved values of a node, with `get(index)` for each tensor, and `other` or themselves for the rest."""
    return tuple([
        _fill(s, get, other) if type(s) is tuple else get(s) if type(s) is Ref else s if other is _KEEP else other
        for s in saved
    ])  # fmt: skip
