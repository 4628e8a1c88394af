"""Exponential families."""

from typing import cast

from retrograd.autograd import grad
from retrograd.core import Tensor
from retrograd.distributions.distribution import Distribution
from retrograd.distributions.utils import sum_rightmost

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Distributions with density h(x) exp(<t(x), θ> - F(θ)).

    A subclass gives the natural parameters θ, the log-normalizer F, and the mean of log h, the carrier measure.  The
    entropy follows from Bregman divergences: F. Nielsen and R. Nock, Entropies and cross-entropies of exponential
    families, ICIP 2010.
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError(f"{type(self).__name__}: natural parameters are not defined")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: the log-normalizer is not defined")

    @property
    def _mean_carrier_measure(self) -> Tensor | float:
        raise NotImplementedError(f"{type(self).__name__}: the carrier measure is not defined")

    def entropy(self) -> Tensor:
        natural = [p.detach().requires_grad_() for p in self._natural_params]
        log_normalizer = self._log_normalizer(*natural)
        slopes = cast(tuple[Tensor, ...], grad(log_normalizer.sum(), natural, create_graph=True))
        result = log_normalizer - self._mean_carrier_measure
        for parameter, slope in zip(natural, slopes, strict=True):
            product = parameter * slope
            result = result - sum_rightmost(product, product.ndim - len(self._batch_shape))
        return result
