"""Modules under a second path: `import retrograd.nn.modules.conv` makes a module of names from other modules.

A table lists them. It is read when a module without a file is first imported, so it costs nothing before.
"""

import importlib
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:  # its import takes 15 ms on Python 3.11
    from importlib.abc import Loader

Table = dict[str, dict[str, str]]  # path of a module -> {path of another module: names that it provides}


class _PackageOfFunctions(ModuleType):
    """The class of a package in which a module has the name of a function: the attribute stays the function."""

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute; Python itself sets that of a module which it has imported."""
        if not (isinstance(value, ModuleType) and callable(vars(self).get(name))):
            super().__setattr__(name, value)


class AliasFinder:
    """A finder of `sys.meta_path` for the modules of a table; Python asks it after the finders of files.

    Paths in the table are relative to the package. "name=other" is the other module's member `other`, here `name`.
    """

    def __init__(self, package: str, read: Callable[[], Table]) -> None:
        self.package = package
        self.read = read

    def find_spec(self, name: str, path: object = None, target: object = None):
        """Return the spec of a module of the table; None for other modules."""
        if not self.has(name):
            return None
        spec = ModuleSpec(name, cast("Loader", self))
        spec.submodule_search_locations = [] if self._submodules(name) else None
        return spec

    def has(self, name: str) -> bool:
        """Return whether the table has a module of this full name."""
        return name.startswith(f"{self.package}.") and self._path(name) in self.read()

    def create_module(self, spec: object) -> None:
        """Let Python create the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Give a module the names that the table lists; those of modules that are not imported yet, on first use."""
        name = module.__name__
        homes: dict[str, tuple[str, str | None]] = {
            submodule: (f"{name}.{submodule}", None) for submodule in self._submodules(name)
        }
        for path, listed in self.read()[self._path(name)].items():
            for entry in listed.split():
                alias, _, member = entry.partition("=")
                homes[alias] = (f"{self.package}.{path}".rstrip("."), member or alias)

        parent, _, last = name.rpartition(".")
        if callable(vars(sys.modules[parent]).get(last)):
            sys.modules[parent].__class__ = _PackageOfFunctions

        def find(attribute: str) -> object:
            if attribute not in homes:
                raise AttributeError(f"module {name!r} has no attribute {attribute!r}", name=attribute, obj=module)
            home, member = homes[attribute]
            found = importlib.import_module(home)
            setattr(module, attribute, found if member is None else getattr(found, member))
            return vars(module)[attribute]

        vars(module).update(
            __doc__=f"Names of PyTorch's module {self._path(name)}, which other modules of this package define.",
            __getattr__=find,
            __dir__=lambda: sorted({*vars(module), *homes}),
            __all__=sorted(alias for alias, (_, member) in homes.items() if member and alias[0] != "_"),
        )
        for attribute, (home, source) in homes.items():
            if source and _is_imported(home):
                find(attribute)  # for programs that look for classes in `vars(module)`

    def _path(self, name: str) -> str:
        return name[len(self.package) + 1 :]

    def _submodules(self, name: str) -> list[str]:
        start = f"{self._path(name)}."
        return [path[len(start) :] for path in self.read() if path.startswith(start) and "." not in path[len(start) :]]


def _is_imported(name: str) -> bool:
    """Return whether a module is complete."""
    return name in sys.modules and not getattr(sys.modules[name].__spec__, "_initializing", False)


_finders: list[AliasFinder] = []


def alias_modules(package: str, read: Callable[[], Table]) -> None:
    """Let Python import the modules of a table of a package; `read` returns the table."""
    _finders.append(AliasFinder(package, read))
    sys.meta_path.append(_finders[-1])


def is_alias(name: str) -> bool:
    """Return whether a table has a module of this full name."""
    return any(finder.has(name) for finder in _finders)
