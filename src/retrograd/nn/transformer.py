"""Transformer: encoder, decoder, and their combination."""

import math
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from retrograd.core import Tensor
from retrograd.core.errors import OperandValueError
from retrograd.core.state import current, is_recording
from retrograd.foundation.suggestions import suggest_keywords
from retrograd.nn import functional as F
from retrograd.nn import init
from retrograd.nn.attention import MultiheadAttention
from retrograd.nn.containers import ModuleList
from retrograd.nn.dropout import Dropout
from retrograd.nn.linear import Linear
from retrograd.nn.module import Module
from retrograd.nn.normalization import LayerNorm
from retrograd.ops.create import full

_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {"relu": F.relu, "gelu": F.gelu}


def _activation_function(activation: str | Callable[[Any], Any]) -> Callable[[Any], Any]:
    if isinstance(activation, str) and activation not in _ACTIVATIONS:
        raise OperandValueError(f"activation must be 'relu', 'gelu' or a function, got {activation!r}")
    return _ACTIVATIONS[activation] if isinstance(activation, str) else activation


def _attend_to(
    attention: MultiheadAttention, x: Any, source: Any, mask: Any, padding: Any, is_causal: bool, cache: Any
) -> Any:
    """Return the attention of the queries x to the source."""
    out, _ = attention(
        x,
        source,
        source,
        key_padding_mask=padding,
        need_weights=False,
        attn_mask=mask,
        is_causal=is_causal,
        cache=cache,
    )
    return out


def _given(cache: Any) -> tuple:
    """Return the cache as an argument, if there is one: parts that subclasses override, as in PyTorch, take none."""
    return () if cache is None else (cache,)


def _copy_layers(name: str, layer: Module, count: int) -> ModuleList:
    if count < 1:
        raise ValueError(f"{name}: num_layers must be at least 1, got {count}")
    return ModuleList([deepcopy(layer) for _ in range(count)])


def _has_fast_path(layer: Any) -> bool:
    """Return whether PyTorch has an implementation of an encoder layer for evaluation without gradients."""
    return (
        isinstance(layer, TransformerEncoderLayer)
        and layer.self_attn.batch_first
        and layer.self_attn.in_proj_bias is not None
        and layer.self_attn.num_heads % 2 == 0
        and layer.activation in _ACTIVATIONS.values()
        and layer.norm1.eps == layer.norm2.eps
        and not layer.norm_first
    )


class TransformerEncoderLayer(Module):
    """Self-attention and a feed-forward network, each with a residual and a norm.

    Vaswani et al., NeurIPS 2017. Input and output have shape (L, N, d_model), or (N, L, d_model) if `batch_first`.
    `activation` is "relu", "gelu" or any function. The norms come after the sums, or before each part if `norm_first`.
    `rotary`, such as `nn.RotaryEmbedding(d_model // nhead)`, rotates the queries and keys of self-attention by their
    positions; PyTorch lacks this argument.

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
        device: Any = None,
        dtype: Any = None,
        rotary: Module | None = None,
    ) -> None:
        super().__init__()
        factory_kwargs = {"device": device, "dtype": dtype}
        self.activation = _activation_function(activation)
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, rotary=rotary, **factory_kwargs
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias, **factory_kwargs)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **factory_kwargs)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, **factory_kwargs)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, **factory_kwargs)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)

    def forward(
        self,
        src: Any,
        src_mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool = False,
        cache: Any = None,
    ) -> Tensor:
        """Return a tensor of the input's shape; masks and `cache` are those of `MultiheadAttention`."""
        how = (src_mask, src_key_padding_mask, is_causal, *_given(cache))
        if self.norm_first:
            x = src + self._sa_block(self.norm1(src), *how)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(src + self._sa_block(src, *how))
        return self.norm2(x + self._ff_block(x))

    # PyTorch's names of the parts, which subclasses override.

    def _sa_block(
        self, x: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False, cache: Any = None
    ) -> Any:
        return self.dropout1(_attend_to(self.self_attn, x, x, attn_mask, key_padding_mask, is_causal, cache))

    def _ff_block(self, x: Any) -> Any:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """Run `num_layers` copies of a layer in sequence, then a norm if one is given.

    All copies start with the weights of `encoder_layer`. With `enable_nested_tensor`, evaluation without gradients sets
    the padded positions at the ends of rows to 0 before the last norm, under PyTorch's conditions: `batch_first`,
    biases, relu or gelu, an even number of heads, no `norm_first`, and no mask but `src_key_padding_mask`. `mask_check`
    has no effect: padding elsewhere is always found.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), num_layers=2)
    >>> encoder(rg.randn(5, 3, 8)).shape
    (5, 3, 8)
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _copy_layers("TransformerEncoder", encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = enable_nested_tensor and _has_fast_path(encoder_layer)
        self.mask_check = mask_check

    def forward(
        self,
        src: Any,
        mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: bool | None = None,
        cache: Any = None,
    ) -> Tensor:
        """Return a tensor of the input's shape; every layer gets the masks, and the `KVCache`, if there is one."""
        how = {} if cache is None else {"cache": cache}
        x = src
        for layer in self.layers:
            x = layer(x, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=bool(is_causal), **how)
        if mask is None and cache is None and self._clears_padding(src, src_key_padding_mask):
            x = x.masked_fill((src_key_padding_mask != 0).unsqueeze(-1), 0)
        return x if self.norm is None else self.norm(x)

    def _clears_padding(self, src: Any, padding: Any) -> bool:
        """Return whether PyTorch evaluates the layers without the padded positions, which are 0 then."""
        if padding is None or src.ndim != 3 or src.is_nested or not self.use_nested_tensor or self.layers[0].training:
            return False
        recorded = is_recording() and any(x.requires_grad for x in (src, *self.layers[0].parameters()))
        if recorded or current().level is not None:
            return False
        padded = padding != 0
        return not (padded[:, :-1] & ~padded[:, 1:]).any().item()


class TransformerDecoderLayer(Module):
    """Self-attention, attention to a memory, and a feed-forward network, each with a residual and a norm.

    Vaswani et al., NeurIPS 2017. Settings are those of `TransformerEncoderLayer`.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> layer = nn.TransformerDecoderLayer(8, 2, dim_feedforward=16, batch_first=True)
    >>> layer(rg.randn(3, 4, 8), rg.randn(3, 5, 8), tgt_is_causal=True).shape
    (3, 4, 8)
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
        device: Any = None,
        dtype: Any = None,
        rotary: Module | None = None,
    ) -> None:
        super().__init__()
        factory_kwargs = {"device": device, "dtype": dtype}
        self.activation = _activation_function(activation)
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, rotary=rotary, **factory_kwargs
        )
        self.multihead_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, **factory_kwargs
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias, **factory_kwargs)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **factory_kwargs)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, **factory_kwargs)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, **factory_kwargs)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias, **factory_kwargs)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
        cache: Any = None,
    ) -> Tensor:
        """Return a tensor of the shape of `tgt`; masks and `cache` are those of `MultiheadAttention`."""
        if cache is not None and memory_is_causal:
            raise ValueError("TransformerDecoderLayer: a memory that is causal can't be used with a cache")
        self_how = (tgt_mask, tgt_key_padding_mask, tgt_is_causal, *_given(cache))
        memory_cache = None if cache is None else cache.memory
        memory_how = (memory, memory_mask, memory_key_padding_mask, memory_is_causal, *_given(memory_cache))
        if self.norm_first:
            x = tgt + self._sa_block(self.norm1(tgt), *self_how)
            x = x + self._mha_block(self.norm2(x), *memory_how)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(tgt + self._sa_block(tgt, *self_how))
        x = self.norm2(x + self._mha_block(x, *memory_how))
        return self.norm3(x + self._ff_block(x))

    def _sa_block(
        self, x: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False, cache: Any = None
    ) -> Any:
        return self.dropout1(_attend_to(self.self_attn, x, x, attn_mask, key_padding_mask, is_causal, cache))

    def _mha_block(
        self, x: Any, mem: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool = False, cache: Any = None
    ) -> Any:
        return self.dropout2(_attend_to(self.multihead_attn, x, mem, attn_mask, key_padding_mask, is_causal, cache))

    def _ff_block(self, x: Any) -> Any:
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerDecoder(Module):
    """Run `num_layers` copies of a decoder's layer in sequence, then a norm if one is given.

    All copies start with the weights of `decoder_layer`.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> layer = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    >>> decoder = nn.TransformerDecoder(layer, num_layers=2).eval()
    >>> memory, x, cache = rg.randn(1, 6, 8), rg.randn(1, 4, 8), nn.KVCache()
    >>> steps = [decoder(x[:, i : i + 1], memory, tgt_is_causal=True, cache=cache) for i in range(4)]
    >>> bool((rg.cat(steps, 1) - decoder(x, memory, tgt_is_causal=True)).abs().amax() < 1e-5)
    True
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _copy_layers("TransformerDecoder", decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
        cache: Any = None,
    ) -> Tensor:
        """Return a tensor of the shape of `tgt`; every layer gets the memory, the masks and any `KVCache`."""
        how = {} if cache is None else {"cache": cache}
        x = tgt
        for layer in self.layers:
            x = layer(
                x,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=bool(tgt_is_causal),
                memory_is_causal=memory_is_causal,
                **how,
            )
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """An encoder of the source, and a decoder of the target that attends to it: Vaswani et al., NeurIPS 2017.

    Maps source (S, N, d_model) and target (T, N, d_model), with N first if `batch_first`, to the target's shape. Every
    weight matrix starts in Glorot's uniform distribution. `custom_encoder` and `custom_decoder` replace these.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> model = nn.Transformer(8, 2, 1, 1, dim_feedforward=16)
    >>> mask = nn.Transformer.generate_square_subsequent_mask(4)
    >>> model(rg.randn(5, 3, 8), rg.randn(4, 3, 8), tgt_mask=mask).shape
    (4, 3, 8)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Any], Any] = "relu",
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        size = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)

        self.encoder: Any = custom_encoder
        if custom_encoder is None:
            layer = TransformerEncoderLayer(*size, device, dtype)
            self.encoder = TransformerEncoder(layer, num_encoder_layers, norm())
        self.decoder: Any = custom_decoder
        if custom_decoder is None:
            self.decoder = TransformerDecoder(TransformerDecoderLayer(*size, device, dtype), num_decoder_layers, norm())
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Any,
        tgt: Any,
        src_mask: Any = None,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return a tensor of the target's shape; masks are those of `MultiheadAttention`."""
        self._check(src, tgt)
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    def _check(self, src: Any, tgt: Any) -> None:
        if src.ndim != tgt.ndim or src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError(
                f"Transformer: source and target must have d_model={self.d_model} features and as many dimensions as "
                f"each other, got shapes {src.shape} and {tgt.shape}"
            )
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError(f"Transformer: batches of source and target differ: shapes {src.shape} and {tgt.shape}")

    @staticmethod
    @suggest_keywords
    def generate_square_subsequent_mask(sz: int, dtype: Any = None) -> Any:
        """Return a mask (sz, sz) for causal attention, added to scores: 0 up to the diagonal, -inf above it.

        >>> from retrograd import nn
        >>> nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[0., -inf],
                [0., 0.]])
        """
        return full((sz, sz), -math.inf, dtype=dtype).triu(1)
