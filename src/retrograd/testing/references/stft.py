"""Reference implementations of short-time Fourier transforms, frame by frame."""

import numpy as np


def sizes(n_fft, hop_length, win_length):
    return n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length


def whole_window(window, n_fft, win_length):
    window = np.ones(win_length) if window is None else window
    left = (n_fft - win_length) // 2
    return np.pad(window, (left, n_fft - win_length - left))


def stft(
    x, window, n_fft, hop_length, win_length, center, pad_mode, normalized, onesided, return_complex, align_to_window
):  # fmt: skip
    hop, length = sizes(n_fft, hop_length, win_length)
    extra = n_fft // 2 if center else (n_fft - length) // 2 if align_to_window else 0
    more = n_fft - length - extra if align_to_window else extra
    lead = [(0, 0)] * (x.ndim - 1)
    x = np.pad(x, [*lead, (extra, more)], pad_mode if center else "constant")
    starts = range(0, x.shape[-1] - n_fft + 1, hop)
    window = whole_window(window, n_fft, length)
    out = np.stack([np.fft.fft(x[..., s : s + n_fft] * window) for s in starts], -1)
    out = out / np.sqrt(n_fft) if normalized else out
    if (onesided is None and not np.iscomplexobj(x)) or onesided:
        out = out[..., : n_fft // 2 + 1, :]
    return np.stack([out.real, out.imag], -1) if return_complex is False else out


def istft(x, window, n_fft, hop_length, win_length, center, normalized, onesided, length, return_complex):
    hop, win_length = sizes(n_fft, hop_length, win_length)
    window = whole_window(window, n_fft, win_length)
    count = x.shape[-1]
    y = np.zeros((*x.shape[:-2], n_fft + hop * (count - 1)), complex if return_complex else float)
    squares = np.zeros(y.shape[-1])
    for i in range(count):
        frame = np.fft.ifft(x[..., i]) if return_complex else np.fft.irfft(x[..., i], n_fft)
        y[..., i * hop : i * hop + n_fft] += frame * window * (np.sqrt(n_fft) if normalized else 1)
        squares[i * hop : i * hop + n_fft] += window**2
    start = n_fft // 2 if center else 0
    end = len(squares) - start if length is None else min(start + length, len(squares))
    y = y[..., start:end] / squares[start:end]
    return y if length is None else np.pad(y, [(0, 0)] * (y.ndim - 1) + [(0, length - y.shape[-1])])
