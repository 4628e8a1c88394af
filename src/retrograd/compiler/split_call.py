"""The halves of the backward pass of a compiled call: for the inputs first, for the weights later.

Each half is recorded when it first runs, over the nodes inside, and played in later steps. The first one returns the
cotangents at the border between the halves too, from which the second one starts.
"""

import sys
from collections.abc import Callable
from typing import Any

from retrograd.autograd.split_backward import run_first_half
from retrograd.backend import array_programs
from retrograd.compiler.backward_recording import Recording
from retrograd.core import Aval, current
from retrograd.core.engine import pullback
from retrograd.core.graph import Snapshot, node


class HalfPrograms:
    """The programs of both halves in one case; `reads` are the indices of saved tensors that the second one reads."""

    __slots__ = ("first", "is_refused", "reads", "second")

    def __init__(self) -> None:
        self.first: Callable | None = None
        self.second: Callable | None = None
        self.reads: frozenset[int] = frozenset()
        self.is_refused = False

    def player(self, recording: Recording, report: Callable[[str], None]) -> Callable | None:
        """Return the program of a recorded half; if there is none, warn, and note it."""
        play: Callable | None = recording.player()
        if play is None:
            self.is_refused = True
            report(recording.recorder.refusal)
        return play


class SplitCall:
    """One call whose backward pass runs in halves; `first` and `second` are the nodes and leaves of each half."""

    def __init__(self, fn: Any, first: set, second: set) -> None:
        self._fn, self._call = fn, fn.params["call"]
        self._of_first = tuple([edge in first for edge in fn.edges])
        self._of_second = tuple([edge in second for edge in fn.edges])
        self._programs: HalfPrograms | None = None  # None: no half has run
        self._starts: list[tuple[Any, int]] | None = None  # of the second half, unless its program runs
        self._exits: list[Any] = []
        self._cotangents: list[Any] = []
        self._saved: list[Any] = []  # of the second half's program: saved values with their versions

    def run_first(self, gs: tuple, case: Any) -> list:
        """Return the cotangents at the edges of the first half; `case` is the kind of pass, None if it is unusual."""
        call = self._call
        programs = HalfPrograms()
        if case is not None:
            programs = call.compiled.halves.setdefault((case, self._of_first, self._of_second), programs)
        self._programs = programs
        if programs.first is not None and programs.second is not None:
            found = programs.first(*[g for g in gs if g is not None], *call.tensors)
            pairs = enumerate(zip(call.saved, call.counts, strict=True))
            self._saved = [pair if i in programs.reads else None for i, pair in pairs]
        elif case is None or programs.is_refused or programs.first is not None or sys.getprofile() is not None:
            programs.is_refused |= case is None
            found = self._run_first_nodes(gs)
        else:
            recording = Recording(gs, call.tensors, call.graph(self._fn)[0])
            found = recording.run(self._run_first_nodes)
            programs.first = programs.player(recording, call.compiled.report)
        count = len(self._of_first)
        self._cotangents = _apart(found[count:], found[:count])
        if self._starts is not None:
            self._saved = call.tensors
        call.free(call.compiled.template.saving)
        return found[:count]

    def _run_first_nodes(self, gs: tuple) -> list:
        """Return the cotangents at all edges, None at those of the second half, and those from which that starts."""
        nodes, exits = self._call.graph(self._fn)
        self._exits = exits
        outputs = self._call.compiled.template.outputs
        pairs = [((nodes[i], number), g) for (i, number), g in zip(outputs, gs, strict=True) if g is not None]
        targets = [(end, 0) for end, need in zip(exits, self._of_first, strict=True) if need]
        leaves = [end for end, need in zip(exits, self._of_second, strict=True) if need]
        found, starts, _ = run_first_half([root for root, _ in pairs], [g for _, g in pairs], targets, leaves)
        at_targets = iter(found)
        given = [(end, number, g) for end, grads in starts for number, g in enumerate(grads) if g is not None]
        self._starts = [(end, number) for end, number, _ in given]
        return [next(at_targets) if need else None for need in self._of_first] + [g for *_, g in given]

    def rest(self) -> Any:
        """Return a node for the second half, and its cotangents; None if there is nothing to do."""
        if not self._cotangents:
            return None
        edges = tuple([edge if need else None for edge, need in zip(self._fn.edges, self._of_second, strict=True)])
        fn: Any = node(REST, None, {"split": self}, edges, True)
        fn.numbers, fn.sequence = self._fn.numbers, self._fn.sequence
        fn.out_avals = tuple([Aval(g.shape, g.dtype) for g in self._cotangents])
        cotangents, self._cotangents = tuple(self._cotangents), []
        return fn, cotangents

    def run_second(self, fn: Any, gs: tuple) -> list:
        """Return the cotangents at the edges of the second half."""
        programs: Any = self._programs
        if self._starts is None:
            saved = [None if pair is None else _restore(fn, *pair) for pair in self._saved]
            found: list = programs.second(*gs, *saved)
        elif programs.is_refused or programs.second is not None or sys.getprofile() is not None:
            found = self._run_second_nodes(gs)
        else:
            recording = Recording(gs, self._saved, [])
            found = recording.run(self._run_second_nodes)
            programs.second = programs.player(recording, self._call.compiled.report)
            programs.reads = recording.reads
        return found

    def _run_second_nodes(self, gs: tuple) -> list:
        state = current()
        inputs = [(end, 0) for end, need in zip(self._exits, self._of_second, strict=True) if need]
        roots: Any = self._starts
        found = pullback(roots, list(gs), level=state.level, inputs=inputs, retain_graph=state.running.retain)
        return [found.get((end, 0)) for end in self._exits]


class RestOperator:
    """The operator of the node that runs the second half of a compiled call."""

    name = "CompiledFunction"
    calls_user_code = False

    @staticmethod
    def gradients(fn: Any, gs: tuple, needs: list[bool]) -> list:
        """Return the cotangent at each edge that needs one."""
        found = fn.params["split"].run_second(fn, gs)
        return [g if need else None for g, need in zip(found, needs, strict=True)]


REST: Any = RestOperator()


def _apart(kept: list, returned: list) -> list:
    """Return cotangents, as copies where they share memory with those that a pass returns and may add to."""
    owners = {id(array_programs.owner(g.value)) for g in returned if g is not None}
    return [g.clone() if id(array_programs.owner(g.value)) in owners else g for g in kept]


def _restore(fn: Any, saved: Any, version: int) -> Any:
    """Return a saved tensor, after checking that it was not written to since the call."""
    if not isinstance(saved, Snapshot):
        fn.check(saved, version)
        return saved
    return fn.restore(saved, version)
