"""Layers on nested input: results and gradients agree with a loop over the components as batches of one."""

import warnings

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn, optim
from retrograd.nested import as_nested_tensor, nested_tensor
from retrograd.nn import functional as F
from retrograd.ops.batch_loop import PerformanceWarning

from ..case_groups import group_cases

LENGTHS = (3, 0, 5, 1)
WIDTH = 4


def rows(lengths=LENGTHS, width=WIDTH, seed=0):
    r = np.random.default_rng(seed)
    return [rg.tensor(r.uniform(-1, 1, (n, width))) for n in lengths]


def numbers(most=6, lengths=LENGTHS, seed=0):
    r = np.random.default_rng(seed)
    return [rg.tensor(r.integers(0, most, n)) for n in lengths]


def leaves(parts):
    return [p.clone().requires_grad_() for p in parts]


def batches(parts):
    """Return each component as a batch of one."""
    return [p.unsqueeze(0) for p in parts]


def close(found, expected):
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-12)


def squares(parts):
    return sum((p * p).sum() for p in parts)


def gradients(loss, leaves):
    found = rg.autograd.grad(loss, leaves, allow_unused=True)
    return [rg.zeros_like(x) if g is None else g for g, x in zip(found, leaves, strict=True)]


def assert_as_in_a_loop(module, parts, call=None):
    """Assert that a module on nested input, and its derivatives, agree with a loop over batches of one."""
    call = call or (lambda module, x: module(x))
    parameters = list(module.parameters())
    mine, alone = leaves(parts), leaves(parts)
    out = call(module, as_nested_tensor(mine))
    expected = [call(module, x).squeeze(0) for x in batches(alone)]
    assert out.is_nested
    close(out.unbind(), expected)
    close(gradients(squares(out.unbind()), [*parameters, *mine]), gradients(squares(expected), [*parameters, *alone]))


# ---------------------------------------------------------------------------------------------- one by one

ON_ROWS = {
    "Linear": lambda: nn.Linear(WIDTH, 3, dtype="float64"),
    "Linear without bias": lambda: nn.Linear(WIDTH, 3, bias=False, dtype="float64"),
    "LayerNorm": lambda: nn.LayerNorm(WIDTH, dtype="float64"),
    "LayerNorm without weights": lambda: nn.LayerNorm(WIDTH, elementwise_affine=False),
    "Dropout in use": lambda: nn.Dropout(0.5).eval(),
    "Dropout of everything": lambda: nn.Dropout(1.0),
    "Identity": nn.Identity,
    "a network": lambda: nn.Sequential(
        nn.Linear(WIDTH, 6, dtype="float64"), nn.LayerNorm(6, dtype="float64"), nn.Linear(6, 2, dtype="float64")
    ),
}


@pytest.mark.parametrize("name", ON_ROWS)
def test_layers_of_rows_give_what_they_give_each_component(name):
    rg.manual_seed(0)
    assert_as_in_a_loop(ON_ROWS[name](), rows())


ACTIVATIONS = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu by tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "softmax": lambda x: F.softmax(x, -1),
    "log_softmax": lambda x: F.log_softmax(x, -1),
    "normalize": lambda x: F.normalize(x, dim=-1),
    "rms_norm": lambda x: F.rms_norm(x, (WIDTH,), rg.arange(1.0, 5.0, dtype="float64")),
    "glu": lambda x: F.glu(x, -1),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "softplus": F.softplus,
    "hardtanh": lambda x: F.hardtanh(x, -0.5, 0.5),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_functions_of_rows_give_what_they_give_each_component(name):
    assert_as_in_a_loop(nn.Identity(), rows(), lambda _, x: ACTIVATIONS[name](x))


def test_a_layer_may_normalize_two_dimensions_after_the_ragged_one():
    layer = nn.LayerNorm((2, 2), dtype="float64")
    assert_as_in_a_loop(layer, rows(), lambda layer, x: layer(x.unflatten(-1, (2, 2))).flatten(2))


def test_an_embedding_finds_the_row_of_each_number():
    table = nn.Embedding(6, 3, padding_idx=2, dtype="float64")
    parts = numbers()
    out = table(nested_tensor(parts))
    expected = [table(p) for p in parts]
    close(out.unbind(), expected)
    close(gradients(squares(out.unbind()), [table.weight]), gradients(squares(expected), [table.weight]))


def test_an_embedding_divides_gradients_by_how_often_a_row_is_named_in_all_components():
    weight = rg.ones(6, 3, dtype="float64").requires_grad_()
    parts = numbers()
    out = F.embedding(nested_tensor(parts), weight, scale_grad_by_freq=True).values().sum()
    out.backward()
    named = sorted(set(rg.cat(parts).tolist()))
    assert weight.grad.sum(1).nonzero().flatten().tolist() == named
    assert weight.grad[named].eq(1).all()


@pytest.mark.filterwarnings("ignore::retrograd.ops.batch_loop.PerformanceWarning")
def test_an_embedding_refuses_numbers_that_name_no_row():
    with pytest.raises(IndexError, match="index 5 is out of bounds for a dimension with size 2"):
        nn.Embedding(2, 3)(nested_tensor([[0, 1], [5]]))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_components_are_bags_of_rows(mode):
    weight = rg.tensor(np.random.default_rng(0).uniform(-1, 1, (6, 3))).requires_grad_()
    parts = numbers()
    out = F.embedding_bag(nested_tensor(parts), weight, mode=mode)
    several = [F.embedding_bag(p.unsqueeze(0), weight, mode=mode)[0] for p in parts if len(p)]
    nothing = rg.zeros(3, dtype="float64")
    expected = [several.pop(0) if len(p) else nothing for p in parts]
    close(out.unbind(), expected)
    close(gradients(squares(out.unbind()), [weight]), gradients(squares(expected), [weight]))


def test_rows_in_bags_may_have_factors():
    weight, parts, factors = rg.eye(3, dtype="float64"), numbers(3), rows(width=1)
    factors = [f.flatten() for f in factors]
    out = F.embedding_bag(nested_tensor(parts), weight, mode="sum", per_sample_weights=nested_tensor(factors))
    expected = [
        sum((f * weight[i] for i, f in zip(p.tolist(), f, strict=True)), rg.zeros(3))
        for p, f in zip(parts, factors, strict=True)
    ]
    close(out.unbind(), expected)


def test_dropout_gives_each_element_its_own_chance():
    rg.manual_seed(0)
    x = nested_tensor([rg.ones(n, 50) for n in (40, 0, 90)])
    out = nn.Dropout(0.25)(x)
    assert [p.shape for p in out.unbind()] == [(40, 50), (0, 50), (90, 50)]
    kept = out.values() != 0
    assert abs(kept.to("float64").mean().item() - 0.75) < 0.02
    assert out.values()[kept].eq(1 / 0.75).all()


def test_layers_without_a_ragged_rule_are_mapped_over_the_components():
    parts = [p.transpose(0, 1) for p in rows((3, 5, 4))]
    weight = rg.tensor(np.random.default_rng(1).uniform(-1, 1, (2, WIDTH, 3)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PerformanceWarning)
        out = F.conv1d(nested_tensor(parts), weight, padding=1)
        pooled = F.max_pool1d(nested_tensor(parts), 2)
    close(out.unbind(), [F.conv1d(p.unsqueeze(0), weight, padding=1)[0] for p in parts])
    close(pooled.unbind(), [F.max_pool1d(p.unsqueeze(0), 2)[0] for p in parts])


# ------------------------------------------------------------------------------------------------ attention


def attention(heads=2, **options):
    rg.manual_seed(0)
    return nn.MultiheadAttention(WIDTH, heads, batch_first=True, dtype="float64", **options)


def weightless(layer, x, **options):
    return layer(x, x, x, need_weights=False, **options)[0]


def test_attention_looks_within_each_component():
    assert_as_in_a_loop(attention(), rows(), weightless)


def test_attention_without_biases():
    assert_as_in_a_loop(attention(bias=False), rows(), weightless)


def test_attention_may_look_back_only():
    assert_as_in_a_loop(attention(), rows(), lambda layer, x: weightless(layer, x, is_causal=True))


def test_attention_that_looks_back_only_is_that_with_the_mask_of_later_positions():
    layer, x = attention(), rg.stack(rows((3, 3)))
    ahead = rg.ones(3, 3, dtype="bool").triu(1)
    close([weightless(layer, x, is_causal=True)], [weightless(layer, x, attn_mask=ahead)])
    found, expected = layer(x, x, x, is_causal=True), layer(x, x, x, attn_mask=ahead)
    close(found, expected)
    padding = rg.tensor([[False, False, True], [False] * 3])
    both = weightless(layer, x, is_causal=True, key_padding_mask=padding)
    close([both], [weightless(layer, x, attn_mask=ahead, key_padding_mask=padding)])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.filterwarnings("ignore::retrograd.ops.batch_loop.PerformanceWarning")
def test_attention_returns_its_weights(causal):
    layer, parts = attention(), rows((3, 5, 1))
    out, weights = layer(*[nested_tensor(parts)] * 3, is_causal=causal)
    expected = [layer(x, x, x, is_causal=causal) for x in batches(parts)]
    close(out.unbind(), [o[0] for o, _ in expected])
    close(weights.unbind(), [w[0] for _, w in expected])


@pytest.mark.filterwarnings("ignore::retrograd.ops.batch_loop.PerformanceWarning")
def test_attention_returns_the_weights_of_each_head():
    layer, parts = attention(), rows((3, 5, 1))
    _, weights = layer(*[nested_tensor(parts)] * 3, average_attn_weights=False)
    close(weights.unbind(), [layer(x, x, x, average_attn_weights=False)[1][0] for x in batches(parts)])


@pytest.mark.parametrize("sizes", [{}, {"kdim": 3, "vdim": 5}])
def test_attention_across_components_of_other_lengths(sizes):
    layer = attention(**sizes)
    others = rows((2, 4, 1, 6), sizes.get("kdim", WIDTH), 1), rows((2, 4, 1, 6), sizes.get("vdim", WIDTH), 2)
    mine, alone = leaves(rows()), leaves(rows())
    out, _ = layer(as_nested_tensor(mine), *map(nested_tensor, others), need_weights=False)
    expected = [layer(*one, need_weights=False)[0][0] for one in zip(*map(batches, (alone, *others)), strict=True)]
    close(out.unbind(), expected)
    weights = list(layer.parameters())
    close(gradients(squares(out.unbind()), [*weights, *mine]), gradients(squares(expected), [*weights, *alone]))


@pytest.mark.filterwarnings("ignore::retrograd.ops.batch_loop.PerformanceWarning")
def test_attention_has_a_mask_for_each_component():
    layer, parts = attention(), rows((3, 5, 1))
    masks = [rg.ones(n, n, dtype="bool").triu(1) for n in (3, 5, 1)]
    out = weightless(layer, nested_tensor(parts), attn_mask=nested_tensor(masks).unsqueeze(1))
    close(out.unbind(), [weightless(layer, x, attn_mask=m)[0] for x, m in zip(batches(parts), masks, strict=True)])


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_an_encoder_layer_treats_each_component_by_itself(norm_first, activation):
    rg.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        WIDTH, 2, 8, 0.0, activation, batch_first=True, norm_first=norm_first, dtype="float64"
    )
    assert_as_in_a_loop(layer, rows())


def test_an_encoder_treats_each_component_by_itself():
    rg.manual_seed(0)
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 8, 0.0, batch_first=True, dtype="float64")
    encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(WIDTH, dtype="float64"))
    assert_as_in_a_loop(encoder, rows())
    assert_as_in_a_loop(encoder, rows(), lambda encoder, x: encoder(x, is_causal=True))


def test_an_encoder_of_nested_components_is_that_of_a_padded_batch_with_a_mask():
    rg.manual_seed(0)
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 8, 0.0, batch_first=True, dtype="float64")
    x = nested_tensor(rows((3, 5, 1)))
    padding = rg.tensor([[i >= n for i in range(5)] for n in (3, 5, 1)])
    out = layer(x.to_padded_tensor(0.0), src_key_padding_mask=padding)
    close(layer(x).unbind(), [o[:n] for o, n in zip(out, (3, 5, 1), strict=True)])


def test_components_without_a_batch_first_are_refused():
    layer = nn.MultiheadAttention(WIDTH, 2, dtype="float64")
    with pytest.raises(RuntimeError, match="nested tensors need batch_first=True"):
        layer(*[nested_tensor(rows())] * 3)


# --------------------------------------------------------------------------------------------------- losses

PAIRS = {
    "mse_loss": F.mse_loss,
    "l1_loss": F.l1_loss,
    "smooth_l1_loss": F.smooth_l1_loss,
    "huber_loss": F.huber_loss,
    "binary_cross_entropy_with_logits": lambda x, y, **how: F.binary_cross_entropy_with_logits(x, y.sigmoid(), **how),
    "binary_cross_entropy": lambda x, y, **how: F.binary_cross_entropy(x.sigmoid(), y.sigmoid(), **how),
    "kl_div": lambda x, y, **how: F.kl_div(F.log_softmax(x, -1), F.softmax(y, -1), **how),
    "poisson_nll_loss": F.poisson_nll_loss,
}
ENDS = {"mean": lambda parts: rg.cat(parts).mean(), "sum": lambda parts: rg.cat(parts).sum(), "none": None}


def assert_loss(loss, mine, alone, targets, reduction):
    """Assert that a loss of nested tensors is that of the elements of all components."""
    out = loss(as_nested_tensor(mine), nested_tensor(targets), reduction=reduction)
    each = [loss(x.unsqueeze(0), y.unsqueeze(0), reduction="none")[0] for x, y in zip(alone, targets, strict=True)]
    if reduction == "none":
        close(out.unbind(), each)
        out, expected = squares(out.unbind()), squares(each)
    else:
        expected = ENDS[reduction]([e.flatten() for e in each])
        close([out], [expected])
    close(gradients(out, mine), gradients(expected, alone))


@group_cases
@pytest.mark.parametrize("reduction", ENDS)
@pytest.mark.parametrize("name", PAIRS)
def test_losses_are_of_the_elements_of_all_components(name, reduction):
    assert_loss(PAIRS[name], leaves(rows()), leaves(rows()), rows(seed=1), reduction)


CLASSES = {
    "cross_entropy": F.cross_entropy,
    "cross_entropy, smoothed": lambda x, y, **how: F.cross_entropy(x, y, label_smoothing=0.1, **how),
    "cross_entropy, one class ignored": lambda x, y, **how: F.cross_entropy(x, y, ignore_index=WIDTH, **how),
    "nll_loss": lambda x, y, **how: F.nll_loss(F.log_softmax(x, 1), y, **how),
}


@pytest.mark.parametrize("reduction", ["sum", "none"])
@pytest.mark.parametrize("name", CLASSES)
def test_losses_of_classes_are_of_the_rows_of_all_components(name, reduction):
    def loss(x, y, **how):
        return CLASSES[name](x.transpose(1, 2), y, **how)  # the classes are dimension 1

    most = WIDTH + 1 if "ignored" in name else WIDTH
    assert_loss(loss, leaves(rows()), leaves(rows()), numbers(most), reduction)


def test_the_mean_of_a_loss_of_classes_weighs_the_rows_of_all_components():
    mine, alone, targets = leaves(rows()), leaves(rows()), numbers(WIDTH + 1)
    weight = rg.tensor([1.0, 2.0, 0.5, 3.0], dtype="float64")
    out = F.cross_entropy(as_nested_tensor(mine).transpose(1, 2), nested_tensor(targets), weight, ignore_index=WIDTH)
    expected = F.cross_entropy(rg.cat(alone), rg.cat(targets), weight, ignore_index=WIDTH)
    close([out], [expected])
    close(gradients(out, mine), gradients(expected, alone))


def test_losses_of_probabilities_of_classes():
    x, y = rows(), [F.softmax(p, -1) for p in rows(seed=1)]
    out = F.cross_entropy(nested_tensor(x).transpose(1, 2), nested_tensor(y).transpose(1, 2), reduction="none")
    close(out.unbind(), [F.cross_entropy(a, b, reduction="none") for a, b in zip(x, y, strict=True)])


@pytest.mark.filterwarnings("ignore:mse_loss. the input has shape:UserWarning")
@pytest.mark.filterwarnings("ignore::retrograd.ops.batch_loop.PerformanceWarning")
def test_a_loss_names_the_first_component_whose_target_has_another_size():
    x, y = nested_tensor(rows((3, 2))), nested_tensor(rows((3, 4)))
    with pytest.raises(ValueError, match=r"component 1 has shapes \(2, 4\) and \(4, 4\)"):
        F.mse_loss(x, y)
    with pytest.raises(ValueError, match="do not fit"):
        F.cross_entropy(x.transpose(1, 2), nested_tensor(numbers(lengths=(3, 4))))


# -------------------------------------------------------------------------------------------------- training


def test_training_steps_on_nested_batches_are_those_of_a_loop():
    def model():
        rg.manual_seed(0)
        layer = nn.TransformerEncoderLayer(WIDTH, 2, 8, 0.0, batch_first=True, dtype="float64")
        made = nn.ModuleDict({"table": nn.Embedding(6, WIDTH, dtype="float64"), "layer": layer})
        return made, optim.SGD(made.parameters(), lr=0.05, momentum=0.9)

    def scores(model, ids):
        return model["layer"](model["table"](ids))

    parts, targets = numbers(), numbers(WIDTH, seed=1)
    (together, first), (one, second) = model(), model()
    losses = []
    for _ in range(3):
        first.zero_grad()
        found = scores(together, nested_tensor(parts))
        loss = F.cross_entropy(found.transpose(1, 2), nested_tensor(targets))
        loss.backward()
        first.step()
        losses.append(loss.item())

        second.zero_grad()
        each = [scores(one, p.unsqueeze(0))[0] for p in parts]
        F.cross_entropy(rg.cat(each), rg.cat(targets)).backward()
        second.step()
    close(together.parameters(), one.parameters())
    assert losses[2] < losses[0]


def test_a_layer_has_directional_and_second_derivatives_on_nested_input():
    rg.manual_seed(0)
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 8, 0.0, "gelu", batch_first=True, dtype="float64")
    params = {name: p.detach() for name, p in layer.named_parameters()}
    directions = {name: rg.randn_like(p) for name, p in params.items()}
    parts = rows((3, 5, 1))
    x = nested_tensor(parts)

    def loss(params, x):
        return (rg.func.functional_call(layer, params, (x,)) ** 2).sum()

    def slope(params, x):
        return rg.func.jvp(lambda params: loss(params, x), (params,), (directions,))[1]

    slopes = [slope(params, p.unsqueeze(0)) for p in parts]
    np.testing.assert_allclose(slope(params, x).item(), sum(slopes).item())
    bends = [rg.func.grad(slope)(params, p.unsqueeze(0)) for p in parts]
    for name, found in rg.func.grad(slope)(params, x).items():
        expected = sum(bend[name] for bend in bends)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("lengths", [(), (0,), (0, 0)])
def test_layers_take_batches_without_rows(lengths):
    rg.manual_seed(0)
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 8, 0.0, batch_first=True, dtype="float64")
    values = rg.zeros(0, WIDTH, dtype="float64").requires_grad_()
    offsets = rg.zeros(len(lengths) + 1, dtype="int64")
    out = layer(rg.nested.nested_tensor_from_jagged(values, offsets))
    assert len(out.unbind()) == len(lengths)
    assert out.values().shape == (0, WIDTH)
    out.values().sum().backward()
    assert layer.linear1.weight.grad.eq(0).all()
