"""PyTorch's legacy API: tensor classes by dtype, type names, functions that write in place."""

import builtins
import math
from numbers import Integral
from typing import Any

from retrograd.core import Tensor, registry
from retrograd.core import dtype as dtypes
from retrograd.foundation.describe_value import describe
from retrograd.foundation.lazy_imports import own_attribute
from retrograd.foundation.number_arguments import as_switch
from retrograd.ops.as_tensor import as_tensor, tensor
from retrograd.ops.create import arange, factory, zeros
from retrograd.ops.functions import check_tensor, derived_function, function
from retrograd.ops.layout import Size, strided
from retrograd.ops.methods import method

# Whether every shape is a `Size`, as under `torch_alias`: then a plain tuple is data, as in PyTorch.
shapes_are_sizes = False


class DtypeClassMeta(builtins.type):
    """The metaclass of classes of one dtype, which is that of a storage with this name in PyTorch."""

    storage: str

    @property
    def dtype(cls) -> Any:
        """The dtype."""
        return dtypes.as_dtype(dtypes.STORAGES[cls.storage])


class TensorClassMeta(DtypeClassMeta):
    """The metaclass of classes whose instances are the tensors of one dtype."""

    def __instancecheck__(cls, value):
        return isinstance(value, Tensor) and value.dtype == cls.dtype

    def __call__(cls, *data):
        return _make(cls.__name__, cls.dtype, data)

    def __repr__(cls):
        return f"<class '{cls.__module__}.{cls.__name__}'>"


def _make(name, dtype, data):
    """Return a tensor of one dtype, of the sizes, the sequence or the tensor that a legacy call was given."""
    if len(data) != 1 or isinstance(data[0], int) or _is_shape(data[0]):
        return zeros(*(data or (0,)), dtype=dtype)
    (values,) = data
    if isinstance(values, Tensor):
        if values.dtype != dtype:
            raise TypeError(f"{name}: expected dtype {dtype}, got {values.dtype}; use .to(dtype)")
        return values.detach()
    if hasattr(builtins.type(values), "untyped"):  # a storage; proxies have any attribute
        return zeros(0, dtype=dtype).set_(values)
    if not hasattr(values, "__len__"):
        raise TypeError(f"{name}: expected a shape or a sequence of numbers, got {describe(values)}")
    return tensor(values, dtype)


def _legacy_array(*arguments):
    """Return the array of `Tensor(2, 3)`, `Tensor(Size([2, 3]))` or `Tensor([1, 2])`, in the default dtype.

    arguments: as given to `Tensor`, with the defaults None and False of those that are not given. An array that has
    the default dtype already shares its memory with the tensor.
    """
    given = [a for a in arguments if a is not None and a is not False]
    dtype = dtypes.get_default_dtype()
    if builtins.all(isinstance(a, Integral) or builtins.type(a) is Size for a in given):
        return zeros(*given, dtype=dtype).value
    if len(given) == 1 and _is_data(given[0]):
        return as_tensor(given[0], dtype).value
    raise TypeError(
        f"Tensor: expected an array, a list or sizes, got {', '.join(map(repr, given))}; rg.tensor(data) makes a "
        f"tensor of data, rg.empty(2, 3) one of a shape{_both_ways(given)}"
    )


def _is_shape(values):
    """Whether a value is a shape: a `Size`, or a tuple of integers where those of tensors are plain tuples."""
    return builtins.type(values) is Size or (isinstance(values, Size) and not shapes_are_sizes)


def _is_data(values):
    """Whether a value is a sequence of numbers; a tuple of integers may also be a shape."""
    if isinstance(values, tuple) and not shapes_are_sizes:
        return not values or not builtins.all(builtins.type(v) is int for v in values)
    return hasattr(values, "__len__") and not isinstance(values, (str, bytes, dict, set, frozenset))


def _both_ways(given):
    """Return the end of the message for a tuple of integers, which PyTorch's call reads as data, unlike `x.shape`."""
    return "; a tuple of integers could be either" if len(given) == 1 and isinstance(given[0], tuple) else ""


Tensor._legacy_array = staticmethod(_legacy_array)  # type: ignore[attr-defined]


@method
def new(x, *data, size=None) -> Tensor:
    """Return a tensor of the dtype of x: `x.new(2, 3)` of zeros, `x.new([1, 2])` of data.

    >>> import retrograd as rg
    >>> rg.ones(1, dtype=rg.int64).new([1, 2]), rg.ones(1).new(2, 3).shape
    (tensor([1, 2]), (2, 3))
    """
    return _make("new", x.dtype, data if size is None else (Size(size),))


def _tensor_class(name):
    storage = name.removesuffix("Tensor")
    dtype = dtypes.STORAGES[storage]
    doc = f"The tensors of {dtype}: `{name}([1, 2])` makes one of data, `{name}(2, 3)` or `{name}(x.shape)` of a shape."
    return TensorClassMeta(name, (), {"storage": storage, "__doc__": doc, "__module__": "retrograd"})


FloatTensor, DoubleTensor, HalfTensor = map(_tensor_class, ("FloatTensor", "DoubleTensor", "HalfTensor"))
BoolTensor, ByteTensor, CharTensor = map(_tensor_class, ("BoolTensor", "ByteTensor", "CharTensor"))
BFloat16Tensor = _tensor_class("BFloat16Tensor")
ShortTensor, IntTensor, LongTensor = map(_tensor_class, ("ShortTensor", "IntTensor", "LongTensor"))
TENSOR_CLASSES = (
    FloatTensor, DoubleTensor, HalfTensor, BFloat16Tensor, BoolTensor, ByteTensor, CharTensor, ShortTensor, IntTensor,
    LongTensor,
)  # fmt: skip


@method
def type(x, dtype=None, non_blocking=False):
    """Return the name of the tensor's class by dtype, "retrograd.FloatTensor"; or the tensor in another dtype.

    The dtype may be given as a dtype, such a class or its name, also with the prefix "torch.".

    >>> import retrograd as rg
    >>> rg.ones(1).type(), rg.ones(1).type("torch.LongTensor")
    ('retrograd.FloatTensor', tensor([1]))
    """
    if dtype is None:
        package = "" if x.layout is strided else f"{str(x.layout).rpartition('.')[2].removesuffix('_coo')}."
        return f"retrograd.{package}{_type_name(x.dtype)}"
    if dtype is Tensor:
        return x.to(dtypes.get_default_dtype())
    if isinstance(dtype, str) and dtype not in dtypes.TABLE:
        named = {cls.__name__: cls for cls in TENSOR_CLASSES}
        if dtype.rpartition(".")[2] not in named:
            raise ValueError(f"type: invalid type: {dtype!r}; expected a dtype, or one of {', '.join(named)}")
        dtype = named[dtype.rpartition(".")[2]]
    return x.to(getattr(dtype, "dtype", dtype))


def _type_name(dtype):
    return f"{dtypes.TABLE[dtype.name].storage or dtype.name.capitalize()}Tensor"


@function()
def typename(obj) -> str:
    """Return the name of a class or function with its module; for other objects, of their class; for tensors by dtype.

    >>> import retrograd as rg
    >>> rg.typename(rg.ones(1)), rg.typename(3), rg.typename(rg.nn.Linear), rg.typename(len)
    ('retrograd.FloatTensor', 'int', 'retrograd.nn.linear.Linear', 'len')
    """
    if isinstance(obj, Tensor):
        return type(obj)
    named = obj if hasattr(obj, "__qualname__") else obj.__class__
    return named.__qualname__ if named.__module__ in ("builtins", None) else f"{named.__module__}.{named.__qualname__}"


_warn_always = False


@function()
def set_warn_always(b: bool) -> None:
    """Accept the setting without effect: Python's filters decide how often warnings are shown."""
    global _warn_always
    _warn_always = as_switch("set_warn_always: b", b)


@function()
def is_warn_always_enabled() -> bool:
    """Return the last value of `set_warn_always`, which has no effect."""
    return _warn_always


@function()
def set_default_tensor_type(t) -> None:
    """Set the default dtype by a tensor class such as `FloatTensor`, or its name; `set_default_dtype` is the newer way.

    TypeError: a class of a dtype that is not floating, or another name.

    >>> import retrograd as rg
    >>> rg.set_default_tensor_type("torch.FloatTensor")
    """
    cls = {cls.__name__: cls for cls in TENSOR_CLASSES}.get(t.rpartition(".")[2]) if isinstance(t, str) else t
    if not isinstance(cls, TensorClassMeta):
        raise TypeError(f"set_default_tensor_type: invalid type object: expected e.g. rg.FloatTensor, got {t!r}")
    if not dtypes.is_floating(cls.dtype):
        raise TypeError(
            f"set_default_tensor_type: only floating-point types are supported as the default type, got {cls!r}"
        )
    dtypes.set_default_dtype(cls.dtype)


def range(start=0, end=None, step=1, *, dtype=None) -> Tensor:
    """Return the values from start up to and including end, in the default dtype; `arange` excludes its end.

    RuntimeError: a step of 0, or in the wrong direction.

    >>> import retrograd as rg
    >>> rg.range(1, 3)
    tensor([1., 2., 3.])
    """
    start, end = (0, start) if end is None else (start, end)
    if step == 0 or (end - start) * step < 0:
        raise RuntimeError(f"range: upper bound and lower bound inconsistent with step sign: {start}, {end}, {step}")
    dtype = dtypes.get_default_dtype() if dtype is None else dtype
    count = math.floor((end - start) / step) + 1
    return (arange(count, dtype=dtypes.float64) * step + start).to(dtype)


range = factory(range)

# The parts of PyTorch's build that programs ask about: NumPy has LAPACK and a Fourier transform.
has_lapack, has_spectral, has_mkl, has_openmp = True, True, False, False


@method
def lu(x, pivot=True, get_infos=False):
    """Return the LU factors and pivots, with `get_infos` also the numbers of the first pivots that are 0."""
    if get_infos:
        return tuple(registry["linalg.lu_factor_ex"](x, pivot=pivot))
    return tuple(registry["linalg.lu_factor"](x, pivot=pivot))


@method
def module_load(x, other, assign=False):
    """Return the tensor that replaces x when a state is loaded: x with the values of other, or other itself."""
    check_tensor("module_load", other)
    return other.detach() if assign else x.copy_(other).detach()


_WRITERS_OF_SEVERAL = {"addmv", "clamp", "clamp_max", "clamp_min", "clip", "gcd", "lcm", "ldexp", "xlogy"}


def add_writing_functions(named, home):
    """Add functions for methods that write into their tensor and take no other, and a few more: `rg.exp_(x)`.

    named: operators of the module `home` by name.
    """
    for name, operator in named.items():
        writes = operator.definition.in_place and operator.definition.method
        if writes and (len(operator.schema.inputs) == 1 or name in _WRITERS_OF_SEVERAL):
            derived_function(f"{name}_", home, own_attribute(Tensor, f"{name}_"))
