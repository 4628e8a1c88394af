"""Dtypes: the default, promotion as in PyTorch, and the dtypes of gradients."""

import itertools
import pickle

import numpy as np
import pytest

import retrograd as rg
from retrograd.core import dtype as dtypes
from retrograd.core.dtype import as_dtype
from retrograd.testing import assert_close

from ..case_groups import group_cases
from ..tables import DTYPES

# PyTorch's table for two tensors with dimensions; symmetric, so only its upper half, in the order above.
PROMOTED = """
bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128
uint8 int16 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128
int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128
int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128
int32 int64 float16 bfloat16 float32 float64 complex64 complex128
int64 float16 bfloat16 float32 float64 complex64 complex128
float16 float32 float32 float64 complex64 complex128
bfloat16 float32 float64 complex64 complex128
float32 float64 complex64 complex128
float64 complex128 complex128
complex64 complex128
complex128
"""
TABLE = {
    (DTYPES[i], DTYPES[i + j]): result
    for i, row in enumerate(PROMOTED.strip().splitlines())
    for j, result in enumerate(row.split())
}


@pytest.fixture
def default_float64():
    rg.set_default_dtype(rg.float64)
    yield
    rg.set_default_dtype(rg.float32)


def ones(dtype: str, shape: tuple[int, ...] = (2,)) -> rg.Tensor:
    return rg.ones(shape, dtype=dtype)


@group_cases
@pytest.mark.parametrize(
    ("pair", "expected"),
    TABLE.items(),
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else value,
)
def test_two_tensors_meet_as_in_pytorch(pair, expected):
    a, b = map(ones, pair)
    assert (a * b).dtype == (b * a).dtype == as_dtype(expected)


def test_the_table_is_complete():
    assert len(TABLE) == len(list(itertools.combinations_with_replacement(DTYPES, 2)))


@group_cases
@pytest.mark.parametrize("lower", [(), "number"])
@pytest.mark.parametrize(
    ("high", "low", "expected"),
    [
        ("float32", "float64", "float32"),
        ("float16", "float64", "float16"),
        ("bfloat16", "float16", "bfloat16"),
        ("bfloat16", "float64", "bfloat16"),
        ("bfloat16", "int64", "bfloat16"),
        ("bfloat16", "complex128", "complex64"),
        ("float32", "int64", "float32"),
        ("int32", "int64", "int32"),
        ("uint8", "int64", "uint8"),
        ("bool", "int64", "int64"),
        ("complex64", "float64", "complex64"),
        ("float64", "complex128", "complex128"),
        ("float32", "complex64", "complex64"),
    ],
)
def test_zero_dimensional_tensors_and_numbers_change_the_category_alone(high, low, lower, expected):
    scalar = ones(low, ()) if lower == () else as_dtype(low).type(1).item()
    assert (ones(high) * scalar).dtype == as_dtype(expected)
    assert (scalar * ones(high)).dtype == as_dtype(expected)


def test_a_category_that_only_the_number_has_takes_the_default_dtype():
    assert (ones("int64") * 2.5).dtype == np.float32
    assert (ones("bool") * 2.5).dtype == np.float32
    assert (ones("int64") * 2j).dtype == np.complex64


def test_the_default_dtype_is_what_python_floats_become(default_float64):
    assert rg.tensor([1.5]).dtype == np.float64
    assert rg.zeros(2).dtype == np.float64
    assert (ones("int64") * 2.5).dtype == np.float64
    assert ones("int64").sin().dtype == np.float64


@pytest.mark.parametrize("dtype", ["int64", "complex64", "bool"])
def test_the_default_dtype_is_a_real_floating_one(dtype):
    with pytest.raises(TypeError, match=dtype):
        rg.set_default_dtype(np.dtype(dtype))
    assert rg.get_default_dtype() == np.float32


@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_into_the_reals_turn_integers_into_the_default_dtype(dtype):
    expected = "float32" if as_dtype(dtype).kind in "biu" else dtype
    assert ones(dtype).exp().dtype == as_dtype(expected)
    assert (ones(dtype) / ones(dtype)).dtype == as_dtype(expected)
    assert (ones(dtype) / 2).dtype == as_dtype(expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_comparisons_answer_in_booleans(dtype):
    assert (ones(dtype) == ones("float64")).dtype == np.bool_


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64"])
def test_integers_add_up_in_int64(dtype):
    assert ones(dtype, (300,)).sum().dtype == np.int64
    assert int(ones(dtype, (300,)).sum()) == 300


def test_gradients_have_the_dtype_of_what_they_belong_to():
    a = rg.ones(2, 3, dtype=rg.float32, requires_grad=True)
    b = rg.ones(3, dtype=rg.float64, requires_grad=True)
    y = (a * b).sum()
    assert y.dtype == np.float64
    y.backward()
    assert_close(a.grad, np.ones((2, 3), np.float32))
    assert_close(b.grad, np.full(3, 2.0))


def test_a_cast_brings_the_gradient_back():
    x = rg.ones(3, dtype=rg.float32, requires_grad=True)
    x.to(rg.float64).sum().backward()
    assert_close(x.grad, np.ones(3, np.float32))


def test_unsupported_dtypes_say_which_are_supported():
    with pytest.raises(TypeError, match=r"dtype .* is not supported: use a boolean, integer, float or complex"):
        dtypes.category(np.dtype("datetime64[s]"))


def test_arrays_keep_their_dtype():
    for dtype in DTYPES:
        assert rg.from_numpy(np.ones(2, as_dtype(dtype))).dtype == as_dtype(dtype)


# ------------------------------------------------------------------------------------------- names and limits


def test_dtypes_go_by_their_other_names():
    others = {"half": "float16", "float": "float32", "double": "float64", "short": "int16", "int": "int32"}
    others |= {"long": "int64", "cfloat": "complex64", "cdouble": "complex128"}
    for name, dtype in others.items():
        assert getattr(rg, name) is getattr(rg, dtype)
    assert all(isinstance(as_dtype(name), rg.dtype) for name in DTYPES)


def test_limits_are_plain_numbers():
    for dtype in (rg.float16, rg.float32, rg.float64):
        ours, known = rg.finfo(dtype), np.finfo(dtype)
        for name in ("eps", "max", "min", "tiny", "smallest_normal", "bits"):
            assert getattr(ours, name) == getattr(known, name)
            assert type(getattr(ours, name)) in (int, float)
    assert rg.finfo().dtype == "float32"
    assert rg.finfo(rg.complex128).dtype == "float64"
    assert (rg.iinfo(rg.uint16).min, rg.iinfo(rg.uint16).max, rg.iinfo(rg.uint16).bits) == (0, 65535, 16)
    assert repr(rg.finfo(rg.float16)).startswith("finfo(resolution=0.001, min=-65504, max=65504")


@pytest.mark.parametrize(("make", "dtype"), [("finfo", "int64"), ("iinfo", "float32"), ("iinfo", "bool")])
def test_limits_of_the_wrong_kind_name_the_right_one(make, dtype):
    with pytest.raises(TypeError, match=f"{make}: .* got {dtype}; .* {'iinfo' if make == 'finfo' else 'finfo'}"):
        getattr(rg, make)(np.dtype(dtype))


@pytest.mark.parametrize("signed", ["int8", "int64"])
def test_no_integer_dtype_holds_unsigned_and_signed_ones_of_64_bits(signed):
    with pytest.raises(TypeError, match=f"no integer dtype holds both uint64 and {signed}"):
        ones("uint64") + ones(signed)
    assert (ones("uint32") + ones("int32")).dtype == np.int64
    assert (ones("uint64") + 1).dtype == np.uint64
    assert (ones("uint64") + ones("float32")).dtype == np.float32


def test_the_dtype_of_what_was_pickled_is_the_same_object():
    for name in (*DTYPES, "float8_e5m2"):
        dtype, array = getattr(rg, name), np.ones(2, as_dtype(name))
        copied = pickle.loads(pickle.dumps(array))
        tensors = [rg.from_numpy(copied), rg.tensor(copied), rg.as_tensor(copied), rg.asarray(copied)]
        tensors += [
            pickle.loads(pickle.dumps(tensors[0])),
            pickle.loads(pickle.dumps(rg.nn.Parameter(tensors[0], False))),
        ]
        assert all(x.dtype is dtype for x in tensors), name
        copied[0] = 0
        assert tensors[0].tolist() == [0, 1]


@pytest.mark.parametrize(
    "make", [rg.Tensor.to_sparse, lambda x: rg.nested.nested_tensor([x[0], x[1]], layout=rg.jagged)]
)
def test_the_dtype_of_a_pickled_composite_tensor_is_the_same_object(make):
    copied = pickle.loads(pickle.dumps(make(rg.eye(2))))
    assert copied.dtype is rg.float32
    assert copied.values().dtype is rg.float32
