"""Multi-head attention."""

import math
from functools import reduce
from typing import Any

from retrograd.nn import functional as F
from retrograd.nn import init
from retrograd.nn.linear import Linear
from retrograd.nn.module import Module
from retrograd.nn.parameter import Parameter
from retrograd.ops.create import empty, zeros
from retrograd.ops.nn import attention_weights
from retrograd.ops.pointwise import logical_not, logical_or


class MultiheadAttention(Module):
    """softmax(Q Kᵀ / sqrt(head size)) V in `num_heads` subspaces of equal size: Vaswani et al., NeurIPS 2017.

    Queries have shape (L, N, embed_dim), keys (S, N, kdim), values (S, N, vdim): L and S positions, N the
    batch, which comes first if `batch_first`; without a batch there is no N. Parameters are PyTorch's:
    `in_proj_weight` (3 embed_dim, embed_dim), or `q_proj_weight`, `k_proj_weight` and `v_proj_weight` where
    kdim or vdim differs from embed_dim; `in_proj_bias`; `out_proj`. `dropout` acts on the weights.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> attention = nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = rg.randn(3, 5, 8)
    >>> out, weights = attention(x, x, x)
    >>> out.shape, weights.shape
    ((3, 5, 8), (3, 5, 5))
    """

    in_proj_weight: Any
    in_proj_bias: Any

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        *,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ValueError(
                f"MultiheadAttention: embed_dim must be a multiple of num_heads, both greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads}"
            )
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self._add_weights(dtype)
        self.register_parameter("in_proj_bias", Parameter(zeros(3 * embed_dim, dtype=dtype)) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, dtype=dtype)
        if bias:
            init.zeros_(self.out_proj.bias)

    def _add_weights(self, dtype: Any) -> None:
        if self.kdim == self.vdim == self.embed_dim:
            sizes = {"in_proj_weight": (3 * self.embed_dim, self.embed_dim)}
        else:
            widths = {"q": self.embed_dim, "k": self.kdim, "v": self.vdim}
            sizes = {f"{name}_proj_weight": (self.embed_dim, width) for name, width in widths.items()}
            self.register_parameter("in_proj_weight", None)
        for name, size in sizes.items():
            self.register_parameter(name, Parameter(empty(size, dtype=dtype)))
            init.xavier_uniform_(getattr(self, name))

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Any, Any]:
        """The attention's output, shaped as the query, and its weights, or None where they are not needed.

        `key_padding_mask` (N, S) and `attn_mask` (L, S) or (N · num_heads, L, S) are True where attention is
        forbidden, or floats that are added to the scores; queries that may look nowhere get 0. The weights
        are (N, L, S), the mean over the heads, or (N, num_heads, L, S). `is_causal` only says that `attn_mask`
        is the causal mask.
        """
        self._check(query, key, value, attn_mask, is_causal)
        batched = query.ndim == 3
        q, k, v = self._project(query, key, value)
        masks = (_per_head(attn_mask, self.num_heads), _per_key(key_padding_mask, batched))
        weights = attention_weights(q, k, _allowed(masks), _added(masks), scale=1 / math.sqrt(self.head_dim))
        weights = F.dropout(weights, self.dropout, self.training)
        out = self._leave(self.out_proj((weights @ v).transpose(1, 2).flatten(2)), batched)
        if not need_weights:
            return out, None
        weights = weights.mean(1) if average_attn_weights else weights
        return out, weights if batched else weights.squeeze(0)

    def _check(self, query: Any, key: Any, value: Any, attn_mask: Any, is_causal: bool) -> None:
        if query.ndim not in (2, 3) or not query.ndim == key.ndim == value.ndim:
            raise ValueError(
                f"MultiheadAttention: query, key and value must all have 3 dimensions, or 2 without a batch, "
                f"got shapes {query.shape}, {key.shape} and {value.shape}"
            )
        if is_causal and attn_mask is None:
            raise ValueError("MultiheadAttention: is_causal says that attn_mask is the causal mask; pass it too")

    def _project(self, query: Any, key: Any, value: Any) -> tuple[Any, ...]:
        """Queries, keys and values as (N, num_heads, positions, head size)."""
        heads = (self.num_heads, self.head_dim)
        if query is key is value and self.in_proj_weight is not None:
            together = F.linear(self._enter(query), self.in_proj_weight, self.in_proj_bias)
            return together.unflatten(-1, (3, *heads)).permute(2, 0, 3, 1, 4).unbind(0)
        weights = self._weights()
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        return tuple(
            F.linear(self._enter(x), weight, bias).unflatten(-1, heads).transpose(1, 2)
            for x, weight, bias in zip((query, key, value), weights, biases, strict=True)
        )

    def _weights(self) -> tuple[Any, ...]:
        if self.in_proj_weight is not None:
            return self.in_proj_weight.chunk(3)
        return self.q_proj_weight, self.k_proj_weight, self.v_proj_weight

    def _enter(self, x: Any) -> Any:
        """A user's layout to (N, positions, width)."""
        if x.ndim == 2:
            return x.unsqueeze(0)
        return x if self.batch_first else x.transpose(0, 1)

    def _leave(self, x: Any, batched: bool) -> Any:
        """(N, positions, width) to the user's layout."""
        if not batched:
            return x.squeeze(0)
        return x if self.batch_first else x.transpose(0, 1)


def _per_head(mask: Any, heads: int) -> Any:
    """An attention mask that broadcasts against (N, heads, L, S)."""
    return mask if mask is None or mask.ndim == 2 else mask.unflatten(0, (mask.shape[0] // heads, heads))


def _per_key(mask: Any, batched: bool) -> Any:
    """A padding mask that broadcasts against (N, heads, L, S)."""
    if mask is None:
        return None
    return (mask if batched else mask.unsqueeze(0)).unsqueeze(1).unsqueeze(1)


def _allowed(masks: tuple[Any, ...]) -> Any:
    """Where none of the boolean masks, True where attention is forbidden, forbids it; None without such masks."""
    forbidden = [mask for mask in masks if mask is not None and mask.dtype.kind == "b"]
    return logical_not(reduce(logical_or, forbidden)) if forbidden else None


def _added(masks: tuple[Any, ...]) -> Any:
    """The sum of the masks that are numbers, or None."""
    numbers = [mask for mask in masks if mask is not None and mask.dtype.kind != "b"]
    return sum(numbers[1:], numbers[0]) if numbers else None
