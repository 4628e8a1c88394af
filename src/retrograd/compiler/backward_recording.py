"""Recordings of backward passes over the nodes of one compiled call."""

import re
from collections.abc import Callable
from typing import Any

from retrograd.compiler import player
from retrograd.compiler.guards import Guards
from retrograd.compiler.output_tree import OutputTree
from retrograd.compiler.planning import plan_calls
from retrograd.compiler.program import without_dead_code
from retrograd.compiler.python_watch import PythonWatch
from retrograd.compiler.recorder import Recorder
from retrograd.compiler.simplification import simplify
from retrograd.compiler.specialization import specialize
from retrograd.compiler.surroundings import Surroundings
from retrograd.core.state import watching
from retrograd.core.tensor import make


class Recording:
    """A recorded pass over nodes of one call, from cotangents and saved tensors to cotangents."""

    def __init__(self, gs: tuple, saved: list[Any], nodes: list[Any]) -> None:
        self.recorder, self._surroundings = BackwardRecorder(), Surroundings()
        self._gs, self._seeds = gs, [None if g is None else make(g.value, None, g.tag) for g in gs]
        self._given = [t for t in (*self._seeds, *saved) if t is not None]
        self._count = len(saved)
        self._found: list[Any] = []
        self.reads: frozenset[int] = frozenset()  # the indices of the saved tensors that the program reads
        for t in self._given:
            self.recorder.slot_of_tensor(t)
        for n in nodes:
            if n.rules is None:
                for function in n.op.backward_functions():
                    self._surroundings.visit(function, "the backward pass", None)

    def run(self, function: Callable[[tuple], list]) -> list:
        """Return what a function of the cotangents returns, a list of cotangents."""
        with self.recorder, watching(self.recorder), PythonWatch(self.recorder, self._surroundings):
            self._found = function(tuple(self._seeds))
        self.recorder.refusal = self._surroundings.find_refusal() or self.recorder.refusal
        changed = self._surroundings.guards().find_change()
        if changed is not None:
            self.recorder.refuse(f"it changes {changed[0]}")
        pairs = [(g, s) for g, s in zip(self._gs, self._seeds, strict=True) if s is not None]
        return [next((g for g, s in pairs if s is t), t) for t in self._found]

    @property
    def guards(self) -> Guards:
        """The guards for what users' Functions in the pass read."""
        return self._surroundings.guards()

    def player(self) -> Any:
        """Return the function that plays the pass; None if the recorder has a reason against it."""
        source = None if self.recorder.refusal else _source(self.recorder, self._given, self._found)
        if source is None:
            return None
        first = len(self._given) - self._count
        self.reads = frozenset([i - first for i in map(int, re.findall(r"\bp(\d+)\b", source.body)) if i >= first])
        return player.function_of(source)


class BackwardRecorder(Recorder):
    """Records a backward pass over the nodes of one call, and which nodes ran."""

    def __init__(self) -> None:
        super().__init__()
        self.ran: set[int] = set()  # ids

    def run_node(self, proceed: Any, fn: Any, cotangents: Any) -> Any:
        """Note the node, and run it."""
        self.ran.add(id(fn))
        return proceed(fn, cotangents)


def _source(recorder: Recorder, given: list, found: list) -> Any:
    """Return the code that computes cotangents from the given tensors; None if the recorder refuses."""
    output = OutputTree(found, recorder, set())
    instructions = without_dead_code(recorder.instructions, output.slots())
    names = {id(t): f"p{i}" for i, t in enumerate(given)}
    source = player.Source(len(given), names)
    used = {slot for i in instructions for slot in player.makes_and_reads(i)} | set(output.slots())
    for external in recorder.externals.values():
        if id(external.tensor) not in names:
            recorder.refuse("a backward pass uses a tensor of unknown origin")
        elif external.slot in used:
            source.add(f"a{int(external.slot)} = {names[id(external.tensor)]}.value")
    if recorder.refusal:
        return None
    for instruction in instructions:
        instruction.backward = False  # the pass itself ignores the warnings of NumPy
    simple = simplify(instructions, recorder.layouts, recorder.memories, output.slots())
    source.load_constants(simple.constants)
    planned = plan_calls(simple.instructions, recorder.layouts, output.slots(), quiet=True)
    player.write_source(specialize(planned, recorder.layouts), source, output.write, output.slots())
    return source
