"""`scipy.signal`: convolution takes tensors; the rest is SciPy's own."""

from math import prod

from retrograd.interop.numpy_protocol.table import O, as_floating, holds_tensor, promote_operands
from retrograd.interop.numpy_protocol.table import axes as axes_of
from retrograd.scipy._mirror import fallback_members, scipy_member

_CONVOLUTIONS = {1: "conv1d", 2: "conv2d", 3: "conv3d"}


def convolve(in1, in2, mode="full", method="auto", *, axes=None, dot_axes=((), ())):
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


__getattr__, __dir__ = fallback_members("scipy.signal")
