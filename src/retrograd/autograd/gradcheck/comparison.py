"""For `gradcheck`: Jacobians by either mode and by differences, compared, and what is said where they differ.

A complex number counts as its two real parts.  PyTorch's gradient of a real value s with respect to a complex x
is ds/dRe(x) + i ds/dIm(x); a complex output is two such values, whose gradients are those for the cotangents 1
and 1j.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations
from math import inf, sqrt
from typing import NamedTuple

from retrograd.autograd.gradcheck.backward_mode import (
    ROUNDING_ULPS,
    Input,
    Parts,
    Problem,
    backward_jacobians,
    backward_slopes,
    check_undefined,
    named_leaves,
    random_like,
    real_parts,
    unravel_index,
)
from retrograd.autograd.gradcheck.differences import (
    Array,
    Direction,
    GradcheckError,
    Output,
    Probe,
    Slope,
    Slopes,
    adaptive_step,
    coarsest_epsilon,
    estimate_noise,
    fixed_step,
    jacobians,
)
from retrograd.autograd.gradcheck.forward_mode import forward_columns, forward_slopes
from retrograd.core import Tensor
from retrograd.ops.create import from_numpy
from retrograd.ops.random import Generator

EPS, ATOL, RTOL = 1e-6, 1e-5, 1e-3  # PyTorch's defaults, for double precision
DOUBLE_EPSILON = 2.0**-52


class Tolerance(NamedTuple):
    """The tolerance of gradients: relative to the numerical one and to the Jacobian's largest entry, and `atol`."""

    rtol: float
    atol: float
    share: float = 0.0

    def allowed(self, numerical: Array, analytical: Array) -> Array:
        """Return the allowed distance of each entry."""
        largest = float(abs(analytical).max(initial=0.0))
        return self.atol + self.rtol * abs(numerical) + self.share * (largest if largest < inf else 0.0)


class Pair(NamedTuple):
    """One part of one output, real or imaginary, and one input, with both Jacobians (input entries, output entries)."""

    mode: str
    input: Input
    output: Output
    part: str
    numerical: Array
    analytical: Array
    allowed: Array


# ---------------------------------------------------------------------------------------------------- differences


def choose_method(problem: Problem, probe: Probe) -> tuple[Slope, Tolerance]:
    """Return the method for slopes, and the tolerance: below double precision, PyTorch's defaults are unusable."""
    settings = problem.settings
    tolerance = Tolerance(settings.rtol, settings.atol)
    precision = coarsest_epsilon([*problem.tensors, *(o.tensor for o in probe.outputs)])
    if precision == DOUBLE_EPSILON or settings.eps != EPS:
        return fixed_step(probe, settings.eps), tolerance
    check_deterministic(probe, settings.nondet_tol)
    if (settings.atol, settings.rtol) == (ATOL, RTOL):
        tolerance = Tolerance(max(RTOL, ROUNDING_ULPS * precision), 0.0, ROUNDING_ULPS * precision)
    generator = Generator(0)
    lines = [Direction(x.array, _random_at_scale(x.tensor, generator).numpy()) for x in problem.inputs]
    return adaptive_step(probe, estimate_noise(probe, lines, precision), precision, tolerance.rtol), tolerance


def _random_at_scale(x: Tensor, generator: Generator) -> Tensor:
    """Return random numbers of about the size of the entries of x, or 1 where these are 0."""
    size = x.detach().abs()
    return random_like(x, generator) * (size + (size == 0))


def check_deterministic(probe: Probe, tolerance: float) -> None:
    """Check that two evaluations at the same inputs agree."""
    for output, first, second in zip(probe.outputs, probe.values(), probe.values(), strict=True):
        same = (abs(first - second) <= tolerance) | (first == second) | (first != first) & (second != second)
        if not same.all():
            raise GradcheckError(
                f"the function is not deterministic: at the same inputs {output.name} varies by more than "
                f"nondet_tol={tolerance:g}"
            )


# -------------------------------------------------------------------------------------------------- the comparison


def check_jacobians(problem: Problem) -> None:
    """Compare every entry of every Jacobian."""
    analytical = {}
    if problem.settings.backward:
        analytical["backward"] = [backward_jacobians(problem, output) for output in problem.outputs]
    if problem.settings.forward:
        analytical["forward"] = _forward_jacobians(problem)
    probe = problem.probe
    slope, tolerance = choose_method(problem, probe)
    numerical = [jacobians(probe, x.array, slope) for x in problem.inputs]
    for mode, parts in analytical.items():
        wrong = [pair for pair in _pairs(problem, mode, numerical, parts, tolerance) if _mismatches(pair).any()]
        if wrong:
            raise GradcheckError(_mismatch_report(wrong) + _possible_causes(problem, probe))


def _forward_jacobians(problem: Problem) -> list[Parts]:
    """Return the Jacobians of every output by forward mode, in the format of `gradients`."""
    found = forward_columns(problem)
    return [
        {part: [_gradient_of(slopes[o], part).T for slopes in found] for part in real_parts(output.tensor)}
        for o, output in enumerate(problem.outputs)
    ]


def _pairs(
    problem: Problem, mode: str, numerical: list[list[Slopes]], analytical: list[Parts], tolerance: Tolerance
) -> Iterator[Pair]:
    for i, x in enumerate(problem.inputs):
        for output, slopes, parts in zip(problem.outputs, numerical[i], analytical, strict=True):
            for part, matrices in parts.items():
                n, a = _gradient_of(slopes.values, part), matrices[i].T
                yield Pair(mode, x, output, part, n, a, tolerance.allowed(n, a) + slopes.margins.sum(axis=0))


def _gradient_of(slopes: Array, part: str) -> Array:
    """Return PyTorch's gradient of one part of an output, from its slopes along 1 and, for a complex input, 1j."""
    real = slopes.imag if part == "imaginary" else slopes.real
    return real[0] if len(real) == 1 else real[0] + 1j * real[1]


def _mismatches(pair: Pair) -> Array:
    return ~(abs(pair.numerical - pair.analytical) <= pair.allowed)


def _excess(pair: Pair) -> Array:
    """Return by how much each entry exceeds the tolerance; infinity for entries that are NaN."""
    excess = abs(pair.numerical - pair.analytical) - pair.allowed
    excess[excess != excess] = inf
    return excess


def _mismatch_report(wrong: Sequence[Pair]) -> str:
    # PyTorch looks at the imaginary parts first.
    worst = max(wrong, key=lambda pair: (pair.part == "imaginary", _excess(pair).max()))
    part = f"While considering the {worst.part} part of complex outputs only, " if worst.part else ""
    mode = "computed with forward mode " if worst.mode == "forward" else ""
    others = [f"{p.part} {p.output.name}".strip() + f" by {p.input.name}" for p in wrong if p is not worst]
    return (
        f"{part}Jacobian {mode}mismatch for {worst.output.name} with respect to {worst.input.name},\n"
        f"numerical:{from_numpy(worst.numerical)}\nanalytical:{from_numpy(worst.analytical)}\n"
        f"with a row for each entry of the input and a column for each of the output.\n{_worst_entry_text(worst)}"
        + (f"\nWrong too: {', '.join(others)}." if others else "")
    )


def _worst_entry_text(pair: Pair) -> str:
    wrong = _mismatches(pair)
    row, column = divmod(int(_excess(pair).argmax()), wrong.shape[1])
    n, a = pair.numerical[row, column].item(), pair.analytical[row, column].item()
    return (
        f"{wrong.sum()} of {wrong.size} entries are wrong. The worst: {pair.output.name} at index "
        f"{unravel_index(column, pair.output.tensor.shape)} by {pair.input.name} at index "
        f"{unravel_index(row, pair.input.tensor.shape)}: numerical {n:.8g}, analytical {a:.8g}; they differ by "
        f"{abs(n - a):.3g}, allowed is {pair.allowed[row, column]:.3g}."
    )


def _possible_causes(problem: Problem, probe: Probe) -> str:
    """Return other possible reasons for a mismatch."""
    found = list(_shared_memory_messages(problem.arguments))
    checks = [partial(check_deterministic, probe, problem.settings.nondet_tol)]
    if problem.settings.backward:
        checks.append(partial(check_undefined, problem))
    for check in checks:
        try:
            check()
        except GradcheckError as error:
            found.append(str(error))
    return "".join(f"\nPerhaps the reason: {suspicion}." for suspicion in found)


def _shared_memory_messages(arguments: tuple) -> Iterator[str]:
    tensors = [(name, t) for name, t in named_leaves("input", arguments) if isinstance(t, Tensor) and t.numel()]
    for (first, a), (second, b) in combinations(tensors, 2):
        if (
            a is not b
            and (a.requires_grad or b.requires_grad)
            and _ranges_overlap(_address_range(a), _address_range(b))
        ):
            yield f"{first} and {second} may share memory, so that shifting one would shift the other"


def _address_range(x: Tensor) -> tuple[int, int]:
    """Return the first address of a tensor's memory and its end."""
    array = x.detach().numpy()
    start = array.__array_interface__["data"][0]
    steps = [stride * (size - 1) for stride, size in zip(array.strides, array.shape, strict=True)]
    return start + sum(min(s, 0) for s in steps), start + sum(max(s, 0) for s in steps) + array.itemsize


def _ranges_overlap(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[1] and b[0] < a[1]


# ------------------------------------------------------------------------------------------------------- fast mode


def projections_agree(problem: Problem) -> bool:
    """Return whether v . J u agrees in all modes, for each input and output and random u and v.

    The tolerance is that of one entry, not of all: what is stopped here is looked at entry by entry, and what
    passes should be right.
    """
    generator = Generator(0)
    us = [random_like(x, generator) for x in problem.tensors]
    vs = [random_like(o.tensor, generator) for o in problem.outputs]
    slope, tolerance = choose_method(problem, problem.probe)
    analytical = _projections(problem, us, vs)
    for i, (x, u) in enumerate(zip(problem.inputs, us, strict=True)):
        slopes, margins = slope(Direction(x.array, u.numpy()))
        for o, v in enumerate(vs):
            n, noise = _project(v, slopes[o], None if margins is None else margins[o])
            single = tolerance._replace(rtol=tolerance.rtol / sqrt(max(1, u.numel() * v.numel())))
            allowed = single.allowed(n, slopes[o]) + noise
            if not all(abs(n - found[o][i]) <= allowed for found in analytical):
                return False
    return True


def _projections(problem: Problem, us: list[Tensor], vs: list[Tensor]) -> list[list[list[float]]]:
    """Return the slopes of v . output along u by each checked mode, for each output and input."""
    found = []
    if problem.settings.backward:
        found.append([backward_slopes(problem, output, v, us) for output, v in zip(problem.outputs, vs, strict=True)])
    if problem.settings.forward:
        found.append(forward_slopes(problem, us, vs))
    return found


def _project(v: Tensor, slopes: Array, margin: Array | None) -> tuple[float, float]:
    """Return the real inner product of v with slopes, and its noise."""
    flat = v.numpy().reshape(-1)
    noise = 0.0 if margin is None else sqrt(float((abs(flat * margin) ** 2).sum()))
    return float((flat.conj() * slopes).real.sum()), noise
