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

def fft(x: _Operand, n: _int | None = None, dim: _int = -1, norm: _str | None = None) -> Tensor:
    """Discrete Fourier transform along dim: the sums over j of x[j] * exp(-2 pi i j k / n), k from 0 to n - 1."""

def fft2(x: _Operand, s: _Ints | None = None, dim: _Ints = (-2, -1), norm: _str | None = None) -> Tensor:
    """`fft` over two dimensions, truncated or padded to the sizes s."""

def fftfreq(n: _int, d: _float = 1.0, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Return the frequencies of `fft` of n values with spacing d, in its order: 0, positive, negative."""

def fftn(x: _Operand, s: _Ints | None = None, dim: _Ints | None = None, norm: _str | None = None) -> Tensor:
    """`fft` over several dimensions (None: all, or as many of the last as s has), truncated or padded to s."""

def fftshift(x: _Operand, dim: _Ints | None = None) -> Tensor:
    """Rotate each of the dimensions (None: all) so that frequency 0 is in the middle."""

def hfft(x: _Operand, n: _int | None = None, dim: _int = -1, norm: _str | None = None) -> Tensor:
    """Real `fft` of n values (None: 2 * (size - 1)) with first half x, and its conjugates as the second half."""

def hfft2(x: _Operand, s: _Ints | None = None, dim: _Ints = (-2, -1), norm: _str | None = None) -> Tensor:
    """`fft` over the first, `hfft` over the second dimension."""

def hfftn(x: _Operand, s: _Ints | None = None, dim: _Ints | None = None, norm: _str | None = None) -> Tensor:
    """`hfft` over the last dimension, `fft` over the others."""

def ifft(x: _Operand, n: _int | None = None, dim: _int = -1, norm: _str | None = None) -> Tensor:
    """Inverse of `fft` along dim: the sums over j of x[j] * exp(2 pi i j k / n), divided by n by default."""

def ifft2(x: _Operand, s: _Ints | None = None, dim: _Ints = (-2, -1), norm: _str | None = None) -> Tensor:
    """`ifft` over two dimensions, truncated or padded to the sizes s."""

def ifftn(x: _Operand, s: _Ints | None = None, dim: _Ints | None = None, norm: _str | None = None) -> Tensor:
    """The inverse of `fftn`."""

def ifftshift(x: _Operand, dim: _Ints | None = None) -> Tensor:
    """Invert `fftshift`: rotate frequency 0 from the middle to the front."""

def ihfft(x: _Operand, n: _int | None = None, dim: _int = -1, norm: _str | None = None) -> Tensor:
    """Inverse of `hfft`: the first n // 2 + 1 values of `ifft` of real values."""

def ihfft2(x: _Operand, s: _Ints | None = None, dim: _Ints = (-2, -1), norm: _str | None = None) -> Tensor:
    """The inverse of `hfft2`."""

def ihfftn(x: _Operand, s: _Ints | None = None, dim: _Ints | None = None, norm: _str | None = None) -> Tensor:
    """The inverse of `hfftn`."""

def irfft(x: _Operand, n: _int | None = None, dim: _int = -1, norm: _str | None = None) -> Tensor:
    """Inverse of `rfft`: n real values (None: 2 * (size - 1), an even number) from the first half of a spectrum."""

def irfft2(x: _Operand, s: _Ints | None = None, dim: _Ints = (-2, -1), norm: _str | None = None) -> Tensor:
    """The inverse of `rfft2`; s are the sizes of the result."""

def irfftn(x: _Operand, s: _Ints | None = None, dim: _Ints | None = None, norm: _str | None = None) -> Tensor:
    """The inverse of `rfftn`; s are the sizes of the result."""

def rfft(x: _Operand, n: _int | None = None, dim: _int = -1, norm: _str | None = None) -> Tensor:
    """Discrete Fourier transform of real values: the first n // 2 + 1 values of `fft`; the others are their conjugates."""

def rfft2(x: _Operand, s: _Ints | None = None, dim: _Ints = (-2, -1), norm: _str | None = None) -> Tensor:
    """`rfft` over the second, `fft` over the first dimension."""

def rfftfreq(n: _int, d: _float = 1.0, *, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Return the frequencies of `rfft` of n values with spacing d."""

def rfftn(x: _Operand, s: _Ints | None = None, dim: _Ints | None = None, norm: _str | None = None) -> Tensor:
    """`rfft` over the last dimension, `fft` over the others."""
