"""Imports on first use; `tests/test_layers.py` reads the names of the modules, so they are literals."""

import importlib
import sys

from retrograd.core.suggestions import missing_name

_homes = {}  # of each package: name -> full name of a module


def lazy_module(name):
    """Return a module by its full name, imported on the first call."""
    return importlib.import_module(name)


def homes(package):
    """Return the lazily imported names of a package: name -> full name of a module, as in `lazy_names`."""
    return dict(_homes.get(package, {}))


def lazy_names(package, homes):
    """Return `__getattr__` and `__dir__` of a package with names from other modules, imported on first access.

    homes: name -> full name of the module that has this member; `package.name` is that submodule itself.

    A higher layer adds names to the package of a lower one by calling this with the lower one's name.
    """
    known = _homes.setdefault(package, {})
    known.update(homes)

    def member(name):
        if name not in known:
            raise missing_name(f"module {package!r} has no attribute {name!r}", name, names())
        module = importlib.import_module(known[name])
        found = module if known[name] == f"{package}.{name}" else getattr(module, name)
        setattr(sys.modules[package], name, found)
        return vars(sys.modules[package])[name]  # the package may store something else

    def names():
        return sorted({*vars(sys.modules[package]), *known})

    return member, names
