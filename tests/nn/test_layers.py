"""Layers: behavior that the comparison with PyTorch in tests/parity does not cover."""

import math
import pickle

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn


def test_linear_is_its_formula():
    layer = nn.Linear(3, 2)
    x = rg.randn(4, 3)
    expected = np.asarray(x.tolist()) @ np.asarray(layer.weight.tolist()).T + np.asarray(layer.bias.tolist())
    np.testing.assert_allclose(layer(x).tolist(), expected, rtol=1e-5, atol=1e-6)


def test_initial_values_come_from_the_default_generator():
    rg.manual_seed(1)
    a = nn.Linear(3, 2).weight.tolist()
    rg.manual_seed(1)
    assert nn.Linear(3, 2).weight.tolist() == a
    assert nn.Linear(3, 2).weight.tolist() != a


def test_linear_starts_uniform_within_one_over_the_root_of_its_inputs():
    layer = nn.Linear(100, 200)
    for parameter in layer.parameters():
        largest = float(parameter.detach().abs().amax())
        assert 0.09 < largest <= 0.1


def test_layers_are_made_in_the_dtype_requested():
    layer = nn.TransformerEncoderLayer(4, 2, 8, dtype=rg.float64)
    assert {p.dtype for p in layer.parameters()} == {rg.float64}


def test_the_padding_row_starts_as_zeros_and_gets_no_gradient():
    table = nn.Embedding(4, 2, padding_idx=-1)
    table(rg.tensor([0, 3, 3])).sum().backward()
    assert table.padding_idx == 3
    assert table.weight[3].tolist() == [0.0, 0.0]
    assert table.weight.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]


def test_dropout_acts_in_training_only():
    dropout = nn.Dropout(0.25)
    x = rg.ones(10000)
    out = np.asarray(dropout(x).tolist())
    assert set(np.unique(out)) == {0.0, np.float32(1 / 0.75)}
    assert abs((out == 0).mean() - 0.25) < 0.03
    assert dropout.eval()(x).tolist() == x.tolist()


def test_dropout_acts_on_the_weights_of_attention_in_training_only():
    attention = nn.MultiheadAttention(4, 1, dropout=0.5, batch_first=True)
    x = rg.randn(2, 20, 4)
    weights = np.asarray(attention(x, x, x)[1].tolist())
    assert 0.3 < (weights == 0).mean() < 0.7
    weights = np.asarray(attention.eval()(x, x, x)[1].tolist())
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-5)


def test_attention_gives_the_same_with_and_without_showing_its_weights():
    attention = nn.MultiheadAttention(8, 2)
    x, mask = rg.randn(5, 3, 8), rg.randn(5, 5)
    shown, weights = attention(x, x, x, attn_mask=mask)
    quick, nothing = attention(x, x, x, attn_mask=mask, need_weights=False)
    assert nothing is None
    assert weights.shape == (3, 5, 5)
    np.testing.assert_allclose(shown.tolist(), quick.tolist(), rtol=1e-4, atol=1e-6)


def test_masked_positions_have_no_influence():
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
    x = np.random.default_rng(0).normal(size=(1, 3, 4)).astype("float32")
    y = x.copy()
    y[0, 2] += 5
    mask = rg.tensor([[False, False, True]])
    a, b = (layer(rg.tensor(v), src_key_padding_mask=mask).tolist()[0][:2] for v in (x, y))
    assert a == b


def test_an_encoder_holds_copies_that_start_equal():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2)
    first, second = (list(layer.parameters()) for layer in encoder.layers)
    assert len(list(encoder.parameters())) == 2 * len(first)
    assert all((p == q).all() for p, q in zip(first, second, strict=True))


@pytest.mark.parametrize(
    ("make", "pattern"),
    [
        (lambda: nn.Dropout(1.5), "between 0 and 1, but got 1.5"),
        (lambda: nn.Embedding(3, 2, padding_idx=3), "within 3 rows, got 3"),
        (lambda: nn.MultiheadAttention(6, 4), "embed_dim=6 and num_heads=4"),
        (
            lambda: nn.TransformerEncoderLayer(4, 2, activation="tanh"),
            "'relu', 'gelu' or a function, got 'tanh'",
        ),
        (lambda: nn.TransformerEncoder(nn.Identity(), 0), "at least 1, got 0"),
        (lambda: nn.MSELoss("max"), "mean, sum, none, got 'max'"),
        (lambda: nn.CrossEntropyLoss(label_smoothing=2), "between 0 and 1, but got 2"),
        (
            lambda: nn.MultiheadAttention(4, 2)(rg.ones(4), rg.ones(4), rg.ones(4)),
            r"received 1-D query tensor, of shape \(4,\)",
        ),
    ],
)
def test_bad_settings_are_refused_with_the_value(make, pattern):
    with pytest.raises(ValueError, match=pattern):
        make()


def test_the_weights_of_a_loss_belong_to_its_state_and_are_not_trained():
    loss = nn.CrossEntropyLoss(rg.tensor([1.0, 3.0]))
    assert list(loss.state_dict()) == ["weight"]
    assert not list(loss.parameters())
    assert not nn.CrossEntropyLoss().state_dict()


# ----------------------------------------------------------------------------------------- initial values


def test_initialisers_write_into_parameters_and_return_them():
    parameter = nn.Parameter(rg.zeros(3, 4))
    for fill in (
        nn.init.ones_,
        nn.init.normal_,
        nn.init.uniform_,
        nn.init.kaiming_normal_,
        nn.init.trunc_normal_,
    ):
        before = parameter.tolist()
        assert fill(parameter) is parameter
        assert parameter.tolist() != before
    assert nn.init.constant_(parameter, 2.5).tolist() == [[2.5] * 4] * 3
    assert nn.init.zeros_(parameter).tolist() == [[0.0] * 4] * 3


def test_a_passed_generator_leaves_the_default_one_alone():
    rg.manual_seed(0)
    state = rg.get_rng_state().tolist()
    a = nn.init.xavier_uniform_(rg.empty(2, 2), generator=rg.Generator(5))
    b = nn.init.xavier_uniform_(rg.empty(2, 2), generator=rg.Generator(5))
    assert a.tolist() == b.tolist()
    assert rg.get_rng_state().tolist() == state


def test_truncated_normal_values_are_within_their_bounds():
    values = nn.init.trunc_normal_(rg.empty(1000), 0.0, 1.0, -0.5, 1.0)
    assert bool((values >= -0.5).all())
    assert bool((values <= 1.0).all())
    with pytest.raises(ValueError, match="is between 50"):
        nn.init.trunc_normal_(rg.empty(3), a=50, b=51)


def test_gains_and_fans_of_unknown_kind_are_refused():
    assert nn.init.calculate_gain("relu") == math.sqrt(2)
    with pytest.raises(ValueError, match="nonlinearity swish"):
        nn.init.calculate_gain("swish")
    with pytest.raises(ValueError, match="fewer than 2 dimensions"):
        nn.init.xavier_normal_(rg.empty(3))
    with pytest.raises(ValueError, match="Mode fan_all"):
        nn.init.kaiming_uniform_(rg.empty(2, 2), mode="fan_all")


# ----------------------------------------------------------------------------------------------- clipping


def with_grad(*values):
    p = nn.Parameter(rg.zeros(len(values)))
    p.grad = rg.tensor(list(values))
    return p


def test_clipping_scales_all_gradients_by_one_factor_and_leaves_small_ones():
    p, q, none = with_grad(3.0, 0.0), with_grad(4.0), nn.Parameter(rg.zeros(1))
    assert float(nn.utils.clip_grad_norm_([p, q, none], 10.0)) == 5.0
    assert p.grad.tolist() == [3.0, 0.0]
    nn.utils.clip_grad_norm_(iter([p, q, none]), 0.5)
    assert p.grad.tolist() == pytest.approx([0.3, 0.0], rel=1e-5)
    assert q.grad.tolist() == pytest.approx([0.4], rel=1e-5)
    assert float(nn.utils.clip_grad_norm_([none], 1.0)) == 0.0


def test_an_infinite_norm_is_an_error_if_requested_and_scales_nothing():
    p = with_grad(float("inf"), 1.0)
    with pytest.raises(RuntimeError, match="norm of the gradients is inf"):
        nn.utils.clip_grad_norm_(p, 1.0, error_if_nonfinite=True)
    assert p.grad.tolist() == [float("inf"), 1.0]


@pytest.mark.parametrize(
    ("order", "norm"), [(0, 1), (-1, 4 / 3), (0.5, (2**0.5 + 2) ** 2), ("inf", 4), (float("inf"), 4)]
)
def test_clipping_takes_norms_of_every_order(order, norm):
    p = with_grad(2.0, -4.0)
    assert float(nn.utils.clip_grad_norm_(p, 1.0, norm_type=order)) == pytest.approx(norm)
    assert p.grad.tolist() == pytest.approx([2.0 / norm, -4.0 / norm], rel=1e-5)


def test_clipping_refuses_bad_bounds():
    with pytest.raises(ValueError, match="at least 0, got -1"):
        nn.utils.clip_grad_value_(with_grad(1.0), -1)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("added", [False, True])
def test_queries_that_may_look_nowhere_attend_to_nothing(need_weights, added):
    attention = nn.MultiheadAttention(4, 2, batch_first=True)
    x = rg.randn(2, 3, 4)
    mask = rg.zeros(3, 3) if added else rg.zeros(3, 3, dtype="bool")
    padding = rg.tensor([[False, False, True], [True, True, True]])
    out, weights = attention(x, x, x, padding, need_weights=need_weights, attn_mask=mask)
    assert out[1].tolist() == [attention.out_proj.bias.tolist()] * 3
    if need_weights:
        assert weights[1].tolist() == [[0] * 3] * 3
        np.testing.assert_allclose(weights[0].sum(-1).tolist(), [1] * 3, rtol=1e-6)
        assert weights[0, :, 2].tolist() == [0] * 3


def test_options_of_linear_cross_entropy_change_neither_the_loss_nor_second_derivatives():
    x, weight, target = rg.randn(5, 3), rg.randn(4, 3), rg.tensor([0, 1, 2, 3, 1])

    def loss(x, options=None):
        return rg.nn.functional.linear_cross_entropy(x, weight, target, options=options)

    chunks = rg.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
    for derivative in (lambda f: f, rg.func.grad, rg.func.hessian):
        rg.testing.assert_close(derivative(lambda x: loss(x, chunks))(x), derivative(loss)(x))


@pytest.mark.parametrize(
    ("call", "error", "pattern"),
    [
        (lambda: nn.LSTM(0, 3), ValueError, "input_size must be greater than zero"),
        (lambda: nn.GRU(2.0, 3), TypeError, "input_size should be of type int, got: float"),
        (lambda: nn.RNNCell(2, 3)(rg.ones(4, 5)), RuntimeError, "inconsistent input_size: got 5 expected 2"),
        (lambda: nn.GRUCell(2, 3)(rg.ones(4, 2), rg.ones(4, 5)), RuntimeError, "inconsistent hidden_size: got 5"),
        (lambda: nn.GRUCell(2, 3)(rg.ones(4, 2), rg.ones(5, 3)), RuntimeError, "batch size 4 doesn't match hidden0"),
        (lambda: nn.GRUCell(2, 3)(rg.ones(4, 2), rg.ones(4, 1, 3)), ValueError, "Expected hidden to be 1D or 2D"),
        (lambda: nn.LSTMCell(2, 3)(rg.ones(4, 2), (rg.ones(4, 3), rg.ones(3, 4, 3))), ValueError, r"Expected hx\[1\]"),
        (lambda: nn.CircularPad1d(1)(rg.ones(2, 2, 2, 2)), ValueError, r"expected 2D or 3D input \(got 4D input\)"),
        (lambda: nn.CircularPad2d(1)(rg.ones(2, 2)), ValueError, r"expected 3D or 4D input \(got 2D input\)"),
        (lambda: nn.BatchNorm1d(2, eps=-1.0)(rg.ones(3, 2)), ValueError, "eps must be positive during training"),
        (lambda: nn.CrossEntropyLoss(label_smoothing=1.5), RuntimeError, "label_smoothing"),
        (
            lambda: nn.CrossEntropyLoss(ignore_index=1)(rg.ones(2, 3), rg.ones(2, 3)),
            RuntimeError,
            "ignore_index is not supported for floating point target",
        ),
    ],
)
def test_errors_are_of_the_classes_and_have_the_words_of_pytorch(call, error, pattern):
    with pytest.raises(error, match=pattern):
        call()


def test_an_empty_batch_leaves_running_statistics():
    norm = nn.BatchNorm2d(3)
    assert norm(rg.ones(0, 3, 4, 4)).shape == (0, 3, 4, 4)
    assert (norm.running_mean.tolist(), norm.running_var.tolist()) == ([0.0] * 3, [1.0] * 3)
    assert norm.num_batches_tracked.item() == 1


def test_a_variance_for_each_feature_broadcasts_over_the_samples():
    x, target, var = rg.randn(4, 3), rg.randn(4, 3), rg.tensor([[0.5, 1.0, 2.0]])
    every = nn.GaussianNLLLoss(reduction="none")(x, target, var.expand(4, 3))
    assert nn.GaussianNLLLoss(reduction="none")(x, target, var).tolist() == every.tolist()


def test_functions_with_an_inplace_argument_and_modules_that_hold_them_are_pickled():
    functions = [f for name, f in vars(nn.functional).items() if "inplace" in str(getattr(f, "__signature__", ""))]
    names = ("relu", "gelu", "silu", "dropout", "leaky_relu", "threshold")
    functions += [getattr(nn.functional, name) for name in names]
    assert all(pickle.loads(pickle.dumps(f)) is f for f in functions)
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)
    x = rg.randn(3, 2, 4)
    assert pickle.loads(pickle.dumps(layer))(x).tolist() == layer(x).tolist()
