"""The base of continuous distributions with shapes, a location and a scale."""

import math
from collections.abc import Callable
from typing import Any

from retrograd.core import Tensor
from retrograd.interop.numpy_protocol.table import NUMBERS, O, as_floating, holds_tensor, operand, promote_operands
from retrograd.scipy._constants import guarded
from retrograd.scipy._mirror import on_tensors, scipy_member


class Mirror:
    """The part of a mirrored distribution that is SciPy's, by the name of the distribution."""

    name: str

    def __getattr__(self, name: str) -> Any:
        """Return another member of SciPy's distribution."""
        if name.startswith("__"):
            raise AttributeError(name)
        path = f"scipy.stats.{self.name}"
        return guarded(path, name, getattr(scipy_member(path), name))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the distribution with these parameters, as SciPy's if none is a tensor."""
        if holds_tensor((args, tuple(kwargs.values()))):
            return Frozen(self, args, kwargs)
        return scipy_member(f"scipy.stats.{self.name}")(*args, **kwargs)


class Continuous(Mirror):
    """The functions of one distribution, from those of its standard form, of (z, *shapes).

    `logpdf` is the logarithm of the density inside of the support (low, high), where the standard form has `middle`;
    with `open_ends` it is -inf at the ends.  `cdf` and `sf` are the probabilities below and above, if known, `logcdf`
    and `logsf` more accurate logarithms of them.
    """

    def __init__(
        self,
        name: str,
        shapes: str = "",
        *,
        logpdf: Callable,
        cdf: Callable | None = None,
        sf: Callable | None = None,
        logcdf: Callable | None = None,
        logsf: Callable | None = None,
        support: tuple[float, float] = (-math.inf, math.inf),
        middle: float = 0.0,
        open_ends: bool = False,
    ) -> None:
        self.name = name
        self.shapes = shapes.split()
        self.support = support
        self.middle = middle
        self._open_ends = open_ends
        log_of = lambda function: lambda *args: O.log(function(*args))  # noqa: E731
        self.logpdf = self._function("logpdf", logpdf, -math.inf, -math.inf)
        self.pdf = self._function("pdf", lambda *args: O.exp(logpdf(*args)), 0.0, 0.0)
        if cdf is None:
            return
        sf = sf or (lambda *args: 1 - cdf(*args))
        self.cdf = self._function("cdf", cdf, 0.0, 1.0)
        self.sf = self._function("sf", sf, 1.0, 0.0)
        self.logcdf = self._function("logcdf", logcdf or log_of(cdf), -math.inf, 0.0)
        self.logsf = self._function("logsf", logsf or log_of(sf), 0.0, -math.inf)

    def _function(self, name: str, standard: Callable, below: float, above: float) -> Callable:
        """Return one of the distribution's functions, with its values on both sides of the support."""

        def function(x: Any, *args: Any, **kwargs: Any) -> Tensor:
            z, scale, shapes = standardize(self.name, self.shapes, x, args, kwargs)
            low, high = self.support
            if low == -math.inf:
                return rescale(name, standard(z, *shapes), scale)
            inside = self._inside(name, z)
            value = rescale(name, standard(O.where(inside, z, self.middle), *shapes), scale)
            return O.where(inside, value, O.where(z <= low, below, O.where(z >= high, above, math.nan)))

        function.__name__ = name
        function.__doc__ = f"`scipy.stats.{self.name}.{name}` of (x, {', '.join([*self.shapes, 'loc=0', 'scale=1'])})."
        return on_tensors(f"scipy.stats.{self.name}")(function)

    def _inside(self, name: str, z: Tensor) -> Tensor:
        """Return where the formula holds: densities are defined at finite ends of the support, other functions have
        limits."""
        low, high = self.support
        if name in ("pdf", "logpdf") and not self._open_ends:
            return O.logical_and(z >= low, z <= high if high < math.inf else z < high)
        return O.logical_and(z > low, z < high)


def standardize(name: str, own: list[str], x: Any, args: tuple, kwargs: dict) -> tuple[Tensor, Any, list[Tensor]]:
    """Return (x - loc) / scale, the scale, NaN if it is not positive, and the shapes."""
    names = [*own, "loc", "scale"]
    given = {"loc": 0.0, "scale": 1.0, **dict(zip(names, args, strict=False)), **kwargs}
    if len(args) > len(names) or given.keys() != set(names):
        raise TypeError(f"stats.{name}: expected x, {', '.join(names)}; got {', '.join(['x', *given])}")
    z, *shapes = promote_operands(as_floating(x), *[as_floating(given[n]) for n in own])
    scale = operand(given["scale"])
    plain = type(scale) in NUMBERS
    scale = (scale if scale > 0 else math.nan) if plain else O.where(scale > 0, scale, math.nan)
    return (z - operand(given["loc"])) / scale, scale, shapes


class Frozen:
    """A distribution whose parameters are given: its functions take only x."""

    def __init__(self, family: Any, args: tuple, kwargs: dict) -> None:
        self._family = family
        self._args = args
        self._kwargs = kwargs

    def __getattr__(self, name: str) -> Callable:
        if name not in ("pdf", "logpdf", "pmf", "logpmf", "cdf", "sf", "logcdf", "logsf"):
            raise AttributeError(f"stats.{self._family.name}: {name} is not available with parameters that are tensors")
        function = getattr(self._family, name)
        return lambda x: function(x, *self._args, **self._kwargs)


def rescale(name: str, value: Tensor, scale: Any) -> Tensor:
    """Return a value of the scaled distribution from the standard one: the scale changes densities only."""
    if name == "logpdf":
        return value - (math.log(scale) if type(scale) in NUMBERS else O.log(scale))
    return value / scale if name == "pdf" else value
