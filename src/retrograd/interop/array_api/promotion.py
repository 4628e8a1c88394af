"""The standard's promotion rules: by dtype alone, whatever the number of dimensions; Python scalars adapt."""

from functools import reduce
from typing import Any

import numpy as np

from retrograd.core import Tensor
from retrograd.core import dtype as dtypes
from retrograd.ops.family import cast_to

NUMBERS = (bool, int, float, complex)


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The common dtype of arrays, dtypes and Python scalars.

    Raises ValueError if there is neither an array nor a dtype.

    >>> from retrograd import float32, zeros
    >>> result_type(zeros((), dtype="float64"), zeros(3))
    dtype('float64')
    >>> result_type(float32, 2)
    dtype('float32')
    """
    numbers = [a for a in arrays_and_dtypes if isinstance(a, NUMBERS)]
    fixed = [dtype_of(a) for a in arrays_and_dtypes if not isinstance(a, NUMBERS)]
    if not fixed:
        raise ValueError("result_type: expected at least one array or dtype")
    return reduce(_promote_number, numbers, reduce(dtypes.promote, fixed))


def dtype_of(a: Any) -> Any:
    """Return the dtype of an array, or a dtype itself."""
    return a.dtype if hasattr(a, "dtype") else np.dtype(a)


def _promote_number(dtype: Any, number: Any) -> Any:
    own = dtypes.of_scalar(number)
    if dtypes.category(own) <= dtypes.category(dtype):
        return dtype
    return dtypes.complex_of(dtype) if dtypes.is_floating(dtype) else own


def promote(*operands: Any) -> tuple[Any, ...]:
    """Return the operands in one dtype; a scalar combined with an array stays a scalar, which adapts to it."""
    dtype = result_type(*operands)
    return tuple(cast_to(a, dtype) if isinstance(a, Tensor) else a for a in operands)
