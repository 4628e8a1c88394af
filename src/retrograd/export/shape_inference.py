"""Infer how a program depends on sizes: trace it at several sizes, and compare the graphs."""

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import combinations
from typing import Any, NamedTuple

from retrograd.core import Op, Tensor
from retrograd.export.dynamic_shapes import Guard, Place, Range, Sizes
from retrograd.export.example_inputs import Example
from retrograd.export.passes import substituted
from retrograd.export.symbolic_expr import LARGEST_DIVISOR, Expression, Quotient, fit
from retrograd.export.trace_comparison import MismatchError, Note, compare, differ, leaves_of, numbered
from retrograd.export.traced_size import Comparison, Fixed, place_of, plain, seen
from retrograd.fx.graph import Graph
from retrograd.fx.graph_module import GraphModule
from retrograd.fx.node import Node, map_leaves
from retrograd.fx.tracer import Recording, TraceLevel, capture
from retrograd.ops.generator import fork_rng

AFFORDABLE = 1 << 18  # maximum elements of an input in a trial
BEYOND = (1, 2, 5, -1, -2, -5)  # distances from a guard's turning point at which the program is tried too
MOST_TRIALS = 32  # maximum trials for guards


class SizedTrace(TraceLevel):
    """A trace that records what the code asks about sizes."""

    def __init__(self, log: list, *parts: Any) -> None:
        super().__init__(*parts)
        self._log = log

    def shape(self, tensor: Tensor) -> tuple[int, ...]:
        """Return the shape that the user's code gets."""
        return seen(tensor.value.shape, self._log, place_of(sys._getframe(1)))

    def process(self, op: Op, args: tuple, params: dict) -> Any:
        """Record an operator, with plain sizes."""
        return super().process(op, tuple(map(plain, args)), map_leaves(params, plain))


class Trial(NamedTuple):
    """One trace: the sizes of the dimensions, the graph, and the recorded uses of sizes."""

    point: dict[str, int]
    recording: Recording
    asked: dict[tuple, Note]
    quotients: list[Quotient]


class Prober:
    """Traces a program at selected sizes, and infers how its graph depends on them.

    most: the number of trials at other sizes, apart from those for comparisons, if no more are needed; None: no limit.
    """

    def __init__(
        self,
        root: Any,
        example: Example,
        places: dict[Place, Expression],
        ranges: Mapping[str, Range],
        most: int | None = None,
    ) -> None:
        self._root = root
        self._example = example
        self._places = places
        self.ranges: dict[str, Range] = dict(ranges)
        self._trials: list[Trial] = []
        self._most = most

    def first(self) -> Recording:
        """Return the program as it runs at the example's own sizes."""
        if not self._trials:
            self._trials = [self._trace(self._starting_point())]
        return self._trials[0].recording

    def learn(self) -> tuple[GraphModule, Sizes]:
        """Return the program with its sizes computed where they vary, and the allowed sizes of its inputs."""
        base = self.first()
        for name in self.ranges:
            self._settle_least(name)
        for other in _plan(self._trials[0].point, self.ranges):
            if self._most is not None and len(self._trials) > self._most:
                break
            self._try(other)
        for name in self.ranges:
            self._resolve(name)
        guards = self._guards()
        sources = {name: (place, size) for place, size in reversed(self._places.items()) for name in size.dims}
        graph = substituted(base.graph, sources, self._expressions())
        self._note_sizes(graph)
        return base._replace(graph=graph).module(), Sizes(self._places, self.ranges, tuple(guards))

    # ---------------------------------------------------------------------------------------------- trials

    def _starting_point(self) -> dict[str, int]:
        tensors = self._example.tensors()
        try:
            point = Sizes(self._places, self.ranges).point(tensors)
        except ValueError as error:
            raise ValueError(f"export: {error}") from None
        for place in self._places:
            if not tensors[place.input].shape[place.dim]:
                raise ValueError(f"export: {place}: the example's size must not be 0 where it is to vary")
        return point

    def _trace(self, point: dict[str, int]) -> Trial:
        log: list = []
        args, kwargs = self._example.resized({place: size.at(point) for place, size in self._places.items()})
        with fork_rng():
            recording = capture(lambda *parts: SizedTrace(log, *parts), self._root, args, kwargs)
        end = recording.graph.output_node()
        end.args = map_leaves(end.args, plain)
        return Trial(point, recording, numbered(log), [note for note in log if isinstance(note, Quotient)])

    def _try(self, point: dict[str, int]) -> None:
        """Trace at these sizes too; ValueError if the program fails or behaves differently."""
        if any(trial.point == point for trial in self._trials) or not self._is_affordable(point):
            return
        try:
            self._add(point)
        except MismatchError as why:
            changed = {n: (self._trials[0].point[n], s) for n, s in point.items() if s != self._trials[0].point[n]}
            sizes = ", ".join(f"{n} = {new} (instead of {old})" for n, (old, new) in changed.items())
            cause = why.__cause__
            raise ValueError(
                f"export: with {sizes} the program does something else: {why}. Narrow the range of "
                f"{' and '.join(changed)}, e.g. Dim({next(iter(changed))!r}, min=..., max=...), give dimensions "
                f"that are always equal the same Dim, or keep the size of the example with Dim.STATIC."
            ) from cause

    def _add(self, point: dict[str, int]) -> None:
        try:
            trial = self._trace(point)
        except Exception as error:
            raise MismatchError(f"it fails with {type(error).__name__}: {error}") from error
        self._check_fixed(trial)
        compare(self._trials[0].recording, trial.recording)
        self._trials.append(trial)

    def _check_fixed(self, trial: Trial) -> None:
        """Raise ValueError if the program converted a varying size to a plain number."""
        fixed = [(key, note) for key, note in trial.asked.items() if isinstance(note, Fixed)]
        for key, note in fixed:
            for other in self._trials:
                known = other.asked.get(key)
                if isinstance(known, Fixed) and known.value != note.value:
                    what = f"{known.value} with {_shown(other.point)} and {note.value} with {_shown(trial.point)}"
                    raise ValueError(
                        f"export: {note.line} makes a plain number ({note.op}) of a size that is to vary, {what}: what "
                        f"the program does with that can't be known. Calculate with sizes as they are (+, -, *, //, "
                        f"comparisons; no int(), float(), len(), range() of them), or keep the size of the example "
                        f"with Dim.STATIC."
                    )

    def _settle_least(self, name: str) -> None:
        """Try the minimum size; if the user did not give one and the program does not support 1, it is 2."""
        limits = self.ranges[name]
        if self._trials[0].point[name] == limits.min:
            return
        point = {**self._trials[0].point, name: limits.min}
        if not limits.assumed:
            self._try(point)
            return
        try:
            self._add(point)
        except MismatchError:
            self.ranges[name] = Range(2, limits.max)

    def _is_affordable(self, point: dict[str, int]) -> bool:
        tensors = self._example.tensors()
        shapes = {name: list(x.shape) for name, x in tensors.items()}
        for place, size in self._places.items():
            shapes[place.input][place.dim] = size.at(point)
        return all(math.prod(s) <= max(AFFORDABLE, 4 * tensors[n].numel()) for n, s in shapes.items())

    def _resolve(self, name: str) -> None:
        """Trace at consecutive sizes to determine quotients of a dimension."""
        if all(e is not None for e in self._fitted().values()):
            return
        point, limits = self._trials[0].point, self.ranges[name]
        for size in range(point[name], point[name] + 2 * LARGEST_DIVISOR):
            if size in limits:
                self._try({**point, name: size})

    # ------------------------------------------------------------------------------------------- result

    def _fitted(self) -> dict[tuple[Node, int], Any]:
        """Return for each varying leaf of the first graph's nodes its expression; None if none fits."""
        found: dict[tuple[Node, int], Any] = {}
        known: dict[tuple, Any] = {}
        for nodes in zip(*[trial.recording.graph.nodes for trial in self._trials], strict=True):
            for number, values in enumerate(zip(*map(leaves_of, nodes), strict=True)):
                if differ(values):
                    if values not in known:
                        known[values] = self._fit(values)
                    found[nodes[0], number] = known[values]
        return found

    def _fit(self, values: tuple) -> Any:
        """Return an expression with these values at the trials, or for floats a quotient; None if there is none."""
        if isinstance(values[0], float):
            return next((q for q in self._quotients(values) if None not in q), None)
        return fit([trial.point for trial in self._trials], values)

    def _quotients(self, values: tuple) -> Iterator[Quotient]:
        """Yield the divisions whose quotients had these values."""
        for noted in zip(*[trial.quotients for trial in self._trials], strict=False):
            if all(q.left / q.right == v for q, v in zip(noted, values, strict=True)):
                sides = zip(*noted, strict=True)
                yield Quotient(*[self._fit(side) if differ(side) else side[0] for side in sides])
        yield from self._scaled(values)

    def _scaled(self, values: tuple[float, ...]) -> Iterator[Quotient]:
        """Yield a number divided by a dimension or two: in `1.0 / n` the size is not asked."""
        names = tuple(self.ranges)
        for monomial in [(name,) for name in names] + list(combinations(names, 2)):
            divisor = Expression(((1, monomial),))
            sizes = [divisor.at(trial.point) for trial in self._trials]
            for number in (round(values[0] * sizes[0], 9), values[0] * sizes[0]):
                if all(number / size == v for size, v in zip(sizes, values, strict=True)):
                    yield Quotient(number, divisor)

    def _expressions(self) -> dict[Node, list]:
        """Return per node with varying arguments an expression or None for each leaf."""
        found: dict[Node, list] = {}
        for (node, number), expression in self._fitted().items():
            if expression is None:
                raise ValueError(
                    f"export: {node.name}, at {node.meta.get('stack_trace') or 'an unknown line'}, has an argument "
                    f"that depends on {', '.join(self.ranges)} in a way that is not supported: integers may be sums of "
                    f"products of sizes, also // {LARGEST_DIVISOR} or less, and floats quotients of those"
                )
            found.setdefault(node, [None] * len(leaves_of(node)))[number] = expression
        return found

    def _note_sizes(self, graph: Graph) -> None:
        """Store at every node with a varying shape its expressions: `meta["shape"]`."""
        by_name = {node.name: node for node in graph.nodes}
        fitted = cache(partial(fit, [trial.point for trial in self._trials]))
        for nodes in zip(*[trial.recording.graph.nodes for trial in self._trials], strict=True):
            shapes = [getattr(node.meta.get("val"), "shape", ()) for node in nodes]
            sizes = [fitted(s) if differ(s) else s[0] for s in zip(*shapes, strict=True)]
            if any(isinstance(s, Expression) for s in sizes):
                by_name[nodes[0].name].meta["shape"] = tuple(sizes)

    # ---------------------------------------------------------------------------------------------- guards

    def _guards(self) -> list[Guard]:
        """Return the guards whose result was the same at all trials, and might differ at other sizes."""
        tried: set[Guard] = set()
        for _ in range(MOST_TRIALS):
            guards = [g for g in self._constant_answers() if not _is_implied(g, self.ranges)]
            fresh = next((g for g in guards if g not in tried), None)
            if fresh is None:
                break
            tried.add(fresh)
            for point in _turning(fresh, self._trials[0].point, self.ranges):
                self._try(point)
        return [g for g in self._constant_answers() if not _is_implied(g, self.ranges)]

    def _constant_answers(self) -> list[Guard]:
        """Return the guards that had the same result in each trial."""
        keys = dict.fromkeys(key for trial in self._trials for key in trial.asked)
        found: dict[tuple, Guard] = {}
        for key in keys:
            trials = [trial for trial in self._trials if key in trial.asked]
            for guard in _answers([t.point for t in trials], [t.asked[key] for t in trials]):
                others = [t for t in self._trials if key not in t.asked]
                if all(guard.holds(t.point) for t in others):
                    found.setdefault(guard[:4], guard)
        return list(found.values())


def _answers(points: list[dict[str, int]], notes: list[Any]) -> Iterator[Guard]:
    """Yield the guards for one comparison to give the same result each time; nothing if the results differ."""
    if isinstance(notes[0], Fixed) or len({note.outcome for note in notes}) > 1:
        return
    if not differ([n.left for n in notes]) and not differ([n.right for n in notes]):
        return
    left, right = (fit(points, [getattr(note, side) for note in notes]) for side in ("left", "right"))
    if left is None or right is None:
        raise ValueError(f"export: {notes[0].line} compares sizes in a way that can't be determined")
    if isinstance(notes[0], Comparison):
        yield Guard(notes[0].op, left, right, notes[0].outcome, notes[0].line)
    elif not right.dims:  # left // right == q where q * right <= left < (q + 1) * right
        divisor, q = right.at({}), notes[0].outcome
        for op, number in ((">=", q), ("<", q + 1)):
            op = op if divisor > 0 else {">=": "<=", "<": ">"}[op]
            yield Guard(op, left, Expression(((number * divisor, ()),)), True, notes[0].line)
    else:
        yield Guard(">=", left, right.times(notes[0].outcome), True, notes[0].line)


# -------------------------------------------------------------------------------------------------- sizes to try


def _shown(point: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {size}" for name, size in point.items())


def _plan(point: dict[str, int], ranges: Mapping[str, Range]) -> Iterator[dict[str, int]]:
    """Yield sizes to try: each dimension separately, at both ends of its range and between, and all together."""
    others = {name: _others(point[name], ranges[name], k) for k, name in enumerate(ranges)}
    for name, limits in ranges.items():
        ends = [limits.min, *([] if limits.max is None else [limits.max])]
        for size in (*others[name], *ends):
            yield {**point, name: size}
    for turn in range(3):
        yield {name: sizes[(turn + k) % len(sizes)] for k, (name, sizes) in enumerate(others.items())}


def _others(size: int, limits: Range, k: int) -> list[int]:
    """Return up to four sizes near the example's, in the range, that distinguish this dimension from others."""
    near = [size + 1 + k, size + 3 + 2 * k, size + 2, 2 * size + 5 + 3 * k, size - 1, size - 2, size + 1]
    found = [n for n in dict.fromkeys(near) if n in limits and n > 1]
    return found[:4] or [size]


def _turning(guard: Guard, point: dict[str, int], ranges: Mapping[str, Range]) -> Iterator[dict[str, int]]:
    """Yield sizes at which a guard's result changes, if they can be found, one dimension at a time."""
    for name in sorted(guard.left.dims | guard.right.dims):
        limits = ranges[name]

        def gap(size: int, name: str = name) -> int:
            other = {**point, name: size}
            return guard.left.at(other) - guard.right.at(other)

        near = _around_zero(gap, limits.min, limits.max or 1 << 24)
        turned = [n for n in near if n in limits and not guard.holds({**point, name: n})]
        for start in turned[:1]:  # and some beyond, in case the result changes again
            for size in (start, *[start + k for k in BEYOND]):
                if size in limits and not guard.holds({**point, name: size}):
                    yield {**point, name: size}


def _around_zero(f: Callable[[int], int], low: int, high: int) -> list[int]:
    """Return integers around the zero crossing of a monotone function between two others, and these."""
    a, b = low, high
    while b - a > 1:
        middle = (a + b) // 2
        if (f(middle) <= 0) == (f(a) <= 0):
            a = middle
        else:
            b = middle
    return [a, b, a - 1, b + 1, low, high]


def _is_implied(guard: Guard, ranges: Mapping[str, Range]) -> bool:
    """Whether a guard is constant in the whole range: decided if its sides are linear in one dimension."""
    if guard.left == guard.right:
        return True
    names = guard.left.dims | guard.right.dims
    linear = all(len(m) <= 1 for side in (guard.left, guard.right) for _, m in side.terms)
    if len(names) != 1 or not linear or guard.left.over != 1 or guard.right.over != 1:
        return False
    [name] = names
    limits = ranges[name]

    def gap(size: int) -> int:
        return guard.left.at({name: size}) - guard.right.at({name: size})

    high = limits.max or 1 << 62
    return all(guard.holds({name: n}) for n in (*_around_zero(gap, limits.min, high), high) if n in limits)
