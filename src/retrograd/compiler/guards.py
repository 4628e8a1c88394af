"""The guards of a program: the values that its code read, each with the container it was read from."""

import types
from collections import deque
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from typing import Any

from retrograd.compiler.arguments import builtin_base
from retrograd.compiler.namespaces import MISSING, NamespaceGuards
from retrograd.compiler.plain_values import is_same
from retrograd.core.guards import DictGuard, values_hold
from retrograd.foundation.own_attributes import stored_attributes
from retrograd.nn.module import Module

LENGTH, KEYS, CODE, KIND = object(), object(), object(), object()


class Entry:
    """One value that was read: `container[key]`, or what `key` names of the container: LENGTH, KEYS, CODE or KIND."""

    __slots__ = ("attribute", "container", "key", "name", "value")

    def __init__(self, container: Any, key: Any, value: Any, name: str, attribute: Any) -> None:
        self.container, self.key, self.value, self.name = container, key, value, name
        # The name by which the code reads it from an object; of a special method, its code; None if it is always read.
        self.attribute = attribute

    def now(self) -> Any:
        """Return the value as it is now."""
        container, key = self.container, self.key
        if key is LENGTH:
            return builtin_base(type(container)).__len__(container)
        if key is KEYS:
            return keys_of(container)
        if key is CODE:
            return container.__code__, container.__defaults__, container.__kwdefaults__
        if key is KIND:
            return type(container), fields_of(container)
        if isinstance(key, Absent):
            return key.names_in(container)
        if isinstance(container, types.CellType):
            return cell_contents(container)
        if isinstance(container, list | deque):
            kind = builtin_base(type(container))
            return kind.__getitem__(container, key) if key < kind.__len__(container) else MISSING
        return dict.get(container, key, MISSING) if isinstance(container, dict) else container.get(key, MISSING)

    def holds(self) -> bool:
        """Return whether the value is still the same."""
        now = self.now()
        if self.key is KIND:
            return now[0] is self.value[0] and (self.value[1] is None or now[1] is self.value[1])
        return is_same(now, self.value)


class CounterEntry(Entry):
    """A number that the code only increases: any of its type may be there."""

    __slots__ = ()

    def holds(self) -> bool:
        """Return whether there is a number of this type."""
        return type(self.now()) is type(self.value)


class Absent:
    """The key of an entry for the attributes that an object has not; its value is those that it has got since."""

    __slots__ = ("_known", "by_name", "names")

    def __init__(self, known: frozenset[str], by_name: bool) -> None:
        self._known, self.by_name = known, by_name  # `by_name`: only those count that the code names
        self.names: Set[str] | None = frozenset()  # that the code reads; None if they may be any

    def names_in(self, fields: dict[str, Any]) -> tuple[str, ...]:
        """Return the attributes that the object has got."""
        found = fields.keys() - self._known
        return tuple(sorted(found if self.names is None else found & self.names))


@dataclass(frozen=True, slots=True)
class OfLibrary:
    """The attribute, as in `Entry`, of an object of this package: its own code reads it too."""

    name: str


class View:
    """The content of an object that is no container, as a dict."""

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[Any, Any], Any]) -> None:
        self._read = read

    def get(self, key: Any, default: Any) -> Any:
        """Return the value of a key."""
        return self._read(key, default)


class Slots:
    """The slots of an object, as a dict of those that have a value."""

    __slots__ = ("owner",)

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def get(self, key: str, default: Any) -> Any:
        """Return the value of a slot."""
        return getattr(self.owner, key, default)

    def __getitem__(self, key: str) -> Any:
        return getattr(self.owner, key)

    def __setitem__(self, key: str, value: Any) -> None:
        object.__setattr__(self.owner, key, value)

    def __delitem__(self, key: str) -> None:
        object.__delattr__(self.owner, key)


class ClassFields:
    """The attributes of a class, without those of its bases, as a dict."""

    __slots__ = ("owner",)

    def __init__(self, owner: type) -> None:
        self.owner = owner

    def get(self, key: str, default: Any) -> Any:
        """Return the value of an attribute."""
        return vars(self.owner).get(key, default)

    def __getitem__(self, key: str) -> Any:
        return vars(self.owner)[key]

    def __setitem__(self, key: str, value: Any) -> None:
        type.__setattr__(self.owner, key, value)

    def __delitem__(self, key: str) -> None:
        type.__delattr__(self.owner, key)


class Guards:
    """The entries of a program, ordered by kind of container so that they are checked fast, and its namespaces."""

    def __init__(self, entries: list[Entry], namespaces: NamespaceGuards | None = None) -> None:
        self.entries = entries
        self._namespaces = namespaces or NamespaceGuards([])
        self._codes: list[tuple[Any, Any, Any, Any]] = []
        self._kinds: list[tuple[Any, type, Any]] = []
        self._others: list[Entry] = []
        dicts: dict[int, tuple[dict, list[tuple[Any, Any]], list[Entry]]] = {}
        lists: dict[int, tuple[list, dict[Any, Entry]]] = {}
        for entry in entries:
            container, key = entry.container, entry.key
            if isinstance(entry, CounterEntry):
                self._others.append(entry)
            elif key is CODE:
                self._codes.append((container, *entry.value))
            elif key is KIND:
                self._kinds.append((container, *entry.value))
            elif type(container) is dict:
                _, fields, others = dicts.setdefault(id(container), (container, [], []))
                if key in (LENGTH, KEYS) or isinstance(key, Absent):
                    others.append(entry)
                else:
                    fields.append((key, entry.value))
            elif type(container) is list:
                lists.setdefault(id(container), (container, {}))[1][key] = entry
            else:
                self._others.append(entry)
        self._dicts = [DictGuard(*parts) for parts in dicts.values()]
        self._lists: list[tuple[list, tuple]] = []
        for one, members in lists.values():
            if LENGTH in members and len(members) == members[LENGTH].value + 1:
                self._lists.append((one, tuple([members[i].value for i in range(members[LENGTH].value)])))
            else:  # some members may be any
                self._others += members.values()

    def hold(self) -> bool:
        """Return whether all values are still the same."""
        if not values_hold(self._codes, self._kinds, self._dicts, self._lists, MISSING, is_same):
            return False
        return self._namespaces.hold() and (not self._others or all(entry.holds() for entry in self._others))

    def parts(self) -> tuple[tuple, tuple]:
        """Return the guards as one compiled function takes them, those of namespaces apart."""
        return (self._codes, self._kinds, self._dicts, self._lists, self._others), self._namespaces.parts()

    def ids(self) -> frozenset[int]:
        """Return the ids of the containers and values that are compared, and kept alive."""
        return frozenset([id(each) for entry in self.entries for each in (entry.container, entry.value)])

    def replaced(self, drops: Callable[[Entry], bool], others: list[Entry], free: dict[type, set[str]]) -> "Guards":
        """Return guards with other entries in place of some, and without some attributes of classes."""
        kept = [entry for entry in self.entries if not drops(entry)]
        return Guards([*kept, *others], self._namespaces.without(free) if free else self._namespaces)

    def changes(self) -> list[Entry]:
        """Return the entries that do not hold."""
        return [entry for entry in self.entries if not entry.holds()]

    def namespace_changes(self) -> Iterator[tuple[type | None, str, str, Any, Any]]:
        """Yield what has changed in modules and classes, as `NamespaceGuards.changes`."""
        return self._namespaces.changes()

    def find_change(self) -> tuple[str, Any, Any] | None:
        """Return the name of what has changed, its value before and its value now; None if all is the same."""
        for entry in self.entries:
            if not entry.holds():
                now = entry.now()
                if isinstance(entry.key, Absent):
                    return f"{entry.name}.{now[0]}", MISSING, entry.container[now[0]]
                return entry.name, entry.value, now
        return self._namespaces.find_change()


def keys_of(container: dict) -> tuple:
    """Return the keys of a dict, whatever methods its class overrides."""
    return tuple(builtin_base(type(container)).__iter__(container))


def cell_contents(cell: types.CellType) -> Any:
    """Return the value of a variable of a function around; MISSING if it has none."""
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def fields_of(value: Any) -> Any:
    """Return the dict of an object, whatever its class makes of the name; None if it has none."""
    try:
        kind = type(value)  # to ask an object for its class may run the user's code
        return stored_attributes(value) if issubclass(kind, Module) else object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
