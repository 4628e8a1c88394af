"""The tensors that files tell apart: parameters, buffers, those of subclasses, and those with attributes of users.

A file holds such a tensor as a plain one, with the name of its class and the attributes, as PyTorch writes it.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from retrograd.core import Tensor
from retrograd.core.overrides import as_subclass
from retrograd.foundation.own_attributes import restore_state
from retrograd.interop.pickle_writer import Call, Name
from retrograd.interop.pickled_objects import allowed_name
from retrograd.interop.safe_unpickler import short_repr
from retrograd.ops.pickling import member_classes, pickled_state

TENSOR = "torch Tensor"
_OF_CLASS = "torch._tensor _rebuild_from_type_v2"
_MARKS = {"Parameter": "_is_param", "Buffer": "_is_buffer"}  # attributes in the state of such a tensor of a subclass

# ------------------------------------------------------------------------------------------------------ writing


def _is_member(tensor: Tensor, name: str) -> bool:
    return type(tensor) is not Tensor and isinstance(tensor, member_classes[name]())


def stored_state(tensor: Tensor) -> Any:
    """Return the state of a tensor in a file: its attributes, or the result of its `__getstate__`; None for nothing."""
    if type(tensor).__reduce_ex__ is not Tensor.__reduce_ex__ and _users_class(type(tensor)) is None:
        return None  # attributes of a tensor that is divided among ranks, which the file does not have
    state = pickled_state(tensor)
    if not _is_member(tensor, "Buffer"):
        return state
    return {"persistent": tensor.persistent, "_is_buffer": True, **(state or {})}  # type: ignore[attr-defined]


def rebuild_call(tensor: Tensor, state: Any, plain: Callable[[bool], Call], where: str) -> Call:
    """Return the call that rebuilds a tensor with this `stored_state`: that of a plain one, or one around it.

    plain: returns the call that rebuilds the plain tensor, requiring grad or not.

    Raises TypeError for a subclass of Tensor that is not allowed in files.
    """
    users_class, is_parameter = _users_class(type(tensor)), _is_member(tensor, "Parameter")
    if is_parameter and users_class is None:
        parts: tuple = (plain(False), tensor.requires_grad, OrderedDict())
        name = f"torch._utils _rebuild_parameter{'_with_state' if state else ''}"
        return Call(name, (*parts, state) if state else parts)
    call = plain(tensor.requires_grad)
    if users_class is None and not state:
        return call
    kind = TENSOR if users_class is None else allowed_name(users_class)
    if kind is None:
        raise TypeError(
            f"{where} is of type {type(tensor).__module__}.{type(tensor).__qualname__}, a subclass of Tensor, which a "
            "file can't hold; save x.as_subclass(rg.Tensor), or allow the class in files by "
            "rg.serialization.add_safe_globals([...])"
        )
    if is_parameter:
        state = {**(state or {}), _MARKS["Parameter"]: True}
    if call.name == _OF_CLASS and kind == TENSOR:  # of a jagged tensor
        return Call(_OF_CLASS, (*call.arguments[:3], state))
    return Call(_OF_CLASS, (Name(call.name), Name(kind), call.arguments, state))


def _users_class(kind: type) -> type | None:
    """Return the class that a file names: a subclass of Tensor that is neither ours nor one of parameters; or None."""
    package, parameter = __name__.partition(".")[0], member_classes["Parameter"]()
    tensors = [base for base in kind.__mro__ if issubclass(base, Tensor) and not issubclass(base, parameter)]
    return next((base for base in tensors if base.__module__.partition(".")[0] != package), None)


# ------------------------------------------------------------------------------------------------------ reading


def rebuild_parameter(data: Any, requires_grad: Any = True, hooks: Any = None, state: Any = None) -> Tensor:
    """Return the parameter of a plain tensor, with the attributes that a file has for it."""
    if not isinstance(data, Tensor) or type(requires_grad) is not bool:
        raise ValueError(f"damaged: a parameter of {short_repr(data)} and {short_repr(requires_grad)}")
    return _with_attributes(member_classes["Parameter"]()(data.detach(), requires_grad), state)


def rebuild_of_class(tensor: Tensor, kind: Any, state: Any) -> Tensor:
    """Return a plain tensor as one of a class, which is TENSOR or allowed, with the attributes of a file."""
    data, requires_grad, made = tensor.detach(), tensor.requires_grad, tensor
    if kind != TENSOR:
        made = as_subclass(data, kind).detach().requires_grad_(requires_grad)
        if not isinstance(state, dict) or _MARKS["Parameter"] not in state:
            if state is not None:
                restore_state(made, state)
            return made
    member = next((name for name, mark in _MARKS.items() if isinstance(state, dict) and state.get(mark) is True), None)
    if member is not None:
        made = member_classes[member]()(made.detach()).requires_grad_(requires_grad)
    return _with_attributes(made, state)


def _with_attributes(made: Tensor, state: Any) -> Tensor:
    """Give a tensor attributes of a file, whose values are plain data."""
    attributes = state[0] if type(state) is tuple and len(state) == 2 else state
    if attributes is None:
        return made
    if not isinstance(attributes, dict) or not all(type(name) is str for name in attributes):
        raise ValueError(f"damaged: the attributes of a tensor are {short_repr(state)}")
    made.__dict__.update({name: value for name, value in attributes.items() if name not in _MARKS.values()})
    return made
