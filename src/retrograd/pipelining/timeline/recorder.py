"""Record a whole training run as one timeline: of a pipeline, or of a plain loop."""

import time
from typing import Protocol

from retrograd.core.blocks import Block
from retrograd.pipelining.timeline.machine import MachineSampler
from retrograd.pipelining.timeline.operator_spans import SpanRecorder
from retrograd.pipelining.timeline.timeline import PROGRAM, Event, Span, Step, Timeline


class _Recorded(Protocol):
    """A pipeline: it adds the timeline of each of its runs to its recorder."""

    recorder: "TimelineRecorder | None"


class TimelineRecorder(Block):
    """Record the steps of a training loop inside the block; call `step()` at the end of each one.

    pipeline: a `Pipeline`, whose actions are recorded; None for a plain loop.
    operators: whether to record operators, backward nodes and the ranges of `record_function`, with shapes: those of
     the thread of the loop, and in a pipeline those of every rank.
    limit: the number of actions and spans after which recording stops; a note in the timeline says so.
    sample_every: seconds between samples of the cores' use and the memory (on Linux); None: none are taken.

    `timeline()` returns the timeline, also during the run. Recording an operator takes a few microseconds.

    Raises ValueError for a limit below 1, and RuntimeError for a pipeline that is being recorded already.

    >>> import retrograd as rg
    >>> x = rg.ones(3, requires_grad=True)
    >>> with TimelineRecorder(sample_every=None) as run:
    ...     for _ in range(3):
    ...         (x * x).sum().backward()
    ...         run.step()
    >>> run.timeline().step(1).spans[0].name
    'mul'
    """

    def __init__(
        self,
        pipeline: _Recorded | None = None,
        *,
        operators: bool = True,
        limit: int = 200_000,
        sample_every: float | None = 0.1,
    ) -> None:
        if limit < 1:
            raise ValueError(f"TimelineRecorder: limit must be at least 1, got {limit}")
        self.pipeline = pipeline
        self.operators = operators
        self.limit = limit
        self.full_in_step: int | None = None
        self._ranks = 0  # of the pipeline, once it has run
        self._events: list[Event] = []
        self._spans: list[Span] = []
        self._steps: list[Step] = []
        self._number = 0
        self._begin = 0.0
        self._program: SpanRecorder | None = None
        self._sampler = None if sample_every is None else MachineSampler(sample_every)
        self._epoch = time.time() - time.perf_counter()

    def __repr__(self) -> str:
        recorded = f"steps={len(self._steps)}, actions={len(self._events)}, spans={len(self._spans)}"
        return f"TimelineRecorder({recorded}, limit={self.limit})"

    def _repr_html_(self) -> str:
        return self.timeline()._repr_html_()

    def _enter(self) -> "TimelineRecorder":
        if self.pipeline is not None:
            if self.pipeline.recorder is not None:
                raise RuntimeError("TimelineRecorder: this pipeline is being recorded already")
            self.pipeline.recorder = self
        if self._sampler is not None:
            self._sampler.start()
        self._begin_step()
        return self

    def _leave(self, *exception: object) -> None:
        if self.pipeline is not None and self.pipeline.recorder is self:
            self.pipeline.recorder = None
        self._end_step(keep_empty=False)
        if self._sampler is not None:
            self._sampler.stop()

    def step(self) -> None:
        """End a step, and begin the next one."""
        self._end_step()
        self._begin_step()

    def most_spans(self, ranks: int) -> int:
        """Return how many spans each of the ranks may still record."""
        return max(self._room() // ranks, 0) if self.operators and self.full_in_step is None else 0

    def add(self, timeline: Timeline) -> None:
        """Take the actions and spans of a run of the pipeline."""
        self._ranks = max(self._ranks, timeline.ranks)
        if self.full_in_step is None:
            self._events += timeline.events[: max(self._room(), 0)]
            self._spans += timeline.spans[: max(self._room(), 0)]

    def timeline(self) -> Timeline:
        """Return what has been recorded so far."""
        program = PROGRAM if self._ranks else 0
        samples = self._sampler.samples if self._sampler is not None else []
        begin = self._steps[0].start if self._steps else self._begin
        return Timeline(
            self._events,
            self._ranks or 1,
            spans=[span._replace(rank=program) if span.rank == PROGRAM else span for span in self._spans],
            steps=self._steps,
            samples=[sample for sample in samples if begin <= sample.time],
            notes=self._notes(),
            epoch=self._epoch,
        )

    def _notes(self) -> list[str]:
        notes = []
        if self.full_in_step is not None:
            notes.append(
                f"Recording stopped in step {self.full_in_step}: the limit of {self.limit:,} actions and spans was "
                "reached."
            )
        if self._sampler is not None and not self._sampler.available:
            notes.append("The use of cores and memory is measured on Linux only.")
        return notes

    def _room(self) -> int:
        return self.limit - len(self._events) - len(self._spans)

    def _begin_step(self) -> None:
        if self.full_in_step is None:
            self._program = SpanRecorder(PROGRAM, self._room() if self.operators else 0)
            self._program.__enter__()
        self._begin = time.perf_counter()

    def _end_step(self, keep_empty: bool = True) -> None:
        end = time.perf_counter()
        program, self._program = self._program, None
        if program is None:  # recording has stopped
            return
        program.__exit__(None, None, None)
        spans = program.spans()[: max(self._room(), 0)]
        self._spans += spans
        if keep_empty or spans or any(event.start >= self._begin for event in self._events[-1:]):
            self._steps.append(Step(self._number, self._begin, end))
        if self._room() <= 0:
            self.full_in_step = self._number
            if self._sampler is not None:
                self._sampler.stop()
        self._number += 1
