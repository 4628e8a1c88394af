"""The parts that the code of a program is written from, and the two ways to write it: planned, or call by call."""

from dataclasses import dataclass
from typing import Any

from retrograd.compiler import player
from retrograd.compiler.copies import Memories, without_copies
from retrograd.compiler.fusion import fuse
from retrograd.compiler.planned_update import plan_updates
from retrograd.compiler.planning import plan_calls
from retrograd.compiler.program import Instruction, Layouts, Slot
from retrograd.compiler.simplification import simplify
from retrograd.compiler.specialization import specialize


@dataclass(slots=True)
class Parts:
    """Instructions without dead code, how to make the result, and the names of the tensors from outside.

    `grads` are the names of tensors that others have as .grad, with the names of these, `externals` the slots of
    tensors from outside, with their names.
    """

    instructions: list[Instruction]
    layouts: Layouts
    memories: Memories
    results: Any  # a `ResultTree` or `ConnectedTree`
    grads: list[tuple[str, str]]
    externals: list[tuple[Slot, str]]
    names: dict[int, str]
    objects: dict[str, Any]
    arguments: int  # the number of tensors among the arguments

    @property
    def has_grads_of_arguments(self) -> bool:
        """Whether the program reads or writes the .grad of an argument."""
        return any(is_argument(owner) for _, owner in self.grads)

    def begin_source(self, literals: bool) -> player.Source:
        """Return the beginning of the code, which names arrays; `literals` tells whether the code contains numbers."""
        source = player.Source(self.arguments, self.names, literals)
        source.objects.update(self.objects)
        for name, owner in self.grads:
            source.add(f"{name} = {owner}._grad")
        for slot, name in self.externals:
            source.load(slot, f"{name}.value")
        return source


def is_argument(name: str) -> bool:
    """Return whether the name of a tensor is that of an argument."""
    return name.startswith("p")


@dataclass(slots=True)
class Written:
    """The code of a program: with fused groups, with calls that run as one, and how many calls were left out."""

    source: player.Source
    plan: list[Instruction]
    played: list[Instruction]
    merged: int = 0
    folded: int = 0


def write_planned(parts: Parts) -> Written:
    """Return the code that runs calls together, on memory that is planned."""
    source, wanted = parts.begin_source(True), parts.results.slots()
    simple = simplify(parts.instructions, parts.layouts, parts.memories, wanted)
    source.load_constants(simple.constants)
    plan = without_copies(fuse(simple.instructions, parts.layouts, wanted), parts.layouts, simple.memories, wanted)
    outside = [*[slot for slot, _ in parts.externals], *simple.constants]  # in memory anyway
    planned = plan_calls(plan, parts.layouts, [*wanted, *outside])
    played = plan_updates(specialize(planned, parts.layouts))
    player.write_source(played, source, parts.results.write, wanted)
    return Written(source, plan, played, simple.merged, simple.folded)


def write_one_by_one(parts: Parts) -> Written:
    """Return the code that runs the calls as they were recorded; it is the same text for all sizes."""
    source = parts.begin_source(False)
    player.write_source(parts.instructions, source, parts.results.write, parts.results.slots())
    return Written(source, parts.instructions, parts.instructions)
