"""Elementwise operators on special values agree with PyTorch, or with mpmath where PyTorch is wrong."""

from contextlib import suppress

import numpy as np
import pytest

from retrograd.core import Tensor, registry

from .exact import EXACT, is_right
from .special_values import TOLERANCE, both, cases, different, is_pointwise
from .test_ops_parity import NAMES

REFUSALS = (NotImplementedError, RuntimeError)  # of half precision
FLOATS = ("float16", "float32", "float64")
POINTWISE = [name for name in NAMES if is_pointwise(registry[name]) and any(cases(name, "float32"))]

# Conditions on the operands, or on both results, where a convention differs.
EVERYWHERE = lambda operands, ours, theirs: True  # noqa: E731
NAN = lambda operands, ours, theirs: any(map(np.isnan, operands))  # noqa: E731
INFINITE = lambda operands, ours, theirs: any(map(np.isinf, operands))  # noqa: E731
ZEROS = lambda operands, ours, theirs: ours == theirs == 0  # noqa: E731
EQUAL_BOUNDS = lambda operands, ours, theirs: len(operands) == 3 and operands[1] == operands[2]  # noqa: E731
NOT_FINITE = lambda operands, ours, theirs: not all(map(np.isfinite, operands))  # noqa: E731
NEGATIVE_ZERO = lambda operands, ours, theirs: any(o == 0 and np.signbit(o) for o in operands)  # noqa: E731
ZERO = lambda operands, ours, theirs: operands[0] == 0  # noqa: E731
HUGE = lambda operands, ours, theirs: abs(operands[0]) > 1e12  # noqa: E731
TINY = lambda operands, ours, theirs: abs(ours) < 1e-35  # noqa: E731

_NAN_SIGN = "NaN has no sign: as in NumPy the answer is NaN, where PyTorch says 0"
_ZERO = "which of the zeros is left open by IEEE 754, and by PyTorch's own kernels, which differ by dtype"
_LIMIT = "the limit, where PyTorch subtracts or divides infinities"
_FORGOTTEN = "PyTorch takes a formula for |x| = 1, or none, and forgets NaN"
_FUSED = "PyTorch adds and multiplies in one step where the processor can; NumPy's product rounds, or overflows, first"
_CANCELS = "the difference of nearly equal functions, as PyTorch takes it: no digits are right far from 0"
_SUBNORMAL = "a subnormal number of few digits is multiplied; PyTorch has 0 instead, or fewer digits"
_FROM_RESULT = "from the result, as in PyTorch, so that writing in place is possible: it cancels near 1"
_POWER = "b times a^(b - 1), as in PyTorch, which is out of range for the smallest numbers"
_TAIL = "1 + erf(x) cancels in the left tail, as in PyTorch: exact to the digits of x"

# (operator, aspect): why ours differs from PyTorch although no exact value shows that PyTorch is wrong.
CONVENTIONS = {
    ("abs", "gradient 0"): (NAN, _NAN_SIGN),
    ("sign", "value 0"): (NAN, _NAN_SIGN),
    ("sgn", "value 0"): (NAN, _NAN_SIGN),
    ("addcdiv", "gradient 2"): (EVERYWHERE, _LIMIT + "; and tensor1 times the value is rounded"),
    ("addcmul", "value 0"): (EVERYWHERE, _FUSED),
    ("subtract", "value 0"): (EVERYWHERE, _FUSED),
    ("rsub", "value 0"): (EVERYWHERE, _FUSED),
    ("clamp", "value 0"): (ZEROS, _ZERO),
    ("clamp_min", "value 0"): (ZEROS, _ZERO),
    ("clamp_max", "value 0"): (ZEROS, _ZERO),
    ("maximum", "value 0"): (ZEROS, _ZERO),
    ("minimum", "value 0"): (ZEROS, _ZERO),
    ("fmax", "value 0"): (ZEROS, _ZERO),
    ("fmin", "value 0"): (ZEROS, _ZERO),
    ("nextafter", "value 0"): (ZEROS, _ZERO),
    ("relu", "value 0"): (ZEROS, _ZERO),
    **{
        (name, "gradient 0"): (
            NAN,
            "the derivative at NaN: PyTorch's depends on whether numbers fill a vector register",
        )
        for name in ("hardshrink", "hardsigmoid", "hardswish", "hardtanh", "relu6", "softshrink")
    },
    ("erfinv", "value 0"): (ZEROS, "SciPy's, which loses the sign of -0.0"),
    ("remainder", "value 0"): (ZEROS, "the sign of the divisor, as in Python and NumPy"),
    ("clamp", "gradient 1"): (EQUAL_BOUNDS, "of equal bounds PyTorch gives the gradient to neither, ours to the lower"),
    ("copysign", "gradient 0"): (INFINITE, "PyTorch divides by the operand, which is NaN where it is infinite"),
    ("gelu", "value 0"): (EVERYWHERE, _TAIL),
    ("gelu", "gradient 0"): (EVERYWHERE, _TAIL + "; and PyTorch's kernels make NaN of infinities"),
    ("ldexp", "gradient 0"): (EVERYWHERE, "PyTorch takes 0 for 2 to a negative integer power"),
    **{
        (name, "value 0"): (
            lambda operands, ours, theirs: NAN(operands, ours, theirs) or float(operands[0]) < 1e-300,
            "NaN gives NaN, where PyTorch says 0 or 1; " + _SUBNORMAL,
        )
        for name in ("igamma", "igammac")
    },
    **{
        (name, "gradient 1"): (
            lambda operands, ours, theirs: not 0 < float(operands[0]) < 1e100 or operands[0] == 1 or np.isnan(theirs),
            "not defined for negative a, and terms cancel for large a; PyTorch's is NaN for a = 1 at 0 and for large a",
        )
        for name in ("igamma", "igammac")
    },
    ("lerp", "value 0"): (EVERYWHERE, _LIMIT + "; and the way from x to end must be in the range, as in PyTorch"),
    ("logit", "gradient 0"): (NAN, "that of clamp, which PyTorch's has too: 0 at NaN"),
    ("mish", "value 0"): (TINY, _SUBNORMAL),
    ("mish", "gradient 0"): (TINY, _SUBNORMAL),
    ("silu", "value 0"): (TINY, _SUBNORMAL),
    ("silu", "gradient 0"): (TINY, _SUBNORMAL),
    ("polar", "gradient 0"): (NOT_FINITE, "that does not depend on the size, which PyTorch makes of the result"),
    ("softsign", "gradient 0"): (INFINITE, _LIMIT),
    ("special.bessel_y0", "value 0"): (HUGE, "the phase is SciPy's, from rounded arguments"),
    ("special.i1", "gradient 0"): (NAN, "at NaN PyTorch says 0.5"),
    ("polygamma", "value 0"): (INFINITE, "0 at inf, the limit: PyTorch's zeta function is NaN there"),
    ("polygamma", "gradient 0"): (INFINITE, "the same"),
    ("pow", "value 0"): (INFINITE, "PyTorch takes 1 / sqrt for the power -0.5; C's pow(-inf, -0.5) is 0"),
    ("special.airy_ai", "value 0"): (HUGE, "the limits; far to the left the phase has no digits"),
    ("special.chebyshev_polynomial_w", "value 0"): (NAN, _FORGOTTEN),
    ("special.shifted_chebyshev_polynomial_u", "value 0"): (NAN, _FORGOTTEN),
    ("special.laguerre_polynomial_l", "value 0"): (NAN, _FORGOTTEN),
    ("special.i1e", "gradient 0"): (EVERYWHERE, _CANCELS + "; and at NaN PyTorch says 0.5"),
    ("special.i0e", "gradient 0"): (EVERYWHERE, _CANCELS),
    ("special.erfcx", "gradient 0"): (EVERYWHERE, _CANCELS),
    ("special.log_ndtr", "gradient 0"): (INFINITE, _LIMIT),
    ("special.zeta", "value 0"): (INFINITE, "0 at inf, the limit"),
    ("special.zeta", "gradient 1"): (INFINITE, "0 at inf, the limit"),
}


# The same where PyTorch agrees, and both are inexact, or mpmath's value is by another convention.
SHARED = {
    ("addcdiv", "value 0"): (EVERYWHERE, "tensor1 times the value is rounded, as in PyTorch"),
    ("atan2", "value 0"): (NEGATIVE_ZERO, "mpmath has no -0"),
    ("ldexp", "value 0"): (ZERO, "2 to a power that is no integer is taken first, as in PyTorch"),
    ("ldexp", "gradient 1"): (ZERO, "the same"),
    ("tanh", "gradient 0"): (EVERYWHERE, _FROM_RESULT),
    ("tanhshrink", "value 0"): (EVERYWHERE, "x - tanh(x) cancels near 0, as in PyTorch: exact to the digits of x"),
    ("sigmoid", "gradient 0"): (EVERYWHERE, _FROM_RESULT),
    ("atan2", "gradient 0"): (HUGE, "the distance is out of range"),
    ("atan2", "gradient 1"): (HUGE, "the distance is out of range"),
    ("float_power", "gradient 0"): (EVERYWHERE, _POWER),
    ("pow", "gradient 0"): (EVERYWHERE, _POWER),
    ("special.zeta", "value 0"): (HUGE, "NaN for exponents of 1e18 and more, as in SciPy; the limit is 0, 1 or inf"),
    ("special.zeta", "gradient 1"): (HUGE, "the same"),
}


def differences(name, dtype, to_torch):
    """Return the points where the two differ: (aspect, operands, params, ours, PyTorch's); and the number compared."""
    found, tried = [], 0
    for args, params in cases(name, dtype):
        for aspect, (mine, its) in both(name, args, params, to_torch).items():
            bad = different(aspect, mine, its, dtype)
            tried += bad.size
            found += [(aspect, _operands(args, i), params, mine[i], its[i]) for i in np.flatnonzero(bad)]
    return found, tried


def _operands(args, i):
    given = [a.detach().numpy()[i] if isinstance(a, Tensor) else a for a in args]
    return [a for a in given if a is not None]


def excused(name, dtype, aspect, operands, params, ours, theirs):
    """Return whether ours is right, by mpmath, or by a convention of the table."""
    if dtype in FLOATS and is_right(ours, name, aspect, operands, params, dtype, TOLERANCE[dtype]):
        return True
    where, _ = CONVENTIONS.get((name, aspect), (None, ""))
    return where is not None and bool(where(operands, ours, theirs))


@pytest.mark.parametrize("name", POINTWISE)
def test_special_values_are_pytorchs_or_right(name, to_torch):
    for dtype in FLOATS:
        with suppress(*REFUSALS):
            found, tried = differences(name, dtype, to_torch)
            assert tried > 0
            wrong = [point for point in found if not excused(name, dtype, *point)]
            listed = "".join(f"\n{a} at {list(map(str, o))} {p}: {m}, PyTorch {t}" for a, o, p, m, t in wrong[:8])
            assert not wrong, f"{dtype}: {len(wrong)} of {tried} differ:{listed}"


@pytest.mark.parametrize("name", sorted(EXACT))
def test_special_values_are_right_where_pytorch_agrees(name, to_torch):
    """Both could be wrong: finite points of one or two operands are compared with exact values."""
    for dtype in ("float32", "float64"):
        for args, params in cases(name, dtype):
            for aspect, (mine, _) in both(name, args, params, to_torch).items():
                wrong = [
                    i
                    for i in range(0, mine.size, 1 + mine.size // 200)
                    if mistaken(name, dtype, aspect, args, i, params, mine)
                ]
                shown = [(_operands(args, i), mine[i]) for i in wrong[:5]]
                assert not wrong, f"{dtype}, {aspect}, {params}: {len(wrong)} are wrong: {shown}"


@pytest.mark.parametrize("entry", SHARED, ids=": ".join)
def test_shared_mistakes_are_needed(entry, to_torch, monkeypatch):
    monkeypatch.delitem(SHARED, entry)
    with pytest.raises(AssertionError, match="are wrong"):
        test_special_values_are_right_where_pytorch_agrees(entry[0], to_torch)


def mistaken(name, dtype, aspect, args, i, params, mine):
    """Return whether a result differs from the exact value, and no convention excuses it."""
    if mine.dtype.kind != "f":
        return False
    operands = _operands(args, i)
    if is_right(mine[i], name, aspect, operands, params, dtype, TOLERANCE[dtype]) is not False:
        return False
    where = [table[name, aspect][0] for table in (CONVENTIONS, SHARED) if (name, aspect) in table]
    return not any(w(operands, mine[i], mine[i]) for w in where)


def test_conventions_are_needed(to_torch):
    needed = set()
    for name in sorted({name for name, _ in CONVENTIONS}):
        for dtype in FLOATS:
            with suppress(*REFUSALS):
                found, _ = differences(name, dtype, to_torch)
                needed |= {(name, aspect) for aspect, *_ in found}
    assert set(CONVENTIONS) == needed & set(CONVENTIONS)
