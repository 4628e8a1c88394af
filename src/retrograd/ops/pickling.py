"""Copies and pickled data of tensors: their values, attributes and gradients."""

import copy
import copyreg

from retrograd.backend import share_dtype
from retrograd.backend.memory_layout import deep_copy, keep_layout, kept_array
from retrograd.core import Tensor
from retrograd.core.tensor import attributes_of, new_of_class
from retrograd.foundation.own_attributes import restore_state
from retrograd.ops.methods import method

member_classes = {}  # "Parameter", "Buffer" -> function that returns the class, which a higher layer sets


def pickled_state(x):
    """Return the state of a tensor in pickled data, in the form of `restore_state`; None for nothing.

    It has the attributes and slots that users have set, or is the result of the `__getstate__` of a subclass.
    """
    if type(x).__getstate__ is not Tensor.__getstate__:  # type: ignore[comparison-overlap]
        return x.__getstate__()
    slots = {name: getattr(x, name) for name in _own_slots(type(x)) if hasattr(x, name)}
    return (attributes_of(x), slots) if slots else attributes_of(x)


def _own_slots(kind):
    return () if kind is Tensor else [n for n in copyreg._slotnames(kind) if not hasattr(Tensor, n)]  # type: ignore


def _rebuild_leaf(kind, values, requires_grad, state):
    """Return a leaf of a class from what pickled data has of it."""
    x = new_of_class(kind, share_dtype(kept_array(values)), None, None, requires_grad)
    if state is not None:
        restore_state(x, state)
    return x


@method
def __reduce_ex__(x, protocol):
    if x.level is not None:
        raise RuntimeError("a tensor inside a function transform or trace can't be pickled")
    return _rebuild_leaf, (type(x), keep_layout(x.value), x.requires_grad, pickled_state(x))


@method
def __deepcopy__(x, memo):
    if not x.is_leaf or x.level is not None:
        raise RuntimeError(
            "deepcopy: Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol; use "
            "x.clone(), or x.detach().clone()"
        )
    memo[id(x)] = copied = new_of_class(type(x), deep_copy(x.value, memo), None, None, x.requires_grad)
    copied._grad = copy.deepcopy(x._grad, memo)
    for name in _own_slots(type(x)):
        if hasattr(x, name):
            setattr(copied, name, copy.deepcopy(getattr(x, name), memo))
    attributes = attributes_of(x)
    if attributes:
        copied.__dict__.update(copy.deepcopy(attributes, memo))
    return copied
