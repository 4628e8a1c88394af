"""Numerical derivatives: central differences along lines through the memory of a function's inputs.

The memory itself is shifted, and restored, so that a function may also read its inputs behind its arguments'
back, as modules read their parameters.

In double precision the step is the caller's.  Below it, rounding decides: a value known up to `noise` gives a
slope known up to `noise / step`, which falls with the step, while the truncation error, step^2 |f'''| / 6,
grows.  Their sum is least at a step of about `(3 precision)^(1/3)` times the scale of x, where the third
derivative is as large as the function (Gill, Murray and Wright, Practical Optimization, 1981, section 8.6).
From there the step is cut until the truncation error, estimated from the slope over twice the step (Richardson),
is below what the tolerance leaves room for.  The noise is measured, not guessed, from differences of high order
over steps so small that only rounding is left in them (Moré and Wild, Estimating computational noise, SIAM
Journal on Scientific Computing 33, 2011).
"""

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Any, NamedTuple

import optree

from retrograd.core import Tensor
from retrograd.core import dtype as dtypes
from retrograd.foundation.describe_value import describe
from retrograd.ops.create import zeros
from retrograd.ops.methods import concrete

Array = Any  # this layer does not import NumPy, whose arrays these are

SAFETY = 8.0  # allowed error of a slope, in standard deviations of rounding noise
REFINEMENTS = 12  # the most times that a step is divided by four
SAMPLES = 8  # function values from which the noise is estimated


class GradcheckError(RuntimeError):
    """An error that `gradcheck` or `gradgradcheck` found in derivatives."""

    __module__ = "retrograd.autograd.gradcheck"  # where users import it from


class VaryingOutputsError(GradcheckError, AssertionError):
    """The error of a function whose outputs have other shapes or dtypes near its inputs; AssertionError in PyTorch."""


class Output(NamedTuple):
    """A tensor that a function returns: its name in messages, and its position."""

    name: str
    position: int
    tensor: Tensor


class Slopes(NamedTuple):
    """The derivatives of one output with respect to one input, and the margin of noise of each.

    Their shape is (directions, entries of the input, entries of the output); a complex input has the two
    directions 1 and 1j.
    """

    values: Array
    margins: Array


# For a line: the slopes of the outputs, and their margins where these are not zero.
Slope = Callable[["Entry | Direction"], tuple[list[Array], list[Array] | None]]


def coarsest_epsilon(tensors: Sequence[Tensor]) -> float:
    """Return the machine epsilon of the least precise dtype among these."""
    sizes = [t.dtype.itemsize // (2 if t.dtype.kind == "c" else 1) for t in tensors]
    return {2: 2.0**-10, 4: 2.0**-23, 8: 2.0**-52}[min(sizes)]


def to_double(array: Array) -> Array:
    """Return a flat copy in double precision."""
    return array.astype("complex128" if array.dtype.kind == "c" else "float64").reshape(-1)


class Probe:
    """A function whose inputs are shifted in place: it returns the outputs at their current values."""

    def __init__(self, func: Callable, arguments: tuple, outputs: list[Output]) -> None:
        self._func = func
        self._arguments = arguments
        self.outputs = outputs
        self._expected = [(o, o.position, o.tensor.shape, o.tensor.dtype) for o in outputs]

    def values(self) -> list[Array]:
        """Return the outputs as flat arrays in double precision, in new memory."""
        found = result_leaves(self._func(*self._arguments))
        return [self._value(found, *expected) for expected in self._expected]

    def _value(self, found: list, output: Output, position: int, shape: tuple, dtype: Any) -> Array:
        value = found[position] if position < len(found) else None
        if not isinstance(value, Tensor) or value.shape != shape or value.dtype != dtype:
            kind = "dtype" if isinstance(value, Tensor) and value.shape == shape else "shape"
            raise VaryingOutputsError(
                f"Expected `func` to return outputs with the same {kind} when inputs are perturbed, but {output.name} "
                f"is a tensor of shape {shape} and {dtype}, and at inputs that were shifted a little it is "
                f"{describe(value)}"
            )
        return to_double(concrete(value))


def result_leaves(result: Any) -> list:
    """Return all leaves of a function's result."""
    return [result] if isinstance(result, Tensor) else optree.tree_leaves(result, none_is_leaf=True)


class Entry:
    """The line along one entry of an array, in the direction 1 or 1j."""

    def __init__(self, array: Array, index: int, unit: complex) -> None:
        self._flat = array.flat
        self._index = index
        self._unit = unit
        self._origin = self._flat[index]
        self._center = complex(self._origin)
        self.scale = abs(self._center)

    def move(self, t: float) -> float:
        """Write origin + t; return t as rounded by that."""
        self._flat[self._index] = self._origin + t * self._unit
        return ((complex(self._flat[self._index]) - self._center) / self._unit).real

    def restore(self) -> None:
        """Restore the origin."""
        self._flat[self._index] = self._origin


class Direction:
    """The line through all entries of an array, along an array of directions."""

    def __init__(self, array: Array, direction: Array) -> None:
        self._array = array
        self._direction = direction
        self._origin = array.copy()
        self.scale = float(abs(array).max(initial=0.0))

    def move(self, t: float) -> float:
        """Write origin + t * direction."""
        self._array[...] = self._origin + t * self._direction
        return t

    def restore(self) -> None:
        """Restore the origin."""
        self._array[...] = self._origin


def central_difference(probe: Probe, line: Entry | Direction, step: float) -> list[Array]:
    """Return the central difference of every output along a line."""
    try:
        high, above = line.move(step), probe.values()
        low, below = line.move(-step), probe.values()
    finally:
        line.restore()
    if high == low:
        raise ValueError(
            f"gradcheck: eps={step:g} changes nothing in an entry of size {line.scale:g}; take a larger one"
        )
    return [(a - b) / (high - low) for a, b in zip(above, below, strict=True)]


def fixed_step(probe: Probe, step: float) -> Slope:
    """Return a function that computes slopes over one fixed step, taken to be free of noise."""

    return lambda line: (central_difference(probe, line, step), None)


def adaptive_step(probe: Probe, noise: list[Array], precision: float, rtol: float) -> Slope:
    """Return a function that computes slopes with steps chosen by the noise of the outputs' values."""

    def slope(line: Entry | Direction) -> tuple[list[Array], list[Array]]:
        step = (3 * precision) ** (1 / 3) * max(1.0, line.scale)
        for _ in range(REFINEMENTS):
            near, far = central_difference(probe, line, step), central_difference(probe, line, 2 * step)
            margins = [SAFETY * sigma / step for sigma in noise]
            if (
                all(map(is_truncation_small, near, far, margins, [rtol] * len(near)))
                or step < 64 * precision * line.scale
            ):
                break
            step /= 4
        return near, margins

    return slope


def is_truncation_small(near: Array, far: Array, margin: Array, rtol: float) -> bool:
    """Return whether the truncation error of `near`, a third of its distance from `far`, is half of the tolerance."""
    return bool((abs(far - near) / 3 <= (rtol * abs(near) + margin) / 2).all())


def estimate_noise(probe: Probe, lines: Sequence[Direction], precision: float) -> list[Array]:
    """Return the standard deviation of the rounding errors in each entry of each output."""
    samples = []
    try:
        for t in range(SAMPLES):
            for line in lines:
                line.move(64 * precision * t)
            samples.append(probe.values())
    finally:
        for line in lines:
            line.restore()
    return [_noise_of_samples(list(values), precision) for values in zip(*samples, strict=True)]


def _noise_of_samples(values: list[Array], precision: float) -> Array:
    """Return the noise in samples along a line: their third differences have 20 times its variance."""
    rows = zeros(len(values), values[0].size, dtype=dtypes.complex128).numpy()
    for row, value in zip(rows, values, strict=True):
        row[...] = value
    third = abs(rows[3:] - 3 * rows[2:-1] + 3 * rows[1:-2] - rows[:-3]).max(axis=0) / sqrt(20)
    return third + precision / 2 * abs(values[0])


def jacobians(probe: Probe, array: Array, slope: Slope) -> list[Slopes]:
    """Return the derivatives of every output with respect to the input stored in `array`."""
    units = (1.0, 1.0j) if array.dtype.kind == "c" else (1.0,)
    found = [empty_slopes(len(units), array.size, o.tensor) for o in probe.outputs]
    for number, unit in enumerate(units):
        for index in range(array.size):
            slopes, margins = slope(Entry(array, index, unit))
            for target, value in zip(found, slopes, strict=True):
                target.values[number, index] = value
            for target, margin in zip(found, margins or (), strict=False):
                target.margins[number, index] = margin
    return found


def empty_slopes(directions: int, entries: int, output: Tensor) -> Slopes:
    """Return uninitialized `Slopes` of one output with respect to one input."""
    size = (directions, entries, output.numel())
    wide = dtypes.complex128 if output.dtype.kind == "c" else dtypes.float64
    return Slopes(zeros(size, dtype=wide).numpy(), zeros(size, dtype=dtypes.float64).numpy())
