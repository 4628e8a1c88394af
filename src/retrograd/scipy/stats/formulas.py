"""Continuous distributions by SciPy's own formulas, which consist of NumPy's functions and so run on tensors.

SciPy documents the formulas as methods to override: `_pdf`, `_cdf` and others of the standard form.
"""

import math
from collections.abc import Callable
from typing import Any

from retrograd.core import Tensor
from retrograd.interop.numpy_protocol.table import O, tensor
from retrograd.scipy._mirror import on_tensors, scipy_member
from retrograd.scipy.stats._continuous import Mirror, rescale, standardize

# name: shapes.  Where SciPy's distribution function does not consist of NumPy's functions, only densities are known.
SHAPES = {
    "alpha": "a", "anglit": "", "arcsine": "", "argus": "chi", "betaprime": "a b", "bradford": "c", "burr": "c d",
    "burr12": "c d", "crystalball": "beta m", "dweibull": "c", "erlang": "a", "exponnorm": "K", "exponpow": "b",
    "exponweib": "a c", "fatiguelife": "c", "fisk": "c", "foldcauchy": "c", "foldnorm": "c", "genexpon": "a b c",
    "genextreme": "c", "gengamma": "a c", "genlogistic": "c", "gibrat": "", "gompertz": "c", "halfgennorm": "beta",
    "halflogistic": "", "hypsecant": "", "invweibull": "c", "jf_skew_t": "a b", "johnsonsb": "a b", "johnsonsu": "a b",
    "kappa3": "a", "laplace_asymmetric": "kappa", "levy": "", "levy_l": "", "loggamma": "c", "loglaplace": "c",
    "loguniform": "a b", "lomax": "c", "mielke": "k s", "moyal": "", "nakagami": "nu", "powerlaw": "a",
    "powerlognorm": "c s", "powernorm": "c", "rdist": "c", "recipinvgauss": "mu", "reciprocal": "a b",
    "rel_breitwigner": "rho", "semicircular": "", "skewcauchy": "a", "truncexpon": "b", "truncweibull_min": "c a b",
    "wald": "", "weibull_max": "c", "wrapcauchy": "c",
}  # fmt: skip
DENSITY_SHAPES = {"cosine": "", "dgamma": "a", "genpareto": "c", "norminvgauss": "a b", "rice": "b"}


class Formulas(Mirror):
    """The functions of one distribution, each from a formula of SciPy in standard form, of (z, *shapes).

    A logarithm without a formula is that of the density, or of the smaller of both tails.
    """

    def __init__(self, name: str, shapes: str, tails: bool) -> None:
        self.name = name
        self.shapes = shapes.split()
        self.logpdf = self._function("logpdf", self._log_density, -math.inf, -math.inf)
        self.pdf = self._function("pdf", self._density, 0.0, 0.0)
        if not tails:
            return
        self.cdf = self._function("cdf", self._below, 0.0, 1.0)
        self.sf = self._function("sf", self._above, 1.0, 0.0)
        self.logcdf = self._function("logcdf", self._log_tail("_logcdf", self._below, self._above), -math.inf, 0.0)
        self.logsf = self._function("logsf", self._log_tail("_logsf", self._above, self._below), 0.0, -math.inf)

    def _own(self, formula: str) -> Callable | None:
        """Return SciPy's formula, or None where it is the one of all distributions, which computes numerically."""
        distribution = scipy_member(f"scipy.stats.{self.name}")
        general = scipy_member("scipy.stats.rv_continuous")
        if getattr(type(distribution), formula) is getattr(general, formula):
            return None
        found: Callable = getattr(distribution, formula)
        return found

    def _density(self, *given: Tensor) -> Tensor:
        formula = self._own("_pdf")
        return tensor(formula(*given)) if formula else O.exp(self._log_density(*given))

    def _log_density(self, *given: Tensor) -> Tensor:
        formula = self._own("_logpdf")
        return tensor(formula(*given)) if formula else O.log(self._density(*given))

    def _below(self, *given: Tensor) -> Tensor:
        formula = self._own("_cdf")
        return tensor(formula(*given)) if formula else 1 - self._above(*given)

    def _above(self, *given: Tensor) -> Tensor:
        formula = self._own("_sf")
        return tensor(formula(*given)) if formula else 1 - self._below(*given)

    def _log_tail(self, formula: str, tail: Callable, other: Callable) -> Callable:
        def logarithm(*given: Tensor) -> Tensor:
            own = self._own(formula)
            if own:
                return tensor(own(*given))
            value, rest = tail(*given), other(*given)
            small = value < 0.5
            return O.where(small, O.log(O.where(small, value, 0.5)), O.log1p(-O.where(small, 0.5, rest)))

        return logarithm

    def _function(self, name: str, standard: Callable, below: float, above: float) -> Callable:
        """Return one of the distribution's functions, with its values on both sides of the support."""
        density = name in ("pdf", "logpdf")

        def function(x: Any, *args: Any, **kwargs: Any) -> Tensor:
            z, scale, shapes = standardize(self.name, self.shapes, x, args, kwargs)
            low, high, valid = self._support(z, shapes)
            inside = O.logical_and(z >= low, z <= high) if density else O.logical_and(z > low, z < high)
            safe = O.where(O.logical_and(inside, valid), z, _middle(low, high))
            value = rescale(name, standard(safe, *shapes), scale)
            outside = O.where(z <= low, below, O.where(z >= high, above, math.nan))
            return O.where(valid, O.where(inside, value, outside), math.nan) + 0 * scale

        function.__name__ = name
        function.__doc__ = f"`scipy.stats.{self.name}.{name}` of (x, {', '.join([*self.shapes, 'loc=0', 'scale=1'])})."
        return on_tensors(f"scipy.stats.{self.name}")(function)

    def _support(self, z: Tensor, shapes: list[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Return the ends of the support, constants, and whether the shapes are valid."""
        distribution = scipy_member(f"scipy.stats.{self.name}")
        fixed = [O.detach(s) for s in shapes]
        low, high = (O.zeros_like(z) + end for end in distribution._get_support(*fixed))
        return low, high, tensor(distribution._argcheck(*fixed)).bool()


def _middle(low: Tensor, high: Tensor) -> Tensor:
    """Return a point inside of the support."""
    open_low, open_high = O.isinf(low), O.isinf(high)
    first, last = O.where(open_low, 0.0, low), O.where(open_high, 0.0, high)
    one_sided = O.where(open_high, first + 1.0, last - 1.0)
    return O.where(O.logical_or(open_low, open_high), O.where(O.logical_and(open_low, open_high), 0.0, one_sided),
                   (first + last) / 2)  # fmt: skip


DISTRIBUTIONS = {
    **{name: Formulas(name, shapes, tails=True) for name, shapes in SHAPES.items()},
    **{name: Formulas(name, shapes, tails=False) for name, shapes in DENSITY_SHAPES.items()},
}
