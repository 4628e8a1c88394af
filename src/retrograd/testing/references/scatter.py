"""Reference implementations of scattering and gathering, element by element."""

import numpy as np


def index_pairs(index, dim):
    """Yield each position of the index, and the position of the tensor that it selects along dim."""
    for place in np.ndindex(index.shape):
        target = list(place)
        target[dim] = index[place]
        yield place, tuple(target)


def gather(x, index, dim, sparse_grad=False):
    out = np.empty(index.shape)
    for place, source in index_pairs(index, dim):
        out[place] = x[source]
    return out


def take_along_dim(x, indices, dim):
    if dim is None:
        return x.ravel()[indices.ravel()]
    shape = list(np.broadcast_shapes(*[np.delete(a.shape, dim) for a in (x, indices)]))
    shape.insert(dim % x.ndim, 0)
    wide = [np.broadcast_to(a, [s if d != dim else a.shape[d] for d, s in enumerate(shape)]) for a in (x, indices)]
    return gather(*wide, dim)


COMBINE = {
    None: lambda values, old: values[-1],
    "add": lambda values, old: old + sum(values),
    "sum": lambda values, old: old + sum(values),
    "multiply": lambda values, old: old * np.prod(values),
    "prod": lambda values, old: old * np.prod(values),
    "mean": lambda values, old: np.mean([old, *values]),
    "amax": lambda values, old: max(old, *values),
    "amin": lambda values, old: min(old, *values),
}
COMBINE_ALONE = {
    "sum": sum,
    "prod": np.prod,
    "mean": np.mean,
    "amax": max,
    "amin": min,
}


def combine(x, dim, index, src, reduce, include_self=True):
    """Return x with the elements of src that go to one position combined there."""
    arriving = {}
    for place, target in index_pairs(index, dim):
        arriving.setdefault(target, []).append(src[place] if np.ndim(src) else src)
    out = x.copy()
    for target, values in arriving.items():
        out[target] = COMBINE[reduce](values, x[target]) if include_self else COMBINE_ALONE[reduce](values)
    return out


def accept_scalars(rows):
    """Let an oracle accept arrays without dimensions, as one slice."""

    def wrapped(x, dim, index, source, *rest):
        if x.ndim:
            return rows(x, dim, index, source, *rest)
        return rows(x.reshape(1), dim, index, np.reshape(source, 1), *rest).reshape(())

    return wrapped


@accept_scalars
def add_rows(x, dim, index, source, alpha=1):
    out = np.moveaxis(x, dim, 0).copy()
    for i, row in zip(index, np.moveaxis(source, dim, 0), strict=True):
        out[i] += alpha * row
    return np.moveaxis(out, 0, dim)


@accept_scalars
def write_rows(x, dim, index, source):
    out = np.moveaxis(x, dim, 0).copy()
    out[index] = source if np.ndim(source) == 0 else np.moveaxis(source, dim, 0)
    return np.moveaxis(out, 0, dim)


@accept_scalars
def combine_rows(x, dim, index, source, reduce, include_self):
    shape = np.ones(x.ndim, int)
    shape[dim] = -1
    return combine(x, dim, np.broadcast_to(index.reshape(shape), source.shape), source, reduce, include_self)


def zeros_along(src, dim, size):
    return np.zeros([size if d == dim % src.ndim else s for d, s in enumerate(src.shape)])


def index_sum(src, index, dim, size):
    return add_rows(zeros_along(src, dim, size), dim, index, src)


def add_slices(x, src, index, dim):
    return add_rows(x, dim, index, src)


def scatter_set(x, index, src, dim):
    return combine(x, dim, index, src, None)


def scatter_prod(x, index, src, dim):
    return combine(x, dim, index, src, "prod")


def scatter_max(x, index, src, dim):
    return combine(x, dim, index, src, "amax")


def scatter_min(x, index, src, dim):
    return combine(x, dim, index, src, "amin")


def scatter(x, index, src, dim, value, reduce):
    return combine(x, dim, index, value if src is None else src, reduce)


def scatter_add(x, index, src, dim):
    return combine(x, dim, index, src, "sum")


def scatter_reduce(x, index, src, dim, reduce, include_self):
    return combine(x, dim, index, src, reduce, include_self)


def index_add(x, index, source, dim, alpha):
    return add_rows(x, dim, index, source, alpha)


def index_copy(x, index, source, dim):
    return write_rows(x, dim, index, source)


def index_fill(x, index, value, dim):
    return write_rows(x, dim, index, value)


def index_reduce(x, index, source, dim, reduce, include_self):
    return combine_rows(x, dim, index, source, reduce, include_self)
