"""The factorisation of symmetric indefinite matrices, which NumPy lacks, in LAPACK's packed form."""

import math

import numpy as np

from retrograd.backend.linalg import check_square

__all__ = ["bunch_kaufman", "swaps_of_pivots"]

# The bound on the growth of elements for which pivots of sizes 1 and 2 are equally good.
ALPHA = (1 + math.sqrt(17)) / 8


def bunch_kaufman(a, hermitian):
    """Return L D L^T (L D L^H if `hermitian`) of the lower triangles of symmetric matrices, as LAPACK's sytrf does.

    One matrix holds L, whose diagonal of ones is left out, and D, with blocks of sizes 1 and 2.  `pivots[k]` is the
    row, from 1, that was swapped with row k; that of a block of size 2, at both of its rows, is negative and belongs
    to the second one.  `info` is the first k, from 1, whose block D[k, k] is 0; 0 if there is none.

    J. R. Bunch and L. Kaufman, Some stable methods for calculating inertia and solving symmetric linear systems,
    Math. Comp. 31 (1977).
    """
    check_square("linalg.ldl_factor", a)
    packed, pivots = np.empty_like(a, order="C"), np.empty(a.shape[:-1], np.int32)
    info = np.zeros(a.shape[:-2], np.int32)
    for place in np.ndindex(info.shape):
        whole = _complete_symmetric(a[place], hermitian)
        info[place] = _factor(whole, pivots[place], hermitian)
        packed[place] = np.tril(whole)
    return packed, pivots, info


def _complete_symmetric(a, hermitian):
    """Return the full symmetric (Hermitian) matrix of which `a` has the lower triangle."""
    diagonal = np.diagonal(a).real if hermitian else np.diagonal(a)
    below = np.tril(a, -1)
    return below + (below.conj() if hermitian else below).T + np.diag(diagonal)


def _size(x):
    """Return the absolute values that LAPACK compares: |real part| + |imaginary part|."""
    return np.abs(x.real) + np.abs(x.imag) if x.dtype.kind == "c" else np.abs(x)


def _factor(a, pivots, hermitian):
    """Factor one matrix in place and return its info; the trailing part holds both triangles throughout."""
    k, info = 0, 0
    while k < len(a):
        other, step = _pivot(a, k)
        if step == 0:  # the column is 0 already, or NaN
            info = info or k + 1
            pivots[k] = k + 1
            k += 1
            continue
        last = k + step - 1
        if other != last:
            _swap(a, k, last, other)
        pivots[k : last + 1] = other + 1 if step == 1 else -(other + 1)
        _eliminate(a, k, step, hermitian)
        k += step
    return info


def _pivot(a, k):
    """Return the row to swap with row k, or with row k + 1, and whether the block has size 1 or 2, or is 0."""
    own = _size(a[k, k])
    column = _size(a[k + 1 :, k])
    largest = column.max(initial=0)
    if max(own, largest) == 0 or np.isnan(own):
        return k, 0
    if own >= ALPHA * largest:
        return k, 1
    at = k + 1 + int(column.argmax())
    row = _size(a[at, k:])
    other, row[at - k] = row[at - k], 0
    if own >= ALPHA * largest * (largest / row.max()):
        return k, 1
    return at, 1 if other >= ALPHA * row.max() else 2


def _swap(a, k, first, second):
    """Swap two rows, and the columns, of the part from k on."""
    both, swapped = [first, second], [second, first]
    a[both, k:] = a[swapped, k:]
    a[k:, both] = a[k:, swapped]


def _eliminate(a, k, step, hermitian):
    """Divide the columns of a block by it, and subtract what it accounts for from the rest."""
    own, rest = slice(k, k + step), slice(k + step, None)
    columns, block = a[rest, own].copy(), a[own, own]
    a[rest, own] = columns / block if step == 1 else np.linalg.solve(block.T, columns.T).T
    a[rest, rest] -= a[rest, own] @ (columns.conj() if hermitian else columns).T
    a[rest, rest] = _complete_symmetric(a[rest, rest], hermitian)  # products may round differently above the diagonal


def swaps_of_pivots(pivots):
    """Decode `pivots` of `bunch_kaufman`: return the row order, the blocks and the source of each element.

    Row i of the matrix with all swaps done is row order[i].  `blocks[k]` says that rows k and k + 1 have a block of
    size 2.  Swaps leave earlier columns of the packed L as they are: element (i, j) of L is in row source[i, j].
    """
    n = pivots.shape[-1]
    order, blocks = np.empty(pivots.shape, np.int64), np.zeros(pivots.shape, bool)
    source = np.empty((*pivots.shape, n), np.int64)
    for place in np.ndindex(pivots.shape[:-1]):
        rows, columns = np.arange(n), np.tile(np.arange(n)[:, None], n)
        for first, last, other in _steps(pivots[place]):
            rows[[last, other]] = rows[[other, last]]
            columns[[last, other], :first] = columns[[other, last], :first]
            blocks[place][first:last] = True
        order[place], source[place] = rows, columns
    return order, blocks, source


def _steps(pivots):
    """Yield the first and last row of each block, and the row that the last one was swapped with."""
    k = 0
    while k < len(pivots):
        last, other = k + (pivots[k] < 0), abs(int(pivots[k])) - 1
        if not last <= other < len(pivots):
            raise ValueError(f"linalg.ldl_solve: {pivots.tolist()} are no pivots of linalg.ldl_factor")
        yield k, last, other
        k = last + 1
