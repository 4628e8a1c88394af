"""Run a program in both libraries, line by line: the first difference, and the shortest program that has it."""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

import retrograd as rg

from .compare import coarsest_of, difference, each_line, gradient_messages, on_one_line, presence
from .machine import REFUSALS, Machine, grad_of

SKIPPED = "both refuse"
CHANGED = "both refuse, perhaps after a change"
GUARD = "with L.no_grad(): "
# Lines that write, and those that may have changed something before they were refused.
WRITE = re.compile(rf"^(?!.*L\.func).*(\w_\(|out=|\] (\*\*|//|[-+*/%])= )|^({re.escape(GUARD)})?v\[\d+\]\[.*\] = ")
CHANGES = re.compile(WRITE.pattern + r"|backward|register|retain|^v\[\d+\]\.\w+ =")
# Refusals before anything has changed: of the operands, their sizes, dtypes, and parts in the graph.
UNCHANGED = re.compile(
    r"that was not made|leaf Variable that requires grad is|does not require grad and does not have a grad_fn|"
    r"cannot register a hook on|can't retain_grad|hooks cannot be registered|you can only change requires_grad flags|"
    r"can require gradients|can't be cast to the desired output type|must match the (existing )?size of|"
    r"must match the existing size|shape mismatch: value tensor|dimensions must larger|"
    r"input tensor must have at least|, the `-` operator,|source and destination dtypes match"
)
# PyTorch's have coefficients of 6 to 8 digits; mpmath agrees with ours to 15.
SINGLE = re.compile(r"airy_ai|bessel")
# PyTorch's refusals to write, which ours must share; of other refused calls a program has none.
WRITE_REFUSED = re.compile(
    r"leaf Variable|is a view|in-place|inplace|deepcopy|modified by|more than one element of the written"
)


@dataclass
class Difference:
    """The line at which two runs of a program differ."""

    lines: list[str]
    message: str

    def __str__(self) -> str:
        """Return the program, and the difference after it."""
        return "\n".join([*self.lines, f"# {self.message}"])


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress warnings; restore the default state of both libraries afterwards."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            torch.set_grad_enabled(True)
            rg.set_grad_enabled(True)


class Run:
    """Two machines that run the same lines; ours follows PyTorch's values where they differ by rounding."""

    def __init__(self, follow: bool = True) -> None:
        self.follow = follow
        self.replay([])

    def line(self, line: str) -> str | None:
        """Run one line in both; return the difference.  A line that both refuse is removed from the program."""
        message = step(self.theirs, self.ours, line, self.follow)
        if message == CHANGED:
            self.replay(self.done)
        if message in (SKIPPED, CHANGED):
            return None
        self.done.append(line)
        return message

    def replay(self, lines: list[str]) -> None:
        """Restart, with these lines."""
        self.theirs, self.ours = Machine(torch), Machine(rg)
        self.done: list[str] = []
        for line in lines:
            self.line(line)

    def gradients(self) -> Iterator[str]:
        """Yield how the gradients of the program differ."""
        return gradient_messages(self.theirs, self.ours, self.done)

    def all(self, lines: Iterable[str], wanted: Callable[[str], bool] = bool) -> Difference | None:
        """Run lines up to a difference, then compare the gradients; return the first wanted difference."""
        with quietly():
            found = next((m for line in lines if (m := self.line(line)) is not None), None)
            messages = [found] if found else self.gradients()
            message = next((m for several in messages for m in several.split("\n") if wanted(m)), None)
        return Difference(self.done, message) if message else None


def run(lines: Iterable[str], wanted: Callable[[str], bool] = bool) -> Difference | None:
    """Run a program in both libraries; return the first wanted difference, with the lines before it."""
    return Run().all(lines, wanted)


def step(theirs: Machine, ours: Machine, line: str, follow: bool) -> str | None:
    """Run one line in both; return the difference."""
    refused = theirs.execute(line)
    if refused is not None:
        message = refused_alike(refused, ours, line)
        changing = message == SKIPPED and CHANGES.search(line) and not UNCHANGED.search(str(refused))
        return CHANGED if changing else message
    refusal = ours.execute(line)
    if refusal is not None:
        return f"ours raises {type(refusal).__name__}: {on_one_line(refusal)}"
    if theirs.v.keys() != ours.v.keys():
        return f"tensors {sorted(theirs.v.keys() - ours.v.keys())}, ours {sorted(ours.v.keys() - theirs.v.keys())}"
    return states_differ(theirs, ours, line, follow)


def refused_alike(refused: Exception, ours: Machine, line: str) -> str | None:
    """Report that ours accepts a write that PyTorch refuses; other lines that PyTorch refuses are removed."""
    if not WRITE.search(line) or not WRITE_REFUSED.search(str(refused)):
        return SKIPPED
    refusal = ours.execute(line)
    if refusal is None:
        return f"PyTorch raises {type(refused).__name__}: {on_one_line(refused)}"
    return SKIPPED if isinstance(refusal, (*REFUSALS, KeyError)) else f"internal error: {on_one_line(repr(refusal))}"


def states_differ(theirs: Machine, ours: Machine, line: str, follow: bool) -> str | None:
    """Return the tensors that differ after a line: a write changes views too, backward gradients."""
    seen, messages = list(theirs.v) if may_write(line) else [next(reversed(theirs.v))] if theirs.v else [], []
    for i in seen:
        a, b = theirs.v[i], ours.v[i]
        if difference(a, b, "", follow) and (message := difference(a, b, digits(theirs, line), follow)):
            messages.append(each_line(f"v[{i}]: ", message))
    if "backward" in line:
        messages += leaf_gradients_differ(theirs, ours)
    return "\n".join(messages) or None


def may_write(line: str) -> bool:
    """Return whether a line may do more than to make a tensor."""
    return re.search(r"_\(|out=", line) is not None or not re.match(r"v\[\d+\] = ", line)


def digits(theirs: Machine, line: str) -> str:
    """Return the least precise dtype among the tensors that a line names, and among its conversions."""
    dtypes = {str(theirs.v[int(i)].dtype)[6:] for i in re.findall(r"v\[(\d+)\]", line) if int(i) in theirs.v}
    if "L.autograd.grad" in line:
        dtypes |= {str(t.dtype)[6:] for t in theirs.v.values()}
    if SINGLE.search(line) or (
        "out=" in line and any(not t.is_floating_point() for t in theirs.v.values())
    ):  # integers become float32
        dtypes.add("float32")
    return coarsest_of(dtypes | set(re.findall(r"float16|complex64|float32", line)))


def leaf_gradients_differ(theirs: Machine, ours: Machine) -> list[str]:
    """Return how the `.grad` differ between the libraries."""
    coarsest, messages = coarsest_of({str(t.dtype)[6:] for t in theirs.v.values()}), []
    for i, tensor in theirs.v.items():
        a, b = grad_of(tensor), grad_of(ours.v[i])
        if (a is None) != (b is None):
            messages.append(f"v[{i}].grad: {presence(a)}, ours {presence(b)}")
        elif a is not None and (message := difference(a, b, coarsest)):
            messages.append(each_line(f"v[{i}].grad: ", message))
    return messages
