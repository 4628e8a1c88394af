"""Short-time Fourier transforms, and estimates of spectra from them."""

from retrograd.interop.numpy_protocol import functions
from retrograd.interop.numpy_protocol.table import O, as_floating, cast, holds_tensor, promote_operands, refuse, tensor
from retrograd.scipy._array_like import ArrayOrSequence
from retrograd.scipy._mirror import on_tensors, scipy_member
from retrograd.scipy.signal.filters import remove_trend

_signal = on_tensors("scipy.signal")


class Segments:
    """The lengths, the window and the scale of a short-time Fourier transform, as SciPy chooses them."""

    def __init__(self, name, size, fs, window, nperseg, noverlap, nfft, scaling):
        given = tensor(window) if holds_tensor((window,)) or hasattr(window, "__array__") else None
        if isinstance(window, list):
            given = tensor(window)
        if given is not None:
            nperseg = given.shape[0] if nperseg is None else nperseg
        self.length = min(256 if nperseg is None else int(nperseg), size)
        if given is None:
            given = tensor(scipy_member("scipy.signal").get_window(window, self.length))
        if given.shape != (self.length,):
            raise ValueError(f"signal.{name}: the window must have {self.length} elements, got {tuple(given.shape)}")
        self.window = given
        self.overlap = self.length // 2 if noverlap is None else int(noverlap)
        if self.overlap >= self.length:
            raise ValueError(f"signal.{name}: noverlap must be below nperseg, {self.length}, got {self.overlap}")
        self.hop = self.length - self.overlap
        self.nfft = self.length if nfft is None else int(nfft)
        if self.nfft < self.length:
            raise ValueError(f"signal.{name}: nfft must be at least nperseg, {self.length}, got {self.nfft}")
        if scaling not in ("density", "spectrum", "psd"):
            raise ValueError(f"signal.{name}: scaling must be 'density' or 'spectrum', got {scaling!r}")
        energy = fs * O.sum(given * given)
        self.scale = 1 / O.sum(given) ** 2 if scaling == "spectrum" else 1 / energy
        self.fs = fs

    def transforms(self, x, detrend, onesided):
        """Return the Fourier transforms of the windowed segments of the last axis, (..., segments, frequencies)."""
        parts = x.unfold(-1, self.length, self.hop)
        if callable(detrend):
            parts = detrend(parts)
        elif detrend:
            parts = remove_trend(parts, detrend)
        parts = parts * cast(self.window, x.dtype)
        return O.fft.rfft(parts, self.nfft) if onesided else O.fft.fft(parts, self.nfft)

    def frequencies(self, onesided):
        """Return the frequencies as a tensor."""
        function = O.fft.rfftfreq if onesided else O.fft.fftfreq
        return function(self.nfft, 1 / self.fs, dtype="float64")

    def times(self, count):
        """Return the times of the middles of the segments."""
        return (O.arange(count, dtype="float64") * self.hop + self.length / 2) / self.fs


def _sides(x, return_onesided):
    return bool(return_onesided) and x.dtype.kind != "c"


@_signal
def stft(
    x: ArrayOrSequence, fs=1.0, window="hann", nperseg=256, noverlap=None, nfft=None, detrend=False,
    return_onesided=True, boundary="zeros", padded=True, axis=-1, scaling="spectrum",
):  # fmt: skip
    """Return the frequencies, the times and the short-time Fourier transform along an axis, with times in the last one.

    After `scipy.signal.stft`; differentiable in x and in a window that is a tensor.

    >>> import retrograd as rg
    >>> f, t, Z = stft(rg.ones(8), nperseg=4)
    >>> f.tolist(), tuple(Z.shape)
    ([0.0, 0.25, 0.5], (3, 5))
    """
    x = O.movedim(as_floating(x), axis, -1)
    plan = Segments("stft", x.shape[-1], fs, window, nperseg, noverlap, nfft, scaling)
    if boundary is not None:
        modes = {"zeros": "constant", "constant": "edge", "even": "reflect"}
        if boundary not in modes:
            refuse("signal.stft", f"boundary={boundary!r} is not supported for tensors; use one of {sorted(modes)}")
        half = plan.length // 2
        x = functions()["pad"](x, [(0, 0)] * (x.ndim - 1) + [(half, half)], modes[boundary])
    if padded:
        rest = -(x.shape[-1] - plan.length) % plan.hop % plan.length
        x = O.cat([x, O.zeros((*x.shape[:-1], rest), dtype=x.dtype)], -1)
    onesided = _sides(x, return_onesided)
    found = plan.transforms(x, detrend, onesided) * O.sqrt(plan.scale)
    times = plan.times(found.shape[-2]) - (0 if boundary is None else plan.length / 2 / fs)
    return plan.frequencies(onesided), times, O.movedim(found, -1, axis if axis >= 0 else axis - 1)


@_signal
def istft(
    Zxx: ArrayOrSequence, fs=1.0, window="hann", nperseg=None, noverlap=None, nfft=None, input_onesided=True,
    boundary=True, time_axis=-1, freq_axis=-2, scaling="spectrum",
):  # fmt: skip
    """Return the times and the signal whose `stft` is given, by the method of least squares.

    >>> import retrograd as rg
    >>> x = rg.tensor([1.0, -2.0, 3.0, 0.5, 1.5, 2.5])
    >>> istft(stft(x, nperseg=4)[2], nperseg=4)[1][:6]
    tensor([ 1.0000, -2.0000,  3.0000,  0.5000,  1.5000,  2.5000])
    """
    Z = O.movedim(tensor(Zxx), (freq_axis, time_axis), (-1, -2))
    rows = Z.shape[-1]
    longest = 2 * (rows - 1) if input_onesided else rows
    length = longest if nperseg is None else int(nperseg)
    nfft = nfft if nfft is not None else length if length == longest + 1 and input_onesided else longest
    plan = Segments("istft", length, fs, window, length, noverlap, nfft, scaling)
    parts = (O.fft.irfft(Z, plan.nfft) if input_onesided else O.fft.ifft(Z, plan.nfft))[..., : plan.length]
    window_ = cast(plan.window, parts.dtype)
    parts = parts * window_ / O.sqrt(plan.scale)
    count, size = parts.shape[-2], plan.length + (parts.shape[-2] - 1) * plan.hop
    index = O.reshape(O.unsqueeze(O.arange(count) * plan.hop, 1) + O.arange(plan.length), (-1,))
    total = O.index_add(O.zeros((*parts.shape[:-2], size), dtype=parts.dtype), -1, index, O.flatten(parts, -2))
    weights = O.index_add(O.zeros((size,), dtype=window_.dtype), 0, index, (window_ * window_).repeat(count))
    half = plan.length // 2
    if boundary:
        total, weights = total[..., half : size - half], weights[half : size - half]
    x = total / O.where(weights > 1e-10, weights, O.ones_like(weights))
    return O.arange(x.shape[-1], dtype="float64") / fs, x


@_signal
def csd(
    x: ArrayOrSequence, y: ArrayOrSequence, fs=1.0, window="hann", nperseg=None, noverlap=None, nfft=None,
    detrend="constant", return_onesided=True, scaling="density", axis=-1, average="mean",
):  # fmt: skip
    """Return the frequencies and the cross power spectral density by Welch's method."""
    f, _, found = _spectrogram(
        "csd", x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis
    )
    if average != "mean":
        refuse("signal.csd", f"average={average!r} is not supported for tensors")
    return f, O.movedim(O.mean(found, -2), -1, axis)


def _spectrogram(name, x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis):
    """Return frequencies, times and the products of the transforms of two signals, (..., segments, frequencies)."""
    same = y is x
    x = O.movedim(as_floating(x), axis, -1)
    y = x if same else O.movedim(as_floating(y), axis, -1)
    x, y = promote_operands(x, y)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"signal.{name}: both signals must have one length, got {x.shape[-1]} and {y.shape[-1]}")
    plan = Segments(name, x.shape[-1], fs, window, nperseg, noverlap, nfft, scaling)
    onesided = _sides(x, return_onesided)
    first = plan.transforms(x, detrend, onesided)
    second = first if same else plan.transforms(y, detrend, onesided)
    found = (O.real(first) ** 2 + O.imag(first) ** 2 if same else O.conj(first) * second) * plan.scale
    if onesided:
        doubled = [1.0 if k == 0 or 2 * k == plan.nfft else 2.0 for k in range(found.shape[-1])]
        found = found * tensor(doubled).to(x.dtype)
    return plan.frequencies(onesided), plan.times(found.shape[-2]), found


@_signal
def welch(
    x: ArrayOrSequence, fs=1.0, window="hann", nperseg=None, noverlap=None, nfft=None, detrend="constant",
    return_onesided=True, scaling="density", axis=-1, average="mean",
):  # fmt: skip
    """Return the frequencies and the power spectral density, the mean over segments that overlap (P. D. Welch, 1967).

    >>> import retrograd as rg
    >>> f, power = welch(rg.tensor([1.0, -1.0] * 8), nperseg=8)
    >>> f[power.argmax()].item()
    0.5
    """
    return csd(x, x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)


@_signal
def periodogram(
    x: ArrayOrSequence, fs=1.0, window="boxcar", nfft=None, detrend="constant", return_onesided=True, scaling="density",
    axis=-1,
):  # fmt: skip
    """Return the frequencies and the power spectral density from one segment."""
    size = tensor(x).shape[axis]
    if nfft is not None and nfft < size:
        x = O.movedim(O.movedim(as_floating(x), axis, -1)[..., :nfft], -1, axis)
        size = nfft
    return welch(x, fs, window, size, 0, nfft, detrend, return_onesided, scaling, axis)


@_signal
def spectrogram(
    x: ArrayOrSequence, fs=1.0, window=("tukey", 0.25), nperseg=None, noverlap=None, nfft=None, detrend="constant",
    return_onesided=True, scaling="density", axis=-1, mode="psd",
):  # fmt: skip
    """Return the frequencies, the times and the power spectral density of each segment; other modes are refused."""
    if mode != "psd":
        refuse("signal.spectrogram", f"mode={mode!r} is not supported for tensors; use stft")
    size = min(256 if nperseg is None else nperseg, tensor(x).shape[axis])
    noverlap = size // 8 if noverlap is None else noverlap
    f, t, found = _spectrogram(
        "spectrogram", x, x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis
    )
    return f, t, O.movedim(found, -1, axis if axis >= 0 else axis - 1)


@_signal
def coherence(
    x: ArrayOrSequence, y: ArrayOrSequence, fs=1.0, window="hann", nperseg=None, noverlap=None, nfft=None,
    detrend="constant", axis=-1,
):  # fmt: skip
    """Return the frequencies and the squared size of the cross spectral density over both spectral densities."""
    options = {"nperseg": nperseg, "noverlap": noverlap, "nfft": nfft, "detrend": detrend, "axis": axis}
    f, both = csd(x, y, fs, window, **options)
    _, first = welch(x, fs, window, **options)
    _, second = welch(y, fs, window, **options)
    return f, (O.real(both) ** 2 + O.imag(both) ** 2) / first / second
