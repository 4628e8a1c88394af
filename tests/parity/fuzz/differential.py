"""A program in both libraries, line by line: the first difference, and the shortest program that has it."""

import re
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import retrograd as rg

from .generate import Generator

REFUSALS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, OverflowError, ZeroDivisionError)
TOLERANCE = {"float64": 1e-8, "complex128": 1e-8, "float32": 1e-3, "complex64": 1e-3, "float16": 3e-2}

# What a program may differ in: (what its last line looks like, what the difference looks like) -> reason.
EXEMPT: dict[tuple[str, str], str] = {}


@dataclass
class Difference:
    """Where two runs of a program part."""

    lines: list[str]
    message: str

    def __str__(self) -> str:
        """Return the program, and what differs after it."""
        return "\n".join([*self.lines, f"# {self.message}"])


class Machine:
    """The tensors of a program in one library."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.v: dict[int, Any] = {}

    def execute(self, line: str) -> Exception | None:
        """Run one line; returns the exception with which the library refuses it."""
        try:
            exec(line, {"L": self.library, "v": self.v})
        except KeyError:
            return KeyError("a tensor that was not made")
        except Exception as error:
            return error
        for i in [i for i, made in self.v.items() if not isinstance(made, (torch.Tensor, rg.Tensor))]:
            del self.v[i]
        return None

    def leaves(self) -> dict[int, Any]:
        """Return the leaves that require grad."""
        return {i: t for i, t in self.v.items() if recorded(t) == "True, leaf True"}

    def gradients(self) -> list:
        """Return the gradients of the sum of all results that require grad, with respect to every leaf."""
        outs = [t for t in self.v.values() if recorded(t) == "True, leaf False"]
        total = sum(((o.real if o.is_complex() else o).to(self.library.float64).sum() for o in outs), 0.0)
        leaves = list(self.leaves().values())
        if not leaves or not outs:
            return [None] * len(leaves)
        return list(self.library.autograd.grad(total, leaves, allow_unused=True))


def run(lines: list[str]) -> Difference | None:
    """Run a program in both libraries; returns the first difference, with the lines that led there."""
    theirs, ours = Machine(torch), Machine(rg)
    done: list[str] = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for line in lines:
            message = step(theirs, ours, line)
            if message == SKIPPED:
                continue
            done.append(line)
            if message is not None:
                return Difference(done, message)
        message = compare_gradients(theirs, ours)
    return Difference(done, message) if message else None


SKIPPED = "both refuse"


def step(theirs: Machine, ours: Machine, line: str) -> str | None:
    """Run one line in both; returns what differs."""
    refused = theirs.execute(line)
    if isinstance(refused, KeyError) or "not implemented for" in str(refused):  # no kernel for the dtype
        return SKIPPED
    refusal = ours.execute(line)
    if refused is not None and refusal is not None:
        return SKIPPED if isinstance(refusal, (*REFUSALS, KeyError)) else f"internal error: {refusal!r}"
    if refused is not None:
        return f"PyTorch raises {type(refused).__name__}: {str(refused)[:200]}"
    if refusal is not None:
        return f"ours raises {type(refusal).__name__}: {str(refusal)[:200]}"
    if theirs.v.keys() != ours.v.keys():
        return f"tensors {sorted(theirs.v)}, ours {sorted(ours.v)}"
    written = "_(" in line or not re.match(r"v\[\d+\] = ", line)
    seen = theirs.v if written else [max(theirs.v)]  # a write changes views too
    return next((f"v[{i}]: {m}" for i in seen if (m := difference(theirs.v[i], ours.v[i]))), None)


def difference(theirs: torch.Tensor, ours: Any) -> str | None:
    """Say in what two tensors differ."""
    if not isinstance(ours, rg.Tensor):
        return f"a tensor, ours {type(ours).__name__}"
    for name, a, b in (
        ("shape", tuple(theirs.shape), tuple(ours.shape)),
        ("dtype", str(theirs.dtype).removeprefix("torch."), str(ours.dtype)),
        ("requires_grad", recorded(theirs), recorded(ours)),
    ):
        if a != b:
            return f"{name} {a}, ours {b}"
    if theirs.is_contiguous() and not ours.is_contiguous():
        return "contiguous, ours is not"
    return values_differ(theirs.numpy(force=True), ours.detach().numpy())


def recorded(tensor: Any) -> str:
    """Return the state of a tensor in the graph; views that were returned together refuse to tell after a write."""
    try:
        return f"{tensor.requires_grad}, leaf {tensor.is_leaf}"
    except RuntimeError:
        return "refused"


def values_differ(a: np.ndarray, b: np.ndarray) -> str | None:
    """Say where values differ, relative to the largest finite one."""
    if a.dtype.kind not in "fc":
        equal = a == b
    else:
        finite = np.isfinite(a)
        scale = max(1.0, float(np.abs(a[finite]).max(initial=0.0)))
        near = np.abs(a.astype(complex) - b.astype(complex)) <= TOLERANCE[str(a.dtype)] * scale
        equal = (a == b) | (np.isnan(a) & np.isnan(b)) | (finite & near)
    if np.all(equal):
        return None
    index = tuple(int(i[0]) for i in np.nonzero(~np.atleast_1d(equal)))
    return f"value at {index}: {np.atleast_1d(a)[index]}, ours {np.atleast_1d(b)[index]}"


def compare_gradients(theirs: Machine, ours: Machine) -> str | None:
    """Say in what the gradients of the leaves differ, or that only one library computes them."""
    try:
        expected = theirs.gradients()
    except REFUSALS as error:
        try:
            ours.gradients()
        except REFUSALS:
            return None
        return f"PyTorch refuses backward: {str(error)[:200]}"
    try:
        found = ours.gradients()
    except Exception as error:
        return f"ours refuses backward, {type(error).__name__}: {str(error)[:200]}"
    for i, a, b in zip(theirs.leaves(), expected, found, strict=True):
        if (a is None) != (b is None):
            return f"gradient of v[{i}]: {'none' if a is None else 'one'}, ours {'none' if b is None else 'one'}"
        if a is not None and (message := values_differ(a.numpy(force=True), b.detach().numpy())):
            return f"gradient of v[{i}]: {message}"
    return None


def random_program(seed: int) -> list[str]:
    """Return a program of up to 60 lines, and some that make the tensors it begins with; PyTorch runs each."""
    generator, machine = Generator(seed), Machine(torch)
    lines = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for line in generator.leaves():
            machine.execute(line)
            lines.append(line)
        for _ in range(int(generator.rng.integers(20, 61))):
            line = generator.line(machine.v)
            if machine.execute(line) is None:
                lines.append(line)
            machine.v = {i: t for i, t in machine.v.items() if isinstance(t, torch.Tensor) and t.numel() <= 400}
    return lines


def kind_of(message: str) -> str:
    """Return a message without its numbers: differences of one kind have one."""
    return re.sub(r"[-+0-9.e]+|\b(nan|inf)\b", "#", message)[:60]


def shrunk(found: Difference) -> Difference:
    """Return the shortest program, found by leaving out lines, that has a difference of the same kind."""
    best, again = found, True
    while again:
        again = False
        for i in reversed(range(len(best.lines))):
            shorter = run(best.lines[:i] + best.lines[i + 1 :])
            if shorter is not None and kind_of(shorter.message) == kind_of(best.message):
                best, again = shorter, True
                break
    return best


def exempted(found: Difference) -> str | None:
    """Return the reason for which a shrunk difference is allowed."""
    return next(
        (
            reason
            for (line, message), reason in EXEMPT.items()
            if re.search(line, found.lines[-1]) and re.search(message, found.message)
        ),
        None,
    )
