"""Elementwise operators, reductions and scans on integers at the limits of their dtypes agree with PyTorch."""

import pytest

from ..tables import BOOLEANS_AND_INTEGERS
from .integer_limits import cases, difference, is_tested
from .test_ops_parity import NAMES

# The last operand says how many steps PyTorch takes, one after the other: 2^63 of them.
ENDLESS = "polynomial"
TESTED = [name for name in NAMES if is_tested(name) and ENDLESS not in name]

_WRAPS = "PyTorch adds in the integers' dtype, where the sum overflows; ours are floats"
_SMALLEST = (
    "the absolute value of the smallest number, or the multiple, is out of range: which sign it has is undefined"
)
_PHASE = "far from 0 the phase is SciPy's, from rounded arguments"

# Operators that differ from PyTorch, and why.
CONVENTIONS = {
    "gcd": _SMALLEST,
    "hardsigmoid": _WRAPS,
    "lcm": _SMALLEST,
    "ldexp": "exact; PyTorch multiplies by a power of 2 that is infinite",
    "polygamma": "infinite at the poles, where PyTorch has numbers by a sine that is not exactly 0",
    "sinc": "exactly 0 at integers; PyTorch divides the sine of a rounded multiple of pi",
    "softsign": _WRAPS,
    "special.airy_ai": _PHASE,
    "special.bessel_j0": _PHASE,
    "special.bessel_j1": _PHASE,
    "special.bessel_y0": _PHASE,
    "special.bessel_y1": _PHASE,
    "special.zeta": "0 at infinity, the limit",
}


def differences(name, to_torch):
    """Return the differences, in each dtype."""
    return [
        f"{dtype} {params}: {message}"
        for dtype in BOOLEANS_AND_INTEGERS
        for args, params in cases(name, dtype)
        for message in difference(name, args, params, to_torch)
    ]


@pytest.mark.parametrize("name", [name for name in TESTED if name not in CONVENTIONS])
def test_integers_at_their_limits_give_what_pytorch_gives(name, to_torch):
    found = differences(name, to_torch)
    assert not found, "\n".join(found[:12])


@pytest.mark.parametrize("name", CONVENTIONS)
def test_conventions_are_needed(name, to_torch):
    assert differences(name, to_torch)


def test_most_elementwise_operators_reductions_and_scans_are_tested():
    assert len(TESTED) > 150
