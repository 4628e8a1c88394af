"""`scipy.signal`: convolutions, filters and spectra take tensors; the rest is SciPy's own."""

from retrograd.scipy._mirror import fallback_members
from retrograd.scipy.signal.convolution import convolve, convolve2d, correlate, correlate2d, fftconvolve, oaconvolve
from retrograd.scipy.signal.filters import (
    detrend,
    filtfilt,
    freqz,
    hilbert,
    lfilter,
    lfilter_zi,
    resample,
    resample_poly,
    savgol_filter,
    sosfilt,
    upfirdn,
)
from retrograd.scipy.signal.spectra import coherence, csd, istft, periodogram, spectrogram, stft, welch

__all__ = [
    "coherence",
    "convolve",
    "convolve2d",
    "correlate",
    "correlate2d",
    "csd",
    "detrend",
    "fftconvolve",
    "filtfilt",
    "freqz",
    "hilbert",
    "istft",
    "lfilter",
    "lfilter_zi",
    "oaconvolve",
    "periodogram",
    "resample",
    "resample_poly",
    "savgol_filter",
    "sosfilt",
    "spectrogram",
    "stft",
    "upfirdn",
    "welch",
]

__getattr__, __dir__ = fallback_members("scipy.signal")
