"""Brownian paths that can be asked for any time, in any order, and again."""

import math
from typing import Any

from retrograd.core import Tensor, at
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.interop.numpy_protocol.table import O
from retrograd.ops.generator import Generator

CACHED = 20_000  # values of inner points that a path keeps


class BrownianPath:
    """A path W of Brownian motion from t0 to t1, with W(t0) = 0: each call returns the same value for the same time.

    The path is a tree of bridges: the value in the middle of an interval is normal around the mean of its ends, and the
    seed and the interval determine it.  So no order of calls changes it.  Below `tolerance`, by default 2⁻²⁴ of
    t1 - t0, the path is linear.

    shape, dtype: of W(t).  Elements are independent.  A path is a constant: no gradient reaches the time.

    Raises ValueError for times outside of the interval.

    P. Kidger et al., Neural SDEs as infinite-dimensional GANs, ICML (2021); J. G. Gaines and T. J. Lyons, Variable step
    size control in the numerical solution of stochastic differential equations, SIAM J. Appl. Math. 57 (1997).

    >>> import retrograd as rg
    >>> path = rg.ode.BrownianPath(0.0, 1.0, (2,), seed=3)
    >>> first = path(0.3)
    >>> other = rg.ode.BrownianPath(0.0, 1.0, (2,), seed=3)
    >>> bool((path(0.7) == other(0.7)).all()), bool((path(0.3) == first).all())
    (True, True)
    """

    def __init__(
        self, t0: float, t1: float, shape: tuple[int, ...] = (), *, seed: int = 0, dtype: Any = "float64",
        tolerance: float | None = None,
    ) -> None:  # fmt: skip
        t0, t1 = float(t0), float(t1)
        if not t0 < t1:
            raise ValueError(f"ode.BrownianPath: t1 must be above t0, got {t0} and {t1}")
        self.t0 = t0
        self.t1 = t1
        self.shape = tuple(shape)
        self.seed = seed
        self._dtype = dtype
        self._tolerance = (t1 - t0) * 2.0**-24 if tolerance is None else tolerance
        self._known: dict[int, Tensor] = {}
        self._end = self._normal(0) * math.sqrt(t1 - t0)

    def __call__(self, t: Any) -> Tensor:
        """Return W(t), a tensor of the path's shape."""
        t = float(t)
        margin = 1e-12 * (self.t1 - self.t0)
        if not self.t0 - margin <= t <= self.t1 + margin:
            raise ValueError(f"ode.BrownianPath: the time {t} is outside of the path, {self.t0} to {self.t1}")
        with at(None, False):
            return self._value(t)

    def increment(self, s: Any, t: Any) -> Tensor:
        """Return W(t) - W(s)."""
        found: Tensor = self(t) - self(s)
        return found

    def _value(self, t: float) -> Tensor:
        low, high = self.t0, self.t1
        first, last, node = O.zeros(self.shape, dtype=self._dtype), self._end, 1
        while t not in (low, high) and high - low > self._tolerance:
            middle = (low + high) / 2
            value = self._middle(node, first, last, high - low)
            if t < middle:
                high, last, node = middle, value, 2 * node
            else:
                low, first, node = middle, value, 2 * node + 1
        if t == low:
            return first
        part = min(max((t - low) / (high - low), 0.0), 1.0)
        found: Tensor = first + (last - first) * part
        return found

    def _middle(self, node: int, first: Tensor, last: Tensor, width: float) -> Tensor:
        """Return the value in the middle of an interval, whose number in the tree is `node`."""
        if node not in self._known:
            if len(self._known) >= CACHED:
                self._known.clear()
            self._known[node] = (first + last) / 2 + self._normal(node) * (math.sqrt(width) / 2)
        return self._known[node]

    def _normal(self, node: int) -> Tensor:
        """Return the normal numbers of an interval: a generator of its own, with a seed that mixes both numbers."""
        mixed = (self.seed * 0x9E3779B97F4A7C15 + node * 0xD1B54A32D192ED03 + 0x632BE59BD9B4E019) % 2**64
        mixed = ((mixed ^ (mixed >> 31)) * 0xBF58476D1CE4E5B9) % 2**64
        with at(None, False):
            found: Tensor = O.randn(self.shape, generator=Generator().manual_seed((mixed ^ (mixed >> 29)) % 2**63),
                                    dtype=self._dtype)  # fmt: skip
        return found


suggest_in_module(globals())
