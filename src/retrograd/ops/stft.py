"""Short-time Fourier transform and its inverse.

D. W. Griffin and J. S. Lim, Signal estimation from modified short-time Fourier transform, IEEE Trans. ASSP 32 (1984).
"""

from retrograd.core import Internal, op, registry
from retrograd.core import dtype as dtypes
from retrograd.ops.as_strided import unfold_backward, unfold_dim
from retrograd.ops.complex import view_as_complex, view_as_real
from retrograd.ops.family import Composite, Pointwise, check_floating
from retrograd.ops.fft import fft, ifft, irfft, rfft
from retrograd.ops.pad import constant_pad_nd, pad
from retrograd.ops.pointwise import pow
from retrograd.ops.view import expand, narrow, reshape, squeeze, transpose, unsqueeze

SMALLEST_ENVELOPE = 1e-11  # PyTorch's limit below which windows count as not overlapping


def _lengths(name, n_fft, hop_length, win_length):
    """Return the hop and the window length, n_fft // 4 and n_fft by default."""
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    if hop < 1:
        raise RuntimeError(f"{name}: expected hop_length > 0, but got hop_length={hop}")
    if not 0 < length <= n_fft:
        raise RuntimeError(f"{name}: expected 0 < win_length <= n_fft, but got win_length={length} and n_fft={n_fft}")
    return hop, length


def _padded_window(name, window, win_length, n_fft, dtype):
    """Return the window with zeros on both sides up to n_fft; ones where none is given."""
    if window is None:
        window = registry["ones"]((win_length,), dtype=dtype)
    if window.shape != (win_length,):
        raise RuntimeError(f"{name}: expected a window of shape ({win_length},), the win_length, got {window.shape}")
    left = (n_fft - win_length) // 2
    return constant_pad_nd(window, (left, n_fft - win_length - left)) if win_length < n_fft else window


def _norm_mode(normalized):
    return "ortho" if normalized else "backward"


# ------------------------------------------------------------------------------------------------------- forward


@op(
    "stft(Tensor x, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, "
    "str pad_mode='reflect', bool normalized=False, bool? onesided=None, bool? return_complex=None, "
    "bool? align_to_window=None) -> Tensor"
)
class stft(Composite):
    """Return the short-time Fourier transform: spectra of overlapping windows of signals (..., length).

    Frame t begins at t * hop_length (None: n_fft // 4) and has n_fft elements, times the window (None: ones), which is
    padded with zeros from win_length (None: n_fft) to n_fft.  With `center`, n_fft // 2 elements are added on both
    sides first, as `pad_mode` of `nn.functional.pad` says, so that frame t is centered at t * hop_length.
    `align_to_window`, allowed without `center`, lets the first frame begin where the window does, not its padding.

    The result is (..., frequencies, frames), complex: n_fft // 2 + 1 frequencies if `onesided` (None: if signals and
    window are real), else n_fft.  `normalized` divides by sqrt(n_fft).  Real signals need `return_complex`; False gives
    real and imaginary parts as a last dimension.

    >>> import retrograd as rg
    >>> spectrum = rg.stft(rg.ones(8), 4, window=rg.hann_window(4), return_complex=True)
    >>> spectrum.shape, spectrum[:, 2].real.tolist()
    ((3, 9), [2.0, -1.0, 0.0])
    """

    def compose(
        x, window, *, n_fft, hop_length, win_length, center, pad_mode, normalized, onesided, return_complex,
        align_to_window,
    ):  # fmt: skip
        check_floating("stft", x)
        if x.ndim not in (1, 2):
            raise RuntimeError(f"stft: expected a tensor of 1 or 2 dimensions, got shape {x.shape}")
        is_complex = "c" in (x.dtype.kind, window is not None and window.dtype.kind)
        return_complex = _is_complex_asked(is_complex, return_complex)
        onesided = _is_onesided("stft", is_complex, onesided)
        _check_alignment(center, align_to_window)
        hop, length = _lengths("stft", n_fft, hop_length, win_length)
        x = _pad_center(x, n_fft // 2, pad_mode) if center else x
        if align_to_window:
            left = (n_fft - length) // 2
            x = constant_pad_nd(x, (left, n_fft - length - left))
        if not 0 < n_fft <= x.shape[-1]:
            raise RuntimeError(f"stft: expected 0 < n_fft <= {x.shape[-1]}, the length of signals, got n_fft={n_fft}")
        window = _padded_window("stft", window, length, n_fft, x.dtype)
        frames = unfold_dim(x, -1, n_fft, hop) * window
        out = (rfft if onesided else fft)(frames, norm=_norm_mode(normalized))
        out = transpose(out, -2, -1)
        return out if return_complex else view_as_real(out)

    oracle = "retrograd.testing.references.stft.stft"

    def samples(r):
        yield (r(10), None), {"n_fft": 4, "return_complex": True}
        yield (
            (r(2, 9), r(3)),
            {"n_fft": 4, "hop_length": 2, "win_length": 3, "return_complex": False, "normalized": True},
        )
        yield (r(8), r(4)), {"n_fft": 4, "center": False, "onesided": False, "return_complex": True}
        yield (
            (r(8), r(4)),
            {"n_fft": 6, "win_length": 4, "center": False, "align_to_window": True, "return_complex": True},
        )
        yield (view_as_complex(r(2, 7, 2)), r(4)), {"n_fft": 4, "pad_mode": "constant"}

    def errors(r):
        x = r(8)
        yield (x, None), {"n_fft": 4}, RuntimeError, "stft: .* return_complex"
        options = {"return_complex": True, "center": False}
        yield (x, None), {"n_fft": 9, **options}, RuntimeError, "stft: expected 0 < n_fft <= 8.*got n_fft=9"
        yield (x, None), {"n_fft": 4, "hop_length": 0, **options}, RuntimeError, "stft: expected hop_length > 0"
        message = "stft: expected 0 < win_length <= n_fft"
        yield (x, None), {"n_fft": 4, "win_length": 5, **options}, RuntimeError, message
        yield (x, r(3)), {"n_fft": 4, **options}, RuntimeError, r"stft: expected a window of shape \(4,\)"
        yield (r(2, 2, 8), None), {"n_fft": 4, **options}, RuntimeError, "stft: expected a tensor of 1 or 2 dimensions"
        yield (r.ints(5, 8), None), {"n_fft": 4, **options}, TypeError, "stft: expected a floating or complex dtype"
        z = view_as_complex(r(8, 2))
        yield (z, None), {"n_fft": 4, "onesided": True}, RuntimeError, "stft: .*onesided"
        centered = {"n_fft": 4, "align_to_window": True, "return_complex": True}
        yield (x, None), centered, RuntimeError, "stft: align_to_window .* center=False"


def _is_complex_asked(is_complex, return_complex):
    if return_complex is None and not is_complex:
        raise RuntimeError("stft: real signals need the argument return_complex; pass return_complex=True")
    return is_complex if return_complex is None else return_complex


def _is_onesided(name, is_complex, onesided):
    if is_complex and onesided:
        raise RuntimeError(f"{name}: the spectrum is not onesided if the window or the signal is complex")
    return not is_complex if onesided is None else onesided


def _check_alignment(center, align_to_window):
    if center and align_to_window is not None:
        raise RuntimeError("stft: align_to_window can be given with center=False only")


def _pad_center(x, count, pad_mode):
    """Return the signals padded by `count` elements on both sides."""
    lead = (1,) * (3 - x.ndim)  # the modes of padding expect a batch and channels
    padded = pad(reshape(x, (*lead, *x.shape)), (count, count), pad_mode)
    return reshape(padded, padded.shape[len(lead) :])


# ------------------------------------------------------------------------------------------------------- inverse


@op("checked_envelope(Tensor x) -> Tensor")
class checked_envelope(Internal, Pointwise, differentiable=False, impure=True, in_place=False):
    """Return a copy of x; RuntimeError if an element is (almost) 0."""

    def impl(xp, x):
        smallest = xp.min(xp.abs(x), initial=xp.inf)
        if xp.on_host and smallest < SMALLEST_ENVELOPE:
            raise RuntimeError(
                f"istft: the sum of the squared windows is {smallest:.3g} at some position, so the signal there is "
                f"unknown; windows must overlap"
            )
        return x.copy()

    def oracle(np, x):
        return x

    def samples(r):
        yield (r(3, within=(1.0, 2.0)),), {}

    def errors(r):
        yield (r(3) * 0,), {}, RuntimeError, "istft: the sum of the squared windows is 0"


@op(
    "istft(Tensor x, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, "
    "bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) -> Tensor"
)
class istft(Composite):
    """Return the signals whose `stft` is closest to spectra x (..., frequencies, frames), in the least-squares sense.

    The arguments are those of `stft`; `onesided` (None: unless there are n_fft frequencies) says that x has
    n_fft // 2 + 1 frequencies.  `length` is that of the signals: what is longer is cut, what is shorter filled with
    zeros; None gives as much as frames cover, with `center` without n_fft // 2 elements at both ends.  The result is
    real unless `return_complex`, which needs all frequencies.  RuntimeError if the squared windows add up to 0
    somewhere.

    >>> import retrograd as rg
    >>> x, window = rg.arange(8.0), rg.hann_window(4)
    >>> spectrum = rg.stft(x, 4, window=window, return_complex=True)
    >>> rg.allclose(rg.istft(spectrum, 4, window=window), x, atol=1e-5)
    True
    """

    def compose(
        x, window, *, n_fft, hop_length, win_length, center, normalized, onesided, length, return_complex
    ):  # fmt: skip
        hop, win_length = _lengths("istft", n_fft, hop_length, win_length)
        _check_spectra(x, n_fft, hop, win_length, length)
        onesided = x.shape[-2] != n_fft if onesided is None else onesided
        _check_frequencies(x, n_fft, onesided, window, return_complex)
        window = _padded_window("istft", window, win_length, n_fft, dtypes.real_of(x.dtype))
        spectra = transpose(x if x.ndim == 3 else unsqueeze(x, 0), -2, -1)
        y = _overlap_add(_inverse_frames(spectra, n_fft, normalized, onesided, return_complex) * window, n_fft, hop)
        squares = expand(reshape(pow(window, 2), (1, 1, n_fft)), (1, spectra.shape[1], n_fft))
        y = _divide_by_envelope(y, _overlap_add(squares, n_fft, hop), n_fft // 2 if center else 0, length)
        return y if x.ndim == 3 else squeeze(y, 0)

    oracle = "retrograd.testing.references.stft.istft"

    def samples(r):
        yield (view_as_complex(r(3, 5, 2)), None), {"n_fft": 4}
        wide = r(4, within=(0.5, 2.0))
        yield (view_as_complex(r(2, 3, 4, 2)), wide), {"n_fft": 4, "hop_length": 2, "normalized": True, "length": 9}
        yield (view_as_complex(r(4, 3, 2)), wide), {"n_fft": 4, "center": False, "return_complex": True}
        narrow_one = r(3, within=(0.5, 2.0))
        yield (view_as_complex(r(5, 4, 2)), narrow_one), {"n_fft": 5, "win_length": 3, "hop_length": 1, "length": 4}

    def errors(r):
        x = view_as_complex(r(3, 5, 2))
        yield (r(3, 5), None), {"n_fft": 4}, TypeError, "istft: expected complex"
        yield (x, None), {"n_fft": 8}, RuntimeError, "istft: expected 5 frequencies, got 3"
        yield (x, None), {"n_fft": 4, "hop_length": 5}, RuntimeError, "istft: expected 0 < hop_length <= win_length"
        yield (x, None), {"n_fft": 4, "return_complex": True}, RuntimeError, "istft: .*onesided"
        yield (x, r(4) * 0), {"n_fft": 4}, RuntimeError, "istft: the sum of the squared windows is 0"
        yield (x, None), {"n_fft": 4, "length": 0}, RuntimeError, "istft: length must be positive, got 0"
        yield (view_as_complex(r(3, 2)), None), {"n_fft": 4}, RuntimeError, "istft: expected 2 or 3 dimensions"


def _check_spectra(x, n_fft, hop, win_length, length):
    if x.dtype.kind != "c":
        raise TypeError(f"istft: expected complex numbers, as of stft with return_complex=True, got {x.dtype}")
    if x.ndim not in (2, 3):
        raise RuntimeError(f"istft: expected 2 or 3 dimensions, (batch,) frequencies and frames, got shape {x.shape}")
    if 0 in x.shape:
        raise RuntimeError(f"istft: the spectra of shape {x.shape} are empty")
    if hop > win_length:
        raise RuntimeError(f"istft: expected 0 < hop_length <= win_length, got {hop} and {win_length}")
    if length is not None and length < 1:
        raise RuntimeError(f"istft: length must be positive, got {length}")


def _check_frequencies(x, n_fft, onesided, window, return_complex):
    expected = n_fft // 2 + 1 if onesided else n_fft
    if x.shape[-2] != expected:
        raise RuntimeError(f"istft: expected {expected} frequencies, got {x.shape[-2]}: the shape is {x.shape}")
    if return_complex and onesided:
        raise RuntimeError("istft: complex signals have no onesided spectra; pass return_complex=False")
    if not return_complex and window is not None and window.dtype.kind == "c":
        raise RuntimeError("istft: with a complex window signals are complex; pass return_complex=True")


def _inverse_frames(spectra, n_fft, normalized, onesided, return_complex):
    """Return the windows of the signals that have these spectra, (batch, frames, n_fft)."""
    if return_complex:
        return ifft(spectra, norm=_norm_mode(normalized))
    half = spectra if onesided else narrow(spectra, -1, 0, n_fft // 2 + 1)
    return irfft(half, n_fft, norm=_norm_mode(normalized))


def _overlap_add(frames, n_fft, hop):
    """Return the sums of overlapping windows."""
    return unfold_backward(frames, dimension=1, length=n_fft + hop * (frames.shape[1] - 1), step=hop)


def _divide_by_envelope(y, envelope, start, length):
    """Return the signals divided by the envelope, from `start` on; padded with zeros where they are too short."""
    available = y.shape[-1]
    end = available - start if length is None else min(start + length, available)
    size = max(end - start, 0)
    envelope = narrow(envelope, -1, start, size)
    checked_envelope(envelope)
    y = narrow(y, -1, start, size) / envelope
    return y if length is None or size == length else constant_pad_nd(y, (0, length - size))
