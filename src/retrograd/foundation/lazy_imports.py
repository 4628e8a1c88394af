"""Imports on first use; `tests/test_layers.py` reads the names of the modules, so they are literals.

`lazy_module` and `lazy_names` import for one name of a package. `LazyTable` and `LazyAttribute` import modules that add
members to shared tables and classes, as operators to the registry. Such a module is completed after its import: a
function publishes all its members at once, so another thread never uses a module that is half imported.
"""

import importlib
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import RLock

from retrograd.foundation.alias_modules import is_alias
from retrograd.foundation.suggestions import MissingNameError

_homes: dict[str, dict[str, str]] = {}  # of each package: name -> full name of a module
_incomplete: dict[str, Callable[[str], None]] = {}  # full name of a module -> function that publishes its members
_completed: set[str] = set()  # full names of modules
_completing = RLock()
_late_attributes: dict[
    tuple[type, str], "LazyAttribute"
] = {}  # (class, name) -> `LazyAttribute`, until its module is complete


def lazy_module(name):
    """Return a module by its full name, imported on the first call."""
    return importlib.import_module(name)


def lazy_submodule(package, name):
    """Return a submodule of a package, imported on first use and then an attribute of the package."""
    return importlib.import_module(f"{package}.{name}")


def homes(package):
    """Return the lazily imported names of a package: name -> full name of a module, as in `lazy_names`."""
    return dict(_homes.get(package, {}))


def lazy_names(package, homes):
    """Return `__getattr__` and `__dir__` of a package with names from other modules, imported on first access.

    homes: name -> full name of the module that has this member; `package.name` is that submodule itself. Modules of
    `alias_modules` are found too.

    A higher layer adds names to the package of a lower one by calling this with the lower one's name.
    """
    known = _homes.setdefault(package, {})
    known.update(homes)

    def member(name):
        if name not in known and is_alias(f"{package}.{name}"):
            return importlib.import_module(f"{package}.{name}")
        if name not in known:
            raise MissingNameError(package, name, names())
        module = importlib.import_module(known[name])
        found = module if known[name] == f"{package}.{name}" else getattr(module, name)
        setattr(sys.modules[package], name, found)
        return vars(sys.modules[package])[name]  # the package may store something else

    def names():
        return sorted({*vars(sys.modules[package]), *known})

    return member, names


def complete_on_first_use(module, publish):
    """Register a module to be imported by `load`, and the function that then publishes its members."""
    _incomplete[module] = publish


def load(module):
    """Import a registered module and publish its members, once; return at once while this thread is importing it."""
    spec = importlib.import_module(module).__spec__  # waits while another thread imports it
    # A loader that executes the module itself, as pytest does, leaves the spec without this mark of Python's.
    if module in _completed or getattr(spec, "_initializing", False):
        return
    with _completing:
        publish = _incomplete.pop(module, None)
        if publish is not None:
            publish(module)
            _completed.add(module)


def load_all():
    """Import all registered modules."""
    for module in [*_incomplete]:
        load(module)


class LazyTable(dict):
    """A dict that modules fill: to look a name up imports the module that adds it, to list the names imports them all.

    homes: name -> full name of the registered module that adds it. Other names are added by modules that are imported.
    """

    def __init__(self):
        super().__init__()
        self.homes = {}
        self._unlisted = []  # names without a home that `add` has added since the last `pop_unlisted`
        self._added = {}  # members that registered modules have added

    def add(self, name, member):
        """Add a member. One of a registered module is found here as soon as that module is complete."""
        if name in self.homes:
            self._added[name] = member
        else:
            self[name] = member
            self._unlisted.append(name)

    def has(self, name):
        """Return whether a member was added, or will be by a module whose import has not begun."""
        return dict.__contains__(self, name) or name in self._added or self.homes.get(name, "sys") not in sys.modules

    def __missing__(self, name):
        home = self.homes[name]
        load(home)
        member = self._added[name]
        if home in _completed:
            self[name] = member
        return member

    def __contains__(self, name):
        return dict.__contains__(self, name) or name in self.homes

    def get(self, name, default=None):
        """Return the member, or a default if there is none of that name."""
        try:
            return self[name]
        except KeyError:
            return default

    def __delitem__(self, name):
        self.homes.pop(name, None)
        self._added.pop(name, None)
        super().__delitem__(name)

    def get_added(self, name):
        """Return a member that its module has added, also before this module is complete."""
        return self._added[name]

    def pop_unlisted(self):
        """Return the members without a home that `add` has added since the last call."""
        names, self._unlisted = self._unlisted, []
        return [self[name] for name in names if dict.__contains__(self, name)]

    def imported(self):
        """Return the members whose modules are imported, by name, and import nothing."""
        return dict(super().items())

    def names(self):
        """Return the names of all members, and import nothing."""
        return {*super().keys(), *self.homes}

    def _load_all(self):
        load_all()
        missing = [n for n in self.homes if not dict.__contains__(self, n)]
        for name in missing:
            with suppress(KeyError):  # a module that is being imported has not added it yet
                self[name]
        if missing:  # in the order of the homes, whichever name was looked up first
            for name in [n for n in self.homes if dict.__contains__(self, n)]:
                self[name] = self.pop(name)

    def __iter__(self):
        self._load_all()
        return super().__iter__()

    def __len__(self):
        self._load_all()
        return super().__len__()

    def keys(self):
        """Return the names of all members."""
        self._load_all()
        return super().keys()

    def values(self):
        """Return all members."""
        self._load_all()
        return super().values()

    def items(self):
        """Return all pairs of a name and a member."""
        self._load_all()
        return super().items()


class LazyAttribute:
    """An attribute of a class that a registered module adds: the first access imports this module."""

    def __init__(self, owner, name, home):
        self.owner, self.name, self.home = owner, name, home
        self.member = None
        _late_attributes[owner, name] = self

    def __get__(self, instance, kind=None):
        load(self.home)
        member = vars(self.owner)[self.name]
        if member is self:  # the module is being imported by this thread
            member = self.member
        if member is None:
            raise AttributeError(f"{self.owner.__name__}.{self.name}: {self.home} has not defined it yet")
        return member.__get__(instance, kind)

    def publish(self):
        """Replace this attribute of the class by its member, unless a user has replaced it by something else."""
        if vars(self.owner).get(self.name) is self and self.member is not None:
            setattr(self.owner, self.name, self.member)
        _late_attributes.pop((self.owner, self.name), None)


def late_attribute(owner, name):
    """Return the `LazyAttribute` of a class whose module is not complete; None if there is none of that name."""
    return _late_attributes.get((owner, name))


def own_attribute(owner, name):
    """Return an attribute from the dict of a class; that of a `LazyAttribute` if its module is not complete."""
    late = late_attribute(owner, name)
    return vars(owner)[name] if late is None else late.member


def add_attribute(owner, name, member):
    """Add an attribute to a class; in place of a `LazyAttribute`, as soon as its module is complete."""
    late = late_attribute(owner, name)
    if late is None:
        setattr(owner, name, member)
    else:
        late.member = member
