"""HIPS autograd's operators on integers, booleans and other dtypes: the same values and dtypes here.

Integers count as float64 here.  Where HIPS autograd takes integers, the result is the same, and so is its dtype if
that is floating.  Where HIPS refuses them (Python's integers, functions that return one integer), the result is that
for the same values as floats.
"""

import inspect
import sys
import warnings

import autograd.numpy as anp
import numpy as np
import pytest

import retrograd as rg
import retrograd.numpy as rnp
from autograd import differential_operators as their_operators
from retrograd import hips

W = np.array([0.5, -1.0, 2.0])

# Of one argument and the library's numpy; `W` meets any shape of these kinds.
FUNCTIONS = {
    "sin": lambda np, x: np.sin(x),
    "square": lambda np, x: x**2,
    "product": lambda np, x: x * x,
    "half": lambda np, x: x / 2,
    "scaled": lambda np, x: 2.5 * x,
    "shifted": lambda np, x: x + 1,
    "weighted": lambda np, x: np.dot(W, x * np.ones(3)) * np.exp(-x),
    "root": lambda np, x: np.sqrt(x + 0.5),
    "constant": lambda np, x: np.ones(3),
    "compared": lambda np, x: (x > 1) * 1.0,
    "cast": lambda np, x: np.array(x, dtype=float) * 3,
}


def summed(np, f):
    return lambda x: np.sum(f(np, x))


# What each operator answers for a library, its numpy, one of the functions, a point and the same numbers as floats.
OPERATORS = {
    "grad": lambda lib, np, f, x, v: lib.grad(summed(np, f))(x),
    "value_and_grad": lambda lib, np, f, x, v: lib.value_and_grad(summed(np, f))(x),
    "grad_and_aux": lambda lib, np, f, x, v: lib.grad_and_aux(lambda x: (summed(np, f)(x), 2.0))(x)[0],
    "elementwise_grad": lambda lib, np, f, x, v: lib.elementwise_grad(lambda x: f(np, x))(x),
    "elementwise_grad twice": lambda lib, np, f, x, v: lib.elementwise_grad(lib.elementwise_grad(lambda x: f(np, x)))(
        x
    ),
    "deriv": lambda lib, np, f, x, v: lib.deriv(lambda x: f(np, x))(x),
    "jacobian": lambda lib, np, f, x, v: lib.jacobian(lambda x: f(np, x))(x),
    "hessian": lambda lib, np, f, x, v: lib.hessian(summed(np, f))(x),
    "holomorphic_grad": lambda lib, np, f, x, v: lib.holomorphic_grad(summed(np, f))(x),
    "grad_named": lambda lib, np, f, x, v: lib.grad_named(lambda y, x: np.sum(f(np, x)) * y, "x")(2.0, x),
    "multigrad_dict": lambda lib, np, f, x, v: lib.multigrad_dict(lambda x, y=2.0: np.sum(f(np, x)) * y)(x),
    "two arguments": lambda lib, np, f, x, v: lib.grad(lambda x, y: np.sum(f(np, x)) * y, (0, 1))(x, 2.0),
    "make_vjp": lambda lib, np, f, x, v: lib.make_vjp(lambda x: f(np, x) * 1.0)(x)[0](f(np, v) * 1.0),
    "make_jvp": lambda lib, np, f, x, v: lib.make_jvp(lambda x: f(np, x))(x)(v),
    "make_jvp_reversemode": lambda lib, np, f, x, v: lib.make_jvp_reversemode(lambda x: f(np, x) * 1.0)(x)(v),
    "make_hvp": lambda lib, np, f, x, v: lib.make_hvp(summed(np, f))(x)[0](v),
    "hessian_tensor_product": lambda lib, np, f, x, v: lib.hessian_tensor_product(summed(np, f))(x, v),
    "tensor_jacobian_product": lambda lib, np, f, x, v: lib.tensor_jacobian_product(lambda x: f(np, x) * 1.0)(
        x, f(np, v) * 1.0
    ),
    "make_ggnvp": lambda lib, np, f, x, v: lib.make_ggnvp(lambda x: f(np, x) * 1.0)(x)(v),
    "checkpoint": lambda lib, np, f, x, v: lib.grad(lib.checkpoint(summed(np, f)))(x),
}
KINDS = {
    **{
        str(d): np.array([1, 2, 3], d)
        for d in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    },
    **{d: np.array([0.5, 2, 3], d) for d in ("float16", "float32", "float64")},
    "bool": np.array([True, False, True]),
    "rows": np.arange(6).reshape(2, 3),
    "strided": np.arange(9)[::-3],
    "0-d": np.array(3),
    "empty": np.arange(0).reshape(0, 3),
    "int": 3,
    "True": True,
    "np.int64": np.int64(3),
    "np.bool": np.True_,
    "float": 3.0,
    "np.float32": np.float32(3.0),
}


# Where HIPS refuses the shape: its jacobian needs a row, its default of make_ggnvp one axis.
REFUSED_THERE = {("jacobian", "empty"), ("hessian", "empty"), ("make_ggnvp", "rows"), ("make_ggnvp", "empty")}
# HIPS computes in the dtype itself, with NumPy's rounding to float16, wrapped subtractions and missing minus.
NARROW = {"int8", "int16", "uint8", "uint16", "uint32", "uint64", "bool", "np.bool"}


def as_floats(x):
    return x.astype(float) if hasattr(x, "astype") else float(x)


def attempt(lib, numpy, operator, function, x):
    """Return the results as a list of arrays, or the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = OPERATORS[operator](lib, numpy, FUNCTIONS[function], x, as_floats(x))
        except Exception as error:
            return error
    leaves = found.values() if isinstance(found, dict) else found if isinstance(found, tuple) else [found]
    return [np.asarray(leaf) for leaf in leaves]


def precision(x):
    """Return the relative rounding error of arithmetic in a floating dtype."""
    dtype = np.asarray(x).dtype
    return 10 * np.finfo(dtype).eps if dtype.kind == "f" else 0


def difference(ours, theirs, x):
    """Return how two results for the point x differ, in words; empty if they agree."""
    if isinstance(theirs, Exception):
        return "" if isinstance(ours, Exception) else f"{ours} where HIPS refuses: {theirs!r}"
    if isinstance(ours, Exception):
        return f"{ours!r} where HIPS answers {theirs}"
    of_integers = np.asarray(x).dtype.kind != "f"  # HIPS's gradients of float32 are float64 where these met float64
    for a, b in zip(ours, theirs, strict=True):
        if of_integers and b.dtype.kind == "f" and a.dtype != b.dtype:
            return f"{a.dtype}, {b.dtype}"
        if a.shape != b.shape or not np.allclose(a, b, rtol=max(1e-12, precision(x)), atol=precision(x)):
            return f"{a}, {b}"
    return ""


@pytest.fixture(autouse=True)
def as_hips_has_it(monkeypatch):
    """Set float64 as default dtype; add the module that multigrad_dict imports, whose function Python has by now."""
    monkeypatch.setitem(sys.modules, "funcsigs", inspect)
    before = rg.get_default_dtype()
    rg.set_default_dtype(rg.float64)
    yield
    rg.set_default_dtype(before)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("operator", OPERATORS)
def test_operators_take_what_hips_takes(operator, kind):
    x, wrong = KINDS[kind], []
    for function in FUNCTIONS:
        theirs = attempt(their_operators, anp, operator, function, as_floats(x) if kind in NARROW else x)
        if isinstance(theirs, Exception):
            theirs = attempt(their_operators, anp, operator, function, as_floats(x))
        differs = difference(attempt(hips, rnp, operator, function, x), theirs, x)
        if differs and not ("HIPS refuses" in differs and (operator, kind) in REFUSED_THERE):
            wrong.append(f"{function}: {differs}")
    assert not wrong, "\n".join(wrong)
