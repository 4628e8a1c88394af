"""Differences that PyTorch decides itself: it computes the last line in another way, and agrees with ours there."""

import re
from contextlib import suppress

import numpy as np
import torch

import retrograd as rg

from .compare import gradients, values_differ
from .counterfactual import TARGET, of_counterfactual
from .differential import Difference, Run, quietly
from .machine import REFUSALS, Machine
from .picker import share_memory

_V = r"(v\[\d+\])"
FORWARD = "a fault of PyTorch's: its forward rule contradicts its reverse rule, which agrees with ours"
FACTOR = "a fault of PyTorch's: the imaginary parts of the diagonal of a factor are not read everywhere"
UNSIGNED = "a fault of PyTorch's: negative numbers wrap to unsigned integers"
SHARED = "a fault of PyTorch's: its forward derivatives of elements that share memory are those of one of them"
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
    (rf"L\.func\.jacrev\((.*)\)\({_V}\)", r"L.autograd.functional.jacobian(\1, \2)", LOOP),
    (rf"L\.func\.(hessian|jacfwd)\((.*)\)\({_V}\)", r"L.func.\1(\2)(\3.clone())", SHARED),
    (
        rf"L\.func\.vmap\((.*), in_dims=(-?\d)\)\({_V}\)",
        r"L.stack([(\1)(x) for x in \3.unbind(\2) or [\3.sum(\2).to(\3.dtype)]])[:\3.size(\2)]",
        LOOP,
    ),
    (rf"L\.func\.vmap\((.*), out_dims=-1\)\({_V}\)", r"L.stack([(\1)(x) for x in \2.unbind(0)], dim=-1)", LOOP),
    (rf"L\.func\.vmap\((.*)\)\({_V}\)", r"L.stack([(\1)(x) for x in \2.unbind(0)])", LOOP),
    (rf"(.*){_V} ([<>]) (-\d.*)", r"\1\2.to(L.float64) \3 \4", UNSIGNED),
    (r"L\.(?:\w+\.)?cholesky_inverse\((.*), upper=True\)", r"(lambda u: L.linalg.inv(u.mH @ u))((\1).triu())", FACTOR),
    (
        r"L\.(?:\w+\.)?cholesky_inverse\(((?:.(?!upper=))*)\)",
        r"(lambda u: L.linalg.inv(u @ u.mH))((\1).tril())",
        FACTOR,
    ),
]


def of_proof(found: Difference) -> str | None:
    """Return the reason that an experiment finds for a difference."""
    experiments = (
        proven, independent, zero_in_one, by_leaves, of_nothing, ties, deviation_of_equals, nothing_there, single,
        unsorted, overlapping, masked_by_itself, of_counterfactual,
    )  # fmt: skip
    return next((reason for experiment in experiments if (reason := experiment(found))), None)


def proven(found: Difference) -> str | None:
    """Return the reason if PyTorch, computing the last line in another way, agrees with ours."""
    target, equals, expression = found.lines[-1].partition(" = ")
    if not equals or not re.fullmatch(_V, target):
        return None
    for pattern, otherwise, reason in OTHERWISE:
        match = re.fullmatch(pattern, expression.removesuffix(".clone()"))
        if match and _agrees(found.lines, f"{target} = {match.expand(otherwise)}"):
            return reason
    return None


def independent(found: Difference) -> str | None:
    """Return the reason if a result requires grad in one library only, and no gradient flows from it there."""
    match = re.match(r"v\[(\d+)\]: requires_grad of \w+ (True|False), leaf (True|False), ours", found.message)
    if not match or not re.search(r"L\.func|L\.autograd\.grad|\.grad$", found.lines[-1]):
        return None
    run = _run(found.lines)
    machine = run.theirs if match[2] == "True" else run.ours
    with quietly(), suppress(*REFUSALS):  # where it has no derivative of that order
        flowing = gradients(machine, [int(match[1])], machine.leaves())
        if any((abs(g) > 1e-6).any() for g in flowing if g is not None):  # NaN is 0 times infinity
            return None
    return "the derivative does not depend on the tensor; one graph holds a product with zero"


def zero_in_one(found: Difference) -> str | None:
    """Return the reason if one library returns a gradient of zeros where the other returns none."""
    made = re.match(r"tensors \[(\d*)\], ours \[(\d*)\]$", found.message)
    if not made or "L.autograd.grad" not in found.lines[-1]:
        return None
    run = _run(found.lines)
    gradient = run.theirs.v[int(made[1])] if made[1] else run.ours.v[int(made[2])]
    if (gradient != 0).any():
        return None
    return "the derivative does not depend on the tensor; one graph holds a product with zero"


INTERMEDIATE = re.compile(r"(L\.autograd\.grad\((?:total\()?v\[\d+\]\)?, \[?)v\[(\d+)\]")


def by_leaves(found: Difference) -> str | None:
    """Return the reason if a derivative of a gradient by a result differs, and those by the leaves are the same.

    A rule may compute with its operand or with its result: only the sum of what flows to both is determined.
    """
    before, last = found.lines[:-1], found.lines[-1]
    match = INTERMEDIATE.search(last)
    if not match or "grad" not in "\n".join(before):
        return None
    leaves = _run(before).theirs.leaves()
    if not leaves or int(match[2]) in leaves:
        return None
    for leaf in leaves:
        lines = [*before, last.replace(match[0], f"{match[1]}v[{leaf}]")]
        run = Run()
        with quietly():
            if any(run.line(line) for line in lines) or run.done != lines:
                return None
    return "a derivative of a gradient by a result: PyTorch's rule computes with the result, ours with the operand"


def of_nothing(found: Difference) -> str | None:
    """Return the reason if NaN comes from results without elements: a sum of nothing, times a derivative at a pole."""
    if not re.search(r"gradient of .*: (nan, ours|.*, ours nan)", found.message):
        return None
    run = _run(found.lines)
    empty = [i for i, t in run.theirs.v.items() if not t.numel()]
    for i in empty:
        del run.theirs.v[i], run.ours.v[i]
    with quietly():
        if not empty or run.done != found.lines or any(run.gradients()):
            return None
    return "the gradient of a result without elements, at a pole: 0 times infinity where it is summed up first"


# Operators that compute constants, or functions of integers, in single precision.
SINGLE = re.compile(r"hardsigmoid|igamma|zeta|polygamma")
NUMBER = r"(-?[\d.]+(?:e[-+]\d+)?)"


def single(found: Difference) -> str | None:
    """Return the reason if a number has PyTorch's single precision only, where the program has double precision."""
    numbers = re.search(rf"value at .*: {NUMBER}, ours {NUMBER}$", found.message)
    if not numbers or not SINGLE.search("\n".join(found.lines)):
        return None
    a, b = float(numbers[1]), float(numbers[2])
    if abs(a - b) > 2e-6 * abs(b):
        return None
    return "a fault of PyTorch's: a constant, or a function of integers, in single precision"


SELECTS = re.compile(r"(kthvalue|topk|sort|median|mode)\(")


def ties(found: Difference) -> str | None:
    """Return the reason if an operator that selects one of equal elements had some, or NaN."""
    if "grad" not in found.message and not re.search(r"value at .*: \d+, ours \d+$", found.message):
        return None
    for n, line in enumerate(found.lines):
        for operand in {int(i) for i in re.findall(r"v\[(\d+)\]", line)} if SELECTS.search(line) else ():
            before = _run(found.lines[:n]).theirs.v
            values = before[operand].numpy(force=True) if operand in before else np.empty(0)
            if len(set(values.ravel().tolist())) < values.size or not (values == values).all():
                return "PyTorch's documentation leaves this open: which of equal elements is selected"
    return None


def deviation_of_equals(found: Difference) -> str | None:
    """Return the reason if a standard deviation of equal elements, with no derivative, is 0 except for rounding."""
    if "grad" not in found.message:
        return None
    for n, line in enumerate(found.lines):
        if not (match := re.search(r"v\[(\d+)\]\.std\(", line)):
            continue
        run = _run(found.lines[: n + 1])
        operand, result = run.theirs.v.get(int(match[1])), next(reversed(run.theirs.v.values()))
        if operand is None or not operand.numel() or not operand.is_floating_point():
            continue
        if (result.abs() <= 8 * torch.finfo(operand.dtype).eps * operand.abs().max()).any():
            return "PyTorch's documentation leaves this open: the derivative of the deviation of equal elements"
    return None


PART = re.compile(r"^(?:with L\.no_grad\(\): )?(v\[\d+\]\[.*\]) \S*= ")


def unsorted(found: Difference) -> str | None:
    """Return the reason if a search runs over values that are not sorted, or NaN."""
    match = re.search(r"(?:searchsorted\(|bucketize\(.*)v\[(\d+)\]", found.lines[-1])
    if not match or not re.search(r"value at .*: \d+, ours \d+$", found.message):
        return None
    boundaries = _run(found.lines[:-1]).theirs.v[int(match[1])].numpy(force=True)
    if (boundaries[..., 1:] >= boundaries[..., :-1]).all():
        return None
    return "PyTorch's documentation leaves this open: a search in values that are not sorted"


CHECKED = re.compile(
    r"ours raises \w+: .*(is out of bounds|expected a (floating|real)|must have one dtype|but there are|"
    r"out of range|nothing to choose|complex numbers (have no order|are not supported))"
)


def nothing_there(found: Difference) -> str | None:
    """Return the reason if ours checks arguments of an operator that has at most one element to compute with."""
    if not CHECKED.search(found.message):
        return None
    machine = _run(found.lines[:-1]).theirs
    if part := PART.match(found.lines[-1]):  # what is assigned to
        machine.execute(f"v[-1] = {part[1]}")
    machine.execute(found.lines[-1])
    named = [machine.v[int(i)] for i in ["-1", *re.findall(r"v\[(\d+)\]", found.lines[-1])] if int(i) in machine.v]
    if any(t.numel() == 0 or (t.numel() == 1 and t.is_complex()) for t in named):
        return "a fault of PyTorch's: dtypes and indices are not looked at where there are no elements"
    return None


def overlapping(found: Difference) -> str | None:
    """Return the reason if ours refuses to write to elements of which some share memory, or to a part of such ones."""
    if "memory is read-only" not in found.message and "the memory of out is read-only" not in found.message:
        return None
    target, tensors = TARGET.search(found.lines[-1]), _run(found.lines[:-1]).theirs.v
    written = target and tensors.get(int(target[1] or target[2]))
    if isinstance(written, torch.Tensor):
        if _overlaps(written):
            return "PyTorch leaves a write to elements that share memory undefined"
        if any(share_memory(t, written) and _overlaps(t) for t in tensors.values()):
            return "ours refuses writes to a part of an expanded tensor too, as NumPy does"
    return None


def masked_by_itself(found: Difference) -> str | None:
    """Return the reason if a part is assigned to that a mask chooses whose memory is written to."""
    part = PART.match(found.lines[-1])
    if part is None:
        return None
    target, *masks = (int(i) for i in re.findall(r"v\[(\d+)\]", part[1]))
    tensors = _run(found.lines[:-1]).theirs.v
    if any(i in tensors and share_memory(tensors[target], tensors[i]) for i in masks):
        return "PyTorch leaves this open: it reads the mask while it writes to its memory"
    return None


def _overlaps(tensor: torch.Tensor) -> bool:
    offsets = torch.arange(tensor.untyped_storage().nbytes() + 1)
    return offsets.as_strided(tensor.shape, tensor.stride()).unique().numel() < tensor.numel()


def _run(lines: list[str]) -> Run:
    run = Run()
    with quietly():
        for line in lines:
            run.line(line)
    return run


def _agrees(lines: list[str], otherwise: str) -> bool:
    """Return whether PyTorch's result of a line is ours of the program's last; both may refuse."""
    run = _run(lines[:-1])
    with quietly():
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
