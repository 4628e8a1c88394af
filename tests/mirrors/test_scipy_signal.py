"""retrograd.scipy.signal: SciPy's filters, convolutions and spectra, and their derivatives."""

import numpy as np
import pytest
import scipy.signal

import retrograd as rg
from retrograd.autograd import gradcheck, gradgradcheck
from retrograd.core import Tensor
from retrograd.func import jvp, vmap
from retrograd.scipy import signal

from ..case_groups import group_cases

_r = np.random.default_rng(8)
B, A = np.array([0.2, 0.3, -0.1]), np.array([1.5, -0.6, 0.3])
X, LONG, ROWS = _r.normal(size=12), _r.normal(size=40), _r.normal(size=(2, 20))
MATRIX, KERNEL = _r.normal(size=(5, 4)), _r.normal(size=(3, 2))
SECTIONS = np.array([[0.2, 0.3, 0.1, 1.0, -0.5, 0.2], [1.0, 0.2, 0.0, 1.0, 0.4, 0.1]])
SEGMENTS = {"nperseg": 8}

# function, arguments, options
CASES = [
    *[("fftconvolve", (X, B, mode), {}) for mode in ("full", "same", "valid")],
    ("fftconvolve", (B, X, "valid"), {}), ("fftconvolve", (MATRIX, KERNEL), {}),
    ("fftconvolve", (ROWS, ROWS[:, :3]), {"axes": 1}), ("oaconvolve", (X, B), {}),
    *[("correlate", (X, B, mode), {}) for mode in ("full", "same", "valid")], ("correlate", (B, X, "valid"), {}),
    ("correlate", (MATRIX, KERNEL), {}), ("correlate", (X, B), {"method": "fft"}),
    *[("convolve2d", (MATRIX, KERNEL, mode, edge), {})
      for mode in ("full", "same", "valid") for edge in ("fill", "wrap", "symm")],
    *[("correlate2d", (MATRIX, KERNEL, mode), {}) for mode in ("full", "same", "valid")],
    ("correlate2d", (MATRIX, MATRIX[:3, :3], "same", "symm"), {}),
    ("lfilter", (B, A, X), {}), ("lfilter", (B, A[:1], ROWS), {"axis": 0}), ("lfilter", (B[:1], A, ROWS), {}),
    ("lfilter", (B, A, X), {"zi": np.array([0.4, -0.2])}), ("lfilter", (B, A[:2], X), {"zi": np.array([0.4, -0.2])}),
    ("lfilter_zi", (B, A), {}), ("filtfilt", (B, A, X), {}),
    ("filtfilt", (B, A, ROWS), {"padtype": "even", "padlen": 4}),
    ("filtfilt", (B, A, X), {"padtype": "constant"}), ("sosfilt", (SECTIONS, X), {}),
    ("freqz", (B, A), {"worN": 8}), ("freqz", (B,), {"worN": np.array([0.1, 0.4]), "fs": 2.0}),
    ("hilbert", (X,), {}), ("hilbert", (ROWS, 15), {"axis": 1}),
    ("detrend", (X,), {}), ("detrend", (ROWS,), {"axis": 0, "type": "constant"}),
    *[("resample", (X[:size], num), {}) for size in (11, 12) for num in (7, 8, 11, 12, 19, 20)],
    *[("savgol_filter", (X, 5, 2), {"mode": mode}) for mode in ("interp", "mirror", "constant", "nearest", "wrap")],
    ("savgol_filter", (ROWS, 7, 3), {"deriv": 1, "delta": 0.5}), ("upfirdn", (B, X, 3, 2), {}),
    *[("resample_poly", (X, *rates), {}) for rates in ((2, 1), (1, 3), (3, 2), (10, 4), (5, 7), (4, 4))],
    ("resample_poly", (ROWS, 3, 2), {"axis": 1, "window": "hamming"}),
    ("resample_poly", (X, 3, 2), {"cval": 0.5}), ("resample_poly", (X, 2, 3), {"window": LONG[:5]}),
    *[("resample_poly", (X, 2, 3), {"padtype": edge}) for edge in ("line", "mean", "minimum", "maximum")],
    ("stft", (LONG,), SEGMENTS), ("stft", (LONG,), {"nperseg": 7, "noverlap": 2, "nfft": 10, "boundary": None}),
    ("stft", (LONG.reshape(20, 2),), {"nperseg": 6, "axis": 0, "padded": False, "boundary": "even"}),
    ("stft", (LONG,), {"nperseg": 8, "return_onesided": False, "detrend": "linear", "scaling": "psd", "fs": 3.0}),
    ("istft", (_r.normal(size=(5, 6)),), {}),
    ("istft", (_r.normal(size=(5, 6)),), {"boundary": False, "fs": 2.0, "window": "boxcar"}),
    ("welch", (LONG,), SEGMENTS),
    ("welch", (ROWS,), {"nperseg": 6, "axis": 1, "detrend": "linear", "window": "boxcar"}),
    ("welch", (LONG,), {"window": np.array([0.5, 1.0, 1.0, 0.5])}),
    ("csd", (LONG, LONG[::-1].copy()), SEGMENTS), ("coherence", (LONG, LONG[::-1].copy()), SEGMENTS),
    ("periodogram", (X,), {"fs": 4.0}), ("spectrogram", (LONG,), {"nperseg": 16}),
    ("spectrogram", (ROWS,), {"nperseg": 8, "axis": 1}),
]  # fmt: skip
IDS = [f"{name}-{i}" for i, (name, _, _) in enumerate(CASES)]


def as_tuple(found):
    return found if isinstance(found, tuple) else (found,)


def on_tensors(options):
    return {k: rg.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}


@group_cases
@pytest.mark.parametrize(("name", "args", "options"), CASES, ids=IDS)
def test_values_are_those_of_scipy(name, args, options):
    expected = as_tuple(getattr(scipy.signal, name)(*args, **options))
    given = [rg.tensor(a) if isinstance(a, np.ndarray) else a for a in args]
    found = as_tuple(getattr(signal, name)(*given, **on_tensors(options)))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-9, atol=1e-12)
    assert not any(isinstance(x, Tensor) for x in as_tuple(getattr(signal, name)(*args, **options)))


@group_cases
@pytest.mark.parametrize(("name", "args", "options"), CASES, ids=IDS)
def test_derivatives_and_batches_are_right(name, args, options):
    leaves = [i for i, a in enumerate(args) if isinstance(a, np.ndarray)]
    named = [k for k, v in options.items() if isinstance(v, np.ndarray) and k != "worN"]

    def function(*given):
        filled, chosen = list(args), dict(options)
        for i, x in zip(leaves, given, strict=False):
            filled[i] = x
        chosen.update(zip(named, given[len(leaves) :], strict=True))
        found = as_tuple(getattr(signal, name)(*filled, **chosen))
        return tuple(x for x in found if x.requires_grad) or found[-1:]

    given = [rg.tensor(x, requires_grad=True) for x in [args[i] for i in leaves] + [options[k] for k in named]]
    assert gradcheck(function, given, check_forward_ad=True, fast_mode=True)
    plain = [x.detach() for x in given]
    batched = vmap(lambda *x: as_tuple(getattr(signal, name)(*[
        x[leaves.index(i)] if i in leaves else a for i, a in enumerate(args)], **options))[-1],
    )(*[rg.stack([x, 2 * x]) for x in plain[: len(leaves)]])  # fmt: skip
    expected = as_tuple(getattr(signal, name)(*[
        2 * plain[leaves.index(i)] if i in leaves else a for i, a in enumerate(args)], **options))[-1]  # fmt: skip
    np.testing.assert_allclose(batched[1].numpy(), expected.numpy(), atol=1e-10)


@group_cases
@pytest.mark.parametrize("name", ["lfilter", "filtfilt", "stft", "istft", "coherence", "savgol_filter"])
def test_derivatives_of_second_order_are_right(name):
    _, args, options = next(case for case in CASES if case[0] == name)
    leaves = [i for i, a in enumerate(args) if isinstance(a, np.ndarray)]

    def function(*given):
        filled = list(args)
        for i, x in zip(leaves, given, strict=True):
            filled[i] = x
        return as_tuple(getattr(signal, name)(*filled, **options))[-1]

    given = [rg.tensor(args[i], requires_grad=True) for i in leaves]
    assert gradgradcheck(function, given, fast_mode=True)


def test_complex_signals_are_filtered_and_transformed():
    x = LONG + 1j * LONG[::-1]
    np.testing.assert_allclose(signal.lfilter(B, A, rg.tensor(x)).numpy(), scipy.signal.lfilter(B, A, x), atol=1e-12)
    ours, theirs = (
        m.stft(v, nperseg=8, return_onesided=False)[2] for m, v in ((signal, rg.tensor(x)), (scipy.signal, x))
    )
    np.testing.assert_allclose(ours.numpy(), theirs, atol=1e-12)
    given = [rg.tensor(v, requires_grad=True) for v in (B + 1j * A, A - 0.2j * B, x[:6])]
    assert gradcheck(signal.lfilter, given, check_forward_ad=True)


def test_a_signal_is_filtered_in_linear_time_and_memory():
    x = rg.ones(200_000, dtype=rg.float64, requires_grad=True)
    y = signal.lfilter([0.1], [1.0, -0.9], x)
    y[-1].backward()
    assert x.grad[-1].item() == pytest.approx(0.1)
    assert x.grad[-10].item() == pytest.approx(0.1 * 0.9**9)


def test_a_state_continues_a_filter():
    first, state = signal.lfilter(B, A, rg.tensor(X[:5]), zi=rg.zeros(2, dtype=rg.float64))
    second, _ = signal.lfilter(B, A, rg.tensor(X[5:]), zi=state)
    np.testing.assert_allclose(rg.cat([first, second]).numpy(), scipy.signal.lfilter(B, A, X), atol=1e-12)
    coefficients = rg.tensor(A)
    _, along = jvp(lambda a: signal.lfilter(B, a, X)[3], (coefficients,), (rg.ones_like(coefficients),))
    ends = [scipy.signal.lfilter(B, A + s * 1e-6, X)[3] for s in (1, -1)]
    assert along.item() == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6)


def test_refusals_name_the_function():
    x = rg.ones(8)
    for call, error, match in (
        (lambda: signal.lfilter(rg.ones(2, 2), [1.0], x), ValueError, r"signal\.lfilter: b and a must be vectors"),
        (
            lambda: signal.lfilter([1.0, 1], [1.0], x, zi=[0.0, 0]),
            ValueError,
            r"lfilter: zi must have 1 element",
        ),
        (lambda: signal.filtfilt([1.0, 1], [1.0], x, method="gust"), TypeError, r"signal\.filtfilt"),
        (
            lambda: signal.filtfilt([1.0] * 4, [1.0], x),
            ValueError,
            r"filtfilt: .* longer than padlen, 12, got 8",
        ),
        (lambda: signal.stft(x, nperseg=4, noverlap=4), ValueError, r"signal\.stft: noverlap must be below nperseg"),
        (lambda: signal.welch(x, average="median"), TypeError, r"average='median' is not supported"),
        (lambda: signal.spectrogram(x, mode="phase"), TypeError, r"signal\.spectrogram: mode='phase'"),
        (lambda: signal.fftconvolve(x, x, "all"), ValueError, r"signal\.fftconvolve: mode must be"),
        (lambda: signal.sosfilt(rg.ones(5), x), ValueError, r"signal\.sosfilt: sos must have shape \(sections, 6\)"),
        (lambda: signal.csd(x, x[:4]), ValueError, r"signal\.csd: both signals must have one length, got 8 and 4"),
    ):
        with pytest.raises(error, match=match):
            call()
