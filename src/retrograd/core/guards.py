"""Guards: checks that tensors and values are like those that a compiled program was made for."""

from operator import is_

from numpy import ndarray

from retrograd.core.dtype import get_default_dtype
from retrograd.core.state import current
from retrograd.core.tensor import ANY_SIZE, INFERENCE, TensorBase, attributes_of, is_plain
from retrograd.core.views import requires_grad_synced
from retrograd.foundation.own_attributes import own_attributes

compiled = not __file__.endswith(".py")
MRO = "<mro>"  # the key of the base classes in the content of a class


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


class Namespace:
    """The dict of a module or class, which seldom changes, and its content when it was last compared."""

    __slots__ = ("__weakref__", "_version", "container", "content", "owner")

    def __init__(self, container, owner=None):
        self.container, self.owner = container, owner  # `owner` is the class, None for a module
        self._version = watched_version(container) if compiled else 0  # noqa: F821 (declared in guards.pxd)
        self.content = self._copy()

    def look(self):
        """Return the content: a copy of the dict, the same one as long as all values are the same."""
        version = watched_version(self.container) if compiled else 0  # noqa: F821
        # The version of a class changes before its bases do, so these are compared each time.
        if version == 0 or version != self._version or not self._has_bases():
            self._version = version
            if not self._is_same():
                self.content = self._copy()
        return self.content

    def _has_bases(self):
        return self.owner is None or mro_of(self.owner) is self.content[MRO]

    def _copy(self):
        content = dict(self.container)
        if self.owner is not None:
            content[MRO] = mro_of(self.owner)
        return content

    def _is_same(self):
        if not self._has_bases() or len(self.container) + (self.owner is not None) != len(self.content):
            return False
        content, members = self.content, self.container  # in the same order as long as nothing changes
        return all(map(is_, members, content)) and all(map(is_, members.values(), content.values()))


def mro_of(owner):
    """Return the classes in which attributes of a class are looked up."""
    return bases_of(owner) if compiled else owner.__mro__  # noqa: F821


def dict_of(owner):
    """Return the dict of a module or class."""
    return members_of(owner) if compiled and isinstance(owner, type) else vars(owner)  # noqa: F821


def namespaces_hold(namespaces, contents, names):
    """Return whether namespaces have the given contents, or others that may replace these; then note the others.

    `names.may_replace(i, content)` says whether this may be the content of the namespace i.
    """
    for i, namespace in enumerate(namespaces):
        own: Namespace = namespace
        content = own.look()
        if content is not contents[i]:
            if not names.may_replace(i, content):
                return False
            contents[i] = content
    return True


class DictGuard:
    """Guards of the values in a dict, which are compared again only after the dict has changed.

    `fields` are pairs of a key and a value, `entries` other guards, with a method `holds`.
    """

    __slots__ = ("_entries", "_fields", "_version", "container")

    def __init__(self, container, fields, entries):
        self.container = container
        self._fields, self._entries = fields, entries
        self._version = 0

    def holds(self, missing, is_same):
        """Return whether the dict still contains the same."""
        version = version_of(self.container) if compiled else 0  # noqa: F821
        if version != 0 and version == self._version:
            return True
        for key, value in self._fields:
            now = self.container.get(key, missing)
            if now is not value and not is_same(now, value):
                return False
        for entry in self._entries:
            if not entry.holds():
                return False
        self._version = version
        return True


def values_hold(codes, kinds, dicts, lists, missing, is_same):
    """Return whether functions, objects, dicts and lists are as they were.

    `codes` are functions with their code, defaults, and defaults of keywords, `kinds` objects with their class, and
    their dict or None, `dicts` are guards, and `lists` are lists with tuples of their members.
    """
    for function, code, defaults, named in codes:
        if function.__code__ is not code or function.__defaults__ is not defaults:
            return False
        if function.__kwdefaults__ is not named:
            return False
    for value, kind, fields in kinds:
        if type(value) is not kind:
            return False
        if fields is not None and (own_dict(value) if compiled else own_attributes(value)) is not fields:  # noqa: F821
            return False
    for guard in dicts:
        own: DictGuard = guard
        if not own.holds(missing, is_same):
            return False
    for container, members in lists:
        if len(container) != len(members):
            return False
        for i, value in enumerate(members):
            now = container[i]
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


NO_MATCH = object()  # instead of a result: a guard does not hold


class GuardedCall:
    """A function of tensors, `play`, that replaces the calls of another one for which all guards hold.

    It is for positional arguments without containers, and checks all in one function: a caller with more guards checks
    them one after another. The guards are as the functions above take them, and others with a method `holds`; `arrays`
    are the ids of arrays that no argument may have. `modes` are the grad mode, or None for any, and the default dtype.
    `explain` gets the errors of `play`.
    """

    __slots__ = (
        "_any_grad_mode", "_args", "_arrays", "_contents", "_dtype", "_explain", "_grad_enabled", "_is_same",
        "_missing", "_names", "_namespaces", "_play", "_tensor_guards", "_tensors", "_values",
    )  # fmt: skip

    def __init__(self, play, explain, modes, args, values, namespaces, tensors, arrays, missing, is_same):
        self._play, self._explain, self._args, self._values, self._arrays = play, explain, args, values, arrays
        grad_enabled, self._dtype = modes
        self._any_grad_mode, self._grad_enabled = grad_enabled is None, bool(grad_enabled)
        self._namespaces, self._contents, self._names = namespaces
        self._tensor_guards, self._tensors = tensors
        self._missing, self._is_same = missing, is_same

    def run(self, args):
        """Return the result of the function for a call; NO_MATCH if a guard does not hold, or a mode is on."""
        state = current()
        if state.level is not None or state.watchers is not None or state.saving is not None:
            return NO_MATCH
        if state.running is not None or state.overrides_off or state.inference:
            return NO_MATCH
        if state.grad_enabled != self._grad_enabled and not self._any_grad_mode:
            return NO_MATCH
        if get_default_dtype() != self._dtype:
            return NO_MATCH
        tensors = []
        if len(args) != len(self._args) or not match_values(self._args, args, tensors, self._is_same):
            return NO_MATCH
        if not have_arrays_of_their_own(tensors) or (self._arrays and not self._are_new(tensors)):
            return NO_MATCH
        codes, kinds, dicts, lists, others = self._values
        if not values_hold(codes, kinds, dicts, lists, self._missing, self._is_same):
            return NO_MATCH
        if not namespaces_hold(self._namespaces, self._contents, self._names):
            return NO_MATCH
        if not all_hold(self._tensor_guards, self._tensors):
            return NO_MATCH
        for entry in others:
            if not entry.holds():
                return NO_MATCH
        try:
            return self._play(*tensors)
        except (ValueError, TypeError, IndexError, AttributeError) as error:
            self._explain(error)
            raise

    def _are_new(self, tensors):
        """Return whether no argument has the array of a tensor from outside."""
        for t in tensors:
            if id(t.value) in self._arrays:
                return False
        return True
