"""PyTorch's names for the actions of a schedule."""

import re
from enum import Enum
from typing import NamedTuple

from retrograd.pipelining.schedules.actions import Action, Kind


class ComputationType(Enum):
    """The kind of an action, with PyTorch's names; `UNSHARD`, `RESHARD`, `REDUCE_GRAD` occur in its files only."""

    FORWARD = "F"
    BACKWARD_INPUT = "I"
    BACKWARD_WEIGHT = "W"
    UNSHARD = "UNSHARD"
    RESHARD = "RESHARD"
    SEND_F = "SEND_F"
    RECV_F = "RECV_F"
    SEND_B = "SEND_B"
    RECV_B = "RECV_B"
    FULL_BACKWARD = "B"
    OVERLAP_F_B = "OVERLAP_F_B"
    REDUCE_GRAD = "REDUCE_GRAD"

    @staticmethod
    def from_str(action: str) -> "ComputationType":
        """Return the kind of a name in a schedule's text; RuntimeError for another one."""
        for kind in ComputationType:
            if kind.value == action:
                return kind
        raise RuntimeError(f"Invalid computation type {action}")


_KINDS = "|".join(kind.value for kind in ComputationType if kind is not ComputationType.OVERLAP_F_B)
_TEXT = re.compile(rf"(\d+)({_KINDS})(\d*)", re.ASCII)
_COMPUTE = {ComputationType(name) for name in ("F", "I", "W", "B", "OVERLAP_F_B")}


class NamedAction(NamedTuple):
    """An action of a schedule in PyTorch's form, whose text is stage, kind and microbatch.

    >>> action = NamedAction.from_str("2SEND_F3")
    >>> action.stage_index, action.computation_type.name, action.microbatch_index, action
    (2, 'SEND_F', 3, 2SEND_F3)
    """

    stage_index: int
    computation_type: ComputationType
    microbatch_index: int | None = None
    sub_actions: "tuple[NamedAction, ...] | None" = None

    def __repr__(self) -> str:
        if self.sub_actions is not None:
            return f"({';'.join(map(repr, self.sub_actions))}){self.computation_type.value}"
        microbatch = "" if self.microbatch_index is None else self.microbatch_index
        return f"{self.stage_index}{self.computation_type.value}{microbatch}"

    def __str__(self) -> str:
        return repr(self)

    @property
    def is_compute_op(self) -> bool:
        """Return whether it computes, not communicates."""
        return self.computation_type in _COMPUTE

    @staticmethod
    def from_str(action_string: str) -> "NamedAction | None":
        """Return the action of a text such as `2F0`, `1UNSHARD` or `(0F1;1B0)OVERLAP_F_B`; None for an empty one.

        Raises RuntimeError for another text.
        """
        text = action_string.strip()
        if text.startswith("(") and text.endswith(")OVERLAP_F_B"):
            parts = [NamedAction.from_str(part) for part in text[1 : text.rindex(")")].split(";")]
            found = tuple([part for part in parts if part is not None])
            return NamedAction(-1, ComputationType.OVERLAP_F_B, None, found)
        if not text:
            return None
        match = _TEXT.fullmatch(text)
        if match is None:
            raise RuntimeError(
                f"Invalid action string: {action_string}, should be formatted as [stage][action type][(microbatch)] "
                f"e.g. 2F0"
            )
        stage, kind, microbatch = match.groups()
        return NamedAction(int(stage), ComputationType(kind), int(microbatch) if microbatch else None)

    @staticmethod
    def of(action: Action) -> "NamedAction":
        """Return an action of the runtime under PyTorch's names; ValueError for a kind that PyTorch does not have.

        >>> from retrograd.pipelining.schedules.actions import parse
        >>> NamedAction.of(parse("F0.3"))
        0F3
        """
        kind = Kind(action.kind)
        if kind is Kind.R:
            raise ValueError(f"{action}: PyTorch has no name for this kind of action")
        return NamedAction(action.stage, ComputationType(kind.value), action.micro_batch)
