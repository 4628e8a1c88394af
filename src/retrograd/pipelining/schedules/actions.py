"""The actions of a rank, as data with a text form that can be parsed."""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """The kind of an action: five computations, the ends of two transfers, moves of activations, a sum over replicas.

    `F` forward; `B` full backward; `I` and `W` its two halves, the gradients of the stage's inputs and those
    of its weights; `R` the forward once more, before the backward pass of a microbatch whose `F` kept only its inputs;
    `SEND_F`/`RECV_F` carry outputs forward, `SEND_B`/`RECV_B` gradients backward; `OFFLOAD` moves what `F` has saved
    for backward to a file, and `FETCH` back into memory; `REDUCE_GRAD` starts to sum the gradients of a stage's weights
    over the replicas of a pipeline, and `WAIT_GRAD` waits for the sums.

    >>> Kind.SEND_F.is_send, Kind.RECV_B.is_receive, Kind.W.is_compute
    (True, True, True)
    """

    F = "F"
    B = "B"
    I = "I"  # noqa: E741
    W = "W"
    R = "R"
    SEND_F = "SEND_F"
    RECV_F = "RECV_F"
    SEND_B = "SEND_B"
    RECV_B = "RECV_B"
    OFFLOAD = "OFFLOAD"
    FETCH = "FETCH"
    REDUCE_GRAD = "REDUCE_GRAD"
    WAIT_GRAD = "WAIT_GRAD"

    @property
    def is_send(self) -> bool:
        return self is Kind.SEND_F or self is Kind.SEND_B

    @property
    def is_receive(self) -> bool:
        return self is Kind.RECV_F or self is Kind.RECV_B

    @property
    def is_compute(self) -> bool:
        return len(self.value) == 1

    @property
    def is_move(self) -> bool:
        """Return whether it moves activations between memory and a file."""
        return self is Kind.OFFLOAD or self is Kind.FETCH

    @property
    def is_reduction(self) -> bool:
        """Return whether it starts or ends a sum over replicas."""
        return self is Kind.REDUCE_GRAD or self is Kind.WAIT_GRAD


class Message(NamedTuple):
    """A message between two stages; a send and its receive have the same message, which serves as tag.

    direction: "F" or "B". source, target: stages. The first three fields are the channel.

    >>> print(Message("F", 0, 1, micro_batch=3))
    F0>1.3
    """

    direction: str
    source: int
    target: int
    micro_batch: int

    def __str__(self) -> str:
        return f"{self.direction}{self.source}>{self.target}.{self.micro_batch}"


class Action(NamedTuple):
    """One step of one rank: its kind, stage and microbatch, and the other stage of a transfer.

    `peer` is the other stage of a send or receive and None otherwise. The text form shows it with an arrow. Reductions
    are for all microbatches of a stage; their `micro_batch` is 0, and the text leaves it out.

    >>> str(Action(Kind.F, 0, 3)), str(Action(Kind.SEND_F, 0, 3, 1)), str(Action(Kind.RECV_F, 1, 3, 0))
    ('F0.3', 'SEND_F0.3>1', 'RECV_F1.3<0')
    """

    kind: Kind
    stage: int
    micro_batch: int
    peer: int | None = None

    def __str__(self) -> str:
        if self.kind.is_reduction:
            return f"{self.kind}{self.stage}"
        arrow = "" if self.peer is None else f">{self.peer}" if self.kind.is_send else f"<{self.peer}"
        return f"{self.kind}{self.stage}.{self.micro_batch}{arrow}"

    @property
    def message(self) -> Message:
        """Return the message that this send or receive moves.

        >>> parse("SEND_B2.5>1").message == parse("RECV_B1.5<2").message
        True
        """
        assert self.peer is not None, f"{self} moves no message"
        ends = (self.stage, self.peer) if self.kind.is_send else (self.peer, self.stage)
        return Message(self.kind[-1], *ends, self.micro_batch)


Schedule = Sequence[Sequence[Action]]

_TEXT = re.compile(
    r"(?:(?P<own>[FBIWR]|OFFLOAD|FETCH)|(?P<send>SEND_[FB])|(?P<receive>RECV_[FB]))"
    r"(?P<stage>\d+)\.(?P<micro_batch>\d+)(?P<peer>(?(send)>\d+|(?(receive)<\d+)))",
    re.ASCII,
)
_REDUCTION = re.compile(r"(REDUCE_GRAD|WAIT_GRAD)(\d+)", re.ASCII)


def parse(text: str) -> Action:
    """Parse an action; the inverse of `str(action)`.

    Raises ValueError if `text` is not an action.

    >>> parse("RECV_F1.3<0")
    Action(kind=<Kind.RECV_F: 'RECV_F'>, stage=1, micro_batch=3, peer=0)
    """
    if match := _REDUCTION.fullmatch(text):
        return Action(Kind(match[1]), int(match[2]), 0)
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not an action; write one like F0.3, B0.3, SEND_F0.3>1 or RECV_F1.3<0")
    kind = Kind(match["own"] or match["send"] or match["receive"])
    peer = int(match["peer"][1:]) if match["peer"] else None
    return Action(kind, int(match["stage"]), int(match["micro_batch"]), peer)


def format_schedule(schedule: Schedule) -> str:
    """Format a schedule as text: one line per rank, its actions in order.

    The aligned columns have no meaning: actions in one column need not run at the same time.

    >>> print(format_schedule([[Action(Kind.F, 0, 0), Action(Kind.B, 0, 0)], [Action(Kind.F, 1, 0)]]))
    0: F0.0 B0.0
    1: F1.0
    """
    cells = [[str(action) for action in actions] for actions in schedule]
    width = max((len(cell) for row in cells for cell in row), default=0)
    tag = len(str(max(len(cells) - 1, 0)))
    rows = (" ".join(f"{cell:<{width}}" for cell in row) for row in cells)
    return "\n".join(f"{rank:>{tag}}: {row}".rstrip() for rank, row in enumerate(rows))


def parse_schedule(text: str) -> list[list[Action]]:
    """Parse the text of `format_schedule`; spacing and blank lines are ignored.

    Raises ValueError if a line does not start with the next rank or contains something other than actions.

    >>> parse_schedule("0: F0.0  B0.0")[0][1]
    Action(kind=<Kind.B: 'B'>, stage=0, micro_batch=0, peer=None)
    """
    lines = [line for line in text.splitlines() if line.strip()]
    return [_parse_line(rank, line) for rank, line in enumerate(lines)]


def _parse_line(rank: int, line: str) -> list[Action]:
    label, colon, actions = line.partition(":")
    if not colon or label.strip() != str(rank):
        raise ValueError(f"line {line.strip()!r} should start with '{rank}:', the next rank")
    return [parse(word) for word in actions.split()]
