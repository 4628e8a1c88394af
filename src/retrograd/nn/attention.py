"""Multi-head attention, and the choice of its implementation under the names of torch.nn.attention."""

from typing import Any

from retrograd.core import Tensor
from retrograd.core.errors import AssertedValueError
from retrograd.nn import functional as F
from retrograd.nn import init
from retrograd.nn.attention_backends import (
    WARN_FOR_UNFUSED_KERNELS,
    SDPBackend,
    activate_flash_attention_impl,
    current_flash_attention_impl,
    list_flash_attention_impls,
    register_flash_attention_impl,
    restore_flash_attention_impl,
    sdpa_kernel,
)
from retrograd.nn.linear import Linear
from retrograd.nn.module import Module
from retrograd.nn.settings import empty_parameter
from retrograd.ops.create import ones
from retrograd.ops.multihead_attention import (
    append_key_value,
    attend_heads,
    check_mask_shapes,
    is_batched,
    mask_per_head,
    mask_per_key,
)

__all__ = [
    "SDPBackend", "WARN_FOR_UNFUSED_KERNELS", "activate_flash_attention_impl", "current_flash_attention_impl",
    "list_flash_attention_impls", "register_flash_attention_impl", "restore_flash_attention_impl", "sdpa_kernel",
]  # fmt: skip


class MultiheadAttention(Module):
    """softmax(Q Kᵀ / sqrt(head size)) V in `num_heads` subspaces of equal size: Vaswani et al., NeurIPS 2017.

    Queries have shape (L, N, embed_dim), keys (S, N, kdim), values (S, N, vdim): L and S positions, N the batch, which
    is the first dimension with `batch_first`. Unbatched inputs omit N. Parameters are PyTorch's: `in_proj_weight` (3
    embed_dim, embed_dim), or `q_proj_weight`, `k_proj_weight` and `v_proj_weight` where kdim or vdim differs from
    embed_dim; `in_proj_bias`; `out_proj`. `dropout` acts on the attention weights. `add_bias_kv` appends a learned key
    and value, `bias_k` and `bias_v`; `add_zero_attn` appends zeros. Nested queries, keys and values (N, j, embed_dim)
    need `batch_first`; each component attends to its own. In self-attention, `rotary`, such as
    `RotaryEmbedding(embed_dim // num_heads)`, rotates queries and keys by their positions; PyTorch lacks
    this argument.

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
    bias_k: Any
    bias_v: Any

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
        rotary: Module | None = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise AssertedValueError(
                f"MultiheadAttention: embed_dim must be divisible by num_heads, both greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads}"
            )
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.add_zero_attn = add_zero_attn
        self.rotary = rotary
        self._add_weights(device, dtype)
        self.register_parameter("in_proj_bias", empty_parameter(bias, (3 * embed_dim,), device, dtype))
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
        for name in ("bias_k", "bias_v"):
            self.register_parameter(name, empty_parameter(add_bias_kv, (1, 1, embed_dim), device, dtype))
        self._reset_parameters()

    def _add_weights(self, device: Any, dtype: Any) -> None:
        self._qkv_same_embed_dim = self.kdim == self.vdim == self.embed_dim  # PyTorch's name, which libraries read
        if self._qkv_same_embed_dim:
            sizes = {"in_proj_weight": (3 * self.embed_dim, self.embed_dim)}
        else:
            widths = {"q": self.embed_dim, "k": self.kdim, "v": self.vdim}
            sizes = {f"{name}_proj_weight": (self.embed_dim, width) for name, width in widths.items()}
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            self.register_parameter(name, empty_parameter(name in sizes, sizes.get(name, ()), device, dtype))

    def _reset_parameters(self) -> None:
        """Draw the weights again, except those of `out_proj`; PyTorch's name, which libraries call."""
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

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
        cache: Any = None,
    ) -> tuple[Tensor, Any]:
        """Return the output, shaped as the query, and the attention weights, or None if they are not needed.

        `key_padding_mask` (N, S) and `attn_mask` (L, S), (N · num_heads, L, S) or (N, 1, L, S) are True where attention
        is forbidden, or floats added to the scores. Queries without an allowed key get 0. The weights are (N, L, S),
        the mean over the heads, or (N, num_heads, L, S). With `is_causal`, query i attends to keys 0 to i; a given
        `attn_mask` is assumed to be that mask. With a `KVCache`, keys and values are appended to the cached ones, the
        queries are the last positions, and masks cover all keys.
        """
        plain_mask = None if attn_mask is None or attn_mask.ndim == 4 else attn_mask
        batched = is_batched("MultiheadAttention", query, key, value, key_padding_mask, plain_mask)
        self._check(query, key, value)
        causal = is_causal and attn_mask is None
        q, k, v = self._project(query, key, value, cache)
        if not q.is_nested:
            check_mask_shapes("MultiheadAttention", attn_mask, key_padding_mask, q, k)
        masks: tuple[Any, ...] = (
            mask_per_head(attn_mask, self.num_heads),
            mask_per_key(key_padding_mask, batched),
        )
        projected_keys = k
        k, v, masks = self._append_extra_keys(k, v, masks)
        if causal and (cache is not None or k is not projected_keys):
            masks, causal = (*masks, _causal_mask(q, projected_keys, k, cache is not None)), False
        dropout = self.dropout if self.training else 0.0
        out, weights = attend_heads(q, k, v, masks, causal, dropout, need_weights)
        out = self._from_batch_first(self.out_proj(out.transpose(1, 2).flatten(2)), batched)
        if weights is None:
            return out, None
        weights = weights.mean(1) if average_attn_weights else weights
        return out, weights if batched else weights.squeeze(0)

    def _append_extra_keys(self, k: Any, v: Any, masks: tuple[Any, ...]) -> tuple[Any, Any, tuple[Any, ...]]:
        """Append the learned key and value and the zeros, which no mask forbids."""
        pairs = []
        if self.bias_k is not None:
            pairs.append((self._split_heads(self.bias_k), self._split_heads(self.bias_v)))
        if self.add_zero_attn:
            pairs.append((k.new_zeros(1), v.new_zeros(1)))
        for more_k, more_v in pairs:
            k, v, masks = append_key_value(k, v, masks, more_k, more_v)
        return k, v, masks

    def _check(self, query: Any, key: Any, value: Any) -> None:
        if not self.batch_first and any(x.is_nested for x in (query, key, value)):
            raise RuntimeError("MultiheadAttention: nested tensors need batch_first=True: their components come first")
        if self.rotary is not None and not (query is key is value and self.in_proj_weight is not None):
            raise ValueError(
                "MultiheadAttention: rotary positions are of one sequence: query, key and value must be one tensor"
            )

    def _project(self, query: Any, key: Any, value: Any, cache: Any) -> tuple[Any, ...]:
        """Return queries, keys and values as (N, num_heads, positions, head size)."""
        if query is key is value and self.in_proj_weight is not None:
            parts = F.linear(self._to_batch_first(query), self.in_proj_weight, self.in_proj_bias).chunk(3, -1)
            q, k, v = (self._split_heads(part) for part in parts)
            if self.rotary is not None:
                offset = 0 if cache is None else cache.cached_length(self)
                q, k = (self.rotary(x, offset=offset) for x in (q, k))
            return (q, k, v) if cache is None else (q, *cache.update(self, lambda: (k, v)))
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        weights = self._weights()

        def project(number: int, x: Any) -> Any:
            return self._split_heads(F.linear(self._to_batch_first(x), weights[number], biases[number]))

        def project_keys_and_values() -> tuple[Any, Any]:
            return project(1, key), project(2, value)

        return project(0, query), *(
            project_keys_and_values() if cache is None else cache.update(self, project_keys_and_values)
        )

    def _split_heads(self, x: Any) -> Any:
        return x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)

    def _weights(self) -> tuple[Any, ...]:
        if self.in_proj_weight is not None:
            return self.in_proj_weight.chunk(3)
        return self.q_proj_weight, self.k_proj_weight, self.v_proj_weight

    def _to_batch_first(self, x: Any) -> Any:
        """Convert the user's layout to (N, positions, width)."""
        if x.ndim == 2:
            return x.unsqueeze(0)
        return x if self.batch_first else x.transpose(0, 1)

    def _from_batch_first(self, x: Any, batched: bool) -> Any:
        """Convert (N, positions, width) to the user's layout."""
        if not batched:
            return x.squeeze(0)
        return x if self.batch_first else x.transpose(0, 1)


def _causal_mask(queries: Any, masked_keys: Any, keys: Any, last: bool) -> Any:
    """Return the mask of keys later than their query.

    Queries are the first positions, or the `last` ones. Keys after `masked_keys` are never masked."""
    count, positions = queries.shape[-2], masked_keys.shape[-2]
    if count == 1 and last:
        return None
    future = ones(count, positions, dtype="bool", device=queries.device).triu((positions - count if last else 0) + 1)
    return F.pad(future, (0, keys.shape[-2] - positions), value=False)
