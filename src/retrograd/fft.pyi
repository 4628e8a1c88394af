# Made from the registry of operators by tools/stubs.py: change those, then run `python tools/stubs.py`.
# ruff: noqa
# fmt: off
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from retrograd.core.tensor_class import Tensor as Tensor

_Number = _bool | _int | _float | _complex
_Operand = Tensor | NDArray[Any] | np.generic | _Number
_Ints = _int | Sequence[_int]

def fft(x: _Operand, n: _int | None = None, dim: _int = -1, norm: _str | None = None) -> Tensor:
    """The sums over j of x[j] * exp(-2 pi i j k / n) along dim, for k from 0 to n - 1: complex."""

def fft2(x: _Operand, s: _Ints | None = None, dim: _Ints = (-2, -1), norm: _str | None = None) -> Tensor:
    """`fft` over two dimensions, brought to the sizes s."""

def fftfreq(n: Any, d: Any = 1.0, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """The frequencies that `fft` of n numbers at distances d answers for, in its order: 0, the positive, the negative."""

def fftn(x: _Operand, s: _Ints | None = None, dim: _Ints | None = None, norm: _str | None = None) -> Tensor:
    """`fft` over several dimensions (None: all, or as many of the last as s has), brought to the sizes s."""

def fftshift(x: _Operand, dim: _Ints | None = None) -> Tensor:
    """Each of the dimensions (None: all) turned round, so that frequency 0 is in its middle."""

def hfft(x: _Operand, n: _int | None = None, dim: _int = -1, norm: _str | None = None) -> Tensor:
    """The real `fft` of n numbers (None: 2 * (size - 1)) of which x is the first half, the second its conjugate."""

def hfft2(x: _Operand, s: _Ints | None = None, dim: _Ints = (-2, -1), norm: _str | None = None) -> Tensor:
    """`fft` over the first, `hfft` over the second dimension."""

def hfftn(x: _Operand, s: _Ints | None = None, dim: _Ints | None = None, norm: _str | None = None) -> Tensor:
    """`fft` over all dimensions but the last, `hfft` over that."""

def ifft(x: _Operand, n: _int | None = None, dim: _int = -1, norm: _str | None = None) -> Tensor:
    """The inverse of `fft`: the sums of x[j] * exp(2 pi i j k / n) along dim, divided by n unless norm says otherwise."""

def ifft2(x: _Operand, s: _Ints | None = None, dim: _Ints = (-2, -1), norm: _str | None = None) -> Tensor:
    """`ifft` over two dimensions, brought to the sizes s."""

def ifftn(x: _Operand, s: _Ints | None = None, dim: _Ints | None = None, norm: _str | None = None) -> Tensor:
    """The inverse of `fftn`."""

def ifftshift(x: _Operand, dim: _Ints | None = None) -> Tensor:
    """The inverse of `fftshift`: frequency 0 in the middle becomes the first."""

def ihfft(x: _Operand, n: _int | None = None, dim: _int = -1, norm: _str | None = None) -> Tensor:
    """The inverse of `hfft`: the first n // 2 + 1 numbers of `ifft` of real numbers."""

def ihfft2(x: _Operand, s: _Ints | None = None, dim: _Ints = (-2, -1), norm: _str | None = None) -> Tensor:
    """The inverse of `hfft2`."""

def ihfftn(x: _Operand, s: _Ints | None = None, dim: _Ints | None = None, norm: _str | None = None) -> Tensor:
    """The inverse of `hfftn`."""

def irfft(x: _Operand, n: _int | None = None, dim: _int = -1, norm: _str | None = None) -> Tensor:
    """The inverse of `rfft`: n real numbers (None: 2 * (size - 1), an even number) of the first half of a spectrum."""

def irfft2(x: _Operand, s: _Ints | None = None, dim: _Ints = (-2, -1), norm: _str | None = None) -> Tensor:
    """The inverse of `rfft2`; s are the sizes of the result."""

def irfftn(x: _Operand, s: _Ints | None = None, dim: _Ints | None = None, norm: _str | None = None) -> Tensor:
    """The inverse of `rfftn`; s are the sizes of the result."""

def rfft(x: _Operand, n: _int | None = None, dim: _int = -1, norm: _str | None = None) -> Tensor:
    """The first n // 2 + 1 numbers of `fft` of real numbers, of which the others are the conjugates."""

def rfft2(x: _Operand, s: _Ints | None = None, dim: _Ints = (-2, -1), norm: _str | None = None) -> Tensor:
    """`rfft` over the second, `fft` over the first dimension."""

def rfftfreq(n: Any, d: Any = 1.0, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """The frequencies that `rfft` of n numbers at distances d answers for."""

def rfftn(x: _Operand, s: _Ints | None = None, dim: _Ints | None = None, norm: _str | None = None) -> Tensor:
    """`rfft` over the last dimension, `fft` over the others."""
