"""`ModuleAttributes`, the `__dict__` of a module, and in it the dicts `_parameters`, `_buffers` and `_modules`.

Members are stored among the other attributes, where Python finds them fastest, and `_kinds` lists their names.
Programs that read or write `__dict__` see what PyTorch's modules have there: dicts of members and hooks.
"""

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, MutableMapping, MutableSet, ValuesView
from typing import Any
from weakref import WeakValueDictionary

from retrograd.foundation.own_attributes import stored_attributes
from retrograd.nn.hooks import HOOK_DICTS, HooksOfKind

PARAMETER, BUFFER, TRANSIENT, MODULE = "parameter", "buffer", "transient buffer", "module"
BUFFERS = (BUFFER, TRANSIENT)
MEMBERS = {"_parameters": (PARAMETER,), "_buffers": BUFFERS, "_modules": (MODULE,)}
TRANSIENT_NAMES = "_non_persistent_buffers_set"
VIEWS = ("_parameters", "_buffers", TRANSIENT_NAMES, *HOOK_DICTS, "_modules")
_STORED = ("_kinds", *dict.fromkeys(attribute for attribute, _ in HOOK_DICTS.values()))  # what the views show


class ModuleAttributes(MutableMapping[str, Any]):
    """The attributes of a module under PyTorch's keys: the dicts of its members in place of these.

    values: the attributes as they are stored.  `attributes[name]` of a member returns it, although it is no key.

    >>> from retrograd import nn
    >>> layer = nn.Linear(1, 1)
    >>> "weight" in layer.__dict__, list(layer.__dict__["_parameters"])
    (False, ['weight', 'bias'])
    """

    __slots__ = ("_values",)

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> Any:
        if name not in VIEWS or "_kinds" not in self._values:  # which `Module.__init__` sets
            return self._values[name]
        if name in HOOK_DICTS:
            attribute, kind = HOOK_DICTS[name]
            return HooksOfKind(self._values.setdefault(attribute, {}), kind)
        return TransientNames(self._values) if name == TRANSIENT_NAMES else members_of(self._values, name)

    def __setitem__(self, name: str, value: Any) -> None:
        if name in VIEWS:
            self._values.setdefault("_kinds", {})
            self[name].replace(value)
        else:
            self._values[name] = value

    def __delitem__(self, name: str) -> None:
        if name in VIEWS:
            self[name].replace({})
        else:
            del self._values[name]

    def __iter__(self) -> Iterator[str]:
        kinds = self._values.get("_kinds")
        if kinds is None:
            return iter(self._values)
        own = [name for name in self._values if name not in kinds and name not in _STORED]
        first = own.index("training") + 1 if "training" in own else 0
        return iter([*own[:first], *VIEWS, *own[first:]])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        kinds = self._values.get("_kinds")
        if kinds is None:
            return name in self._values
        return name in VIEWS or (name in self._values and name not in kinds and name not in _STORED)

    def __repr__(self) -> str:
        return repr(self.copy())

    def __reduce__(self) -> tuple:
        return dict, (self.copy(),)  # copies and files have a dict

    def __or__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return self.copy() | dict(other)

    def __ror__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return dict(other) | self.copy()

    def copy(self) -> dict[str, Any]:
        """Return an ordinary dict of the attributes, with the dicts of members."""
        return {name: self[name] for name in self}

    def state(self) -> dict[str, Any]:
        """Return an ordinary dict of the attributes, with dicts of the members, and hooks with all their options."""
        shown = {name: self[name] for name in self if name not in HOOK_DICTS}
        hooks = {name: self._values[name] for name in _STORED[1:] if name in self._values}
        return {name: value.copy() if name in VIEWS else value for name, value in shown.items()} | hooks

    def update(self, *given: Any, **named: Any) -> None:
        """Set attributes; a dict of members replaces all members of its kind."""
        state = dict(*given, **named)
        for name in [n for n in MEMBERS if n in state]:  # first: the other entries depend on them
            self[name] = state.pop(name)
        for name, value in state.items():
            self[name] = value


def all_attributes(module: Any) -> dict[str, Any]:
    """Return a dict of all attributes of a module as they are stored, members among them."""
    return dict(stored_attributes(module))


def restore_attributes(module: Any, attributes: Mapping[str, Any]) -> None:
    """Let a module have exactly these attributes, as they are stored."""
    values = stored_attributes(module)
    values.clear()
    values.update(attributes)


def members_of(values: dict[str, Any], name: str) -> "Members":
    """Return one of the dicts of members of a module that has these attributes, the same object while it is used."""
    found = _IN_USE.get((id(values), name))
    if found is None:
        found = _IN_USE[id(values), name] = Members(values, MEMBERS[name])
    return found


_IN_USE: WeakValueDictionary[tuple[int, str], Any] = WeakValueDictionary()  # by the id of the stored attributes


class Members(MutableMapping[str, Any]):
    """The members of some kinds by name, in the order of registration; assigning and deleting changes the module.

    After the module's dict was replaced by another one, it keeps its members for itself, as a dict does.
    """

    def __new__(cls, values: Any = (), kinds: tuple[str, ...] | None = None) -> Any:
        """Return the members of some kinds; without kinds a dict, for libraries that copy by `type(members)(pairs)`."""
        return dict(values) if kinds is None else super().__new__(cls)

    def __init__(self, values: dict[str, Any], kinds: tuple[str, ...]) -> None:
        self._values, self._member_kinds = values, kinds  # the module's `__dict__`

    def __reduce__(self) -> tuple:
        return dict, (self.copy(),)  # copies and files have a dict

    @property
    def _kinds(self) -> dict[str, str]:
        kinds: dict[str, str] = self._values["_kinds"]
        return kinds

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, kind in self._kinds.items() if kind in self._member_kinds])

    def __len__(self) -> int:
        return sum(kind in self._member_kinds for kind in self._kinds.values())

    def __getitem__(self, name: str) -> Any:
        if self._kinds.get(name) not in self._member_kinds:
            raise KeyError(name)
        return self._values[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self:
            self._kinds[name] = self._member_kinds[0]
        self._values[name] = value  # as in a dict: the module's own methods may do this to set an attribute

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        del self._values[name], self._kinds[name]

    def copy(self) -> dict[str, Any]:
        """Return an ordinary dict of the members."""
        return {name: self._values[name] for name in self}

    # Views of a dict, which print as those of PyTorch's dicts do.
    def keys(self) -> KeysView[str]:
        """Return the names."""
        return self.copy().keys()

    def values(self) -> ValuesView[Any]:
        """Return the members."""
        return self.copy().values()

    def items(self) -> ItemsView[str, Any]:
        """Return (name, member) pairs."""
        return self.copy().items()

    def replace(self, members: Mapping[str, Any]) -> None:
        """Let others be the module's members of these kinds; this object keeps the former ones for itself.

        If `members` is what a module had before, such as one saved by a program, it becomes the module's dict again.
        """
        if members is self:
            return
        module, name = self._values, next(name for name, of in MEMBERS.items() if of == self._member_kinds)
        kinds = {member: self._kinds[member] for member in self}
        found = dict(members.items())
        self._values = {"_kinds": dict(kinds), **self.copy()}
        _IN_USE.pop((id(module), name), None)
        for member in kinds:
            del module["_kinds"][member], module[member]
        for member, value in found.items():
            module["_kinds"][member] = kinds.get(member, self._member_kinds[0])
            module[member] = value
        if isinstance(members, Members) and (id(members._values), name) not in _IN_USE:
            members._values = module
            _IN_USE[id(module), name] = members

    def __or__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return self.copy() | dict(other)

    def __ror__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return dict(other) | self.copy()

    def __ior__(self, other: Mapping[str, Any]) -> "Members":
        self.update(other)
        return self

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self))

    def __repr__(self) -> str:
        return repr(self.copy())


class TransientNames(MutableSet[str]):
    """The names of a module's buffers that its state dict lacks; adding and discarding changes the module."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    @classmethod
    def _from_iterable(cls, names: Iterable[Any]) -> Any:
        return set(names)

    def _change(self, name: Any, before: str, now: str) -> None:
        if self._values["_kinds"].get(name) == before:
            self._values["_kinds"][name] = now

    def __contains__(self, name: object) -> bool:
        return self._values["_kinds"].get(name) == TRANSIENT

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, kind in self._values["_kinds"].items() if kind == TRANSIENT])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def add(self, value: str) -> None:
        """Leave a buffer out of the state dict; other names are ignored."""
        self._change(value, BUFFER, TRANSIENT)

    def discard(self, value: str) -> None:
        """Let the state dict have a buffer."""
        self._change(value, TRANSIENT, BUFFER)

    def copy(self) -> set[str]:
        """Return an ordinary set of the names."""
        return set(self)

    def replace(self, names: Iterable[str]) -> None:
        """Let these be all names."""
        names = set(names)
        for name in {*self} - names:
            self.discard(name)
        for name in names:
            self.add(name)

    def __reduce__(self) -> tuple:
        return set, (list(self),)

    def __repr__(self) -> str:
        return repr(set(self))
