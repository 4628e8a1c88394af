"""Random arguments for functions of the array API standard, as NumPy arrays and names of dtypes."""

import random

import numpy as np

BOOL, SIGNED = ("bool",), ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
REAL, COMPLEX = ("float32", "float64"), ("complex64", "complex128")
INTEGERS, FLOATS = SIGNED + UNSIGNED, REAL + COMPLEX
NUMERIC, REAL_NUMERIC = INTEGERS + FLOATS, INTEGERS + REAL
ALL = BOOL + NUMERIC


class Dtype(str):
    """The name of a dtype, which each namespace has as an attribute."""


class Device:
    """The device that each namespace works on by default."""


class WrittenArray:
    """An array that a program writes to; its value afterwards is the result."""

    def __init__(self, array):
        self.array = array

    def __repr__(self):
        return repr(self.array)


class Draw:
    """Draws for a test: dtypes, shapes, arrays in any memory layout, axes, options."""

    def __init__(self, seed):
        self._python = random.Random(seed)
        self.random = np.random.default_rng(seed)

    def one_of(self, *choices):
        return self._python.choice(choices)

    def integer(self, low, high):
        return self._python.randint(low, high)

    def chance(self, of=2):
        """Return True with probability 1 / of."""
        return self.integer(1, of) == of

    def options(self, **choices):
        """Return some of the keyword arguments; a choice is a value, or a function that draws it when it is used."""
        return {name: c() if callable(c) else c for name, c in choices.items() if self.chance()}

    def flag(self, name):
        return self.options(**{name: lambda: self.chance()})

    # ------------------------------------------------------------------------------------------- dtypes and shapes

    def dtype(self, *names):
        return Dtype(self.one_of(*names))

    def dtype_like(self, name):
        """Return a dtype that the standard allows to be promoted with this one."""
        return self.one_of(*[other for other in ALL if meet(name, other)])

    def shape(self, low=0, high=3, sides=(0, 1, 1, 2, 2, 3)):
        return tuple([self.one_of(*sides) for _ in range(self.integer(low, high))])

    def broadcastable(self, shape):
        """Return a shape that broadcasts with this one: fewer or more dimensions, ones in place of sizes."""
        kept = [1 if self.chance(4) else size for size in shape[self.integer(0, len(shape)) :]]
        return tuple(([2] if self.chance(6) and len(kept) == len(shape) else []) + kept)

    def axis(self, ndim):
        """Return an axis, counted from either end; sometimes one out of range."""
        if not ndim:  # NumPy takes -1 and 0 in some functions and refuses them in others
            return self.one_of(-2, 1)
        outside = self.chance(25)
        return self.integer(-ndim - outside, ndim - 1 + outside)

    def axes(self, ndim):
        """Return None, an axis, or a tuple of some."""
        kind = self.integer(0, 3)
        if kind == 0:
            return None
        if kind == 1 and (ndim or self.chance(25)):
            return self.axis(ndim)
        chosen = self.random.permutation(ndim)[: self.integer(0, ndim)].tolist()
        return tuple([a - ndim if self.chance() else a for a in chosen])

    # ------------------------------------------------------------------------------------------------------ arrays

    def array(self, dtypes=ALL, shape=None, low=0, values=None):
        """Return an array of one of the dtypes, in any memory layout."""
        dtype = np.dtype(str(dtypes if isinstance(dtypes, str) else self.one_of(*dtypes)))
        shape = self.shape(low) if shape is None else shape
        return self.layout(np.asarray((values or self.values)(dtype, shape), dtype))

    def values(self, dtype, shape):
        """Return values of a dtype: mostly small, sometimes extreme or not finite."""
        if dtype.kind == "b":
            return self.random.integers(0, 2, shape).astype(bool)
        if dtype.kind in "iu":
            made = self.random.integers(-6 if dtype.kind == "i" else 0, 7, shape).astype(dtype)
            info = np.iinfo(dtype)
            return self._sprinkled(made, [info.min, info.max])
        if dtype.kind == "c":
            return self._complex(self.values, dtype, shape)
        made = np.round(self.random.normal(0, 3, shape), self.integer(0, 3))
        return self._sprinkled(made.astype(dtype), [0.0, -0.0, np.inf, -np.inf, np.nan])

    def _sprinkled(self, made, specials):
        if self.chance(4) and made.size:
            count = self.integer(1, made.size)
            made.reshape(-1)[:count] = self.random.permutation(np.resize(np.array(specials, made.dtype), count))
            made.reshape(-1)[:] = self.random.permutation(made.reshape(-1))
        return made

    def small(self, dtype, shape):
        """Return small finite values, whose sums and products are exact in integers."""
        if dtype.kind == "c":
            return self._complex(self.small, dtype, shape)
        low = {"b": 0, "u": 0}.get(dtype.kind, -3)
        made = self.random.integers(low, 2 if dtype.kind == "b" else 4, shape).astype(dtype)
        return made if dtype.kind != "f" else made + self.random.integers(0, 8, shape).astype(dtype) / 8

    def finite(self, dtype, shape):
        """Return random values without special ones."""
        if dtype.kind == "c":
            return self._complex(self.finite, dtype, shape)
        return self.random.normal(0, 2, shape).astype(dtype) if dtype.kind == "f" else self.small(dtype, shape)

    def _complex(self, values, dtype, shape):
        made = np.empty(shape, dtype)  # a sum would make NaN of infinite parts
        made.real, made.imag = (values(real_of(dtype), shape) for _ in range(2))
        return made

    def layout(self, array):
        """Return the same values in row order, in column order, reversed, with gaps, or unchanged."""
        kind = self.integer(0, 4)
        if not array.ndim or kind < 2:
            return array
        if kind == 2:
            return np.asfortranarray(array)
        if kind == 3:
            return np.ascontiguousarray(array[..., ::-1])[..., ::-1]
        wide = np.repeat(array, 2, axis=0)
        return wide[::2]

    def number(self, dtype):
        """Return a Python number that may be combined with an array of this dtype."""
        kind = np.dtype(dtype).kind
        if kind == "b":
            return self.chance()
        if kind in "iu":
            return self.integer(0, 5)
        return self.one_of(*[2, -1.5, 0.25][: 3 if kind == "f" else 2]) + (self.one_of(0, 1j) if kind == "c" else 0)

    def pair(self, dtypes, values=None, numbers=True):
        """Return two operands that broadcast, of dtypes with a promotion; one of them may be a Python number."""
        one = self.dtype(*dtypes)
        two = self.one_of(*[d for d in dtypes if meet(one, d)])
        shape = self.shape()
        first = self.array(one, shape, values=values)
        if numbers and self.chance(5):
            operands = [first, self.number(one)]
        else:
            operands = [first, self.array(two, self.broadcastable(shape), values=values)]
        return tuple(operands if self.chance() else operands[::-1])

    def sum_dtype(self, dtype):
        """Return an accumulation dtype that can hold the elements."""
        kind = np.dtype(dtype).kind
        names = {"b": INTEGERS, "i": SIGNED, "u": UNSIGNED, "f": REAL, "c": COMPLEX}[kind]
        return self.dtype(*[n for n in names if np.can_cast(np.dtype(dtype), n)])


def real_of(dtype):
    return np.dtype(f"f{dtype.itemsize // 2}")


def kind_of(name):
    return {"u": "i", "c": "f"}.get(np.dtype(name).kind, np.dtype(name).kind)


def meet(a, b):
    """Return whether the standard defines the promotion of two dtypes."""
    return kind_of(a) == kind_of(b) and not ("uint64" in (a, b) and any(n in SIGNED for n in (a, b)))
