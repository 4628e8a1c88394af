"""Data types: their table, the default dtype, and PyTorch's promotion rules."""

from typing import NamedTuple

import numpy as np

from retrograd.foundation.describe_value import describe
from retrograd.foundation.lazy_imports import lazy_module

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

    name: str
    alias: str | None  # PyTorch's other name, also of the tensor method that converts
    storage: str | None  # in PyTorch's files and names of tensor classes: FloatStorage, FloatTensor
    safetensors: str | None
    complex: np.dtype | None = None  # the complex dtype whose parts have this dtype
    tolerance: tuple[float, float] = (0.0, 0.0)  # rtol and atol of torch.testing.assert_close
    stores: int | None = None  # the category of a dtype that is only stored and converted; None if it computes

    @property
    def dtype(self):
        """The dtype of that name."""
        return as_dtype(self.name)


_SINGLE, _DOUBLE = (1.3e-6, 1e-5), (1e-7, 1e-7)
_ROWS = (  # a dtype, its alias, its names in PyTorch's and in safetensors files, and the rest for floating ones
    Facts("bool", "bool", "Bool", "BOOL"),
    Facts("int8", "char", "Char", "I8"),
    Facts("int16", "short", "Short", "I16"),
    Facts("int32", "int", "Int", "I32"),
    Facts("int64", "long", "Long", "I64"),
    Facts("uint8", "byte", "Byte", "U8"),
    Facts("uint16", None, None, "U16"),
    Facts("uint32", None, None, "U32"),
    Facts("uint64", None, None, "U64"),
    Facts("float16", "half", "Half", "F16", complex64, (1e-3, 1e-5)),
    Facts("bfloat16", None, "BFloat16", "BF16", complex64, (1.6e-2, 1e-5)),
    Facts("float32", "float", "Float", "F32", complex64, _SINGLE),
    Facts("float64", "double", "Double", "F64", complex128, _DOUBLE),
    Facts("complex64", "cfloat", "ComplexFloat", "C64", complex64, _SINGLE),
    Facts("complex128", "cdouble", "ComplexDouble", None, complex128, _DOUBLE),
    Facts("float8_e4m3fn", None, None, "F8_E4M3", stores=2),
    Facts("float8_e4m3fnuz", None, None, "F8_E4M3FNUZ", stores=2),
    Facts("float8_e5m2", None, None, "F8_E5M2", stores=2),
    Facts("float8_e5m2fnuz", None, None, "F8_E5M2FNUZ", stores=2),
    Facts("float8_e8m0fnu", None, None, "F8_E8M0", stores=2),
    Facts("int2", None, None, None, stores=1),
    Facts("int4", None, None, None, stores=1),
    Facts("uint2", None, None, None, stores=1),
    Facts("uint4", None, None, None, stores=1),
)
TABLE = {row.name: row for row in _ROWS}  # by name, which is that of both byte orders
EXTENSIONS = {row.name for row in _ROWS if row.name == "bfloat16" or row.stores}  # the dtypes of `ml_dtypes`
STORAGES = {row.storage: row.name for row in _ROWS if row.storage}
_CATEGORY = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


def scalar_name(dtype):
    """Return PyTorch's name of a dtype in messages, such as Float or Long.

    >>> scalar_name(float32), scalar_name(np.dtype("int64"))
    ('Float', 'Long')
    """
    row = TABLE.get(dtype.name)
    if row is None:
        return dtype.name
    if row.stores is not None:
        return ("UI" + dtype.name[2:]) if dtype.name[0] == "u" else dtype.name.capitalize()
    return dtype.name if row.storage is None else row.storage


# bfloat16 is the dtype of `ml_dtypes`, which is imported when bfloat16 is first used.  NumPy counts it as of kind "V",
# like structures, and computes with it only by `ml_dtypes`.  Among dtypes of two bytes this letter is bfloat16's alone.
_BFLOAT16 = "E"
_HALF = "e" + _BFLOAT16
_FLOATING = _HALF + "fdg"


def as_dtype(value):
    """Return a dtype, the name of one or a scalar type as a dtype; TypeError if there is none.

    >>> as_dtype("float32"), as_dtype("bfloat16")
    (dtype('float32'), dtype(bfloat16))
    """
    try:
        found = np.dtype(value)
    except TypeError:
        if isinstance(value, str) and value in EXTENSIONS:
            return getattr(lazy_module("retrograd.core.extension_dtypes"), value)
        found = None
    if found is None or not (found.kind in "fiubc" or is_extension(found)):
        raise TypeError(f"expected a dtype or the name of one, got {describe(value)}")
    return found


def is_bfloat16(dtype):
    """Return whether a dtype is bfloat16, without importing it."""
    return dtype.char == _BFLOAT16 and dtype.itemsize == 2


def is_half(dtype):
    """Return whether a dtype is float16 or bfloat16, whose sums and products are computed in float32."""
    return dtype.char in _HALF and dtype.itemsize == 2


def is_extension(dtype):
    """Return whether a dtype is one of another package than NumPy."""
    return dtype.isbuiltin == 2


def stores_only(dtype):
    """Return whether a dtype is one of `ml_dtypes` that operators only move and convert.

    >>> stores_only(as_dtype("float8_e5m2")), stores_only(as_dtype("bfloat16")), stores_only(int8)
    (True, False, False)
    """
    return is_extension(dtype) and dtype.itemsize == 1 and dtype.name in EXTENSIONS


def is_floating(dtype):
    """Return whether a dtype is real and floating; bfloat16 is, although its kind is not "f".

    >>> [is_floating(as_dtype(d)) for d in ("bfloat16", "float64", "int64", "complex64")]
    [True, True, False, False]
    """
    if is_extension(dtype):
        return is_bfloat16(dtype) or _stored_category(dtype) == 2
    return dtype.char in _FLOATING


ALIASES = {row.alias: row.dtype for row in _ROWS if row.alias}
_COMPLEX_OF = {row.dtype: row.complex for row in _ROWS if row.complex and row.name != "bfloat16"}
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
    dtype = as_dtype(dtype)
    if not is_floating(dtype) or stores_only(dtype):
        raise TypeError(f"set_default_dtype: only real floating dtypes that compute can be the default, got {dtype}")
    _default = dtype


def is_signed(dtype):
    """Return whether a dtype can represent negative numbers.

    >>> [is_signed(as_dtype(d)) for d in ("int8", "uint8", "bool", "bfloat16", "float8_e8m0fnu")]
    [True, False, False, True, False]
    """
    return dtype.kind in "ifc" if not is_extension(dtype) else not dtype.name.endswith("u") and dtype.name[0] != "u"


def category(dtype):
    """Return the category of a dtype: 0 boolean, 1 integer, 2 floating, 3 complex.

    >>> [category(d) for d in (bool_, uint8, float32, complex64)]
    [0, 1, 2, 3]
    """
    found = _CATEGORY.get(dtype.kind)
    if found is not None and not is_extension(dtype):
        return found
    if is_bfloat16(dtype):
        return 2
    stored = _stored_category(dtype)
    if stored is not None:
        return stored
    words = "new(): invalid data type 'str': " if dtype.kind == "U" else ""
    raise TypeError(f"{words}dtype {dtype} is not supported: use a boolean, integer, float or complex dtype")


def _stored_category(dtype):
    row = TABLE.get(dtype.name)
    return None if row is None else row.stores


def is_differentiable(dtype):
    """Return whether values of this dtype can have gradients: floating and complex ones do."""
    return dtype.kind in "fc" or category(dtype) >= 2


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
    return dtype if dtype.kind == "c" else _COMPLEX_OF[opmath_of(float_of(dtype))]


def opmath_of(dtype):
    """Return the dtype in which operators compute: float32 for float16 and bfloat16, else the dtype itself.

    >>> opmath_of(float16), opmath_of(float64)
    (dtype('float32'), dtype('float64'))
    """
    return float32 if is_half(dtype) else dtype


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
    if a != b and (stores_only(a) or stores_only(b)):
        kind = "Float8" if 2 in (_stored_category(a), _stored_category(b)) else "int2, int4, uint2 and uint4"
        raise RuntimeError(
            f"Promotion for {kind} Types is not supported, attempted to promote {scalar_name(a)} and "
            f"{scalar_name(b)}: convert one of them with .to(dtype)"
        )
    if ca == cb or (ca >= 2 and cb >= 2):
        both = a if a == b else np.promote_types(*[float32 if is_bfloat16(d) else d for d in (a, b)])
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
    found = _only_dtype(operands)
    if found is not None:
        return found
    ranks = [None, None, None]
    for operand in operands:
        dtype = getattr(operand, "dtype", None)
        rank = 2 if dtype is None else 1 if len(operand.shape) == 0 else 0
        dtype = of_scalar(operand) if dtype is None else dtype
        ranks[rank] = dtype if ranks[rank] is None else promote(ranks[rank], dtype)
    return _outrank(ranks[0], _outrank(ranks[1], ranks[2]))


_CATEGORY_OF_NUMBER = {bool: 0, int: 1, float: 2, complex: 3}


def _only_dtype(operands):
    """Return the dtype that all arrays among operands have, if numbers do not change it: the usual case, fast."""
    found, most = None, 0
    for operand in operands:
        dtype = getattr(operand, "dtype", None)
        if dtype is None:
            number = _CATEGORY_OF_NUMBER.get(type(operand), 4)
            most = number if number > most else most
        elif found is None:
            found = dtype
        elif found is not dtype:
            return None
    return found if found is not None and category(found) >= most else None


def check_requires_grad(dtype):
    """Raise if tensors of a dtype cannot require grad."""
    if not is_differentiable(dtype):
        raise RuntimeError(
            f"Only Tensors of floating point and complex dtype can require gradients, got {dtype}; "
            "convert with .float(), or write numbers as 1.0"
        )
