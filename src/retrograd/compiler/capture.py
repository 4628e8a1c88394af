"""Capture: run a call once, record it, and make the program that can replace it."""

import copy
import types
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from retrograd.compiler import player
from retrograd.compiler.arguments import ArgumentGuards, difference
from retrograd.compiler.compiled_node import CompiledGraph, ConnectedTree
from retrograd.compiler.graph_breaks import Breaks
from retrograd.compiler.graph_template import GraphTemplate
from retrograd.compiler.guards import Entry, Guards
from retrograd.compiler.namespaces import MISSING
from retrograd.compiler.output_tree import OutputTree, ResultTree
from retrograd.compiler.plain_values import is_plain_value, is_same
from retrograd.compiler.program import Call, Instruction, Layouts, without_dead_code
from retrograd.compiler.program_parts import Parts, write_one_by_one, write_planned
from retrograd.compiler.python_watch import PythonWatch
from retrograd.compiler.recorder import Recorder
from retrograd.compiler.shared_memory import Relation, find_relations, relations_hold
from retrograd.compiler.state_updates import OwnContainers, StateUpdates, TreeWithState
from retrograd.compiler.surroundings import Surroundings
from retrograd.core import current
from retrograd.core.dtype import get_default_dtype
from retrograd.core.guards import GuardedCall, TensorGuard, all_hold
from retrograd.core.state import watching
from retrograd.foundation.source_location import describe_function, position_of
from retrograd.library.operator import CustomOperator


class Modes:
    """The modes of the thread and of the library that a program takes for granted."""

    __slots__ = ("dtype", "grad_enabled")

    def __init__(self) -> None:
        self.grad_enabled, self.dtype = current().grad_enabled, get_default_dtype()

    def hold(self) -> bool:
        """Return whether the modes are the same now."""
        return current().grad_enabled is self.grad_enabled and get_default_dtype() == self.dtype


class Program:
    """A compiled variant of a function: its guards, and the player."""

    def __init__(self, modes: Modes, arguments: ArgumentGuards, guards: Guards) -> None:
        self.modes = modes
        self.arguments = arguments
        self.guards = guards
        self.tensors: list[Any] = []  # from outside, apart from arguments
        self.tensor_guards: list[TensorGuard] = []
        self.parts: Any = None
        self.instructions: list[Instruction] = []  # as recorded
        self.layouts: Layouts = {}
        self.merged = self.folded = 0  # calls that equal others, and calls that became constants
        self.plan: list[Instruction] = []  # with fused groups
        self.played: list[Instruction] = []  # with calls that run as one
        self.graph: CompiledGraph | None = None  # of results that require grad
        self.source: Any = None
        self.play: Any = None
        self._guarded_call: Any = MISSING  # of the guards and `play`, once it was asked for
        self.timed: Any = None  # the `TimedPlayer`, once there is one
        self.kind: Any = None  # the `ProgramKind`
        self.serves_sizes = False  # whether programs for other sizes may be made from it
        self.is_planned = False
        self.is_made_from_others = False  # without a capture
        self.uses = 0  # calls that it has run
        self.state: list[Entry] = []  # outside, that calls replace: the values are further arguments
        self.sets_state = False  # outside
        self.own_containers: OwnContainers | None = None  # in the state, that calls change
        self._ids: frozenset[int] = frozenset()
        self._shared: list[int] = []
        self._relations: list[Relation] = []

    def guard_tensors(
        self, tensors: list[Any], guards: dict[int, TensorGuard], grads: dict[int, Any], left: dict[int, Any]
    ) -> None:
        """Take the tensors from outside, apart from arguments, with their guards.

        `grads` are their .grad before the call, `left` the arrays before it of those that have others after it.
        """
        self.tensors = tensors
        self.tensor_guards = [guards[id(t)] for t in tensors]
        self._ids = frozenset(id(t.value) for t in tensors if id(t) not in left)
        self._shared = self._ids_of_shared([left.get(id(t), t.value) for t in self.arguments.tensors])
        self._relations = find_relations(self.arguments.tensors, tensors, grads, left)

    def _find_shared(self, tensors: list[Any]) -> list[int]:
        """Return the ids of arrays of arguments that the function also reads from elsewhere, 0 for the others."""
        return self._ids_of_shared([t.value for t in tensors])

    def _ids_of_shared(self, arrays: list[Any]) -> list[int]:
        return [id(a) if id(a) in self._ids else 0 for a in arrays]

    def write(self, parts: Parts, is_planned: bool = True) -> None:
        """Write the code, planned or call by call."""
        written = write_planned(parts) if is_planned else write_one_by_one(parts)
        self.parts, self.instructions, self.layouts = parts, parts.instructions, parts.layouts
        self.source, self.plan, self.played = written.source, written.plan, written.played
        self.merged, self.folded, self.timed = written.merged, written.folded, None
        self.play, self.is_planned = player.function_of(written.source), is_planned
        self._guarded_call = MISSING

    def for_arguments(self, arguments: ArgumentGuards, parts: Parts) -> "Program":
        """Return a program with the same guards for arguments of other sizes; its calls run one by one at first."""
        arguments.keep_identities_of(self.arguments)
        made = Program(self.modes, arguments, self.guards)
        made.tensors, made.tensor_guards, made._ids = self.tensors, self.tensor_guards, self._ids
        made._shared, made._relations = self._shared, self._relations
        made.kind, made.is_made_from_others = self.kind, True
        made.write(parts, is_planned=False)
        return made

    def run(self, tensors: list[Any]) -> Any:
        """Run the program; errors of kernels are those of the operators."""
        try:
            return self.play(*tensors)
        except (ValueError, TypeError, IndexError, AttributeError) as error:
            player.explain_error(self.source, error)
            raise

    def match(self, args: tuple, kwargs: dict[str, Any]) -> list[Any] | None:
        """Return the tensors among the arguments if the program is for such a call; else None."""
        if not self.modes.hold():
            return None
        tensors = self.arguments.match(args, kwargs, self._state_values() if self.state else ())
        if tensors is None or not self.guards.hold() or (self._ids and self._find_shared(tensors) != self._shared):
            return None
        if self._relations and not relations_hold(self._relations, [*tensors, *self.tensors]):
            return None
        if self.own_containers and not self.own_containers.hold([*args, *kwargs.values(), *self._state_values()]):
            return None
        return tensors if all_hold(self.tensor_guards, self.tensors) else None

    def guarded_call(self) -> GuardedCall | None:
        """Return the guards and the player as one compiled function; None if arguments or tensors need more guards."""
        if self._guarded_call is MISSING:
            self._guarded_call = self._make_guarded_call()
        return self._guarded_call

    def _make_guarded_call(self) -> GuardedCall | None:
        patterns = self.arguments.flat_patterns()
        if patterns is None or self._relations or any(self._shared):
            return None
        explain = partial(player.explain_error, self.source)
        modes, tensors = (self.modes.grad_enabled, self.modes.dtype), (self.tensor_guards, self.tensors)
        return GuardedCall(
            self.play, explain, modes, patterns, *self.guards.parts(), tensors, self._ids, MISSING, is_same
        )

    def _state_values(self) -> Sequence[Any]:
        """Return the values of the state as they are now."""
        return [entry.now() for entry in self.state]

    def is_for_sizes(self, args: tuple, kwargs: dict[str, Any]) -> bool:
        """Return whether the program would be for a call if it were for other sizes, which its kind allows."""
        changes = self.arguments.size_changes(args, kwargs, self._state_values()) if self.modes.hold() else None
        if not changes or not self.kind.allows(changes):
            return False
        return self.guards.hold() and all_hold(self.tensor_guards, self.tensors)

    def without_surroundings(self, modes: Any) -> "Program":
        """Return the program with guards of arguments and tensors only, in other modes."""
        made = copy.copy(self)
        made.modes, made.guards, made._guarded_call = modes, Guards([]), MISSING
        return made

    def find_difference(self, args: tuple, kwargs: dict[str, Any]) -> str:
        """Return why the program is not for a call, in words."""
        if not self.modes.hold():
            return "the grad mode or the default dtype changed"
        state = {entry.name: entry.now() for entry in self.state}
        if self.arguments.match(args, kwargs, [*state.values()]) is None:
            return self.arguments.find_difference(args, kwargs, state)
        changed = self.guards.find_change()
        if changed is not None:
            name, before, now = changed
            return f"{name} changed from {_shown(before)} to {_shown(now)}"
        for guard, t in zip(self.tensor_guards, self.tensors, strict=True):
            if not guard.holds(t):
                return f"the {difference(guard, t)} of a tensor of shape {t.shape} that the function reads"
        return "nothing changed"


def _shown(value: Any) -> str:
    return repr(value) if is_plain_value(value) else f"a {type(value).__name__}"


class Capture:
    """One captured call: its result, and the program, or the reason why there is none."""

    def __init__(self, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> None:
        self.program: Program | None = None
        self.has_changes = False  # whether the call changes Python objects, and nothing else refuses it
        self.changes_objects = False  # whether it changes Python objects, or may do so
        self._updates: StateUpdates | None = None  # of state outside, by the program
        self.modes = Modes()
        self.arguments = ArgumentGuards(args, kwargs)
        self.recorder, self.surroundings = Recorder(), Surroundings()
        self.watch = PythonWatch(self.recorder, self.surroundings)
        self._begin(function)
        self._name = describe_function(function)
        with self.recorder, watching(self.recorder), self.watch:
            self.result = function(*args, **kwargs)
        self.refusal = self._find_refusal(args, kwargs)
        if not self.refusal:
            program = self._build()
            self.refusal = self.recorder.refusal
            self.program = None if self.refusal else program

    def _begin(self, function: Callable[..., Any]) -> None:
        """Note the function, and the objects and tensors among the arguments."""
        self.watch.note_before([function, *(value for _, value in self.arguments.objects)])
        self.surroundings.visit(function, "the function", None)
        for name, value in self.arguments.objects:
            self.surroundings.visit(value, name, None)
        for t in self.arguments.tensors:
            self.recorder.watch_tensor(t)
            self.surroundings.note_argument(t)
        self.watch.watch_tensors()

    def _find_refusal(self, args: tuple, kwargs: dict[str, Any]) -> str:
        """Return why no program can replace the call; "" if one can, as far as the instructions are concerned."""
        reads_unknown = self.surroundings.find_refusal([*args, *kwargs.values(), *self.arguments.containers])
        self.changes_objects = bool(reads_unknown)
        refusal = self.arguments.refusal or reads_unknown or self.recorder.refusal
        if refusal:
            return refusal
        self.recorder.record_replaced()
        self.recorder.check_changes()
        self.recorder.check_externals()
        if self.recorder.refusal:
            return self.recorder.refusal
        for instruction in self.recorder.instructions:
            if isinstance(instruction, Call) and isinstance(instruction.op, CustomOperator):
                self.surroundings.visit(instruction.op, "an operator", None)
        if not self.arguments.is_unchanged(args, kwargs):
            self.changes_objects = True
            return "the function changes a container among its arguments"
        return self._find_updates()

    def _find_updates(self) -> str:
        """Find what the call has replaced outside; return why no program can do the same, "" if one can."""
        guards = self.surroundings.guards()
        of_classes, other = self.surroundings.class_changes()
        changes = [*guards.changes(), *of_classes]
        self.has_changes = self.changes_objects = bool(changes or other)
        updates = StateUpdates(self.surroundings, changes) if changes else None
        if updates is not None and updates.refusal:
            return updates.refusal
        if other:
            return f"the function changes {other}"
        if updates is None:
            return ""
        self._updates = updates
        self.surroundings.replace_guards(updates.drops, updates.other_guards(), updates.of_classes())
        self.arguments.add_state(updates.input_values(), self.watch.tensor_guards)
        return self.arguments.refusal

    def breaks_in(self, code: types.CodeType | None) -> Breaks:
        """Return what a refused capture has found in a function of Python, by its code."""
        doubtful = self.watch.doubtful_calls if self.changes_objects else set()
        found = {instruction for caller, instruction in doubtful if caller is code}
        found |= self.recorder.refused_at.get(code, set())
        positions = {position_of(code, instruction) for instruction in found}
        refused = {position_of(code, instruction) for inside, instruction in self.recorder.refused_in if inside is code}
        lines = frozenset([line for line, *_ in refused])
        return Breaks(lines, frozenset(positions - refused), self.changes_objects, frozenset(refused))

    # ------------------------------------------------------------------------------------------ the program

    def _build(self) -> Program:
        """Return the program; the recorder notes if it cannot be made."""
        updates, self.recorder.varying = self._updates, self.arguments.tensors
        kept = {id(container) for container in self.arguments.containers} | self.surroundings.seen_ids()
        output: Any = OutputTree(self.result, self.recorder, kept, None if updates is None else updates.values())
        graph = None
        if output.roots and self.recorder.first_arrays:
            self.recorder.refuse("the code sets the data of a tensor, and returns a result that requires grad")
        if output.roots and not self.recorder.refusal:
            graph = CompiledGraph(GraphTemplate(output.roots, self.recorder), self._name)
            output = ConnectedTree(output, graph, self.recorder)
        if updates is not None:
            output = TreeWithState(output, updates.setter())
        instructions = without_dead_code(self.recorder.instructions, output.slots())
        if self.arguments.identities:
            self.arguments.keep_identities(self.surroundings.guards().ids())
        program = Program(self.modes, self.arguments, self.surroundings.guards())
        grads = {key: watched.first_grad for key, watched in self.recorder.watched.items()}
        program.guard_tensors(self._constants(), self.watch.tensor_guards, grads, self.recorder.first_arrays)
        program.graph = graph
        if updates is not None:
            program.state, program.sets_state, program.own_containers = updates.inputs, True, updates.own_containers()
        if not self.recorder.refusal:
            program.write(self._parts(instructions, output))
            if graph is None and updates is None:
                program.parts.results = ResultTree(output.tree, output.leaves)
                has_grads = program.parts.has_grads_of_arguments
                program.serves_sizes = not self.surroundings.reads_sizes and not has_grads
            else:
                program.parts = None  # neither programs for other sizes nor files are made from it
        return program

    def _constants(self) -> list[Any]:
        """Return the tensors from outside, apart from arguments, that are the same in all calls."""
        return [*self.surroundings.tensors.values()] if self._updates is None else self._updates.constants()

    def _parts(self, instructions: list[Instruction], results: Any) -> Parts:
        names, grads, objects = self._name_tensors()
        externals = [
            (e.slot, names[id(e.tensor)])
            for e in self.recorder.externals.values()
            if e.slot is not None and id(e.tensor) in names
        ]
        layouts, memories = self.recorder.layouts, self.recorder.memories
        count = len(self.arguments.tensors)
        return Parts(instructions, layouts, memories, results, grads, externals, names, objects, count)

    def _name_tensors(self) -> tuple[dict[int, str], list[tuple[str, str]], dict[str, Any]]:
        """Return the names of the tensors from outside, those of their .grad, and the named objects."""
        names: dict[int, str] = {}
        objects: dict[str, Any] = {}
        for i, t in enumerate(self._constants()):
            names[id(t)] = f"t{i}"
            objects[f"t{i}"] = t
        for i, t in reversed([*enumerate(self.arguments.tensors)]):  # of a repeated argument, the first one
            names[id(t)] = f"p{i}"
        grads: list[tuple[str, str]] = []
        for watched in self.recorder.watched.values():
            grad = watched.first_grad
            if grad is not None and id(grad) in self.recorder.externals and id(grad) not in names:
                names[id(grad)] = f"g{len(grads)}"
                grads.append((names[id(grad)], names[id(watched.tensor)]))
        self._name_forgotten(names)
        return names, grads, objects

    def _name_forgotten(self, names: dict[int, str]) -> None:
        """Name tensors in lists that grow by others with their version counters: no later call has the tensors."""
        named = [watched.tensor for key, watched in self.recorder.watched.items() if key in names]
        for key, external in self.recorder.externals.items():
            if key in names or self._updates is None or not self._updates.forgets(external.tensor):
                continue
            version = external.tensor.version
            owner = next((t for t in named if t.version is version and version is not None), None)
            if owner is None or external.slot is not None:
                self.recorder.refuse("the function uses a member of a list that it appends to")
                continue
            names[key] = names[id(owner)]
