"""The records of a timeline: actions of ranks, spans of operators inside them, steps, and samples of the machine."""

from typing import NamedTuple

from retrograd.autograd.profiler.report import BACKWARD, OPERATOR, RANGE, WAIT
from retrograd.pipelining.schedules.actions import Action

PROGRAM = -1  # in place of a rank: the thread that runs the training loop of a pipeline


class Event(NamedTuple):
    """An action on a rank, from `start` to `end`, in seconds of one clock that all ranks share.

    >>> from retrograd.pipelining import Kind
    >>> event = Event(0, Action(Kind.F, 0, 3), start=1.0, end=1.5)
    >>> f"{event.action} took {event.end - event.start} s"
    'F0.3 took 0.5 s'
    """

    rank: int
    action: Action
    start: float
    end: float


class HeldActivations(NamedTuple):
    """The activations that a rank holds from a time until the next entry.

    time: seconds on the clock of the events. micro_batches: how many have activations, counted once per stage.
    bytes: their size, None if unknown.
    """

    time: float
    micro_batches: int
    bytes: float | None = None


COMMUNICATION = "communication"
SPAN_KINDS = (OPERATOR, BACKWARD, RANGE, WAIT, COMMUNICATION)


class Span(NamedTuple):
    """An operator, a node of a backward pass, a named range or a wait on a rank, on the clock of the events.

    Or a communication: an operation between ranks, from its start until the rank notices its end. Others may run
    meanwhile, so spans of this kind are not nested in those of the other kinds.

    rank: or `PROGRAM`.  kind: one of `SPAN_KINDS`.  depth: the number of spans around it.
    shapes: those of its operands as text, "64×256, 256"; "" if they were not recorded.
    """

    rank: int
    name: str
    kind: str
    start: float
    end: float
    depth: int = 0
    shapes: str = ""


class Step(NamedTuple):
    """A step of a training loop, on the clock of the events."""

    number: int
    start: float
    end: float


class Sample(NamedTuple):
    """The use of the machine at a time, on the clock of the events.

    cores: by core, the busy share since the sample before, from 0 to 1.  memory: resident bytes of the process.
    """

    time: float
    cores: tuple[float, ...]
    memory: int
