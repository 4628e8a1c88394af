"""NumPy's names over a library like CuPy: what that library lacks or has in another form is written here, in its terms.

The facts are those of CuPy 14: its ufuncs have no `order` and no `where`, few of them have `reduce`, `accumulate` and
`at`; its reductions have no `initial`; it has no error state, as its functions give no warnings.
"""

import contextlib
import math
from functools import partial
from typing import Any

import numpy as np

from retrograd.foundation.lazy_imports import lazy_module

# Functions of the namespace that CuPy cannot serve, or that decide by values at each step: they run in host memory.
ON_HOST = (
    "airy",
    "bunch_kaufman",
    "count_into_bins",
    "count_into_boxes",
    "extreme_eigenpairs",
    "first_indefinite_minor",
    "gamma_cdf_derivative",
    "iv",
    "ive",
    "jv",
    "kv",
    "kve",
    "matrix_exponential",
    "spherical_jn",
    "swaps_of_pivots",
    "yv",
)

ATOMIC = "iIQfdFD"  # dtypes to which a GPU adds atomically
SIGN, GREATEST = np.uint64(1 << 63), np.uint64((1 << 64) - 1)  # the sign's bit, all bits

# Modules whose functions may have kernels of a device in place of references. Other functions call those of the first.
KERNEL_MODULES = ("retrograd.kernels.attention_reference", "retrograd.kernels.reference")


def numpy_namespace() -> Any:
    """Return the namespace of NumPy's arrays."""
    return lazy_module("retrograd.backend.numpy")


class LibraryNames:
    """NumPy's names for a library: `names.add` is the library's function, or one of the substitutes below."""

    def __init__(self, library: Any, modules: dict[str, Any]) -> None:
        self.library = library
        self.library_name = getattr(library, "__name__", type(library).__name__)
        self._modules, self._replaced = modules, set[str]()
        self.linalg = Linalg(library)
        self.lib = Lib(library)

    def __getattr__(self, name: str) -> Any:
        if name in _HOST:
            found = _HOST[name]
        elif name in _SUBSTITUTES:
            found = _bind(_SUBSTITUTES[name], self)
        else:
            found = getattr(self.library, name)
            if isinstance(found, self.library.ufunc):
                found = Ufunc(found, self)
        replacements = self._modules.get("functions", {})
        if name in replacements:
            found = replacements[name](found)
        setattr(self, name, found)
        return found

    def adapt(self, name: str, module: dict[str, Any]) -> None:
        """Replace the functions of a module of the backend that ask SciPy, once the module is loaded."""
        if name == "retrograd.kernels.host_values":
            module["on_host"] = False
        if name in KERNEL_MODULES:
            self._replace_kernels(module)
        if name == "retrograd.backend.special":
            module["scipy_special"] = lambda: self._modules["special"]
        if name == "retrograd.backend.sparse_products":
            if "sparse" in self._modules:
                module["scipy_sparse"] = lambda: self._modules["sparse"]
            else:
                module["LIBRARY_DTYPES"] = ""
        if name == "retrograd.backend.linalg":
            module["scipy_linalg"] = lambda: None
        if name == "retrograd.backend.fourier":
            module["scipy_fft"] = lambda: None
        if name == "retrograd.backend.numpy":
            module["run_on_host"], module["on_device"] = self._run_on_host, True
            for function in ON_HOST:
                module[function] = partial(self._run_on_host, getattr(numpy_namespace(), function))

    def _replace_kernels(self, module: dict[str, Any]) -> None:
        """Replace the references of a module, unless the module that it has them from has done it."""
        kernels = self._modules.get("kernels", {})
        for function in module.keys() & kernels.keys() - self._replaced:
            module[function] = kernels[function](module[function])
            self._replaced.add(function)

    def _run_on_host(self, function: Any, *arrays: Any, **params: Any) -> Any:
        """Return the result of a function of NumPy's arrays, by copies in host memory."""
        arrays = tuple([self._to_host(a) for a in arrays])
        out = function(*arrays, **{name: self._to_host(value) for name, value in params.items()})
        return tuple([self._from_host(o) for o in out]) if isinstance(out, (tuple, list)) else self._from_host(out)

    def _to_host(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            members = [self._to_host(member) for member in value]
            return type(value)(*members) if hasattr(value, "_fields") else type(value)(members)
        return self.library.asnumpy(value) if isinstance(value, self.library.ndarray) else value

    def _from_host(self, value: Any) -> Any:
        return None if value is None else self.library.asarray(np.asarray(value))


def _bind(function: Any, names: LibraryNames) -> Any:
    def substitute(*args: Any, **params: Any) -> Any:
        return function(names, *args, **params)

    return substitute


class Ufunc:
    """A ufunc of the library with all methods and keywords of NumPy's that the backend uses."""

    def __init__(self, function: Any, names: LibraryNames) -> None:
        self._function, self._names = function, names
        self.nin, self.nout = function.nin, function.nout
        self.__name__ = function.name.removeprefix("cupy_")

    def __call__(self, *args: Any, order: str = "K", where: Any = None, **params: Any) -> Any:
        if where is not None:
            out = params.pop("out")
            self._names.library.copyto(out, self._function(*args, **params), where=where)
            return out
        result = self._function(*args, **params)
        return self._names.library.ascontiguousarray(result) if order == "C" and result.ndim else result

    def reduce(self, x: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        """Reduce dimensions of x."""
        if self.__name__ not in _REDUCTIONS:
            return self._reduce_by_halves(x, axis, keepdims)
        name = _REDUCTIONS[self.__name__]
        if name in ("sum", "prod"):
            return getattr(self._names.library, name)(x, axis=axis, dtype=dtype, out=out, keepdims=keepdims)
        return getattr(self._names.library, name)(x, axis=axis, keepdims=keepdims)

    def _reduce_by_halves(self, x: Any, axis: Any, keepdims: bool) -> Any:
        if not isinstance(axis, int):
            dims = tuple(range(x.ndim)) if axis is None else axis
            for dim in dims:
                x = self._reduce_by_halves(x, dim, True)
            return x if keepdims else self._names.library.squeeze(x, dims)
        rows = self._names.library.moveaxis(x, axis, -1)
        while rows.shape[-1] > 1:
            half = rows.shape[-1] // 2
            pairs = self._function(rows[..., :half], rows[..., half : 2 * half])
            rows = self._names.library.concatenate([pairs, rows[..., 2 * half :]], axis=-1)
        rows = self._names.library.moveaxis(rows, -1, axis)
        return rows if keepdims else self._names.library.squeeze(rows, axis)

    def accumulate(self, x: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """Return the results of all first elements along a dimension."""
        if self.__name__ in ("add", "multiply"):
            return self._function.accumulate(x, axis, dtype, out)
        # Results of 1, 2, 4, ... elements before each: as many steps as the size has digits.
        result = self._names.library.moveaxis(x, axis, -1).copy()
        step = 1
        while step < result.shape[-1]:
            result[..., step:] = self._function(result[..., step:], result[..., :-step].copy())
            step *= 2
        return self._names.library.moveaxis(result, -1, axis)

    def at(self, x: Any, index: Any, values: Any) -> None:
        """Combine values into x at an index, in which elements may occur again."""
        if self.__name__ == "multiply":
            self._multiply_at(x, index, values)
        elif self.__name__ == "add":
            self._add_at(x, index, values)
        elif self.__name__ in ("maximum", "minimum"):
            self._extreme_at(x, index, values)
        else:
            self._function.at(x, index, values)

    def _add_at(self, x: Any, index: Any, values: Any) -> None:
        """Add by the atomic operations of GPUs: other dtypes in a wider one, signed integers as unsigned ones."""
        if x.dtype.char in ATOMIC:
            self._function.at(x, index, values)
        elif x.dtype.kind in "biu":
            sums, addends = (a.astype(np.int64).view(np.uint64) for a in (x, values))
            self._function.at(sums, index, addends)
            x[...] = sums.view(np.int64)
        else:
            sums = x.astype(np.float32)
            self._function.at(sums, index, values.astype(np.float32))
            x[...] = sums

    def _extreme_at(self, x: Any, index: Any, values: Any) -> None:
        """Take maxima or minima by unsigned integers in the elements' order.

        CuPy's own functions round float64 to float32, and skip NaN.
        """
        library, largest = self._names.library, self.__name__ == "maximum"
        keys = _sort_keys(library, x, largest)
        library.maximum.at(keys, index, _sort_keys(library, values, largest))
        x[...] = _from_sort_keys(library, keys, x.dtype, largest)

    def _multiply_at(self, x: Any, index: Any, values: Any) -> None:
        """Multiply elements of x one after the other: those of equal index in rounds, one of each per round."""
        names = self._names
        places = names.library.arange(x.size).reshape(x.shape)[index].reshape(-1)
        values = names.library.broadcast_to(values, places.shape)
        order = names.library.argsort(places, kind="stable")
        ranked = places[order]
        at = names.library.arange(places.size)
        starts = names.library.searchsorted(ranked, ranked, side="left")
        flat = x.reshape(-1)
        for turn in range(int((at - starts).max().item()) + 1 if places.size else 0):
            chosen = order[at - starts == turn]
            flat[places[chosen]] = self._function(flat[places[chosen]], values[chosen])

    def outer(self, a: Any, b: Any) -> Any:
        """Apply the ufunc to all pairs of elements."""
        a, b = self._names.library.asarray(a), self._names.library.asarray(b)
        return self._function(a.reshape(*a.shape, *(1,) * b.ndim), b)


def _sort_keys(library: Any, x: Any, largest: bool) -> Any:
    """Return a uint64 for each element, in their order or the opposite one; NaN have the greatest."""
    if x.dtype.kind in "bu":
        keys = x.astype(np.uint64)
    elif x.dtype.kind == "i":
        keys = x.astype(np.int64).view(np.uint64) ^ SIGN
    else:
        bits = x.astype(np.float64).view(np.uint64)
        keys = library.where(bits >= SIGN, ~bits, bits ^ SIGN)
    keys = keys if largest else ~keys
    return keys if x.dtype.kind in "biu" else library.where(x != x, GREATEST, keys)


def _from_sort_keys(library: Any, keys: Any, dtype: Any, largest: bool) -> Any:
    """Return the elements that have these keys."""
    holes = keys == GREATEST
    keys = keys if largest else ~keys
    if dtype.kind in "bu":
        return keys
    if dtype.kind == "i":
        return (keys ^ SIGN).view(np.int64)
    numbers = library.where(keys >= SIGN, keys ^ SIGN, ~keys).view(np.float64)
    return library.where(holes, np.float64("nan"), numbers)


_REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_or": "any", "logical_and": "all",
}  # fmt: skip


class Linalg:
    """NumPy's `linalg` over a library."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library.linalg, name)

    def svdvals(self, x: Any) -> Any:
        """Return the singular values."""
        return self._library.linalg.svd(x, compute_uv=False)


class Lib:
    """NumPy's `lib` over a library."""

    def __init__(self, library: Any) -> None:
        self.stride_tricks = StrideTricks(library)


class StrideTricks:
    """NumPy's `lib.stride_tricks` over a library."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def as_strided(self, x: Any, shape: Any, strides: Any, writeable: bool = True) -> Any:
        """Return a view of memory; all arrays of the library may be written to."""
        return self._library.lib.stride_tricks.as_strided(x, shape, strides)


@contextlib.contextmanager
def _no_error_state(**kinds: str) -> Any:
    yield


# NumPy's own functions of shapes, dtypes and settings, since no array takes part.
_HOST = {
    "broadcast_shapes": np.broadcast_shapes,
    "dtype": np.dtype,
    "errstate": _no_error_state,
    "generic": np.generic,
    "geterr": np.geterr,
    "memmap": np.memmap,
    "nditer": np.nditer,
}


def _extreme(find: str, combine: str) -> Any:
    """Return a maximum or minimum with `initial`, which is the result where there are no elements."""

    def extreme(names, x, axis=None, out=None, keepdims=False, initial=None):
        if initial is None or (x.size and math.isinf(initial)):
            return getattr(names.library, find)(x, axis=axis, out=out, keepdims=keepdims)
        if x.size:
            found = getattr(names.library, find)(x, axis=axis, keepdims=keepdims)
            return getattr(names.library, combine)(found, x.dtype.type(initial))
        shape = np.add.reduce(np.broadcast_to(np.int8(0), x.shape), axis, np.int8, None, keepdims).shape
        return names.library.full(shape, initial, x.dtype)

    return extreme


def _prod(names, x, axis=None, dtype=None, keepdims=False):
    """Return the product of an array's elements, or of Python numbers, such as sizes."""
    if not hasattr(x, "dtype"):
        return math.prod(x)
    return names.library.prod(x, axis=axis, dtype=dtype, keepdims=keepdims)


def _vecdot(names, a, b):
    return names.library.sum(names.library.conjugate(a) * b, axis=-1)


def _vdot(names, a, b):
    """Return a sum of products without cuBLAS, which CuPy does not let a CUDA graph record."""
    return names.library.sum(names.library.conjugate(a) * b)


def _einsum(names, subscripts, a, b):
    """Return sums of products of elements with equal indices, the only ones that the backend asks for."""
    operands, out = subscripts.split("->")
    indices, others = operands.split(",")
    assert indices == others
    return names.library.sum(a * b, axis=tuple([dim for dim, index in enumerate(indices) if index not in out]))


def _array_equal(names, a, b, equal_nan=False):
    """Return whether two arrays are equal, as a Python value."""
    return a.shape == b.shape and names.library.array_equal(a, b, equal_nan=equal_nan).item()


def _count_nonzero(names, x, axis=None, keepdims=False):
    return names.library.sum(x != 0, axis=axis, keepdims=keepdims)


def _isin(names, x, elements, assume_unique=False, invert=False):
    return names.library.isin(x, names.library.asarray(elements), assume_unique, invert)


def _insert(names, x, at, values, axis=None):
    assert axis is None
    assert isinstance(at, int)
    values = names.library.asarray(values, x.dtype).reshape(-1)
    return names.library.concatenate([x[:at], values, x[at:]])


def _asarray(names, x, dtype=None, order=None):
    return names.library.asarray(x, dtype)


def _repeat(names, x, repeats, axis=None):
    """Return elements repeated; CuPy takes numbers of repeats on the host only."""
    if not hasattr(repeats, "dtype"):
        return names.library.repeat(x, repeats, axis)
    ends = names.library.cumsum(repeats)
    total = int(ends[-1].item()) if ends.size else 0
    rows = names.library.searchsorted(ends, names.library.arange(total), side="right")
    return names.library.take(x, rows, axis=axis)


_SUBSTITUTES = {
    "array_equal": _array_equal,
    "asarray": _asarray,
    "count_nonzero": _count_nonzero,
    "einsum": _einsum,
    "insert": _insert,
    "isin": _isin,
    "amax": _extreme("max", "maximum"),
    "amin": _extreme("min", "minimum"),
    "max": _extreme("max", "maximum"),
    "min": _extreme("min", "minimum"),
    "prod": _prod,
    "repeat": _repeat,
    "vdot": _vdot,
    "vecdot": _vecdot,
}
