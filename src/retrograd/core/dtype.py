"""Data types: their table, the default dtype, and PyTorch's promotion rules."""

from typing import NamedTuple

import numpy as np

DType = np.dtype  # the class of all dtypes

bool_ = np.dtype("bool")
uint8 = np.dtype("uint8")
uint16 = np.dtype("uint16")
uint32 = np.dtype("uint32")
uint64 = np.dtype("uint64")
int8 = np.dtype("int8")
int16 = np.dtype("int16")
int32 = np.dtype("int32")
int64 = np.dtype("int64")
float16 = np.dtype("float16")
float32 = np.dtype("float32")
float64 = np.dtype("float64")
complex64 = np.dtype("complex64")
complex128 = np.dtype("complex128")


class Facts(NamedTuple):
    """The facts about one dtype; formats and tests take them from here."""

    dtype: np.dtype
    alias: str | None  # PyTorch's other name, also of the tensor method that converts
    storage: str | None  # in PyTorch's files and names of tensor classes: FloatStorage, FloatTensor
    safetensors: str | None
    complex: np.dtype | None = None  # the complex dtype whose parts have this dtype
    opmath: np.dtype | None = None  # a wider dtype in which sums and products are computed
    tolerance: tuple[float, float] = (0.0, 0.0)  # rtol and atol of torch.testing.assert_close


_SINGLE, _DOUBLE = (1.3e-6, 1e-5), (1e-7, 1e-7)
_ROWS = (  # a dtype, its alias, its names in PyTorch's and in safetensors files, and the rest for floating ones
    Facts(bool_, "bool", "Bool", "BOOL"),
    Facts(int8, "char", "Char", "I8"),
    Facts(int16, "short", "Short", "I16"),
    Facts(int32, "int", "Int", "I32"),
    Facts(int64, "long", "Long", "I64"),
    Facts(uint8, "byte", "Byte", "U8"),
    Facts(uint16, None, None, "U16"),
    Facts(uint32, None, None, "U32"),
    Facts(uint64, None, None, "U64"),
    Facts(float16, "half", "Half", "F16", complex64, float32, (1e-3, 1e-5)),
    Facts(float32, "float", "Float", "F32", complex64, None, _SINGLE),
    Facts(float64, "double", "Double", "F64", complex128, None, _DOUBLE),
    Facts(complex64, "cfloat", "ComplexFloat", "C64", complex64, None, _SINGLE),
    Facts(complex128, "cdouble", "ComplexDouble", None, complex128, None, _DOUBLE),
)
TABLE = {row.dtype.name: row for row in _ROWS}  # by name, which is that of both byte orders
ALIASES = {row.alias: row.dtype for row in _ROWS if row.alias}
STORAGES = {row.storage: row.dtype for row in _ROWS if row.storage}
_COMPLEX_OF = {row.dtype: row.complex for row in _ROWS if row.complex}
_OPMATH = {row.dtype: row.opmath for row in _ROWS if row.opmath}
_CATEGORY = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}

_default = float32  # one setting for the process, as in PyTorch


def get_default_dtype():
    """Return the dtype that Python floats become.

    >>> get_default_dtype()
    dtype('float32')
    """
    return _default


def set_default_dtype(dtype):
    """Set the dtype that Python floats become: a real floating dtype, else TypeError."""
    global _default
    dtype = np.dtype(dtype)
    if dtype.kind != "f":
        raise TypeError(f"set_default_dtype: only real floating dtypes can be the default, got {dtype}")
    _default = dtype


def category(dtype):
    """Return the category of a dtype: 0 boolean, 1 integer, 2 floating, 3 complex.

    >>> [category(d) for d in (bool_, uint8, float32, complex64)]
    [0, 1, 2, 3]
    """
    try:
        return _CATEGORY[dtype.kind]
    except KeyError:
        raise TypeError(f"dtype {dtype} is not supported: use a boolean, integer, float or complex dtype") from None


def is_differentiable(dtype):
    """Return whether values of this dtype can have gradients: floating and complex ones do."""
    return category(dtype) >= 2


def float_of(dtype):
    """Return the result dtype of a floating function: integers become the default dtype."""
    return dtype if category(dtype) >= 2 else _default


def real_of(dtype):
    """Return the dtype of the real part of a complex dtype; any other dtype as it is.

    >>> real_of(complex128)
    dtype('float64')
    """
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def complex_of(dtype):
    """Return the complex dtype whose real part has this dtype.

    >>> complex_of(float32)
    dtype('complex64')
    """
    return dtype if dtype.kind == "c" else _COMPLEX_OF[float_of(dtype)]


def opmath_of(dtype):
    """Return the dtype in which operators compute sums and products: float32 for float16, else the dtype itself."""
    return _OPMATH.get(dtype, dtype)


def of_scalar(value):
    """Return the dtype of the tensor made from a Python number alone."""
    if isinstance(value, bool):
        return bool_
    if isinstance(value, int):
        return int64
    if isinstance(value, float):
        return _default
    if isinstance(value, complex):
        return complex_of(_default)
    raise TypeError(f"expected a Tensor, an array or a number, got {type(value).__name__}")


def promote(a, b):
    """Return the common dtype of two arrays of equal rank in promotion: a float wins over any integer.

    TypeError for uint64 with a signed integer, since no integer dtype holds both.

    >>> promote(int64, float32), promote(uint8, int8)
    (dtype('float32'), dtype('int16'))
    """
    ca, cb = category(a), category(b)
    if ca == cb or (ca >= 2 and cb >= 2):
        both = np.promote_types(a, b)
        if both.kind == "f" and ca == 1:
            raise TypeError(f"no integer dtype holds both {a} and {b}: convert one with .to(dtype)")
        return both
    return a if ca > cb else b


def _outrank(higher, lower):
    """Return the dtype that wins: within a category, arrays with dimensions win over 0-d arrays, these over numbers."""
    if higher is None or lower is None:
        return lower if higher is None else higher
    if category(higher) == 2 and category(lower) == 3:
        return complex_of(higher)
    return higher if category(higher) >= category(lower) else lower


def result_type(*operands):
    """Return the dtype of an elementwise operation on tensors, arrays, avals and Python numbers, as in PyTorch.

    >>> result_type(np.zeros(3, "int64"), 2.5)
    dtype('float32')
    >>> result_type(np.zeros(3, "float32"), np.zeros((), "float64"))
    dtype('float32')
    """
    ranks = [None, None, None]
    for operand in operands:
        dtype = getattr(operand, "dtype", None)
        rank = 2 if dtype is None else 1 if len(operand.shape) == 0 else 0
        dtype = of_scalar(operand) if dtype is None else dtype
        ranks[rank] = dtype if ranks[rank] is None else promote(ranks[rank], dtype)
    return _outrank(ranks[0], _outrank(ranks[1], ranks[2]))


def check_requires_grad(dtype):
    """Raise if tensors of a dtype cannot require grad."""
    if not is_differentiable(dtype):
        raise RuntimeError(f"only tensors of floating or complex dtype can require gradients, got {dtype}")
