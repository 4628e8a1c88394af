"""The tensors that a module owns: parameters, which are trained, and buffers, which are not."""

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any, Self, cast

from retrograd.core import Tensor, at, current, operator_named
from retrograd.core.dtype import is_differentiable, is_floating
from retrograd.core.overrides import as_subclass, default_override, disabled_override, override_of
from retrograd.core.tensor import new_of_class, version_of
from retrograd.foundation.describe_value import tensor_hint
from retrograd.nn.tensor_part import local_tensor
from retrograd.ops.functions import functions
from retrograd.ops.layout import array_device, channels_last, channels_last_3d, has_format, making_on, place, to_format

_clone = operator_named("clone")
_detach = operator_named("detach")
_to = operator_named("to")


class _SharedLeaf(Tensor):
    """A leaf that shares the memory of another tensor, and its version counter."""

    __tensor_function__ = staticmethod(disabled_override)

    def __new__(cls, data: Tensor | None) -> Self:
        if data is None:
            data = functions["empty"](0)
        if not isinstance(data, Tensor):
            raise TypeError(f"{cls.__name__}: expected a Tensor, got {type(data).__name__}; {tensor_hint(data)}")
        ground = data.level is None
        value = data.value[...] if ground else data.value
        self: Self = new_of_class(cls, value, data.level, None if ground else data.tag)
        self.version = version_of(data)
        return self


class Parameter(_SharedLeaf):
    """A trainable tensor of a module: a leaf that requires grad, registered when it is assigned to an attribute.

    `data` is a floating or complex tensor of any shape; the parameter shares its memory.  If it is of a subclass of
    Tensor, so is the parameter, with its attributes; operators on it are overridden as by that subclass.  Without data
    it has no elements.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> nn.Parameter(rg.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    _printed_name = ""

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Self:
        keeps_class = isinstance(data, Tensor) and data._overrides
        kind = _parameter_class(type(data)) if keeps_class and cls is Parameter else cls  # type: ignore[arg-type]
        self: Any = _SharedLeaf.__new__(kind, data)
        if self._overrides:
            vars(self).update(vars(data))
        if self.level is None and current().level is not None:  # as for a parameter from outside a transform
            with at(None, True):
                self.requires_grad = requires_grad
        else:
            self.requires_grad = requires_grad
        return cast(Self, self)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Accept the arguments of `__new__`, so that a subclass of Tensor among the bases does not handle them."""

    def __repr__(self) -> str:
        shown = super().__repr__()
        return "Parameter containing:\n" + (shown if type(self) is Parameter else f"Parameter({shown})")

    def __deepcopy__(self, memo: dict[int, Any]) -> "Parameter":
        memo[id(self)] = copied = type(self)(_clone(_detach(self)), self.requires_grad)
        return copied


@functools.cache
def _parameter_class(kind: type[Tensor]) -> type[Parameter]:
    """Return the class of parameters that are tensors of a subclass; results on them are of that subclass."""
    if issubclass(kind, Parameter):
        return kind

    def override(cls: type, func: Any, types: tuple, args: tuple = (), kwargs: Any = None) -> Any:
        own = tuple([kind if t is cls else t for t in types])
        return override_of(kind)(func, own, args, kwargs)

    def data_of(p: Tensor) -> Tensor:
        data = as_subclass(_detach(p), kind)
        vars(data).update(vars(p))
        return data

    def deepcopied(p: Tensor, memo: dict[int, Any]) -> Parameter:
        memo[id(p)] = copied = Parameter(copy.deepcopy(data_of(p), memo), p.requires_grad)
        return copied

    methods = {
        "_printed_name": kind.__name__,
        "__repr__": lambda p: f"Parameter({Tensor.__repr__(p)})",
        "__tensor_function__": classmethod(override),
        "__reduce_ex__": lambda p, protocol: (Parameter, (data_of(p), p.requires_grad)),
        "__deepcopy__": deepcopied,
    }
    return type(f"{kind.__name__}Parameter", (Parameter, kind), methods)


class Buffer(_SharedLeaf):
    """A tensor that a module stores but does not train; `persistent` ones are part of its state dict.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> module = nn.Module()
    >>> module.mean = nn.Buffer(rg.zeros(2))
    >>> list(module.state_dict())
    ['mean']
    """

    _printed_name = ""
    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Self:
        self = _SharedLeaf.__new__(cls, data)
        self.persistent = persistent
        return self


class UninitializedTensorMixin(_SharedLeaf):
    """Base of tensors whose shape is not known yet: operators refuse them until `materialize` has given them one."""

    _materialized_class: type[Tensor] = Buffer

    def __new__(cls, requires_grad: bool, device: Any, dtype: Any) -> Self:
        self = _SharedLeaf.__new__(cls, functions["empty"](0, dtype=dtype, device=device))
        self.requires_grad = requires_grad
        return self

    def materialize(self, shape: Sequence[int], device: Any = None, dtype: Any = None) -> None:
        """Become an ordinary parameter or buffer of a shape, with undefined elements, in its dtype or another.

        The object stays the same, so that optimizers which have it update it.
        """
        where = self.device if device is None else device
        kind = self.dtype if dtype is None else dtype
        self.value = functions["empty"](tuple(shape), dtype=kind, device=where).value
        self.__class__ = self._materialized_class  # type: ignore[assignment]
        self._overrides = False

    @property
    def shape(self) -> Any:
        """Raise RuntimeError: the shape is not known."""
        raise RuntimeError(
            "shape: can't access the shape of an uninitialized parameter or buffer; call the module once, so that it "
            "infers the shape, before its state is loaded into another"
        )

    @classmethod
    def __tensor_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Refuse an operator, except those that a module applies to all of its tensors."""
        if func.__name__ == "detach":
            return args[0]
        if func.__name__ == "__get__":  # attributes such as the dtype are known; `shape` refuses by itself
            return default_override(cls, func, types, args, kwargs or {})
        if func.__name__ == "to":
            return cls(args[0].requires_grad, None, kwargs["dtype"] if kwargs else args[1])
        return _refuse_uninitialized(func.__name__)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        memo[id(self)] = copied = type(self)(self.requires_grad, None, self.dtype)
        return copied

    def __reduce__(self) -> tuple:
        return type(self), (self.requires_grad, None, self.dtype)


def _refuse_uninitialized(name: str, kind: type[Exception] = ValueError) -> Any:
    raise kind(
        f"{name}: attempted to use an uninitialized parameter or buffer; call the module once with a batch, so that "
        "it infers the shape"
    )


def _add_refusals(cls: type, names: tuple[str, ...], kind: type[Exception] = ValueError) -> None:
    """Let methods that are no operators refuse an uninitialized tensor as well."""
    for name in names:

        def refuse(self: Any, *args: Any, name: str = name, **kwargs: Any) -> Any:
            return _refuse_uninitialized(name, kind)

        setattr(cls, name, refuse)


_add_refusals(UninitializedTensorMixin, ("copy_", "fill_", "item", "numel", "numpy", "size", "tolist", "zero_"))
_add_refusals(UninitializedTensorMixin, ("share_memory_",), RuntimeError)  # as PyTorch's error is


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet, as those of `nn.LazyLinear` before its first call.

    >>> from retrograd import nn
    >>> weight = nn.UninitializedParameter()
    >>> weight
    <UninitializedParameter>
    >>> weight.materialize((2, 3))
    >>> type(weight).__name__, weight.shape
    ('Parameter', (2, 3))
    """

    _materialized_class = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Self:
        return UninitializedTensorMixin.__new__(cls, requires_grad, device, dtype)


class UninitializedBuffer(UninitializedTensorMixin, Buffer):
    """A buffer whose shape is not known yet, as the running statistics of `nn.LazyBatchNorm1d`."""

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> Self:
        self = UninitializedTensorMixin.__new__(cls, requires_grad, device, dtype)
        self.persistent = persistent
        return self


def is_lazy(param: Any) -> bool:
    """Return whether a tensor is an uninitialized parameter or buffer.

    >>> from retrograd import nn
    >>> is_lazy(nn.UninitializedBuffer())
    True
    """
    return isinstance(param, UninitializedTensorMixin)


def convert_dtype(tensor: Tensor, dtype: Any) -> Tensor:
    """Return a floating or complex tensor in a dtype; others as they are."""
    if not is_differentiable(tensor.dtype) or tensor.dtype == dtype:
        return tensor
    return _convert(tensor, lambda x: _to(x, dtype))


def convert_floating(tensor: Tensor, dtype: Any) -> Tensor:
    """Return a floating tensor in a dtype; others, complex ones too, as they are."""
    return convert_dtype(tensor, dtype) if is_floating(tensor.dtype) else tensor


def move_to(tensor: Tensor, target: Any) -> Tensor:
    """Return a tensor on an `ArrayDevice`, None being host memory."""
    return tensor if array_device(tensor) is target else _convert(tensor, lambda x: place(x, target))


def empty_on(tensor: Tensor, target: Any) -> Tensor:
    """Return a tensor of the same shape with undefined values on an `ArrayDevice`, None being host memory."""
    with making_on(target):
        return _convert(tensor, lambda x: functions["empty"](tuple(x.shape), dtype=x.dtype))


def is_on_meta(tensor: Tensor) -> bool:
    """Return whether a tensor has a shape and a dtype only."""
    device = array_device(tensor)
    return device is not None and not device.has_elements


def give_memory(tensor: Tensor) -> None:
    """Give a tensor, also a buffer, new host memory with undefined values, in place."""
    with making_on(None):
        tensor.value = functions["empty"](tuple(local_tensor(tensor).shape), dtype=tensor.dtype).value
    version_of(tensor).count += 1


def convert_format(tensor: Tensor, memory_format: Any) -> Tensor:
    """Return a tensor of 4 dimensions, or of 5 for `channels_last_3d`, in a memory format; others as they are."""
    dims = {channels_last: 4, channels_last_3d: 5}.get(memory_format)
    if (dims is not None and tensor.ndim != dims) or has_format(tensor, memory_format):
        return tensor
    return _convert(tensor, lambda x: to_format(x, memory_format))


def _convert(tensor: Tensor, convert: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the converted tensor; of a parameter that is divided among ranks, this rank's elements."""
    return convert(_detach(local_tensor(tensor) if isinstance(tensor, Parameter) else tensor))


def apply_to_tensor(tensor: Tensor, fn: Callable[[Tensor], Tensor]) -> Tensor:
    """Return what a module has in place of a tensor after `fn`: a buffer's result; a parameter itself.

    The parameter and its gradient get the values of their results, so that optimizers keep it.
    """
    result = fn(tensor)
    if not isinstance(tensor, Parameter):
        return result
    grad: Any = tensor.grad
    converted = None if grad is None else fn(local_tensor(grad))
    tensor.grad = None  # it may not fit the new value
    _replace_value(tensor, result)
    if grad is not None and grad.grad_fn is None:
        _replace_value(grad, converted)
        tensor.grad = grad
    else:
        tensor.grad = converted
    return tensor


def _replace_value(tensor: Tensor, result: Any) -> None:
    """Give a tensor the value of another one, in place."""
    if result is tensor or result.value is tensor.value:
        return
    tensor.value = result.value
    version_of(tensor).count += 1  # a graph that saved the old values must not use the new ones
