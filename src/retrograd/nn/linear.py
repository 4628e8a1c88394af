"""Linear and bilinear layers, identity, and layers that reshape."""

import math
from collections.abc import Sequence
from typing import Any

from retrograd.core import Tensor
from retrograd.foundation.describe_value import describe
from retrograd.nn import functional as F
from retrograd.nn import init
from retrograd.nn.module import Module
from retrograd.nn.settings import empty_parameter


class Identity(Module):
    """Return the input; constructor arguments are ignored.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Identity(54)(rg.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """Return the input itself."""
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

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = empty_parameter(True, (out_features, in_features), device, dtype)
        self.register_parameter("bias", empty_parameter(bias, (out_features,), device, dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize the parameters."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features else 0.0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """Map (..., in_features) to (..., out_features)."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the sizes, and whether there is a bias."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """x1ᵀ W x2 + b: `weight` (out_features, in1_features, in2_features), `bias` (out_features).

    Maps (..., in1_features) and (..., in2_features) to (..., out_features). Both start uniform within
    ±1 / sqrt(in1_features).

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Bilinear(4, 3, 2)(rg.ones(5, 4), rg.ones(5, 3)).shape
    (5, 2)
    """

    bias: Any

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if in1_features < 1:
            raise ValueError(f"Bilinear: in1_features must be at least 1, got {in1_features}")
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = empty_parameter(True, (out_features, in1_features, in2_features), device, dtype)
        self.register_parameter("bias", empty_parameter(bias, (out_features,), device, dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize the parameters."""
        bound = 1 / math.sqrt(self.in1_features)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Map (..., in1_features) and (..., in2_features) to (..., out_features)."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the sizes, and whether there is a bias."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class Flatten(Module):
    """Flatten the dimensions from `start_dim` to `end_dim`, both included, into one.

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
        """Map (N, a, b, ...) to (N, a·b·...) by default."""
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """Return the first and last dimension."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Split dimension `dim` into the sizes `unflattened_size`; one size may be -1, which is inferred.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Unflatten(1, (3, -1))(rg.ones(2, 12)).shape
    (2, 3, 4)
    """

    def __init__(self, dim: int, unflattened_size: Sequence[Any]) -> None:
        sizes = () if isinstance(unflattened_size, int) else tuple(unflattened_size)
        if not sizes or not all(isinstance(size, int) for size in sizes):
            raise TypeError(f"Unflatten: unflattened_size must be integers, got {describe(unflattened_size)}")
        super().__init__()
        self.dim = dim
        self.unflattened_size = sizes

    def forward(self, input: Tensor) -> Tensor:
        """Map (..., a·b·..., ...) to (..., a, b, ..., ...)."""
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """Return the dimension and its new sizes."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
