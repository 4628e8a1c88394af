"""Covariances, and counts in bins."""

import numpy as np

from retrograd.core import registry
from retrograd.interop.numpy_protocol.reductions import average
from retrograd.interop.numpy_protocol.table import (
    O,
    as_floating,
    cast,
    holds_tensor,
    implements,
    operand,
    promote_operands,
    refuse,
    tensor,
    values,
)
from retrograd.ops.create import as_tensor
from retrograd.ops.index import T


@implements()
def cov(
    m, y=None, rowvar=True, bias=False, ddof=None, fweights=None, aweights=None, *, dtype=None
):  # fmt: skip
    """The covariances of the rows (or the columns), over n - ddof."""
    x = _variables(m, y, rowvar, dtype)
    weights = _weights(x, fweights, aweights)
    ddof = (0 if bias else 1) if ddof is None else ddof
    mean, total = average(x, 1, weights, returned=True)
    total, centred = total[0], x - O.unsqueeze(mean, 1)
    lost = ddof if aweights is None or not ddof else ddof * O.sum(weights * operand(aweights)) / total
    made = O.matmul(centred if weights is None else centred * weights, O.conj(centred).T)
    size = total - lost
    made = made / O.clamp(O.real(size) if size.dtype.kind == "c" else size, 0)
    return O.squeeze(made)


def _variables(m, y, rowvar, dtype):
    """Return the variables as rows."""
    rows = [_rows(as_floating(v), rowvar) for v in (m, y) if v is not None]
    return cast(O.cat(list(promote_operands(*rows)), 0) if len(rows) > 1 else rows[0], dtype)


def _rows(x, rowvar):
    if x.ndim < 2:
        return O.reshape(x, (1, -1))
    return x if rowvar or x.shape[0] == 1 else x.T


def _weights(x, fweights, aweights):
    given = [tensor(w) for w in (fweights, aweights) if w is not None]
    return cast(given[0] if len(given) == 1 else given[0] * given[1], x.real.dtype) if given else None


@implements()
def corrcoef(x, y=None, rowvar=True, *, dtype=None):
    """The correlations of the rows (or the columns), between -1 and 1."""
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    deviations = O.sqrt(O.real(O.diagonal(c)))
    return c / O.unsqueeze(deviations, 1) / O.unsqueeze(deviations, 0)


@implements()
def bincount(x, /, weights=None, minlength=0):
    """The number of occurrences of each integer, or the sums of their weights."""
    ids = values(x)
    if weights is None:
        return as_tensor(np.bincount(ids, minlength=minlength))
    size = max(int(ids.max(initial=-1)) + 1, minlength)
    return registry["index_put_sum"](as_floating(weights), (as_tensor(ids),), shape=(size,), spec=(T,))


def _requires_grad(x):
    return holds_tensor(x) and tensor(x).requires_grad


@implements()
def histogram(a, bins=10, range=None, density=None, weights=None):
    """The number of elements in each bin, and the bins' edges; without derivative."""
    if _requires_grad(bins) or _requires_grad(weights):
        refuse("histogram", "edges and weights would lose their gradient; give arrays")
    if isinstance(bins, (int, str)) and range is None and _requires_grad(a):
        refuse("histogram", "the edges depend on the values, and would lose their gradient; give edges or range=")
    counts, edges = np.histogram(values(a), values(bins), range, density, values(weights))
    return as_tensor(counts), as_tensor(edges)
