"""The categorical distribution."""

import math

from retrograd.autograd import no_grad
from retrograd.backend.type_info import finfo
from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.probs_or_logits import ProbsOrLogits
from retrograd.ops.create import arange
from retrograd.ops.distributions import multinomial
from retrograd.ops.view import broadcast_tensors

__all__ = ["Categorical"]


class Categorical(ProbsOrLogits):
    """The distribution of the indices 0 to K - 1 with relative probabilities `probs`, of shape (..., K).

    `logits` are their logarithms, up to a constant.

    >>> import retrograd as rg
    >>> from retrograd.distributions import Categorical
    >>> Categorical(rg.tensor([1.0, 1.0, 2.0])).probs
    tensor([0.2500, 0.2500, 0.5000])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _is_binary = False

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        self._set_probs_or_logits(probs, logits)
        self._num_events = self._param.shape[-1]
        super().__init__(self._param.shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return self._param.sum(-1) * math.nan

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    @property
    def variance(self) -> Tensor:
        return self.mean

    def sample(self, sample_shape: tuple[int, ...] = ()) -> Tensor:
        count = math.prod(sample_shape)
        with no_grad():
            indices = multinomial(self.probs.reshape(-1, self._num_events), count, True)
            return indices.T.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        index, logits = broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, index[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=finfo(self.logits.dtype).min)  # 0 times -inf is NaN
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(arange(self._num_events), expand)
