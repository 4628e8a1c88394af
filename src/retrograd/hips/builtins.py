"""`autograd.builtins`: Python's own, because tuples, lists and dicts of tensors need no boxes."""

import builtins
from builtins import dict, list, tuple  # noqa: UP029 (they are this module's names)
from typing import Any

from retrograd.core import Tensor
from retrograd.interop.numpy_protocol.table import values

DictBox = dict
SequenceBox = (list, tuple)

__all__ = ["DictBox", "SequenceBox", "dict", "isinstance", "list", "tuple", "type"]


def isinstance(obj: Any, class_or_tuple: Any) -> bool:
    """Whether an object, or a tensor's value, is of a class: arrays, and for 0-d tensors numbers as well.

    >>> import numpy as np
    >>> from retrograd import grad
    >>> grad(lambda x: x**2 if isinstance(x, np.ndarray) else 3 * x)(np.array(2.0))
    np.float64(4.0)
    """
    if not builtins.isinstance(obj, Tensor):
        return builtins.isinstance(obj, class_or_tuple)
    return any(builtins.isinstance(known, class_or_tuple) for known in (obj, values(obj), values(obj)[()]))


def type(obj: Any) -> builtins.type:
    """Return the class of an object; for a tensor, that of its value."""
    return builtins.type(values(obj) if builtins.isinstance(obj, Tensor) else obj)
