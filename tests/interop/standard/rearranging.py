"""Random arguments of manipulation, searching, sorting and statistical functions."""

import numpy as np

from .drawing import ALL, BOOL, COMPLEX, INTEGERS, NUMERIC, REAL, REAL_NUMERIC, SIGNED
from .registry import no_options, program

# --------------------------------------------------------------------------------------------------------- manipulation


@program("concat")
def _concat(d):
    name = d.dtype(*ALL)
    shape, options = d.shape(1), {}
    axis = d.integer(-len(shape), len(shape) - 1)
    shapes = [shape]
    for _ in range(d.integer(0, 2)):
        changed = list(shape)
        changed[axis] = d.integer(0, 3)
        shapes.append(tuple(changed))
    if d.chance(4):
        options["axis"] = None
    elif axis or d.chance():
        options["axis"] = axis
    names = [name] + [name if name == "uint64" else d.dtype_like(name) for _ in shapes[1:]]
    return ([d.array(n, s) for n, s in zip(names, shapes, strict=True)],), options


@program("stack")
def _stack(d):
    name, shape = d.dtype(*ALL), d.shape()
    arrays = [d.array(name, shape), *[d.array(d.dtype_like(name), shape) for _ in range(d.integer(0, 1))]]
    return (arrays,), d.options(axis=lambda: d.axis(len(shape) + 1))


@program("unstack")
def _unstack(d):
    x = d.array(low=1)
    return (x,), d.options(axis=lambda: d.axis(x.ndim))


@program("expand_dims")
def _expand_dims(d):
    x = d.array()
    return no_options([x, d.axis(x.ndim + 1)])


@program("squeeze")
def _squeeze(d):
    x = d.array()
    ones = [i for i, s in enumerate(x.shape) if s == 1]
    axis = d.axis(x.ndim) if d.chance(6) or not ones else d.one_of(*ones)
    return no_options([x, tuple(ones[: d.integer(0, 2)]) if d.chance() else axis])


@program("flip")
def _flip(d):
    x = d.array()
    return (x,), d.options(axis=lambda: d.axes(x.ndim))


@program("moveaxis")
def _moveaxis(d):
    x = d.array(low=1)
    if d.chance():
        return no_options([x, d.axis(x.ndim), d.axis(x.ndim)])
    count = d.integer(0, x.ndim)
    source, to = (tuple(d.random.permutation(x.ndim)[:count].tolist()) for _ in range(2))
    return no_options([x, source, tuple([a - x.ndim for a in to])])


@program("permute_dims")
def _permute_dims(d):
    x = d.array()
    return no_options([x, tuple([a - x.ndim * d.chance(3) for a in d.random.permutation(x.ndim).tolist()])])


@program("repeat")
def _repeat(d):
    x = d.array()
    axis = d.integer(-x.ndim, x.ndim - 1) if x.ndim and d.chance() else None
    size = x.size if axis is None else x.shape[axis]
    counts = d.array(SIGNED, (size,), values=lambda dtype, shape: abs(d.small(dtype, shape)))
    return (x, d.integer(0, 3) if d.chance() else counts), {} if axis is None else {"axis": axis}


@program("reshape")
def _reshape(d):
    x = d.array()
    factors = [s for s in x.shape if s != 1]
    shape = d.random.permutation(factors).tolist() if factors else []
    if d.chance() and 0 not in shape:
        shape = [-1, *shape[1:]] if shape else [-1]
    return (x, tuple(shape)), d.options(copy=lambda: d.one_of(None, True))


@program("roll")
def _roll(d):
    x = d.array()
    if d.chance(3) or not x.ndim:
        return (x, d.integer(-7, 7)), {}
    axes = tuple(d.random.permutation(x.ndim)[: d.integer(1, x.ndim)].tolist())
    if d.chance():
        return (x, tuple([d.integer(-4, 4) for _ in axes])), {"axis": axes}
    return (x, d.integer(-4, 4)), {"axis": d.one_of(axes[0], axes[0] - x.ndim, axes)}


@program("tile")
def _tile(d):
    return no_options([d.array(), tuple([d.integer(0, 2) for _ in range(d.integer(0, 4))])])


def _indices(d, size, shape):
    """Return integers that index an axis, from either end; sometimes one out of range."""
    outside = d.chance(25)
    if not size and not outside:
        shape = (0,) * len(shape)
    dtype = d.one_of(*SIGNED)
    return d.layout(d.random.integers(-size, size + outside, shape).astype(dtype))


@program("take")
def _take(d):
    x = d.array(low=1)
    axis = d.integer(-x.ndim, x.ndim - 1)
    named = {} if x.ndim == 1 and d.chance() else {"axis": axis}
    return (x, _indices(d, x.shape[axis], (d.integer(0, 4),))), named


@program("take_along_axis")
def _take_along_axis(d):
    x = d.array(shape=d.shape(1, sides=(1, 2, 3)))
    axis = d.integer(-x.ndim, x.ndim - 1)
    shape = list(x.shape)
    shape[axis] = d.integer(0, 3)
    indices = _indices(d, x.shape[axis], shape)
    return (x, indices), {} if axis == -1 else {"axis": axis}


# --------------------------------------------------------------------------------------- statistics, searching, sorting


def _reduction(d, dtypes, *more, **drawn):
    x = d.array(dtypes, **drawn)
    options = d.options(axis=lambda: d.axes(x.ndim), keepdims=lambda: d.chance())
    for name, choose in more:
        options |= d.options(**{name: lambda choose=choose: choose(x)})
    return (x,), options


@program("sum", "prod")
def _sum(d):
    return _reduction(d, NUMERIC, ("dtype", lambda x: d.sum_dtype(x.dtype.name)), values=d.small)


@program("mean")
def _mean(d):
    return _reduction(d, REAL + COMPLEX)


@program("max", "min")
def _extremes(d):
    return _reduction(d, REAL_NUMERIC)


@program("var", "std")
def _spread(d):
    return _reduction(d, REAL, ("correction", lambda x: d.one_of(0, 1, 0.5)))


@program("all", "any", "count_nonzero")
def _truth(d):
    return _reduction(d, ALL)


@program("argmax", "argmin")
def _arg_extremes(d):
    x = d.array(REAL_NUMERIC)
    return (x,), d.options(axis=lambda: d.one_of(None, d.axis(x.ndim)), keepdims=lambda: d.chance())


@program("cumulative_sum", "cumulative_prod")
def _cumulative(d):
    x = d.array(NUMERIC, low=1, values=d.small)
    options = d.flag("include_initial") | d.options(dtype=lambda: d.sum_dtype(x.dtype.name))
    if x.ndim > 1 or d.chance():
        options["axis"] = d.axis(x.ndim)
    return (x,), options


@program("diff")
def _diff(d):
    x = d.array(NUMERIC, low=1, values=d.small)
    axis = d.integer(-x.ndim, x.ndim - 1)
    shape = list(x.shape)

    def more():
        shape[axis] = d.integer(0, 2)
        return d.array(x.dtype.name, tuple(shape), values=d.small)

    options = d.options(n=lambda: d.integer(0, 3), prepend=more, append=more)
    return (x,), options if axis == -1 and d.chance() else {**options, "axis": axis}


@program("nonzero")
def _nonzero(d):
    return no_options([d.array()])


@program("searchsorted")
def _searchsorted(d):
    name = d.dtype(*REAL_NUMERIC)
    places = d.array(name, (d.integer(0, 5),), values=d.small)
    order = np.argsort(places)
    options = d.options(side=lambda: d.one_of("left", "right"))
    if d.chance():
        options["sorter"] = order.astype(d.one_of("int64", "int32"))
    else:
        places = d.layout(places[order])
    return (places, d.array(name, values=d.small)), options


@program("where")
def _where(d):
    one, two = d.pair(ALL)
    shape = np.broadcast_shapes(np.shape(one), np.shape(two))
    return no_options([d.array(BOOL, d.broadcastable(shape)), one, two])


@program("sort", "argsort")
def _sort(d):
    x = d.array(REAL_NUMERIC, low=1, values=d.one_of(d.small, d.values))
    return (x,), d.options(axis=lambda: d.axis(x.ndim), descending=lambda: d.chance(), stable=True)


@program("unique_all", "unique_counts", "unique_inverse", "unique_values")
def _unique(d):
    return no_options([d.array(values=d.one_of(d.small, d.values))])


@program("isin")
def _isin(d):
    return no_options(d.pair(INTEGERS, d.small))
