"""Operators on images keep their memory format: values, gradients and compiled results, too."""

import math

import pytest

import retrograd as rg
from retrograd.nn import functional as F

FORMATS = {4: rg.channels_last, 5: rg.channels_last_3d}

# Functions of images with 4 channels and n spatial dimensions.
PROGRAMS = {
    "convolution": lambda x, n: _named("conv", n)(x, _weight(6, 4, n), rg.ones(6), padding=1),
    "convolution in groups": lambda x, n: _named("conv", n)(x, _weight(4, 1, n), groups=4),
    "transposed convolution": lambda x, n: _named("conv_transpose", n)(x, _weight(4, 3, n), stride=2),
    "largest": lambda x, n: _named("max_pool", n)(x, 2, 1, 1),
    "largest with indices": lambda x, n: _named("max_pool", n)(x, 2, return_indices=True)[0],
    "means": lambda x, n: _named("avg_pool", n)(x, 2, 1),
    "adaptive means": lambda x, n: _named("adaptive_avg_pool", n)(x, 3),
    "batch norm": lambda x, n: F.batch_norm(x, None, None, rg.arange(1.0, 5.0), rg.ones(4), training=True),
    "batch norm of running statistics": lambda x, n: F.batch_norm(x, rg.ones(4), rg.ones(4), rg.arange(1.0, 5.0)),
    "group norm": lambda x, n: F.group_norm(x, 2, rg.arange(1.0, 5.0), rg.ones(4)),
    "local response norm": lambda x, n: F.local_response_norm(x, 3),
    "interpolation": lambda x, n: F.interpolate(x, scale_factor=2, mode=("bilinear", "trilinear")[n - 2]),
    "padding": lambda x, n: F.pad(x, (1, 2, 0, 1)),
    "mirrored": lambda x, n: F.pad(x, (1, 1) * n, mode="reflect"),
    "joined": lambda x, n: rg.cat([x, 2 * x, x], 1),
    "flipped": lambda x, n: x.flip(-1),
    "rolled": lambda x, n: x.roll(1, -1),
    "written": lambda x, n: x.index_fill(1, rg.tensor([0, 2]), 1.5),
    "channels shuffled": lambda x, n: F.channel_shuffle(x, 2),
}
FLAT = {
    "pixels shuffled": lambda x, n: F.pixel_shuffle(rg.cat([x, -x], 1), 2),
    "pixels moved to channels": lambda x, n: F.pixel_unshuffle(F.interpolate(x, scale_factor=2), 2),
}
CASES = [(name, n) for n in (2, 3) for name in PROGRAMS] + [(name, 2) for name in FLAT]


def _named(name, n):
    return getattr(F, f"{name}{n}d")


def _weight(outputs, inputs, n):
    return rg.arange(float(outputs * inputs * 2**n)).reshape(outputs, inputs, *[2] * n) % 7 - 3


def images(n):
    """Return images with 4 channels, whose elements differ."""
    shape = (2, 4, 5, 4, 3)[: n + 2]
    return ((rg.arange(float(math.prod(shape))) * 31) % 97 / 20).reshape(shape)


def result_and_gradient(program, x, n):
    """Return the result of a program on a leaf like x, and the gradient with cotangents that differ."""
    x = x.clone().requires_grad_()
    out = program(x, n)
    cotangent = (rg.arange(float(out.numel())) % 5).reshape(out.shape)
    form = rg.contiguous_format if out.is_contiguous() else FORMATS[out.ndim]
    out.backward(cotangent.contiguous(memory_format=form))
    return out.detach(), x.grad


@pytest.mark.parametrize(("name", "n"), CASES)
def test_operators_on_images_keep_the_memory_format(name, n):
    program, x = (PROGRAMS | FLAT)[name], images(n)
    expected, slope = result_and_gradient(program, x, n)
    assert expected.is_contiguous()
    out, grad = result_and_gradient(program, x.contiguous(memory_format=FORMATS[n + 2]), n)
    assert out.is_contiguous(memory_format=FORMATS[n + 2])
    assert not out.is_contiguous()
    rg.testing.assert_close(out, expected)
    rg.testing.assert_close(grad, slope)


def test_a_compiled_step_keeps_the_memory_format():
    layers = rg.nn.Sequential(rg.nn.Conv2d(4, 6, 3), rg.nn.BatchNorm2d(6), rg.nn.ReLU(), rg.nn.MaxPool2d(2))
    x = images(2).contiguous(memory_format=rg.channels_last)
    layers.eval().to(memory_format=rg.channels_last)
    compiled = rg.compile(layers)
    for _ in range(2):
        out = compiled(x)
        assert out.stride() == layers(x).stride()
        assert out.is_contiguous(memory_format=rg.channels_last)
        rg.testing.assert_close(out, layers(x.contiguous()))


def test_a_weight_in_a_format_gives_the_result_its_format():
    layer = rg.nn.Conv2d(4, 6, 3).to(memory_format=rg.channels_last)
    assert layer(images(2)).is_contiguous(memory_format=rg.channels_last)


def test_tensors_joined_in_several_formats_are_row_major():
    x = images(2)
    assert rg.cat([x.contiguous(memory_format=rg.channels_last), x], 1).is_contiguous()


@pytest.mark.parametrize("make", [rg.rand_like, rg.randn_like, lambda x: rg.randint_like(x, 9), F.dropout])
def test_random_tensors_have_the_strides_of_their_template(make):
    x = images(3).permute(3, 1, 0, 4, 2)
    out = make(x)
    assert out.stride() == x.stride()
    assert out._base is None or out.shape == x.shape


@pytest.mark.parametrize("shape", [(2, 1, 4, 5), (2, 3, 1, 1), (0, 3, 4, 5)])
def test_ambiguous_formats_are_row_major(shape):
    x = rg.ones(shape).contiguous(memory_format=rg.channels_last)
    assert F.pad(x, (1, 1)).is_contiguous()
