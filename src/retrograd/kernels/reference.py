"""The reference implementations of the C++ kernels in NumPy: their definition, fallback, and test oracle."""

import math
from functools import wraps as _wraps

import numpy as np

from retrograd.kernels import recurrent_formulas, update_formulas
from retrograd.kernels.attention_reference import attend as attend
from retrograd.kernels.attention_reference import attend_grad as attend_grad
from retrograd.kernels.conv_layout import conv_weight_sums as conv_weight_sums
from retrograd.kernels.conv_layout import sum_windows as sum_windows
from retrograd.kernels.erf_reference import erf as erf
from retrograd.kernels.erf_reference import erfc as erfc
from retrograd.kernels.erf_reference import erfinv as erfinv
from retrograd.kernels.flat_reference import are_disjoint as are_disjoint
from retrograd.kernels.flat_reference import read_flat as read_flat
from retrograd.kernels.flat_reference import write_flat as write_flat
from retrograd.kernels.fused_reference import fused_group as fused_group
from retrograd.kernels.grid_sample_reference import sample_points as sample_points
from retrograd.kernels.grid_sample_reference import sample_points_backward as sample_points_backward
from retrograd.kernels.grid_sample_reference import sample_slopes as sample_slopes
from retrograd.kernels.host_values import on_host as _on_host
from retrograd.kernels.overlap import separate as _separate
from retrograd.kernels.planned_reference import planned_calls as planned_calls
from retrograd.kernels.pooling_windows import window_argmax as window_argmax
from retrograd.kernels.pooling_windows import window_maxima as window_maxima
from retrograd.kernels.pooling_windows import window_maxima_backward as window_maxima_backward
from retrograd.kernels.pooling_windows import window_sums as window_sums
from retrograd.kernels.pooling_windows import window_sums_backward as window_sums_backward
from retrograd.kernels.recurrence_reference import recurrent_layer as recurrent_layer
from retrograd.kernels.recurrence_reference import recurrent_layer_grad as recurrent_layer_grad
from retrograd.kernels.segments_reference import segment_log_softmax as segment_log_softmax
from retrograd.kernels.segments_reference import segment_max as segment_max
from retrograd.kernels.segments_reference import segment_softmax as segment_softmax
from retrograd.kernels.segments_reference import segment_sum as segment_sum
from retrograd.kernels.sigmoid_reference import sigmoid as sigmoid

add, subtract, multiply, true_divide = np.add, np.subtract, np.multiply, np.true_divide
multiply_matrices, empty, broadcast_to = np.matmul, np.empty, np.broadcast_to


def sign(x):
    """Return 1 for positive numbers, -1 for negative ones; zeros are 0, and NaN stays NaN."""
    return np.sign(x)


def hypot(x, y):
    """Return sqrt(x^2 + y^2) without overflow, in single precision."""
    return np.hypot(x, y)


def nextafter(x, y):
    """Return the number next to x towards y; y where they are equal."""
    with np.errstate(all="ignore"):
        return np.nextafter(x, y)


def gelu(x):
    """Return x times the normal distribution function."""
    with np.errstate(invalid="ignore"):  # NaN at minus infinity
        return x * _normal(x)


def _gelu_slope(x):
    """Return the derivative of `gelu`: the normal distribution function plus x times the density."""
    far = 14.5 if x.dtype == np.float32 else 39.0  # from here on x times the density rounds to 0
    y = np.clip(x, -far, far)
    with np.errstate(under="ignore"):
        density = np.exp(-0.5 * np.square(y)) * x.dtype.type(1 / math.sqrt(2 * math.pi))
    return _normal(x) + y * density


def _normal(x):
    return x.dtype.type(0.5) * (1 + erf(x * x.dtype.type(math.sqrt(0.5))))


def gelu_grad(g, x):
    """Return g times the derivative of `gelu` at x."""
    return g * _gelu_slope(x)


_ROOT = 2 * math.sqrt(2 / math.pi)


def gelu_tanh(x):
    """Return x (1 + tanh(u)) / 2 for u = sqrt(2 / pi) (x + 0.044715 x^3)."""
    with np.errstate(invalid="ignore", over="ignore"):  # NaN at minus infinity
        return x * sigmoid(_ROOT * (x + 0.044715 * x * x * x))


def gelu_tanh_grad(g, x):
    """Return g times the derivative of `gelu_tanh` at x."""
    far = 14.5 if x.dtype == np.float32 else 39.0
    y = np.clip(x, -far, far)
    u = _ROOT * (y + 0.044715 * y * y * y)
    s, other = sigmoid(u), sigmoid(-u)
    with np.errstate(invalid="ignore"):  # NaN at infinity, as in PyTorch
        return g * (s + y * s * other * (_ROOT * (1 + 3 * 0.044715 * y * y)) + (x - x))


def sigmoid_grad(g, out):
    """Return g times the derivative of `sigmoid`, whose result is `out`."""
    return g * (out * (1 - out))


def silu(x):
    """Return x times its sigmoid."""
    with np.errstate(invalid="ignore", under="ignore"):  # NaN at minus infinity
        return x * sigmoid(x)


def silu_grad(g, x):
    """Return g times the derivative of `silu` at x."""
    with np.errstate(invalid="ignore", under="ignore"):
        return g * (sigmoid(x) * (1 + x * sigmoid(-x)))


def tanh_grad(g, out):
    """Return g times the derivative of tanh, whose result is `out`."""
    return g * (1 - out * out)


def relu(x):
    """Return max(x, 0); NaN stays NaN."""
    return np.maximum(x, x.dtype.type(0))


def relu_grad(g, out):
    """Return g where `out`, the result of relu, is not 0; else 0."""
    return np.where(out == 0, np.zeros((), g.dtype), g)


def softplus(x, beta, threshold):
    """Return log(1 + exp(z)) / beta for z = beta x, without overflow; x itself where z exceeds the threshold."""
    z = x * beta
    out = np.asarray(-np.abs(z))
    with np.errstate(under="ignore"):
        np.exp(out, out=out)
    np.log1p(out, out=out)
    out += np.maximum(z, 0)
    out /= beta
    out += 0  # no -0.0 if beta is negative
    np.copyto(out, x, where=z > threshold)
    return out


def softplus_grad(g, x, beta, threshold):
    """Return g times the derivative of `softplus` at x."""
    z = x * beta
    return np.where(z > threshold, g, g * sigmoid(z))


def scale_negative(x, y, slope):
    """Return x where y is positive, and slope times x elsewhere: at NaN too."""
    return np.where(y > 0, x, x * slope)


def between(x, y, low, high):
    """Return x where y is strictly between two numbers, and 0 elsewhere."""
    return np.where((y > low) & (y < high), x, np.zeros((), x.dtype))


def outside(x, y, low, high):
    """Return x where y is less than the first number, or more than the second, and 0 elsewhere, at NaN too."""
    return np.where((y < low) | (y > high), x, np.zeros((), x.dtype))


def clip(x, low, high):
    """Return x, no less than `low`, and no more than `high`."""
    return np.clip(x, low, high)


def lerp(x, y, weight):
    """Return x + weight (y - x), exact at both ends."""
    way = y - x
    if isinstance(weight, np.ndarray):
        return np.where(weight < 0.5, x + weight * way, y - way * (1 - weight))
    return x + weight * way if weight < 0.5 else y - way * (1 - weight)


def hardshrink(x, lambd):
    """Return 0 where abs(x) is at most lambd, and x elsewhere, at NaN too."""
    return np.where(np.abs(x) <= lambd, np.zeros((), x.dtype), x)


def softshrink(x, lambd):
    """Return x moved towards 0 by lambd, and 0 where it is no further from 0."""
    return x - np.clip(x, -lambd, lambd)


def hardsigmoid(x):
    """Return x + 3, clamped to the range from 0 to 6, divided by 6."""
    return np.clip(x + 3, 0, 6) / 6


def hardswish(x):
    """Return x times x + 3, which is clamped to the range from 0 to 6, divided by 6."""
    with np.errstate(invalid="ignore"):  # NaN at minus infinity
        return x * np.clip(x + 3, 0, 6) / 6


def hardswish_grad(g, x):
    """Return g times the derivative of `hardswish` at x: 0 at -3 and 1 at 3."""
    with np.errstate(invalid="ignore"):
        return np.where(x >= 3, g, np.where(x <= -3, np.zeros((), g.dtype), g * (x / 3 + x.dtype.type(0.5))))


def elu(x, alpha, scale, steep):
    """Return x where it is positive and alpha expm1(steep x) elsewhere, times scale."""
    with np.errstate(under="ignore"):
        return scale * np.where(x <= 0, alpha * np.expm1(steep * np.minimum(x, 0)), x)


def elu_grad(g, x, alpha, scale, steep):
    """Return g times the derivative of `elu` at x, from x: computed from the result it cancels near -alpha."""
    with np.errstate(under="ignore"):
        return g * (scale * np.where(x <= 0, alpha * steep * np.exp(steep * np.minimum(x, 0)), x.dtype.type(1)))


def squared_difference(x, target):
    """Return (x - target)^2."""
    return np.square(x - target)


def squared_difference_grad(g, x, target):
    """Return g times the derivative of `squared_difference` with respect to x."""
    return g * (2 * (x - target))


def huber(x, target, delta, divisor):
    """Return d^2 / 2 where d = abs(x - target) is at most delta, else delta (d - delta / 2), divided by a number."""
    d = np.abs(x - target)
    m = np.minimum(d, delta)
    return m / divisor * (d - m / 2)


def huber_grad(g, x, target, delta, divisor):
    """Return g times the derivative of `huber` with respect to x."""
    return g * (np.clip(x - target, -delta, delta) / divisor)


# In NumPy, a division by 0 warns.


def fmod(a, b):
    """Return the remainder of a / b with the sign of a; NaN without a divisor."""
    with np.errstate(invalid="ignore"):
        return np.fmod(a, b)


def remainder(a, b):
    """Return the remainder of a / b with the sign of b; NaN without a divisor."""
    with np.errstate(invalid="ignore"):
        return np.remainder(a, b)


def floor_divide(a, b):
    """Return a / b rounded down; infinite or NaN without a divisor."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        return np.floor_divide(a, b)


_MANY = 10_000  # number of elements from which on a branch-free `where` is faster
_BITS = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}  # by item size


def where(condition, x, other):
    """Return NumPy's `where`; for large arrays by bit masks, because mispredicted branches are slow."""
    bits = _BITS.get(x.dtype.itemsize)
    if not _on_host or max(condition.size, x.size, other.size) < _MANY or x.dtype != other.dtype or bits is None:
        return np.where(condition, x, other)
    mask = condition.astype(bits)
    np.negative(mask, out=mask)
    first, second = x.view(bits), other.view(bits)
    out = np.bitwise_and(first ^ second, mask)
    out ^= second
    return out.view(x.dtype)


def masked(kept, x, scale):
    """Return scale x where the mask is true, else 0 times x: dropout."""
    return x * np.where(kept, np.asarray(scale, x.dtype), np.zeros((), x.dtype))


def uniform(key, counter, out):
    """Fill `out` with values in [0, 1) of the Philox counters that follow the given one."""
    np.random.Generator(np.random.Philox(key=key, counter=counter)).random(out=out, dtype=out.dtype)


# ------------------------------------------------------------------------------------- floating-point formats


def float_to_half(x):
    """Return float32 in float16, rounded to nearest, ties to even; NaN keeps the first bits of its payload."""
    return x.astype(np.float16)


def half_to_float(x):
    """Return float16 in float32."""
    return x.astype(np.float32)


def float_to_bfloat16(x):
    """Return the bits, uint16, of float32 in bfloat16: rounded to nearest, ties to even; the quiet NaN for NaN."""
    bits = x.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(x), (bits >> 16 & 0x8000) | 0x7FC0, rounded).astype(np.uint16)


def bfloat16_to_float(x):
    """Return the float32 numbers of bits, uint16, of bfloat16."""
    return (x.astype(np.uint32) << 16).view(np.float32)


# ------------------------------------------------------------------------------------------- channels of images


def channel_moments(x):
    """Return the means and variances of images' channels, (n, c, l) to twice (c,); 0 without elements."""
    count = max(x.shape[0] * x.shape[2], 1)
    mean = x.sum((0, 2)) / x.dtype.type(count)
    return mean, np.square(x - mean[:, None]).sum((0, 2)) / x.dtype.type(count)


def channel_dots(x, y, a):
    """Return the sums of x (y - a) over n and l, for x and y (n, c, l) and a value a of each channel."""
    y = _away(y, a)
    if x.shape[2] < 16:  # vecdot is for long vectors
        return np.einsum("ncl,ncl->c", x, y)
    return np.add.reduce(np.vecdot(x, y), axis=0)


def channel_sums(x):
    """Return the sums of x (n, c, l) over n and l."""
    return np.add.reduce(np.add.reduce(x, axis=2), axis=0)


def channel_shift(x, a, p, q):
    """Return (x - a) p + q for x (n, c, l) and per-channel values a, p, q."""
    out = x - a[:, None]
    out *= p[:, None]
    out += q[:, None]
    return out


def _away(y, a):
    """Return y - a, without a pass over y if that is y."""
    return y - a[:, None] if not _on_host or a.any() else y


def channel_mix(x, p, q, y, r, a):
    """Return x p + (y - a) r + q for x and y (n, c, l) and per-channel values p, q, r, a."""
    out = x * p[:, None]
    out += _away(y, a) * r[:, None]
    out += q[:, None]
    return out


# ------------------------------------------------------------------------------------ gates of recurrent networks


def lstm(xi, xf, xg, xo, hi, hf, hg, ho, before):
    """Return the states h and c after a step of an LSTM from the gates' input and state parts, and the previous c."""
    return recurrent_formulas.lstm_step(xi + hi, xf + hf, xg + hg, xo + ho, before, sigmoid, np.tanh)


def lstm_grad(gh, gc, xi, xf, xg, xo, hi, hf, hg, ho, before, out):
    """Write the cotangents of the gates and of the previous c to out, from those of the new h and c."""
    i, f, g, o = _lstm_gates(xi, xf, xg, xo, hi, hf, hg, ho)
    top = np.tanh(f * before + i * g)
    gc = gc + gh * o * (1 - top * top)
    found = gc * g * (i * (1 - i)), gc * before * (f * (1 - f)), gc * i * (1 - g * g), gh * top * (o * (1 - o)), gc * f
    _write(out, *found)
    return out


def _lstm_gates(xi, xf, xg, xo, hi, hf, hg, ho):
    return sigmoid(xi + hi), sigmoid(xf + hf), np.tanh(xg + hg), sigmoid(xo + ho)


def gru(xr, xz, xn, hr, hz, hn, h):
    """Return the state after a step of a GRU from the gates' input and state parts, and the previous state."""
    return recurrent_formulas.gru_step(xr + hr, xz + hz, xn, hn, h, sigmoid, np.tanh)


def gru_grad(g, xr, xz, xn, hr, hz, hn, h, out):
    """Write the cotangents of r, z, xn, hn and h to out; those of r and z are the same for input and state parts."""
    r, z = sigmoid(xr + hr), sigmoid(xz + hz)
    n = np.tanh(xn + r * hn)
    of_new = g * (1 - z) * (1 - n * n)
    found = of_new * hn * (r * (1 - r)), g * (h - n) * (z * (1 - z)), of_new, of_new * r, g * z
    _write(out, *found)
    return out


# ------------------------------------------------------------------------------------------ steps of optimizers


def _writing(formula):
    """Return the kernel of an optimizer step's formula: it writes the results to `out`."""

    @_wraps(formula)
    def step(*operands, out):
        _write(out, *formula(*operands))

    return step


def _write(out, *results):
    """Write results after all operands have been read, since they may share memory."""
    for to, result in zip(out, results, strict=True):
        to[...] = result


descent, momentum = _writing(update_formulas.descent), _writing(update_formulas.momentum)
adam, amsgrad = _writing(update_formulas.adam), _writing(update_formulas.amsgrad)


# --------------------------------------------------------------------------------------------------------- rows


def standardize_rows(x, eps):
    """Return for each row (x - mean) / sqrt(variance + eps), its mean and its variance."""
    return _standard(x, eps, True)[:3]


def _standard(x, eps, center):
    """Return the rows with mean 0 and variance 1, their means, variances and factors; 0 as the means without center."""
    with np.errstate(invalid="ignore", divide="ignore"):
        count = np.asarray(x.shape[-1], x.dtype)
        mean = np.add.reduce(x, axis=-1) / count if center else 0
        away = x - mean[..., None] if center else x
        variance = np.add.reduce(away * away, axis=-1) / count
        scale = 1 / np.sqrt(variance + eps)
        return np.multiply(away, scale[..., None], out=away if center else None), mean, variance, scale[..., None]


def column_sums(x):
    """Return the sum of each column, by a product with ones: BLAS sums several times faster than NumPy."""
    with np.errstate(invalid="ignore"):
        return np.matmul(np.ones(x.shape[-2], x.dtype), x)


def affine_rows(x, weight, bias):
    """Return x * weight + bias for each row of x; weight and bias are rows."""
    out = x * weight
    out += bias
    return out


def softmax_rows(x, axis=-1):
    """Return exp(x) / sum(exp(x)) of each row; with NumPy, rows may be along any axis."""
    with np.errstate(invalid="ignore", under="ignore"):  # NaN where every number is -inf
        e = np.asarray(x - np.max(x, axis=axis, keepdims=True, initial=-np.inf))
        np.exp(e, out=e)
    e /= np.sum(e, axis=axis, keepdims=True)
    return e


def log_softmax_rows(x, axis=-1):
    """Return log(softmax(x)) of each row, without taking the logarithm of a small number."""
    with np.errstate(invalid="ignore", divide="ignore", under="ignore"):
        shifted = np.asarray(x - np.max(x, axis=axis, keepdims=True, initial=-np.inf))
        shifted -= np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))
    return shifted


def softmax_grad_rows(g, out, axis=-1):
    """Return the derivative of `softmax_rows`, whose result is `out`, times g; it is symmetric."""
    return out * (g - np.sum(g * out, axis=axis, keepdims=True))


def log_softmax_grad_rows(g, out, axis=-1):
    """Return the transposed derivative of `log_softmax_rows`, whose result is `out`, times g."""
    with np.errstate(under="ignore"):
        return g - np.exp(out) * np.sum(g, axis=axis, keepdims=True)


def softmax_columns(x):
    """Return `softmax_rows` of the columns of matrices."""
    return softmax_rows(x, -2)


def log_softmax_columns(x):
    """Return `log_softmax_rows` of the columns of matrices."""
    return log_softmax_rows(x, -2)


def softmax_grad_columns(g, out):
    """Return `softmax_grad_rows` of the columns of matrices."""
    return softmax_grad_rows(g, out, -2)


def log_softmax_grad_columns(g, out):
    """Return `log_softmax_grad_rows` of the columns of matrices."""
    return log_softmax_grad_rows(g, out, -2)


def cumsum_rows(x, order="C"):
    """Return the cumulative sums of rows, each in the order of the elements; `order` is the order of the memory."""
    return np.cumsum(x, axis=-1)


def cumsum_columns(x, order="C"):
    """Return the cumulative sums of the columns of matrices; `order` is the order of the memory."""
    return np.cumsum(x, axis=-2)


def cumprod_rows(x, order="C"):
    """Return the cumulative products of rows, each in the order of the elements; `order` is the order of the memory."""
    with np.errstate(all="ignore"):
        return np.cumprod(x, axis=-1)


def cummax_rows(x, order="C"):
    """Return the maxima so far in each row, and the indices of the last of equal ones; NaN wins."""
    return _extremes_so_far(x, np.maximum)


def cummin_rows(x, order="C"):
    """Return the minima so far in each row, as `cummax_rows`."""
    return _extremes_so_far(x, np.minimum)


def _extremes_so_far(x, choose):
    best = choose.accumulate(x, axis=-1)
    hit = (x == best) | np.isnan(x)
    return best, np.maximum.accumulate(np.where(hit, np.arange(x.shape[-1]), 0), axis=-1)


def product_rows(x):
    """Return the products of rows."""
    with np.errstate(all="ignore"):
        return np.multiply.reduce(x, axis=-1)


def class_loss_rows(x, target, ignored):
    """Return -log_softmax(x) at each row's class, which must be in range; 0 where that is `ignored`."""
    at = np.where(target == ignored, 0, target)[..., None]
    loss = 0 - np.take_along_axis(log_softmax_rows(x), at, axis=-1)[..., 0]  # 0, not -0, for probability 1
    return np.where(target == ignored, np.zeros((), x.dtype), loss)


def class_grad_rows(x, target, ignored, g):
    """Return the derivative of `class_loss_rows` times g for each row: g (softmax(x) - 1 at its class)."""
    out = softmax_rows(x)
    at = np.where(target == ignored, 0, target)[..., None]
    np.put_along_axis(out, at, np.take_along_axis(out, at, axis=-1) - 1, axis=-1)
    out *= np.asarray(g)[..., None]
    out[target == ignored] = 0
    return out


def variance_rows(x, freedom):
    """Return the sum of the squares of each row's differences from its mean, divided by `freedom`."""
    apart = x - np.add.reduce(x, axis=-1, keepdims=True) / x.dtype.type(x.shape[-1])
    return np.add.reduce(np.square(apart), axis=-1) / freedom


def flag_classes(target, ignored, classes):
    """Return whether classes are out of range and not `ignored`; NumPy warns of an invalid value if any is."""
    return flag_zeros(np.where((target == ignored) | ((target >= 0) & (target < classes)), 1.0, 0.0))


def flag_zeros(x):
    """Return whether elements are 0; NumPy warns of an invalid value if any is."""
    return np.isnan(np.multiply(np.inf, x)) & (x == 0)


def norm_rows(x, weight, bias, eps, center):
    """Return (x - mean) / sqrt(variance + eps) * weight + bias of each row; if center is 0, the mean is taken as 0."""
    return _standard(x, eps, center)[0] * weight + bias


def norm_grad_rows(g, x, weight, eps, center):
    """Return the derivatives of `norm_rows` by x, by the weight and by the bias, times g."""
    y, _, _, scale = _standard(x, eps, center)
    h = g * weight[..., None, :]
    with np.errstate(invalid="ignore", divide="ignore"):
        count = np.asarray(x.shape[-1], x.dtype)
        back = h - y * (np.sum(h * y, axis=-1, keepdims=True) / count)
        if center:
            back -= np.sum(h, axis=-1, keepdims=True) / count
    return back * scale, np.sum(g * y, axis=-2), np.sum(g, axis=-2)


# ----------------------------------------------------------------------------------------------------- indexing

_FEW_COLUMNS = 8  # up to here, columns are added one by one: faster than indexing single elements
_BLOCK = 1 << 16  # indices of single elements that stay in the cache


@_separate(1)
def sum_rows(rows, ids, out):
    """Set out[b, i] to the sum of rows[b, j] with ids[j] == i; return False if an id is out of range.

    NumPy's `ufunc.at` is several times faster in one dimension than in two, so this loops over columns or flattens.
    """
    size, columns = out.shape[1:]
    if not _there(ids, size):
        return False
    out[...] = 0
    for given, made in zip(rows, out, strict=True):
        if columns <= _FEW_COLUMNS:
            for c in range(columns):
                np.add.at(made[:, c], ids, given[:, c])
        else:
            _add_elements(made, ids, given)
    return True


def add_rows(rows, ids, x, out):
    """Set out to x plus the sums of `sum_rows`; return False if an id is out of range."""
    sums = np.empty_like(out)  # out may share memory with x
    if not sum_rows(rows, ids, sums):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        np.add(x, sums, out=out)
    return True


def _add_elements(out, ids, rows):
    columns = rows.shape[1]
    step = max(_BLOCK // columns, 1)
    for start in range(0, len(rows), step):
        places = ids[start : start + step, None] * columns + np.arange(columns)
        np.add.at(out.reshape(-1), places.reshape(-1), rows[start : start + step].reshape(-1))


def take_along(x, index, out):
    """Set out[b, j, c] to x[b, index[b, j, c], c]; return False if an index is out of range."""
    if not _there(index, x.shape[1]):
        return False
    out[...] = np.take_along_axis(x, index, 1)
    return True


@_separate(1)
def sum_along(values, index, out):
    """Set out[b, i, c] to the sum of values[b, j, c] with index[b, j, c] == i; return False if out of range."""
    if not _there(index, out.shape[1]):
        return False
    out[...] = 0
    batch, size, columns = out.shape
    places = index * columns + np.arange(columns)
    places += np.arange(batch)[:, None, None] * (size * columns)
    np.add.at(out.reshape(-1), places.reshape(-1), values.reshape(-1))
    return True


def _there(ids, size):
    return not _on_host or not ids.size or (ids.min() >= 0 and ids.max() < size)


# ----------------------------------------------------------------------------------------------- memory, threads


def caching(function):
    """Return the function: its results use NumPy's memory."""
    return function


def threaded(ufunc):
    """Return the ufunc: all of its work is done by the caller's thread."""
    return ufunc


def with_own_loops(ufunc):
    """Return the ufunc: all of its loops are NumPy's."""
    return ufunc


def small_matmul(otherwise):
    """Return the function of two matrices: there is no shorter way for small ones."""
    return otherwise


def small_linear(otherwise):
    """Return the function of x, weight and bias: there is no shorter way for small ones."""
    return otherwise


def small_class_loss(otherwise):
    """Return the function of logits, targets and the ignored class: there is no shorter way for few rows."""
    return otherwise


def small_class_grad(otherwise):
    """Return the function of g, logits, targets and the ignored class: there is no shorter way for few rows."""
    return otherwise


def cached_bytes():
    """Return 0: no free memory is kept."""
    return 0


def set_cache_limit(limit):
    """Do nothing, and return 0, because no free memory is kept."""
    return 0


def get_num_threads():
    """Return 1: NumPy's own loops are single-threaded."""
    return 1


def get_vector_bytes():
    return 0


def set_vector_bytes(most):
    """Do nothing: NumPy chooses its vectors."""


def set_num_threads(most):
    """Do nothing."""


def set_grain_size(least):
    """Do nothing, because no work is shared among threads."""


def get_chunk_size(n, min_chunk, threads):
    """Return n, because no work is shared among threads."""
    return n


def address(x):
    """Return the address of the first element of an array; NumPy describes all of the array for it."""
    return x.__array_interface__["data"][0]


def row_major(x):
    """Return a copy of an array in row-major order."""
    return np.array(x, order="C", copy=True)


_FACTOR = 6364136223846793005  # of the polynomial, as in checksum.cpp
_BLOCK = 4096  # words


def checksum(buffers):
    """Return a 32-bit checksum of the bytes of the buffers of a list, in their order.

    It is a polynomial of words of 64 bits modulo 2**64, so that equal words in another order have another sum.
    """
    powers = np.multiply.accumulate(np.full(_BLOCK, _FACTOR, np.uint64))[::-1]  # from the last one: factor, square ...
    found = 0
    for buffer in buffers:
        data = bytes(buffer)
        words = np.frombuffer(data + bytes(-len(data) % 8), np.uint64)
        words = words ^ (words >> np.uint64(32))  # of short floats most bits of the lower half are zero
        for block in np.split(words, range(_BLOCK, words.size, _BLOCK)):
            total = int(np.dot(block, powers[_BLOCK - block.size :]))
            found = (found * pow(_FACTOR, block.size, 1 << 64) + total) % (1 << 64)
    return ((found ^ (found >> 32)) * _FACTOR % (1 << 64)) >> 32
