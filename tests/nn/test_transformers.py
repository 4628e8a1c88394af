"""Attention and transformers: caches, positions, nested input; formulas are compared in tests/parity."""

import pytest

import retrograd as rg
from retrograd import nested, nn


def same(a, b):
    assert a.shape == b.shape
    assert float((a - b).detach().abs().amax()) < 1e-5


def decoder(**settings):
    return nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 12, batch_first=True, **settings), 2).eval()


def grow(run, x, cuts):
    """Run the pieces of x one after another with one cache, and join the outputs."""
    cache = nn.KVCache()
    outs = [run(piece, cache) for piece in x.split(cuts, 1)]
    assert len(cache) == x.shape[1]
    return rg.cat(outs, 1)


@pytest.mark.parametrize("cuts", [[1] * 6, [3, 1, 2], [6]])
@pytest.mark.parametrize("settings", [{}, {"norm_first": True}])
def test_steps_with_a_cache_equal_the_pass_over_all_positions(cuts, settings):
    model, x, memory = decoder(**settings), rg.randn(3, 6, 8), rg.randn(3, 4, 8)
    full = model(x, memory, tgt_is_causal=True)
    same(grow(lambda piece, cache: model(piece, memory, tgt_is_causal=True, cache=cache), x, cuts), full)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 12, batch_first=True), 2).eval()
    same(grow(lambda piece, cache: encoder(piece, is_causal=True, cache=cache), x, cuts), encoder(x, is_causal=True))


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("settings", [{}, {"add_bias_kv": True, "add_zero_attn": True}, {"kdim": 3, "vdim": 5}])
def test_the_function_of_attention_is_the_layer(settings, need_weights):
    layer, mask = nn.MultiheadAttention(8, 2, **settings), rg.ones(4, 6, dtype=rg.bool).triu(2)
    query, key, value = rg.randn(4, 3, 8), rg.randn(6, 3, layer.kdim), rg.randn(6, 3, layer.vdim)
    weights = {f"{name}_proj_weight": getattr(layer, f"{name}_proj_weight", None) for name in "qkv"}
    found = nn.functional.multi_head_attention_forward(
        query, key, value, 8, 2, layer.in_proj_weight, layer.in_proj_bias, layer.bias_k, layer.bias_v,
        layer.add_zero_attn, 0.0, layer.out_proj.weight, layer.out_proj.bias, attn_mask=mask,
        need_weights=need_weights, use_separate_proj_weight="kdim" in settings, **weights,
    )  # fmt: skip
    expected = layer(query, key, value, attn_mask=mask, need_weights=need_weights)
    same(found[0], expected[0])
    assert (found[1] is None) == (expected[1] is None) == (not need_weights)
    if need_weights:
        same(found[1], expected[1])


@pytest.mark.parametrize("settings", [{"add_bias_kv": True}, {"add_zero_attn": True}])
def test_additional_keys_come_after_those_of_the_cache(settings):
    attention, x = nn.MultiheadAttention(8, 2, batch_first=True, **settings), rg.randn(2, 5, 8)
    full, _ = attention(x, x, x, is_causal=True)
    mask, _ = attention(x, x, x, attn_mask=rg.ones(5, 5, dtype=rg.bool).triu(1))
    same(full, mask)
    same(grow(lambda p, cache: attention(p, p, p, is_causal=True, cache=cache)[0], x, [2, 1, 2]), full)


def test_gradients_flow_through_a_cache():
    attention, x = nn.MultiheadAttention(8, 2, batch_first=True), rg.randn(2, 4, 8, requires_grad=True)
    grow(lambda p, cache: attention(p, p, p, is_causal=True, cache=cache)[0], x, [1, 3]).square().sum().backward()
    found, x.grad = x.grad, None
    attention(x, x, x, is_causal=True)[0].square().sum().backward()
    same(found, x.grad)


def test_the_keys_of_a_memory_are_computed_once():
    model, x, memory, cache = decoder(), rg.randn(1, 2, 8), rg.randn(1, 3, 8), nn.KVCache()
    first = model(x, memory, tgt_is_causal=True, cache=cache)
    cache.crop(0)
    same(model(x, memory * 100, tgt_is_causal=True, cache=cache), first)


def test_a_cache_is_cut_and_reordered():
    model, x = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True).eval(), rg.randn(2, 5, 8)
    cache = nn.KVCache()
    model(x, is_causal=True, cache=cache)
    cache.crop(3)
    cache.reorder(rg.tensor([1, 1]))
    later = model(x[1:, 3:].expand(2, 2, 8), is_causal=True, cache=cache)
    same(later[0:1], model(x[1:], is_causal=True)[:, 3:])
    with pytest.raises(ValueError, match="between 0 and 5, got 6"):
        cache.crop(6)
    with pytest.raises(ValueError, match="batch and heads"):
        model(x[:1, :1], is_causal=True, cache=cache)


@pytest.mark.parametrize("is_causal", [False, True])
def test_each_component_of_a_nested_tensor_attends_to_itself_alone(is_causal):
    parts, others = [rg.randn(n, 8) for n in (3, 1, 5)], [rg.randn(n, 8) for n in (2, 4, 1)]
    encoder, model = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True).eval(), decoder()
    x, memory = nested.as_nested_tensor(parts), nested.as_nested_tensor(others)
    for part, out in zip(parts, encoder(x, is_causal=is_causal).unbind(), strict=True):
        same(out, encoder(part.unsqueeze(0), is_causal=is_causal)[0])
    outs = model(x, memory, tgt_is_causal=is_causal).unbind()
    for part, other, out in zip(parts, others, outs, strict=True):
        same(out, model(part.unsqueeze(0), other.unsqueeze(0), tgt_is_causal=is_causal)[0])


LENGTHS = (3, 1, 5)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("dropout", [0.0, 1.0])
@pytest.mark.filterwarnings("ignore::retrograd.ops.batch_loop.PerformanceWarning")
@pytest.mark.parametrize("kind", ["causal", "padding", "both", "per head"])
def test_masks_of_padded_tensors_do_the_same_for_nested_ones(kind, dropout, need_weights):
    attention = nn.MultiheadAttention(8, 2, dropout, batch_first=True)
    x = nested.as_nested_tensor([rg.randn(n, 8) for n in LENGTHS])
    padded = x.to_padded_tensor(0.0)
    masks = {
        "causal": {"attn_mask": rg.ones(5, 5, dtype=bool).triu(1)},
        "padding": {"key_padding_mask": rg.tensor([[False, False, True, True, True]] * 3)},
        "both": {"attn_mask": rg.randn(5, 5), "key_padding_mask": rg.tensor([[0.0, 0, -1, -2, 0]] * 3)},
        "per head": {"attn_mask": rg.randn(6, 5, 5) > 0},
    }[kind]
    ends = rg.tensor([[i >= n for i in range(5)] for n in LENGTHS])
    own = masks.get("key_padding_mask", rg.zeros(3, 5, dtype=bool))
    full = {**masks, "key_padding_mask": own | ends if own.dtype == rg.bool else own.masked_fill(ends, -float("inf"))}
    out, weights = attention(x, x, x, need_weights=need_weights, **masks)
    expected, weights_expected = attention(padded, padded, padded, need_weights=need_weights, **full)
    for i, (part, n) in enumerate(zip(out.unbind(), LENGTHS, strict=True)):
        same(part, expected[i, :n])
        if need_weights:
            same(weights.unbind()[i], weights_expected[i, :n, :n])


def test_masks_of_integers_are_refused():
    attention, x = nn.MultiheadAttention(8, 2, batch_first=True), rg.randn(2, 3, 8)
    with pytest.raises(TypeError, match=r"types of attn_mask .* got int64; attn_mask.bool\(\)"):
        attention(x, x, x, attn_mask=rg.ones(3, 3, dtype=rg.int64))
    with pytest.raises(TypeError, match="types of key_padding_mask"):
        attention(x, x, x, key_padding_mask=rg.ones(2, 3, dtype=rg.int32))


@pytest.mark.parametrize("changes", [{}, {"norm_first": True}, {"batch_first": False}, {"nhead": 1}, {"bias": False}])
@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("norm", [None, nn.LayerNorm(8)])
def test_evaluation_clears_the_padding_at_the_ends_of_rows_where_pytorch_does(changes, enabled, norm):
    layer = nn.TransformerEncoderLayer(**{"d_model": 8, "nhead": 2, "batch_first": True, "dropout": 0.0, **changes})
    encoder = nn.TransformerEncoder(layer, 2, norm, enable_nested_tensor=enabled)
    padding = rg.tensor([[i >= n for i in range(5)] for n in LENGTHS])
    src = rg.randn(3, 5, 8) if layer.self_attn.batch_first else rg.randn(5, 3, 8)
    recorded = encoder(src, src_key_padding_mask=padding)
    with rg.no_grad():
        trained = encoder(src, src_key_padding_mask=padding)
        evaluated = encoder.eval()(src, src_key_padding_mask=padding)
        at_the_start = encoder(src, src_key_padding_mask=padding.flip(1))
        same(encoder(src, mask=rg.zeros(5, 5, dtype=bool), src_key_padding_mask=padding), trained)
    same(trained, recorded.detach())
    if changes or not enabled:
        same(evaluated, trained)
        return
    empty = rg.zeros(8) if norm is None else norm(rg.zeros(8)).detach()
    same(evaluated[padding], empty.expand(6, 8))
    same(evaluated[~padding], trained[~padding])
    assert (at_the_start[padding.flip(1)] != empty).all()


# -------------------------------------------------------------------------------------------------- positions


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_positions_turn_pairs_as_complex_numbers(interleaved):
    rotary, x = nn.RotaryEmbedding(6, base=100.0, interleaved=interleaved), rg.randn(2, 4, 6)
    pair = (lambda y: (y[..., 0::2], y[..., 1::2])) if interleaved else (lambda y: (y[..., :3], y[..., 3:]))
    angles = (rg.arange(4) + 7).unsqueeze(-1) * rg.tensor([1.0, 100 ** (-1 / 3), 100 ** (-2 / 3)])
    expected = rg.complex(*pair(x)) * rg.complex(angles.cos(), angles.sin())
    found = rg.complex(*pair(rotary(x, offset=7)))
    same(found, expected)
    same(rotary(x, positions=rg.arange(4) + 7), rotary(x, offset=7))
    assert rotary.state_dict() == {}


@pytest.mark.parametrize("make", [lambda: nn.LearnedPositions(9, 4), lambda: nn.SinusoidalPositions(4)])
def test_positions_are_added_in_each_component_from_zero(make):
    positions, parts = make(), [rg.randn(n, 4) for n in (3, 1)]
    whole = positions(rg.zeros(5, 4))
    same(positions(rg.zeros(2, 3, 4), offset=2)[1], whole[2:])
    for part, out in zip(parts, positions(nested.as_nested_tensor(parts)).unbind(), strict=True):
        same(out, part + whole[: len(part)])


@pytest.mark.parametrize(
    ("make", "error", "pattern"),
    [
        (lambda: nn.RotaryEmbedding(5), ValueError, "even, at least 2, got 5"),
        (lambda: nn.RotaryEmbedding(4)(rg.ones(3, 6)), ValueError, r"expected 4 features, got shape \(3, 6\)"),
        (lambda: nn.SinusoidalPositions(3), ValueError, "even"),
        (lambda: nn.LearnedPositions(3, 4)(rg.ones(4, 4)), ValueError, "there are 3 positions, got 4 from 0"),
        (lambda: nn.apply_rotary(rg.ones(3), rg.ones(1), rg.ones(1)), ValueError, "3 features need 1.5 angles"),
        (lambda: nn.TransformerDecoder(nn.Linear(1, 1), 0), ValueError, "num_layers must be at least 1, got 0"),
        (lambda: nn.TransformerDecoderLayer(4, 2, activation="no"), ValueError, "got 'no'"),
        (
            lambda: nn.Transformer(4, 2, 1, 1, 4)(rg.ones(3, 2, 4), rg.ones(3, 1, 4)),
            RuntimeError,
            "batches of source and target differ",
        ),
        (lambda: nn.Transformer(4, 2, 1, 1, 4)(rg.ones(3, 2, 4), rg.ones(3, 2, 5)), RuntimeError, "d_model=4"),
        (
            lambda: decoder()(rg.ones(1, 1, 8), rg.ones(1, 1, 8), memory_is_causal=True, cache=nn.KVCache()),
            ValueError,
            "causal can't be used with a cache",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_refused(make, error, pattern):
    with pytest.raises(error, match=pattern):
        make()


def test_rotary_positions_make_attention_know_distances_and_no_more():
    attention = nn.MultiheadAttention(
        8, 2, batch_first=True, rotary=nn.RotaryEmbedding(4, dtype="float64"), dtype="float64"
    )
    x = rg.randn(1, 6, 8, dtype="float64")
    out, weights = attention(x, x, x, average_attn_weights=False)
    q, k, _ = (
        part.unflatten(-1, (2, 4)).transpose(1, 2)
        for part in (x @ attention.in_proj_weight.mT + attention.in_proj_bias).chunk(3, -1)
    )
    q, k = (attention.rotary(part, offset=17) for part in (q, k))  # wherever the sequence begins
    expected = (q @ k.mT / 2).softmax(-1)
    assert bool((weights - expected).abs().amax() < 1e-10)
    plain = nn.MultiheadAttention(8, 2, batch_first=True, dtype="float64")
    plain.load_state_dict(attention.state_dict())
    assert bool((plain(x, x, x)[0] - out).abs().amax() > 1e-6)


def test_rotary_positions_continue_where_a_cache_ends():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, rotary=nn.RotaryEmbedding(4)).eval()
    x, cache = rg.randn(2, 6, 8), nn.KVCache()
    parts = [layer(part, is_causal=True, cache=cache) for part in x.split([3, 1, 2], 1)]
    assert bool((rg.cat(parts, 1) - layer(x, is_causal=True)).abs().amax() < 1e-5)


def test_rotary_positions_of_nested_sequences_restart_in_each():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, rotary=nn.RotaryEmbedding(4)).eval()
    one, other = rg.randn(5, 8), rg.randn(3, 8)
    found = layer(rg.nested.nested_tensor([one, other]), is_causal=True).unbind()
    for part, alone in zip(found, (one, other), strict=True):
        assert bool((part - layer(alone.unsqueeze(0), is_causal=True)[0]).abs().amax() < 1e-5)


def test_rotary_positions_of_two_sequences_are_refused():
    attention = nn.MultiheadAttention(8, 2, rotary=nn.RotaryEmbedding(4))
    with pytest.raises(ValueError, match="query, key and value must be one tensor"):
        attention(rg.randn(3, 1, 8), rg.randn(4, 1, 8), rg.randn(4, 1, 8))


@pytest.mark.parametrize(
    "make",
    [
        lambda **k: nn.MultiheadAttention(8, 2, **k),
        lambda **k: nn.Transformer(8, 2, 1, 1, 16, **k),
        lambda **k: nn.LSTM(3, 4, **k),
        lambda **k: nn.GRUCell(3, 4, **k),
    ],
)
def test_layers_take_the_device_that_there_is(make):
    assert all(p.dtype == rg.float64 for p in make(device="cpu", dtype="float64").parameters())
    with pytest.raises((RuntimeError, ValueError), match="cuda"):
        make(device="cuda")


BAD_MASKS = [  # batched, masks, words; broadcast, such a mask would forbid other keys
    (True, {"attn_mask": rg.zeros(4).bool()}, "`attn_mask` to be `None`, 2-D or 3-D but found 1-D"),
    (True, {"attn_mask": rg.zeros(3, 4).bool()}, r"2D attn_mask is \(3, 4\), but should be \(4, 4\)"),
    (True, {"attn_mask": rg.zeros(5, 4, 4).bool()}, r"3D attn_mask is \(5, 4, 4\), but should be .*\(12, 4, 4\)"),
    (True, {"key_padding_mask": rg.zeros(4).bool()}, "`key_padding_mask` to be `None` or 2-D but found 1-D"),
    (True, {"key_padding_mask": rg.zeros(1, 4).bool()}, r"`key_padding_mask` of shape \(3, 4\), got \(1, 4\)"),
    (False, {"key_padding_mask": rg.zeros(1, 4).bool()}, "`key_padding_mask` to be `None` or 1-D but found 2-D"),
    (False, {"attn_mask": rg.zeros(1, 4).bool()}, r"2D attn_mask is \(1, 4\), but should be \(4, 4\)"),
]


@pytest.mark.parametrize(("batched", "masks", "words"), BAD_MASKS)
def test_masks_of_other_shapes_are_refused(batched, masks, words):
    layer, x = nn.MultiheadAttention(8, 4), rg.randn(4, 3, 8) if batched else rg.randn(4, 8)
    weights = (layer.in_proj_weight, layer.in_proj_bias, None, None, False, 0.0, layer.out_proj.weight, None)
    with pytest.raises((RuntimeError, AssertionError), match=words):
        layer(x, x, x, **masks)
    with pytest.raises((RuntimeError, AssertionError), match=words):
        nn.functional.multi_head_attention_forward(x, x, x, 8, 4, *weights, **masks)
