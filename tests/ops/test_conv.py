"""Convolutions: all sizes, chunks, strides and groups compared with the definition; refused arguments."""

import itertools

import numpy as np
import pytest

import retrograd as rg
from retrograd.backend import conv
from retrograd.core import registry
from retrograd.kernels import conv_layout, reference
from retrograd.testing.references import conv as oracles

F = rg.nn.functional


def noise(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def check_form(x, w, y_size, groups, **given):
    """Check all three primitives against the definition."""
    convolution, back, weight = (registry[n] for n in ("convolution", "convolution_input", "convolution_weight"))
    y = noise(len(x), len(w), *y_size, seed=1)
    tx, tw, ty = map(rg.tensor, (x, w, y))
    for ours, expected in (
        (
            convolution(tx, tw, None, size=y_size, groups=groups, **given),
            oracles.convolution(x, w, size=y_size, groups=groups, **given),
        ),
        (
            back(ty, tw, size=x.shape[2:], groups=groups, **given),
            oracles.convolution_input(y, w, size=x.shape[2:], groups=groups, **given),
        ),
        (
            weight(tx, ty, kernel=w.shape[2:], groups=groups, **given),
            oracles.convolution_weight(x, y, kernel=w.shape[2:], groups=groups, **given),
        ),
    ):
        np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("stride", "dilation"), list(itertools.product((1, 2, 3, 4), (1, 2, 3, 4))))
def test_any_stride_meets_any_dilation(stride, dilation):
    given = {"stride": (stride, 2), "dilation": (dilation, 3), "before": (2, 1)}
    check_form(noise(2, 4, 9, 7), noise(2, 2, 3, 2), (4, 3), 2, **given)


@pytest.mark.parametrize("before", [0, 1, 4, 7])
def test_padding_may_exceed_the_kernel_and_windows_may_contain_zeros_only(before):
    given = {"stride": (1,), "dilation": (1,), "before": (before,)}
    check_form(noise(1, 1, 3), noise(1, 1, 2), (12,), 1, **given)
    check_form(noise(1, 2, 3, 3), noise(2, 2, 1, 2), (10, 10), 1, **{k: v * 2 for k, v in given.items()})


@pytest.mark.parametrize(("groups", "c", "o"), [(1, 4, 6), (2, 4, 6), (4, 4, 4), (4, 4, 8)])
@pytest.mark.parametrize("stride", [1, 2])
def test_blocks_and_batches_make_no_difference(groups, c, o, stride, monkeypatch):
    monkeypatch.setattr(conv, "kernels_for", lambda dtype: reference)
    monkeypatch.setattr(conv_layout, "CACHE", 64)
    monkeypatch.setattr(conv_layout, "WIDE", 5)
    given = {"stride": (stride,) * 2, "dilation": (1, 1), "before": (1, 1)}
    size = (6, 5) if stride == 1 else (3, 3)
    for few in (1, 3):
        check_form(noise(few, c, 6, 5), noise(o, c // groups, 3, 3), size, groups, **given)


@pytest.mark.parametrize("ndim", [0, 1, 4])
def test_the_primitives_know_any_number_of_dimensions(ndim):
    given = {"stride": (1,) * ndim, "dilation": (1,) * ndim, "before": (1,) * ndim}
    if ndim:
        check_form(noise(2, 2, *(3,) * ndim), noise(2, 2, *(2,) * ndim), (3,) * ndim, 1, **given)


def test_same_padding_puts_the_odd_element_at_the_end():
    x = rg.tensor([[[1.0, 2.0, 3.0]]])
    assert F.conv1d(x, rg.tensor([[[1.0, 10.0]]]), padding="same").tolist() == [[[21.0, 32.0, 3.0]]]


def test_a_third_derivative_is_that_of_the_trilinear_form():
    x, w, u = (rg.tensor(noise(*s), requires_grad=True) for s in ((1, 2, 5), (2, 2, 3), (1, 2, 5)))
    (first,) = rg.autograd.grad((rg.conv1d(x, w, padding=1) ** 3).sum(), [w], create_graph=True)
    (second,) = rg.autograd.grad((first * w.detach()).sum(), [x], create_graph=True)
    (third,) = rg.autograd.grad((second * u).sum(), [u])
    np.testing.assert_allclose(third.numpy(), second.detach().numpy())
    assert rg.autograd.gradgradcheck(lambda x, w: rg.conv1d(x, w, stride=2) ** 2, (x, w))


def test_half_precision_adds_up_in_single_precision():
    x = rg.ones(1, 4096, 1, dtype="float16")
    out = rg.conv1d(x, rg.ones(1, 4096, 1, dtype="float16") / 4096)
    assert out.dtype == np.float16
    assert out.item() == 1.0


def test_integers_are_convolved_exactly():
    assert rg.conv1d(rg.tensor([[[1, 2, 4]]]), rg.tensor([[[1, 1]]])).tolist() == [[[3, 6]]]


@pytest.mark.parametrize("shape", [(0, 2, 4, 4), (3, 0, 4, 4)])
def test_no_images_or_no_channels_give_zeros(shape):
    x = rg.tensor(np.ones(shape), requires_grad=True)
    weight = rg.tensor(np.ones((2, shape[1], 3, 3)), requires_grad=True)
    out = rg.conv2d(x, weight)
    assert out.shape == (shape[0], 2, 2, 2)
    out.sum().backward()
    assert not x.grad.numpy().any()
    assert not weight.grad.numpy().any()


def test_fold_inverts_unfold_up_to_the_number_of_windows_of_a_pixel():
    x = rg.tensor(noise(2, 3, 5, 4))
    window = {"kernel_size": (3, 2), "padding": 1, "stride": (1, 2)}
    seen = F.fold(F.unfold(rg.ones_like(x), **window), (5, 4), **window)
    rg.testing.assert_close(F.fold(F.unfold(x, **window), (5, 4), **window), x * seen)


def test_dtypes_must_agree():
    with pytest.raises(RuntimeError, match="conv2d: operands must have one dtype"):
        rg.conv2d(rg.ones(1, 1, 3, 3), rg.ones(1, 1, 2, 2, dtype="float64"))


def test_groups_must_divide():
    with pytest.raises(ValueError, match="conv1d: the weight's 3 channels do not divide into groups=2"):
        rg.conv1d(rg.ones(1, 4, 3), rg.ones(3, 2, 2), groups=2)
