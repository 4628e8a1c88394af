"""Positional encodings: rotary, sinusoidal and learned."""

import math
from typing import Any

from retrograd.core import Tensor, operator_named
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.nn import functional as F
from retrograd.nn import init
from retrograd.nn.module import Module
from retrograd.nn.parameter import Parameter
from retrograd.ops.create import arange, empty
from retrograd.ops.layout import array_device, making_on

_cat = operator_named("cat")
_ones_like = operator_named("ones_like")
_stack = operator_named("stack")


def apply_rotary(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False) -> Any:
    """Rotate pairs of features of x (..., size) by angles given as cosines and sines (..., size / 2), which broadcast.

    A pair is features i and i + size / 2, or with `interleaved` 2 i and 2 i + 1.

    >>> import retrograd as rg
    >>> from retrograd.nn.positional_encoding import apply_rotary
    >>> apply_rotary(rg.tensor([1.0, 0.0]), rg.tensor([0.0]), rg.tensor([1.0]))
    tensor([0., 1.])
    """
    if x.shape[-1] % 2 or cos.shape[-1] * 2 != x.shape[-1]:
        raise ValueError(f"apply_rotary: {x.shape[-1]} features need {x.shape[-1] / 2:g} angles, got {cos.shape[-1]}")
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1) if interleaved else x.chunk(2, -1)
    rotated = a * cos - b * sin, b * cos + a * sin
    return _stack(rotated, -1).flatten(-2) if interleaved else _cat(rotated, -1)


class RotaryEmbedding(Module):
    """Queries and keys rotated by angles that grow with their positions: Su et al., RoFormer, arXiv 2104.09864.

    In x (..., positions, dim), feature pair i at position p rotates by p · base ^ (-2 i / dim), so that products of
    queries and keys depend on their distance. `offset` is the position of the first, such as `len(cache)`; or give
    `positions`, integers that broadcast against (..., positions). `interleaved`: see `apply_rotary`.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> rotary = nn.RotaryEmbedding(8)
    >>> q = k = rg.randn(2, 4, 6, 8)  # batch, heads, positions, size
    >>> near = (rotary(q) @ rotary(k).mT)[..., 3, 1]
    >>> far = (rotary(q, offset=100) @ rotary(k, offset=100).mT)[..., 3, 1]
    >>> bool((near - far).abs().amax() < 1e-3)
    True
    """

    inv_freq: Any

    def __init__(self, dim: int, base: float = 10000.0, interleaved: bool = False, dtype: Any = None) -> None:
        super().__init__()
        if dim < 2 or dim % 2:
            raise ValueError(f"RotaryEmbedding: dim must be even, at least 2, got {dim}")
        self.dim = dim
        self.base = base
        self.interleaved = interleaved
        self.register_buffer("inv_freq", frequencies(dim, base, dtype), persistent=False)

    def forward(self, x: Any, positions: Any = None, offset: int = 0) -> Tensor:
        """Map (..., positions, dim) to the same shape."""
        if x.shape[-1] != self.dim:
            raise ValueError(f"RotaryEmbedding: expected {self.dim} features, got shape {x.shape}")
        if positions is None:
            positions = _positions(x, offset)
        angles = positions.unsqueeze(-1) * self.inv_freq
        return apply_rotary(x, angles.cos(), angles.sin(), self.interleaved)

    def extra_repr(self) -> str:
        """Return the settings."""
        return f"{self.dim}, base={self.base}, interleaved={self.interleaved}"


def frequencies(dim: int, base: float, dtype: Any = None) -> Any:
    """Return base ^ (-2 i / dim) for i from 0 to dim / 2 - 1.

    >>> frequencies(4, 100.0)
    tensor([1.0000, 0.1000])
    """
    return (arange(0, dim, 2, dtype="float64") * (-math.log(base) / dim)).exp().to(empty(0, dtype=dtype).dtype)


def _positions(x: Any, offset: int) -> Any:
    """Return the positions of x (..., positions, features); of a nested x, each row's position in its component."""
    if x.is_nested:
        return _ones_like(x.detach().select(-1, 0), dtype="int64").cumsum(-1) + (offset - 1)
    with making_on(array_device(x)):
        return arange(offset, offset + x.shape[-2])


class LearnedPositions(Module):
    """x + weight[position]: a learned row for each of up to `max_positions` positions, from N(0, 0.02²).

    x has shape (..., positions, dim), or is nested (batch, j, dim). PyTorch lacks this layer; it loads the `weight` of
    an `nn.Embedding` that is applied to arange(positions).

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.LearnedPositions(10, 4)(rg.zeros(2, 3, 4)).shape
    (2, 3, 4)
    """

    def __init__(self, max_positions: int, dim: int, dtype: Any = None) -> None:
        super().__init__()
        self.max_positions = max_positions
        self.weight = Parameter(empty(max_positions, dim, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialize the rows."""
        init.normal_(self.weight, std=0.02)

    def forward(self, x: Any, offset: int = 0) -> Tensor:
        """Return a tensor of the shape of x; `offset` is the position of the first, such as `len(cache)`."""
        if not x.is_nested and offset + x.shape[-2] > self.max_positions:
            raise ValueError(
                f"LearnedPositions: there are {self.max_positions} positions, got {x.shape[-2]} from {offset} on"
            )
        return x + F.embedding(_positions(x, offset), self.weight)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"{self.max_positions}, {self.weight.shape[1]}"


class SinusoidalPositions(Module):
    """x + sines and cosines of the position, alternating, with periods from 2 π to 2 π base: Vaswani et al., 2017.

    x has shape (..., positions, dim), or is nested (batch, j, dim). No parameters.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.SinusoidalPositions(4)(rg.zeros(2, 4))[0]
    tensor([0., 1., 0., 1.])
    """

    inv_freq: Any

    def __init__(self, dim: int, base: float = 10000.0, dtype: Any = None) -> None:
        super().__init__()
        if dim < 2 or dim % 2:
            raise ValueError(f"SinusoidalPositions: dim must be even, at least 2, got {dim}")
        self.dim = dim
        self.register_buffer("inv_freq", frequencies(dim, base, dtype), persistent=False)

    def forward(self, x: Any, offset: int = 0) -> Tensor:
        """Return a tensor of the shape of x; `offset` is the position of the first, such as `len(cache)`."""
        angles = _positions(x, offset).unsqueeze(-1) * self.inv_freq
        return x + _stack([angles.sin(), angles.cos()], -1).flatten(-2)

    def extra_repr(self) -> str:
        """Return the size."""
        return f"{self.dim}"


suggest_in_module(globals())
