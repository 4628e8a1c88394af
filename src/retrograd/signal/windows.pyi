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

def bartlett(M: _int, *, sym: _bool = True, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """The Bartlett window: a triangle, from 0 up to 1 in the middle and back to 0."""

def blackman(M: Any, *, sym: Any = True, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """The Blackman window: 0.42 - 0.5 cos of one period + 0.08 cos of two periods."""

def cosine(M: _int, *, sym: _bool = True, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """The cosine window: half a period of the sine, without its ends."""

def exponential(M: _int, *, center: Any = None, tau: _float = 1.0, sym: _bool = True, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """The exponential window exp(-|n - center| / tau); periodic windows may set the center."""

def gaussian(M: _int, *, std: _float = 1.0, sym: _bool = True, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """The Gaussian window exp(-(n - middle)^2 / (2 std^2))."""

def general_cosine(M: _int, *, a: Any, sym: _bool = True, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """The sum of cosines of 0, 1, ... periods with weights `a` and alternating signs."""

def general_hamming(M: Any, *, alpha: Any = 0.54, sym: Any = True, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """The generalized Hamming window: alpha - (1 - alpha) cos over one period."""

def hamming(M: Any, *, sym: Any = True, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """The Hamming window: 0.54 - 0.46 cos over one period."""

def hann(M: Any, *, sym: Any = True, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """The Hann window: 0.5 - 0.5 cos over one period."""

def kaiser(M: _int, *, beta: _float = 12.0, sym: _bool = True, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """The Kaiser window: I0(beta sqrt(1 - t^2)) / I0(beta) for t from -1 to 1, with I0 the modified Bessel function."""

def nuttall(M: Any, *, sym: Any = True, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """The Nuttall window: cosines of 0 to 3 periods with weights for low side lobes."""
