"""Dropout: random zeros in training, drawn from the default generator; the identity in evaluation."""

from retrograd.core import Tensor
from retrograd.nn import functional as F
from retrograd.nn.constructor_fields import field
from retrograd.nn.settings import Settings, check_probability, layer


def _check_p(name: str, value: float) -> None:
    check_probability("dropout probability", value)


@layer
class _DropoutNd(Settings):
    """Base of dropout layers: a probability, and whether to run in place."""

    _repr_template = "p={p}, inplace={inplace}"
    p: float = field(default=0.5, check=_check_p)
    inplace: bool = False

    def _compute(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, input: Tensor) -> Tensor:
        """Return a tensor of the input's shape."""
        return input.copy_(self._compute(input)) if self.inplace and self.training else self._compute(input)


class Dropout(_DropoutNd):
    """In training, each element becomes zero with probability p, otherwise x / (1 - p).

    Accepts tensors of any shape, and nested tensors. Srivastava et al., JMLR 15 (2014).

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Dropout(0.5).eval()(rg.ones(2))
    tensor([1., 1.])
    """

    def _compute(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.p, self.training)


class Dropout1d(_DropoutNd):
    """`Dropout` of whole channels of x (n, channels, l) or (channels, l).

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Dropout1d().eval()(rg.ones(1, 1, 2))
    tensor([[[1., 1.]]])
    """

    def _compute(self, x: Tensor) -> Tensor:
        return F.dropout1d(x, self.p, self.training)


class Dropout2d(_DropoutNd):
    """`Dropout` of whole channels of images (n, channels, h, w): Tompson et al., arXiv 1411.4280.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Dropout2d(1.0)(rg.ones(1, 1, 1, 2))
    tensor([[[[0., 0.]]]])
    """

    def _compute(self, x: Tensor) -> Tensor:
        return F.dropout2d(x, self.p, self.training)


class Dropout3d(_DropoutNd):
    """`Dropout` of whole channels of x (n, channels, d, h, w) or (channels, d, h, w).

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Dropout3d()(rg.ones(1, 1, 2, 2, 2)).unique().numel()
    1
    """

    def _compute(self, x: Tensor) -> Tensor:
        return F.dropout3d(x, self.p, self.training)


class AlphaDropout(_DropoutNd):
    """In training, each element gets the saturation value of `SELU` with probability p; keeps mean 0, variance 1.

    Klambauer et al., arXiv 1706.02515.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.AlphaDropout().eval()(rg.ones(2))
    tensor([1., 1.])
    """

    def _compute(self, x: Tensor) -> Tensor:
        return F.alpha_dropout(x, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """`AlphaDropout` of whole channels of x (n, channels, ...).

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.FeatureAlphaDropout()(rg.ones(1, 1, 2, 2)).unique().numel()
    1
    """

    def _compute(self, x: Tensor) -> Tensor:
        return F.feature_alpha_dropout(x, self.p, self.training)
