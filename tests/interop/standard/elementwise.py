"""Random arguments of elementwise functions, creation functions and dtype functions."""

import numpy as np

from .drawing import ALL, BOOL, COMPLEX, FLOATS, INTEGERS, NUMERIC, REAL, REAL_NUMERIC, SIGNED, Device, meet
from .registry import PROGRAMS, no_options, program

# ---------------------------------------------------------------------------------------------------------- elementwise

UNARY = {
    "abs conj isfinite isinf isnan negative positive real round sign square": NUMERIC,
    "acos acosh asin asinh atan atanh cos cosh exp expm1 log log10": FLOATS,
    "log1p log2 reciprocal sin sinh sqrt tan tanh": FLOATS,
    "ceil floor trunc": REAL_NUMERIC,
    "bitwise_invert": BOOL + INTEGERS,
    "imag": COMPLEX,
    "logical_not": BOOL,
    "signbit": REAL,
}
BINARY = {
    "add multiply subtract": NUMERIC,
    "equal not_equal": ALL,
    "greater greater_equal less less_equal maximum minimum": REAL_NUMERIC,
    "bitwise_and bitwise_or bitwise_xor": BOOL + INTEGERS,
    "logical_and logical_or logical_xor": BOOL,
    "atan2 copysign hypot logaddexp nextafter": REAL,
    "divide": FLOATS,
}


def _pointwise(table, draw_operands):
    for names, dtypes in table.items():
        program(*names.split())(lambda d, dtypes=dtypes: no_options(draw_operands(d, dtypes)))


_pointwise(UNARY, lambda d, dtypes: [d.array(dtypes)])
_pointwise(BINARY, lambda d, dtypes: d.pair(dtypes))


@program("floor_divide", "remainder")
def _division(d):
    def divisors(dtype, shape):
        made = d.small(dtype, shape)
        return np.where(made == 0, 2, made).astype(dtype)

    one, two = d.pair(REAL_NUMERIC, divisors)  # the standard does not define integer division by 0
    return no_options([one, 3 if isinstance(two, int) else two])


@program("pow")
def _powers(d):
    if d.chance():
        return no_options(d.pair(INTEGERS, lambda dtype, shape: abs(d.small(dtype, shape))))
    return no_options(d.pair(FLOATS, d.finite))


@program("bitwise_left_shift", "bitwise_right_shift")
def _shifts(d):
    return no_options(d.pair(INTEGERS, lambda dtype, shape: abs(d.small(dtype, shape))))


@program("clip")
def _clip(d):
    x = d.array(REAL_NUMERIC)
    dtype = x.dtype.name

    def bound(offset):
        if d.chance():
            return d.number(dtype) + offset
        return np.asarray(d.small(x.dtype, d.broadcastable(x.shape)) + x.dtype.type(offset), x.dtype)

    return (x,), d.options(min=lambda: bound(0), max=lambda: bound(10))


# ------------------------------------------------------------------------------------------------------------- creation


@program("zeros", "ones")
def _filled(d):
    shape = d.one_of(3, d.shape())
    return (shape,), d.options(dtype=lambda: d.dtype(*ALL), device=Device())


@program("zeros_like", "ones_like")
def _filled_like(d):
    return (d.array(),), d.options(dtype=lambda: d.dtype(*ALL), device=Device())


@program("empty")
def _empty(d):
    return (d.shape(),), {"dtype": d.dtype(*ALL)}


@program("empty_like")
def _empty_like(d):
    return (d.array(),), d.options(dtype=lambda: d.dtype(*ALL))


@program("full", "full_like")
def _full(d, like=False):
    name = d.dtype(*ALL)
    options = d.options(device=Device())
    if like or d.chance():
        options["dtype"] = name
    kinds = {"b": BOOL, "i": ("int64",), "u": ("int64",), "f": ("float64",), "c": ("complex128",)}
    number = d.number(name if "dtype" in options else d.one_of(*kinds[np.dtype(str(name)).kind]))
    return (d.array() if like else d.one_of(3, d.shape()), number), options


PROGRAMS["full_like"] = lambda d: _full(d, like=True)


@program("arange")
def _arange(d):
    options = d.options(dtype=lambda: d.dtype(*SIGNED, *REAL), device=Device())
    if d.chance(3):
        return (d.integer(-3, 6),), options
    step = d.one_of(1, 2, -1, -3, 0.5, -0.25)
    if isinstance(step, float) and "int" in options.get("dtype", ""):
        step = 1
    if d.chance():
        options["step"] = step
    return (d.integer(-5, 5), d.integer(-5, 5)), options


@program("linspace")
def _linspace(d):
    name = d.dtype(*FLOATS)
    ends = (d.number(name), d.number(name))
    options = d.options(endpoint=lambda: d.chance(), device=Device())
    return (*ends, d.integer(0, 6)), {**options, "dtype": name}


@program("eye")
def _eye(d):
    sizes = [d.integer(0, 4) for _ in range(d.integer(1, 2))]
    return tuple(sizes), d.options(k=lambda: d.integer(-5, 5), dtype=lambda: d.dtype(*ALL), device=Device())


@program("meshgrid")
def _meshgrid(d):
    name = d.dtype(*NUMERIC)
    arrays = [d.array(name, (d.integer(0, 3),)) for _ in range(d.integer(1, 3))]
    return tuple(arrays), d.options(indexing=lambda: d.one_of("xy", "ij"))


@program("tril", "triu")
def _triangle(d):
    return (d.array(low=2),), d.options(k=lambda: d.integer(-4, 4))


@program("asarray")
def _asarray(d):
    made = d.array(values=d.small)
    obj = made if d.chance() else made.tolist()
    dtype = made.dtype.name if obj is made else {"f": "float64", "c": "complex128"}.get(made.dtype.kind, "int64")
    options = d.options(device=Device(), copy=lambda: d.one_of(None, True))
    wider = [n for n in ALL if np.can_cast(dtype, n)]
    if obj is not made or d.chance():
        options["dtype"] = d.dtype(*wider)
    return (obj,), options


# Where NumPy is 2.0, array-api-strict makes no copies by DLPack.
COPIES_BY_DLPACK = (None,) if np.lib.NumpyVersion(np.__version__) < "2.1.0" else (None, True)


@program("from_dlpack")
def _from_dlpack(d):
    return (d.array(),), d.options(device=Device(), copy=lambda: d.one_of(*COPIES_BY_DLPACK))


# ----------------------------------------------------------------------------------------------------------- data types


@program("astype")
def _astype(d):
    x = d.array(values=d.small)
    to = d.dtype(*(COMPLEX if x.dtype.kind == "c" else ALL))
    if x.dtype.kind in "if" and np.dtype(str(to)).kind == "u":  # the standard leaves negative operands undefined
        x = np.asarray(abs(x))
    return (x, to), d.options(copy=lambda: d.chance(), device=Device())


@program("can_cast")
def _can_cast(d):
    name = d.dtype(*ALL)
    return no_options([d.array(name) if d.chance() else name, d.dtype(*ALL)])


@program("result_type")
def _result_type(d):
    name = d.dtype(*ALL)
    others = [d.dtype(*[n for n in ALL if meet(name, n)]) for _ in range(d.integer(0, 1))]
    made = [d.array(n) if d.chance() else n for n in [name, *others]]
    return no_options(made + ([d.number(name)] if d.chance() else []))


@program("finfo")
def _finfo(d):
    return no_options([d.array(FLOATS) if d.chance() else d.dtype(*FLOATS)])


@program("iinfo")
def _iinfo(d):
    return no_options([d.array(INTEGERS) if d.chance() else d.dtype(*INTEGERS)])


@program("isdtype")
def _isdtype(d):
    kinds = ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric")

    def kind():
        return d.one_of(*kinds) if d.chance() else d.dtype(*ALL)

    return no_options([d.dtype(*ALL), (kind(), kind()) if d.chance() else kind()])


@program("broadcast_arrays")
def _broadcast_arrays(d):
    shape = d.shape()
    return no_options([d.array(shape=shape), *[d.array(shape=d.broadcastable(shape)) for _ in range(d.integer(0, 2))]])


@program("broadcast_shapes")
def _broadcast_shapes(d):
    shape = d.shape()
    return no_options([shape, *[d.broadcastable(shape) for _ in range(d.integer(0, 2))]])


@program("broadcast_to")
def _broadcast_to(d):
    shape = d.shape()
    ones = tuple([1 if d.chance(3) else s for s in shape[d.integer(0, len(shape)) :]])
    return no_options([d.array(shape=ones), shape])
