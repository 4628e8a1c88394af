"""Methods and attributes of tensors: all operators of the registry, and functions that are not operators."""

import math
import operator

from retrograd import backend
from retrograd.backend.array_programs import is_alias
from retrograd.core import Tensor, current, graph_level, registry
from retrograd.core import dtype as dtypes
from retrograd.core.aval import SymbolicSize
from retrograd.core.dispatch import note_cut
from retrograd.core.dtype import is_differentiable, is_floating
from retrograd.core.errors import OperandValueError
from retrograd.core.level import ReadError
from retrograd.core.op import compound, is_foreign, takes_over
from retrograd.core.overrides import override_result
from retrograd.core.state import is_recording
from retrograd.core.tensor import make
from retrograd.core.views import leave_memory, requires_grad_synced
from retrograd.foundation.lazy_imports import add_attribute
from retrograd.foundation.read_only import read_only
from retrograd.foundation.source_location import scipy_caller, user_line, warn_user
from retrograd.ops.functions import check_tensor, function, name_generated, overridable
from retrograd.ops.index import foreign_in_key, index


def add_operators(named):
    """Add each operator whose first input is a tensor as a method."""
    for name, member in named.items():
        if member.definition.method and member.schema.inputs:
            add_attribute(Tensor, name, member)


def method(function):
    """Add a function to the Tensor class as a method."""
    add_attribute(Tensor, function.__name__, name_generated(function, f"Tensor.{function.__name__}"))
    return function


def attribute(function):
    """Add a read-only property to the Tensor class."""
    setattr(Tensor, function.__name__, read_only(function))
    return function


# ------------------------------------------------------------------------------------------- reading values


def concrete(x):
    """The array below all levels; a level whose values can't be read raises an error or takes note."""
    while x.level is not None:
        requires_grad_synced(x)  # sync a view whose base was written to
        x = x.level.read(x)
    if x._view is not None:
        requires_grad_synced(x)  # sync a copy, too
    return x.value


@method
def numpy(x, *, force=False):
    """The tensor's array, not copied; if it requires grad, only under no_grad, with force=True, or detached.

    force: detach, and copy from a device.
    """
    return backend.as_numpy(concrete(x) if force else array_outside_graph("numpy()", x), copied=force)


def array_outside_graph(name, x):
    """The array below all levels, for code outside autograd; RuntimeError if derivatives would be lost.

    Where nothing is recorded, as under `no_grad()`, a tensor that requires grad loses none.
    """
    why = _lost_in_array(x)
    if why:
        raise ReadError(f"Can't call {name} on Tensor that {why}. Use tensor.detach().numpy() instead.")
    return concrete(x)


def lost_derivatives(x):
    """A description of the derivatives that an array or number of x would lose, for errors; "" if none."""
    return "requires grad" if x.requires_grad else _lost_in_tags(x) or _lost_in_dual_levels(x)


def _scipy_hint():
    """Return the name of the function for tensors if SciPy's own has called."""
    name = scipy_caller()
    return f"; scipy.{name} takes arrays, retrograd.scipy.{name} tensors" if name else ""


def _lost_in_array(x):
    """A description of the derivatives that an array of x would lose; under no_grad a graph loses none."""
    graph = "requires grad" if x.requires_grad and is_recording() else ""
    return _lost_in_tags(x) or _lost_in_dual_levels(x) or graph


def _lost_in_tags(x):
    """The derivatives lost by function transforms that store a tangent or sparsity pattern with x."""
    while x.level is not None:
        why = x.level.lost_derivatives(x)
        if why:
            return why
        x = x.value
    return ""


def _lost_in_dual_levels(x):
    """The derivatives lost by the active `dual_level`s."""
    level = current().level
    while level is not None:
        if level.transparent and level.lost_derivatives(x):
            return level.lost_derivatives(x)
        level = level.parent
    return ""


def tangents_in_dual_levels(x):
    """Return the tangents of x in the active `dual_level`s, the innermost first."""
    found, level = [], current().level
    while level is not None:
        tangent = getattr(level, "tangent", None) if level.transparent else None
        found += [] if tangent is None or tangent(x) is None else [tangent(x)]
        level = level.parent
    return found


def _is_transformed(x):
    """Whether a function transform differentiates x, and not only the graph outside all transforms."""
    if _lost_in_tags(x):
        return True
    while x.level is not None:
        if requires_grad_synced(x):
            return True
        x = x.value
    return False


@method
def __array__(x, dtype=None, copy=None):
    why = _lost_in_array(x)
    if why:
        raise ReadError(
            f"this tensor {why}, and would lose it in an array: np.stack and retrograd.numpy keep the graph, "
            f"x.detach().numpy() leaves it{_scipy_hint()}"
        )
    array = backend.as_numpy(concrete(x))
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError(f"a tensor of dtype {x.dtype} can't become an array of dtype {dtype} without a copy")
        return array.astype(dtype)
    return array.copy() if copy else array


@method
def item(x):
    """The value of a tensor with one element, as a Python number."""
    if x.numel() != 1:
        raise OperandValueError(
            f"item(): a Tensor with {x.numel()} elements cannot be converted to Scalar: only one element tensors can "
            f"be converted to Python scalars; got shape {x.shape}"
        )
    return concrete(x).item()


@method
def tolist(x):
    """The elements as nested lists of Python numbers."""
    return concrete(x).tolist()


@method
def __bool__(x) -> bool:
    if x.numel() != 1:
        values = "more than one value" if x.numel() else "no values"
        raise RuntimeError(
            f"Boolean value of Tensor with {values} is ambiguous; its shape is {x.shape}: use .any() or .all()"
        )
    return bool(concrete(x).item())


@method
def __float__(x) -> float:
    _check_number("float()", x)
    return float(_real_item(x, "double"))


@method
def __int__(x) -> int:
    return int(_real_item(x, "int64_t"))


def _real_item(x, kind):
    """Return a value as a real number; RuntimeError if it has an imaginary part."""
    number = item(x)
    if type(number) is not complex:
        return number
    if number.imag:
        raise RuntimeError(f"value cannot be converted to type {kind} without overflow: {number} is not real")
    return number.real


@method
def __complex__(x) -> complex:
    _check_number("complex()", x)
    return complex(item(x))


def _check_number(name, x):
    """Refuse to read a value that a transform would need to differentiate; warn if `backward()` would miss it."""
    why = lost_derivatives(x)
    if not why:
        return
    flow = "gradient" if why == "requires grad" else "derivative"
    message = (
        f"a tensor that {why} became a Python number, which no {flow} flows through; use rg.sin(x) for math.sin(x), "
        f"rg.zeros() or retrograd.numpy.zeros() for an array whose elements are written, and x.item() or x.detach() "
        f"where only the value is wanted{_scipy_hint()}"
    )
    if _is_transformed(x):
        raise ReadError(f"{name} at {user_line()}: {message}")
    warn_user(message)


@method
def __index__(x) -> int:
    if x.dtype.kind not in "iub" or x.numel() != 1:
        raise TypeError(
            f"only integer tensors of one element can be an index, got {x.aval}; only integer tensors of a single "
            "element can be converted to an index"
        )
    return int(item(x))


@method
def __delitem__(x, index) -> None:
    raise TypeError("Tensor does not support deleting items: keep the others by x[mask], or join what is around by cat")


@method
def __and__(x, other) -> Tensor:
    return NotImplemented if takes_over(other, "__rand__") else registry["bitwise_and"](x, other)


@method
def __or__(x, other) -> Tensor:
    return NotImplemented if takes_over(other, "__ror__") else registry["bitwise_or"](x, other)


@method
def __xor__(x, other) -> Tensor:
    return NotImplemented if takes_over(other, "__rxor__") else registry["bitwise_xor"](x, other)


@method
def __invert__(x) -> Tensor:
    return registry["bitwise_not"](x)


@method
def __lshift__(x, other) -> Tensor:
    return NotImplemented if takes_over(other, "__rlshift__") else registry["bitwise_left_shift"](x, other)


@method
def __rshift__(x, other) -> Tensor:
    return NotImplemented if takes_over(other, "__rrshift__") else registry["bitwise_right_shift"](x, other)


@method
def __rlshift__(x, other) -> Tensor:
    return NotImplemented if takes_over(other, "__lshift__") else registry["bitwise_left_shift"](other, x)


@method
def __rrshift__(x, other) -> Tensor:
    return NotImplemented if takes_over(other, "__rshift__") else registry["bitwise_right_shift"](other, x)


@method
def __divmod__(x, other):
    return x // other, x % other


@method
def __rdivmod__(x, other):
    return other // x, other % x


Tensor.__rand__, Tensor.__ror__, Tensor.__rxor__ = Tensor.__and__, Tensor.__or__, Tensor.__xor__


def _augmented_assignment(name, reflected):
    """The method for `x &= other` and the like, from the in-place method."""

    def write(x, other) -> Tensor:
        return NotImplemented if takes_over(other, reflected) else getattr(x, name)(other)

    return write


for _symbol, _name in {
    "and": "bitwise_and_",
    "or": "bitwise_or_",
    "xor": "bitwise_xor_",
    "lshift": "bitwise_left_shift_",
    "rshift": "bitwise_right_shift_",
    "floordiv": "floor_divide_",
    "mod": "remainder_",
    "pow": "pow_",
}.items():
    setattr(Tensor, f"__i{_symbol}__", _augmented_assignment(_name, f"__r{_symbol}__"))


@method
def __abs__(x) -> Tensor:
    return registry["abs"](x)


@method
def __round__(x, ndigits=0) -> Tensor:
    return registry["round"](x, decimals=ndigits)


@method
def __format__(x, spec) -> str:
    inside = not spec and current().level is not None  # printing asks for no value inside of a transform
    if x.ndim or inside or type(x) is not Tensor or x.is_meta:
        return object.__format__(x, spec)
    return format(item(x), spec)


@method
def __len__(x) -> int:
    if not x.ndim:
        raise TypeError("len() of a 0-d tensor: it has no dimensions, so no length")
    return x.shape[0]


@method
def __iter__(x):
    if not x.ndim:
        raise TypeError("iteration over a 0-d tensor: it has no dimensions")
    return iter(registry["unbind"](x))


@method
def __reversed__(x) -> Tensor:
    return registry["flip"](x, (0,)) if x.ndim else x


@method
def __contains__(x, value) -> bool:
    if takes_over(value, "__eq__"):
        only = "Tensor.__contains__ only supports Tensor or scalar"
        raise RuntimeError(f"{only}, but you passed in a {type(value)}: no element equals it")
    return bool((x == value).any())


@method
def __getitem__(x, key) -> Tensor:
    if x._overrides and is_foreign(x):
        return override_result(Tensor.__getitem__, [x, *foreign_in_key(key)], (x, key), {})
    return index(x, key)


# --------------------------------------------------------------------------------------- shape and identity


class Elements(int):
    """The value of `x.size`: NumPy's number of elements; calling it gives PyTorch's `x.size()` and `x.size(dim)`."""

    _shape: tuple

    def __new__(cls, count, shape):
        self = int.__new__(cls, count)  # `super()` takes a third of the time of `x.size(0)`
        self._shape = shape
        return self

    def __getnewargs__(self):
        return (int(self), self._shape)

    def __call__(self, dim=None):
        shape = self._shape
        if dim is None:
            return shape
        ndim = len(shape)
        if not -ndim <= operator.index(dim) < ndim:
            raise IndexError(
                f"size: Dimension out of range (expected to be in range of [{-max(ndim, 1)}, {max(ndim, 1) - 1}], but "
                f"got {dim})"
            )
        size = shape[dim]
        return size.size_of_dim(dim) if isinstance(size, SymbolicSize) else size


@attribute
def size(x):
    """The number of elements, as in NumPy; when called, the shape or the size of one dimension, as in PyTorch.

    >>> import retrograd as rg
    >>> x = rg.zeros(2, 3)
    >>> x.size, x.size(), x.size(-1)
    (6, (2, 3), 3)
    """
    return Elements(numel(x), x.shape)


@method
def dim(x) -> int:
    """The number of dimensions."""
    return x.ndim


@attribute
def T(x):
    """A view with the dimensions in reverse order."""
    return registry["permute"](x, tuple(range(x.ndim))[::-1])


@attribute
def mT(x):
    """A view with the last two dimensions swapped; a tensor without dimensions is returned as it is."""
    if x.ndim == 0:
        return x
    if x.ndim < 2:
        raise OperandValueError(f"mT: expected at least 2 dimensions, got shape {x.shape}")
    return registry["transpose"](x, -2, -1)


def _data(x):
    """The same memory outside every graph, with its own version counter; can be set to another tensor's memory."""
    if x._overrides and is_foreign(x):
        return override_result(Tensor.data.__get__, [x], (x,), {})
    if x.level is not None:
        detached = registry["detach"](x)  # at every level
        return make(detached.value, detached.level, detached.tag)
    out = make(x.value[...], None, x.tag)
    if x.is_inference():
        out.version = x.version
    if x.requires_grad:
        note_cut(out, "detach")
    return out


def _set_data(x, new):
    if not isinstance(new, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type(new).__name__}")
    if x.level is not graph_level() or new.level is not x.level:
        raise RuntimeError("data: the two tensors belong to different function transforms")
    if x.requires_grad and not is_differentiable(new.dtype):
        raise RuntimeError(
            f"data set to a tensor that requires gradients must be floating point or complex dtype, got {new.dtype}"
        )
    if x.level is not None and (x.version is not None or x._view is not None):
        raise RuntimeError("data: inside a function transform, it can't be assigned to a view, or a tensor with views")
    if is_alias(x.value, new.value):  # as after `x.data += y`
        return
    leave_memory(x)
    x.value, x.tag = new.value, new.tag


def _delete_data(x):
    raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")


Tensor.data = property(_data, _set_data, _delete_data)  # type: ignore[assignment]


def check_complete(name, x, composite):
    """Refuse a tensor that does not store all its elements, for a function that makes others of them one by one."""
    if composite is not None and not composite.complete:
        raise NotImplementedError(
            f"{name}: Could not run it on a tensor of shape {x.shape} in the layout {x.layout!r}, which does not store "
            f"all elements; x.to_dense() does"
        )


@method
def numel(input) -> int:
    """The number of elements."""
    if input.level is None:
        return input.value.size
    parts = compound(input)
    if parts is None:
        return math.prod(input.shape)
    same = input.shape == input.value.shape and not input.level.traces  # a trace records that it depends on the sizes
    return numel(input.value) if same else parts.numel(input)


Tensor.nelement, Tensor.ndimension = numel, dim
function("numel")(overridable(numel))


@function()
def is_tensor(obj) -> bool:
    """Whether an object is a tensor."""
    return isinstance(obj, Tensor)


@function()
def _assert(condition, message) -> None:
    """Raise AssertionError unless the condition is true; a symbolic trace records the call.

    >>> import retrograd as rg
    >>> rg._assert(rg.ones(2).sum() == 3, "the sum is 3")
    Traceback (most recent call last):
    AssertionError: the sum is 3
    """
    if is_foreign(condition):
        override_result(_assert, [condition], (condition, message), {})
    elif not condition:
        raise AssertionError(message)


@function()
@method
@overridable
def is_floating_point(input) -> bool:
    """Whether the dtype is a real floating dtype."""
    return is_floating(input.dtype)


@function()
@method
@overridable
def is_complex(input) -> bool:
    """Whether the dtype is complex."""
    return input.dtype.kind == "c"


@function()
@method
@overridable
def is_signed(input) -> bool:
    """Whether the dtype can represent negative values."""
    return dtypes.is_signed(input.dtype)


@function()
@method
@overridable
def is_nonzero(input) -> bool:
    """Whether the only element of the tensor is nonzero; RuntimeError unless it has exactly one."""
    return bool(input)


@function()
@method
@overridable
def is_same_size(input, other) -> bool:
    """Whether two tensors have the same shape."""
    return input.shape == check_tensor("is_same_size", other).shape


@function()
@method
@overridable
def is_conj(input) -> bool:
    """Whether a lazy conjugation is pending: always False, since `conj` computes eagerly."""
    return False


@function()
@method
@overridable
def is_neg(input) -> bool:
    """Whether a lazy negation is pending: always False, since `imag` of a conjugate is computed eagerly."""
    return False


@function()
@method
@overridable
def resolve_neg(input) -> Tensor:
    """The tensor itself: unlike in PyTorch, no negation is ever pending."""
    return input


@function()
@overridable
def is_inference(input) -> bool:
    """Whether the tensor was created in inference mode, so that it can't be recorded in a graph."""
    return input.is_inference()


@method
def requires_grad_(x, requires_grad=True) -> Tensor:
    """Set whether the tensor requires grad; return it. A result in a graph requires grad already."""
    if requires_grad is not True or x.is_leaf:
        x.requires_grad = requires_grad
    return x


@method
def reshape_as(x, other) -> Tensor:
    """x reshaped to the shape of the other tensor."""
    return registry["reshape"](x, check_tensor("reshape_as", other).shape)


@method
def expand_as(x, other) -> Tensor:
    """x expanded to the shape of the other tensor."""
    return registry["expand"](x, check_tensor("expand_as", other).shape)
