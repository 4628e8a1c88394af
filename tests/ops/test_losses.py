"""Losses: reductions, ignored targets, weights, smoothing and limits, compared with their definitions."""

import math

import numpy as np
import pytest

import retrograd as rg
from retrograd.core import registry
from retrograd.testing import assert_close

POINTWISE = ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "kl_div"]
POINTWISE += ["binary_cross_entropy_with_logits"]


@pytest.mark.parametrize("name", POINTWISE)
def test_mean_and_sum_are_those_of_the_elements(name, rng):
    x, target = (rg.tensor(rng.uniform(0.1, 0.9, size=(3, 4))) for _ in range(2))
    loss = getattr(rg, name)
    each = loss(x, target, reduction="none")
    assert each.shape == (3, 4)
    assert_close(loss(x, target), each.mean())
    assert_close(loss(x, target, reduction="sum"), each.sum())


@pytest.mark.parametrize("name", [*POINTWISE, "nll_loss", "cross_entropy"])
def test_unknown_reductions_are_refused_with_the_known_ones(name):
    with pytest.raises(ValueError, match=f"{name}: reduction must be .*'mean', 'sum' or 'none', got 'avg'"):
        getattr(rg, name)(rg.ones(2, 3), rg.ones(2, 3), reduction="avg")


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_shapes_that_broadcast_are_warned_of(name):
    with pytest.warns(UserWarning, match=rf"{name}: .*\(3, 1\) and the target \(3,\)"):
        getattr(rg, name)(rg.ones(3, 1), rg.ones(3))


@pytest.mark.parametrize("dtype", [rg.float16, rg.float32, rg.float64])
def test_the_square_of_an_infinite_difference_is_infinite_as_is_its_gradient(dtype):
    x = rg.tensor([math.inf, -math.inf, math.nan], dtype=dtype, requires_grad=True)
    loss = rg.mse_loss(x, rg.zeros(3, dtype=dtype), reduction="none")
    loss.sum().backward()
    np.testing.assert_array_equal(loss.detach().numpy(), [math.inf, math.inf, math.nan])
    np.testing.assert_array_equal(x.grad.numpy(), [math.inf, -math.inf, math.nan])


def test_smooth_l1_and_huber_change_over_at_their_parameter():
    x, zero = rg.tensor([0.1, 2.0], dtype="float64"), rg.zeros(2, dtype="float64")
    assert_close(rg.smooth_l1_loss(x, zero, reduction="none", beta=0.5).numpy(), np.array([0.01, 1.75]))
    assert_close(rg.huber_loss(x, zero, reduction="none", delta=0.5).numpy(), np.array([0.005, 0.875]))
    assert rg.smooth_l1_loss(x, zero, reduction="none", beta=0.0).tolist() == [0.1, 2]


# --------------------------------------------------------------------------------------------- probabilities


def test_certain_and_wrong_costs_a_hundred_as_in_pytorch():
    x, target = rg.tensor([0.0, 1.0, 1.0]), rg.tensor([1.0, 0.0, 1.0])
    x.requires_grad = True
    loss = rg.binary_cross_entropy(x, target, reduction="none")
    assert loss.tolist() == [100, 100, 0]
    assert np.isfinite(rg.autograd.grad(loss.sum(), x)[0].numpy()).all()


def test_values_that_are_no_probabilities_are_refused():
    with pytest.raises(ValueError, match=r"from 0 to 1, got -0.5 to 2.0"):
        rg.binary_cross_entropy(rg.tensor([-0.5, 2.0]), rg.zeros(2))


def test_the_loss_of_logits_is_that_of_their_probabilities_and_exact_at_the_ends(rng):
    x, target = rg.tensor(rng.normal(size=5)), rg.tensor(rng.uniform(size=5))
    a = rg.binary_cross_entropy_with_logits(x, target)
    assert_close(a, rg.binary_cross_entropy(rg.sigmoid(x), target))
    ends = rg.tensor([800.0, -800.0, 50.0], dtype="float64")
    loss = rg.binary_cross_entropy_with_logits(ends, rg.tensor([0.0, 1.0, 1.0], dtype="float64"), reduction="none")
    assert_close(loss.numpy(), np.array([800, 800, math.log1p(math.exp(-50))]))


def test_pos_weight_weighs_the_positive_part_alone():
    x, target = rg.tensor([0.3, -0.7]), rg.tensor([1.0, 0.0])
    plain = rg.binary_cross_entropy_with_logits(x, target, reduction="none")
    weighted = rg.binary_cross_entropy_with_logits(x, target, reduction="none", pos_weight=rg.tensor(3.0))
    assert_close(weighted, plain * rg.tensor([3.0, 1.0]))


def test_the_divergence_of_impossible_events_is_zero():
    x, p = rg.tensor([[0.5, 0.5]]), rg.tensor([[0.0, 1.0]], requires_grad=True)
    loss = rg.kl_div(rg.log(x), p, reduction="batchmean")
    assert loss.item() == pytest.approx(math.log(2))
    assert np.isfinite(rg.autograd.grad(loss, p)[0].numpy()).all()


# --------------------------------------------------------------------------------------------------- classes


def log_probabilities(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return np.log(e / e.sum(1, keepdims=True))


def expected_loss(x, target, weight, ignored, smoothing):
    """Return per sample the loss and its weight in the mean."""
    weight = np.ones(x.shape[1]) if weight is None else weight
    logs = log_probabilities(x)
    losses, weights = [], []
    for row, t in zip(logs, target, strict=True):
        p = np.full(len(row), smoothing / len(row))
        p[t] += 1 - smoothing
        losses.append(0.0 if t == ignored else -(p * weight * row).sum())
        weights.append(0.0 if t == ignored else weight[t])
    return np.array(losses), np.array(weights)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("ignored", [-100, 2])
def test_cross_entropy_of_class_numbers(weighted, smoothing, ignored, rng):
    x, target = rng.normal(size=(6, 4)), np.array([0, 2, 1, 3, 2, 0])
    weight = rng.uniform(0.5, 2, size=4) if weighted else None
    losses, weights = expected_loss(x, target, weight, ignored, smoothing)
    settings = {"ignore_index": ignored, "label_smoothing": smoothing}
    settings["weight"] = None if weight is None else rg.tensor(weight)

    def loss(reduction):
        return rg.cross_entropy(rg.tensor(x), rg.tensor(target), reduction=reduction, **settings).numpy()

    assert_close(loss("none"), losses)
    assert_close(loss("sum"), np.array(losses.sum()))
    assert_close(loss("mean"), np.array(losses.sum() / weights.sum()))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_nll_loss_of_log_softmax_is_cross_entropy(reduction, rng):
    x, target = rg.tensor(rng.normal(size=(3, 4, 2))), rg.tensor(rng.integers(0, 4, size=(3, 2)))
    weight = rg.tensor(rng.uniform(0.5, 2, size=4))
    settings = {"weight": weight, "reduction": reduction, "ignore_index": 1}
    a = rg.cross_entropy(x, target, **settings)
    assert_close(a, rg.nll_loss(rg.log_softmax(x, 1), target, **settings))


def test_one_hot_probabilities_are_class_numbers(rng):
    x, target = rng.normal(size=(5, 3)), np.array([0, 2, 1, 1, 0])
    soft = rg.cross_entropy(rg.tensor(x), rg.tensor(np.eye(3)[target]))
    assert_close(soft, rg.cross_entropy(rg.tensor(x), rg.tensor(target)))


def test_a_single_sample_needs_no_batch_dimension():
    x = rg.tensor([0.0, 0.0])
    assert rg.cross_entropy(x, rg.tensor(1)).item() == pytest.approx(math.log(2))
    assert rg.cross_entropy(x, rg.tensor([0.5, 0.5])).item() == pytest.approx(math.log(2))


def test_the_gradient_is_softmax_minus_one_hot_over_the_number_that_counts(rng):
    x, target = rng.normal(size=(4, 3)), np.array([0, -100, 2, 1])
    leaf = rg.tensor(x, requires_grad=True)
    (g,) = rg.autograd.grad(rg.cross_entropy(leaf, rg.tensor(target)), leaf)
    expected = (np.exp(log_probabilities(x)) - np.eye(3)[target.clip(0)]) / 3
    expected[1] = 0
    assert_close(g.numpy(), expected)


@pytest.mark.parametrize("loss", [rg.cross_entropy, rg.nll_loss])
@pytest.mark.parametrize("bad", [-1, 3])
def test_targets_that_are_no_class_are_refused(loss, bad):
    with pytest.raises(
        IndexError, match=r"Target -?\d is out of bounds: the target at index .*, and there are 3 classes"
    ):
        loss(rg.zeros(2, 3), rg.tensor([0, bad]))


@pytest.mark.parametrize("loss", [rg.nll_loss, rg.cross_entropy])
@pytest.mark.parametrize("dtype", [rg.int32, rg.int16, rg.bool])
def test_class_numbers_are_of_64_bits_or_bytes(loss, dtype):
    with pytest.raises(TypeError, match=f"class numbers must be integers of 64 bits or uint8, got {dtype}"):
        loss(rg.zeros(2, 3), rg.zeros(2, dtype=dtype))
    loss(rg.zeros(2, 3), rg.zeros(2, dtype=rg.uint8))


def test_class_numbers_are_integers():
    with pytest.raises(TypeError, match="nll_loss: class numbers must be integers of 64 bits or uint8, got float32"):
        rg.nll_loss(rg.zeros(2, 3), rg.zeros(2))


def test_losses_do_not_write_to_their_inputs():
    x, target = rg.tensor([[1.0, 2.0]], requires_grad=True), rg.tensor([-100])
    rg.cross_entropy(x, target, reduction="sum").backward()
    assert x.tolist() == [[1, 2]]
    assert target.tolist() == [-100]


@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
@pytest.mark.parametrize("weight", [None, rg.tensor([1.0, 2.0])])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_mean_over_ignored_targets_alone_is_nan_without_a_warning(name, weight, dtype):
    x = rg.ones(3, 2, dtype=dtype, requires_grad=True)
    weight = weight if weight is None else weight.to(dtype)
    out = getattr(rg, name)(x, rg.tensor([1, 1, 1]), weight, ignore_index=1)
    assert math.isnan(out.item())
    assert out.dtype == dtype
    assert rg.autograd.grad(out, x)[0].shape == (3, 2)


def test_cross_entropy_of_minus_infinities_is_nan_without_a_warning():
    assert math.isnan(rg.cross_entropy(rg.tensor([[-math.inf, -math.inf]]), rg.tensor([0])).item())


@pytest.mark.parametrize("log_target", [False, True])
def test_kl_div_is_zero_where_the_target_is_zero(log_target):
    x = rg.tensor([-math.inf, -1.0, 0.0], requires_grad=True)
    target = rg.tensor([0.0, 0.0, 1.0])
    if log_target:
        target = rg.tensor([-math.inf, -math.inf, 0.0])
    loss = rg.kl_div(x, target, reduction="none", log_target=log_target)
    assert loss.tolist() == [0, 0, 0]
    assert rg.autograd.grad(loss.sum(), x)[0].tolist() == [0, 0, -1]


@pytest.mark.parametrize("shape", [(3,), (3, 2)])
def test_cross_entropy_refuses_complex_targets(shape):
    with pytest.raises(TypeError, match=r"cross_entropy: targets .* got complex64"):
        rg.cross_entropy(rg.ones(3, 2), rg.zeros(shape, dtype="complex64"))


@pytest.mark.parametrize("name", ["class_gather", "class_loss", "class_residual"])
@pytest.mark.parametrize(("target", "error"), [([0], ValueError), ([[0], [1]], ValueError), ([0.0, 1.0], TypeError)])
def test_kernels_of_classes_refuse_what_their_shape_rules_refuse(name, target, error):
    with pytest.raises(error):
        registry[name](rg.ones(2, 3), rg.tensor(target))


def test_place_class_does_not_broadcast():
    with pytest.raises(ValueError, match="do not fit"):
        registry["class_scatter"](rg.ones(1), rg.tensor([0, 1]), classes=3)


@pytest.mark.parametrize("name", ["cross_entropy", "nll_loss"])
def test_a_mean_over_no_targets_is_nan_and_pulls_at_nothing(name):
    for options in ({}, {"weight": rg.ones(3)}):
        x = rg.ones(2, 3).requires_grad_()
        loss = getattr(rg, name)(x, rg.tensor([-100, -100]), **options)
        assert math.isnan(loss.item())
        assert rg.autograd.grad(loss, x)[0].tolist() == [[0, 0, 0], [0, 0, 0]]


def test_weights_of_elements_count_in_the_mean_but_not_in_that_of_huber():
    x, target, weight = rg.tensor([1.0, 3.0]), rg.zeros(2), rg.tensor([3.0, 1.0])
    assert rg.mse_loss(x, target, weight=weight).item() == (3 + 9) / 4
    assert rg.l1_loss(x, target, weight=weight).item() == (3 + 3) / 4
    assert rg.huber_loss(x, target, weight=weight).item() == (1.5 + 2.5) / 2
    assert rg.l1_loss(x, target, "sum", weight).item() == 6


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "huber_loss"])
def test_weights_of_elements_do_not_broadcast(name):
    with pytest.raises(ValueError, match=rf"{name}: weight has shape \(3,\), expected that of the input, \(2, 3\)"):
        getattr(rg, name)(rg.ones(2, 3), rg.ones(2, 3), weight=rg.ones(3))


@pytest.mark.parametrize("loss", [rg.mse_loss, rg.smooth_l1_loss, rg.nn.MSELoss()], ids=str)
def test_the_warning_of_shapes_that_broadcast_shows_the_users_line(loss):
    with pytest.warns(UserWarning, match="broadcast") as found:
        loss(rg.ones(3, 1), rg.ones(3))
    assert found[0].filename == __file__


def test_kl_div_of_a_negative_target_is_nan():
    target = rg.tensor([-0.5, 0.5], requires_grad=True)
    loss = rg.kl_div(rg.tensor([0.5, 0.5]), target, reduction="none")
    (slope,) = rg.autograd.grad(loss.sum(), target)
    assert loss.isnan().tolist() == slope.isnan().tolist() == [True, False]
