"""Methods of tensors: every operator of the registry, and what is no operator."""

import copy
import math

from retrograd import backend
from retrograd.core import Tensor, graph_level, registry
from retrograd.core import dtype as dtypes
from retrograd.core.dispatch import cut, wants
from retrograd.core.tensor import make
from retrograd.ops.index import index


def add_operators(named):
    """Every operator whose first input is a tensor becomes a method."""
    for name, operator in named.items():
        if operator.definition.method and operator.schema.inputs:
            setattr(Tensor, name, operator)


def method(function):
    """Put a function into the class of tensors."""
    setattr(Tensor, function.__name__, function)
    return function


def attribute(function):
    """Put a property into the class of tensors."""
    setattr(Tensor, function.__name__, property(function))
    return function


# ------------------------------------------------------------------------------------------- reading values


def concrete(x):
    """The array below all levels; a level that can't be read refuses, or takes note."""
    while x.level is not None:
        wants(x)  # a view whose base was written to takes over the new value
        x = x.level.read(x)
    return x.value


@method
def numpy(x):
    """The array that the tensor holds, not a copy; of a tensor that requires grad, detach it first."""
    if x.requires_grad:
        raise RuntimeError("numpy(): this tensor requires grad; use x.detach().numpy()")
    return concrete(x)


@method
def __array__(x, dtype=None, copy=None):
    array = numpy(x)
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError(f"a tensor of dtype {x.dtype} can't become an array of dtype {dtype} without a copy")
        return array.astype(dtype)
    return array.copy() if copy else array


@method
def item(x):
    """The one element of the tensor as a Python number."""
    if x.numel() != 1:
        raise ValueError(f"item(): expected a tensor of one element, got shape {x.shape}")
    return concrete(x).item()


@method
def tolist(x):
    """The elements as nested lists of Python numbers."""
    return concrete(x).tolist()


@method
def __bool__(x) -> bool:
    if x.numel() != 1:
        raise RuntimeError(f"the truth of a tensor of shape {x.shape} is ambiguous; use .any() or .all()")
    return bool(concrete(x).item())


@method
def __float__(x) -> float:
    return float(item(x))


@method
def __int__(x) -> int:
    return int(item(x))


@method
def __complex__(x) -> complex:
    return complex(item(x))


@method
def __index__(x) -> int:
    if x.dtype.kind not in "iub":
        raise TypeError(f"only integer tensors of one element can be an index, got {x.aval}")
    return int(item(x))


@method
def __and__(x, other) -> Tensor:
    return registry["bitwise_and"](x, other)


@method
def __or__(x, other) -> Tensor:
    return registry["bitwise_or"](x, other)


@method
def __xor__(x, other) -> Tensor:
    return registry["bitwise_xor"](x, other)


@method
def __invert__(x) -> Tensor:
    return registry["bitwise_not"](x)


Tensor.__rand__, Tensor.__ror__, Tensor.__rxor__ = Tensor.__and__, Tensor.__or__, Tensor.__xor__


@method
def __abs__(x) -> Tensor:
    return registry["abs"](x)


@method
def __format__(x, spec) -> str:
    return format(item(x), spec) if spec and not x.ndim else repr(x)


def _restored(cls, value, requires_grad, grad, attributes):
    """A leaf from what pickling or copying has kept of it."""
    x = cls.__new__(cls)
    Tensor.__init__(x, value, None, None, requires_grad)
    x._grad = grad
    if attributes:
        x.__dict__.update(attributes)
    return x


@method
def __reduce_ex__(x, protocol):
    if x.level is not None:
        raise RuntimeError("a tensor inside a function transform or trace can't be pickled")
    return _restored, (type(x), x.value, x.requires_grad, x._grad, getattr(x, "__dict__", None))


@method
def __deepcopy__(x, memo):
    if x.grad_fn is not None or x.level is not None:
        raise RuntimeError(
            "deepcopy: only leaves can be copied with their place in the graph; use x.clone(), or x.detach().clone()"
        )
    made = __reduce_ex__(x, 4)
    memo[id(x)] = _restored(made[1][0], *copy.deepcopy(made[1][1:], memo))
    return memo[id(x)]


@method
def __len__(x) -> int:
    if not x.ndim:
        raise TypeError("len(): a tensor without dimensions has no length")
    return x.shape[0]


@method
def __iter__(x):
    if not x.ndim:
        raise TypeError("a tensor without dimensions can't be iterated over")
    return iter(registry["unbind"](x))


@method
def __contains__(x, value) -> bool:
    return bool((x == value).any())


@method
def __getitem__(x, key) -> Tensor:
    return index(x, key)


@method
def __repr__(x) -> str:
    suffix = "" if _dtype_is_obvious(x.dtype) else f", dtype={x.dtype}"
    if x.grad_fn is not None:
        suffix += f", grad_fn={x.grad_fn!r}"
    elif x.requires_grad:
        suffix += ", requires_grad=True"
    if x.level is not None:
        return f"tensor({x.aval}, {type(x.level).__name__}{suffix})"
    return f"tensor({backend.digits(x.value, 'tensor(')}{suffix})"


def _dtype_is_obvious(dtype):
    return dtype in (dtypes.get_default_dtype(), dtypes.int64, dtypes.bool_)


# --------------------------------------------------------------------------------------- shape and identity


@method
def size(x, dim=None):
    """The shape, or the size of one dimension."""
    return x.shape if dim is None else x.shape[dim]


@method
def dim(x) -> int:
    """Number of dimensions."""
    return x.ndim


@method
def numel(x) -> int:
    """Number of elements."""
    return math.prod(x.shape)


@attribute
def T(x):
    """The dimensions in reverse order."""
    return registry["permute"](x, tuple(range(x.ndim))[::-1])


@attribute
def mT(x):
    """The last two dimensions swapped."""
    if x.ndim < 2:
        raise ValueError(f"mT: expected at least 2 dimensions, got shape {x.shape}")
    return registry["transpose"](x, -2, -1)


@attribute
def device(x):
    """Where the array lives: "cpu"."""
    return "cpu"


def _data(x):
    """The same memory outside every graph, with a version counter of its own; may be set to another's memory."""
    out = make(x.value, x.level, x.tag)
    if x.is_inference():
        out.version = x.version
    if x.requires_grad and x.level is None:
        cut(out, "detach")
    return out


def _set_data(x, new):
    if not isinstance(new, Tensor):
        raise TypeError(f"data: expected a Tensor, got {type(new).__name__}")
    if x.level is not graph_level() or new.level is not x.level:
        raise RuntimeError("data: the two tensors belong to different function transforms")
    if x.requires_grad and new.dtype.kind not in "fc":
        raise RuntimeError(f"data set to a tensor that requires gradients must be floating or complex, got {new.dtype}")
    x.value, x.tag = new.value, new.tag


Tensor.data = property(_data, _set_data)


@method
def contiguous(x) -> Tensor:
    """The tensor itself if its elements lie in row-major order, else a copy in which they do."""
    return x if x.level is None and x.value.flags.c_contiguous else registry["row_major"](x)


@method
def is_floating_point(x) -> bool:
    """Whether the dtype is a real floating one."""
    return x.dtype.kind == "f"


@method
def is_complex(x) -> bool:
    """Whether the dtype is complex."""
    return x.dtype.kind == "c"


@method
def requires_grad_(x, requires_grad=True) -> Tensor:
    """Ask for gradients (or no longer); returns the tensor."""
    x.requires_grad = requires_grad
    return x


@method
def reshape_as(x, other) -> Tensor:
    """Reshaped as the other tensor."""
    return registry["reshape"](x, other.shape)


@method
def expand_as(x, other) -> Tensor:
    """Expanded to the shape of the other tensor."""
    return registry["expand"](x, other.shape)


def _convert(name, dtype):
    def convert(x) -> Tensor:
        return x if x.dtype == dtype else registry["to"](x, dtype)

    convert.__name__, convert.__doc__ = name, f"The tensor in {dtype}; itself if it is so already."
    return method(convert)


for _name, _dtype in {
    "float": dtypes.float32,
    "double": dtypes.float64,
    "half": dtypes.float16,
    "int": dtypes.int32,
    "long": dtypes.int64,
    "bool": dtypes.bool_,
}.items():
    _convert(_name, _dtype)


@method
def type_as(x, other) -> Tensor:
    """The tensor in the dtype of the other."""
    return x if x.dtype == other.dtype else registry["to"](x, other.dtype)


