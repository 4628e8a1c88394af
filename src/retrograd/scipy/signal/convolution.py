"""Convolution and correlation, directly and by Fourier transforms."""

from math import prod

from retrograd.foundation.suggestions import suggest_in_module
from retrograd.interop.numpy_protocol import functions
from retrograd.interop.numpy_protocol.table import O, as_floating, holds_tensor, only_default, promote_operands
from retrograd.interop.numpy_protocol.table import axes as axes_of
from retrograd.scipy._array_like import ArrayLike
from retrograd.scipy._mirror import on_tensors, scipy_member

_signal = on_tensors("scipy.signal")

_CONVOLUTIONS = {1: "conv1d", 2: "conv2d", 3: "conv3d"}


def convolve(in1: ArrayLike, in2: ArrayLike, mode="full", method="auto", *, axes=None, dot_axes=((), ())):
    """Return the convolution of two arrays along all axes, or along pairs of axes.

    `axes` are two lists that pair axes of the first array with axes of the second; `dot_axes` likewise pairs axes that
    are summed over. The result has the other axes of the first, those of the second, and then the convolved ones.
    `mode` is "full", "same" (the middle, of the size of the first array) or "valid" (where both overlap completely).
    """
    if isinstance(mode, (list, tuple)) or mode is None:
        raise TypeError("signal.convolve: give axes= by name; the third argument is the mode")
    if not holds_tensor((in1, in2)):
        if axes is None and not any(dot_axes):
            return scipy_member("scipy.signal").convolve(in1, in2, mode, method)
        return _convolve(in1, in2, mode, axes, dot_axes).numpy()
    return _convolve(in1, in2, mode, axes, dot_axes)


def _convolve(in1, in2, mode, axes, dot_axes):
    a, b = promote_operands(as_floating(in1), as_floating(in2))
    if axes is None:
        axes = tuple(range(a.ndim - len(dot_axes[0]))), tuple(range(b.ndim - len(dot_axes[1])))
    (a, own_a, sizes_a), (b, own_b, sizes_b) = (
        _arrange_axes(x, at, dot) for x, at, dot in zip((a, b), axes, dot_axes, strict=True)
    )
    if 0 in (*a.shape, *b.shape):
        raise ValueError("signal.convolve: neither array may be empty")
    if len(sizes_a) > 3 or len(sizes_a) != len(sizes_b):
        raise ValueError("signal.convolve: up to three axes are convolved, as many of each array")
    if not sizes_a:  # only sums over pairs of axes
        return O.reshape(a @ b.mT, (*own_a, *own_b))
    out = _modes(mode)(a, b, sizes_a, sizes_b)
    return O.reshape(out, (*own_a, *own_b, *out.shape[2:]))


def _arrange_axes(x, at, dot):
    """Return x as (other axes, summed axes, convolved axes), and the sizes of the first and of the last."""
    at, dot = axes_of(at, x.ndim), axes_of(dot, x.ndim) if dot else ()
    own = [i for i in range(x.ndim) if i not in at and i not in dot]
    sizes = [tuple(x.shape[i] for i in part) for part in (own, dot, at)]
    rows = O.reshape(O.permute(x, (*own, *dot, *at)), (prod(sizes[0]), prod(sizes[1]), *sizes[2]))
    return rows, sizes[0], sizes[2]


def _modes(mode):
    known = {"full": _full, "same": _same, "valid": _valid}
    if mode not in known:
        raise ValueError(f"signal.convolve: mode must be 'full', 'same' or 'valid', got {mode!r}")
    return known[mode]


def _correlate(a, b, padding):
    """Convolve a with b, by correlation with b reversed."""
    flipped = O.flip(b, tuple(range(2, b.ndim)))
    return getattr(O.nn, _CONVOLUTIONS[a.ndim - 2])(a, flipped, None, 1, padding)


def _full(a, b, sizes_a, sizes_b):
    return _correlate(a, b, tuple(n - 1 for n in sizes_b))


def _same(a, b, sizes_a, sizes_b):
    out = _full(a, b, sizes_a, sizes_b)
    middle = [slice((m - 1) // 2, (m - 1) // 2 + n) for n, m in zip(sizes_a, sizes_b, strict=True)]
    return out[(slice(None), slice(None), *middle)]


def _valid(a, b, sizes_a, sizes_b):
    if all(n >= m for n, m in zip(sizes_a, sizes_b, strict=True)):
        return _correlate(a, b, 0)
    if all(n <= m for n, m in zip(sizes_a, sizes_b, strict=True)):
        return O.transpose(_correlate(b, a, 0), 0, 1)
    raise ValueError("signal.convolve: for mode 'valid' one array must be as large as the other along every axis")


# ------------------------------------------------------------------------------------------ by Fourier transforms


@_signal
def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode="full", axes=None):
    """Return the convolution of two arrays along axes (None: all) by Fourier transforms; other axes broadcast.

    `mode` is that of `convolve`.

    >>> import retrograd as rg
    >>> fftconvolve(rg.tensor([1.0, 2.0]), rg.tensor([1.0, 0.0, 3.0])).round(decimals=4)
    tensor([1., 2., 3., 6.])
    """
    a, b = promote_operands(as_floating(in1), as_floating(in2))
    if a.ndim != b.ndim:
        raise ValueError(f"signal.fftconvolve: both arrays need the same number of axes, got {a.ndim} and {b.ndim}")
    along = axes_of(axes, a.ndim)
    sizes = [a.shape[i] + b.shape[i] - 1 for i in along]
    if a.dtype.kind == "c":
        full = O.fft.ifftn(O.fft.fftn(a, sizes, along) * O.fft.fftn(b, sizes, along), sizes, along)
    else:
        full = O.fft.irfftn(O.fft.rfftn(a, sizes, along) * O.fft.rfftn(b, sizes, along), sizes, along)
    return _cut("fftconvolve", full, a, b, mode, along)


def _cut(name, full, a, b, mode, along):
    """Return the part of a full convolution that a mode describes."""
    if mode == "full":
        return full
    pairs = {i: (a.shape[i], b.shape[i]) for i in along}
    if mode == "same":
        wanted = {i: n for i, (n, _) in pairs.items()}
    elif mode == "valid":
        if not (all(n >= m for n, m in pairs.values()) or all(n <= m for n, m in pairs.values())):
            raise ValueError(
                f"signal.{name}: for mode 'valid' one array must be as large as the other along every axis"
            )
        wanted = {i: abs(n - m) + 1 for i, (n, m) in pairs.items()}
    else:
        raise ValueError(f"signal.{name}: mode must be 'full', 'same' or 'valid', got {mode!r}")
    parts = [slice(None)] * full.ndim
    for i, size in wanted.items():
        start = (full.shape[i] - size) // 2
        parts[i] = slice(start, start + size)
    return full[tuple(parts)]


@_signal
def oaconvolve(in1: ArrayLike, in2: ArrayLike, mode="full", axes=None):
    """Return the convolution of `fftconvolve`; the blocks by which SciPy saves memory are not used."""
    return fftconvolve(in1, in2, mode, axes)


@_signal
def correlate(in1: ArrayLike, in2: ArrayLike, mode="full", method="auto"):
    """Return the cross-correlation of two arrays, the convolution of the first with the second reversed and conjugated.

    >>> import retrograd as rg
    >>> correlate(rg.tensor([1.0, 2.0, 3.0]), rg.tensor([0.0, 1.0, 0.5])).tolist()
    [0.5, 2.0, 3.5, 3.0, 0.0]
    """
    a, b = promote_operands(as_floating(in1), as_floating(in2))
    flipped = O.conj(O.flip(b, tuple(range(b.ndim))))
    if method == "fft" or a.ndim > 3:
        return fftconvolve(a, flipped, mode)
    return convolve(a, flipped, mode)


@_signal
def convolve2d(in1: ArrayLike, in2: ArrayLike, mode="full", boundary="fill", fillvalue=0):
    """Return the convolution of two matrices; outside of the first are `fillvalue`, or its periods or mirror images.

    boundary: "fill", "wrap" or "symm".
    """
    a, b = promote_operands(as_floating(in1), as_floating(in2))
    modes = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}
    if boundary not in modes:
        raise ValueError(f"signal.convolve2d: boundary must be 'fill', 'wrap' or 'symm', got {boundary!r}")
    if mode == "valid":
        return convolve(a, b, "valid")
    only_default("signal.convolve2d", fillvalue=(fillvalue if boundary == "fill" else 0, 0))
    widths = [(m - 1, m - 1) for m in b.shape]
    full = convolve(functions()["pad"](a, widths, modes[boundary]), b, "valid")
    if mode == "full":
        return full
    if mode != "same":
        raise ValueError(f"signal.convolve2d: mode must be 'full', 'same' or 'valid', got {mode!r}")
    return _cut("convolve2d", full, a, b, mode, (0, 1))


@_signal
def correlate2d(in1: ArrayLike, in2: ArrayLike, mode="full", boundary="fill", fillvalue=0):
    """Return the cross-correlation of two matrices; see `convolve2d`."""
    _, b = promote_operands(as_floating(in1), as_floating(in2))
    a = as_floating(in1)
    if mode == "same":  # the middle of SciPy's is that of the unreversed second matrix
        full = correlate2d(a, b, "full", boundary, fillvalue)
        starts = [m - 1 - (m - 1) // 2 if m % 2 else m // 2 for m in b.shape]
        return full[starts[0] : starts[0] + a.shape[0], starts[1] : starts[1] + a.shape[1]]
    return convolve2d(a, O.conj(O.flip(b, (0, 1))), mode, boundary, fillvalue)


suggest_in_module(globals())
