"""Linear filters: recursive ones, Savitzky and Golay's, resampling, and the responses of filters."""

import math

from retrograd.autograd import Function
from retrograd.core.dtype import is_floating
from retrograd.interop.numpy_protocol import functions
from retrograd.interop.numpy_protocol.table import (
    O,
    as_floating,
    cast,
    holds_tensor,
    only_default,
    promote_operands,
    refuse,
    tensor,
    values,
)
from retrograd.scipy._array_like import ArrayLike, ArrayOrSequence
from retrograd.scipy._mirror import on_tensors, scipy_member
from retrograd.scipy.linalg import companion

_signal = on_tensors("scipy.signal")


def _signal_member(name):
    return getattr(scipy_member("scipy.signal"), name)


class RecursiveFilter(Function):
    """Return y with y[n] = w[n] - sum(a[k] y[n - 1 - k]) along the last axis.

    Its adjoint by w is the same filter backwards in time.
    """

    @staticmethod
    def forward(a, w):
        return tensor(_signal_member("lfilter")([1.0], [1.0, *values(a)], values(w)))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output)
        ctx.save_for_forward(inputs[0], output)

    @staticmethod
    def vmap(info, in_dims, a, w):
        """Filter all signals at once for one filter, and one after the other for several filters."""
        if in_dims[0] is None:
            return RecursiveFilter.apply(a, O.movedim(w, in_dims[1], 0)), 0
        a = O.movedim(a, in_dims[0], 0)
        signals = [w] * info.batch_size if in_dims[1] is None else O.unbind(O.movedim(w, in_dims[1], 0))
        return O.stack([RecursiveFilter.apply(a[i], signal) for i, signal in enumerate(signals)]), 0

    @staticmethod
    def backward(ctx, g):
        a, y = ctx.saved_tensors
        last = (y.ndim - 1,)
        moved = O.flip(RecursiveFilter.apply(O.conj(a), O.flip(g, last)), last)
        slopes = [-O.sum(O.conj(delayed) * moved) for delayed in _delays(y, a.shape[0])]
        return (O.stack(slopes) if slopes else O.zeros_like(a)), moved

    @staticmethod
    def jvp(ctx, da, dw):
        a, y = ctx.saved_tensors
        moved = O.zeros_like(y) if dw is None else dw
        if da is not None:
            for k, delayed in enumerate(_delays(y, a.shape[0])):
                moved = moved - da[k] * delayed
        return RecursiveFilter.apply(a, moved)


def _delays(y, count):
    """Return y, delayed by 1 to `count` samples."""
    size = y.shape[-1]
    zero = O.zeros_like(y)
    return [O.cat([zero[..., : min(k, size)], y[..., : max(size - k, 0)]], -1) for k in range(1, count + 1)]


@_signal
def lfilter(b: ArrayLike, a: ArrayLike, x: ArrayOrSequence, axis=-1, zi=None):
    """Return x filtered along an axis by the rational transfer function b / a; with the state zi also the last state.

    b, a: vectors of coefficients; x: real or complex; zi: the shape of x, with max(len(a), len(b)) - 1 along the axis.
    The result is differentiable to any order in all of them.

    After `scipy.signal.lfilter`.

    >>> import retrograd as rg
    >>> lfilter([0.5], [1.0, -0.5], rg.ones(4))
    tensor([0.5000, 0.7500, 0.8750, 0.9375], dtype=float64)
    """
    given = (b, a, x) if zi is None else (b, a, x, zi)
    b, a, x, *state = promote_operands(*[as_floating(part) for part in given])
    if b.ndim != 1 or a.ndim != 1:
        raise ValueError(f"signal.lfilter: b and a must be vectors, got shapes {tuple(b.shape)} and {tuple(a.shape)}")
    b, a = b / a[0], a[1:] / a[0]
    x = O.movedim(x, axis, -1)
    w = b[0] * x
    for coefficient, delayed in zip(O.unbind(b[1:]), _delays(x, b.shape[0] - 1), strict=True):
        w = w + coefficient * delayed
    if not state:
        return O.movedim(RecursiveFilter.apply(a, w) if a.shape[0] else w, -1, axis)
    initial = O.movedim(state[0], axis, -1)
    order, size = max(a.shape[0], b.shape[0] - 1), x.shape[-1]
    if initial.shape[-1] != order:
        raise ValueError(f"signal.lfilter: zi must have {order} elements along the axis, got {initial.shape[-1]}")
    if size < order:
        refuse("signal.lfilter", f"a signal of {size} samples is shorter than the state of {order}")
    gap = O.zeros((*x.shape[:-1], size - order), dtype=x.dtype)
    w = w + O.cat([O.expand(initial, (*x.shape[:-1], order)), gap], -1)
    y = RecursiveFilter.apply(a, w) if a.shape[0] else w
    return O.movedim(y, -1, axis), O.movedim(_last_state(b[1:], a, x, y, order), -1, axis)


def _last_state(b, a, x, y, order):
    """Return the state of the transposed direct form after all samples."""
    state = []
    for i in range(order):
        total = O.zeros_like(x[..., 0])
        for j in range(i, order):
            n = x.shape[-1] - 1 - (j - i)
            if j < b.shape[0]:
                total = total + b[j] * x[..., n]
            if j < a.shape[0]:
                total = total - a[j] * y[..., n]
        state.append(total)
    return O.stack(state, -1)


@_signal
def lfilter_zi(b: ArrayLike, a: ArrayLike):
    """Return the state of `lfilter` for a step that began long ago."""
    b, a = promote_operands(as_floating(b), as_floating(a))
    b, a = b / a[0], a / a[0]
    size = max(a.shape[0], b.shape[0])
    b, a = (O.cat([c, O.zeros((size - c.shape[0],), dtype=c.dtype)], 0) for c in (b, a))
    system = O.eye(size - 1, dtype=a.dtype) - companion(a).mT
    return O.linalg.solve(system, b[1:] - a[1:] * b[0])


@_signal
def filtfilt(
    b: ArrayLike, a: ArrayLike, x: ArrayOrSequence, axis=-1, padtype="odd", padlen=None, method="pad", irlen=None
):
    """Return x filtered forwards and backwards along an axis, without a change of phase.

    Only method="pad" is available for tensors.
    """
    only_default("signal.filtfilt", method=(method, "pad"), irlen=(irlen, None))
    b, a, x = promote_operands(as_floating(b), as_floating(a), as_floating(x))
    x = O.movedim(x, axis, -1)
    edge = 3 * max(a.shape[0], b.shape[0]) if padlen is None else padlen
    edge = 0 if padtype is None else edge
    if x.shape[-1] <= edge:
        raise ValueError(f"signal.filtfilt: the signal must be longer than padlen, {edge}, got {x.shape[-1]}")
    state = lfilter_zi(b, a)
    y = _extend(x, edge, padtype)
    for _ in range(2):
        y, _last = lfilter(b, a, y, zi=state * y[..., :1])
        y = O.flip(y, (-1,))
    return O.movedim(y[..., edge : y.shape[-1] - edge], -1, axis)


def _extend(x, edge, padtype):
    """Return the signal with `edge` samples before and after it: its mirror images, odd, even or constant."""
    if padtype not in ("odd", "even", "constant", None):
        raise ValueError(f"signal.filtfilt: padtype must be 'odd', 'even', 'constant' or None, got {padtype!r}")
    if not edge:
        return x
    size = x.shape[-1]
    before, after = O.flip(x[..., 1 : edge + 1], (-1,)), O.flip(x[..., size - edge - 1 : size - 1], (-1,))
    first, last = x[..., :1], x[..., size - 1 :]
    if padtype == "odd":
        before, after = 2 * first - before, 2 * last - after
    elif padtype == "constant":
        before, after = O.expand(first, before.shape), O.expand(last, after.shape)
    return O.cat([before, x, after], -1)


@_signal
def sosfilt(sos: ArrayOrSequence, x: ArrayOrSequence, axis=-1, zi=None):
    """Return x filtered along an axis by sections of second order, the rows (b0, b1, b2, a0, a1, a2) of a matrix."""
    only_default("signal.sosfilt", zi=(zi, None))
    sos, x = promote_operands(as_floating(sos), as_floating(x))
    if sos.ndim != 2 or sos.shape[1] != 6:
        raise ValueError(f"signal.sosfilt: sos must have shape (sections, 6), got {tuple(sos.shape)}")
    for section in O.unbind(sos):
        x = lfilter(section[:3], section[3:], x, axis)
    return x


@_signal
def freqz(b: ArrayLike, a=1, worN=512, whole=False, plot=None, fs=6.283185307179586, include_nyquist=False):
    """Return the frequencies and the response of the transfer function b / a there; frequencies are constants."""
    only_default("signal.freqz", plot=(plot, None))
    b, a = (O.reshape(c, (-1,)) for c in promote_operands(as_floating(b), as_floating(a)))
    given = worN if not holds_tensor((worN,)) else values(worN)
    w, _ = _signal_member("freqz")([1.0], 1, given, whole, None, fs, include_nyquist)
    delay = O.exp(tensor(w) * (-2j * 3.141592653589793 / fs))
    return tensor(w), _polynomial(b, delay) / _polynomial(a, delay)


def _polynomial(coefficients, z):
    total = O.zeros_like(z)
    for c in reversed(O.unbind(coefficients)):
        total = total * z + c
    return total


@_signal
def hilbert(x: ArrayOrSequence, N=None, axis=-1):
    """Return the analytic signal of a real signal, whose imaginary part is the Hilbert transform."""
    x = as_floating(x)
    if x.dtype.kind == "c":
        raise ValueError("signal.hilbert: x must be real")
    x = O.movedim(x, axis, -1)
    size = x.shape[-1] if N is None else N
    weights = [1.0 if k == 0 or 2 * k == size else 2.0 if 2 * k < size else 0.0 for k in range(size)]
    found = O.fft.ifft(O.fft.fft(x, size) * tensor(weights).to(x.dtype))
    return O.movedim(found, -1, axis)


@_signal
def detrend(data: ArrayOrSequence, axis=-1, type="linear", bp=0, overwrite_data=False):
    """Return the data without their mean (type="constant") or their line of least squares, along an axis."""
    only_default("signal.detrend", bp=(bp, 0))
    x = O.movedim(as_floating(data), axis, -1)
    if type not in ("linear", "constant", "l", "c"):
        raise ValueError(f"signal.detrend: type must be 'linear' or 'constant', got {type!r}")
    return O.movedim(remove_trend(x, type), -1, axis)


def remove_trend(x, type):
    """Return x without its mean, or also without its slope, along the last axis."""
    x = x - O.mean(x, -1, keepdim=True)
    if type[0] == "c":
        return x
    size = x.shape[-1]
    line = (O.arange(size) - (size - 1) / 2).to("float32" if x.dtype.itemsize == 4 else "float64")
    weight = O.sum(line * line)
    return x - O.sum(x * line, -1, True) / weight * line


@_signal
def resample(x: ArrayOrSequence, num, t=None, axis=0, window=None, domain="time"):
    """Return num samples of the signal's Fourier interpolation along an axis; a window and t are refused."""
    only_default("signal.resample", t=(t, None), window=(window, None), domain=(domain, "time"))
    x = O.movedim(as_floating(x), axis, -1)
    size = x.shape[-1]
    spectrum = O.fft.fft(x)
    least = min(size, num)
    half = (least + 1) // 2
    low, high = spectrum[..., :half], spectrum[..., size - (least - half) :]
    if least % 2 == 0:  # the frequency at half of the smaller rate belongs to both sides
        middle = spectrum[..., least // 2 : least // 2 + 1]
        low, high = spectrum[..., :half], spectrum[..., size - half + 1 :] if half > 1 else spectrum[..., :0]
        if num < size:
            middle = middle + spectrum[..., size - least // 2 : size - least // 2 + 1]
            parts = [low, middle, high]
        elif num > size:
            gap = O.zeros((*x.shape[:-1], num - size - 1), dtype=spectrum.dtype)
            parts = [low, middle / 2, gap, middle / 2, high]
        else:
            parts = [low, middle, high]
    else:
        parts = [low, O.zeros((*x.shape[:-1], num - least), dtype=spectrum.dtype), high]
    found = O.fft.ifft(O.cat(parts, -1)) * (num / size)
    return O.movedim(O.real(found) if is_floating(x.dtype) else found, -1, axis)


@_signal
def savgol_filter(x: ArrayOrSequence, window_length, polyorder, deriv=0, delta=1.0, axis=-1, mode="interp", cval=0.0):
    """Return the values, or a derivative, of polynomials of least squares in moving windows along an axis."""
    x = O.movedim(as_floating(x), axis, -1)
    options = (window_length, polyorder, deriv, delta)
    weights = cast(tensor(_signal_member("savgol_coeffs")(*options)), x.dtype)
    half, size = window_length // 2, x.shape[-1]
    if mode == "interp":
        if window_length > size:
            raise ValueError(f"signal.savgol_filter: window_length must be at most {size} for mode='interp'")
        unit = values(O.eye(window_length, dtype="float64"))
        edges = cast(tensor(_signal_member("savgol_filter")(unit, *options, axis=0)), x.dtype)
        first, last = x[..., :window_length] @ edges[:half].mT, x[..., size - window_length :] @ edges[-half:].mT
        middle = _convolve_rows(x, weights)
        return O.movedim(O.cat([first, middle, last] if half else [middle], -1), -1, axis)
    modes = {"mirror": "reflect", "constant": "constant", "nearest": "edge", "wrap": "wrap"}
    if mode not in modes:
        raise ValueError(f"signal.savgol_filter: mode must be 'interp' or one of {sorted(modes)}, got {mode!r}")
    constant = {"constant_values": cval} if mode == "constant" else {}
    widths = [(0, 0)] * (x.ndim - 1) + [(half, half)]
    return O.movedim(_convolve_rows(functions()["pad"](x, widths, modes[mode], **constant), weights), -1, axis)


def _convolve_rows(x, weights):
    """Return the convolution of the last axis with weights, where both overlap."""
    size = weights.shape[0]
    rows = O.reshape(x, (-1, 1, x.shape[-1]))
    out = O.nn.conv1d(rows, O.reshape(O.flip(weights, (0,)), (1, 1, size)))
    return O.reshape(out, (*x.shape[:-1], x.shape[-1] - size + 1))


@_signal
def upfirdn(h: ArrayOrSequence, x: ArrayOrSequence, up=1, down=1, axis=-1, mode="constant", cval=0):
    """Return every `down`-th sample of x, with up - 1 zeros after each of its samples, filtered by h."""
    only_default("signal.upfirdn", mode=(mode, "constant"), cval=(cval, 0))
    h, x = promote_operands(as_floating(h), as_floating(x))
    x = O.movedim(x, axis, -1)
    size = x.shape[-1]
    spread = O.reshape(O.cat([O.unsqueeze(x, -1), O.zeros((*x.shape, up - 1), dtype=x.dtype)], -1), (*x.shape[:-1], -1))
    spread = spread[..., : (size - 1) * up + 1]
    edge = O.zeros((*x.shape[:-1], h.shape[0] - 1), dtype=x.dtype)
    return O.movedim(_convolve_rows(O.cat([edge, spread, edge], -1), h)[..., ::down], -1, axis)


@_signal
def resample_poly(
    x: ArrayOrSequence, up: int, down: int, axis=0, window=("kaiser", 5.0), padtype="constant", cval=None
):
    """Return x at up / down times its rate along an axis, by a filter of finite length and without a change of phase.

    window: the name of a window for the design of the filter, or its coefficients, a vector that may be a tensor.
    padtype: "constant" (cval, or 0), or "mean", "minimum", "maximum" of the signal, or its "line"; others are refused.

    After `scipy.signal.resample_poly`.

    >>> import retrograd as rg
    >>> resample_poly(rg.arange(4.0), 2, 1, padtype="line").numpy().round(2)
    array([0. , 0.5, 1. , 1.5, 2. , 2.5, 3. , 3.5], dtype=float32)
    """
    only_default("signal.resample_poly", cval=(cval, None if padtype != "constant" else cval))
    x = O.movedim(as_floating(x), axis, -1)
    if up < 1 or down < 1 or up != int(up) or down != int(down):
        raise ValueError(f"signal.resample_poly: up and down must be positive integers, got {up} and {down}")
    common = math.gcd(int(up), int(down))
    up, down = int(up) // common, int(down) // common
    if up == down == 1:
        return O.movedim(x, -1, axis)
    h = _resampling_filter(window, up, down)
    count = -(-x.shape[-1] * up // down)
    level = {"mean": O.mean, "minimum": O.amin, "maximum": O.amax}
    if padtype in level:
        level = level[padtype](x, -1, keepdim=True)
        return O.movedim(_resample_by(h, x - level, up, down, count, 0) + level, -1, axis)
    # The extension is as long as half of the filter, and a multiple of `down`, so that it shifts the samples evenly.
    edge = 0 if padtype == "constant" and not cval else -(-(h.shape[0] // up + 1) // down) * down
    return O.movedim(_resample_by(h, _continued(x, padtype, cval, edge), up, down, count, edge), -1, axis)


def _continued(x, padtype, cval, edge):
    """Return x with `edge` samples before and after it, constants or those of the line through its ends."""
    steps = cast(O.arange(1, edge + 1), x.dtype)
    size = x.shape[-1]
    first, last = x[..., :1], x[..., size - 1 :]
    if padtype == "line":
        slope = (last - first) / max(size - 1, 1)
        return O.cat([first - slope * O.flip(steps, (0,)), x, last + slope * steps], -1)
    if padtype != "constant":
        known = ("constant", "mean", "minimum", "maximum", "line")
        refuse("signal.resample_poly", f"padtype={padtype!r} is not supported for tensors; use one of {known}")
    constant = 0 * steps + (0.0 if cval is None else cval) + 0 * first
    return O.cat([constant, x, constant], -1) if edge else x


def _resampling_filter(window, up, down):
    """Return the coefficients of the filter, whose number is odd, times the rate."""
    if isinstance(window, (str, tuple)):
        rate = max(up, down)
        return tensor(_signal_member("firwin")(20 * rate + 1, 1 / rate, window=window) * up)
    window = as_floating(window)
    if window.ndim != 1:
        raise ValueError(f"signal.resample_poly: the window must be a vector, got shape {tuple(window.shape)}")
    return window * up


def _resample_by(h, x, up, down, count, edge):
    """Return `count` samples of the filtered signal, from the middle of the filter at sample `edge` on."""
    h = cast(h, x.dtype) if x.dtype.kind == "f" and h.dtype.itemsize > x.dtype.itemsize else h
    half = (h.shape[0] - 1) // 2
    before = -half % down
    first = (half + before + edge * up) // down
    missing = (first + count - 1) * down + 1 - ((x.shape[-1] - 1) * up + h.shape[0] + before)
    zeros = [O.zeros((n,), dtype=h.dtype) for n in (before, max(missing, 0))]
    return upfirdn(O.cat([zeros[0], h, zeros[1]], 0), x, up, down)[..., first : first + count]
