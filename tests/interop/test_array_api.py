"""The namespace of the array API standard has the names, signatures, results and promotion of array-api-strict."""

import inspect
import itertools
import warnings

import array_api_strict as strict
import numpy as np
import pytest

import retrograd as rg
from retrograd.interop import array_api as xp

from ..case_groups import group_cases

PARTS = {"": (xp, strict), "linalg": (xp.linalg, strict.linalg), "fft": (xp.fft, strict.fft)}
NOT_STANDARD = {"Device"}  # of array-api-strict itself; what sets its flags is found by its name


def standard_functions(part):
    """Return the functions that the standard names, in its main namespace or an extension of it."""
    theirs = PARTS[part][1]
    names = {n for n in theirs.__all__ if inspect.isfunction(getattr(theirs, n))}
    return sorted(n for n in names - NOT_STANDARD if "flags" not in n.lower())


NAMES = [(part, name) for part in PARTS for name in standard_functions(part)]


def shape_of_signature(function):
    """Return names and kinds of the parameters; of a default, its existence, or its value if a number or string."""
    parameters = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, _default(p.default)) for p in parameters]


def _default(value):
    return value if isinstance(value, (bool, int, float, str)) else value is inspect.Parameter.empty


@group_cases
@pytest.mark.parametrize(("part", "name"), NAMES, ids=lambda word: word)
def test_signatures_are_those_of_the_standard(part, name):
    ours, theirs = PARTS[part]
    assert shape_of_signature(getattr(ours, name)) == shape_of_signature(getattr(theirs, name))


def test_constants_and_dtypes_are_there():
    assert [getattr(xp, n) for n in ("e", "pi", "inf", "newaxis")] == [np.e, np.pi, np.inf, None]
    assert np.isnan(xp.nan)
    for name in ("bool", "int8", "uint64", "float32", "complex128"):
        assert str(getattr(xp, name)) == name
    assert xp.__array_api_version__ == "2024.12"


# ------------------------------------------------------------------------------------------------- results

WIDE = """
    abs asinh atan ceil conj cos cosh exp expm1 floor isfinite isinf isnan negative positive real reciprocal
    round sign signbit sin sinh square tan tanh trunc
"""
PAIRS_OF_REALS = """
    add atan2 copysign divide equal floor_divide greater greater_equal hypot less less_equal logaddexp maximum
    minimum multiply nextafter not_equal remainder subtract
"""
BITS = """
    bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor
"""
# Evaluated twice, `m` being the namespace and `a(list, dtype)` its asarray.
EXPRESSIONS = [
    *[f"m.{name}(a([-1.5, 0.25, 0.5, 2.0]))" for name in WIDE.split()],
    *[f"m.{name}(a([0.25, 0.5, 0.75]))" for name in ("acos", "asin", "atanh", "log", "log10", "log1p", "log2", "sqrt")],
    "m.acosh(a([1.5, 2.0]))", "m.imag(a([1 + 2j, 3], m.complex128))", "m.conj(a([1 + 2j, 3], m.complex64))",
    "m.sign(a([3 + 4j, 0], m.complex128))", "m.sqrt(a([-1 + 0j], m.complex128))", "m.round(a([0.5, 1.5, -2.5]))",
    "m.floor(a([1, 2], m.int32))", "m.trunc(a([1, 2], m.int64))", "m.bitwise_invert(a([1, 2], m.int16))",
    "m.logical_not(a([True, False], m.bool))",
    *[f"m.{name}(a([1.0, 2.5, -3.0]), a([0.5, 2.5, 4.0]))" for name in PAIRS_OF_REALS.split()],
    "m.pow(a([1.0, 2.5]), a([0.5, 3.0]))", "m.pow(a([2, 3], m.int32), a([3, 2], m.int32))",
    *[f"m.{name}(a([5, 6], m.uint8), a([1, 2], m.int32))" for name in BITS.split()],
    *[f"m.logical_{name}(a([True, False], m.bool), a([True, True], m.bool))" for name in ("and", "or", "xor")],
    "m.add(a([1.0, 2.0], m.float32), 1)", "m.multiply(2.5, a([1.0], m.float32))", "m.equal(a([1, 2], m.int8), 1)",
    "m.clip(a([-1.0, 0.5, 3.0]), 0.0, 1.0)", "m.clip(a([-1.0, 0.5, 3.0]), min=a([0.0, 1.0, 2.0]))", "m.clip(a([1.0]))",
    "m.asarray([1.5, 2.5], dtype=m.float64)", "m.asarray([[1, 2]])", "m.asarray(True)", "m.arange(5)",
    "m.arange(1, 4, 0.5, dtype=m.float64)", "m.arange(5, 1)", "m.arange(5, 1, -2)",
    "m.eye(3, 2, k=-1, dtype=m.float64)", "m.zeros((2, 3), dtype=m.int8)", "m.ones(3, dtype=m.float64)",
    "m.empty((2,), dtype=m.int64) * 0", "m.full((2, 2), 3)", "m.full(2, 1.5, dtype=m.float32)", "m.full((), True)",
    "m.zeros_like(a([1.0, 2.0]))", "m.ones_like(a([1.0]), dtype=m.int32)", "m.full_like(a([1.0, 2.0]), 7)",
    "m.empty_like(a([1.0, 2.0])) * 0", "m.linspace(0, 1, 5, dtype=m.float64)",
    "m.linspace(0, 1, 4, endpoint=False, dtype=m.float64)", "m.meshgrid(a([1.0, 2.0]), a([3.0, 4.0, 5.0]))",
    "m.meshgrid(a([1.0, 2.0]), a([3.0]), indexing='ij')", "m.tril(A(3, 4), k=1)", "m.triu(A(2, 3, 3), k=-1)",
    "m.from_dlpack(a([1.0, 2.0]))", "m.astype(a([1.5, 2.5]), m.int32)", "m.astype(a([1, 0], m.int64), m.bool)",
    "m.can_cast(m.int8, m.int16)", "m.can_cast(m.float64, m.float32)", "m.can_cast(m.int8, m.uint64)",
    "m.isdtype(m.int8, 'integral')",
    "m.isdtype(m.float32, ('bool', m.float32))", "m.isdtype(m.uint8, 'signed integer')",
    "m.isdtype(m.complex64, 'numeric')", "m.finfo(m.float32).bits", "m.finfo(m.complex128).eps",
    "m.finfo(m.float64).smallest_normal", "m.iinfo(m.uint16).max", "m.iinfo(m.int8).min",
    "str(m.result_type(m.int8, m.uint8)).split('.')[-1]", "str(m.result_type(m.float32, m.complex64)).split('.')[-1]",
    "m.broadcast_arrays(a([1.0, 2.0]), A(3, 1))", "m.broadcast_shapes((2, 1), (3,))",
    "m.broadcast_to(a([1.0]), (2, 3))", "m.concat([A(2, 3), A(1, 3)])", "m.concat([A(2, 3), A(2, 1)], axis=None)",
    "m.concat((a([1], m.int8), a([2], m.int32)))", "m.stack([a([1.0]), a([2.0])], axis=-1)",
    "m.unstack(A(2, 3), axis=1)", "m.expand_dims(A(2, 3), 1)", "m.squeeze(A(2, 1, 3), 1)",
    "m.squeeze(A(1, 2, 1), (0, 2))", "m.flip(A(2, 3))", "m.flip(A(2, 3), axis=-1)", "m.moveaxis(A(2, 3, 4), 0, -1)",
    "m.permute_dims(A(2, 3, 4), (2, 0, 1))", "m.repeat(A(2, 2), 2)", "m.repeat(A(2, 2), a([1, 2], m.int64), axis=0)",
    "m.reshape(A(2, 6), (3, -1))", "m.roll(A(2, 3), 1)", "m.roll(A(2, 3), (1, -1), axis=(0, 1))",
    "m.tile(A(2, 3), (2, 1, 2))", "m.take(A(3, 2), a([2, 0], m.int64), axis=0)",
    "m.take_along_axis(A(2, 3), a([[2, 0], [1, 1]], m.int64))", "m.argmax(A(2, 3), axis=1)", "m.argmin(A(2, 3))",
    "m.argmax(A(2, 3), axis=0, keepdims=True)", "m.nonzero(a([0.0, 2.0, 0.0, 3.0]))",
    "m.count_nonzero(A(2, 3), axis=0)", "m.count_nonzero(A(2, 3), axis=1, keepdims=True)",
    "m.searchsorted(a([1.0, 2.0, 3.0]), a([0.5, 2.0, 9.0]))", "m.searchsorted(a([1.0, 2.0]), a([1.0]), side='right')",
    "m.searchsorted(a([3.0, 1.0, 2.0]), a([2.5]), sorter=a([1, 2, 0], m.int64))",
    "m.where(a([True, False], m.bool), a([1.0, 2.0]), a([3.0, 4.0]))",
    "m.where(a([True, False], m.bool), 1.5, a([3.0, 4.0]))", "m.sort(a([3.0, 1.0, 2.0]))",
    "m.sort(A(2, 3), axis=0, descending=True)", "m.argsort(a([3.0, 1.0, 2.0, 1.0]))",
    "m.argsort(a([1.0, 3.0, 1.0]), descending=True)", "m.unique_all(a([3.0, 1.0, 3.0, 2.0]))",
    "m.unique_all(a([[2, 1], [1, 2]], m.int64))", "m.unique_counts(a([1.0, float('nan'), float('nan')]))",
    "m.unique_inverse(a([2, 2, 1], m.int64))", "m.unique_values(a([], m.float64))",
    "m.unique_values(a([True, True], m.bool))", "m.isin(a([1, 2], m.int64), a([2, 3], m.int64))",
    "m.isin(a([1, 2], m.int64), 2)", "m.sum(A(2, 3), axis=1)", "m.sum(a([200, 100], m.uint8))",
     "m.sum(A(2, 3), axis=())", "m.sum(A(2, 3), axis=(0, 1), keepdims=True)",
    "m.sum(a([1.0], m.float32), dtype=m.float64)", "m.prod(A(2, 3), axis=0)", "m.prod(a([2, 3], m.uint32))",
    "m.mean(A(2, 3), axis=0)", "m.max(A(2, 3), axis=(0, 1))", "m.min(A(2, 3), axis=1, keepdims=True)",
    "m.max(A(2, 3))", "m.var(A(2, 3))", "m.std(A(2, 3), axis=1, correction=1)", "m.all(a([True, False], m.bool))",
    "m.any(A(2, 3) > 2, axis=1)", "m.cumulative_sum(a([1, 2, 3], m.int32))",
    "m.cumulative_sum(A(2, 3), axis=1, include_initial=True)",
    "m.cumulative_prod(a([1.0, 2.0, 3.0]), include_initial=True)", "m.diff(a([1.0, 4.0, 9.0]), n=2)",
    "m.diff(A(2, 3), prepend=A(2, 1), append=A(2, 2))", "m.matmul(A(2, 3), A(3, 2))",
    "m.tensordot(A(2, 3), A(3, 2), axes=1)", "m.tensordot(A(2, 3), A(3, 2), axes=((0,), (1,)))",
    "m.matrix_transpose(A(2, 3))", "m.vecdot(A(2, 3), A(2, 3))",
    "m.vecdot(a([1j], m.complex128), a([2j], m.complex128))", "m.linalg.matmul(A(2, 3), A(3))",
    "m.linalg.tensordot(A(2, 3), A(3), axes=1)", "m.linalg.matrix_transpose(A(2, 3))",
    "m.linalg.vecdot(A(2, 3), A(2, 3), axis=-1)", "m.linalg.cholesky(S(3))", "m.linalg.cholesky(S(3), upper=True)",
    "m.linalg.cross(A(3), a([0.0, 1.0, 0.0]))", "m.linalg.det(S(3))", "m.linalg.diagonal(A(3, 4), offset=1)",
    "m.linalg.eigh(S(3)).eigenvalues", "m.linalg.eigvalsh(S(3))", "m.linalg.inv(S(3))",
    "m.linalg.matrix_norm(A(2, 3))", "m.linalg.matrix_norm(A(2, 3), ord=1, keepdims=True)",
    "m.linalg.matrix_norm(A(3, 3), ord='nuc')", "m.linalg.matrix_power(S(3), 3)", "m.linalg.matrix_power(S(3), -1)",
    "m.linalg.matrix_rank(S(3))", "m.linalg.outer(A(2), A(3))", "m.linalg.pinv(A(3, 2))", "m.linalg.slogdet(S(3))",
    "m.linalg.solve(S(3), A(3))", "m.linalg.solve(S(3), A(2, 3, 1))", "m.linalg.svdvals(A(2, 3))",
    "m.linalg.svd(A(2, 3), full_matrices=False).S", "m.linalg.trace(A(2, 3, 3), offset=-1)",
    "m.linalg.vector_norm(A(2, 3))", "m.linalg.vector_norm(A(2, 3), axis=1, ord=1)",
    "m.linalg.vector_norm(A(2, 3), axis=0, ord=float('inf'))", "m.abs(m.linalg.qr(S(3)).R)",
    "m.matmul(*m.linalg.qr(A(4, 2), mode='reduced'))",
    *[f"m.fft.{name}(C(4))" for name in ("fft", "ifft", "irfft", "hfft")], "m.fft.rfft(A(5))", "m.fft.ihfft(A(4))",
    *[f"m.fft.{name}(C(2, 4))" for name in ("fftn", "ifftn", "irfftn")],
    "m.fft.rfftn(A(2, 4), axes=(0, 1), norm='ortho')", "m.fft.fft(C(4), n=6, norm='forward')",
    "m.fft.fftfreq(5, d=0.5, dtype=m.float64)", "m.fft.rfftfreq(4, dtype=m.float64)", "m.fft.fftshift(A(5))",
    "m.fft.ifftshift(A(2, 3), axes=1)",
]  # fmt: skip


def evaluated(m, expression):
    """Return the value of the expression in that namespace, as NumPy data."""

    def a(values, dtype=None):
        return m.asarray(values, dtype=m.float64 if dtype is None else dtype)

    def array(*shape):
        size = int(np.prod(shape))
        return m.reshape(m.asarray([1.0 + (i * 7) % (size + 1) for i in range(size)], dtype=m.float64), shape)

    def symmetric(n):
        half = array(n, n)
        return m.matmul(half, m.matrix_transpose(half)) + m.eye(n, dtype=m.float64)

    def complexes(*shape):
        return m.astype(array(*shape), m.complex128) * (1 + 0.5j)

    names = {"m": m, "a": a, "A": array, "S": symmetric, "C": complexes}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return plain(eval(expression, names))


def plain(value):
    """Return arrays with their dtypes; containers as tuples."""
    if isinstance(value, (tuple, list)):
        return tuple(plain(v) for v in value)
    if isinstance(value, strict._array_object.Array):
        return np.asarray(value._array)
    return value.detach().numpy() if isinstance(value, rg.Tensor) else np.asarray(value)


def assert_same(ours, theirs):
    """Assert the same structure, dtypes, shapes, and values up to rounding."""
    if isinstance(theirs, tuple):
        assert isinstance(ours, tuple)
        assert len(ours) == len(theirs)
        for mine, its in zip(ours, theirs, strict=True):
            assert_same(mine, its)
    else:
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        if theirs.dtype.kind in "fc":
            np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)
        else:
            assert (ours == theirs).all()


@group_cases
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_results_are_those_of_array_api_strict(expression):
    assert_same(evaluated(xp, expression), evaluated(strict, expression))


def test_every_function_is_compared():
    text = "\n".join(EXPRESSIONS)
    called = {(part, name) for part, name in NAMES if f"m.{part + '.' if part else ''}{name}(" in text}
    assert set(NAMES) - called == {("", "__array_namespace_info__")}


NUMERIC = [d for d in xp.__array_namespace_info__().dtypes() if d != "bool"]


def defined(a, b):
    """Return whether the standard defines a promotion: not for integers with floats, nor uint64 with signed ones."""
    dtypes = [getattr(xp, a), getattr(xp, b)]
    mixed = len({xp.isdtype(d, "integral") for d in dtypes}) == 2
    return not mixed and not ("uint64" in (a, b) and any(xp.isdtype(d, "signed integer") for d in dtypes))


PAIRS = [pair for pair in itertools.product(NUMERIC, repeat=2) if defined(*pair)]


@pytest.mark.parametrize("shapes", [((2,), (2,)), ((), (2,)), ((2,), ())], ids=str)
def test_dtypes_meet_as_in_the_standard_whatever_the_number_of_dimensions(shapes):
    for a, b in PAIRS:
        answers = []
        for m in (xp, strict):
            x, y = (m.ones(s, dtype=getattr(m, d)) for s, d in zip(shapes, (a, b), strict=True))
            answers.append(plain(m.add(x, y)).dtype)
        assert answers[0] == answers[1], (a, b)


# ------------------------------------------------------------------------------------------ as a user has it


def whitened(x):
    """Whiten data: generic code, as libraries write it against the standard."""
    xp = x.__array_namespace__()
    centred = x - xp.mean(x, axis=0, keepdims=True)
    covariance = xp.matmul(xp.matrix_transpose(centred), centred) / x.shape[0]
    return xp.sum(xp.linalg.solve(xp.linalg.cholesky(covariance), xp.matrix_transpose(centred)) ** 4)


def test_generic_code_differentiates():
    x = rg.tensor(np.random.default_rng(0).normal(size=(6, 2)), requires_grad=True)
    assert rg.autograd.gradcheck(whitened, (x,))


def test_a_tensor_answers_the_namespace_and_refuses_versions_that_it_does_not_know():
    x = rg.ones(2)
    assert x.__array_namespace__() is x.__array_namespace__(api_version="2024.12") is xp
    with pytest.raises(ValueError, match=r"1999\.01"):
        x.__array_namespace__(api_version="1999.01")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: xp.asarray([1.0], copy=False), "asarray: a list can't become"),
        (lambda: xp.squeeze(xp.ones((2, 1)), 0), "squeeze: axis 0 .* not of size 1"),
        (lambda: xp.take(xp.ones((2, 2)), xp.asarray([0])), "take: axis is needed"),
        (lambda: xp.cumulative_sum(xp.ones((2, 2))), "cumulative_sum: axis is needed"),
        (lambda: xp.isdtype(xp.int8, "whole"), "isdtype: expected one of bool"),
        (lambda: xp.nonzero(xp.asarray(1.0)), "nonzero: expected at least one axis"),
        (lambda: xp.reshape(xp.ones((2, 3)).T, (6,), copy=False), "without a copy"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_other_devices_are_refused():
    for call in (lambda: xp.zeros(2, device="cuda"), lambda: xp.ones(2).to_device("cuda:0")):
        with pytest.raises(RuntimeError, match="live on the CPU, got 'cuda"):
            call()


def test_tensors_have_what_the_standard_asks_of_arrays():
    asked = {n for n in dir(strict.ones(1)) if n.startswith("__") or not n.startswith("_")}
    of_python = {"__annotations__", "__buffer__", "__imatmul__", "__module__", "__weakref__"}
    assert asked - set(dir(rg.Tensor)) <= of_python
    assert isinstance(rg.ones(2, 3).size, int)


def test_isin_can_be_inverted():  # which array-api-strict 2.6 forgets
    assert xp.isin(xp.asarray([1, 2]), 2, invert=True).tolist() == [True, False]


def test_info_names_what_there_is():
    info = xp.__array_namespace_info__()
    assert info.default_dtypes()["integral"] == xp.int64
    assert set(info.dtypes(kind="complex floating")) == {"complex64", "complex128"}
    assert info.capabilities()["boolean indexing"]
    assert info.devices() == [info.default_device()]
