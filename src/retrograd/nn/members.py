"""The dicts `_parameters`, `_buffers` and `_modules` of a module: live views of its registered members."""

from collections.abc import Iterator, MutableMapping
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
        if name in self:
            setattr(self._module, name, value)
        else:
            self._module._register(self._member_kinds[0], name, value)

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        delattr(self._module, name)

    def __repr__(self) -> str:
        return repr(dict(self))
