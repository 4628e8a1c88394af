"""Kernels of padding, resizing and sampling images.

Padding and resizing are linear maps along one dimension, as tables of indices and weights.

Maps that only copy read slices.  Weighted maps are products with the blocks of a band matrix if all values are finite.
Otherwise they are computed term by term, because 0 times an infinite value would be NaN.
"""

import math
from functools import lru_cache

import numpy as np

from retrograd import kernels
from retrograd.backend.gather_scatter import contiguous, kernels_for
from retrograd.backend.resample_tables import Block, Row, blocks_of, rows_of
from retrograd.kernels import empty
from retrograd.kernels.grid_sample_reference import MODES, PADDINGS
from retrograd.kernels.host_values import on_host

# From twice as many multiplications on, BLAS uses threads, which wait for each other at each block: on a busy machine,
# up to a hundred times as long as they compute.
FEW_PRODUCTS = 1 << 17

__all__ = [
    "pad_constant", "resample", "resample_backward", "sample_points", "sample_points_backward", "sample_slopes"
]  # fmt: skip


@lru_cache(256)
def _rows(how, transposed):
    """Return the rows of a table, with its arrays where those of the kernels are."""
    return [
        Row(np.asarray(row.indices), row.pieces, _placed(row.weights), _placed(row.targets))
        for row in rows_of(how, transposed)
    ]


def _placed(array):
    return None if array is None else np.asarray(array)


@lru_cache(256)
def _blocks(how, transposed, dtype):
    """Return the blocks of a table's matrix, which are where the arrays of the kernels are."""
    found = blocks_of(how, transposed, dtype)
    return [Block(block.target, block.source, np.asarray(block.matrix)) for block in found]


def resample(x, dim, how):
    """Return x mapped along one dimension."""
    return _apply_map(x, dim, how[2], how, False)


def resample_backward(x, dim, how):
    """Return x mapped along one dimension by the transposed map."""
    return _apply_map(x, dim, how[1], how, True)


def _apply_map(x, dim, size, how, transposed):
    rows = _rows(how, transposed)
    copies = all(row.weights is None for row in rows)
    with np.errstate(invalid="ignore"):  # NaN where infinities of both signs meet; FALSE_ALARM in products.py
        if on_host and not copies and x.dtype.char in "fdFD" and np.isfinite(x).all():
            return _apply_blocks(x, dim, size, _blocks(how, transposed, x.dtype))
        return _apply_rows(x, dim, size, rows)


def _apply_blocks(x, dim, size, blocks):
    shape = (*x.shape[:dim], size, *x.shape[dim + 1 :])
    lead, rest = math.prod(shape[:dim]), math.prod(shape[dim + 1 :])
    out = np.empty((lead, size, rest), x.dtype)
    x = x.reshape(lead, x.shape[dim], rest)
    ours = x.dtype.char in "fd" and kernels.get_vector_bytes() >= 32
    for target, source, matrix in blocks:
        threaded = matrix.size * (lead if rest == 1 else rest) > FEW_PRODUCTS
        multiply = kernels.multiply_matrices if ours and threaded else np.matmul
        if rest == 1:
            multiply(x[:, source, 0], matrix.T, out=out[:, target, 0])
        else:
            multiply(matrix, x[:, source], out=out[:, target])
    return out.reshape(shape)


def _apply_rows(x, dim, size, rows):
    if rows and rows[0].targets is None:
        first, *rows = rows
        term = _term(x, dim, first)
        total = term if term.base is None else term.copy()
    else:
        total = np.zeros((*x.shape[:dim], size, *x.shape[dim + 1 :]), x.dtype)
    for row in rows:
        if row.targets is None:
            total += _term(x, dim, row)
        else:
            total[(slice(None),) * dim + (row.targets,)] += _term(x, dim, row)
    return total


def _term(x, dim, row):
    """Return the elements at the indices of a row times its weights; possibly a view."""
    values = _read_row(x, dim, row)
    if row.weights is None:
        return values
    return values * row.weights.astype(values.real.dtype).reshape(-1, *(1,) * (x.ndim - dim - 1))


def _read_row(x, dim, row):
    """Return the elements at the indices of a row; a view if the indices are equally spaced."""
    lead = (slice(None),) * dim
    if row.pieces is None:
        return np.take(x, row.indices, axis=dim)
    if len(row.pieces) == 1 and (len(row.indices) == 1 or not _is_single(row.pieces[0][1])):
        return x[(*lead, row.pieces[0][1])]
    out = np.empty((*x.shape[:dim], len(row.indices), *x.shape[dim + 1 :]), x.dtype)
    for target, source in row.pieces:
        out[(*lead, target)] = x[(*lead, source)]
    return out


def _is_single(source):
    """Return whether a slice of a progression has one element."""
    return source.stop is not None and abs(source.stop - source.start) == 1


def pad_constant(x, margins, value):
    """Return x padded with (before, after) elements of `value` in each dimension; negative margins crop."""
    shape, cropped, inside = [], [], []
    for size, (before, after) in zip(x.shape, margins, strict=True):
        padded = size + before + after
        shape.append(padded)
        cropped.append(slice(-before if before < 0 else 0, size + after if after < 0 else size))
        inside.append(slice(before if before > 0 else 0, padded - after if after > 0 else padded))
    out = np.zeros(shape, x.dtype) if value == 0 else np.full(shape, value, x.dtype)
    if out.size:
        out[tuple(inside)] = x[tuple(cropped)]
    return out


# `how` of the following kernels: the mode, the padding, whether corners are aligned, and for each dimension of the
# images the order of the derivative with respect to the position.


def sample_points(x, grid, how):
    """Return images x (*n, c, *sizes) at the points of grid (*n, *out, d): (*n, c, *out)."""
    lead = x.ndim - 1 - grid.shape[-1]
    out = empty((*x.shape[: lead + 1], *grid.shape[lead:-1]), x.dtype)
    kernel, settings = kernels_for(x.dtype).sample_points, _sampling_settings(how, x.shape[lead + 1 :])
    kernel(settings, _flat_images(x, lead), _flat_grid(grid, lead), _flat_images(out, lead))
    return out


def sample_points_backward(y, grid, how, sizes):
    """Return images of `sizes`, in which y (*n, c, *out) is added to the elements that the points read."""
    lead = y.ndim - 1 - grid.shape[-1]
    out = empty((*y.shape[: lead + 1], *sizes), y.dtype)
    kernel, settings = kernels_for(y.dtype).sample_points_backward, _sampling_settings(how, tuple(sizes))
    kernel(settings, _flat_images(y, lead), _flat_grid(grid, lead), _flat_images(out, lead))
    return out


def sample_slopes(y, x, grid, how):
    """Return the derivatives by grid of the sum of y times the samples of x: (*n, *out, d)."""
    lead = x.ndim - 1 - grid.shape[-1]
    out = empty(grid.shape, x.dtype)
    kernel, settings = kernels_for(x.dtype).sample_slopes, _sampling_settings(how, x.shape[lead + 1 :])
    kernel(settings, _flat_images(y, lead), _flat_images(x, lead), _flat_grid(grid, lead), _flat_grid(out, lead))
    return out


def _flat_images(x, lead):
    """Return x (*n, c, *sizes), of which `lead` dimensions are before the channels, as (n, c, size)."""
    return contiguous(x).reshape(math.prod(x.shape[:lead]), x.shape[lead], math.prod(x.shape[lead + 1 :]))


def _flat_grid(grid, lead):
    return contiguous(grid).reshape(math.prod(grid.shape[:lead]), math.prod(grid.shape[lead:-1]), grid.shape[-1])


@lru_cache(256)
def _sampling_settings(how, sizes):
    mode, padding, align, orders = how
    missing = 3 - len(sizes)
    modes = MODES.index(mode), PADDINGS.index(padding), int(align)
    return (*modes, *(1,) * missing, *sizes, *(0,) * missing, *orders)
