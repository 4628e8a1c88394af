"""Exchange of two tensors in place."""

from typing import Any

from retrograd.core import Tensor
from retrograd.core.tensor import TensorBase


def swap_tensors(t1: Any, t2: Any) -> None:
    """Exchange two tensors: values, class, gradient, hooks, history and the attributes that users have set.

    References to `t1`, as of an optimizer or a module, then show the former `t2`. The tensors may differ in shape and
    dtype. Raises TypeError for other objects, and for a Tensor and one of a subclass, as a parameter.

    >>> import retrograd as rg
    >>> a, b = rg.nn.Parameter(rg.ones(1)), rg.nn.Parameter(rg.zeros(2))
    >>> swap_tensors(a, b)
    >>> a.tolist(), b.tolist()
    ([0.0, 0.0], [1.0])
    """
    for t in (t1, t2):
        if not isinstance(t, Tensor):
            raise TypeError(f"swap_tensors: expected two tensors, got {type(t).__name__}")
    if (type(t1) is Tensor) is not (type(t2) is Tensor):
        kinds = " and a ".join(type(t).__name__ for t in (t1, t2))
        raise TypeError(f"swap_tensors: can't exchange a {kinds}; make both parameters first, by nn.Parameter(x)")
    if t1 is t2:
        return
    before = [({name: getattr(t, name) for name in _SLOTS}, dict(vars(t)), type(t)) for t in (t1, t2)]
    for t, (slots, attributes, kind) in zip((t2, t1), before, strict=True):
        t.__class__ = kind
        for name, value in slots.items():
            setattr(t, name, value)
        vars(t).clear()
        vars(t).update(attributes)


_SLOTS = [name for name in TensorBase.__slots__ if not name.startswith("__")]
