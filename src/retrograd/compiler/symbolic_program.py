"""Programs for sizes between those of captures, made without running the function (docs/decisions/0036)."""

from typing import Any

from retrograd.backend import array_programs
from retrograd.compiler.arguments import ArgumentGuards
from retrograd.compiler.capture import Program
from retrograd.compiler.copies import Memories
from retrograd.compiler.dynamic_sizes import Place
from retrograd.compiler.output_tree import ResultTree
from retrograd.compiler.program_parts import Parts, is_argument
from retrograd.compiler.size_template import MismatchError, SizeTemplate

FEWEST_EXAMPLES = 4  # for one varying size, and one more for each further one
MOST_EXAMPLES = 8  # that are kept; and if they have nothing in common, each size gets a capture
Symbol = tuple[int, ...]  # the sizes in the examples, which all dimensions have that vary together
Sizes = dict[Place, int]


class SymbolicProgram:
    """The captures of one kind, and the program that they have in common if they differ in numbers only.

    It serves sizes between the smallest and the largest captured one. Sizes below 2 are always captured, as they change
    how operators broadcast.
    """

    def __init__(self) -> None:
        self._examples: list[Program] = []
        self._common: _CommonProgram | None = None
        self._failures = 0

    def add(self, program: Program) -> None:
        """Take a captured program as a further example."""
        if not program.serves_sizes or self._failures >= MOST_EXAMPLES:
            return
        examples = _without_inner([*self._examples, program])
        try:
            common = _find_common_program(examples)
        except MismatchError:
            self._failures += 1
            if self._common is None:
                self._examples = examples
            return
        self._examples, self._common = examples, common or self._common

    def make(self, args: tuple, kwargs: dict[str, Any]) -> Program | None:
        """Return a program for a call whose guards hold; None if only a capture can make one for its sizes."""
        return None if self._common is None else self._common.make(ArgumentGuards(args, kwargs))


class _CommonProgram:
    """The program of several sizes: a template, and the sizes by which it is filled."""

    def __init__(self, examples: list[Program], symbols: dict[Place, Symbol]) -> None:
        _check_surroundings(examples)
        self._first, self._symbols = examples[0], symbols
        self._sizes = examples[0].arguments.sizes()
        points = [{str(symbol): symbol[k] for symbol in symbols.values()} for k in range(len(examples))]
        parts = [program.parts for program in examples]
        self._memories = _common_memories([p.memories for p in parts])
        structures = [(p.instructions, p.layouts, p.results.tree, p.results.leaves) for p in parts]
        self._template = SizeTemplate(structures, points, [p.names for p in parts])

    def make(self, arguments: ArgumentGuards) -> Program | None:
        """Return a program for arguments; None if their sizes or strides are others than those of the template."""
        point = self._point(arguments.sizes())
        if point is None:
            return None
        instructions, layouts, tree, leaves = self._template.at(point)
        old, results = self._first.parts, ResultTree(tree, leaves)
        parts = Parts(
            instructions, layouts, self._memories, results, old.grads, old.externals, old.names, old.objects,
            old.arguments,
        )  # fmt: skip
        return self._first.for_arguments(arguments, parts) if _have_layouts(arguments.tensors, parts) else None

    def _point(self, sizes: Sizes) -> dict[str, int] | None:
        """Return the sizes by symbol; None if they are not between those of the examples."""
        found: dict[Symbol, int] = {}
        for place, size in sizes.items():
            symbol = self._symbols.get(place, (self._sizes[place],))
            if not min(symbol) <= size <= max(symbol):
                return None
            found[symbol] = size
        return {str(symbol): size for symbol, size in found.items()}


def _find_common_program(examples: list[Program]) -> _CommonProgram | None:
    """Return the program that examples have in common; None if there are too few of them.

    Raises MismatchError if they have none.
    """
    sizes = [program.arguments.sizes() for program in examples]
    varying = [place for place in sizes[0] if len({s[place] for s in sizes}) > 1]
    usable = [i for i, s in enumerate(sizes) if all(s[place] > 1 for place in varying)]
    columns = {place: tuple([sizes[i][place] for i in usable]) for place in varying}
    symbols = {place: column for place, column in columns.items() if len(set(column)) > 1}
    if len(usable) < FEWEST_EXAMPLES + len({*symbols.values()}) - 1 or not all(map(_is_general, symbols.values())):
        return None
    if any(place.tensor is None for place in symbols):
        raise MismatchError("an integer among the arguments may be used in any way")
    return _CommonProgram([examples[i] for i in usable], symbols)


def _is_general(symbol: Symbol) -> bool:
    """Return whether examples have enough sizes, even and odd ones."""
    return len(set(symbol)) >= FEWEST_EXAMPLES and len({size % 2 for size in symbol}) == 2


def _without_inner(examples: list[Program]) -> list[Program]:
    """Return examples without one of those that are neither the smallest nor the largest, if there are too many."""
    if len(examples) <= MOST_EXAMPLES:
        return examples
    sizes = [program.arguments.sizes() for program in examples]
    values = {place: [s[place] for s in sizes] for place in sizes[0]}
    ends = {place: {min(column), max(column)} for place, column in values.items() if len({*column}) > 1}
    inner = [i for i, s in enumerate(sizes) if all(s[place] not in ends[place] for place in ends)]
    dropped = inner[0] if inner else 0
    return [*examples[:dropped], *examples[dropped + 1 :]]


def _check_surroundings(examples: list[Program]) -> None:
    """Raise MismatchError if programs differ in their guards, or in tensors from outside."""
    first = examples[0]
    for other in examples[1:]:
        if (first.parts.grads, first.parts.externals) != (other.parts.grads, other.parts.externals):
            raise MismatchError("tensors from outside differ")
        if [e.name for e in first.guards.entries] != [e.name for e in other.guards.entries]:
            raise MismatchError("other values are read")
        if [*map(id, first.tensors)] != [*map(id, other.tensors)]:
            raise MismatchError("other tensors are read")


def _common_memories(examples: list[Memories]) -> Memories:
    """Return the memories of arrays; None for an array whose kernel returns a view of its own result at some sizes."""
    first = examples[0]
    if any(memories.keys() != first.keys() for memories in examples):
        raise MismatchError("other arrays are made")
    found = {slot: {memories[slot] for memories in examples} for slot in first}
    if any(len(owners - {None}) > 1 for owners in found.values()):
        raise MismatchError("views are of other memory")
    return {slot: None if None in owners else first[slot] for slot, owners in found.items()}


def _have_layouts(tensors: list[Any], parts: Parts) -> bool:
    """Return whether the arguments have the layouts of the template."""
    return all(
        array_programs.layout(tensors[int(name[1:])].value) == parts.layouts[slot]
        for slot, name in parts.externals
        if is_argument(name)
    )
