"""Normalisation: running statistics, edge cases of batches, precision and refused arguments."""

import numpy as np
import pytest

import retrograd as rg
from retrograd.nn import functional as F
from retrograd.testing import assert_close


def test_training_moves_the_running_statistics_by_the_unbiased_variance(rng):
    x = rng.normal(3.0, 2.0, size=(6, 2, 5))
    mean, var = rg.tensor([1.0, 1.0], dtype="float64"), rg.tensor([1.0, 2.0], dtype="float64")
    out = F.batch_norm(rg.tensor(x), mean, var, training=True, momentum=0.25)
    assert_close(mean.numpy(), 0.75 * np.ones(2) + 0.25 * x.mean((0, 2)))
    assert_close(var.numpy(), 0.75 * np.array([1.0, 2.0]) + 0.25 * x.var((0, 2), ddof=1))
    assert_close(out.mean((0, 2)).numpy(), np.zeros(2), atol=1e-12)


def test_evaluation_uses_the_running_statistics_and_leaves_them_alone(rng):
    x = rg.tensor(rng.normal(size=(4, 2)))
    mean, var = rg.tensor([1.0, 2.0], dtype="float64"), rg.tensor([4.0, 9.0], dtype="float64")
    out = F.batch_norm(x, mean, var, eps=0.0)
    assert_close(out.numpy(), (x.numpy() - [1.0, 2.0]) / [2.0, 3.0])
    assert mean.tolist() == [1.0, 2.0]
    assert var.tolist() == [4.0, 9.0]


def test_running_statistics_take_no_part_in_the_graph(rng):
    x = rg.tensor(rng.normal(size=(4, 2)), requires_grad=True)
    mean, var = rg.zeros(2), rg.ones(2)
    F.batch_norm(x, mean, var, training=True).sum().backward()
    assert not mean.requires_grad
    assert mean.dtype == np.float32
    F.batch_norm(x, mean, var, training=True).sum().backward()


def test_instances_move_the_running_statistics_towards_their_means(rng):
    x = rng.normal(2.0, 3.0, size=(3, 2, 7))
    mean, var = rg.zeros(2, dtype="float64"), rg.ones(2, dtype="float64")
    F.instance_norm(rg.tensor(x), mean, var, momentum=0.5)
    assert_close(mean.numpy(), 0.5 * x.mean(2).mean(0))
    assert_close(var.numpy(), 0.5 + 0.5 * x.var(2, ddof=1).mean(0))


def test_one_group_is_a_layer_and_as_many_as_channels_are_instances(rng):
    x = rg.tensor(rng.normal(size=(2, 4, 3)))
    assert_close(rg.group_norm(x, 1), rg.layer_norm(x, (4, 3)))
    assert_close(rg.group_norm(x, 4), F.instance_norm(x))


@pytest.mark.parametrize("f", [lambda x: F.batch_norm(x, None, None, training=True), lambda x: rg.layer_norm(x, (64,))])
def test_a_large_mean_costs_no_precision(f, rng):
    x = rng.normal(size=(64, 64))
    assert_close(f(rg.tensor(x + 1e6)), f(rg.tensor(x)), rtol=1e-6, atol=1e-6)


def test_half_precision_is_summed_in_single():
    x = rg.full((4, 4096), 60.0).to("float16")
    x[:, ::2] = 61.0
    out = rg.layer_norm(x, (4096,))
    assert out.dtype == np.float16
    assert_close(out[0, :2].numpy(), np.array([1.0, -1.0], "float16"), rtol=0.0, atol=1e-2)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "norm",
    [
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        lambda x, w, b: F.batch_norm(x, rg.zeros(4), rg.ones(4), w, b),
        lambda x, w, b: F.instance_norm(x, weight=w, bias=b),
        lambda x, w, b: F.group_norm(x, 2, w, b),
        lambda x, w, b: F.layer_norm(x, (4,), w, b),
        lambda x, w, b: F.rms_norm(x, (4,), w),
    ],
    ids=["batch_norm", "batch_norm by statistics", "instance_norm", "group_norm", "layer_norm", "rms_norm"],
)
def test_half_precision_with_parameters_in_single_keeps_its_dtype(rng, norm, dtype):
    x = rg.tensor(rng.normal(size=(3, 4, 4))).to(dtype)
    weight, bias = rg.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True), rg.zeros(4)
    product = rg.matmul(x, rg.ones(4, 4, dtype=dtype).requires_grad_())
    out = norm(product, weight, bias)
    assert out.dtype == x.dtype
    assert_close(out.detach(), norm(product.float(), weight, bias).detach().to(dtype))
    out.float().sum().backward()  # the product refuses a gradient of another dtype
    assert weight.grad.dtype == np.float32


def test_equal_elements_have_gradient_zero():
    x = rg.ones(2, 3, requires_grad=True)
    out = rg.rms_norm(x, (3,))
    assert_close(out.detach().numpy(), np.ones((2, 3), "float32"))
    assert_close(rg.autograd.grad((out * out).sum(), x)[0].numpy(), np.zeros((2, 3), "float32"), atol=1e-5)


def test_batches_of_one_value_are_refused_in_training_only():
    x, mean, var = rg.ones(1, 2), rg.zeros(2), rg.ones(2)
    with pytest.raises(ValueError, match="batch_norm: Expected more than 1 value per channel"):
        F.batch_norm(x, mean, var, training=True)
    assert mean.tolist() == [0.0, 0.0]
    assert F.batch_norm(x, mean, var, eps=0.0).tolist() == [[1.0, 1.0]]


def test_integers_are_refused_by_name():
    with pytest.raises(TypeError, match="layer_norm: expected a real floating dtype, got int64"):
        rg.layer_norm(rg.ones(2, 3, dtype="int64"), (3,))


def test_local_response_norm_of_one_channel_is_its_own_neighbour():
    x = rg.tensor([[[2.0]]])
    assert F.local_response_norm(x, 1, alpha=1.0, beta=1.0, k=0.0).item() == 0.5


def test_gradients_of_batch_norm_far_from_zero_keep_their_digits():
    rg.manual_seed(0)
    x, g = 100_000 + rg.randn(8, 3, 400), rg.randn(8, 3, 400)

    def gradient(dtype):
        leaf = x.to(dtype).requires_grad_()
        F.batch_norm(leaf, None, None, training=True).backward(g.to(dtype))
        return leaf.grad.numpy()

    expected = gradient("float64")
    assert np.abs(gradient("float32") - expected).max() < 1e-4 * np.abs(expected).max()
