"""Elementwise operators on complex values with special parts: values and gradients as in PyTorch.

Points where PyTorch's result is NaN are left out. So are gradients at infinite and NaN operands: annex G of the C
standard leaves open what products and quotients of such values are, and a gradient is one.
"""

from contextlib import suppress

import numpy as np
import pytest

from retrograd.core import registry

from . import special_values
from .special_values import TOLERANCE, both, cases, is_pointwise
from .test_ops_parity import NAMES

REFUSALS = (NotImplementedError, RuntimeError, TypeError, ValueError)
DTYPES = ("complex64", "complex128")
POINTWISE = [name for name in NAMES if is_pointwise(registry[name])]

# What holds of the operands and of our result where a convention differs.
ANYWHERE = lambda operands, ours: True  # noqa: E731
OF_SIZE_1 = lambda operands, ours: np.abs(np.abs(ours) - 1) < 1e-6  # noqa: E731
EXTREME = lambda operands, ours: any(_is_extreme(o) for o in operands)  # noqa: E731

_RANGE = "an intermediate result is out of range for the largest numbers, or has no digits for the smallest"
_SIZE = "a sign has size 1, also of the smallest numbers, where PyTorch divides by a rounded size"

# (operator, aspect): where ours differs from PyTorch, and why.
CONVENTIONS = {
    ("abs", "gradient 0"): (OF_SIZE_1, _SIZE),
    ("acos", "value 0"): (EXTREME, "(1 - i) sqrt(e) at 1 + ie; PyTorch loses the real part"),
    ("acosh", "gradient 0"): (ANYWHERE, "on a branch cut the derivative is that of either side"),
    ("addcdiv", "gradient 2"): (EXTREME, _RANGE),
    ("angle", "gradient 0"): (EXTREME, _RANGE),
    ("float_power", "value 0"): (EXTREME, _RANGE),
    ("float_power", "gradient 0"): (EXTREME, _RANGE),
    ("float_power", "gradient 1"): (EXTREME, _RANGE),
    ("ldexp", "gradient 0"): (ANYWHERE, "PyTorch takes 0 for 2 to a negative integer power"),
    ("ldexp", "gradient 1"): (EXTREME, "which of the smallest numbers a product is rounded to"),
    ("lerp", "value 0"): (EXTREME, _RANGE),
    ("pow", "value 0"): (EXTREME, _RANGE),
    ("pow", "gradient 0"): (EXTREME, _RANGE),
    ("pow", "gradient 1"): (EXTREME, _RANGE),
    ("sgn", "value 0"): (OF_SIZE_1, _SIZE),
    ("sgn", "gradient 0"): (EXTREME, _RANGE),
    ("sinc", "gradient 0"): (EXTREME, "-pi^2 x / 3 near 0, where PyTorch has 0"),
}


def _is_extreme(number):
    """Return whether a part of a number is infinite, among the largest or among the smallest."""
    sizes = np.abs([np.real(number), np.imag(number)])
    return bool(np.any((sizes > 1e30) | ((sizes < 1e-30) & (sizes > 0))))


def parts(dtype):
    """Return numbers with every pair of special parts."""
    real = np.dtype(dtype).type(0).real.dtype
    f = np.finfo(real)
    axis = np.array([0.0, -0.0, 1.0, -1.0, f.max, f.smallest_subnormal, np.inf, -np.inf, np.nan], real)
    out = np.empty((axis.size, axis.size), dtype)
    out.real, out.imag = axis[:, None], axis
    return out.reshape(-1)


def few_parts(dtype):
    """Return numbers with fewer special parts, for combinations of three."""
    return parts(dtype)[::4]


def differences(name, dtype, to_torch, monkeypatch):
    """Return the points where the two differ, (aspect, operands, ours, PyTorch's); and how many were compared."""
    found, tried = [], 0
    operands = max((len(args) for args, _ in cases(name, "float32")), default=0)
    monkeypatch.setattr(special_values, "complex_grid", parts if operands < 3 else few_parts)
    with suppress(*REFUSALS):
        for args, params in cases(name, dtype):
            finite = np.all([np.isfinite(a.detach().numpy()) for a in args if hasattr(a, "detach")], axis=0)
            for aspect, (mine, its) in both(name, args, params, to_torch).items():
                told = ~np.isnan(its) & (finite | aspect.startswith("value"))
                tried += np.count_nonzero(told)
                for i in np.flatnonzero(told & ~_near(mine, its, TOLERANCE[dtype])):
                    given = [a.detach().numpy()[i] if hasattr(a, "detach") else a for a in args]
                    found.append((aspect, [g for g in given if g is not None], mine[i], its[i]))
    return found, tried


def _near(mine, its, tolerance):
    """Return whether two complex results are equal, both infinite, or close as a whole."""
    if mine.dtype.kind not in "fc":
        return mine == its
    with np.errstate(all="ignore"):
        near = np.abs(mine - its) <= tolerance * np.abs(its)
    return (mine == its) | near | (np.isinf(mine) & np.isinf(its))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", POINTWISE)
def test_complex_special_values_are_pytorchs(name, dtype, to_torch, monkeypatch):
    found, _ = differences(name, dtype, to_torch, monkeypatch)
    wrong = [point for point in found if not _excused(name, *point[:3])]
    assert not wrong, "\n".join(f"{a} at {o}: {ours}, PyTorch {theirs}" for a, o, ours, theirs in wrong[:8])


def _excused(name, aspect, operands, ours):
    where, _ = CONVENTIONS.get((name, aspect), (None, ""))
    return where is not None and bool(where(operands, ours))


def test_conventions_are_needed(to_torch, monkeypatch):
    needed = {
        (name, aspect)
        for name in sorted({name for name, _ in CONVENTIONS})
        for dtype in DTYPES
        for aspect, *_ in differences(name, dtype, to_torch, monkeypatch)[0]
    }
    assert set(CONVENTIONS) <= needed


def test_most_operators_that_take_complex_numbers_are_tested(to_torch, monkeypatch):
    counts = [differences(name, "complex128", to_torch, monkeypatch)[1] for name in POINTWISE]
    assert np.count_nonzero(counts) > 40
