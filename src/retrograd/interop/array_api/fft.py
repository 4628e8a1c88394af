"""The extension for Fourier transforms."""

from collections.abc import Callable
from typing import Any

from retrograd.core import Tensor, operator_named
from retrograd.interop.array_api.naming import named
from retrograd.ops.functions import functions


def _of_one_axis(name: str) -> Callable:
    operator = operator_named(f"fft.{name}")

    def function(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
        return operator(x, n=n, dim=axis, norm=norm)

    return named(function, name, operator.__doc__)


def _of_several(name: str) -> Callable:
    operator = operator_named(f"fft.{name}")

    def function(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Tensor:
        return operator(x, s=s, dim=axes, norm=norm)

    return named(function, name, operator.__doc__)


fft, ifft, rfft = _of_one_axis("fft"), _of_one_axis("ifft"), _of_one_axis("rfft")
irfft, hfft, ihfft = _of_one_axis("irfft"), _of_one_axis("hfft"), _of_one_axis("ihfft")
fftn, ifftn, rfftn, irfftn = (_of_several(name) for name in ("fftn", "ifftn", "rfftn", "irfftn"))


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of the elements of `fft`, for n samples with spacing d."""
    return functions["fft.fftfreq"](n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of the elements of `rfft`, for n samples with spacing d."""
    return functions["fft.rfftfreq"](n, d, dtype=dtype, device=device)


def fftshift(x: Any, /, *, axes: Any = None) -> Tensor:
    """Move the zero frequency to the middle."""
    return operator_named("fft.fftshift")(x, dim=axes)


def ifftshift(x: Any, /, *, axes: Any = None) -> Tensor:
    """The inverse of `fftshift`."""
    return operator_named("fft.ifftshift")(x, dim=axes)
