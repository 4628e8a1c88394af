"""The dicts `_parameters`, `_buffers` and `_modules` of a module: live views of its registered members."""

from collections.abc import ItemsView, Iterator, KeysView, Mapping, MutableMapping, ValuesView
from typing import Any


class Members(MutableMapping[str, Any]):
    """The members of some kinds by name, in the order of registration; assigning and deleting changes the module."""

    def __init__(self, module: Any, kinds: tuple[str, ...]) -> None:
        self._module, self._member_kinds = module, kinds

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, kind in self._module._kinds.items() if kind in self._member_kinds])

    def __len__(self) -> int:
        return sum(kind in self._member_kinds for kind in self._module._kinds.values())

    def __getitem__(self, name: str) -> Any:
        if self._module._kinds.get(name) not in self._member_kinds:
            raise KeyError(name)
        return vars(self._module)[name]

    def __setitem__(self, name: str, value: Any) -> None:
        if name not in self:
            self._module._kinds[name] = self._member_kinds[0]
        vars(self._module)[name] = value  # as in a dict: the module's own methods may do this to set an attribute

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        del vars(self._module)[name], self._module._kinds[name]

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
        kinds = {name: self._module._kinds[name] for name in self}
        self.clear()
        for name, value in found.items():
            self._module._kinds[name] = kinds.get(name, self._member_kinds[0])
            vars(self._module)[name] = value

    def __repr__(self) -> str:
        return repr(dict(self._pairs()))
