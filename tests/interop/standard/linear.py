"""Random arguments of linear algebra and Fourier transforms."""

import numpy as np

from .drawing import COMPLEX, FLOATS, NUMERIC, REAL, Device, meet
from .registry import no_options, program

# ------------------------------------------------------------------------------------------------------- linear algebra


def _matrix(d, dtypes=FLOATS, rows=None, columns=None, lead=None, values=None):
    """Return a stack of matrices."""
    lead = d.shape(0, 2, (0, 1, 2, 2)) if lead is None else lead
    rows = d.integer(0, 3) if rows is None else rows
    shape = (*lead, rows, d.integer(0, 3) if columns is None else columns)
    return d.array(dtypes, shape, values=values or d.finite)


def _square(d, dtypes=FLOATS, low=0, **drawn):
    size = d.integer(low, 3)
    return _matrix(d, dtypes, size, size, **drawn)


def _definite(d, dtype, shape):
    x = d.finite(dtype, shape)
    return (x @ x.conj().swapaxes(-1, -2) + np.eye(shape[-1])).astype(dtype)


@program("matmul", "linalg.matmul")
def _matmul(d):
    inner, lead = d.integer(0, 3), d.shape(0, 1)
    one = d.dtype(*NUMERIC)
    first = (inner,) if d.chance(4) else (*lead, d.integer(0, 3), inner)
    second = (inner,) if d.chance(4) else (*d.broadcastable(lead), inner, d.integer(0, 3))
    two = d.one_of(*[n for n in NUMERIC if meet(one, n)])
    return no_options([d.array(one, first, values=d.small), d.array(two, second, values=d.small)])


@program("tensordot", "linalg.tensordot")
def _tensordot(d):
    one, shape = d.dtype(*NUMERIC), d.shape()
    x, count = d.array(one, shape, values=d.small), d.integer(0, len(shape))
    two = d.one_of(*[n for n in NUMERIC if meet(one, n)])
    if d.chance():
        y = d.array(two, (*shape[len(shape) - count :], *d.shape(0, 1)), values=d.small)
        return (x, y), {} if count == 2 and d.chance() else {"axes": count}
    axes = d.random.permutation(len(shape))[:count].tolist()
    y = d.array(two, (*d.shape(0, 1), *[shape[a] for a in axes]), values=d.small)
    return (x, y), {"axes": (axes, list(range(y.ndim - count, y.ndim)))}


@program("vecdot", "linalg.vecdot")
def _vecdot(d):
    one, shape = d.dtype(*NUMERIC), d.shape(1)
    two = d.one_of(*[n for n in NUMERIC if meet(one, n)])
    axis = d.integer(-len(shape), -1)
    other = tuple([1 if d.chance(4) and i - len(shape) != axis else s for i, s in enumerate(shape)])
    operands = d.array(one, shape, values=d.small), d.array(two, other, values=d.small)
    return operands, {} if axis == -1 and d.chance() else {"axis": axis}


@program("matrix_transpose", "linalg.matrix_transpose")
def _matrix_transpose(d):
    return no_options([d.array(low=2)])


@program("linalg.outer")
def _outer(d):
    one = d.dtype(*NUMERIC)
    two = d.one_of(*[n for n in NUMERIC if meet(one, n)])
    return no_options([d.array(n, (d.integer(0, 3),), values=d.small) for n in (one, two)])


@program("linalg.cross")
def _cross(d):
    one, shape = d.dtype(*NUMERIC), list(d.shape(1))
    axis = d.integer(-len(shape), -1)
    shape[axis] = 3
    other = tuple([1 if d.chance(4) and i - len(shape) != axis else s for i, s in enumerate(shape)])
    two = d.one_of(*[n for n in NUMERIC if meet(one, n)])
    operands = d.array(one, tuple(shape), values=d.small), d.array(two, other, values=d.small)
    return operands, {} if axis == -1 and d.chance() else {"axis": axis}


@program("linalg.diagonal")
def _diagonal(d):
    return (d.array(low=2),), d.options(offset=lambda: d.integer(-3, 3))


@program("linalg.trace")
def _trace(d):
    x = d.array(NUMERIC, low=2, values=d.small)
    return (x,), d.options(offset=lambda: d.integer(-3, 3), dtype=lambda: d.sum_dtype(x.dtype.name))


@program("linalg.det", "linalg.slogdet")
def _determinant(d):
    return no_options([_square(d)])


@program("linalg.inv")
def _inverse(d):
    return no_options([_square(d, values=lambda dtype, shape: _definite(d, dtype, shape))])


@program("linalg.cholesky")
def _cholesky(d):
    return (_square(d, values=lambda dtype, shape: _definite(d, dtype, shape)),), d.flag("upper")


@program("linalg.eigh", "linalg.eigvalsh")
def _eigenvalues(d):
    if d.chance():  # entries above the diagonal are unspecified
        return no_options([_square(d)])
    return no_options([_square(d, values=lambda dtype, shape: _definite(d, dtype, shape))])


@program("linalg.matrix_power")
def _matrix_power(d):
    x = _square(d, values=lambda dtype, shape: _definite(d, dtype, shape))
    return no_options([x, d.integer(-2, 3)])


def _rank_deficient(d, dtype, shape):
    x = d.finite(dtype, shape)
    if shape[-1] > 1 and d.chance():
        x[..., 0] = x[..., -1]
    return x


def _tolerance(d, x):
    if d.chance():
        return d.one_of(1e-3, 0.3)
    return d.random.choice([1e-3, 0.3], x.shape[:-2]).astype(x.real.dtype)


@program("linalg.matrix_rank", "linalg.pinv")
def _rank(d):
    rows, columns = d.integer(1, 3), d.integer(1, 3)
    x = _matrix(d, FLOATS, rows, columns, values=lambda dtype, shape: _rank_deficient(d, dtype, shape))
    return (x,), d.options(rtol=lambda: _tolerance(d, x))


@program("linalg.qr")
def _qr(d):
    return (_matrix(d),), d.options(mode=lambda: d.one_of("reduced", "complete"))


@program("linalg.svd")
def _svd(d):
    return (_matrix(d),), d.flag("full_matrices")


@program("linalg.svdvals")
def _svdvals(d):
    return no_options([_matrix(d)])


@program("linalg.solve")
def _solve(d):
    a = _square(d, values=lambda dtype, shape: _definite(d, dtype, shape))
    other = d.one_of(*[n for n in FLOATS if meet(n, a.dtype.name)])
    if d.chance(3):
        return no_options([a, d.array(other, (a.shape[-1],), values=d.finite)])
    return no_options([a, _matrix(d, other, a.shape[-1], None, d.broadcastable(a.shape[:-2]))])


@program("linalg.matrix_norm")
def _matrix_norm(d):
    x = _matrix(d, FLOATS, d.integer(1, 3), d.integer(1, 3))
    return (x,), d.flag("keepdims") | d.options(ord=lambda: d.one_of("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf))


@program("linalg.vector_norm")
def _vector_norm(d):
    x = d.array(FLOATS, values=d.finite)
    orders = (0, 1, 2, 3, 0.5, *[-1, np.inf, -np.inf][: 3 * bool(x.size)])
    options = d.options(ord=lambda: d.one_of(*orders), axis=lambda: d.axes(x.ndim))
    return (x,), options | d.flag("keepdims")


# --------------------------------------------------------------------------------------------------- Fourier transforms

NORMS = ("backward", "ortho", "forward")


def _one_axis(dtypes):
    def draw(d):
        x = d.array(dtypes, d.shape(1, sides=(1, 2, 3, 4)), values=d.finite)
        drawn = d.options(n=lambda: d.integer(1, 5), axis=lambda: d.axis(x.ndim), norm=lambda: d.one_of(*NORMS))
        return (x,), drawn

    return draw


def _several_axes(dtypes):
    def draw(d):
        x = d.array(dtypes, d.shape(1, sides=(1, 2, 3, 4)), values=d.finite)
        options = d.options(norm=lambda: d.one_of(*NORMS))
        if d.chance():
            axes = d.random.permutation(x.ndim)[: d.integer(1, x.ndim)].tolist()
            options["axes"] = tuple([a - x.ndim if d.chance() else a for a in axes])
            if d.chance():
                options["s"] = tuple([d.integer(1, 4) for _ in axes])
        return (x,), options

    return draw


program("fft.fft", "fft.ifft", "fft.irfft", "fft.hfft")(_one_axis(COMPLEX))
program("fft.rfft", "fft.ihfft")(_one_axis(REAL))
program("fft.fftn", "fft.ifftn", "fft.irfftn")(_several_axes(COMPLEX))
program("fft.rfftn")(_several_axes(REAL))


@program("fft.fftfreq", "fft.rfftfreq")
def _frequencies(d):
    options = d.options(d=lambda: d.one_of(1.0, 0.5, 2.0), device=Device())
    return (d.integer(1, 7),), {**options, "dtype": d.dtype(*REAL)}


@program("fft.fftshift", "fft.ifftshift")
def _with_axes(d):
    x = d.array(FLOATS, low=1)
    return (x,), d.options(axes=lambda: d.axes(x.ndim))
