"""The geometric distribution."""

from typing import Any

from retrograd.autograd import no_grad
from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.distributions.probs_or_logits import ProbsOrLogits
from retrograd.distributions.utils import broadcast_all
from retrograd.nn.functional import binary_cross_entropy_with_logits
from retrograd.ops.random import rand
from retrograd.ops.special import xlog1py

__all__ = ["Geometric"]


class Geometric(ProbsOrLogits):
    """The number of failures before the first success, in trials with probability `probs`.

    >>> from retrograd.distributions import Geometric
    >>> Geometric(0.25).mean
    tensor(3.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._set_probs_or_logits(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if "probs" in vars(self) and not constraints.all_valid(self.probs > 0):
            raise ValueError(
                f"Expected parameter probs (Tensor of shape {tuple(self.probs.shape)}) of distribution {self!r} to be "
                f"positive but found invalid values:\n{self.probs}"
            )

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return self.probs * 0

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: tuple[int, ...] = ()) -> Tensor:
        with no_grad():
            uniform = rand(self._extended_shape(sample_shape), dtype=self.probs.dtype)
            return ((-uniform).log1p() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        value, probs = broadcast_all(value, self.probs)
        return xlog1py(value, -probs) + probs.log()

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
