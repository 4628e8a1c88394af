"""Guards: checks that tensors and values are like those that a compiled program was made for."""

from numpy import ndarray

from retrograd.core.tensor import ANY_SIZE, INFERENCE, TensorBase, attributes_of, is_plain
from retrograd.core.views import requires_grad_synced


class TensorGuard:
    """The properties of a tensor that a program takes for granted: all except its values, and those of its attributes.

    `attributes` are the names of the attributes that users have set, or None.
    """

    __slots__ = (
        "attributes", "composite", "dtype", "grad_guard", "has_hooks", "inference", "is_leaf", "is_view", "kind",
        "ndim", "requires_grad", "shape", "strides",
    )  # fmt: skip

    def __init__(self, t, with_grad=True):
        array = t.value
        self.kind = type(t)
        self.composite = None if type(array) is ndarray else array.layout_key()
        self.ndim, self.shape, self.dtype = array.ndim, tuple(array.shape), array.dtype
        self.strides = array.strides if self.composite is None else None
        self.requires_grad, self.is_leaf = requires_grad_synced(t), t._grad_fn is None
        self.is_view, self.has_hooks = t._view is not None, t._hooks is not None
        self.inference = t.version is INFERENCE
        attributes = attributes_of(t)
        self.attributes = None if attributes is None else tuple(attributes)
        self.grad_guard = None
        grad = t._grad
        if (
            with_grad
            and grad is not None
            and grad.level is None
            and (type(grad.value) is ndarray or hasattr(grad.value, "layout_key"))
        ):
            self.grad_guard = TensorGuard(grad, False)

    def holds(self, value):
        """Return whether a value is a tensor of this kind."""
        if type(value) is not self.kind:
            return False
        t: TensorBase = value
        if t.level is not None or t._requires_grad != self.requires_grad or not self._has_layout(t.value):
            return False
        if (t._grad_fn is None) != self.is_leaf or (t._view is not None) != self.is_view:
            return False
        # A write to the base may have changed what a view requires; only views pay for asking.
        if self.is_view and requires_grad_synced(t) != self.requires_grad:
            return False
        if (t._hooks is not None) != self.has_hooks or (t.version is INFERENCE) != self.inference:
            return False
        attributes = attributes_of(t)
        if (None if attributes is None else tuple(attributes)) != self.attributes:
            return False
        if self.grad_guard is None:
            return t._grad is None
        guard: TensorGuard = self.grad_guard
        return t._grad is not None and guard.holds(t._grad)

    def _has_layout(self, array):
        if type(array) is not ndarray:
            return self.composite is not None and _has_key(array, self.composite) and array.dtype == self.dtype
        if self.composite is not None:
            return False
        a: ndarray = array
        if a.ndim != self.ndim or (a.dtype is not self.dtype and a.dtype != self.dtype):
            return False
        for i in range(self.ndim):
            if a.shape[i] != self.shape[i] or a.strides[i] != self.strides[i]:
                return False
        return True


def _has_key(array, key):
    """Return whether a composite array consists of its parts in the same way as another one."""
    return hasattr(array, "layout_key") and array.layout_key() == key


def match_values(guards, values, tensors, is_same):
    """Return whether values match, and append the tensors among them to a list.

    Where a guard is no `TensorGuard`, its `value` must be the same as the value, as `is_same` says.
    """
    for i, guard in enumerate(guards):
        value = values[i]
        if type(guard) is TensorGuard:
            own: TensorGuard = guard
            if not own.holds(value):
                return False
            tensors.append(value)
        elif guard.value is not value and not is_same(guard.value, value):
            return False
    return True


def all_hold(guards, tensors):
    """Return whether each tensor is of the kind of its guard."""
    for i, guard in enumerate(guards):
        own: TensorGuard = guard
        if not own.holds(tensors[i]):
            return False
    return True


def fields_hold(fields, missing, is_same):
    """Return whether the values of dicts are still the same; `fields` are triples of a dict, a key and a value."""
    for container, key, value in fields:
        now = container.get(key, missing)
        if now is not value and not is_same(now, value):
            return False
    return True


def have_arrays_of_their_own(tensors):
    """Return whether no two tensors of a list have the same array."""
    n = len(tensors)
    for i in range(1, n):
        first: TensorBase = tensors[i]
        for k in range(i):
            second: TensorBase = tensors[k]
            if first.value is second.value:
                return False
    return True


def have_plain_arrays(tensors, arrays):
    """Return whether all values are plain tensors, and still have these arrays."""
    if len(tensors) != len(arrays):
        return False
    for i, value in enumerate(tensors):
        if not isinstance(value, TensorBase):
            return False
        t: TensorBase = value
        if t.value is not arrays[i] or not is_plain(t, ANY_SIZE):
            return False
    return True
