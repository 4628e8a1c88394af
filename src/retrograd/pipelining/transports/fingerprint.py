"""Fingerprints of launches: short texts that must be the same on all ranks."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby, zip_longest
from typing import Any, NamedTuple

SHOWN_FIELDS = 5
SHOWN_CHARACTERS = 200
# The remedy for a difference, by the first word of its field.
REMEDIES = {
    "generator": "seed all ranks alike, as by rg.manual_seed(0), and draw the same numbers on all of them",
    "values": "pass the whole batch on every rank, in the same order: shuffle with the same seed",
    "parameters": "seed all ranks alike before the model is made, or load the same state on all of them",
    "call": "call the same methods in the same order on all ranks",
}
GENERAL_REMEDY = "run the same script with the same options and data on all ranks"


class Fingerprint(NamedTuple):
    """A description of a launch by one rank.

    fields: short texts by name, those that may cause other differences first.  details: for some fields a long text,
    which is equal if the field is, and serves to find the first line that differs.

    >>> Fingerprint.of_call("all_reduce", tensor="float32[2]").fields
    {'call': 'all_reduce', 'tensor': 'float32[2]'}
    """

    fields: Mapping[str, str]
    details: Mapping[str, str] = {}

    @staticmethod
    def of_call(call: str, **fields: Any) -> "Fingerprint":
        """Return the fingerprint of a call by its name and further fields."""
        return Fingerprint({"call": call, **{name: str(value) for name, value in fields.items()}})

    @staticmethod
    def of_work(work: Callable[..., Any]) -> "Fingerprint":
        """Return a fingerprint that has only the name of the function that the ranks run."""
        return Fingerprint.of_call(qualified_name(work))


def qualified_name(function: Callable[..., Any]) -> str:
    """Return the name of a function, or that of the class of another callable.

    >>> qualified_name(partial(qualified_name, None))
    'qualified_name'
    """
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def differing_fields(fields: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the names of the fields that are not the same in all of several fingerprints, in their order.

    Other calls have other fields, so if the calls differ, only these are named.
    """
    if len({one.get("call") for one in fields}) > 1:
        return ["call"]
    names = dict.fromkeys(name for one in fields for name in one)
    return [name for name in names if len({one.get(name) for one in fields}) > 1]


def describe_mismatch(by_rank: Mapping[int, Mapping[str, str]], detail: str = "") -> str:
    """Return which fields differ and between which ranks, and what to do; detail: a further line.

    >>> print(describe_mismatch({0: {"call": "step", "x": "[8]"}, 1: {"call": "step", "x": "[6]"}}))
    the ranks differ in step, so it ends on all of them:
      x: [8] on rank 0; [6] on rank 1
    To continue, run the same script with the same options and data on all ranks.
    """
    differing = differing_fields(list(by_rank.values()))
    lines = [f"  {name}: {_by_value(name, by_rank)}" for name in differing[:SHOWN_FIELDS]]
    if len(differing) > SHOWN_FIELDS:
        lines.append(f"  also: {', '.join(differing[SHOWN_FIELDS:])}")
    remedy = REMEDIES.get(differing[0].partition(" ")[0], GENERAL_REMEDY)
    calls = {fields.get("call", "") for fields in by_rank.values()}
    title = f"the ranks differ{f' in {calls.pop()}' if len(calls) == 1 else ''}, so it ends on all of them:"
    return "\n".join([title, *lines, *([detail] if detail else []), f"To continue, {remedy}."])


def _by_value(name: str, by_rank: Mapping[int, Mapping[str, str]]) -> str:
    """Return each value of a field with the ranks that have it."""
    ranks: dict[str, list[int]] = {}
    for rank, fields in sorted(by_rank.items()):
        ranks.setdefault(fields.get(name, "nothing")[:SHOWN_CHARACTERS], []).append(rank)
    return "; ".join(f"{value} on {format_ranks(found)}" for value, found in ranks.items())


def format_ranks(ranks: Sequence[int]) -> str:
    """Return ranks in ascending order as text.

    >>> format_ranks([0]), format_ranks([0, 1, 2, 5])
    ('rank 0', 'ranks 0-2, 5')
    """
    runs = [[rank for _, rank in run] for _, run in groupby(enumerate(ranks), lambda pair: pair[1] - pair[0])]
    text = ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
    return f"rank{'s' if len(ranks) > 1 else ''} {text}"


def first_difference(one: str, other: str) -> tuple[str, str]:
    """Return the first lines that differ in two texts, without their indentation.

    >>> first_difference("a\\n  b = 1", "a\\n  b = 2\\nc")
    ('b = 1', 'b = 2')
    """
    pairs = zip_longest(one.splitlines(), other.splitlines(), fillvalue="nothing")
    found = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))
    return found[0].strip()[:SHOWN_CHARACTERS], found[1].strip()[:SHOWN_CHARACTERS]
