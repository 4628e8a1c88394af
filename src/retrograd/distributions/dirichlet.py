"""The Dirichlet distribution."""

from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.exp_family import ExponentialFamily
from retrograd.nn.functional import one_hot
from retrograd.ops.distributions import sample_dirichlet
from retrograd.ops.gamma import digamma, lgamma
from retrograd.ops.masked import where
from retrograd.ops.special import xlogy

__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution of vectors with sum 1; the last dimension of `concentration` is that of the vectors.

    Draws have gradients by the concentration: implicit reparameterization, see `retrograd.standard_gamma`.

    >>> import retrograd as rg
    >>> from retrograd.distributions import Dirichlet
    >>> Dirichlet(rg.tensor([1.0, 3.0])).mean
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self) -> Tensor:
        at_corner = (self.concentration < 1).all(-1, keepdim=True)
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / where(at_corner, 1.0, above.sum(-1, keepdim=True))
        corner = one_hot(self.concentration.argmax(-1), self.concentration.shape[-1])
        return where(at_corner, corner.to(mode.dtype), mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, keepdim=True)
        return self.concentration * (total - self.concentration) / (total.square() * (total + 1))

    def rsample(self, sample_shape: tuple[int, ...] = ()) -> Tensor:
        return sample_dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        shape = self.concentration
        return xlogy(shape - 1, value).sum(-1) + lgamma(shape.sum(-1)) - lgamma(shape).sum(-1)

    def entropy(self) -> Tensor:
        shape, k = self.concentration, self.concentration.shape[-1]
        total = shape.sum(-1)
        return (
            lgamma(shape).sum(-1)
            - lgamma(total)
            - (k - total) * digamma(total)
            - ((shape - 1.0) * digamma(shape)).sum(-1)
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return lgamma(x).sum(-1) - lgamma(x.sum(-1))
