# Made from the registry of operators by tools/stubs.py: change those, then run `make stubs`.
# ruff: noqa
# fmt: off
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Self, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from retrograd import return_types as return_types
from retrograd.core.tensor_class import Tensor as Tensor

_Number = _bool | _int | _float | _complex
_Operand = Tensor | NDArray[Any] | np.generic | _Number
_Ints = _int | Sequence[_int]

def amax(x: _Operand, dim: _Ints | None = None, *, keepdim: _bool = False, dtype: DTypeLike | None = None, mask: _Operand | None = None) -> Tensor:
    """Return the maximum over `dim` (None: all) of the elements where the mask is true."""

def amin(x: _Operand, dim: _Ints | None = None, *, keepdim: _bool = False, dtype: DTypeLike | None = None, mask: _Operand | None = None) -> Tensor:
    """Return the minimum over `dim` (None: all) of the elements where the mask is true."""

def argmax(x: _Operand, dim: _int | None = None, *, keepdim: _bool = False, dtype: DTypeLike | None = None, mask: _Operand | None = None) -> Tensor:
    """Return the index of the maximum along `dim` (None: of all, flattened) where the mask is true, 0 where none is."""

def argmin(x: _Operand, dim: _int | None = None, *, keepdim: _bool = False, dtype: DTypeLike | None = None, mask: _Operand | None = None) -> Tensor:
    """Return the index of the minimum along `dim` (None: of all, flattened) where the mask is true, 0 where none is."""

def cumprod(x: _Operand, dim: _int, *, dtype: DTypeLike | None = None, mask: _Operand | None = None) -> Tensor:
    """Return the cumulative product along `dim` of the elements where the mask is true."""

def cumsum(x: _Operand, dim: _int, *, dtype: DTypeLike | None = None, mask: _Operand | None = None) -> Tensor:
    """Return the cumulative sum along `dim` of the elements where the mask is true; in the dtype of x if none is given."""

def log_softmax(x: _Operand, dim: _int, *, dtype: DTypeLike | None = None, mask: _Operand | None = None) -> Tensor:
    """Return the logarithm of `masked.softmax`."""

def logaddexp(x: _Operand, y: _Operand, *, dtype: DTypeLike | None = None, input_mask: _Operand | None = None, other_mask: _Operand | None = None) -> Tensor:
    """Return log(exp(x) + exp(y)), where x or y counts as -inf if its mask is false."""

def logsumexp(x: _Operand, dim: _Ints | None = None, *, keepdim: _bool = False, dtype: DTypeLike | None = None, mask: _Operand | None = None) -> Tensor:
    """Return log(sum(exp(x))) over `dim` (None: all) of the elements where the mask is true; -inf where none is."""

def mean(x: _Operand, dim: _Ints | None = None, *, keepdim: _bool = False, dtype: DTypeLike | None = None, mask: _Operand | None = None) -> Tensor:
    """Return the mean over `dim` (None: all) of the elements where the mask is true; NaN where none is."""

def median(x: _Operand, dim: _int = -1, *, keepdim: _bool = False, dtype: DTypeLike | None = None, mask: _Operand | None = None) -> Tensor:
    """Return the median along `dim`, the lower of two in the middle, of the elements where the mask is true."""

def norm(x: _Operand, ord: _Number = 2.0, dim: _Ints | None = None, *, keepdim: _bool = False, dtype: DTypeLike | None = None, mask: _Operand | None = None) -> Tensor:
    """Return `linalg.vector_norm` over `dim` (None: all) of the elements where the mask is true."""

def normalize(x: _Operand, ord: _Number, dim: _int, *, eps: _float = 1e-12, dtype: DTypeLike | None = None, mask: _Operand | None = None) -> Tensor:
    """Return x divided by `masked.norm` along `dim`, or by eps where that is smaller; 0 where the mask is false."""

def prod(x: _Operand, dim: _Ints | None = None, *, keepdim: _bool = False, dtype: DTypeLike | None = None, mask: _Operand | None = None) -> Tensor:
    """Return the product over `dim` (None: all) of the elements where the mask is true; 1 where none is."""

def softmax(x: _Operand, dim: _int, *, dtype: DTypeLike | None = None, mask: _Operand | None = None) -> Tensor:
    """Return the softmax along `dim` of the elements where the mask is true, 0 elsewhere; NaN where none is."""

def softmin(x: _Operand, dim: _int, *, dtype: DTypeLike | None = None, mask: _Operand | None = None) -> Tensor:
    """Return `masked.softmax` of -x."""

def std(x: _Operand, dim: _Ints | None = None, unbiased: _bool | None = None, *, correction: _Number | None = None, keepdim: _bool = False, dtype: DTypeLike | None = None, mask: _Operand | None = None) -> Tensor:
    """Return the square root of `masked.var`."""

def sum(x: _Operand, dim: _Ints | None = None, *, keepdim: _bool = False, dtype: DTypeLike | None = None, mask: _Operand | None = None) -> Tensor:
    """Return the sum over `dim` (None: all) of the elements where the mask, which broadcasts, is true."""

def var(x: _Operand, dim: _Ints | None = None, unbiased: _bool | None = None, *, correction: _Number | None = None, keepdim: _bool = False, dtype: DTypeLike | None = None, mask: _Operand | None = None) -> Tensor:
    """Return the variance over `dim` (None: all) of the elements where the mask is true."""
