"""The error inputs of PyTorch's operator database: whether both libraries refuse them, and with which error."""

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch

import retrograd as rg

from .conversion import Converter, UnavailableError, member, rebind
from .entries import counterpart, entries
from .sides import Side, array, attempt, flat, unchanged

REFUSALS = (TypeError, ValueError, IndexError, RuntimeError, NotImplementedError)
NAMED = re.compile(r"^(?:Tensor\.)?([a-zA-Z_][\w.]*)(?:\(\))?: ")  # "softmax: ...", "narrow(): ..."
LISTED = re.compile(r"^x\[\.\.\.\]|^out\b")  # a write, and the tensor that is to take a result


@dataclass
class BadCall:
    """One call that PyTorch refuses: its error, ours, and whether an operand was changed before that."""

    entry: str
    number: int
    theirs: Exception
    ours: Exception | None
    changed: bool

    def fault(self) -> str | None:
        """Return the fault of our error; None if it is a good one."""
        if self.ours is None:
            return f"{self}: accepted, PyTorch: {type(self.theirs).__name__}: {self.theirs}"
        said = f"{self}: {type(self.ours).__name__}: {self.ours}"
        if not isinstance(self.ours, REFUSALS):
            return f"{said}: an internal error"
        if not isinstance(self.ours, type(self.theirs)):
            return f"{said}: `except {type(self.theirs).__name__}`, which catches PyTorch's, does not catch it"
        if self.changed:
            return f"{said}: an operand was changed before"
        return None if names_a_function(str(self.ours)) else f"{said}: names no function"

    def __str__(self) -> str:
        return f"{self.entry}, error input {self.number}"


def names_a_function(message: str) -> bool:
    """Return whether a message begins with the name of a public function or method, or of the argument `out`."""
    found = NAMED.match(message)
    if found is None:
        return bool(LISTED.match(message))
    path = found[1]
    roots = (rg, rg.Tensor, rg.nn.functional)
    return any(callable(member(root, path)) for root in roots) or path in rg.core.registry


@cache
def bad_calls(name: str) -> tuple[BadCall, ...]:
    """Return the error inputs of an entry that PyTorch refuses and that NumPy arrays can represent."""
    return tuple(_bad_calls(name, entries()[name]))


def _bad_calls(name: str, entry: Any) -> Iterator[BadCall]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for number, listed in enumerate(entry.error_inputs("cpu")):
            sample = listed.sample_input
            if not holdable((sample.input, sample.args, sample.kwargs)):
                continue
            theirs = Side(torch, entry.op, sample, unchanged, unchanged, unchanged)
            try:
                ours = Side(rg, counterpart(entry), sample, rebind(unchanged), unchanged, Converter().convert)
            except UnavailableError:
                continue
            _, refused = attempt(theirs)
            if refused is not None:
                yield _refused(name, number, refused, ours)


def _refused(name: str, number: int, refused: Exception, ours: Side) -> BadCall:
    before = [array(t).tobytes() for t in ours.tensors]
    _, refusal = attempt(ours)
    after = [array(t).tobytes() for t in ours.tensors]
    return BadCall(name, number, without_frames(refused), without_frames(refusal), before != after)


def without_frames(error: Exception | None) -> Exception | None:
    """Return an error without tracebacks: their frames would keep the operands, some 600 MiB of them, in memory."""
    linked: BaseException | None = error
    while linked is not None:
        linked.__traceback__ = None
        linked = linked.__context__
    return error


def holdable(arguments: Any) -> bool:
    """Return whether all tensors have values in this machine's memory, and no more dimensions than NumPy allows."""
    values = [m for v in flat(arguments) for m in (flat(list(v.values())) if isinstance(v, dict) else [v])]
    tensors = [v for v in values if isinstance(v, torch.Tensor)]
    return all(t.device.type == "cpu" and t.ndim <= 64 for t in tensors)


def with_bad_calls() -> list[str]:
    """Return the entries with error inputs that have a counterpart here."""
    return [name for name, entry in entries().items() if entry.error_inputs_func and counterpart(entry) is not None]
