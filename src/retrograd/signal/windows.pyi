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

def bartlett(M: _int, *, sym: _bool = True, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Up from 0 to 1 in the middle, and down again."""

def blackman(M: Any, *, sym: Any = True, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """0.42 - 0.5 cos + 0.08 cos of two periods."""

def cosine(M: _int, *, sym: _bool = True, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """Half a period of the sine, of which the ends are left out."""

def exponential(M: _int, *, center: Any = None, tau: _float = 1.0, sym: _bool = True, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """exp(-|n - center| / tau); the center is the middle, periodic windows may have another."""

def gaussian(M: _int, *, std: _float = 1.0, sym: _bool = True, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """exp(-(n - middle)^2 / (2 std^2))."""

def general_cosine(M: _int, *, a: Any, sym: _bool = True, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """The sum of cosines of 0, 1, ... periods, weighed by `a`, the signs alternating."""

def general_hamming(M: Any, *, alpha: Any = 0.54, sym: Any = True, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """alpha - (1 - alpha) cos: `hamming` and `hann` with another weight."""

def hamming(M: Any, *, sym: Any = True, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """0.54 - 0.46 cos, over one period."""

def hann(M: Any, *, sym: Any = True, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """0.5 - 0.5 cos, over one period."""

def kaiser(M: _int, *, beta: _float = 12.0, sym: _bool = True, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """I0(beta sqrt(1 - t^2)) / I0(beta) for t from -1 to 1, where I0 is the modified Bessel function of order 0."""

def nuttall(M: Any, *, sym: Any = True, dtype: Any = None, out: Any = None, device: Any = None, layout: Any = None, pin_memory: Any = False, memory_format: Any = None, requires_grad: Any = False) -> Tensor:
    """The cosines of 0 to 3 periods, so weighed that the side lobes are low."""
