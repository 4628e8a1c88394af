"""The dicts `_parameters`, `_buffers` and `_modules` of a module: live views of its registered members."""

from collections.abc import ItemsView, Iterator, KeysView, Mapping, MutableMapping, ValuesView
from typing import Any


class Members(MutableMapping[str, Any]):
    """The members of some kinds by name, in the order of registration; assigning and deleting changes the module."""

    def __new__(cls, values: Any = (), kinds: tuple[str, ...] | None = None) -> Any:
        """Return the members of some kinds; without kinds a dict, for libraries that copy by `type(members)(pairs)`."""
        return dict(values) if kinds is None else super().__new__(cls)

    def __init__(self, values: dict[str, Any], kinds: tuple[str, ...]) -> None:
        self._values, self._member_kinds = values, kinds  # the module's `__dict__`

    def __reduce__(self) -> tuple:
        return dict, (dict(self._pairs()),)  # copies and files have a dict

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

    # Views of a dict, which print as those of PyTorch's dicts do.
    def keys(self) -> KeysView[str]:
        """Return the names."""
        return dict(self._pairs()).keys()

    def values(self) -> ValuesView[Any]:
        """Return the members."""
        return dict(self._pairs()).values()

    def items(self) -> ItemsView[str, Any]:
        """Return (name, member) pairs."""
        return dict(self._pairs()).items()

    def _pairs(self) -> list[tuple[str, Any]]:
        return [(name, self[name]) for name in self]

    def replace(self, members: Mapping[str, Any]) -> None:
        """Let these be all members of the kinds."""
        found = dict(members.items())
        kinds = {name: self._kinds[name] for name in self}
        self.clear()
        for name, value in found.items():
            self._kinds[name] = kinds.get(name, self._member_kinds[0])
            self._values[name] = value

    def __repr__(self) -> str:
        return repr(dict(self._pairs()))
