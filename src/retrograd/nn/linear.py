"""Linear layers, and those that only pass on or reshape."""

import math
from typing import Any

from retrograd.core import Tensor
from retrograd.nn import functional as F
from retrograd.nn import init
from retrograd.nn.module import Module
from retrograd.nn.parameter import Parameter
from retrograd.ops.create import empty


class Identity(Module):
    """Returns its input; whatever arguments it is made with are ignored.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Identity(54)(rg.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """The input itself."""
        return input


class Linear(Module):
    """x Wᵀ + b: `weight` of shape (out_features, in_features), `bias` of shape (out_features).

    Maps (..., in_features) to (..., out_features). Both start uniform within ±1 / sqrt(in_features).

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> layer = nn.Linear(4, 3)
    >>> layer(rg.ones(2, 5, 4)).shape
    (2, 5, 3)
    >>> layer
    Linear(in_features=4, out_features=3, bias=True)
    """

    bias: Any

    def __init__(self, in_features: int, out_features: int, bias: bool = True, dtype: Any = None) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(empty(out_features, in_features, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_features, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial values anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features else 0.0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """(..., in_features) to (..., out_features)."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Sizes, and whether there is a bias."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Flatten(Module):
    """Makes one dimension of the dimensions from `start_dim` to `end_dim`, both included.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Flatten()(rg.ones(2, 3, 4)).shape
    (2, 12)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """(N, a, b, ...) to (N, a·b·...) as the defaults are."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The first and last dimension."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"
