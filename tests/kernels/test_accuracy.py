"""The C++ kernels are accurate to a few units in the last place, for any values and memory layout."""

import numpy as np
import pytest

from retrograd import kernels
from retrograd.kernels import chosen, reference

from ..case_groups import group_cases

pytestmark = pytest.mark.skipif(not kernels.compiled, reason="the kernels are not compiled")

DTYPES = (np.float32, np.float64)
# By name: how many arrays it takes, its settings, by how many eps it may be wrong: relative, and of the operands.
OF_NUMBERS = {
    "erf": (1, (), 8, 4),
    "erfc": (1, (), 8, 0),
    "sign": (1, (), 0, 0),
    "gelu": (1, (), 8, 8),
    "gelu_grad": (2, (), 8, 8),
    "gelu_tanh": (1, (), 8, 4),
    "gelu_tanh_grad": (2, (), 8, 16),
    "sigmoid": (1, (), 6, 0),
    "sigmoid_grad": (2, (), 6, 2),
    "silu": (1, (), 6, 0),
    "silu_grad": (2, (), 8, 8),
    "tanh_grad": (2, (), 6, 4),
    "relu": (1, (), 0, 0),
    "relu_grad": (2, (), 0, 0),
    "softplus": (1, (2.0, 20.0), 8, 0),
    "softplus_grad": (2, (2.0, 20.0), 8, 0),
    "scale_negative": (2, (0.375,), 0, 0),  # a factor that both dtypes have exactly
    "between": (2, (-0.5, 0.5), 0, 0),
    "outside": (2, (-0.5, 0.5), 0, 0),
    "clip": (1, (-0.5, 0.5), 0, 0),
    "hardshrink": (1, (0.5,), 0, 0),
    "softshrink": (1, (0.5,), 1, 0),
    "elu": (1, (1.5, 2.0, 0.5), 6, 0),
    "elu_grad": (2, (1.5, 2.0, 0.5), 6, 0),
    "squared_difference": (2, (), 2, 0),
    "squared_difference_grad": (3, (), 2, 0),
    "hardsigmoid": (1, (), 2, 1),
    "hardswish": (1, (), 4, 0),
    "hardswish_grad": (2, (), 4, 1),
    "huber": (2, (1.5, 2.0), 4, 0),
    "huber_grad": (3, (1.5, 2.0), 4, 0),
}
OF_ROWS = {"softmax_rows": 1, "log_softmax_rows": 1, "softmax_grad_rows": 2, "log_softmax_grad_rows": 2}
HARD = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30, -1e-30, 1e30, -1e30, 87.2, -87.2, -88.5, -104.0, -708.9, 1e-6, -40.0]
LAYOUTS = ("whole", "every other", "backwards", "columns", "misaligned", "one", "none")


def wide(array):
    return array.astype(np.float64 if array.dtype == np.float32 else np.longdouble)


def check(got, expected, ulps, scale=0.0):
    eps, tiny = np.finfo(got.dtype).eps, np.finfo(got.dtype).tiny
    np.testing.assert_allclose(got, expected.astype(got.dtype), rtol=ulps * eps, atol=scale * eps + 4 * tiny)


def normal(dtype, *shape, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) * 3).astype(dtype)


def laid(array, layout):
    """Return the values of a 2-d array in another memory layout."""
    if layout == "misaligned":
        out = np.empty(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
        out[...] = array
        return out
    parts = {"every other": np.s_[:, ::2], "backwards": np.s_[::-1, ::-1], "one": np.s_[:1, :1], "none": np.s_[:, :0]}
    return array.T if layout == "columns" else array[parts.get(layout, np.s_[:])]


@group_cases
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_functions_of_numbers_are_exact_to_a_few_ulp(name, dtype):
    arrays, settings, ulps, scale = OF_NUMBERS[name]
    x = np.linspace(-30, 30, 5001).astype(dtype)
    operands = [normal(dtype, 5001)] * (arrays - 1) + [x]
    got = getattr(chosen, name)(*operands, *map(dtype, settings))
    if dtype == np.float64 and "gelu" in name:  # the reference's erf is in double precision
        scale *= 4
    largest = max(1.0, float(np.abs(operands[0]).max()))
    check(got, getattr(reference, name)(*map(wide, operands), *settings), ulps, scale * largest)


@group_cases
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_infinities_nan_zeros_and_extremes_are_those_of_the_reference(name, dtype):
    arrays, settings, ulps, scale = OF_NUMBERS[name]
    x = np.array(HARD, dtype)
    operands = [np.ones_like(x)] * (arrays - 1) + [x]
    got = getattr(chosen, name)(*operands, *map(dtype, settings))
    with np.errstate(all="ignore"):
        check(got, getattr(reference, name)(*operands, *map(dtype, settings)), ulps, scale + 1)


@group_cases
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_functions_of_numbers_take_any_strides(name, layout):
    arrays, settings, *_ = OF_NUMBERS[name]
    operands = [laid(normal(np.float32, 37, 53, seed=i), layout) for i in range(arrays)]
    whole = getattr(chosen, name)(*map(np.ascontiguousarray, operands), *map(np.float32, settings))
    check(getattr(chosen, name)(*operands, *map(np.float32, settings)), whole, 4, 1)
    out = np.full((106, 106), 7, np.float32)[: 2 * whole.shape[0] : 2, : 2 * whole.shape[1] : 2]
    getattr(chosen, name)(*operands, *map(np.float32, settings), out=out)
    check(out, whole, 4, 1)


@group_cases
@pytest.mark.parametrize("size", [0, 1, 2, 15, 16, 17, 31, 32, 33, 1023, 1024, 1025, 3000])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OF_ROWS)
def test_functions_of_rows_are_exact_to_a_few_ulp(name, dtype, size):
    operands = [normal(dtype, 5, size, seed=i) for i in range(OF_ROWS[name])]
    if "grad" in name:
        operands[1] = getattr(reference, name.replace("_grad", ""))(operands[1])
    got = getattr(chosen, name)(*operands)
    check(got, getattr(reference, name)(*map(wide, operands)), 16, 16 * (1 if name == "softmax_rows" else size**0.5))


@group_cases
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["softmax_rows", "log_softmax_rows"])
@pytest.mark.parametrize(
    "row",
    [
        [-np.inf] * 3,
        [-np.inf, 0.0, 1.0],
        [np.inf, 0.0, 1.0],
        [np.nan, 0.0, 1.0],
        [1e30, -1e30, 1e30],
        [3e38, -3e38, 0.0],
        [-1e-40, 1e-40, 0.0],
        [0.0, -90.0, -1000.0],
    ],
)
@pytest.mark.parametrize("repeated", [1, 40])
def test_rows_of_hard_numbers_are_those_of_the_reference(name, dtype, row, repeated):
    x = np.array([row * repeated], dtype)
    with np.errstate(all="ignore"):
        check(getattr(chosen, name)(x), getattr(reference, name)(x), 16, 4)


@group_cases
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", OF_ROWS)
@pytest.mark.parametrize("columns", [10, 53])  # softmax has a loop for short rows
def test_functions_of_rows_take_any_strides(name, layout, columns):
    operands = [laid(normal(np.float32, 37, columns, seed=i), layout) for i in range(OF_ROWS[name])]
    whole = getattr(chosen, name)(*map(np.ascontiguousarray, operands))
    np.testing.assert_array_equal(getattr(chosen, name)(*operands), whole)
    out = np.full((106, 106), 7, np.float32)[: 2 * whole.shape[0] : 2, : 2 * whole.shape[1] : 2]
    np.testing.assert_array_equal(getattr(chosen, name)(*operands, out=out), whole)


@pytest.mark.parametrize("layout", LAYOUTS[:6])
@pytest.mark.parametrize("dtype", DTYPES)
def test_losses_of_classes_and_their_slopes_are_those_of_the_reference(dtype, layout):
    x = laid(normal(dtype, 37, 53), layout)
    rows, classes = x.shape
    target = np.random.default_rng(1).integers(0, classes, rows)
    target[::3] = -100
    g = normal(dtype, rows, seed=2)
    check(chosen.class_loss_rows(x, target, -100), reference.class_loss_rows(wide(x), target, -100), 8, 16)
    got = chosen.class_grad_rows(x, target, -100, g)
    check(got, reference.class_grad_rows(wide(x), target, -100, wide(g)), 16, 16)


@group_cases
@pytest.mark.parametrize("layout", LAYOUTS[:6])
@pytest.mark.parametrize("center", [0, 1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_norms_of_rows_and_their_slopes_are_those_of_the_reference(dtype, center, layout):
    x, g = (laid(normal(dtype, 37, 53, seed=i), layout) for i in range(2))
    weight, bias = (laid(normal(dtype, 1, x.shape[1], seed=2 + i)[:, ::-1], "whole")[0] for i in range(2))
    eps = dtype(1e-3)
    got = chosen.norm_rows(x, weight, bias, eps, dtype(center))
    check(got, reference.norm_rows(wide(x), wide(weight), wide(bias), eps, center), 16, 200)
    found = chosen.norm_grad_rows(g, x, weight, eps, dtype(center))
    for one, other in zip(found, reference.norm_grad_rows(wide(g), wide(x), wide(weight), eps, center), strict=True):
        check(one, other, 16, 3000)


FAR = {  # rows by which a variance from one pass loses its digits
    "first apart": lambda z: np.concatenate([[1e4], z]),
    "first zeros": lambda z: np.concatenate([np.zeros(100), 1000 + z]),
    "far from zero": lambda z: 1e4 + z,
    "all but alike": lambda z: 3e5 + (np.arange(z.size) == 7),
    "alike": lambda z: np.full(z.size, 0.1),
    "huge": lambda z: np.sign(z) * 1e15,
    "with nan": lambda z: np.concatenate([z, [np.nan]]),
    "with inf": lambda z: np.concatenate([[-np.inf], z]),
}


@pytest.mark.parametrize("center", [0, 1])
@pytest.mark.parametrize("row", FAR)
def test_norms_of_rows_far_from_their_first_number_keep_their_digits(row, center):
    x = FAR[row](np.random.default_rng(0).standard_normal(3000)).astype(np.float32)[None]
    g, weight, bias = normal(np.float32, *x.shape, seed=1), *normal(np.float32, 2, x.shape[1], seed=2)
    eps = np.float32(1e-3)
    with np.errstate(all="ignore"):
        size = (
            np.nan_to_num(np.abs(np.mean(wide(x))) / np.sqrt(np.var(wide(x)) + eps), nan=0.0) * center
        )  # the mean is rounded as x is
        exact = reference.norm_rows(*map(wide, (x, weight, bias)), eps, center)
        slopes = reference.norm_grad_rows(*map(wide, (g, x, weight)), eps, center)
    check(chosen.norm_rows(x, weight, bias, eps, np.float32(center)), exact, 16, 16 + 4 * size)
    found = chosen.norm_grad_rows(g, x, weight, eps, np.float32(center))
    for one, other in zip(found, slopes, strict=True):
        check(one, other, 64, 200 * (1 + size))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["adam", "momentum"])
def test_steps_of_optimizers_write_into_what_they_read(name, layout):
    settings = (-1.0, 0.1, 0.9, 0.8, 0.99, 0.2, 0.01, 1e-8, 0.05) if name == "adam" else (-1.0, 0.1, 0.9, 0.8, 0.3, 0.2)
    arrays = [laid(np.abs(normal(np.float32, 37, 53, seed=i)), layout) for i in range(4 if name == "adam" else 3)]
    written = [0, 2, 3] if name == "adam" else [0, 2]
    expected = [wide(a) for a in arrays]
    getattr(reference, name)(*expected, *settings, out=tuple(expected[i] for i in written))
    getattr(chosen, name)(*arrays, *map(np.float32, settings), out=tuple(arrays[i] for i in written))
    for one, other in zip(arrays, expected, strict=True):
        check(one, other, 16, 16)


CHANNELS = {
    "channel_moments": "x",
    "channel_dots": "xxp",
    "channel_sums": "x",
    "channel_shift": "xppp",
    "channel_mix": "xppxpp",
}
TERMS = {"channel_dots": 3 * 18**0.5, "channel_sums": 3}  # the root mean square of what is added up, x (y - a) or x


@group_cases
@pytest.mark.parametrize(
    "shape",
    [(5, 7, 33), (1, 3, 1030), (70, 40, 1), (3000, 19, 1), (0, 3, 1), (2, 3, 0), (0, 3, 4), (3, 1, 16), (40, 64, 100)],
)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CHANNELS)
def test_functions_of_channels_are_exact_to_a_few_ulp(name, dtype, shape):
    n, c, size = shape
    layouts = (lambda x: x, lambda x: np.repeat(x, 2, -1)[..., ::2], lambda x: np.asfortranarray(x))
    for layout in layouts:
        each = [normal(dtype, *(shape if kind == "x" else (c,)), seed=i) for i, kind in enumerate(CHANNELS[name])]
        each = [layout(x) if x.ndim == 3 else x for x in each]
        got, expected = getattr(chosen, name)(*each), getattr(reference, name)(*map(wide, each))
        parts = zip(got, expected, strict=True) if isinstance(got, tuple) else [(got, expected)]
        for mine, part in parts:
            check(mine, part, 16, 16 * TERMS[name] * (n * size + 1) ** 0.5 if name in TERMS else 64)


def test_means_far_from_zero_cost_variances_no_digits():
    x = (normal(np.float32, 4, 3, 500) + 10_000).astype(np.float32)
    np.testing.assert_allclose(chosen.channel_moments(x)[1], x.astype(np.float64).var((0, 2)), rtol=1e-4)


STEPS = {"lstm": (9, 2), "lstm_grad": (11, 5), "gru": (7, 1), "gru_grad": (8, 5)}


@group_cases
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", STEPS)
def test_steps_of_recurrent_networks_are_exact_to_a_few_ulp(name, dtype, layout):
    inputs, outputs = STEPS[name]
    operands = [laid(normal(dtype, 37, 53, seed=i), layout) for i in range(inputs)]
    out = tuple(np.full_like(operands[0], 7) for _ in range(outputs))
    getattr(chosen, name)(*operands, out=out)
    wider = tuple(map(wide, out))
    expected = getattr(reference, name)(*map(wide, operands), **({"out": wider} if "grad" in name else {}))
    for got, part in zip(out, expected if isinstance(expected, tuple) else (expected,), strict=True):
        check(got, part, 8, 64)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gates_stay_gates_at_the_ends_of_numbers(dtype):
    x = np.array(HARD, dtype)
    zeros, ones = np.zeros_like(x), np.ones_like(x)
    with np.errstate(all="ignore"):
        for name, operands in {
            "lstm": [x, zeros, x, zeros, zeros, zeros, zeros, zeros, ones],
            "gru": [x, x, x, zeros, zeros, x, ones],
        }.items():
            got, expected = getattr(chosen, name)(*operands), getattr(reference, name)(*operands)
            for mine, part in zip(np.atleast_2d(got), np.atleast_2d(expected), strict=True):
                check(mine, part, 8, 4)


def test_the_mean_of_many_numbers_far_from_zero_keeps_its_digits():
    x = (1000 + np.random.default_rng(0).standard_normal((1, 100_000))).astype(np.float32)
    _, mean, variance = chosen.standardize_rows(x, np.float32(0))
    assert abs(mean[0] - x.astype(np.float64).mean()) < 1e-4
    assert abs(variance[0] - x.astype(np.float64).var()) < 1e-4


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_slope_of_gelu_is_its_difference_quotient(dtype):
    x, step = np.linspace(-5, 5, 101).astype(dtype), dtype(1e-2)
    quotient = (reference.gelu(x + step) - reference.gelu(x - step)) / (2 * step)
    np.testing.assert_allclose(chosen.gelu_grad(np.ones_like(x), x), quotient, atol=1e-4)
