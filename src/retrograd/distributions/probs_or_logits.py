"""The base of distributions whose parameter is given as probabilities or as logits."""

from typing import Any

from retrograd.core import Tensor
from retrograd.distributions.distribution import Distribution
from retrograd.distributions.utils import at_least_float, broadcast_all, lazy_property, logits_to_probs, probs_to_logits

__all__ = ["ProbsOrLogits"]


class ProbsOrLogits(Distribution):
    """The base of distributions with either `probs` or `logits`; the other is computed on first use.

    Binary distributions have log-odds as their logits.  Others have vectors along the last dimension, which are
    normalized: the exponentials of logits sum to 1.
    """

    _is_binary = True

    def _set_probs_or_logits(self, probs: Any, logits: Any, *others: Any) -> list[Tensor]:
        """Set the given parameter, broadcast with others, and return these; ValueError unless one is given."""
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        name, given = ("logits", logits) if probs is None else ("probs", probs)
        if not self._is_binary:
            value = at_least_float(given)
            if value.ndim < 1:
                raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
            sums = value.logsumexp(-1, keepdim=True) if probs is None else value.sum(-1, keepdim=True)
            setattr(self, name, value - sums if probs is None else value / sums)
            return list(others)
        value, *rest = broadcast_all(given, *others)
        setattr(self, name, at_least_float(value))
        return rest

    @property
    def _param(self) -> Tensor:
        """The parameter that was given."""
        return vars(self)["probs" if "probs" in vars(self) else "logits"]

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of `probs` and `logits`."""
        return self._param.shape

    @lazy_property
    def logits(self) -> Tensor:
        """The log-odds of a binary distribution, else the logarithms of the probabilities."""
        return probs_to_logits(self.probs, self._is_binary)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits, self._is_binary)
