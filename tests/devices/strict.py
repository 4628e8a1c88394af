"""An array library like CuPy, over NumPy's memory, for tests: it refuses what would move data without being asked.

Its arrays have no `__array__`, take no host arrays as operands, and cannot be a condition, an index or a number. Data
moves by `array.get`, `item`, `tolist`, `asnumpy`, `array` and `asarray` only, and each move is counted. The names are
those of CuPy 14.2; results without dimensions are arrays. Dtypes are booleans, numbers, and bfloat16 of ml_dtypes.
"""

import functools
import weakref
from contextlib import contextmanager
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import scipy.linalg
import scipy.special
from tests.devices import cupy_names, cupy_signatures

transfers = {"to host": 0, "from host": 0}


@contextmanager
def counting():
    """Count the transfers in a block: yields a dict that has the numbers after it."""
    before, found = dict(transfers), {}
    yield found
    found.update({kind: transfers[kind] - before[kind] for kind in transfers})


class Memory:
    """The memory of an array and its views."""

    known: ClassVar = weakref.WeakValueDictionary()  # id of the host array that owns the memory -> Memory

    def __init__(self, root):
        self.root, self.ptr = root, root.ctypes.data

    @classmethod
    def of(cls, host):
        """Return the one object for the memory that a host array is in."""
        while isinstance(host.base, np.ndarray):
            host = host.base
        found = cls.known.get(id(host))
        if found is None:
            found = cls.known[id(host)] = cls(host)
        return found


def words(text):
    return text.split()


def refuse(what):
    def method(self, *args, **kwargs):
        raise TypeError(f"strict: {what} would move data to the host without being asked")

    return method


class ndarray:
    """An array of the strict device."""

    __slots__ = ("__weakref__", "_host", "_memory")
    __array_ufunc__ = None
    __hash__ = None

    def __init__(self, shape, dtype=float):
        self._host = np.empty(shape, dtype)
        self._memory = Memory.of(self._host)

    shape = property(lambda self: self._host.shape)
    dtype = property(lambda self: self._host.dtype)
    strides = property(lambda self: self._host.strides)
    ndim = property(lambda self: self._host.ndim)
    size = property(lambda self: self._host.size)
    itemsize = property(lambda self: self._host.itemsize)
    nbytes = property(lambda self: self._host.nbytes)
    T = property(lambda self: wrap(self._host.T))
    mT = property(lambda self: wrap(self._host.mT))  # noqa: N815
    imag = property(lambda self: wrap(self._host.imag), lambda self, value: self._set_part("imag", value))
    real = property(lambda self: wrap(self._host.real), lambda self, value: self._set_part("real", value))
    base = property(lambda self: None if self._memory.root is self._host else wrap(self._memory.root))
    data = property(lambda self: SimpleNamespace(mem=self._memory, ptr=self._host.ctypes.data))
    device = property(lambda self: "strict")

    @property
    def flags(self):
        flags = self._host.flags
        return SimpleNamespace(
            c_contiguous=flags.c_contiguous, f_contiguous=flags.f_contiguous, owndata=flags.owndata,
            fnc=flags.fnc, forc=flags.forc,
        )  # fmt: skip

    def _set_part(self, name, value):
        setattr(self._host, name, unwrap(value))

    def get(self):
        """Return a copy in host memory."""
        transfers["to host"] += 1
        return self._host.copy()

    def item(self):
        """Return the one element as a Python number."""
        transfers["to host"] += 1
        return self._host.item()

    def tolist(self):
        """Return the elements as nested lists."""
        transfers["to host"] += 1
        return self._host.tolist()

    def set(self, host):
        """Copy the elements of a host array."""
        transfers["from host"] += 1
        self._host[...] = host

    def __deepcopy__(self, memo):
        return wrap(self._host.copy())

    def __len__(self):
        return len(self._host)

    def __iter__(self):
        return iter([self[i] for i in range(len(self))])

    def __getitem__(self, key):
        return wrap(self._host[index(key)])

    def __setitem__(self, key, value):
        self._host[index(key)] = unwrap(value)

    def __repr__(self):
        return f"<strict array {self.dtype}{list(self.shape)}>"

    __array__ = refuse("__array__")
    __bool__, __index__ = refuse("bool()"), refuse("an index")
    __int__, __float__, __complex__ = refuse("int()"), refuse("float()"), refuse("complex()")
    __contains__, __array_function__ = refuse("in"), refuse("a function of NumPy")
    tobytes = refuse("tobytes()")


METHODS = words(
    """
    all any argmax argmin argpartition argsort astype choose clip compress conj conjugate copy cumprod cumsum diagonal
    dot fill flatten max mean min nonzero partition prod ptp put ravel repeat reshape round searchsorted sort squeeze
    std sum swapaxes take trace transpose var view
    """
)
OPERATORS = words(
    """
    add sub mul truediv floordiv mod pow matmul and or xor lshift rshift lt le gt ge eq ne neg pos abs invert divmod
    radd rsub rmul rtruediv rfloordiv rmod rpow rmatmul rand ror rxor rlshift rrshift
    iadd isub imul itruediv ifloordiv imod ipow iand ior ixor ilshift irshift
    """
)


def quiet(function):
    """Return a function that gives no warnings for overflow and the like, as a GPU gives none."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return call


def _method(name):
    @quiet
    def method(self, *args, **kwargs):
        if name in cupy_signatures.NDARRAY:
            check_arguments(name, cupy_signatures.NDARRAY[name], args, kwargs)
        if name in ("__truediv__", "__rtruediv__", "__itruediv__"):
            args = (self, *args) if name != "__rtruediv__" else (*args, self)
            return divide(*args, out=self) if name == "__itruediv__" else divide(*args)
        result = getattr(self._host, name)(*unwrap(args), **unwrap(kwargs))
        return self if result is self._host else wrap(result)

    return method


for _name in METHODS:
    if hasattr(np.ndarray, _name):
        setattr(ndarray, _name, _method(_name))
for _name in OPERATORS:
    setattr(ndarray, f"__{_name}__", _method(f"__{_name}__"))


# Parameters that CuPy's functions take arrays for, where NumPy's also take numbers and lists.
ARRAYS = {"a", "ar", "arr", "ary", "array", "element", "test_elements", "ar1", "ar2", "condition", "a1", "a2"}
# Functions that take numbers and lists as well.
CONVERTING = {"array", "asanyarray", "asarray", "ascontiguousarray", "isscalar", "ndim"}


def check_arguments(name, signature, args, kwargs):
    """Raise TypeError for arguments that CuPy's function does not have, or takes arrays for only."""
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError as error:
        raise TypeError(f"{name}() {error}") from None
    for parameter, value in given.items():
        if parameter == "tup":
            if not isinstance(value, ndarray) and not all(isinstance(member, ndarray) for member in value):
                raise TypeError(f"{name}: Only cupy arrays can be concatenated")
        elif parameter in ARRAYS and name not in CONVERTING and not isinstance(value, ndarray):
            raise TypeError(f"{name}: {parameter} must be an array, got {type(value).__name__}")


def wrap(result):
    """Return NumPy's result with arrays of the device in place of NumPy's arrays and scalars."""
    if isinstance(result, np.generic):
        result = np.asarray(result)
    if isinstance(result, np.ndarray):
        if result.dtype.name != "bfloat16" and (result.dtype.kind not in "biufc" or result.dtype.isbuiltin != 1):
            raise TypeError(f"strict: there are no arrays of dtype {result.dtype}")
        out = ndarray.__new__(ndarray)
        out._host, out._memory = result, Memory.of(result)
        return out
    if isinstance(result, (tuple, list)):
        members = [wrap(member) for member in result]
        return tuple(members) if isinstance(result, tuple) else members
    return result


def unwrap(value):
    """Return a value with NumPy's arrays in place of those of the device; host arrays are refused."""
    if isinstance(value, ndarray):
        return value._host
    if isinstance(value, np.ndarray):
        raise TypeError(f"strict: a host array of shape {value.shape} as an operand")
    if isinstance(value, (tuple, list)):
        return type(value)([unwrap(member) for member in value])
    return {name: unwrap(member) for name, member in value.items()} if isinstance(value, dict) else value


def index(key):
    """Return an index with NumPy's arrays; lists of numbers would have to be moved."""
    for part in key if isinstance(key, tuple) else (key,):
        if isinstance(part, list):
            raise TypeError("strict: a list as an index")
    return unwrap(key)


class ufunc:
    """An elementwise function, with the methods of CuPy's."""

    def __init__(self, host):
        self._host = host
        self.nin, self.nout, self.__name__ = host.nin, host.nout, host.__name__
        self.name = f"cupy_{host.__name__}"

    @quiet
    def __call__(self, *args, out=None, dtype=None, casting="same_kind", **others):
        if others:
            raise TypeError(f"Wrong arguments {others}")
        operands = unwrap(args)
        if self._host in LOGICAL and any(np.iscomplexobj(x) for x in operands):
            raise TypeError(f"Wrong type of arguments for {self.name}")
        given = {} if out is None else {"out": unwrap(out)}
        function = self._host
        if function is np.true_divide and np.result_type(*operands[:2]).kind == "c":
            function = complex_quotient
        result = function(*operands, dtype=dtype, casting=casting, **given)
        if out is not None:
            return out
        return args[self.nin] if len(args) > self.nin and self.nout == 1 else wrap(result)

    def _only(self, method, *names):
        if self._host.__name__ not in names:
            raise NotImplementedError(f"`{self.name}.{method}` is not supported yet")

    def reduce(self, array, axis=0, dtype=None, out=None, keepdims=False):
        self._only("reduce", "add", "multiply")
        return wrap(self._host.reduce(unwrap(array), axis, dtype, unwrap(out), keepdims))

    def accumulate(self, array, axis=0, dtype=None, out=None):
        self._only("accumulate", "add", "multiply")
        return wrap(self._host.accumulate(unwrap(array), axis, dtype, unwrap(out)))

    def reduceat(self, array, indices, axis=0, dtype=None, out=None):
        self._only("reduceat", "add")
        return wrap(self._host.reduceat(unwrap(array), unwrap(indices), axis, dtype, unwrap(out)))

    def outer(self, a, b):
        return wrap(self._host.outer(unwrap(a), unwrap(b)))

    def at(self, a, indices, b=None):
        self._only("at", "add", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor")
        function, b = self._host, unwrap(b)
        if a.dtype.char not in ATOMIC:
            raise TypeError(f"{self.name}.at: no atomic operation for {a.dtype}")
        if a.dtype.kind == "f" and function in EXTREMES:  # CUDA's fmaxf and fminf, also for float64
            function, b = EXTREMES[function], np.asarray(b, np.float32)
        function.at(unwrap(a), unwrap(indices), b)


ATOMIC = "iILQefdFD"
EXTREMES = {np.maximum: np.fmax, np.minimum: np.fmin}
LOGICAL = (np.logical_and, np.logical_not, np.logical_or, np.logical_xor)


def complex_quotient(a, b, out=None, **others):
    """Return a / b by CuPy's formula: NaN if b is infinite, where NumPy has 0."""
    scale = 1 / (abs(np.real(b)) + abs(np.imag(b)))
    real, imag, divisor_real, divisor_imag = (f(x) * scale for x in (a, b) for f in (np.real, np.imag))
    inverse = 1 / (divisor_real**2 + divisor_imag**2)
    real, imag = real * divisor_real + imag * divisor_imag, imag * divisor_real - real * divisor_imag
    return np.multiply(real + 1j * imag, inverse, out=out, **others)


def _function(host, signature=None):
    @quiet
    @functools.wraps(host)
    def function(*args, **kwargs):
        if signature is not None:
            check_arguments(host.__name__, signature, args, kwargs)
        result = host(*unwrap(args), **unwrap(kwargs))
        if host in (np.array_equal, np.allclose, np.array_equiv):
            result = np.asarray(result)
        elif host is np.diagonal:  # a view that may be written to
            result.flags.writeable = True
        return wrap(result)

    return function


def array(obj, dtype=None, copy=True, order="K", ndmin=0):
    """Return an array of the device with a copy of numbers, or of a host array, which is counted as a transfer."""
    if isinstance(obj, np.ndarray):
        transfers["from host"] += 1
    elif isinstance(obj, ndarray):
        obj = obj._host
    else:
        obj = unwrap(obj)
    return wrap(np.array(obj, dtype, copy=copy, order=order, ndmin=ndmin))


def asarray(a, dtype=None, order=None, *, blocking=False):
    """Return an array of the device; a copy, which is counted, of a host array."""
    if isinstance(a, ndarray):
        return a if dtype is None or a.dtype == dtype else a.astype(dtype)
    return array(a, dtype)


def asnumpy(a):
    """Return a copy in host memory."""
    return a.get()


class Module:
    """NumPy's module of some name, with the functions that CuPy has too."""

    def __init__(self, host, names, signatures, **own):
        self._host, self._names, self._signatures = host, names, signatures
        vars(self).update(own)

    def __getattr__(self, name):
        if name not in self._names:
            raise AttributeError(f"CuPy's module has no attribute {name!r}")
        found = getattr(self._host, name)
        if isinstance(found, np.ufunc) and found.signature is None:
            found = ufunc(found)
        elif callable(found) and not isinstance(found, type):
            found = _function(found, self._signatures.get(name))
        setattr(self, name, found)
        return found


class _Grid:
    def __getitem__(self, key):
        return wrap(np.ogrid[key])


def svd(a, full_matrices=True, compute_uv=True):
    """Return the factors that NumPy finds, with other signs of the vectors: another library finds others."""
    found = np.linalg.svd(unwrap(a), full_matrices, compute_uv)
    return wrap((-found[0], found[1], -found[2]) if compute_uv else found)


def eigh(a, UPLO="L"):
    """Return the eigenvalues and vectors that NumPy finds, with other signs of the vectors."""
    values, vectors = np.linalg.eigh(unwrap(a), UPLO)
    return wrap((values, -vectors))


linalg = Module(np.linalg, cupy_names.LINALG, cupy_signatures.LINALG, svd=quiet(svd), eigh=quiet(eigh))
special = Module(scipy.special, cupy_names.SPECIAL, cupy_signatures.SPECIAL)
scipy_linalg = Module(scipy.linalg, {"lu_factor", "lu_solve", "solve_triangular", "expm"}, {})
fft = Module(np.fft, {name for name in dir(np.fft) if name[0] != "_"}, cupy_signatures.FFT)
stride_tricks = SimpleNamespace(
    as_strided=lambda x, shape=None, strides=None: wrap(np.lib.stride_tricks.as_strided(x._host, shape, strides))
)
divide = ufunc(np.true_divide)
library = Module(
    np, cupy_names.NUMPY, cupy_signatures.NUMPY, ndarray=ndarray, ufunc=ufunc, array=array, asarray=asarray,
    asnumpy=asnumpy, ogrid=_Grid(), linalg=linalg, fft=fft, lib=SimpleNamespace(stride_tricks=stride_tricks),
)  # fmt: skip
