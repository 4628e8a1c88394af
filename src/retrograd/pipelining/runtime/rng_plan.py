"""What the stages of a pipeline draw for the micro-batches of a step."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from retrograd.ops.generator import default_generator
from retrograd.pipelining.microbatch import MicroBatch
from retrograd.pipelining.runtime.randomness import Draw, Stream, Streams, batch_dims
from retrograd.pipelining.split.capture_cache import Captured

Drawing = Callable[[int, int], AbstractContextManager]
Dims = list[int | None] | None


class Drawings:
    """Finds out along which dimensions a program's draws have the examples, once for each kind of micro-batch.

    drawn_for: what the program draws for several micro-batches as one.
    """

    def __init__(self, drawn_for: Callable[[Sequence[MicroBatch]], list[Draw]]) -> None:
        self._drawn_for = drawn_for
        self._dims: dict[tuple[Captured, Captured], Dims] = {}

    def of(self, captured: Sequence[Captured], batches: Sequence[MicroBatch]) -> Drawing:
        """A context for each stage and micro-batch: where that can be told, it draws what the unsplit model would."""
        if not any(one.random for one in captured):
            return lambda stage, micro_batch: nullcontext()
        dims = None if any(one.places is None for one in captured) else self._batch_dims(captured, batches)
        if dims is None or any(len(one.draws) != len(dims) for one in captured):
            return Streams(default_generator).drawn_by
        stream = Stream([one.draws_of(batch) for one, batch in zip(captured, batches, strict=True)], dims)
        return lambda stage, number: stream.drawn_by(captured[number].places[stage], number)  # type: ignore[index]

    def _batch_dims(self, captured: Sequence[Captured], batches: Sequence[MicroBatch]) -> Dims:
        if len(batches) == 1:
            return [None] * len(captured[0].draws)
        one, other = captured[:2]
        if (one, other) not in self._dims:
            try:
                both = self._drawn_for(batches[:2])
            except (ValueError, RuntimeError, TypeError):  # they can not be joined
                self._dims[one, other] = None
            else:
                self._dims[one, other] = batch_dims(one.draws_of(batches[0]), other.draws_of(batches[1]), both)
        return self._dims[one, other]
