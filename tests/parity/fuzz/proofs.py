"""Differences that PyTorch decides itself: it computes the last line in another way, and agrees with ours there."""

import re

import torch

import retrograd as rg

from .compare import values_differ
from .differential import Difference, Run, quietly
from .machine import REFUSALS, Machine

_V = r"(v\[\d+\])"
FORWARD = "a fault of PyTorch's: its forward rule contradicts its reverse rule, which agrees with ours"
LOOP = "a fault of PyTorch's: vmap contradicts a loop over the examples, which agrees with ours"

# (pattern of an expression, the same computed in another way, reason)
OTHERWISE = [
    (rf"L\.func\.jacfwd\((.*)\)\({_V}\)", r"L.func.jacrev(\1)(\2)", FORWARD),
    (rf"L\.func\.hessian\((.*)\)\({_V}\)", r"L.func.jacrev(L.func.grad(\1))(\2)", FORWARD),
    (
        rf"L\.func\.jvp\((.*), \({_V},\), \(W\(\2\),\)\)\[1\]",
        r"L.tensordot(L.func.jacrev(\1)(\2), W(\2), dims=\2.ndim)",
        FORWARD,
    ),
    (rf"L\.func\.vmap\((.*), in_dims=(-?\d)\)\({_V}\)", r"L.stack([(\1)(x) for x in \3.unbind(\2)])", LOOP),
    (rf"L\.func\.vmap\((.*), out_dims=-1\)\({_V}\)", r"L.stack([(\1)(x) for x in \2.unbind(0)], dim=-1)", LOOP),
    (rf"L\.func\.vmap\((.*)\)\({_V}\)", r"L.stack([(\1)(x) for x in \2.unbind(0)])", LOOP),
]


def proven(found: Difference) -> str | None:
    """Return the reason if PyTorch, computing the last line in another way, agrees with ours."""
    target, equals, expression = found.lines[-1].partition(" = ")
    if not equals or not re.fullmatch(_V, target):
        return None
    for pattern, otherwise, reason in OTHERWISE:
        if match := re.fullmatch(pattern, expression.removesuffix(".clone()")):
            return reason if _agrees(found.lines, f"{target} = {match.expand(otherwise)}") else None
    return None


def _agrees(lines: list[str], otherwise: str) -> bool:
    """Return whether PyTorch's result of a line is ours of the program's last; both may refuse."""
    run = Run()
    with quietly():
        for line in lines[:-1]:
            run.line(line)
        refusals = [_refused(run.theirs, otherwise), _refused(run.ours, lines[-1])]
        if any(refusals):
            return all(refusals)
        theirs, ours = (next(reversed(machine.v.values())) for machine in (run.theirs, run.ours))
        if not isinstance(theirs, torch.Tensor) or not isinstance(ours, rg.Tensor) or theirs.shape != ours.shape:
            return False
        a, b = theirs.numpy(force=True), ours.detach().numpy()
        return a.dtype == b.dtype and values_differ(a, b) is None


def _refused(machine: Machine, line: str) -> bool:
    return isinstance(machine.execute(line), REFUSALS)
