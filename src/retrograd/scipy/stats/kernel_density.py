"""`scipy.stats.gaussian_kde`: estimates of densities by sums of normal densities."""

import math
from typing import Any

from retrograd.core import Tensor
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.interop.numpy_protocol.table import (
    O,
    as_floating,
    holds_tensor,
    promote_operands,
    refuse,
    tensor,
    values,
)
from retrograd.scipy._array_like import ArrayOrSequence
from retrograd.scipy._mirror import scipy_member


class GaussianKde:
    """The density that is the mean of normal densities around data points, differentiable in data, weights and points.

    dataset: the data, (dimensions, points) or a vector; bw_method: None or "scott", "silverman", a number or tensor, or
    a function of the estimate.  The covariance is that of the data times factor².
    """

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
        data = as_floating(dataset)
        self.dataset = O.reshape(data, (1, -1)) if data.ndim < 2 else data
        self.d: int = self.dataset.shape[0]
        self.n: int = self.dataset.shape[1]
        if self.n < 2:
            raise ValueError("stats.gaussian_kde: the dataset must have more than one point")
        given = O.ones((self.n,), dtype=self.dataset.dtype) if weights is None else as_floating(weights)
        if given.shape != (self.n,):
            raise ValueError(f"stats.gaussian_kde: weights must have shape ({self.n},), got {tuple(given.shape)}")
        self.dataset, given = promote_operands(self.dataset, given)
        self.weights = given / O.sum(given)
        self.neff = 1 / O.sum(self.weights * self.weights)
        self.set_bandwidth(bw_method)

    def scotts_factor(self) -> Tensor:
        """Return Scott's factor, neff^(-1 / (d + 4))."""
        found: Tensor = self.neff ** (-1.0 / (self.d + 4))
        return found

    def silverman_factor(self) -> Tensor:
        """Return Silverman's factor, (neff (d + 2) / 4)^(-1 / (d + 4))."""
        found: Tensor = (self.neff * ((self.d + 2) / 4)) ** (-1.0 / (self.d + 4))
        return found

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Set the factor, and with it the covariance of the normal densities."""
        if bw_method is None or (isinstance(bw_method, str) and bw_method == "scott"):
            factor: Any = self.scotts_factor()
        elif isinstance(bw_method, str) and bw_method == "silverman":
            factor = self.silverman_factor()
        elif callable(bw_method) and not isinstance(bw_method, Tensor):
            factor = bw_method(self)
        elif isinstance(bw_method, str):
            raise ValueError(f"stats.gaussian_kde: bw_method must be 'scott' or 'silverman', got {bw_method!r}")
        else:
            factor = bw_method
        self.factor = factor
        centered = self.dataset - self.dataset @ O.unsqueeze(self.weights, 1)
        spread = (centered * self.weights) @ centered.mT / (1 - O.sum(self.weights * self.weights))
        self.covariance = spread * factor**2
        self._cholesky = O.linalg.cholesky(self.covariance)

    def logpdf(self, x: Any) -> Tensor:
        """Return the logarithm of the density at points, (dimensions, points) or a vector."""
        points = as_floating(x)
        points = O.reshape(points, (1, -1)) if points.ndim < 2 else points
        if points.shape[0] != self.d:
            if points.shape[0] != 1 or points.shape[1] != self.d:
                raise ValueError(f"stats.gaussian_kde: points have {points.shape[0]} dimensions, the data {self.d}")
            points = points.mT
        solve = lambda y: O.linalg.solve_triangular(self._cholesky, y, upper=False)  # noqa: E731
        white, centers = solve(points.to(self.dataset.dtype)), solve(self.dataset)
        apart = O.unsqueeze(white, 2) - O.unsqueeze(centers, 1)
        energy = O.sum(apart * apart, 0) / 2
        size = O.sum(O.log(O.diagonal(self._cholesky))) + self.d * math.log(2 * math.pi) / 2
        found: Tensor = O.logsumexp(O.log(self.weights) - energy, -1) - size
        return found

    def evaluate(self, points: Any) -> Tensor:
        """Return the density at points."""
        found: Tensor = O.exp(self.logpdf(points))
        return found

    pdf = evaluate
    __call__ = evaluate

    def integrate_box_1d(self, low: Any, high: Any) -> Tensor:
        """Return the probability between two numbers, for one dimension."""
        if self.d != 1:
            raise ValueError("stats.gaussian_kde: integrate_box_1d needs data of one dimension")
        scale = self._cholesky[0, 0]
        ends = [O.special.ndtr((tensor(end) - self.dataset[0]) / scale) for end in (low, high)]
        found: Tensor = O.sum(self.weights * (ends[1] - ends[0]))
        return found

    def __getattr__(self, name: str) -> Any:
        """Return another member of SciPy's estimate for the same data, which must not require grad."""
        if name.startswith("_") or "weights" not in vars(self):
            raise AttributeError(name)
        if any(t.requires_grad for t in (self.dataset, self.weights)):
            refuse("stats.gaussian_kde", f"{name} is not available for data that require grad")
        own = scipy_member("scipy.stats").gaussian_kde(values(self.dataset), float(self.factor), values(self.weights))
        return getattr(own, name)


def gaussian_kde(dataset: ArrayOrSequence, bw_method: Any = None, weights: Any = None) -> Any:
    """Return the estimate of a density from data, a function of points.

    SciPy's own object is returned if no argument is a tensor; it takes no points that are tensors.  Pass
    `rg.tensor(dataset)` to differentiate the density at points.

    After `scipy.stats.gaussian_kde`.

    >>> import retrograd as rg
    >>> density = gaussian_kde(rg.tensor([0.0, 1.0, 3.0]))
    >>> rg.func.grad(lambda x: density(x)[0])(rg.tensor(1.0)).round(decimals=4)
    tensor(-0.0136)
    """
    if not holds_tensor((dataset, bw_method, weights)):
        return scipy_member("scipy.stats").gaussian_kde(dataset, bw_method, weights)
    return GaussianKde(dataset, bw_method, weights)


suggest_in_module(globals())
