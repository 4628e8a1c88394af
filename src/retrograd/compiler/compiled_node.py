"""The node of a compiled call in the graph around: its backward pass runs by a program too."""

import sys
from typing import Any

from retrograd.backend import array_programs
from retrograd.compiler.backward_recording import Recording
from retrograd.compiler.graph_template import GraphTemplate
from retrograd.compiler.guards import Guards
from retrograd.compiler.output_tree import OutputTree
from retrograd.compiler.program import External, Slot
from retrograd.compiler.recorder import Recorder
from retrograd.compiler.split_call import HalfPrograms, SplitCall
from retrograd.core import Tensor, current
from retrograd.core.engine import pullback
from retrograd.core.graph import node, note_output, reserve_numbers, snapshot_of
from retrograd.core.record import saved_version
from retrograd.core.tensor import count_of, make, version_of
from retrograd.foundation.source_location import warn_user

_UNKNOWN = object()


class BackwardProgram:
    """A program for the backward pass of a call, the nodes that it replaces, and what users' Functions in it read."""

    __slots__ = ("guards", "nodes", "play")

    def __init__(self, play: Any, nodes: frozenset[int], guards: Guards) -> None:
        self.play, self.nodes, self.guards = play, nodes, guards


class CompiledGraph:
    """How a program connects its results to the graph, and the backward programs of its calls.

    A backward program is valid for the cotangents that arrive, by their strides, and for the edges that need one.
    """

    def __init__(self, template: GraphTemplate, name: str) -> None:
        self.template = template
        self._name = name
        self.programs: dict[Any, BackwardProgram | None] = {}  # None: this backward pass runs eagerly
        self.halves: dict[Any, HalfPrograms] = {}  # of backward passes in halves, by what runs in each

    def connect(self, tree: Any, outs: tuple, saved: tuple, owners: tuple, ends: tuple) -> Any:
        """Return the results of a call, after making the tensors `outs` among them the outputs of a new node.

        `saved` are the arrays and external tensors that the backward pass needs, `owners` the tensors whose version
        counters they share, and `ends` the tensors at the edges out of the graph.
        """
        call = CompiledCall(self, saved, owners)
        edges = tuple([t if t._grad_fn is None else t._grad_fn for t in ends])
        fn: Any = node(COMPILED, None, {"call": call}, edges, True)
        fn.sequence = reserve_numbers(self.template.span + 1)  # higher than those of the nodes inside
        if any(t._output_nr for t in ends):
            fn.numbers = tuple([t._output_nr for t in ends])
        if len(self.template.avals) == 1:
            note_output(fn, outs[0])
        else:
            fn.out_avals = tuple(self.template.avals)
        for out, number in zip(outs, self.template.number_of.values(), strict=True):
            out._grad_fn, out._output_nr, out._requires_grad = fn, number, True
        return tree

    def report(self, reason: str) -> None:
        """Warn that a backward pass runs eagerly."""
        warn_user(f"compile: a backward pass of {self._name} runs eagerly: {reason}")


class ConnectedTree:
    """The results of a call of which some require grad: they become the outputs of one node."""

    def __init__(self, results: OutputTree, graph: CompiledGraph, recorder: Recorder) -> None:
        self._results, self._graph = results, graph
        self._outs: list[Any] = [recorder.result_of(root) for root in results.roots]

    def slots(self) -> list[Slot]:
        """Return the slots that the results are made from, and those that the backward pass needs."""
        return self._results.slots() + self._graph.template.slots()

    def write(self, source: Any) -> str:
        """Return the expression of the result, which also connects it to the graph."""
        template = self._graph.template
        name = source.name_of
        saved = [f"a{int(s.source)}" if isinstance(s.source, Slot) else name(s.source) for s in template.saved]
        owners = ["None" if s.owner is None else name(s.owner) for s in template.saved]
        groups = [map(name, self._outs), saved, owners, map(name, template.ends)]
        tuples = [f"({''.join([f'{item}, ' for item in group])})" for group in groups]
        return f"{source.constant(self._graph.connect, 'f')}({self._results.write(source)}, {', '.join(tuples)})"


class CompiledCall:
    """The saved tensors of one call, for its backward pass, with their versions when the call ended."""

    __slots__ = ("_checked", "_graph", "_snapshots", "compiled", "counts", "freed", "is_expanded", "saved", "split",
                 "tensors")  # fmt: skip

    def __init__(self, compiled: CompiledGraph, saved: tuple, owners: tuple) -> None:
        self.compiled = compiled
        self.is_expanded = False
        self.split: SplitCall | None = None  # while a pass runs only a part of the call
        self.freed = compiled.template.freed  # the nodes whose saved values are freed
        self.tensors: list[Any] = []
        self.saved: list[Any] = []
        self.counts: list[int] = []
        self._checked: list[tuple] = []
        self._snapshots: list[Any] = []
        self._graph: tuple | None = None
        for entry, value, owner in zip(compiled.template.saved, saved, owners, strict=True):
            self._keep(entry, value, owner)

    def _keep(self, entry: Any, value: Any, owner: Any) -> None:
        t = value
        if not isinstance(entry.source, External):
            t = make(value, None, entry.tag)
            if owner is not None:
                t.version = version_of(owner)
        self.tensors.append(t)
        if entry.is_snapshot:
            snapshot = snapshot_of(t)
            self._snapshots.append(snapshot)
            self.saved.append(snapshot)
            self.counts.append(0)
            return
        self.saved.append(t)
        self.counts.append(saved_version(COMPILED, t))
        if entry.is_checked:
            self._checked.append((t, t.value, t._grad_fn, self.counts[-1]))

    def is_intact(self) -> bool:
        """Return whether the saved tensors are as they were."""
        for t, array, edge, count in self._checked:
            if t.value is not array or t._grad_fn is not edge or count_of(t) != count:
                return False
        return not any(s.version is None or s.is_overwritten() for s in self._snapshots)

    def free(self, nodes: frozenset[int]) -> None:
        """Note that a pass has freed the saved values of nodes."""
        self.freed |= nodes & self.compiled.template.saving
        if len(self.freed) == len(self.compiled.template.saving):
            self.tensors = self.saved = self._checked = self._snapshots = []

    def graph(self, fn: Any) -> tuple:
        """Return the nodes of the call, and those at the ends of the edges out of it; `fn` is the node of the whole."""
        if self._graph is None:
            template = self.compiled.template
            self._graph = template.make_graph(self.saved, self.counts, fn.edges, fn.numbers, fn.sequence - 1)
        nodes, _ = self._graph
        for i in self.freed:
            nodes[i].release()
        return self._graph

    def may_split(self, fn: Any) -> bool:
        """Return whether a backward pass in halves may run the call by parts: there is no code of users in it."""
        state = current()
        is_plain = fn._hooks is None and state.level is None and state.watchers is None
        ours = all(entry.fn.rules is not None for entry in self.compiled.template.nodes)
        return is_plain and ours and not self.is_expanded and not self.freed and self.is_intact()

    # -------------------------------------------------------------------------------------------- backward passes

    def expand(self, fn: Any, gs: tuple) -> list:
        """Let the node of the call lead to the nodes inside, in this pass and in later ones; return their cotangents.

        All of them then run in the order of an eager pass, with its errors, hooks and graphs of gradients.
        """
        run = current().running
        nodes, exits = self.graph(fn)
        if run.needed is not None:
            for inside in (*exits, *nodes):  # those at its edges come first
                if not run.needed.isdisjoint(inside.edges):
                    run.needed.add(inside)
        if run.reachable is not None:
            run.reachable.update(nodes, exits)
        self.lead_inside(fn)
        return list(gs)

    def lead_inside(self, fn: Any) -> None:
        """Let the edges of the node of the call be those of its results to the nodes inside."""
        nodes, _ = self.graph(fn)
        outputs = self.compiled.template.outputs
        fn.edges, fn.numbers = tuple([nodes[i] for i, _ in outputs]), tuple([number for _, number in outputs])
        self.is_expanded = True
        self.tensors = self.saved = self._checked = self._snapshots = []

    def run_nodes(self, fn: Any, gs: tuple, needs: list[bool]) -> list:
        """Return the cotangents at the edges by a pass over the nodes inside."""
        state = current()
        nodes, exits = self.graph(fn)
        outputs = self.compiled.template.outputs
        pairs = [((nodes[i], number), g) for (i, number), g in zip(outputs, gs, strict=True) if g is not None]
        found = pullback(
            [root for root, _ in pairs],
            [g for _, g in pairs],
            level=state.level,
            inputs=[(end, 0) for end, need in zip(exits, needs, strict=True) if need],
            retain_graph=state.running.retain,
        )
        self.free(frozenset([i for i, made in enumerate(nodes) if made.freed]))
        return [found.get((end, 0)) for end in exits]

    def capture(self, fn: Any, gs: tuple, needs: list[bool], key: Any) -> list:
        """Return the cotangents at the edges, and record the pass as a program for the same case."""
        nodes = self.graph(fn)[0]
        recording = Recording(gs, self.tensors, nodes)
        found = recording.run(lambda seeds: self.run_nodes(fn, seeds, needs))
        numbers = [id(n) for n in nodes]
        ran = frozenset([numbers.index(i) for i in recording.recorder.ran if i in numbers])
        play = recording.player()
        self.compiled.programs[key] = None if play is None else BackwardProgram(play, ran, recording.guards)
        if play is None:
            self.compiled.report(recording.recorder.refusal)
        return found


class CompiledOperator:
    """The operator of the node of a compiled call."""

    name = "CompiledFunction"
    calls_user_code = False

    @staticmethod
    def begin_split(fn: Any, first: set, second: set) -> bool:
        """Let the next pass run what leads to the edges in `first`, and keep the rest for those in `second`.

        If that is not possible, let the node lead to the nodes inside, and return False.
        """
        call: CompiledCall = fn.params["call"]
        if call.may_split(fn):
            call.split = SplitCall(fn, first, second)
        elif not call.is_expanded:
            call.lead_inside(fn)
        return call.split is not None

    @staticmethod
    def end_split(fn: Any) -> Any:
        """Return the node for the rest of a call, with its cotangents; None if the pass did not reach the call."""
        call: CompiledCall = fn.params["call"]
        split, call.split = call.split, None
        return None if split is None else split.rest()

    @staticmethod
    def gradients(fn: Any, gs: tuple, needs: list[bool]) -> list:
        """Return the cotangent at each edge, None where none arrives."""
        call: CompiledCall = fn.params["call"]
        if call.is_expanded:
            return list(gs)
        if call.split is not None:
            return call.split.run_first(gs, _case(gs, needs))
        key = _case(gs, needs) if call.is_intact() else None
        if key is None or call.freed:
            return call.expand(fn, gs)
        program = call.compiled.programs.get(key, _UNKNOWN)
        if program is _UNKNOWN and sys.getprofile() is None:
            return call.capture(fn, gs, needs, key)
        if not isinstance(program, BackwardProgram) or not program.guards.hold():
            return call.expand(fn, gs)
        found: list = program.play(*[g for g in gs if g is not None], *call.tensors)
        if not current().running.retain:
            call.free(program.nodes)
        return found


COMPILED: Any = CompiledOperator()


def _case(gs: tuple, needs: list[bool]) -> Any:
    """Return the kind of backward pass, by which its program is found; None if only the nodes inside can run it."""
    state = current()
    if state.level is not None or state.grad_enabled or state.watchers is not None:
        return None
    layouts = []
    for g in gs:
        if g is not None and (g.level is not None or type(g) is not Tensor or not array_programs.is_plain(g.value)):
            return None
        layouts.append(None if g is None else (g.value.strides, g.value.dtype))
    return tuple(layouts), tuple(needs)
