"""The base of distributions of vectors that belong to the indices of a categorical distribution."""

from typing import Any

from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.categorical import Categorical
from retrograd.distributions.distribution import Distribution

__all__ = ["CategoricalVectors"]


class CategoricalVectors(Distribution):
    """The base of distributions of vectors with an element for each index of `Categorical`, which holds `probs`."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits, validate_args)
        super().__init__(self._categorical.batch_shape, self.param_shape[-1:], validate_args=False)
        self._validate_args = self._categorical._validate_args

    def expand(self, batch_shape: tuple[int, ...], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        return new

    @property
    def probs(self) -> Tensor:
        """The probabilities of the indices."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of `probs` and `logits`."""
        return self._categorical.param_shape
