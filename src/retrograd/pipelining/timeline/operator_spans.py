"""Record the operators, backward nodes, named ranges and communications of a thread as spans of a timeline."""

from collections.abc import Iterator

from retrograd.autograd.profiler import BoundedProfile
from retrograd.core.blocks import Block
from retrograd.pipelining.timeline.records import COMMUNICATION, Span


class SpanRecorder(Block):
    """Record the spans of a block on its thread, at most `limit` of them; `limit` 0 records nothing, at no cost.

    >>> import retrograd as rg
    >>> with SpanRecorder(rank=0, limit=10) as recorder:
    ...     y = rg.ones(2, 3).sum()
    >>> [(span.name, span.shapes) for span in recorder.spans()][-1]
    ('sum', '2×3')
    """

    def __init__(self, rank: int, limit: int) -> None:
        self.rank = rank
        self._profile = BoundedProfile(limit) if limit > 0 else None

    def _enter(self) -> "SpanRecorder":
        if self._profile is not None:
            self._profile.__enter__()
        return self

    def _leave(self, *exception: object) -> None:
        if self._profile is not None:
            self._profile.__exit__(*exception)

    @property
    def full(self) -> bool:
        """Return whether spans were dropped, because there were more than the limit."""
        return self._profile is not None and self._profile.dropped > 0

    def spans(self) -> list[Span]:
        """Return the recorded spans: those of the thread by their start, with their depths, and the communications."""
        if self._profile is None:
            return []
        in_flight = self._profile.communications()
        return [
            *self._nested(),
            *[Span(self.rank, c.name, COMMUNICATION, c.start / 1e9, c.end / 1e9) for c in in_flight],
        ]

    def _nested(self) -> Iterator[Span]:
        assert self._profile is not None
        texts: dict[tuple | None, str] = {None: ""}
        around: list[int] = []  # the ends of the spans around
        for record in sorted(self._profile.records(), key=lambda record: (record.start, -record.end)):
            while around and around[-1] <= record.start:
                around.pop()
            shapes = texts.get(record.shapes)
            if shapes is None:
                shapes = texts[record.shapes] = shapes_text(record.shapes or ())
            yield Span(self.rank, record.name, record.kind, record.start / 1e9, record.end / 1e9, len(around), shapes)
            around.append(record.end)


def shapes_text(shapes: tuple) -> str:
    """Return the shapes of operands as text.

    >>> shapes_text(((64, 256), (256,), ()))
    '64×256, 256, scalar'
    """
    return ", ".join("×".join(map(str, shape)) or "scalar" for shape in shapes)
