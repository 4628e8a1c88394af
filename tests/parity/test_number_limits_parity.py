"""Python numbers beyond the dtype of a tensor: the same value, or a refusal in both libraries."""

import math
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

# Calls with numbers that the library converts to the dtype of x or of the result, or to another one.
CONVERTED = (
    *(program for program in PROGRAMS if program.startswith(("L.", "x.")) and not program.startswith("x.clamp(")),
    "x.fill_(n)",
    "L.fill(x, n)",
    "x[None].clone().fill_diagonal_(n)",
    "L.full((), n, dtype=x.dtype)",
    "L.where(x > 5, n, n)",
    "L.add(x, 1, alpha=n)",
    "x.sub_(x, alpha=n)",
    "L.rsub(x, x, alpha=n)",
    "x.masked_fill_(x > 5, n)",
    "x.index_fill_(0, L.tensor([0]), n)",
    "x.scatter_(0, L.tensor([0]), n)",
    "x.scatter(0, L.tensor([0]), n, reduce='add')",
    "x.__setitem__(slice(0, 2), n) or x",
    "x.__setitem__(x > 5, n) or x",
    "x.clamp(min=n)",
    "x.clamp(n, n)",
    "x.clamp_(max=n)",
    "x.clamp_min(n)",
    "x.clamp_max(n)",
    "F.hardtanh(x, n, n)",
    "F.leaky_relu(x, n)",
    "F.elu(x, n)",
    "F.celu(x, n)",
    "F.softplus(x, n)",
    "F.softplus(x, 1, n)",
    "F.hardshrink(x, n)",
    "F.threshold(x, n, 5)",
    "F.pad(x, (1, 1), value=n)",
    "L.nn.utils.rnn.pad_sequence([x, x[:2]], padding_value=n)",
    "L.addcmul(x, x, x, value=n)",
    "L.addcdiv(x, x, x, value=n)",
    "x.addcmul_(x, x, value=n)",
    "x.lerp(x, n)",
    "x.lerp_(x, n)",
    "L.addmm(x[:1, None], x[:1, None], x[:1, None], alpha=n)",
    "L.addmv(x[:1], x[:1, None], x[:1], alpha=n)",
    "L.addmv(x[:1], x[:1, None], x[:1], beta=n)",
    "L.addr(x[:1, None], x[:1], x[:1], alpha=n)",
    "L.baddbmm(x[:1, None, None], x[:1, None, None], x[:1, None, None], beta=n)",
    "L.addbmm(x[:1, None], x[:1, None, None], x[:1, None, None], alpha=n)",
    "L.index_add(x, 0, L.tensor([0]), x[:1], alpha=n)",
    "L.logit(x, n)",
    "L.linspace(0, n, 3, dtype=x.dtype)",
    "x.new_tensor(n)",
    "L.add(x, n)",
    "L.mul(x, n)",
    "L.div(x, n)",
    "L.maximum(x, L.tensor(n, dtype=x.dtype))",
    "L.nan_to_num(x / 0, n, n, n)",
    "x.eq(n)",
    "x.lt(n)",
)
TOO_LARGE = (1e300, -1e300, 1e39, 70000.0, 1000, 1000.0, 300.5, 127.5, 2.5, -1, -1000, math.inf, math.nan, 1e300j)

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


# (pattern of the program, pattern of the dtype, condition on the number) -> why only one library refuses.
REFUSED_BY_ONE = (
    ("", "", lambda n: isinstance(n, complex), "complex numbers, which PyTorch's signatures and kernels refuse"),
    (r"hardtanh|threshold|addcmul|add[a-z]*\(x\[|sub|linspace", "bool", lambda n: True, "PyTorch has no kernel"),
    (r"F\.(elu|celu|softplus|leaky_relu|hardshrink)|lerp", "int|bool", lambda n: True, "PyTorch has no kernel"),
    ("addcdiv", "int|bool", lambda n: True, "PyTorch refuses to divide integers here"),
    ("isin", "complex|bool", lambda n: True, "PyTorch has no kernel"),
    ("pad|hardtanh", "uint8", lambda n: n < 0, "ours wraps negative numbers everywhere"),
    ("hardtanh", "int8", lambda n: n == 127.5, "PyTorch truncates here before it checks"),
    (r"alpha=n|addr", "float16", lambda n: abs(n) == 70000, "ours multiplies in float32"),
    ("arange", "", lambda n: True, "ours counts the steps first"),
)


@pytest.mark.parametrize("program", dict.fromkeys(CONVERTED))
def test_numbers_that_overflow_are_refused_where_pytorch_does(program):
    differ = []
    for dtype in ("float16", "bfloat16", "float32", "float64", "complex64", "int8", "uint8", "int64", "bool"):
        for number in TOO_LARGE:
            known = any(
                re.search(key, program) and re.search(kind, dtype) and holds(number)
                for key, kind, holds, _ in REFUSED_BY_ONE
            )
            theirs, ours = (quiet(refusal)(library, program, dtype, number) for library in (torch, rg))
            if bool(theirs) != bool(ours) and not known:
                differ.append((dtype, number, theirs, ours))
    assert not differ


def refusal(library, program, dtype, number):
    """Return the error of a program; None if it has a result."""
    x = library.tensor([3, 5, 7, 100, 0], dtype=getattr(library, dtype))
    try:
        eval(program, {"L": library, "F": library.nn.functional, "x": x, "n": number})
    except (RuntimeError, ValueError, OverflowError, TypeError, ZeroDivisionError) as error:
        return str(error).splitlines()[0]
    return None
