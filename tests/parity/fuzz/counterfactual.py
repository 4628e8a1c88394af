"""Differences that disappear if PyTorch is kept from doing one thing that ours does not do."""

import re
from unittest import mock

import torch
from torch.nn.functional import poisson_nll_loss

from .compare import gradient_messages
from .copying import Copying
from .differential import GUARD, WRITE, Difference, Run, quietly
from .substitutes import Substituted, reason_for, substitutions

UNSEEN = "PyTorch gives a view a new history after a write that is not recorded; ours keeps the old one"
HIDDEN = "the operator returns a view of something that nobody has in PyTorch, and a tensor of its own here"

BECAME = "a tensor that becomes a view in place is one of its former self here, and in PyTorch as if made so"
SINGLE = "a fault of PyTorch's: its rule multiplies integers by a number in single precision"

FOLLOWED = "the fuzzer set a result to PyTorch's, which differs by rounding from that with which the rule compares it"

STIRLING = "a fault of PyTorch's: 0 times the logarithm of a target that is not positive, which it does not use"

TARGET = re.compile(rf"^(?:{re.escape(GUARD)})?(?:v\[\d+\] = )?v\[(\d+)\](?! = )|out=v\[(\d+)\]")
ASSIGNED = re.compile(rf"^(?:{re.escape(GUARD)})?v\[(\d+)\] = ")
SAME = re.compile(rf"^(?:{re.escape(GUARD)})?v\[(\d+)\] = v\[(\d+)\]\.\w+_\(")
BECOMES = re.compile(r"v\[(\d+)\]\.(?:squeeze|unsqueeze|t|swapaxes|transpose)_\(")


def of_counterfactual(found: Difference) -> str | None:
    """Return the reason if PyTorch agrees with ours without something that only PyTorch does."""
    grad = re.match(r"v\[(\d+)\]\.grad: (shape|value)", found.message)
    if grad and _first(found.lines, int(grad[1])) in _becoming(found.lines):
        return "a fault of PyTorch's: `.grad` keeps the shape that a tensor had before it became a view in place"
    choices = [(False, False, True), (False, True, False), (True, False, False)]
    choices += [(False, True, True), (True, False, True), (True, True, False), (True, True, True)]
    for unseen, hidden, became in choices:
        if _agrees(found, Changed(found.lines, unseen, hidden, became)):
            reasons = ((unseen, UNSEEN), (hidden, HIDDEN), (became, BECAME))
            return "; ".join(reason for wanted, reason in reasons if wanted)
    if "poisson_nll_loss" in "\n".join(found.lines) and _agrees(found, Selecting()):
        return STIRLING
    for names in substitutions(found.lines):
        if _agrees(found, Substituted(names)):
            return reason_for(names)
    if _agrees(found, Unchanged(), follow=False):
        return FOLLOWED
    return SINGLE if _agrees(found, InDouble()) else None


class Unchanged(Copying):
    """PyTorch as it is."""

    def effective(self) -> bool:
        """Return True: what changes is ours."""
        return True


class Selecting(Copying):
    """PyTorch with a `poisson_nll_loss` that takes the logarithms of targets above 1 only, the ones that it uses."""

    def __init__(self) -> None:
        super().__init__()
        self.changed = False

    def execute(self, line: str) -> Exception | None:
        """Run one line; return the exception with which PyTorch refuses it."""
        with mock.patch.object(torch.nn.functional, "poisson_nll_loss", self._loss):
            return super().execute(line)

    def effective(self) -> bool:
        """Return whether a loss had targets that are not positive."""
        return self.changed

    def _loss(
        self,
        input: torch.Tensor,
        target: torch.Tensor,
        log_input: bool = True,
        full: bool = False,
        eps: float = 1e-8,
        reduction: str = "mean",
    ) -> torch.Tensor:
        loss = poisson_nll_loss(input, target, log_input=log_input, eps=eps, reduction="none")
        if full:
            self.changed |= bool((target <= 0).any())
            t = torch.where(target > 1, target, 2)
            loss = loss + torch.where(target > 1, t * t.log() - t + 0.5 * (2 * torch.pi * t).log(), 0)
        return loss if reduction == "none" else getattr(loss, reduction)()


class InDouble(Copying):
    """PyTorch with float64 operands in place of integers in operators with a number that scales one of them."""

    def __init__(self) -> None:
        super().__init__()
        self.changed = False

    def execute(self, line: str) -> Exception | None:
        """Run one line; return the exception with which PyTorch refuses it."""
        return super().execute(re.sub(r"(?<=addcmul_\(|addcdiv_\().*", self._converted, line))

    def effective(self) -> bool:
        """Return whether an operand was converted."""
        return self.changed

    def _converted(self, found: re.Match) -> str:
        return re.sub(r"v\[(\d+)\]", self._double, found[0])

    def _double(self, found: re.Match) -> str:
        operand = self.v.get(int(found[1]))
        if operand is None or operand.is_floating_point() or operand.is_complex():
            return found[0]
        self.changed = True
        return f"{found[0]}.double()"


class Changed(Copying):
    """PyTorch without up to three things that it does.

    `unseen`: views get new histories after writes that are not recorded. `hidden`: results are views of tensors that
    nobody has. `became`: tensors that become views in place, such as by `t_()`, are no views of their former selves.
    """

    def __init__(self, lines: list[str], unseen: bool, hidden: bool, became: bool) -> None:
        super().__init__()
        self.unseen = unseen
        self.hidden = hidden
        self.became = _becoming(lines) if became else set()
        self.changes: set[str] = set()

    def execute(self, line: str) -> Exception | None:
        """Run one line; return the exception with which PyTorch refuses it."""
        target = self._target(line) if self.unseen else None
        version = None if target is None else target._version
        if (refused := super().execute(line)) is not None:
            return refused
        unseen = line.startswith(GUARD) or BECOMES.search(line) or (target is not None and not target.requires_grad)
        if target is not None and version is not None and unseen:
            torch._C._autograd._unsafe_set_version_counter((target,), (version,))
            self.changes.add(UNSEEN)
        if (made := ASSIGNED.match(line)) and int(made[1]) in self.v:
            self._replace(int(made[1]))
        return None

    def effective(self) -> bool:
        """Return whether each of the wanted changes was made."""
        return len(self.changes) == self.unseen + self.hidden + bool(self.became)

    def _target(self, line: str) -> torch.Tensor | None:
        found = TARGET.search(line) if WRITE.search(line) else None
        return None if found is None else self.v.get(int(found[1] or found[2]))

    def _replace(self, number: int) -> None:
        """Replace a view of something that nobody has by a copy, and what becomes a view by a view."""
        made = self.v[number]
        others = [t for i, t in self.v.items() if i != number]
        if any(made is t for t in others):
            return
        if self.hidden and made._base is not None and not made.is_leaf:
            if not any(made._base is t or made._base is t._base for t in others):
                self.v[number] = made.clone()
                self.changes.add(HIDDEN)
        elif number in self.became and made._base is None and not (made.is_leaf and made.requires_grad):
            self.v[number] = made.view_as(made)
            self.changes.add(BECAME)


def _becoming(lines: list[str]) -> set[int]:
    """Return the numbers of the tensors that become views in place in a program, by the number each had first."""
    return {_first(lines, int(found[1])) for line in lines if (found := BECOMES.search(line))}


def _first(lines: list[str], number: int) -> int:
    """Return the first number of a tensor: an in-place call returns the tensor itself, which gets another number."""
    first: dict[int, int] = {}
    for line in lines:
        if same := SAME.match(line):
            first[int(same[1])] = first.get(int(same[2]), int(same[2]))
    return first.get(number, number)


def _agrees(found: Difference, theirs: Copying, follow: bool = True) -> bool:
    """Return whether a program has no difference if PyTorch's part of it runs on this machine."""
    run = Run(follow)
    run.theirs = theirs
    with quietly():
        if any(run.line(line) for line in found.lines):
            return False
        if run.done != found.lines or not theirs.effective():  # a refused line is no agreement
            return False
        if theirs.results() != run.ours.results() or theirs.leaves() != run.ours.leaves():
            return False
        return not any(gradient_messages(theirs, run.ours, found.lines))
