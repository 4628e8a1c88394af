"""The encoder of the transformer."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from retrograd.nn import functional as F
from retrograd.nn.attention import MultiheadAttention
from retrograd.nn.containers import ModuleList
from retrograd.nn.dropout import Dropout
from retrograd.nn.linear import Linear
from retrograd.nn.module import Module
from retrograd.nn.normalization import LayerNorm

_ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu}


class TransformerEncoderLayer(Module):
    """Self-attention and a feed-forward network, each with a residual and a norm.

    Vaswani et al., NeurIPS 2017. Shapes (L, N, d_model), or (N, L, d_model) if `batch_first`, go in and out.
    `activation` is "relu", "gelu" or any function. The norms come after the sums, or before each part if
    `norm_first`.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> layer = nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, batch_first=True)
    >>> layer(rg.randn(3, 5, 8)).shape
    (3, 5, 8)
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Any], Any] = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if isinstance(activation, str) and activation not in _ACTIVATIONS:
            raise ValueError(f"activation must be 'relu', 'gelu' or a function, got {activation!r}")
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, dtype=dtype)
        self.linear1 = Linear(d_model, dim_feedforward, bias, dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, dtype)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = _ACTIVATIONS[activation] if isinstance(activation, str) else activation

    def forward(self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool = False) -> Any:
        """The input's shape stays; masks are those of `MultiheadAttention`."""
        masks = (src_mask, src_key_padding_mask, is_causal)
        if self.norm_first:
            x = src + self._attend(self.norm1(src), *masks)
            return x + self._feed_forward(self.norm2(x))
        x = self.norm1(src + self._attend(src, *masks))
        return self.norm2(x + self._feed_forward(x))

    def _attend(self, x: Any, mask: Any, padding: Any, is_causal: bool) -> Any:
        out, _ = self.self_attn(
            x, x, x, key_padding_mask=padding, need_weights=False, attn_mask=mask, is_causal=is_causal
        )
        return self.dropout1(out)

    def _feed_forward(self, x: Any) -> Any:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """`num_layers` copies of a layer, one after another, and a norm at the end if one is given.

    All copies start with the weights of `encoder_layer`.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), num_layers=2)
    >>> encoder(rg.randn(5, 3, 8)).shape
    (5, 3, 8)
    """

    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        if num_layers < 1:
            raise ValueError(f"TransformerEncoder: num_layers must be at least 1, got {num_layers}")
        self.layers = ModuleList([deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, src: Any, mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool = False) -> Any:
        """The input's shape stays; every layer gets the masks."""
        x = src
        for layer in self.layers:
            x = layer(x, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=is_causal)
        return x if self.norm is None else self.norm(x)
