"""Random draws in a pipeline: determined by the seed and the position in the program, not by the schedule.

The unsplit model draws from one stream, operator by operator, each for the whole batch. Here a microbatch reads
from that stream the values that its examples would get, so dropout drops the same elements for every split and
schedule.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from retrograd.core.blocks import generator_block
from retrograd.fx import GraphModule
from retrograd.ops.generator import Generator, default_generator, redirect_draws

Size = tuple[int, ...]


class Draw(NamedTuple):
    """One random draw: its generator, method and arguments."""

    source: Generator
    method: str
    args: tuple[Any, ...]

    @property
    def size(self) -> Size | None:
        """Return the shape of the draw; None if the shape is not a separate argument."""
        return next((arg for arg in self.args if isinstance(arg, tuple)), None)

    def of_size(self, size: Size) -> tuple[Any, ...]:
        """Return the arguments with another size."""
        return tuple([size if isinstance(arg, tuple) else arg for arg in self.args])


@generator_block
def record_draws() -> Iterator[list[Draw]]:
    """Record the draws of the body; restore the generators afterwards."""
    draws: list[Draw] = []
    states: dict[Generator, Any] = {}

    def note(source: Generator) -> "_RecordingGenerator":
        if source not in states:
            states[source] = source._plain_state()
        return _RecordingGenerator(source, draws)

    try:
        with redirect_draws(note):
            yield draws
    finally:
        for source, state in states.items():
            source._set_plain_state(state)


class _RecordingGenerator(NamedTuple):
    """A generator that records its draws."""

    source: Generator
    draws: list[Draw]

    def draw(self, method: str, *args: Any) -> Any:
        """Record a draw and return its values."""
        self.draws.append(Draw(self.source, method, args))
        return self.source.draw(method, *args)


def batch_dims(one: Sequence[Draw], other: Sequence[Draw], both: Sequence[Draw]) -> list[int | None] | None:
    """Return the batch dimension of each draw, from the draws of two microbatches and of both joined.

    None for a draw that does not depend on the batch.  None instead of a list: the draws cannot be divided by
    examples, because their number is only known at run time, or they are made in another way.
    """
    if not len(one) == len(other) == len(both):
        return None
    dims: list[int | None] = []
    for a, b, whole in zip(one, other, both, strict=True):
        if a.size is None or b.size is None or whole.size is None or len(a.size) != len(whole.size):
            return None
        differing = [
            d for d, (size, joined_size) in enumerate(zip(a.size, whole.size, strict=True)) if size != joined_size
        ]
        if len(differing) > 1 or any(a.size[d] + b.size[d] != whole.size[d] for d in differing):
            return None
        dims.append(differing[0] if differing else None)
    return dims


def draw_indices(
    by_node: Mapping[str, Sequence[int]], stages: Sequence[GraphModule], draws: int
) -> list[list[int]] | None:
    """Return for each stage the indices of its draws in the program, in order, from those of every node.

    Returns None if they are not exactly the draws of the program.
    """
    found = [
        [i for node in stage.graph.find_nodes(op="call_function") for i in by_node.get(node.name, ())]
        for stage in stages
    ]
    return found if sorted(i for positions in found for i in positions) == list(range(draws)) else None


class Stream:
    """Maps each microbatch of a step to its part of the generators' streams.

    draws: per microbatch, the draws of the program.  dims: as from `batch_dims`.  The constructor advances the
    generators as the unsplit step would.
    """

    def __init__(self, draws: Sequence[Sequence[Draw]], dims: Sequence[int | None]) -> None:
        self._draws = draws
        self._dims = dims
        self._totals: list[Size] = []
        self._states: list[Any] = []
        for position, (first, dim) in enumerate(zip(draws[0], dims, strict=True)):
            size = _size(first)
            if dim is not None:
                size = (*size[:dim], sum(_size(one[position])[dim] for one in draws), *size[dim + 1 :])
            self._totals.append(size)
            self._states.append(first.source._plain_state())
            first.source.skip(first.method, *first.of_size(size))
        source = draws[0][0].source if draws[0] else default_generator
        self._seed = _seed_from(source.clone_state())

    def random_stream(self, positions: Sequence[int], micro_batch: int) -> AbstractContextManager[None]:
        """While active, the program of a stage gets its microbatch's part of these draws, in order."""
        rest = iter(positions)
        # The loss is not captured, so its draws are not among those of the program.
        loss_generator = Generator(hash((self._seed, *positions, micro_batch)) % 2**63)

        def draw(*call: Any) -> Any:
            position = next(rest, None)
            return loss_generator.draw(*call) if position is None else self._draw_part(position, micro_batch, *call)

        return redirect_draws(lambda source: _StreamGenerator(draw))

    def _draw_part(self, position: int, micro_batch: int, method: str, *args: Any) -> Any:
        expected, dim, total = self._draws[micro_batch][position], self._dims[position], self._totals[position]
        if Draw(expected.source, method, args).size != expected.size:
            raise RuntimeError(f"the program draws {args}, but it drew {expected.args} when it was captured")
        source, size = Generator(), _size(expected)
        source._set_plain_state(self._states[position])
        if dim is None:
            return source.draw(method, *args)
        start = sum(_size(one[position])[dim] for one in self._draws[:micro_batch])
        if math.prod(size[:dim]) == 1:  # the examples are contiguous in the stream
            source.skip(method, *expected.of_size((*size[:dim], start, *size[dim + 1 :])))
            return source.draw(method, *args)
        whole = source.draw(method, *expected.of_size(total))
        return whole[(*[slice(None)] * dim, slice(start, start + size[dim]))]


class Streams:
    """Separate streams for every stage and microbatch, used if the unsplit model's draws cannot be divided.

    They depend on the default generator only, which advances by one draw.
    """

    def __init__(self, source: Generator) -> None:
        self._seed = _seed_from(source)

    def random_stream(self, stage: int, micro_batch: int) -> AbstractContextManager[None]:
        """While active, the program draws from its own stream."""
        own = Generator(hash((self._seed, stage, micro_batch)) % 2**63)
        return redirect_draws(lambda source: own)


class _StreamGenerator(NamedTuple):
    """Replaces a generator while a stage runs."""

    draw: Callable[..., Any]


def _seed_from(source: Generator) -> int:
    return int(source.draw("integers", 0, 2**63))


def _size(draw: Draw) -> Size:
    assert draw.size is not None, "placed draws have sizes"
    return draw.size
