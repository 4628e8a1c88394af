"""x-transformers: decoders in many variants, an encoder, a pair of both, and greedy sampling with cached keys."""

import torch
from einops import einsum, rearrange, reduce, repeat
from einops.layers.torch import EinMix, Rearrange, Reduce
from seeded import array, fill, integers, trained
from x_transformers import (
    AutoregressiveWrapper,
    ContinuousTransformerWrapper,
    Decoder,
    Encoder,
    TransformerWrapper,
    ViTransformerWrapper,
    XTransformer,
)

VARIANTS = {
    "plain": {},
    "rotary": {"rotary_pos_emb": True},
    "xpos": {"rotary_xpos": True},
    "alibi": {"alibi_pos_bias": True, "alibi_num_heads": 1},
    "T5 bias": {"rel_pos_bias": True},
    "RMS norm": {"use_rmsnorm": True},
    "scale norm": {"use_scalenorm": True},
    "gated": {"ff_glu": True, "ff_swish": True, "ff_no_bias": True},
    "squared ReLU": {"ff_relu_squared": True},
    "top k": {"attn_sparse_topk": 3},
    "flash": {"attn_flash": True},
    "one key": {"attn_one_kv_head": True},
    "normed keys": {"attn_qk_norm": True, "attn_qk_norm_dim_scale": True},
    "macaron": {"macaron": True},
    "residual attention": {"residual_attn": True},
    "gated residual": {"gate_residual": True},
    "shifted": {"shift_tokens": 1},
    "memory": {"attn_num_mem_kv": 2},
    "on attention": {"attn_on_attn": True},
    "local": {"attn_max_attend_past": 4},
    "softclamp": {"attn_softclamp_logits": True},
    "post norm": {"pre_norm": False},
    "CoPE": {"attn_use_cope": True},
    "forgetting": {"attn_data_dependent_alibi": True},
    "value residual": {"add_value_residual": True},
}
WRAPPERS = {
    "memory tokens": {"num_memory_tokens": 2},
    "tied": {"tie_embedding": True},
    "sinusoidal": {"scaled_sinu_pos_emb": True},
    "softmaxes": {"mixture_of_softmax": True},
}
LAYERS = {"dim": 16, "depth": 2, "heads": 2, "attn_dim_head": 8}


def language_model(wrapper=None, **settings):
    """Return a small decoder with seeded parameters."""
    layers = Decoder(**LAYERS, **settings)
    return fill(TransformerWrapper(num_tokens=20, max_seq_len=16, attn_layers=layers, **(wrapper or {})))


def einops_results():
    """Return results and gradients of einops' functions and layers."""
    x = array(2, 3, 4, 6).requires_grad_()
    results = {
        "rearrange": rearrange(x, "b c h w -> b (h w) c"),
        "max": reduce(x, "b c (h 2) (w 3) -> b c h w", "max"),
        "mean": reduce(x, "b c h w -> b c", "mean"),
        "product": reduce(x, "b c h w -> c", "prod"),
        "repeat": repeat(x, "b c h w -> b (c k) h w", k=2),
        "einsum": einsum(x, array(6, 5), "b c h w, w k -> b c h k"),
    }
    found = {f"einops {name}": y.detach().numpy() for name, y in results.items()}
    for name, y in results.items():
        found[f"einops gradient of {name}"] = torch.autograd.grad(y.sin().sum(), x)[0].numpy()
    mixed = EinMix("b c h w -> b h w k", weight_shape="c k", bias_shape="k", c=6, k=4)
    layers = Reduce("b c (h 2) (w 2) -> b c h w", "max"), mixed, Rearrange("b h w c -> b (h w c)")
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 6, 3), *layers, torch.nn.Linear(36, 2))
    return {**found, **trained("einops layers", fill(model), array(2, 3, 8, 8))}


def answers():
    """Return logits, gradients, trained parameters and sampled tokens."""
    found, tokens = einops_results(), integers(20, 2, 12)
    for name, settings in VARIANTS.items():
        found.update(trained(name, language_model(**settings), tokens))
    for name, wrapper in WRAPPERS.items():
        found.update(trained(name, language_model(wrapper), tokens))
    sampler = AutoregressiveWrapper(language_model(rotary_pos_emb=True))
    found.update(trained("next tokens", sampler, tokens, loss=lambda loss: loss, steps=3))
    sampler.eval()
    for cached in (True, False):
        sampled = sampler.generate(tokens[:, :3], 8, temperature=0.0, cache_kv=cached)
        found[f"sampled, cached {cached}"] = sampled.numpy()
    encoder = ContinuousTransformerWrapper(dim_in=5, dim_out=6, max_seq_len=12, attn_layers=Encoder(**LAYERS))
    found.update(trained("encoder", fill(encoder), array(2, 10, 5)))
    images = ViTransformerWrapper(image_size=8, patch_size=4, num_classes=5, attn_layers=Encoder(**LAYERS))
    found.update(trained("images", fill(images), array(2, 3, 8, 8)))
    sides = {f"{side}_{key}": value for side in ("enc", "dec") for key, value in SIDE.items()}
    pair = fill(XTransformer(dim=16, tie_token_emb=True, **sides))
    found.update(trained("pair", pair, tokens, integers(20, 2, 9, seed=4), loss=lambda loss: loss))
    return found


SIDE = {"num_tokens": 20, "depth": 1, "heads": 2, "max_seq_len": 12}
