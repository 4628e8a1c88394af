"""Python numbers beyond the dtype of a tensor: the same value, or a refusal in both libraries."""

import re

import numpy as np
import pytest
import torch

import retrograd as rg

from .quiet import quiet

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float32")
NUMBERS = (-3, -129, 300, 2**31, 2**40, 2**63, 2**64 + 5, 2**70)
OPERATORS = ("+", "-", "*", "//", "%", "&", "|", "^", "<<", "**", "==", "!=", "<", "<=", ">", ">=")
METHODS = ("add", "add_", "mul_", "sub", "fmod", "floor_divide", "remainder", "fill_", "clamp", "eq")
PROGRAMS = (
    *(f"x {sign} n" for sign in OPERATORS),
    *(f"n {sign} x" for sign in OPERATORS),
    *(f"x.{name}(n)" for name in METHODS),
    "L.add(x, x, alpha=n)",
    "L.sub(x, x, alpha=n)",
    "L.full((2,), n, dtype=x.dtype)",
    "L.full_like(x, n)",
    "x.new_full((2,), n)",
    "L.scalar_tensor(n, dtype=x.dtype)",
    "L.tensor([n], dtype=x.dtype)",
    "L.arange(n, n + 3, dtype=x.dtype)",
    "L.where(x > 5, x, n)",
    "L.where(x > 5, n, x)",
    "x.masked_fill(x > 5, n)",
    "x.index_fill(0, L.tensor([0]), n)",
    "x.scatter(0, L.tensor([0]), n)",
    "x.__setitem__(0, n) or x",
    "x.clamp(max=n)",
    "L.constant_pad_nd(x, (1, 1), n)",
    "L.nn.functional.threshold(x, 5, n)",
    "L.addcmul(x, x, x, value=n)",
    "L.addmm(x[:1, None], x[:1, None], x[:1, None], beta=n)",
    "L.addr(x[:1, None], x[:1], x[:1], beta=n)",
    "L.bucketize(n, x)",
    "L.isin(x, n)",
)

_COMPARED = "ours compares the numbers; PyTorch compares what the dtype makes of the number"
# (pattern of the program, pattern of the dtype, condition on the number) -> why the results differ.
DIFFERENT = (
    (r" [<>=!]=? n$|n [<>=!]=? x|eq\(|isin|bucketize|clamp\(n|clamp\(max=n", "", lambda n: True, _COMPARED),
    ("", "", lambda n: abs(n) >= 2**63, "ours computes with the number or refuses; PyTorch wraps at 64 bits in some"),
    ("(alpha|value|beta)=n", "int", lambda n: not -128 < n < 128, "PyTorch refuses it as a factor, not as an operand"),
    ("addmm|x - n|n - x|sub|clamp|fill|addcmul|threshold", "bool", lambda n: True, "booleans, which PyTorch refuses"),
    ("n // x|n % x", "", lambda n: True, "a division by 0"),
    ("%|remainder", "float32", lambda n: n < 0, "the sign of 0"),
    (r"\*\* n", "bool", lambda n: n < 0, "ours rounds the power towards 0, as for exponents in a tensor"),
    (r"\*\*", "float32", lambda n: True, "PyTorch's powers are one rounding off"),
)


def outcome(library, program, dtype, number):
    """Return the dtype and values of a program's result; None if it raises."""
    x = library.tensor([3, 5, 7, 100, 0], dtype=getattr(library, dtype))
    try:
        result = eval(program, {"L": library, "x": x, "n": number})
    except (RuntimeError, ValueError, OverflowError, TypeError, NotImplementedError, ZeroDivisionError):
        return None
    values = np.asarray(result.numpy() if isinstance(result, torch.Tensor) else result)
    return str(values.dtype), values.tolist()


def is_different(program, dtype, number):
    """Return whether the results differ for a known reason."""
    return any(
        re.search(key, program) and re.search(kind, dtype) and holds(number) for key, kind, holds, _ in DIFFERENT
    )


@pytest.mark.parametrize("program", PROGRAMS)
def test_numbers_that_a_dtype_does_not_hold_wrap_or_are_refused_as_in_pytorch(program):
    differ = []
    for dtype in DTYPES:
        for number in NUMBERS:
            theirs, ours = (quiet(outcome)(library, program, dtype, number) for library in (torch, rg))
            if repr(theirs) != repr(ours) and not is_different(program, dtype, number):
                differ.append((dtype, number, theirs, ours))
    assert not differ
