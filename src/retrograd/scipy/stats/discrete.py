"""Discrete distributions of `scipy.stats` whose parameters may be tensors."""

import math
from collections.abc import Callable
from typing import Any

from retrograd.core import Tensor
from retrograd.interop.numpy_protocol.table import O, as_floating, promote_operands
from retrograd.scipy._mirror import on_tensors
from retrograd.scipy.stats._continuous import Mirror


class Discrete(Mirror):
    """The functions of one distribution of integers.

    `logpmf` is the logarithm of the probability of k from `low` on, `cdf` and `sf` the probabilities up to k and above;
    `high` returns the largest k for parameters, None without one.
    """

    def __init__(
        self, name: str, shapes: str, *, logpmf: Callable, cdf: Callable, sf: Callable, low: int = 0,
        high: Callable | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self.shapes = shapes.split()
        self._low = low
        self._high = high
        self.logpmf = self._function("logpmf", logpmf, -math.inf, -math.inf)
        self.pmf = self._function("pmf", lambda *args: O.exp(logpmf(*args)), 0.0, 0.0)
        self.cdf = self._function("cdf", cdf, 0.0, 1.0)
        self.sf = self._function("sf", sf, 1.0, 0.0)
        self.logcdf = self._function("logcdf", lambda *args: O.log(cdf(*args)), -math.inf, 0.0)
        self.logsf = self._function("logsf", lambda *args: O.log(sf(*args)), 0.0, -math.inf)

    def _function(self, name: str, standard: Callable, below: float, above: float) -> Callable:
        """Return one of the functions, with its values on both sides of the support."""
        whole = name in ("pmf", "logpmf")

        def function(k: Any, *args: Any, **kwargs: Any) -> Tensor:
            k, given = self._read(k, args, kwargs)
            known = k if whole else O.floor(k)
            inside, high = known >= self._low, None if self._high is None else self._high(*given)
            if high is not None:
                inside = O.logical_and(inside, known <= high if whole else known < high)
            safe = O.where(inside, known, float(self._low))
            if high is not None and not whole:
                safe = O.where(high > self._low, safe, O.zeros_like(safe) + self._low)
            found = O.where(inside, standard(safe, *given), O.where(known < self._low, below, above))
            found = O.where(k == O.floor(k), found, below) if whole else found
            return O.where(O.isnan(k), math.nan, found)

        function.__name__ = name
        function.__doc__ = f"`scipy.stats.{self.name}.{name}` of (k, {', '.join(self.shapes)}, loc=0)."
        return on_tensors(f"scipy.stats.{self.name}")(function)

    def _read(self, k: Any, args: tuple, kwargs: dict) -> tuple[Tensor, list[Tensor]]:
        """Return k - loc and the parameters as floating tensors."""
        names = [*self.shapes, "loc"]
        given = {"loc": 0.0, **dict(zip(names, args, strict=False)), **kwargs}
        if len(args) > len(names) or given.keys() != set(names):
            raise TypeError(f"stats.{self.name}: expected k, {', '.join(names)}; got {', '.join(['k', *given])}")
        k, loc, *shapes = promote_operands(
            *[as_floating(x) for x in (k, given["loc"], *[given[n] for n in self.shapes])]
        )
        return k - loc, shapes


def _log_choices(n: Any, k: Any) -> Any:
    return O.special.gammaln(n + 1) - O.special.gammaln(k + 1) - O.special.gammaln(n - k + 1)


binom = Discrete(
    "binom", "n p",
    logpmf=lambda k, n, p: _log_choices(n, k) + O.special.xlogy(k, p) + O.special.xlog1py(n - k, -p),
    cdf=lambda k, n, p: O.special.betainc(n - k, k + 1, 1 - p),
    sf=lambda k, n, p: O.special.betainc(k + 1, n - k, p),
    high=lambda n, p: n,
)  # fmt: skip
bernoulli = Discrete(
    "bernoulli", "p",
    logpmf=lambda k, p: O.special.xlogy(k, p) + O.special.xlog1py(1 - k, -p),
    cdf=lambda k, p: 1 - p + 0 * k, sf=lambda k, p: p + 0 * k, high=lambda p: O.ones_like(p),
)  # fmt: skip
geom = Discrete(
    "geom", "p",
    logpmf=lambda k, p: O.special.xlog1py(k - 1, -p) + O.log(p),
    cdf=lambda k, p: -O.expm1(O.log1p(-p) * k), sf=lambda k, p: O.exp(k * O.log1p(-p)), low=1,
)  # fmt: skip
nbinom = Discrete(
    "nbinom", "n p",
    logpmf=lambda k, n, p: (
        O.special.gammaln(n + k) - O.special.gammaln(k + 1) - O.special.gammaln(n) + n * O.log(p)
        + O.special.xlog1py(k, -p)
    ),
    cdf=lambda k, n, p: O.special.betainc(n, k + 1, p), sf=lambda k, n, p: O.special.betainc(k + 1, n, 1 - p),
)  # fmt: skip
