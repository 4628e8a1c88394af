"""Softmax, normalisation, dropout, embedding, attention: limits, errors, and PyTorch's documented behavior."""

import math

import numpy as np
import pytest

import retrograd as rg
from retrograd.nn import functional as F
from retrograd.ops.nn import attention_weights
from retrograd.testing import assert_close


def test_softmax_of_large_numbers_neither_overflows_nor_loses_its_sum():
    x = rg.tensor([[1e4, 1e4 - 1], [-1e4, 0.0]])
    assert_close(rg.softmax(x, 1).sum(1), rg.ones(2))
    assert rg.log_softmax(x, 1)[1].tolist() == [-1e4, 0]


def test_softmax_gives_nothing_to_minus_infinity():
    x = rg.tensor([0.0, -math.inf], requires_grad=True)
    out = rg.softmax(x, 0)
    assert out.tolist() == [1, 0]
    assert rg.autograd.grad(out[0], x)[0].tolist() == [0, 0]


def test_layer_norm_has_mean_zero_and_variance_one(rng):
    x = rg.tensor(rng.normal(3, 5, size=(4, 2, 6)))
    out = rg.layer_norm(x, (2, 6), eps=0.0)
    assert_close(out.mean((1, 2)).numpy(), np.zeros(4), atol=1e-12)
    assert_close(out.var((1, 2), correction=0).numpy(), np.ones(4))


def test_standardize_of_equal_elements_is_zero_with_gradient_zero():
    x = rg.ones(2, 3, requires_grad=True)
    out = rg.standardize(x)
    assert out.tolist() == [[0] * 3] * 2
    assert rg.autograd.grad((out * out).sum(), x)[0].tolist() == [[0] * 3] * 2


def test_standardize_does_not_write_to_its_input():
    x = rg.tensor([1.0, 3.0])
    rg.standardize(x)
    assert x.tolist() == [1, 3]


def test_normalize_leaves_zero_alone():
    x = rg.zeros(1, 3, requires_grad=True)
    out = rg.normalize(x)
    assert out.tolist() == [[0, 0, 0]]
    assert np.isfinite(rg.autograd.grad(out.sum(), x)[0].numpy()).all()


@pytest.mark.parametrize(
    ("p", "expected"),
    [(2, [0.6, -0.8, 0]), ("fro", [0.6, -0.8, 0]), (1, [1, -1, 0]), (math.inf, [0, -1, 0]), (0, [0] * 3)],
)
def test_gradient_of_the_norm(p, expected):
    x = rg.tensor([3.0, -4.0, 0.0], dtype="float64", requires_grad=True)
    out = rg.norm(x, p)
    assert out.dtype == np.float64
    if p != 0:
        assert_close(rg.autograd.grad(out, x)[0].numpy(), np.array(expected, float))
    else:
        assert out.item() == 2


@pytest.mark.parametrize("p", [0.5, 1, 1.5, 2, 3, math.inf])
def test_the_norm_of_zero_has_gradient_zero(p):
    x = rg.zeros(3, requires_grad=True)
    assert rg.autograd.grad(rg.norm(x, p), x)[0].tolist() == [0, 0, 0]


@pytest.mark.parametrize("p", [-math.inf, -1, 0.5, 1, 1.5, 2, 3, math.inf])
def test_norms_are_those_of_numpy(p, rng):
    x = rng.normal(size=(3, 4))
    assert_close(rg.norm(rg.tensor(x), p, dim=1).numpy(), np.linalg.norm(x, p, axis=1))


# --------------------------------------------------------------------------------------------------- dropout


def test_dropout_keeps_or_scales_and_its_gradient_does_the_same():
    x = rg.ones(1000, requires_grad=True)
    out = rg.dropout(x, 0.25)
    values = set(out.tolist())
    assert len(values) == 2
    assert 0 in values
    assert max(values) == pytest.approx(4 / 3)
    assert rg.autograd.grad(out.sum(), x)[0].tolist() == out.tolist()
    assert 600 < (out.detach() > 0).sum().item() < 900


def test_dropout_outside_training_is_the_tensor_itself():
    x = rg.ones(3)
    assert rg.dropout(x, 0.9, training=False) is x
    assert rg.dropout(x, 0.0) is x
    assert rg.dropout(x, 1.0).tolist() == [0, 0, 0]


# ------------------------------------------------------------------------------------------------- embedding


def test_rows_named_twice_get_both_gradients():
    weight = rg.zeros(4, 2, requires_grad=True)
    out = rg.nn.functional.embedding(rg.tensor([[1, 3], [1, 1]]), weight)
    assert rg.autograd.grad(out.sum(), weight)[0].tolist() == [[0, 0], [3, 3], [0, 0], [1, 1]]


@pytest.mark.parametrize("padding", [1, -3])
def test_the_padding_row_is_a_constant(padding):
    weight = rg.ones(4, 2, requires_grad=True)
    out = rg.nn.functional.embedding(rg.tensor([1, 3]), weight, padding_idx=padding)
    assert out.tolist() == [[1, 1], [1, 1]]
    assert rg.autograd.grad(out.sum(), weight)[0].tolist() == [[0, 0], [0, 0], [0, 0], [1, 1]]


@pytest.mark.parametrize("bad", [-1, 4])
def test_ids_that_name_no_row_are_refused(bad):
    with pytest.raises(IndexError, match=r"embedding: index -?\d is out of bounds for a dimension with size 4"):
        rg.nn.functional.embedding(rg.tensor([0, bad]), rg.ones(4, 2))


def test_no_ids_give_no_rows_and_no_gradient():
    weight = rg.ones(4, 2, requires_grad=True)
    out = rg.nn.functional.embedding(rg.zeros(0, dtype="int64"), weight)
    assert out.shape == (0, 2)
    assert rg.autograd.grad(out.sum(), weight)[0].sum().item() == 0


# ------------------------------------------------------------------------------------------------- attention


def attention(q, k, v, mask):
    """Compute attention by its definition."""
    scores = np.where(mask, q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]), -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize("lengths", [(3, 3), (2, 5), (5, 2)])
def test_causal_attention_looks_back_only(lengths, rng):
    q, k, v = (rng.normal(size=(2, n, 4)) for n in (*lengths, lengths[1]))
    out = rg.scaled_dot_product_attention(*map(rg.tensor, (q, k, v)), is_causal=True)
    assert_close(out.numpy(), attention(q, k, v, np.tri(*lengths, dtype=bool)))


def test_attention_adds_a_mask_of_numbers_and_obeys_one_of_booleans(rng):
    q, k, v = (rng.normal(size=(3, 4)) for _ in range(3))
    mask = np.array([[True, False, True], [True, True, False], [False, False, True]])
    numbers = np.where(mask, 0.0, -np.inf)
    for given in (mask, numbers):
        out = rg.scaled_dot_product_attention(*map(rg.tensor, (q, k, v, given)))
        assert_close(out.numpy(), attention(q, k, v, mask))


def test_a_query_that_may_look_nowhere_gets_zero_and_spoils_no_gradient(rng):
    q, k, v = (rg.tensor(rng.normal(size=(2, 4)), requires_grad=True) for _ in range(3))
    mask = rg.tensor([[False, False], [True, True]])
    out = rg.scaled_dot_product_attention(q, k, v, mask)
    assert out[0].tolist() == [0] * 4
    for g in rg.autograd.grad(out.sum(), [q, k, v]):
        assert np.isfinite(g.numpy()).all()


@pytest.mark.parametrize("f", [rg.softmax, rg.log_softmax])
def test_rows_of_minus_infinity_are_nan_without_a_warning(f):
    out = f(rg.tensor([[-math.inf, -math.inf], [0.0, 0.0]]), 1)
    assert np.isnan(out.numpy()).tolist() == [[True, True], [False, False]]


@pytest.mark.parametrize("added", [None, rg.zeros(2, 2)])
def test_attention_weights_of_queries_without_keys_are_zero(added):
    q = rg.ones(2, 3, requires_grad=True)
    allowed = rg.tensor([[True, True], [False, False]])
    weights = attention_weights(q, rg.ones(2, 3), allowed, added, scale=1.0)
    assert weights.tolist() == [[0.5, 0.5], [0, 0]]
    assert np.isfinite(rg.autograd.grad(weights.sum(), q)[0].numpy()).all()


# ------------------------------------------------------------------------------------------ further dropouts


@pytest.mark.parametrize(
    ("f", "shape"),
    [
        (F.dropout1d, (50, 40, 3)),
        (F.dropout2d, (50, 40, 2, 2)),
        (F.dropout3d, (50, 40, 1, 2, 2)),
        (F.dropout1d, (999, 3)),
    ],
)
def test_channels_are_dropped_as_a_whole(f, shape):
    out = f(rg.ones(shape), 0.25).numpy()
    channels = out.reshape(-1, math.prod(shape[2:]) if len(shape) > 2 else shape[1])
    assert (channels == channels[:, :1]).all()
    assert sorted(set(channels[:, 0].tolist())) == [0, pytest.approx(4 / 3)]
    assert 0.6 < (channels[:, 0] > 0).mean() < 0.9


@pytest.mark.parametrize("f", [F.alpha_dropout, F.feature_alpha_dropout])
def test_alpha_dropout_keeps_mean_and_variance(f, rng):
    x = rg.tensor(rng.normal(size=(300, 300)))
    out = f(x, 0.3, training=True).numpy()
    assert abs(out.mean()) < 0.02
    assert abs(out.var() - 1) < 0.03
    assert f(x, 0.3) is x


def test_dropout_in_place_writes_zeros():
    x = rg.ones(200)
    assert rg.dropout_(x, 0.5) is x
    assert set(x.tolist()) == {0.0, 2.0}


@pytest.mark.parametrize("f", [F.dropout1d, F.dropout2d, F.dropout3d])
def test_dropouts_of_channels_know_their_dimensions(f):
    with pytest.raises(ValueError, match=rf"{f.__name__}: .*xpected .* got shape \(3,\)"):
        f(rg.ones(3))


def test_dropout2d_warns_that_three_dimensions_are_a_batch_of_sequences():
    with pytest.warns(UserWarning, match=r"shape \(2, 3, 4\) is \(n, channels, l\); use dropout1d, or x.unsqueeze"):
        out = F.dropout2d(rg.ones(2, 3, 4), 0.5)
    assert bool((out == out[..., :1]).all())


@pytest.mark.parametrize("dtype", [rg.int64, rg.bool])
def test_dropout_refuses_elements_that_cannot_be_scaled(dtype):
    x = rg.ones(1, 2, 2, 2, dtype=dtype)
    for f in (F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.alpha_dropout, rg.dropout_, rg.native_dropout):
        with pytest.raises(TypeError, match=f"expected floating or complex elements, got {dtype}"):
            f(x[0] if f is F.dropout1d else x, 0.5, True)
    assert F.dropout(x, 0.5, training=False) is x
    assert not F.dropout(x, 1.0).any()


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("f", "slices"), [(F.dropout2d, (100, 50, 1)), (F.dropout3d, (100, 1, 50))])
def test_dropouts_of_images_warn_of_other_dimensions_and_compute_as_pytorch_does(f, slices, training):
    """Old scripts call them after a linear layer: dropout2d then zeros elements, dropout3d whole rows."""
    with pytest.warns(UserWarning, match=rf"{f.__name__}: .* expected . or . dimensions, got shape \(100, 50\)"):
        out = f(rg.ones(100, 50), 0.5, training).numpy().reshape(slices)
    assert (out == out[..., :1]).all()  # a slice is zero as a whole or not at all
    assert set(out.ravel().tolist()) == ({0.0, 2.0} if training else {1.0})
    assert not training or 0.3 < (out[..., 0] == 0).mean() < 0.7


# ----------------------------------------------------------------------------------------- tables and their bags


def test_max_norm_scales_named_rows_of_the_table_down():
    weight = rg.tensor([[3.0, 4.0], [3.0, 4.0], [0.3, 0.4]], requires_grad=True)
    out = rg.nn.functional.embedding(rg.tensor([1, 2, 1]), weight, max_norm=1.0)
    assert_close(out[0].detach().numpy(), np.array([0.6, 0.8], "float32"))
    assert_close(weight.detach().numpy(), np.array([[3, 4], [0.6, 0.8], [0.3, 0.4]], "float32"))
    assert weight.is_leaf
    assert rg.autograd.grad(out.sum(), weight)[0].tolist() == [[0, 0], [2, 2], [1, 1]]


def test_gradients_of_rows_may_be_divided_by_how_often_they_are_named():
    weight = rg.tensor([[1.0], [2.0], [3.0]], requires_grad=True)
    out = rg.nn.functional.embedding(rg.tensor([0, 2, 2, 2]), weight, scale_grad_by_freq=True)
    assert out.tolist() == [[1], [3], [3], [3]]
    g = rg.tensor([[1.0], [1.0], [2.0], [3.0]])
    assert rg.autograd.grad(out, weight, g)[0].tolist() == [[1], [0], [2]]


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_without_ids_are_zero_and_give_no_gradient(mode):
    weight = rg.tensor([[-1.0], [-2.0]], requires_grad=True)
    out = F.embedding_bag(rg.tensor([0, 1]), weight, rg.tensor([0, 0, 2]), mode=mode)
    assert out.flatten().tolist() == {"sum": [0, -3, 0], "mean": [0, -1.5, 0], "max": [0, -1, 0]}[mode]
    expected = {"sum": [[1], [1]], "mean": [[0.5], [0.5]], "max": [[1], [0]]}[mode]
    assert rg.autograd.grad(out.sum(), weight)[0].tolist() == expected


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_padding_does_not_count_in_bags(mode):
    weight = rg.tensor([[5.0], [1.0], [2.0]], requires_grad=True)
    out = F.embedding_bag(rg.tensor([[0, 1, 2], [0, 0, 0]]), weight, mode=mode, padding_idx=0)
    assert out.flatten().tolist() == [{"sum": 3, "mean": 1.5, "max": 2}[mode], 0]
    assert rg.autograd.grad(out.sum(), weight)[0][0].item() == 0


def test_the_first_of_equal_rows_in_a_bag_gets_the_gradient():
    weight = rg.ones(2, 1, requires_grad=True)
    out = F.embedding_bag(rg.tensor([[1, 0]]), weight, mode="max")
    assert rg.autograd.grad(out.sum(), weight)[0].tolist() == [[0], [1]]


def test_bags_may_be_given_in_the_older_order_of_arguments():
    ids, weight = rg.tensor([2, 0, 1]), rg.tensor([[1.0], [2.0], [4.0]])
    with pytest.warns(UserWarning, match="embedding_bag: the first two arguments are swapped"):
        out = F.embedding_bag(weight, ids, rg.tensor([0, 1]), mode="sum")
    assert out.tolist() == [[4.0], [3.0]]


def test_a_bag_may_end_where_the_offsets_say(rng):
    ids, weight = rg.tensor([2, 0, 1]), rg.tensor(rng.normal(size=(3, 2)))
    ended = F.embedding_bag(ids, weight, rg.tensor([0, 1, 3]), include_last_offset=True, mode="sum")
    assert_close(ended, F.embedding_bag(ids, weight, rg.tensor([0, 1]), mode="sum"))


def test_heads_of_keys_serve_groups_of_heads_of_queries(rng):
    q, k, v = (rg.tensor(rng.normal(size=(1, heads, 3, 2))) for heads in (4, 2, 2))
    grouped = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    for head in range(4):
        alone = F.scaled_dot_product_attention(q[:, head], k[:, head // 2], v[:, head // 2])
        assert_close(grouped[:, head], alone)


def test_the_softmax_of_a_single_number_is_one():
    x = rg.tensor(3.0, requires_grad=True)
    assert [F.softmax(x, 0).item(), F.softmin(x, -1).item(), F.log_softmax(x, 0).item()] == [1, 1, 0]
    assert rg.autograd.grad(F.softmax(x, 0), x)[0].item() == 0


def test_vectors_of_several_dimensions_are_normalized(rng):
    x = rng.normal(size=(2, 3, 4))
    assert_close(F.normalize(rg.tensor(x), dim=(0, 2)), x / np.sqrt((x * x).sum((0, 2), keepdims=True)))
