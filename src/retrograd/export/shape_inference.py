"""Infer how a program depends on sizes: trace it at several sizes, and compare the graphs."""

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

from retrograd.core import Op, Tensor
from retrograd.export.dynamic_shapes import Guard, InputDim, Range, Sizes
from retrograd.export.example_inputs import Example
from retrograd.export.passes import substitute_sizes
from retrograd.export.trace_comparison import MismatchError, Note, argument_leaves, compare, differ, number_notes
from retrograd.export.traced_size import Comparison, Conversion, instruction_of, traced, untraced
from retrograd.foundation.symbolic_expr import LARGEST_DIVISOR, MANY_SIZES, Expression, Quotient, fit, fit_quotients
from retrograd.fx.graph import Graph
from retrograd.fx.graph_module import GraphModule
from retrograd.fx.node import Node, map_leaves
from retrograd.fx.tracer import Recording, TraceLevel, capture
from retrograd.ops.generator import fork_rng

MAX_TRIAL_ELEMENTS = 1 << 18  # maximum elements of an input in a trial
OFFSETS_BEYOND = (1, 2, 5, -1, -2, -5)  # distances from a guard's turning point at which the program is tried too
MAX_TRIALS = 32  # maximum trials for guards


class SizedTrace(TraceLevel):
    """A trace that records comparisons, divisions and conversions of sizes."""

    def __init__(self, log: list, *parts: Any) -> None:
        super().__init__(*parts)
        self._log = log

    def shape(self, tensor: Tensor) -> tuple[int, ...]:
        """Return the shape that the user's code gets."""
        return traced(tensor.value.shape, self._log, instruction_of(sys._getframe(1)))

    def process(self, op: Op, args: tuple, params: dict) -> Any:
        """Record an operator, with plain sizes."""
        return super().process(op, tuple(map(untraced, args)), map_leaves(params, untraced))


class Trial(NamedTuple):
    """One trace: the sizes of the dimensions, the graph, and the recorded uses of sizes."""

    point: dict[str, int]
    recording: Recording
    notes: dict[tuple, Note]
    quotients: list[Quotient]


class UndeterminedError(ValueError):
    """No expression of sizes has the values that a comparison got."""


class ShapeInference:
    """Traces a program at selected sizes, and infers how its graph depends on them.

    max_trials: the largest number of trials at other sizes, not counting those for comparisons; None: no limit.
    """

    def __init__(
        self,
        root: Any,
        example: Example,
        places: dict[InputDim, Expression],
        ranges: Mapping[str, Range],
        max_trials: int | None = None,
    ) -> None:
        self._root = root
        self._example = example
        self._places = places
        self.ranges: dict[str, Range] = dict(ranges)
        self._trials: list[Trial] = []
        self._max_trials = max_trials

    def first(self) -> Recording:
        """Return the program as it runs at the example's own sizes."""
        if not self._trials:
            self._trials = [self._trace(self._example_point())]
        return self._trials[0].recording

    def infer(self) -> tuple[GraphModule, Sizes]:
        """Return the program with its sizes computed where they vary, and the allowed sizes of its inputs."""
        base = self.first()
        for name in self.ranges:
            self._infer_minimum(name)
        # Other sizes show which numbers of the graph depend on sizes, and that the operators do not.
        for other in _points_to_try(self._trials[0].point, self.ranges):
            if self._max_trials is not None and len(self._trials) > self._max_trials:
                break
            self._trace_at(other)
        for name in self.ranges:
            # A quotient such as n // 2 is determined only by consecutive sizes.
            self._trace_consecutive(name)
        guards = self._guards()
        sources = {name: (place, size) for place, size in reversed(self._places.items()) for name in size.dims}
        graph = substitute_sizes(base.graph, sources, self._expressions())
        self._set_shapes(graph)
        return base._replace(graph=graph).module(), Sizes(self._places, self.ranges, tuple(guards))

    # ---------------------------------------------------------------------------------------------- trials

    def _example_point(self) -> dict[str, int]:
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
        # Every trace draws the same numbers.
        with fork_rng():
            recording = capture(lambda *parts: SizedTrace(log, *parts), self._root, args, kwargs)
        end = recording.graph.output_node()
        end.args = map_leaves(end.args, untraced)
        return Trial(point, recording, number_notes(log), [note for note in log if isinstance(note, Quotient)])

    def _trace_at(self, point: dict[str, int]) -> None:
        """Trace at these sizes too; ValueError if the program fails or behaves differently."""
        if any(trial.point == point for trial in self._trials) or not self._is_affordable(point):
            return
        try:
            self._add_trial(point)
        except MismatchError as why:
            changed = {n: (self._trials[0].point[n], s) for n, s in point.items() if s != self._trials[0].point[n]}
            sizes = ", ".join(f"{n} = {new} (instead of {old})" for n, (old, new) in changed.items())
            cause = why.__cause__
            raise ValueError(
                f"export: with {sizes} the program does something else: {why}. Narrow the range of "
                f"{' and '.join(changed)}, e.g. Dim({next(iter(changed))!r}, min=..., max=...), give dimensions "
                f"that are always equal the same Dim, or keep the size of the example with Dim.STATIC."
            ) from cause

    def _add_trial(self, point: dict[str, int]) -> None:
        try:
            trial = self._trace(point)
        except Exception as error:
            raise MismatchError(f"it fails with {type(error).__name__}: {error}") from error
        self._check_conversions(trial)
        compare(self._trials[0].recording, trial.recording)
        self._trials.append(trial)

    def _check_conversions(self, trial: Trial) -> None:
        """Raise ValueError if the program converted a varying size to a plain number."""
        fixed = [(key, note) for key, note in trial.notes.items() if isinstance(note, Conversion)]
        for key, note in fixed:
            for other in self._trials:
                known = other.notes.get(key)
                if isinstance(known, Conversion) and known.value != note.value:
                    before, after = _format_point(other.point), _format_point(trial.point)
                    what = f"{known.value} with {before} and {note.value} with {after}"
                    raise ValueError(
                        f"export: {note.line} makes a plain number ({note.op}) of a size that is to vary, {what}: what "
                        f"the program does with that can't be known. Calculate with sizes as they are (+, -, *, //, "
                        f"comparisons; no int(), float(), len(), range() of them), or keep the size of the example "
                        f"with Dim.STATIC."
                    )

    def _infer_minimum(self, name: str) -> None:
        """Try the minimum size; if the user did not give one and the program does not support 1, it is 2."""
        limits = self.ranges[name]
        if self._trials[0].point[name] == limits.min:
            return
        point = {**self._trials[0].point, name: limits.min}
        if not limits.assumed:
            self._trace_at(point)
            return
        try:
            self._add_trial(point)
        except MismatchError:
            self.ranges[name] = Range(2, limits.max)

    def _is_affordable(self, point: dict[str, int]) -> bool:
        tensors = self._example.tensors()
        shapes = {name: list(x.shape) for name, x in tensors.items()}
        for place, size in self._places.items():
            shapes[place.input][place.dim] = size.at(point)
        return all(math.prod(s) <= max(MAX_TRIAL_ELEMENTS, 4 * tensors[n].numel()) for n, s in shapes.items())

    def _trace_consecutive(self, name: str) -> None:
        """Trace at consecutive sizes to determine quotients of a dimension."""
        if self._is_determined():
            return
        point, limits = self._trials[0].point, self.ranges[name]
        count = 2 * LARGEST_DIVISOR
        start = point[name] if limits.max is None else max(limits.min, min(point[name], limits.max - count + 1))
        for size in range(start, start + count):
            if size in limits:
                self._trace_at({**point, name: size})

    def _is_determined(self) -> bool:
        """Return whether all numbers of the graph, and both sides of all comparisons, are known expressions."""
        try:
            self._consistent_guards()
        except UndeterminedError:
            return False
        return all(e is not None for e in self._fit_leaves().values())

    # ------------------------------------------------------------------------------------------- result

    def _fit_leaves(self) -> dict[tuple[Node, int], Any]:
        """Return for each varying leaf of the first graph's nodes its expression; None if none fits."""
        found: dict[tuple[Node, int], Any] = {}
        known: dict[tuple, Any] = {}
        for nodes in zip(*[trial.recording.graph.nodes for trial in self._trials], strict=True):
            for number, values in enumerate(zip(*map(argument_leaves, nodes), strict=True)):
                if differ(values):
                    if values not in known:
                        known[values] = self._fit(values)
                    found[nodes[0], number] = known[values]
        return found

    def _fit(self, values: tuple) -> Any:
        """Return an expression with these values at the trials, or for floats a quotient; None if there is none."""
        if isinstance(values[0], float):
            return next((q for q in self._quotients(values) if None not in q), None)
        return fit([trial.point for trial in self._trials], values, self._sizes())

    def _sizes(self) -> dict[str, range]:
        """Return the sizes of each dimension at which two expressions must agree to be the same."""
        found = {}
        for name, (low, high, _) in self.ranges.items():
            end = low + MANY_SIZES
            found[name] = range(low, end if high is None else min(high + 1, end))
        return found

    def _quotients(self, values: tuple) -> Iterator[Quotient]:
        """Yield the divisions whose quotients had these values."""
        for divisions in zip(*[trial.quotients for trial in self._trials], strict=False):
            if all(q.left / q.right == v for q, v in zip(divisions, values, strict=True)):
                sides = zip(*divisions, strict=True)
                yield Quotient(*[self._fit(side) if differ(side) else side[0] for side in sides])
        # In `1.0 / n` the size is not asked.
        yield from fit_quotients([trial.point for trial in self._trials], values)

    def _expressions(self) -> dict[Node, list]:
        """Return per node with varying arguments an expression or None for each leaf."""
        found: dict[Node, list] = {}
        for (node, number), expression in self._fit_leaves().items():
            if expression is None:
                raise ValueError(
                    f"export: {node.name}, at {node.meta.get('stack_trace') or 'an unknown line'}, has an argument "
                    f"that depends on {', '.join(self.ranges)} in a way that is not supported: integers may be sums of "
                    f"products of sizes, also // {LARGEST_DIVISOR} or less, and floats quotients of those"
                )
            found.setdefault(node, [None] * len(argument_leaves(node)))[number] = expression
        return found

    def _set_shapes(self, graph: Graph) -> None:
        """Store at every node with a varying shape its expressions: `meta["shape"]`."""
        by_name = {node.name: node for node in graph.nodes}
        fit_sizes = cache(partial(fit, [trial.point for trial in self._trials], sizes=self._sizes()))
        for nodes in zip(*[trial.recording.graph.nodes for trial in self._trials], strict=True):
            shapes = [getattr(node.meta.get("val"), "shape", ()) for node in nodes]
            sizes = [fit_sizes(s) if differ(s) else s[0] for s in zip(*shapes, strict=True)]
            if any(isinstance(s, Expression) for s in sizes):
                by_name[nodes[0].name].meta["shape"] = tuple(sizes)

    # ---------------------------------------------------------------------------------------------- guards

    def _guards(self) -> list[Guard]:
        """Return the guards whose result was the same at all trials, and might differ at other sizes."""
        tried: set[Guard] = set()
        for _ in range(MAX_TRIALS):
            guards = [g for g in self._consistent_guards() if not _is_implied(g, self.ranges)]
            untried = next((g for g in guards if g not in tried), None)
            if untried is None:
                break
            tried.add(untried)
            # A trace where the result differs shows whether the graph does, too.
            for point in _points_beyond(untried, self._trials[0].point, self.ranges):
                self._trace_at(point)
        return [g for g in self._consistent_guards() if not _is_implied(g, self.ranges)]

    def _consistent_guards(self) -> list[Guard]:
        """Return the guards that had the same result in each trial."""
        keys = dict.fromkeys(key for trial in self._trials for key in trial.notes)
        found: dict[tuple, Guard] = {}
        for key in keys:
            trials = [trial for trial in self._trials if key in trial.notes]
            points, notes = [t.point for t in trials], [t.notes[key] for t in trials]
            for guard in _guards_of_comparison(points, notes, self._sizes()):
                others = [t for t in self._trials if key not in t.notes]
                if all(guard.holds(t.point) for t in others):
                    found.setdefault(guard[:4], guard)
        return list(found.values())


def _guards_of_comparison(points: list[dict[str, int]], notes: list[Any], sizes: dict[str, range]) -> Iterator[Guard]:
    """Yield the guards for one comparison to give the same result each time; nothing if the results differ."""
    if isinstance(notes[0], Conversion) or len({note.outcome for note in notes}) > 1:
        return
    if not differ([n.left for n in notes]) and not differ([n.right for n in notes]):
        return
    left, right = (fit(points, [getattr(note, side) for note in notes], sizes) for side in ("left", "right"))
    if left is None or right is None:
        raise UndeterminedError(f"export: {notes[0].line} compares sizes in a way that can't be determined")
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


def _format_point(point: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {size}" for name, size in point.items())


def _points_to_try(point: dict[str, int], ranges: Mapping[str, Range]) -> Iterator[dict[str, int]]:
    """Yield sizes to try: each dimension separately, at both ends of its range and between, and all together."""
    others = {name: _nearby_sizes(point[name], ranges[name], k) for k, name in enumerate(ranges)}
    for name, limits in ranges.items():
        ends = [limits.min, *([] if limits.max is None else [limits.max])]
        for size in (*others[name], *ends):
            yield {**point, name: size}
    for turn in range(3):
        yield {name: sizes[(turn + k) % len(sizes)] for k, (name, sizes) in enumerate(others.items())}


def _nearby_sizes(size: int, limits: Range, k: int) -> list[int]:
    """Return up to four sizes near the example's, in the range, that distinguish this dimension from others."""
    near = [size + 1 + k, size + 3 + 2 * k, size + 2, 2 * size + 5 + 3 * k, size - 1, size - 2, size + 1]
    found = [n for n in dict.fromkeys(near) if n in limits and n > 1]
    return found[:4] or [size]


def _points_beyond(guard: Guard, point: dict[str, int], ranges: Mapping[str, Range]) -> Iterator[dict[str, int]]:
    """Yield sizes at which a guard's result changes, if they can be found, one dimension at a time."""
    for name in sorted(guard.left.dims | guard.right.dims):
        limits = ranges[name]

        def gap(size: int, name: str = name) -> int:
            other = {**point, name: size}
            return guard.left.at(other) - guard.right.at(other)

        near = _around_root(gap, limits.min, limits.max or 1 << 24)
        violating = [n for n in near if n in limits and not guard.holds({**point, name: n})]
        for start in violating[:1]:  # and some beyond, in case the result changes again
            for size in (start, *[start + k for k in OFFSETS_BEYOND]):
                if size in limits and not guard.holds({**point, name: size}):
                    yield {**point, name: size}


def _around_root(f: Callable[[int], int], low: int, high: int) -> list[int]:
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
    """Return whether a guard is constant in the whole range: decided if its sides are linear in one dimension."""
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
    return all(guard.holds({name: n}) for n in (*_around_root(gap, limits.min, high), high) if n in limits)
