"""The reference implementation of reductions and softmax of segments: consecutive rows of a buffer.

x (batch, rows, columns) has the rows of segment k from offsets[k] up to offsets[k + 1].
"""

import numpy as np

from retrograd.kernels.host_values import on_host
from retrograd.kernels.overlap import separate

LARGE = 4096  # elements per segment from which on each is reduced separately, while it is in the cache


@separate(1)
def segment_sum(x, offsets, out):
    """Set out[b, k] to the sum of the rows of x[b] from offsets[k] up to offsets[k + 1]; 0 for none."""
    reduce_segments(np.add, x, offsets, 0, out)


@separate(1)
def segment_max(x, offsets, out):
    """Set out[b, k] to the maximum of the rows of x[b] from offsets[k] up to offsets[k + 1]; -inf for none."""
    reduce_segments(np.maximum, x, offsets, -np.inf, out)


def reduce_segments(ufunc, x, offsets, nothing, out):
    """Set out[b, k] to a ufunc's reduction of the rows of x[b] of segment k; `nothing` where it has none.

    On a device `nothing` takes part in each reduction, so it must be the ufunc's neutral element there.
    """
    out[...] = nothing
    if not on_host:
        ufunc.at(out, (slice(None), numbers_of_rows(offsets, x.shape[1])), x)
        return
    there = np.flatnonzero(np.diff(offsets))
    if not there.size:
        return
    if x.size < LARGE * out.shape[1]:
        out[:, there] = ufunc.reduceat(x, offsets[there], axis=1, dtype=out.dtype)
    else:
        for k in there.tolist():
            ufunc.reduce(x[:, offsets[k] : offsets[k + 1]], axis=1, dtype=out.dtype, out=out[:, k])


@separate(1)
def segment_softmax(x, offsets, out):
    """Set out to exp(x) / sum(exp(x)) over the rows of x[b] from one offset to the next."""
    np.exp(_subtract_segment_max(x, offsets, out), out=out)
    out /= _each(np.add, out, offsets, 0)


@separate(1)
def segment_log_softmax(x, offsets, out):
    """Set out to the logarithm of `segment_softmax`."""
    _subtract_segment_max(x, offsets, out)
    out -= np.log(_each(np.add, np.exp(out), offsets, 0))


def _subtract_segment_max(x, offsets, out):
    return np.subtract(x, _each(np.maximum, x, offsets, -np.inf), out=out)


def _each(ufunc, x, offsets, neutral):
    """Return for each row the reduction of its segment by a ufunc, whose neutral element is given."""
    found = np.empty((len(x), len(offsets) - 1, x.shape[2]), x.dtype)
    reduce_segments(ufunc, x, offsets, neutral, found)
    return np.repeat(found, np.diff(offsets), axis=1) if on_host else found[:, numbers_of_rows(offsets, x.shape[1])]


def numbers_of_rows(offsets, rows):
    """Return for each row the number of the segment that it is in."""
    return np.searchsorted(offsets, np.arange(rows), side="right") - 1
