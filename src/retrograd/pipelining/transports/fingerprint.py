"""Fingerprints of launches: short texts that must be the same on all ranks."""

import hashlib
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby, pairwise, zip_longest
from typing import Any, NamedTuple

DIGEST = 8  # bytes
SHOWN_FIELDS = 5
SHOWN_CHARACTERS = 200
# The remedy for a difference, by the first word of its field.
REMEDIES = {
    "generator": "seed all ranks alike, as by rg.manual_seed(0), and draw the same numbers on all of them",
    "values": "pass the whole batch on every rank, in the same order: shuffle with the same seed",
    "parameters": "seed all ranks alike before the model is made, or load the same state on all of them",
    "call": "call the same methods in the same order on all ranks",
    "version": "install the same versions on all ranks",
}
GENERAL_REMEDY = "run the same script with the same options and data on all ranks"


class Fingerprint(NamedTuple):
    """A description of a launch by one rank.

    fields: short texts by name, those that may cause other differences first.  details: for some fields a long text,
    which is equal if the field is, and serves to find the first line that differs.  checksums: 32-bit numbers by name,
    of what varies from step to step.  known: the digest of the fields, if the caller has it.

    >>> Fingerprint.of_call("all_reduce", tensor="float32[2]").fields
    {'call': 'all_reduce', 'tensor': 'float32[2]'}
    """

    fields: Mapping[str, str]
    details: Mapping[str, str] = {}
    checksums: Mapping[str, int] = {}
    known: bytes = b""

    def digest(self) -> bytes:
        """Return a digest of the fields, followed by the checksums."""
        varying = [number.to_bytes(4, "little") for number in self.checksums.values()]
        return b"".join([self.known or digest_of(self.fields), *varying])

    def texts(self) -> dict[str, str]:
        """Return the fields and the checksums as texts by name."""
        return {**self.fields, **{name: f"{number:08x}" for name, number in self.checksums.items()}}

    @staticmethod
    def of_call(call: str, **fields: Any) -> "Fingerprint":
        """Return the fingerprint of a call by its name and further fields."""
        return Fingerprint({"call": call, **{name: str(value) for name, value in fields.items()}})

    @staticmethod
    def of_work(work: Callable[..., Any]) -> "Fingerprint":
        """Return a fingerprint that has only the name of the function that the ranks run."""
        return Fingerprint.of_call(qualified_name(work))


def library_versions() -> dict[str, str]:
    """Return the versions of the libraries that compute the numbers, as fields of the first fingerprint of ranks.

    >>> list(library_versions())
    ['version of retrograd', 'version of NumPy']
    """
    libraries = {"retrograd": "retrograd", "numpy": "NumPy"}  # modules that have been imported long before
    return {f"version of {name}": sys.modules[module].__version__ for module, name in libraries.items()}


def digest_of(fields: Mapping[str, str]) -> bytes:
    """Return a digest of texts by name."""
    text = "\0".join([*fields, *fields.values()])
    return hashlib.blake2b(text.encode(), digest_size=DIGEST).digest()


def qualified_name(function: Callable[..., Any]) -> str:
    """Return the name of a function or an operator, or that of the class of another callable.

    >>> import retrograd as rg
    >>> qualified_name(partial(qualified_name, None)), qualified_name(rg.nn.functional.l1_loss)
    ('qualified_name', 'l1_loss')
    >>> qualified_name(rg.nn.MSELoss())
    'MSELoss'
    """
    while isinstance(function, partial):
        function = function.func
    own = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    return str(own or type(function).__qualname__)


def differing_fields(fields: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the names of the fields that are not the same in all of several fingerprints, in their order.

    Other calls and arguments have other fields.  If the calls differ, only these are named; those that only some ranks
    have are named up to the first difference between fields that all have.
    """
    if len({one.get("call") for one in fields}) > 1:
        return ["call"]
    names = dict.fromkeys(name for one in fields for name in one)
    differing = [name for name in names if len({one.get(name) for one in fields}) > 1]
    common = [name for name in differing if all(name in one for one in fields)]
    return differing[: differing.index(common[0])] + common if common else differing


def describe_mismatch(by_rank: Mapping[int, Mapping[str, str]], detail: str = "") -> str:
    """Return which fields differ and between which ranks, and what to do; detail: a further line.

    >>> print(describe_mismatch({0: {"call": "step", "x": "[8]"}, 1: {"call": "step", "x": "[6]"}}))
    the ranks differ in step, so it ends on all of them:
      x: [8] on rank 0; [6] on rank 1
    To continue, run the same script with the same options and data on all ranks.
    """
    by_rank = dict(sorted(by_rank.items()))  # the same text on all ranks
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
    for rank, fields in by_rank.items():
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


def describe_details(by_rank: Mapping[int, Fingerprint]) -> str:
    """Return a line on the first lines that differ in the long texts of two ranks, or an empty text.

    >>> describe_details({rank: Fingerprint({}, {"program": f"a\\n  b = {rank}"}) for rank in range(2)})
    "  the first difference: 'b = 0' on rank 0, 'b = 1' on rank 1"
    """
    for (rank, one), (other_rank, other) in pairwise(sorted(by_rank.items())):
        for name, text in one.details.items():
            if text != other.details.get(name, text):
                lines = _first_difference(text, other.details[name])
                return f"  the first difference: {lines[0]!r} on rank {rank}, {lines[1]!r} on rank {other_rank}"
    return ""


def _first_difference(one: str, other: str) -> tuple[str, str]:
    """Return the first lines that differ in two texts, without their indentation."""
    texts = ([line.strip() for line in text.splitlines() if line.strip()] for text in (one, other))
    found = next((pair for pair in zip_longest(*texts, fillvalue="nothing") if pair[0] != pair[1]), ("", ""))
    return found[0][:SHOWN_CHARACTERS], found[1][:SHOWN_CHARACTERS]
