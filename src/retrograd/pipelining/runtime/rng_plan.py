"""Plan the random draws of the stages for the microbatches of a step."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from retrograd.ops.generator import default_generator
from retrograd.pipelining.microbatch import MicroBatch
from retrograd.pipelining.runtime.randomness import Draw, Stream, Streams, batch_dims
from retrograd.pipelining.split.capture_cache import Captured

StreamContext = Callable[[int, int], AbstractContextManager]
Dims = list[int | None] | None


class RngPlan:
    """Determines the batch dimensions of a program's draws, once for each kind of microbatch.

    joined_draws: returns the draws of the program for several microbatches joined into one.
    """

    def __init__(self, joined_draws: Callable[[Sequence[MicroBatch]], list[Draw]]) -> None:
        self._joined_draws = joined_draws
        self._dims: dict[tuple[Captured, Captured], Dims] = {}

    def of(self, captured: Sequence[Captured], batches: Sequence[MicroBatch]) -> StreamContext:
        """Return a context for each stage and microbatch, with the unsplit model's draws if they can be divided."""
        if not any(one.random for one in captured):
            return lambda stage, micro_batch: nullcontext()
        branches = len(batches) > 1 and any(one.expected for one in captured)  # the whole batch might take another
        unknown = branches or any(one.draw_positions is None for one in captured)
        dims = None if unknown else self._batch_dims(captured, batches)
        if dims is None or any(len(one.draws) != len(dims) for one in captured):
            return Streams(default_generator).random_stream
        stream = Stream([one.draws_of(batch) for one, batch in zip(captured, batches, strict=True)], dims)
        return lambda stage, number: stream.random_stream(captured[number].draw_positions[stage], number)  # type: ignore[index]

    def _batch_dims(self, captured: Sequence[Captured], batches: Sequence[MicroBatch]) -> Dims:
        if len(batches) == 1:
            return [None] * len(captured[0].draws)
        one, other = captured[:2]
        if (one, other) not in self._dims:
            try:
                both = self._joined_draws(batches[:2])
            except (ValueError, RuntimeError, TypeError):  # they cannot be joined
                self._dims[one, other] = None
            else:
                self._dims[one, other] = batch_dims(one.draws_of(batches[0]), other.draws_of(batches[1]), both)
        return self._dims[one, other]
