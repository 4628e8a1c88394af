"""The namespaces that code reads: the dicts of modules and classes, those of this package included.

Code names what it reads of them, so a replaced member counts if some code that ran has its name. Their contents are
compared only after one of them has changed: see `retrograd.core.guards.Namespace`.
"""

import builtins
import types
import weakref
from collections.abc import Iterator, Set
from typing import Any

from retrograd.compiler.plain_values import is_same
from retrograd.core.guards import MRO, Namespace, dict_of, namespaces_hold
from retrograd.foundation.lazy_imports import LazyAttribute

MISSING = object()
_IMMUTABLE = 1 << 8  # the flag of classes that are written in C
# Members that Python and tools set, and that no code reads while it computes.
_BOOKKEEPING = {
    "__annotations__", "__builtins__", "__cached__", "__dict__", "__doc__", "__file__", "__firstlineno__", "__loader__",
    "__module__", "__name__", "__package__", "__qualname__", "__spec__", "__static_attributes__", "__warningregistry__",
    "__weakref__",
}  # fmt: skip
_BUILTINS = frozenset(vars(builtins))
_known: "weakref.WeakValueDictionary[int, Namespace]" = weakref.WeakValueDictionary()  # by the ids of the dicts
_members: "weakref.WeakKeyDictionary[Namespace, tuple[Any, list]]" = weakref.WeakKeyDictionary()


class Names:
    """The names that count in a namespace; those of special methods always do, as Python uses them unnamed.

    `new` are the names of members that count although there were none. In a module of this package only some do: it
    imports modules when they are first asked for. None stands for all names.
    """

    __slots__ = ("_free", "_new", "_read")

    def __init__(self, read: Set[str] | None, new: Set[str] | None, free: Set[str] = frozenset()) -> None:
        self._read, self._new, self._free = read, new, free

    def without(self, free: Set[str]) -> "Names":
        """Return the names without some, whose members a program reads or sets itself."""
        return Names(self._read, self._new, free)

    def find_change(self, before: dict[str, Any], now: dict[str, Any]) -> str | None:
        """Return the first name that counts and has another value now; None if there is none."""
        return next(self.changes(before, now), None)

    def changes(self, before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
        """Yield the names that count and have other values now."""
        for name, value in before.items():
            found = now.get(name, MISSING)
            is_other = found is not value and name not in self._free
            if is_other and _counts(name, self._read) and not _is_alike(value, found):
                yield name
        new = (name for name in now if name not in before and name not in self._free)
        yield from (name for name in new if _counts(name, self._new))

    def may_read(self, content: dict[str, Any]) -> bool:
        """Return whether a member that is there now counts."""
        return self._read is None or not self._read.isdisjoint(content)


def _is_alike(value: Any, found: Any) -> bool:
    """Return whether a member is the same as before, or the one that its module has added on its first use."""
    return is_same(found, value) or (isinstance(value, LazyAttribute) and found is value.member)


def _counts(name: str, names: Set[str] | None) -> bool:
    if names is None or name in names or name == MRO:
        return name not in _BOOKKEEPING
    return name.startswith("__") and name.endswith("__") and name not in _BOOKKEEPING


class Namespaces:
    """The namespaces that the code of one call reads, with their contents when it began to read them."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[Namespace, dict[str, Any], str, str]] = {}
        # by the id of the class, or of the dict of a module: its namespace with the content, a name and the kind
        self.names: set[str] = set()  # that the library's code reads
        self._of_user: set[int] = set()  # the ids of those that the user's code has as values
        self._add(vars(builtins), None, "builtins", "library module")

    def add_class(self, kind: type) -> None:
        """Note a class, its bases, and its metaclass with those."""
        if kind.__flags__ & _IMMUTABLE or id(kind) in self._found:
            return
        owners = [owner for owner in kind.__mro__ if not owner.__flags__ & _IMMUTABLE]
        has_library = any(map(is_library, kind.__mro__))
        for owner in owners if has_plain_dicts(kind) else []:
            self._add(None, owner, owner.__qualname__, "library" if has_library else "user")
        self.add_class(type(kind))

    def add_module(self, members: dict[str, Any], module_is_library: bool) -> None:
        """Note the members of a module."""
        self._add(members, None, str(members.get("__name__", "")), "library module" if module_is_library else "user")

    def add_value(self, value: Any) -> None:
        """Note a class or module that the user's code has as a value."""
        self._of_user.add(id(value) if isinstance(value, type) else id(vars(value)))
        self._add_value(value)

    def _add_value(self, value: Any) -> None:
        if isinstance(value, type):
            self.add_class(value)
        else:
            self.add_module(vars(value), is_library(value))

    def _add(self, members: dict[str, Any] | None, owner: type | None, name: str, kind: str) -> None:
        key = id(members) if owner is None else id(owner)
        known = self._found.get(key)
        if known is not None and (known[3] == kind or kind == "user"):
            return
        namespace = _known.get(key)
        if namespace is None or namespace.owner is not owner or (owner is None and namespace.container is not members):
            container = members if owner is None else dict_of(owner)
            namespace = _known[key] = Namespace(container, owner)
        self._found[key] = namespace, namespace.look() if known is None else known[1], name, kind

    def guards(self, names: Set[str] | None, texts: Set[str]) -> "NamespaceGuards":
        """Return the guards for code that reads these names, and those of the library; None stands for all.

        `texts` are names that the code may have looked for in vain, as by `hasattr`.
        """
        every = None if names is None else frozenset(names | self.names)
        new = _BUILTINS | texts
        by_kind = {
            "user": Names(names, names), "library": Names(every, every), "library module": Names(every, new),
        }  # fmt: skip
        self._add_members(every)
        found = []
        for key, (namespace, content, name, kind) in self._found.items():
            now, wanted = namespace.look(), by_kind[kind]
            if kind == "library module" and "__getattr__" in now:  # which adds members, some with names of builtins
                wanted = Names(every, texts)
            if kind != "user" and now is not content and wanted.find_change(content, {**content, **now}) is None:
                content = now  # the library may have completed a module or class in the call
            is_of_user = kind == "user" or key in self._of_user
            if is_of_user or namespace.owner is not None or wanted.may_read(content):
                found.append((namespace, content, name, wanted))
        return NamespaceGuards(found)

    def _add_members(self, names: Set[str] | None) -> None:
        """Note the classes and modules of the library among the members of the namespaces."""
        pending = list(self._found)
        seen: set[int] = set()
        while pending:
            for key in pending:
                seen.add(key)
                for name, value in _library_members(self._found[key][0]):
                    if names is None or name in names:
                        self._add_value(value)
            pending = [key for key in self._found if key not in seen]


def _library_members(namespace: Namespace) -> list[tuple[str, Any]]:
    """Return the classes and modules of this package in a namespace, by name."""
    content, members = _members.get(namespace, (None, []))
    if content is not namespace.look():
        content = namespace.content
        kinds = type | types.ModuleType
        members = [(name, each) for name, each in content.items() if issubclass(type(each), kinds) and is_library(each)]
        _members[namespace] = content, members
    return members


class NamespaceGuards:
    """The namespaces that a program takes for unchanged, apart from members whose names no code reads."""

    def __init__(self, found: list[tuple[Namespace, dict[str, Any], str, Names]]) -> None:
        self._namespaces = [one[0] for one in found]
        self._contents = [one[1] for one in found]
        self._labels = [one[2] for one in found]
        self._names = [one[3] for one in found]

    def hold(self) -> bool:
        """Return whether all are as they were."""
        return namespaces_hold(self._namespaces, self._contents, self)

    def parts(self) -> tuple[list, list, "NamespaceGuards"]:
        """Return the namespaces with their contents, and who may replace these, as `namespaces_hold` takes them."""
        return self._namespaces, self._contents, self

    def may_replace(self, i: int, content: dict[str, Any]) -> bool:
        """Return whether a namespace may have another content."""
        return self._names[i].find_change(self._contents[i], content) is None

    def find_change(self) -> tuple[str, Any, Any] | None:
        """Return the name of what has changed, its value before and its value now; None if nothing has."""
        for _, label, name, before, now in self.changes():
            return f"{label}.{name}", before, now
        return None

    def changes(self) -> Iterator[tuple[type | None, str, str, Any, Any]]:
        """Yield what has changed: the class, None for a module; its label, a name, the value before and that now."""
        for i, namespace in enumerate(self._namespaces):
            before, now = self._contents[i], namespace.look()
            for name in self._names[i].changes(before, now) if now is not before else ():
                yield namespace.owner, self._labels[i], name, before.get(name, MISSING), now.get(name, MISSING)

    def without(self, free: dict[type, set[str]]) -> "NamespaceGuards":
        """Return the guards without some members of classes, which a program reads or sets itself."""
        names = [
            n.without(free[s.owner]) if s.owner in free else n
            for s, n in zip(self._namespaces, self._names, strict=True)
        ]
        return NamespaceGuards([*zip(self._namespaces, self._contents, self._labels, names, strict=True)])


def is_library(value: Any) -> bool:
    """Return whether a class or function is defined in this package, or a module is a part of it."""
    home = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", "")
    return str(home).partition(".")[0] == "retrograd"


def has_plain_dicts(kind: type) -> bool:
    """Return whether the attributes of a class and its bases are in plain dicts; those of ctypes are not."""
    plain = (dict, types.MappingProxyType)
    return all(type(dict_of(owner)) in plain for owner in kind.__mro__ if not owner.__flags__ & _IMMUTABLE)


def has_own_class(value: Any) -> bool:
    """Return whether a value of a basic kind is of a class that may have attributes, or methods, of its own."""
    return type(value).__module__ not in ("builtins", "numpy") and not is_library(type(value))


def slots_of(kind: type) -> tuple[str, ...]:
    """Return the names of the slots of a class."""
    declared = [(owner, vars(owner).get("__slots__", ())) for owner in kind.__mro__]
    pairs = [(owner, name) for owner, slots in declared for name in ([slots] if isinstance(slots, str) else slots)]
    return tuple([_stored_name(*pair) for pair in pairs if pair[1] not in ("__dict__", "__weakref__")])


def _stored_name(owner: type, name: str) -> str:
    """Return the name under which Python stores a slot: that of `__x` has the name of the class in it."""
    is_private = name.startswith("__") and not name.endswith("__") and owner.__name__.strip("_")
    return f"_{owner.__name__.lstrip('_')}{name}" if is_private else name
