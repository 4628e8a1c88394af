"""In-place writes after the call of every operator: backward raises only where PyTorch's does, or gives its gradients.

Where PyTorch refuses and retrograd does not, the gradients must be those of the program without the write.
"""

from functools import cache

import pytest
import torch

import retrograd as rg
from retrograd.core import registry
from retrograd.testing import run, samples_of
from retrograd.testing.writes_law import double, is_changed_by_write

from ..tables import merged
from .conftest import plain, to_torch
from .test_ops_parity import (
    CALLS,
    KNOWN,
    NAMES,
    TOLERANCE,
    _split,
    call_torch,
    cast,
    close,
    differentiated,
    floats,
    noise,
)

REFUSALS = (RuntimeError, TypeError, ValueError, NotImplementedError)

# Operators that tests/parity/families calls by way of others, which save other values.
DIRECT = {
    "cdist": lambda x1, x2, p, compute_mode: torch.cdist(x1, x2, p),
    "hardsigmoid": torch.nn.functional.hardsigmoid,
    "linalg.eigh": torch.linalg.eigh,
    "linalg.svd": lambda A, full_matrices, driver: torch.linalg.svd(A, full_matrices),
    "pdist": torch.pdist,
    "prod": lambda x, dim, keepdim, dtype: CALLS["prod"](x, dim, keepdim, dtype) if dim else x.prod(),
    "svd": torch.svd,
}
# (operator, "refuses" or "differs"): why ours refuses what PyTorch does not, or gives other gradients.
WRITES = merged("parity.families", "WRITES")


def direct(name, args, params):
    """Return PyTorch's results of the operator itself, as a tuple."""
    if name not in DIRECT:
        return call_torch(name, args, params)
    given = {**registry[name].schema.group(args), **params}
    out = DIRECT[name](*[given[p.name] for p in registry[name].schema.parameters])
    return tuple(out) if isinstance(out, tuple) else (out,)


class Program:
    """One call of an operator, by one of the two libraries, on inputs computed from leaves."""

    def __init__(self, library, call, args, chosen):
        copies = [a.detach().clone() if isinstance(a, library.Tensor) else a for a in args]
        self.library = library
        self.leaves = [copies[i].requires_grad_(True) for i in chosen]
        self.inputs = tuple(a * 1 if i in chosen else a for i, a in enumerate(copies))
        self.outs = call(self.inputs)

    def tensor(self, target):
        """Return the tensor at ("input", i) or ("output", i)."""
        return (self.inputs if target[0] == "input" else self.outs)[target[1]]

    def gradients(self, cotangents):
        """Return the gradients of the leaves, None if there is none."""
        pairs = zip(floats(self.outs), cotangents, strict=True)
        flowing = [(o, self.library.tensor(g)) for o, g in pairs if o.requires_grad]
        if not flowing:
            return [None] * len(self.leaves)
        outs, gs = zip(*flowing, strict=True)
        return self.library.autograd.grad(outs, self.leaves, gs, allow_unused=True)

    def after(self, target, recorded, cotangents):
        """Return the gradients after a write; None if the write or the backward pass is refused."""
        try:
            self.write(self.tensor(target), recorded)
            return self.gradients(cotangents)
        except REFUSALS:
            return None

    def write(self, tensor, recorded):
        """Write like `double`."""
        if self.library is rg:
            double(tensor, recorded)
            return
        with torch.set_grad_enabled(recorded):
            if tensor.is_floating_point() or tensor.is_complex():
                tensor.mul_(2)
            elif tensor.dtype == torch.bool:
                tensor.logical_not_()
            else:
                tensor.add_(1)


class Hazard:
    """One sample of an operator, its differentiated inputs, and the tensors written to after the call."""

    def __init__(self, name, args, params, chosen, dtype):
        self.name, self.chosen, self.tolerance = name, chosen, TOLERANCE[dtype]
        theirs, given = to_torch(args), {k: to_torch(v) for k, v in params.items()}
        ours, its = (in_place, in_place) if name.endswith("_") else (run_ours, direct)
        self.ours = lambda: Program(rg, lambda xs: ours(name, xs, params), args, chosen)
        self.theirs = lambda: Program(torch, lambda xs: its(name, xs, given), theirs, chosen)
        outs = self.ours().outs
        self.cotangents = noise(floats(outs), 1)
        self.targets = [("input", i) for i, a in enumerate(args) if isinstance(a, rg.Tensor)]
        self.targets += [("output", i) for i, a in enumerate(outs) if isinstance(a, rg.Tensor)]

    def verdicts(self):
        """Yield for each write "", "refuses" or "differs"; raise an AssertionError if the gradients are wrong."""
        for target in self.targets:
            for recorded in (True, False):
                yield target, recorded, self.verdict(target, recorded)

    def verdict(self, target, recorded):
        """Return how the two compare after one write."""
        mine = self.ours().after(target, recorded, self.cotangents)
        its = self.theirs().after(target, recorded, self.cotangents)
        if mine is None:
            return "" if its is None else "refuses"
        self.check(mine, self.unwritten(target, recorded))
        if its is None or self.name in DIRECT or (self.name.removesuffix("_"), "gradient") in KNOWN:
            return ""
        try:
            self.check(mine, its)
        except AssertionError:
            return "differs"
        return ""

    def unwritten(self, target, recorded):
        """Return the gradients without the write; a recorded write doubles the cotangents of views of that memory."""
        program = self.ours()
        written = program.tensor(target)
        shown = [is_changed_by_write(o, written) for o in floats(program.outs)]
        doubled = [g * (2 if recorded and s else 1) for g, s in zip(self.cotangents, shown, strict=True)]
        return program.gradients(doubled)

    def check(self, mine, others):
        """Raise an AssertionError if gradients differ."""
        for a, b in zip(mine, others, strict=True):
            close(a, torch.from_numpy(b.numpy()) if isinstance(b, rg.Tensor) else b, 2 * self.tolerance, plain)

    def is_refused_by_pytorch(self):
        """Return whether PyTorch refuses the call itself."""
        try:
            self.theirs()
        except REFUSALS:
            return True
        return False


def run_ours(name, args, params):
    """Return our results as a tuple."""
    return run(registry[name], args, params)


def in_place(name, args, params):
    """Return the result of the method that writes to its first argument, of either library, as a tuple."""
    schema = registry[name[:-1]].schema
    inputs_first = sorted(schema.parameters, key=lambda p: p not in schema.inputs)
    (x, *others), named = _split(inputs_first, {**schema.group(args), **params})
    return (getattr(x, name)(*others, **named),)


def hazards(name, dtype):
    """Yield the samples of an operator, differentiated by all of its inputs, and by each alone."""
    op = registry[name.removesuffix("_")]
    for args, params in samples_of(op) if op.differentiable or op.composite or op.name != name else ():
        if op.name != name and not isinstance(args[0], rg.Tensor):
            continue
        args = cast(args, dtype)
        wanted = {id(a) for a in differentiated(op.name, args)}
        every = [i for i, a in enumerate(args) if id(a) in wanted]
        for chosen in [every, *([i] for i in every if len(every) > 1)] if every else ():
            try:
                hazard = Hazard(name, args, params, chosen, dtype)
            except REFUSALS:
                if not dtype.startswith("complex") and op.name == name:
                    raise
                continue  # complex values, and results that do not fit into the first argument, may be refused
            if not hazard.is_refused_by_pytorch():
                yield hazard


@cache
def faults(name, dtype):
    """Return the faults in the verdicts of an operator, with the first case of each."""
    found = {}
    for hazard in hazards(name, dtype):
        for target, recorded, verdict in hazard.verdicts():
            if verdict:
                found.setdefault(verdict, f"by {hazard.chosen}, {target}, {'recorded' if recorded else 'no_grad'}")
    return found


WRITERS = [f"{n}_" for n in NAMES if hasattr(rg.Tensor, f"{n}_") and hasattr(torch.Tensor, f"{n}_")]
DTYPES = ("float32", "float64", "complex128")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES + WRITERS)
def test_a_write_is_refused_only_where_pytorch_refuses_it(name):
    for dtype in DTYPES:
        unexpected = {verdict: case for verdict, case in faults(name, dtype).items() if (name, verdict) not in WRITES}
        assert not unexpected, dtype


@pytest.mark.filterwarnings("ignore")
def test_known_differences_of_writes_are_still_there():
    assert len(WRITERS) > 100
    for name, verdict in WRITES:
        assert any(verdict in faults(name, dtype) for dtype in DTYPES), f"{name}, {verdict}: delete it in WRITES"
