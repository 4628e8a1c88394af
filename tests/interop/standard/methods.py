"""Random operators, indexing, attributes and conversions of the standard's array objects."""

import numpy as np

from .drawing import ALL, BOOL, COMPLEX, FLOATS, INTEGERS, NUMERIC, REAL, REAL_NUMERIC, SIGNED, WrittenArray
from .registry import no_options, program

ARITHMETIC = {
    "__add__ __sub__ __mul__": NUMERIC,
    "__truediv__": FLOATS,
    "__eq__ __ne__": ALL,
    "__lt__ __le__ __gt__ __ge__": REAL_NUMERIC,
    "__and__ __or__ __xor__": BOOL + INTEGERS,
}
UNARY = {"__neg__ __pos__ __abs__": NUMERIC, "__invert__": BOOL + INTEGERS}


def _of_one_dtype(d, dtypes, values=None):
    """Return two operands of one dtype: promotion of others under operators is PyTorch's, by dimensions."""
    name, shape = d.dtype(*dtypes), d.shape()
    first = d.array(name, shape, values=values)
    return [first, d.number(name) if d.chance(4) else d.array(name, d.broadcastable(shape), values=values)]


for _names, _dtypes in ARITHMETIC.items():
    program(*_names.split())(lambda d, dtypes=_dtypes: no_options(_of_one_dtype(d, dtypes)))
for _names, _dtypes in UNARY.items():
    program(*_names.split())(lambda d, dtypes=_dtypes: no_options([d.array(dtypes)]))


REFLECTED = {
    "__radd__ __rsub__ __rmul__": NUMERIC,
    "__rtruediv__": FLOATS,
    "__rand__ __ror__ __rxor__": BOOL + INTEGERS,
}
IN_PLACE = {"__iadd__ __isub__ __imul__": NUMERIC, "__itruediv__": FLOATS, "__iand__ __ior__ __ixor__": BOOL + INTEGERS}


def _written(d, dtypes, values=None):
    """Return the target of an in-place operator, and an operand that broadcasts to it."""
    name, shape = d.dtype(*dtypes), d.shape()
    other = tuple([1 if d.chance(3) else s for s in shape[d.integer(0, len(shape)) :]])
    value = d.number(name) if d.chance(4) else d.array(name, other, values=values)
    return [WrittenArray(d.array(name, shape, values=values)), value]


for _names, _dtypes in REFLECTED.items():
    program(*_names.split())(lambda d, dtypes=_dtypes: no_options([d.array(name := d.dtype(*dtypes)), d.number(name)]))
for _names, _dtypes in IN_PLACE.items():
    program(*_names.split())(lambda d, dtypes=_dtypes: no_options(_written(d, dtypes)))


@program("__rfloordiv__", "__rmod__")
def _reflected_division(d):
    x = d.array(REAL_NUMERIC, values=lambda dtype, shape: abs(d.small(dtype, shape)) + dtype.type(1))
    return no_options([x, d.number(x.dtype.name)])


@program("__ifloordiv__", "__imod__")
def _division_in_place(d):
    x, value = _written(d, REAL_NUMERIC, lambda dtype, shape: d.small(dtype, shape) * 2 + dtype.type(1))
    return no_options([x, 3 if isinstance(value, int) else value])


@program("__rpow__")
def _reflected_power(d):
    x = d.array(INTEGERS, values=lambda dtype, shape: abs(d.small(dtype, shape)))
    return no_options([x, d.number(x.dtype.name)])


@program("__ipow__", "__ilshift__", "__irshift__")
def _powers_in_place(d):
    return no_options(_written(d, INTEGERS, lambda dtype, shape: abs(d.small(dtype, shape))))


@program("__rlshift__", "__rrshift__")
def _reflected_shifts(d):
    x = d.array(INTEGERS, values=lambda dtype, shape: abs(d.small(dtype, shape)))
    return no_options([x, d.number(x.dtype.name)])


@program("__floordiv__", "__mod__")
def _division(d):
    one, two = _of_one_dtype(d, REAL_NUMERIC, lambda dtype, shape: d.small(dtype, shape) * 2 + dtype.type(1))
    return no_options([one, 3 if isinstance(two, int) else two])


@program("__pow__")
def _powers(d):
    if d.chance():
        return no_options(_of_one_dtype(d, INTEGERS, lambda dtype, shape: abs(d.small(dtype, shape))))
    return no_options(_of_one_dtype(d, FLOATS, d.finite))


@program("__lshift__", "__rshift__")
def _shifts(d):
    return no_options(_of_one_dtype(d, INTEGERS, lambda dtype, shape: abs(d.small(dtype, shape))))


@program("__matmul__")
def _matmul(d):
    name, inner = d.dtype(*NUMERIC), d.integer(0, 3)
    return no_options([d.array(name, s, values=d.small) for s in ((d.integer(0, 3), inner), (inner, d.integer(0, 3)))])


@program("__rmatmul__")
def _reflected_matmul(d):
    x, y = _matmul(d)[0]
    return no_options([y, x])


# -------------------------------------------------------------------------------------------------------- indexing


def _slice(d, size):
    """Return a slice whose bounds are within an axis, as the standard requires."""
    if d.chance():
        ends = [None if d.chance() else d.integer(-size, size) for _ in range(2)]
        return slice(*ends, d.one_of(None, 1, 2))
    ends = [None if d.chance() or not size else d.integer(-size, size - 1) for _ in range(2)]
    return slice(*ends, d.one_of(-1, -2))


def _key(d, shape, to_read=True):
    """Return a key for an array: integers, slices, an ellipsis, a mask; for reads, new axes and arrays of integers."""
    kind = d.integer(0, 4)
    if kind == 0:
        return d.array(BOOL, shape)
    if kind == 1 and to_read and shape and 0 not in shape:
        lead = d.shape(0, 2, (1, 2, 3))
        sides = [d.one_of(lead, lead, ()) for _ in shape]
        indices = [d.random.integers(-s, s, side) for s, side in zip(shape, sides, strict=True)]
        return tuple([np.asarray(i, d.one_of(*SIGNED)) for i in indices])
    parts = [d.integer(-s, s - 1) if s and d.chance() else _slice(d, s) for s in shape]
    if to_read and d.chance(3):
        parts.insert(d.integer(0, len(parts)), None)
    if d.chance(3):
        at = d.integer(0, len(parts))
        parts[at : at + d.integer(0, 2)] = [...]
    return parts[0] if len(parts) == 1 and d.chance() else tuple(parts)


@program("__getitem__")
def _getitem(d):
    x = d.array()
    return no_options([x, _key(d, x.shape)])


@program("__setitem__")
def _setitem(d):
    x = np.array(d.array())
    key = _key(d, x.shape, to_read=False)
    picked = np.shape(x[key])
    masked = isinstance(key, np.ndarray) and key.dtype == bool
    shape = () if masked else tuple([1 if d.chance(4) else s for s in picked[d.integer(0, len(picked)) :]])
    value = d.number(x.dtype.name) if d.chance() else d.array(x.dtype.name, shape)
    return no_options([WrittenArray(x), key, value])


# ------------------------------------------------------------------------------------- attributes and conversions


@program("dtype", "ndim", "shape", "size")
def _any(d):
    return no_options([d.array(low=1)])


@program("mT")
def _matrices(d):
    return no_options([d.array(low=2)])


@program("T")
def _matrix(d):
    return no_options([d.array(shape=(d.integer(0, 3), d.integer(0, 3)))])


@program("__bool__")
def _to_bool(d):
    return no_options([d.array(ALL, ())])


@program("__int__")
def _to_int(d):
    return no_options([d.array(BOOL + INTEGERS + REAL, (), values=d.small)])


@program("__index__")
def _to_index(d):
    return no_options([d.array(INTEGERS, ())])


@program("__float__")
def _to_float(d):
    return no_options([d.array(BOOL + INTEGERS + REAL, ())])


@program("__complex__")
def _to_complex(d):
    return no_options([d.array(ALL if d.chance() else COMPLEX, ())])
