"""The laws of operators on a device: results and derivatives are those in host memory."""

from collections.abc import Callable
from typing import Any

import numpy as np
from tests.tables import first_samples, on_tensors, operators_on_arrays

import retrograd as rg
import retrograd.higher_order
import retrograd.implicit
from retrograd.core import Op, Tensor, registry
from retrograd.core import dtype as dtypes
from retrograd.core.device import ArrayDevice
from retrograd.core.state import override_state
from retrograd.func import vmap
from retrograd.ops.as_tensor import as_tensor
from retrograd.ops.layout import array_device, place
from retrograd.ops.pointwise import real_part
from retrograd.testing import run, samples_of
from retrograd.testing.calculus import as_float_map, directions, gradients, leaf, pull, push

OPERATORS = [n for n in operators_on_arrays() if hasattr(registry[n].definition, "samples")]

# Operators whose samples mean something else on a device, each with the reason.
EXEMPT = {
    "implicit_solution": "the solver is the user's, or SciPy's: it takes NumPy's arrays",
    "pick": "returns one of its params, a tensor of the caller",
    "solve_factors": "factors on a device are LU always, in host memory a small matrix stands for itself",
    "solved": "takes the result of solve_factors in host memory",
    "to_device": "its sample moves the operand to host memory",
}
# Operators with outputs that are determined up to phases only; their `observe` multiplies by host arrays.
OBSERVED = ("eigh_vectors", "linalg.eigh", "linalg.svd", "svd", "svd_vectors")


class Move:
    """The move of values to a device, None being host memory: of tensors, also those in lists and dicts."""

    def __init__(self, device: ArrayDevice | None) -> None:
        self.device = device

    def __call__(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return place(value, self.device)
        if isinstance(value, tuple | list):
            return type(value)([self(member) for member in value])
        return {key: self(member) for key, member in value.items()} if isinstance(value, dict) else value


HOST = Move(None)


def forward(op: Op, args: tuple, params: dict, move: Move) -> tuple:
    """Return the results; an operator without operands makes them on the device."""
    if any(isinstance(a, Tensor) for a in args):
        return run(op, args, params)
    with override_state("device", move.device):
        return run(op, args, params)


def backward(op: Op, args: tuple, params: dict, move: Move) -> tuple:
    """Return the cotangents of the operands."""
    f, xs = as_float_map(op, args, params)
    return pull(f, xs, move(directions(f(*xs), 2)))


def tangents(op: Op, args: tuple, params: dict, move: Move) -> tuple:
    """Return the tangents of the results."""
    f, xs = as_float_map(op, args, params)
    return push(f, xs, move(directions(xs, 1)))[1]


def second(op: Op, args: tuple, params: dict, move: Move) -> tuple:
    """Return the derivatives of <vjp(g), t>."""
    f, xs = as_float_map(op, args, params)
    outs = f(*xs)
    gs, ts = move(directions(outs, 2)), move(directions(xs, 1))
    if not any(out.requires_grad for out in f(*map(leaf, xs))) or all(g is None for g in pull(f, xs, gs)):
        return ()

    def slope(*operands):
        found = gradients(f(*operands), list(operands), gs, create_graph=True)
        terms = [real_part((g * t).sum()) for g, t in zip(found, ts, strict=True) if g is not None]
        return (sum(terms[1:], terms[0]),)

    return pull(slope, xs, move((as_tensor(np.ones((), dtypes.real_of(xs[0].dtype))),)))


def batch(op: Op, args: tuple, params: dict, move: Move) -> tuple:
    """Return the results for two examples at once."""
    f, tensors = on_tensors(op, args, params)
    return tuple(vmap(f, randomness="same")(*[rg.stack([t, t]) for t in tensors])) if tensors else ()


def check_equal(found: tuple, expected: tuple, device: ArrayDevice | None, observe: Callable | None = None) -> None:
    """Check that tensors on a device are those in host memory, except for the rounding of other sums.

    observe: computes what is determined of the results; eigenvectors, for example, may have other phases.
    """
    assert [g is None for g in found] == [e is None for e in expected]
    given = [(g, e) for g, e in zip(found, expected, strict=True) if e is not None]
    assert all(array_device(on_device) is device for on_device, _ in given)
    pairs = [(place(on_device, None), e) for on_device, e in given]
    assert [g.aval for g, _ in pairs] == [e.aval for _, e in pairs]
    if observe is not None:
        pairs = zip(observe(*[g for g, _ in pairs]), observe(*[e for _, e in pairs]), strict=True)
    for g, e in pairs:
        single = dtypes.real_of(e.dtype).itemsize < 8
        size = np.abs(e.value[np.isfinite(e.value)]).max(initial=1) if e.dtype.kind in "fc" else 1
        rtol, atol = (1e-3, 1e-4) if single else (1e-9, 1e-8)
        np.testing.assert_allclose(g.value, e.value, rtol=rtol, atol=size * atol)


def compare(law: Callable, name: str, move: Move) -> None:
    """Compare what a law computes on the device with the same in host memory, for the samples that host memory has.

    Results are compared on all of an operator's samples, derivatives on the first ones.
    """
    op = registry[name]
    observe = getattr(op.definition, "observe", None) if law in (forward, batch) else None
    for args, params in first_samples(list(samples_of(op)), SAMPLES[law]):
        try:
            expected = law(op, args, params, HOST)
        except (RuntimeError, NotImplementedError, TypeError, ValueError):
            continue  # no such derivative, no such batch: the laws of host memory say so
        check_equal(law(op, move(args), move(params), move), expected, move.device, observe)


# Laws, and on how many samples of an operator they are checked outside the nightly run.
SAMPLES = {forward: None, backward: 2, tangents: 2, second: 1, batch: 1}
LAWS = tuple(SAMPLES)


def failures(law: Callable, move: Move) -> dict[str, str]:
    """Return the operators that do not hold a law on a device, with the errors."""
    left = {*EXEMPT, *(OBSERVED if law in (backward, tangents, second) else ())}
    failed = {}
    for name in sorted(set(OPERATORS) - left):
        try:
            compare(law, name, move)
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"
    return failed
