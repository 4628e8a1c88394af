"""NumPy functions on tensors: NumPy's results and their derivatives, called through NumPy and the mirror."""

import inspect
import math

import numpy as np
import pytest

import retrograd as rg
import retrograd.numpy
from retrograd.core import Tensor
from retrograd.func.autograd_api import grad, make_jvp
from retrograd.interop.numpy_protocol import functions
from retrograd.interop.numpy_protocol.table import ufuncs

from ..case_groups import group_cases
from .cases import ANSWERS, CASES, INPUTS
from .harness import along, difference, directions_for, evaluate, letters, scalar_function

# NumPy 2.5 deprecates functions that older versions recommend; the mirror has them as long as a supported NumPy.
pytestmark = pytest.mark.filterwarnings(r"ignore:numpy\.\w+ is deprecated:DeprecationWarning")
NAMESPACES = {"numpy": np, "mirror": retrograd.numpy}
# NumPy can't see that these are asked for a tensor: it is inside of a list, or never asked for.
ONLY_MIRROR = {
    "np.mean([v, w])", "np.array([t, 2 * t, 1.0])", "np.array([[t, 1.0], [0.0, t]])", "np.array([v, w])",
    "np.array(v, ndmin=3)", "np.asarray(v)", "np.asarray([t, t])", "np.full((2, 3), t)", "np.full((2, 4), v)",
}  # fmt: skip
PAIRS = [(name, e) for name in CASES for e in CASES[name]]
ALL = PAIRS + [(name, e) for name in ANSWERS for e in ANSWERS[name]]


def tensors(expression):
    return {name: rg.as_tensor(np.array(INPUTS[name])) for name in letters(expression)}


def flat(value):
    """Return a result as arrays: tensors and NumPy's, alone or in tuples."""
    if isinstance(value, (tuple, list)):
        return [leaf for member in value for leaf in flat(member)]
    return [value.detach().numpy() if isinstance(value, Tensor) else np.asarray(value)]


def same(ours, theirs):
    for a, b in zip(flat(ours), flat(theirs), strict=True):
        assert a.shape == b.shape
        if b.dtype.kind in "fc":
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)
        else:
            np.testing.assert_array_equal(a, b)


def through(expression):
    return {"mirror": retrograd.numpy} if expression in ONLY_MIRROR else NAMESPACES


@group_cases
@pytest.mark.parametrize(("name", "expression"), ALL, ids=lambda word: word)
def test_values_are_those_of_numpy(name, expression):
    expected = evaluate(expression, np)
    for namespace in through(expression).values():
        same(evaluate(expression, namespace, **tensors(expression)), expected)


@group_cases
@pytest.mark.parametrize(("name", "expression"), ALL, ids=lambda word: word)
def test_the_mirror_answers_arrays_with_arrays(name, expression):
    expected = evaluate(expression, np)
    found = evaluate(expression, retrograd.numpy)
    assert type(found) is type(expected)
    same(found, expected)


@group_cases
@pytest.mark.parametrize(("name", "expression"), PAIRS, ids=lambda word: word)
def test_derivatives_are_those_of_what_numpy_computes(name, expression):
    names, plain = scalar_function(expression, np)
    values = [INPUTS[n] for n in names]
    directions = directions_for(values)
    expected = difference(plain, values, directions)
    for namespace in through(expression).values():
        _, function = scalar_function(expression, namespace)
        slope = along(grad(function, tuple(range(len(names))))(*values), directions)
        assert slope == pytest.approx(expected, rel=2e-6, abs=2e-7)
        _, pushed = make_jvp(function, tuple(range(len(names))))(*values)(tuple(directions))
        assert pushed == pytest.approx(slope, rel=1e-8, abs=1e-9)


def all_real(expression):
    return not any(INPUTS[letter].dtype.kind == "c" for letter in letters(expression))


@group_cases
@pytest.mark.parametrize(("name", "expression"), [p for p in PAIRS if all_real(p[1])], ids=lambda word: word)
def test_second_derivatives_are_the_differences_of_the_first(name, expression):
    names, function = scalar_function(expression, np if expression not in ONLY_MIRROR else retrograd.numpy)
    values = [INPUTS[n] for n in names]
    directions, argnums = directions_for(values), tuple(range(len(names)))
    first = grad(function, argnums)

    def slope(*at):
        return sum((g * d).sum() for g, d in zip(first(*at), directions, strict=True))

    expected = difference(slope, values, directions, step=1e-5)
    second = along(grad(slope, argnums)(*values), directions)
    assert second == pytest.approx(expected, rel=1e-4, abs=1e-5)


# --------------------------------------------------------------------------------------------- the table itself

# In-place writes and refusals have tests of their own.
OTHERWISE = """
    arange asanyarray asarray_chkfinite ascontiguousarray asfortranarray amax amin bitwise_and bitwise_or
    bitwise_xor concat copyto empty empty_like eye fill_diagonal gcd identity invert lcm left_shift ones
    permute_dims place put put_along_axis putmask right_shift save savetxt savez savez_compressed zeros bitwise_count
"""


def test_every_function_of_the_table_is_shown_in_a_case():
    shown = {*CASES, *ANSWERS, *OTHERWISE.split()}
    assert set(functions()) - shown == set()
    assert {n for n in ufuncs if hasattr(np, n)} - shown == set()


def numpy_function(name):
    found = np
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def signature_of(function):
    try:
        return inspect.signature(function).parameters
    except (ValueError, TypeError):
        return None  # some of those that are written in C do not say


def comparable(name):
    """Return whether NumPy's signature is known, and ours has more than `*args`."""
    known = numpy_function(name)
    mine = signature_of(functions()[name])
    fixed = all(p.kind is not p.VAR_POSITIONAL for p in mine.values())
    return known is not None and signature_of(known) is not None and fixed


NEWER = {"descending"}  # arguments that only the newest supported NumPy has


@group_cases
@pytest.mark.parametrize("name", sorted(filter(comparable, functions())))
def test_signatures_are_those_of_numpy(name):
    theirs, ours = signature_of(numpy_function(name)), signature_of(functions()[name])
    ours = {n: p for n, p in ours.items() if n in theirs or n not in NEWER}
    assert [(p.name, p.kind) for p in ours.values()] == [(n, p.kind) for n, p in theirs.items() if n != "like"]
    assert all((p.default is p.empty) == (ours[n].default is p.empty) for n, p in theirs.items() if n in ours)


def test_a_descending_order_is_stable_and_has_nan_at_the_end():
    missing = rg.tensor([5.0, math.nan, 7.0])
    x = rg.tensor([[2.0, 1.0, 2.0, 3.0], [1.0, 1.0, 0.0, 2.0]], requires_grad=True)
    assert retrograd.numpy.argsort(x, descending=True).tolist() == [[3, 0, 2, 1], [3, 0, 1, 2]]
    assert retrograd.numpy.argsort(missing, descending=True).tolist() == [2, 0, 1]
    found = retrograd.numpy.sort(x, axis=None, descending=True)
    assert found.tolist() == [3.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 0.0]
    (found * np.arange(8.0)).sum().backward()
    assert x.grad.tolist() == [[1.0, 4.0, 2.0, 0.0], [5.0, 6.0, 7.0, 3.0]]


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.5.0", reason="NumPy has descending orders from 2.5 on")
@pytest.mark.parametrize("values", [[2, 1, 2, 3], [True, False, True], [1.0, np.nan, 2.0], [[3, 1], [1, 2]]])
def test_descending_orders_are_those_of_numpy(values):
    for axis in (-1, None):
        expected = np.sort(values, axis, descending=True)
        np.testing.assert_array_equal(retrograd.numpy.sort(values, axis, descending=True), expected)
        order = np.argsort(values, axis, stable=True, descending=True)
        np.testing.assert_array_equal(retrograd.numpy.argsort(values, axis, stable=True, descending=True), order)
