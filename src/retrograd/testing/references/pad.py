"""Reference implementations of padding, by NumPy."""

import numpy as np

MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def replicate_edges(x, pad):
    """Repeat the outermost elements, even where negative padding has cropped them."""
    for d, (before, after) in enumerate(zip(pad[::2], pad[1::2], strict=True)):
        size = x.shape[-1 - d]
        x = np.take(x, np.clip(np.arange(-before, size + after), 0, size - 1), axis=-1 - d)
    return x


def pad_array(x, pad, mode="constant", value=None):
    if mode == "replicate":
        return replicate_edges(x, pad)
    pairs = [(0, 0)] * (x.ndim - len(pad) // 2) + list(zip(pad[::2], pad[1::2], strict=True))[::-1]
    cropped = x[tuple(slice(max(-b, 0), n - max(-a, 0)) for n, (b, a) in zip(x.shape, pairs, strict=True))]
    more = {"constant_values": value or 0} if mode == "constant" else {}
    return np.pad(cropped, [(max(b, 0), max(a, 0)) for b, a in pairs], MODES.get(mode, mode), **more)


def constant_pad_nd(x, pad, value):
    return pad_array(x, pad, "constant", value)
