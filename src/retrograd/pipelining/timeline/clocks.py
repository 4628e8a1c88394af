"""Put the times of ranks with different clocks on one clock."""

import math
from collections.abc import Iterable, Mapping, Sequence

from retrograd.foundation.suggestions import suggest_in_module
from retrograd.pipelining.timeline.timeline import PROGRAM, Event, Timeline


def align_clocks(timeline: Timeline) -> Timeline:
    """Return a timeline whose ranks' clocks agree with their messages: none is received before it is sent.

    Clocks that agree stay as they are. Messages in both directions bound the difference of two clocks from both sides,
    and its middle is taken, as if both ways took equally long; in one direction only, the least difference is taken.

    Source: Mills, "Internet time synchronization: the network time protocol" (1991).

    >>> from retrograd.pipelining.schedules.actions import parse
    >>> rows = [(0, "SEND_F0.0>1", 5.0, 5.0), (1, "RECV_F1.0<0", 0.0, 1.0)]
    >>> step = Timeline([Event(rank, parse(text), start, end) for rank, text, start, end in rows], ranks=2)
    >>> [event.end for event in align_clocks(step).events]
    [5.0, 5.0]
    """
    offsets = _offsets(_least_differences(timeline.events), timeline.ranks)
    return _shift_ranks(timeline, offsets) if any(offsets) else timeline


def _least_differences(events: Iterable[Event]) -> dict[tuple[int, int], float]:
    """Return by (sender, receiver) the least seconds that the receiver's clock must be put forward."""
    sends = {event.action.message: event for event in events if event.action.kind.is_send}
    least: dict[tuple[int, int], float] = {}
    for event in events:
        send = sends.get(event.action.message) if event.action.kind.is_receive else None
        if send is not None and send.rank != event.rank:
            pair = send.rank, event.rank
            least[pair] = max(least.get(pair, -math.inf), send.start - event.end)
    return least


def _offsets(least: Mapping[tuple[int, int], float], ranks: int) -> list[float]:
    """Return the seconds to add to each rank's times, found from one rank to the next that it has messages with."""
    known: dict[int, float] = {}
    for root in range(ranks):
        if root in known:
            continue
        known[root], reached = 0.0, [root]
        for rank in reached:
            for other in range(ranks):
                if other not in known and ((rank, other) in least or (other, rank) in least):
                    known[other] = known[rank] + _difference(least, rank, other)
                    reached.append(other)
    return [known[rank] for rank in range(ranks)]


def _difference(least: Mapping[tuple[int, int], float], rank: int, other: int) -> float:
    low, high = least.get((rank, other), -math.inf), -least.get((other, rank), -math.inf)
    if low <= 0 <= high:
        return 0.0
    return (low + high) / 2 if math.isfinite(low) and math.isfinite(high) else low if math.isfinite(low) else high


def _shift_ranks(timeline: Timeline, offsets: Sequence[float]) -> Timeline:
    """Return a timeline with other times for each rank."""
    return Timeline(
        [_shift(event, offsets[event.rank]) for event in timeline.events],
        timeline.ranks,
        timeline.activation_bytes,
        spans=[_shift(span, 0.0 if span.rank == PROGRAM else offsets[span.rank]) for span in timeline.spans],
        steps=timeline.steps,
        samples=timeline.samples,
        notes=timeline.notes,
        epoch=timeline.epoch,
    )


def _shift(record, seconds, **more):  # type: ignore[no-untyped-def]
    return record._replace(start=record.start + seconds, end=record.end + seconds, **more)


def merge_timelines(timelines: Sequence[Timeline], offsets: Sequence[float] | None = None) -> Timeline:
    """Return one timeline with the ranks of all, one after the other, as of processes that each wrote a file.

    offsets: the seconds to add to the times of each one; None: by the Unix time of their clocks, if they have one.
    Steps of the same number become one. Samples of the machine and the spans of `PROGRAM` are the first one's.

    Raises ValueError for another number of offsets than of timelines, and for no timelines.

    >>> from retrograd.pipelining import Span
    >>> spans = [Span(0, "mul", "operator", 0.0, 1.0)]
    >>> one, two = (Timeline([], 1, spans=spans, epoch=epoch) for epoch in (100.0, 102.0))
    >>> [(span.rank, span.start) for span in merge_timelines([one, two]).spans]
    [(0, 0.0), (1, 2.0)]
    """
    if not timelines or (offsets is not None and len(offsets) != len(timelines)):
        raise ValueError(f"merge_timelines: got {len(timelines)} timelines and {len(offsets or ())} offsets")
    first = timelines[0]
    if offsets is None:
        offsets = [0.0 if None in (first.epoch, t.epoch) else t.epoch - first.epoch for t in timelines]  # type: ignore[operator]
    events, spans, base = [], [], 0
    steps: dict[int, list] = {}
    for timeline, offset in zip(timelines, offsets, strict=True):
        events += [_shift(event, offset, rank=event.rank + base) for event in timeline.events]
        own = [span for span in timeline.spans if span.rank != PROGRAM or timeline is first]
        spans += [_shift(span, offset, rank=span.rank + base if span.rank != PROGRAM else PROGRAM) for span in own]
        for step in timeline.steps:
            steps.setdefault(step.number, []).append(_shift(step, offset))
        base += timeline.ranks
    return Timeline(
        events,
        base,
        spans=spans,
        steps=[
            same[0]._replace(start=min(s.start for s in same), end=max(s.end for s in same)) for same in steps.values()
        ],
        samples=[sample._replace(time=sample.time + offsets[0]) for sample in first.samples],
        notes=dict.fromkeys(note for timeline in timelines for note in timeline.notes),
        epoch=first.epoch,
    )


suggest_in_module(globals())
