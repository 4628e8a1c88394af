"""Results of operators on images in the memory formats have the strides of PyTorch's."""

import warnings

import pytest
import torch

import retrograd as rg

# Expressions of images x with c channels, in the functional interface F.
BOTH = """
F.conv{n}d(x, ones(4, c, *[3] * n), padding=1)
F.conv{n}d(x, ones(c, 1, *[3] * n), groups=c)
F.conv{n}d(x.contiguous(), last(ones(4, c, *[3] * n)), padding=1)
F.conv_transpose{n}d(x, ones(c, 3, *[2] * n))
F.max_pool{n}d(x, 2, 1, 1)
F.max_pool{n}d(x, 2, 1, 1, return_indices=True)
F.avg_pool{n}d(x, 2, 1, 1)
F.adaptive_avg_pool{n}d(x, 3)
F.adaptive_max_pool{n}d(x, 3)
F.batch_norm(x, m.zeros(c), m.ones(c))
F.batch_norm(x, m.zeros(c), m.ones(c), training=True)
F.batch_norm(x, None, None, m.ones(c), m.ones(c), training=True)
F.group_norm(x, 1)
F.group_norm(x, c, m.ones(c), m.ones(c))
F.instance_norm(x)
F.layer_norm(x, x.shape[-1:])
F.interpolate(x, scale_factor=2)
F.interpolate(x, size=[3] * n, mode="nearest-exact")
F.interpolate(x, size=[2] * n, mode="area")
F.pad(x, (1, 1))
F.pad(x, (1, 1, 2, 2))
F.pad(x, (1, 1) * n, mode="replicate")
F.dropout(x, 0.5)
F.alpha_dropout(x, 0.5, True)
m.cat([x, x], 1)
m.cat([x, x])
m.cat([x, x], -1)
m.cat([x, x.contiguous()], 1)
x.clone()
x.clone(memory_format=m.contiguous_format)
x.contiguous()
last(x.contiguous())
x.to(m.float64)
x.to(m.float32, copy=True)
m.empty_like(x)
m.zeros_like(x, dtype=m.int64)
m.zeros_like(x, memory_format=m.contiguous_format)
m.full_like(x.contiguous(), 2.0, memory_format=form)
m.rand_like(x)
m.randn_like(x)
m.randint_like(x, 5)
m.bernoulli(x * 0)
x + 1
x + m.ones(c, *[1] * n)
F.relu(x)
F.gelu(x)
F.prelu(x, m.ones(c))
m.where(x > 1, x, 0.0)
x.clone().mul_(2)
x.flip(-1)
x.roll(1, -1)
x.argsort(1)
x.cumsum(1)
F.softmax(x, 1)
x.sum(1)
x.mean(-1, keepdim=True)
x.amax(1, keepdim=True)
x.index_fill(1, m.tensor([0]), 0.0)
x.index_select(1, m.tensor([0, 1]))
grad(x, lambda x: F.conv{n}d(x, ones(4, c, *[3] * n), padding=1))
grad(x, lambda x: F.max_pool{n}d(x, 2, 1))
grad(x, lambda x: F.avg_pool{n}d(x, 2, 1))
grad(x, lambda x: F.adaptive_avg_pool{n}d(x, 2))
grad(x, lambda x: F.batch_norm(x, None, None, m.ones(c), m.ones(c), training=True))
grad(x, lambda x: F.interpolate(x, scale_factor=2))
grad(x, lambda x: F.pad(x, (1, 1)))
grad(x, lambda x: m.cat([x, x], 1))
grad(x, lambda x: F.softmax(x, 1))
grad(ones(4, c, *[3] * n), lambda w: F.conv{n}d(x, w, padding=1))
m.nn.Sequential(m.nn.Conv{n}d(c, 4, 3), m.nn.BatchNorm{n}d(4), m.nn.MaxPool{n}d(2, 1)).to(memory_format=form)(x)
m.nn.Dropout(0.5)(x)
"""
FLAT = """
F.interpolate(x, scale_factor=2, mode="bilinear")
F.interpolate(x, size=(3, 3), mode="bicubic")
F.interpolate(x, size=(3, 3), mode="bilinear", antialias=True)
F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2, output_size=x.shape[2:])
F.pixel_shuffle(last(x.repeat(1, 4, 1, 1)), 2)
F.pixel_unshuffle(F.interpolate(x, scale_factor=2), 2)
F.channel_shuffle(x, c)
F.local_response_norm(x, 2)
F.pad(x, (1, 1, 1, 1), mode="reflect")
"""

_VOLUMES = "PyTorch keeps the format of volumes in the other pools, but in these neither they nor gradients have it"

DIFFERENT = {
    ("x + x.contiguous()", 2): "NumPy's result of operands in two orders is row-major; PyTorch's has that of the first",
    ("F.logsigmoid(x)", 2): "all functions of elements keep the order of x here; a few of PyTorch's do not",
    ("x.sort(1)", 2): "the values are gathered by the indices, in row-major order",
    ("F.pad(x, (1, 1, 1, 1), mode='circular')", 2): "all modes of padding keep the format here, and not only three",
    ("m.stack([x, x])", 2): "PyTorch's result has the strides of images in a batch more, which is no format",
    ("F.avg_pool3d(x, 2, 1, 1)", 3): _VOLUMES,
    ("F.adaptive_avg_pool3d(x, 3)", 3): _VOLUMES,
    ("F.adaptive_max_pool3d(x, 3)", 3): _VOLUMES,
    ('F.interpolate(x, size=[2] * n, mode="area")', 3): _VOLUMES,
    ("grad(x, lambda x: F.avg_pool3d(x, 2, 1))", 3): _VOLUMES,
    ("grad(x, lambda x: F.adaptive_avg_pool3d(x, 2))", 3): _VOLUMES,
    ("grad(x, lambda x: F.interpolate(x, scale_factor=2))", 3): _VOLUMES,
}


def programs():
    """Return (expression, number of spatial dimensions) of each program."""
    both = [(line.replace("{n}", str(n)), n) for n in (2, 3) for line in BOTH.strip().splitlines()]
    return both + [(line, 2) for line in FLAT.strip().splitlines()]


def layouts(m, expression, n, in_format):
    """Return the shapes and strides of the results of an expression, without the strides of sizes of 1."""
    form = (m.channels_last, m.channels_last_3d)[n - 2]
    x = m.arange(2.0 * 3 * 4 * 5 ** (n - 1)).reshape(2, 3, 4, *[5] * (n - 1))

    def last(x):
        return x.contiguous(memory_format=form)

    def grad(x, work):
        x = x.clone().requires_grad_()
        out = work(x)
        return m.autograd.grad(out, x, m.ones_like(out))

    given = {"m": m, "F": m.nn.functional, "ones": m.ones, "last": last, "grad": grad, "c": 3, "n": n, "form": form}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = eval(expression, given | {"x": last(x) if in_format else x})
    tensors = found if isinstance(found, tuple) else (found,)
    return [(tuple(t.shape), [s for s, size in zip(t.stride(), t.shape, strict=True) if size > 1]) for t in tensors]


def assert_same_layouts(expression, n, in_format):
    """Assert that the results of both libraries have the same shapes and strides."""
    assert layouts(rg, expression, n, in_format) == layouts(torch, expression, n, in_format)


@pytest.mark.parametrize("in_format", [True, False], ids=["channels last", "contiguous"])
@pytest.mark.parametrize(("expression", "n"), [case for case in programs() if case not in DIFFERENT])
def test_results_have_strides_as_in_pytorch(expression, n, in_format):
    assert_same_layouts(expression, n, in_format)


@pytest.mark.parametrize(("expression", "n"), DIFFERENT)
def test_exemptions_are_needed(expression, n):
    with pytest.raises(AssertionError):
        assert_same_layouts(expression, n, True)
