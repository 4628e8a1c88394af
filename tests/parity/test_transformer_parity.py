"""Attention and transformers compared with PyTorch: outputs, gradients, parameter names."""

import numpy as np
import pytest
import torch

import retrograd as rg
from retrograd import nn

RANDOM = np.random.default_rng(0)
SMALL = {"dim_feedforward": 6, "dropout": 0.0}


def numbers(*shape):
    return RANDOM.uniform(-1, 1, shape)


def pair(make):
    mine, peer = make(nn).double(), make(torch.nn).double()
    assert [(k, tuple(v.shape)) for k, v in mine.state_dict().items()] == [
        (k, tuple(v.shape)) for k, v in peer.state_dict().items()
    ]
    mine.load_state_dict({k: v.numpy() for k, v in peer.state_dict().items()})
    return mine, peer


def compare(make, arrays, given=None):
    """Run both on the same inputs; `given` are masks and settings."""
    mine, peer = pair(make)
    given = given or {}
    xs = [rg.tensor(a, requires_grad=True) for a in arrays]
    ys = [torch.tensor(a, requires_grad=True) for a in arrays]
    as_ours = {k: rg.tensor(v) if isinstance(v, np.ndarray) else v for k, v in given.items()}
    as_theirs = {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in given.items()}
    outs, wanted = mine(*xs, **as_ours), peer(*ys, **as_theirs)
    outs, wanted = (value if isinstance(value, tuple) else (value,) for value in (outs, wanted))
    for out, expected in zip(outs, wanted, strict=True):
        np.testing.assert_allclose(out.tolist(), expected.tolist(), rtol=1e-6, atol=1e-8)
    g = numbers(*outs[0].shape)
    (outs[0] * rg.tensor(g)).sum().backward()
    (wanted[0] * torch.tensor(g)).sum().backward()
    for x, y in zip(xs, ys, strict=True):
        np.testing.assert_allclose(x.grad.tolist(), y.grad.tolist(), rtol=1e-6, atol=1e-8)
    for name, parameter in peer.named_parameters():
        found = mine.get_parameter(name).grad.tolist()
        np.testing.assert_allclose(found, parameter.grad.tolist(), rtol=1e-6, atol=1e-8, err_msg=name)


PADDING = np.array([[False] * 5, [False, True, False, True, True]])
CAUSAL = np.triu(np.full((5, 5), -np.inf), 1)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"key_padding_mask": PADDING},
        {"attn_mask": np.triu(np.ones((5, 5), bool), 1), "key_padding_mask": PADDING},
        {"attn_mask": numbers(4, 5, 5)},
        {"attn_mask": CAUSAL, "is_causal": True},
    ],
)
@pytest.mark.parametrize(
    "settings", [{"add_bias_kv": True}, {"add_zero_attn": True, "kdim": 3, "vdim": 2}, {"bias": False}]
)
def test_attention_agrees(settings, given, average):
    make = lambda m: m.MultiheadAttention(4, 2, batch_first=True, **settings)  # noqa: E731
    arrays = [numbers(2, 5, 4), numbers(2, 5, settings.get("kdim", 4)), numbers(2, 5, settings.get("vdim", 4))]
    compare(make, arrays, {**given, "average_attn_weights": average})


@pytest.mark.parametrize(
    "settings",
    [{}, {"norm_first": True, "activation": "gelu"}, {"batch_first": True, "bias": False, "layer_norm_eps": 0.1}],
)
@pytest.mark.parametrize("given", [{}, {"tgt_mask": CAUSAL[:4, :4], "memory_key_padding_mask": PADDING}])
def test_a_decoder_agrees(settings, given):
    arrays = [numbers(4, 2, 8), numbers(5, 2, 8)]
    if settings.get("batch_first"):
        arrays = [a.swapaxes(0, 1) for a in arrays]
    compare(lambda m: m.TransformerDecoderLayer(8, 2, **SMALL, **settings), arrays, given)

    def stack(m):
        layer = m.TransformerDecoderLayer(8, 2, **SMALL, **settings)
        return m.TransformerDecoder(layer, 2, m.LayerNorm(8))

    compare(stack, arrays, given)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("settings", [{}, {"norm_first": True, "batch_first": True}])
def test_a_transformer_agrees(settings):
    arrays = [numbers(5, 2, 8), numbers(4, 2, 8)]
    if settings.get("batch_first"):
        arrays = [a.swapaxes(0, 1) for a in arrays]
    given = {"tgt_mask": CAUSAL[:4, :4], "src_key_padding_mask": PADDING, "memory_key_padding_mask": PADDING}
    compare(lambda m: m.Transformer(8, 2, 2, 1, **SMALL, **settings), arrays, given)
    assert nn.Transformer.generate_square_subsequent_mask(5).tolist() == CAUSAL.tolist()


def test_a_transformer_starts_in_glorots_distribution():
    for name, parameter in nn.Transformer(32, 2, 1, 1, 16).named_parameters():
        if parameter.ndim > 1:
            bound = (6 / sum(parameter.shape)) ** 0.5
            assert 0.9 * bound < float(parameter.detach().abs().amax()) <= bound, name
