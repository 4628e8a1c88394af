"""Overrides: operands of other classes compute the result by `__tensor_function__`, and `out=` takes it."""

import warnings
from functools import partial
from inspect import getattr_static
from sys import _getframe
from types import FunctionType

from numpy import ndarray

from retrograd.core.dtype import category
from retrograd.core.op import is_foreign, operator_named
from retrograd.core.state import current, override_state
from retrograd.core.tensor import TensorBase, new_of_class, version_of
from retrograd.core.views import is_writable, requires_grad_synced
from retrograd.foundation.lazy_imports import LazyAttribute
from retrograd.foundation.source_location import is_user_frame

PLAIN = (bool, int, float, complex, str)  # the classes of params that are compared with their defaults


def call_as_given(op, args, kwargs):
    """Return what modes and foreign classes compute for a call, with the arguments as the caller wrote them.

    NotImplemented if none overrides it.  Raises the TypeError of a call that does not fit the operator.
    """
    resolve_call(op, args, {name: value for name, value in kwargs.items() if name != "out"})
    return function_result(op, foreign_objects((*args, *kwargs.values())), args, kwargs)


def resolve_call(op, args, kwargs):
    """Return the operator that a call by its public name runs, and the arguments as that operator's schema has them."""
    if kwargs and op.definition.keyword_overload:
        op = operator_named(op.definition.keyword_overload)
    try:
        op.schema.bind(args, kwargs)
    except TypeError:
        today = op.definition.older_form(op.name, args, kwargs)
        if today is None:
            raise
        return op, *today
    return op, args, kwargs


def call_override(op, args, params):
    """Let the foreign classes among the operands of an operator within another one compute the result."""
    return override_result(op, [a for a in args if is_foreign(a)], *op.call_arguments(args, params))


def call_arguments(schema, args, params):
    """Return the positional and the keyword arguments by which an operator is called with flat inputs and params.

    Params that have their default values are left out, as in PyTorch: a class may override `mean` by a function of one
    argument.
    """
    defaults = schema.defaults
    given = {n: x for n, x in params.items() if n not in defaults or not _is_default(x, defaults[n])}
    named = schema.named(args, params)
    positional = tuple([named.pop(p.name) for p in positional_parameters(schema)])
    return positional, {name: value for name, value in named.items() if name not in params or name in given}


def _is_default(value, default):
    """Return whether a param has its default value; values of other classes, such as proxies, are not compared."""
    if type(value) is tuple and type(default) is tuple:
        return len(value) == len(default) and all(map(_is_default, value, default))
    return value is default or (type(value) is type(default) and isinstance(value, PLAIN) and value == default)


def positional_parameters(schema):
    """Return the parameters whose arguments `call_arguments` returns by position."""
    return schema.inputs if schema.inputs_lead else [p for p in schema.parameters if not p.keyword_only]


def override_result(func, foreign, args, kwargs):
    """Return the first result that a foreign operand's class gives for `func`; a TypeError if none does."""
    types = overriding_types(foreign)
    for kind in types:
        result = _handler(kind, foreign)(func, types, args, kwargs)
        if result is not NotImplemented:
            return result
    raise no_implementation(func, [t.__name__ for t in types])


def function_result(func, operands, args, kwargs):
    """Return what the innermost function mode, or else the classes of operands, compute for a function.

    NotImplemented if nothing overrides it.  The mode is off while it computes.
    """
    foreign = [a for a in operands if is_foreign(a)]
    state = current()
    intercept = getattr(state.level, "intercept_function", None)
    if intercept is not None and state.overrides_off < 2:
        with override_state("level", state.level.parent):
            result = intercept(func, overriding_types(foreign), args, kwargs)
        if result is not NotImplemented:
            return result
    return override_result(func, foreign, args, kwargs) if foreign else NotImplemented


def no_implementation(func, names):
    """Return the TypeError for a function that all classes and modes of these names declined to compute."""
    return TypeError(
        f"Multiple dispatch failed for {func.__name__!r}; all __tensor_function__ (__torch_function__) handlers "
        f"returned NotImplemented: {', '.join(names)}"
    )


def _handler(kind, foreign):
    """Return the method that overrides operators for a class; a plain method is bound to its first object."""
    name = "__tensor_function__" if hasattr(kind, "__tensor_function__") else "__torch_function__"
    if not isinstance(getattr_static(kind, name), FunctionType):
        return getattr(kind, name)
    warnings.warn(
        f"Defining your `{name}` as a plain method is deprecated and will be an error in future; make it a "
        f"classmethod of {kind.__name__}",
        stacklevel=2,
    )
    return getattr(next(a for a in foreign if type(a) is kind), name)


def overriding_types(foreign):
    """Return the classes of objects, each once, in the order in which they are asked: subclasses come first."""
    types = []
    for kind in map(type, foreign):
        if kind not in types:
            bases = [i for i, other in enumerate(types) if issubclass(kind, other)]
            types.insert(bases[0] if bases else len(types), kind)
    return tuple(types)


def override_of(kind):
    """Return the class method by which a class overrides operators; PyTorch's name of it is accepted."""
    return getattr(kind, "__tensor_function__", None) or kind.__torch_function__


def disabled_override(func, types, args=(), kwargs=None):
    """The `__tensor_function__` of a subclass of Tensor that overrides nothing, and whose results are Tensors."""
    return NotImplemented


def prepare_subclass(kind):
    """Let a subclass of Tensor define its override by either name, and note whether it has one."""
    own = vars(kind)
    for name, synonym in (("__tensor_function__", "__torch_function__"), ("__torch_function__", "__tensor_function__")):
        if name in own and synonym not in own:
            setattr(kind, synonym, own[name])
    wraps = any("__torch_dispatch__" in vars(base) for base in kind.__mro__)
    kind._class_overrides = REFUSED if wraps else kind.__tensor_function__ is not disabled_override
    if "__tensor_function__" in own and not wraps and kind._class_overrides:
        _override_attributes(kind)


# Attributes that PyTorch's tensors read by an override, and that are no properties here, and the reverse.
_FIELDS = ("shape", "dtype", "ndim")
_NO_ATTRIBUTES = ("size",)  # a method in PyTorch
# Methods that no class overrides in PyTorch, those that let NumPy's functions be overridden, and those whose names
# PyTorch reports as that of another method, which they call.
_NO_METHODS = {
    "__init__", "__delitem__", "__iter__", "__array_ufunc__", "__array_function__", "as_subclass", "__rand__",
    "__ror__", "__rxor__", "__iadd__", "__isub__", "__imul__", "__itruediv__", "__ifloordiv__", "__imod__", "__ipow__",
    "__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__",
}  # fmt: skip


def _override_attributes(kind):
    """Let a class with a `__tensor_function__` of its own override the attributes and methods that Tensor has."""
    base = next(b for b in reversed(kind.__mro__) if "_class_overrides" in vars(b))  # Tensor
    members = {**vars(base), **{name: getattr_static(base, name) for name in _FIELDS}}
    own = kind.__module__.partition(".")[0] == __name__.partition(".")[0]  # it overrides the methods that it has to
    for name, member in members.items():
        if getattr_static(kind, name) is not member:
            continue
        if name in _FIELDS or (isinstance(member, property) and name not in _NO_ATTRIBUTES):
            setattr(kind, name, OverriddenAttribute(member))
        elif isinstance(member, (FunctionType, LazyAttribute)) and name not in _NO_METHODS and not own:
            setattr(kind, name, OverriddenMethod(base, name))


class OverriddenAttribute:
    """An attribute of Tensor that a subclass overrides: `func` is `Tensor.shape.__get__`, or its `__set__`.

    Reads and writes by this package are not overridden, as those by PyTorch's compiled code are not.
    """

    def __init__(self, attribute):
        self._attribute = attribute

    def __get__(self, tensor, kind=None):
        if tensor is None:
            return self._attribute
        return self._run(self._attribute.__get__, _getframe(1), tensor)

    def __set__(self, tensor, value):
        self._run(self._attribute.__set__, _getframe(1), tensor, value)

    def __delete__(self, tensor):
        self._run(self._attribute.__delete__, _getframe(1), tensor)

    def _run(self, access, frame, *args):
        if is_foreign(args[0]) and is_user_frame(frame):
            return override_result(access, [args[0]], args, {})
        return access(*args)


class OverriddenMethod:
    """A method of Tensor that is no operator, of a subclass that overrides it: `func` is `Tensor.float`.

    Calls by this package are not overridden. Operators call the override themselves.
    """

    def __init__(self, owner, name):
        self._owner, self._name = owner, name  # its module may be imported on first use

    def __get__(self, tensor, kind=None):
        method = getattr(self._owner, self._name)
        if tensor is None:
            return method
        if isinstance(method, FunctionType) and is_foreign(tensor) and is_user_frame(_getframe(1)):
            return partial(self._run, method, tensor)
        return method.__get__(tensor, kind)

    def _run(self, method, *args, **kwargs):
        foreign = [found for value in (*args, *kwargs.values()) for found in foreign_objects(value)]
        return override_result(method, foreign, args, kwargs)


def no_wrappers(kind):
    """Return the error for a class whose objects would wrap tensors."""
    return NotImplementedError(
        f"{kind.__name__}: __torch_dispatch__ of a class is not supported, as tensors have no wrappers; define "
        f"__tensor_function__, or a mode (retrograd.utils._python_dispatch.TorchDispatchMode)"
    )


class _Refused:
    """The `_class_overrides` of a class with `__torch_dispatch__`: libraries define some, and need no instances."""

    def __get__(self, tensor, kind):
        raise no_wrappers(kind)


REFUSED = _Refused()


def default_override(kind, func, types, args, kwargs):
    """Run a function on tensors of a subclass, and return its results as tensors of that subclass."""
    if not all(issubclass(kind, t) for t in types):
        return NotImplemented
    with override_state("overrides_off", max(current().overrides_off, 1)):
        out = func(*args, **(kwargs or {}))
    if getattr(func, "__self__", None) in (kind.grad, kind._base):
        return out  # the tensor that is stored, not a result
    return convert_results(out, kind, args)


def convert_results(out, kind, args):
    """Return a result with its tensors as those of a class; an operand that was returned is shared, not moved."""
    if isinstance(out, (tuple, list)):
        members = [convert_results(o, kind, args) for o in out]
        return type(out)(*members) if hasattr(out, "_fields") else type(out)(members)
    if not isinstance(out, TensorBase) or isinstance(out, kind):
        return out
    return as_subclass(out, kind) if any(out is a for a in args) else retyped(out, kind)


def as_subclass(tensor, kind):
    """Return a tensor of a subclass with the memory and the history of another one."""
    with override_state("overrides_off", 2):
        return retyped(operator_named("alias")(tensor), kind)


def retyped(tensor, kind):
    """Return a new tensor, which nobody else has yet, as one of a subclass."""
    out = new_of_class(kind, tensor.value, tensor.level, tensor.tag)
    out.version = version_of(tensor)
    out._requires_grad, out._grad_fn, out._output_nr = tensor._requires_grad, tensor._grad_fn, tensor._output_nr
    out._view, out._saved = tensor._view, tensor._saved
    return out


def foreign_objects(value):
    """Return the objects with a `__tensor_function__` in a value for one of the params."""
    if isinstance(value, (tuple, list)):
        return [found for member in value for found in foreign_objects(member)]
    return [value] if is_foreign(value) else []


def check_no_tangent(op, operands):
    """Raise NotImplementedError if an operand of a call with `out=` has a tangent, as in PyTorch."""
    level = current().level
    while level is not None:
        for a in operands if level.transparent else ():
            if isinstance(a, TensorBase) and level.lost_derivatives(a):
                raise NotImplementedError(
                    f"Trying to use forward AD with {op.name}_out that does not support it because it is an out= "
                    f"function; use out.copy_(result)"
                )
        level = level.parent


def write_out(op, args, kwargs):
    """Run `op(..., out=tensor)`: write the result into an existing tensor; with None, return a new one."""
    rest = dict(kwargs)
    out = rest.pop("out")
    if out is None:
        return op(*args, **rest)
    outs = out if isinstance(out, (tuple, list)) else (out,)
    inputs, _ = op.schema.bind(args, rest)
    if current().grad_enabled and (op.differentiable or op.composite):
        for a in (*inputs, *outs):
            if isinstance(a, TensorBase) and requires_grad_synced(a):
                raise RuntimeError(
                    f"{op.name}(): functions with out=... arguments don't support automatic differentiation, but the "
                    f"argument of shape {a.shape} requires grad; use x.copy_(result), or no_grad()"
                )
    check_no_tangent(op, (*inputs, *outs))
    result = op(*args, **rest)
    results = result if isinstance(result, tuple) else (result,)
    if len(outs) != len(results):
        raise TypeError(f"{op.name}: out has {len(outs)} tensors, the result {len(results)}")
    for target, r in zip(outs, results, strict=True):
        if not isinstance(target, TensorBase):
            raise TypeError(f"{op.name}: out must be a Tensor, got {type(target).__name__}")
        check_out_shape(op.name, target, r)
        if category(r.dtype) > category(target.dtype):
            raise RuntimeError(f"{op.name}: the result is {r.dtype}, which can't be written into out, {target.dtype}")
        if type(target.value) is ndarray and not is_writable(target):  # before another one is written
            raise RuntimeError(f"{op.name}: the memory of out is read-only, or its elements share it; clone it first")
    for target, r in zip(outs, results, strict=True):
        write_result(target, r)
    return op.result_class(outs) if op.result_class is not None and isinstance(result, tuple) else out


def check_out_shape(name, target, result):
    """Raise RuntimeError unless `out` has the shape of a result, or no elements, so that it is resized."""
    if target.shape != result.shape and 0 not in target.shape:
        raise RuntimeError(f"{name}: out has shape {target.shape}, but the result has shape {result.shape}")


def write_result(target, result):
    """Write a result into `out`, which is resized if it has another shape."""
    if target.shape != result.shape:
        target.resize_(tuple(result.shape))
    target.copy_(result)
