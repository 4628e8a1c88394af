"""Activations: elementwise functions of a tensor of any shape, and softmax along one dimension."""

from retrograd.core import Tensor
from retrograd.nn import functional as F
from retrograd.nn.module import Module


class ReLU(Module):
    """max(x, 0), elementwise.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.ReLU()(rg.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.relu(input)


class LeakyReLU(Module):
    """x where x > 0, else negative_slope · x.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.LeakyReLU(0.5)(rg.tensor([-1.0, 2.0]))
    tensor([-0.5,  2. ])
    """

    def __init__(self, negative_slope: float = 0.01) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.leaky_relu(input, self.negative_slope)

    def extra_repr(self) -> str:
        """The slope."""
        return f"negative_slope={self.negative_slope}"


class GELU(Module):
    """x Φ(x), with Φ the normal distribution function; approximate="tanh" is Hendrycks and Gimpel's formula.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.GELU()(rg.tensor([0.0]))
    tensor([0.])
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        """Which formula."""
        return f"approximate={self.approximate!r}"


class SiLU(Module):
    """x sigmoid(x), elementwise.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.SiLU()(rg.tensor([0.0]))
    tensor([0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.silu(input)


class Sigmoid(Module):
    """1 / (1 + exp(-x)), elementwise.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Sigmoid()(rg.tensor([0.0]))
    tensor([0.5])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.sigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent, elementwise.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Tanh()(rg.tensor([0.0]))
    tensor([0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Elementwise."""
        return F.tanh(input)


class Softmax(Module):
    """exp(x) / sum(exp(x)) along `dim`; the shape stays.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Softmax(dim=-1)(rg.zeros(1, 2))
    tensor([[0.5, 0.5]])
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Along the dimension."""
        return F.softmax(input, dim=self.dim)

    def extra_repr(self) -> str:
        """The dimension."""
        return f"dim={self.dim}"


class LogSoftmax(Module):
    """log(softmax(x)) along `dim`, without overflow; the shape stays.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.LogSoftmax(dim=0)(rg.zeros(1))
    tensor([0.])
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Along the dimension."""
        return F.log_softmax(input, dim=self.dim)

    def extra_repr(self) -> str:
        """The dimension."""
        return f"dim={self.dim}"
