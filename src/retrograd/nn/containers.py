"""Containers of modules or parameters: sequences, lists, dicts."""

from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from itertools import groupby
from operator import index
from typing import Any, Self

from retrograd.core import Tensor
from retrograd.foundation.own_attributes import stored_attributes
from retrograd.nn.module import Module
from retrograd.nn.module_tree import MODULE
from retrograd.nn.parameter import Parameter


class _IndexedContainer(Module):
    """Base of containers whose entries are named "0", "1", ...: the methods of lists."""

    def _names(self) -> list[str]:
        """Return the names of the entries, in order."""
        return [name for name, kind in self._kinds.items() if kind == MODULE]

    def _entries(self) -> list[Any]:
        values = stored_attributes(self)
        return [values[name] for name in self._names()]

    def _name_at(self, position: int) -> str:
        names = self._names()
        if not -len(names) <= index(position) < len(names):
            raise IndexError(f"{type(self).__name__}: index {position} is out of range for {len(names)} entries")
        return names[position]

    def _checked(self, values: Iterable[Any]) -> list[Any]:
        """Return values as entries; TypeError for those that cannot be."""
        return _check_modules(type(self).__name__, values)

    def _add(self, value: Any) -> None:
        """Add an entry at the end."""
        self._register(MODULE, str(len(self)), value)

    def __len__(self) -> int:
        return len(self._names())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._entries())

    def __getitem__(self, key: int | slice) -> Any:
        if isinstance(key, slice):
            return type(self)(self._entries()[key])  # lists of entries make subclasses
        return stored_attributes(self)[self._name_at(key)]

    def __setitem__(self, key: int, value: Any) -> None:
        setattr(self, self._name_at(key), *self._checked([value]))

    def __delitem__(self, key: int | slice) -> None:
        entries = self._entries()
        del entries[key]
        self._replace_entries(entries)

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self._extend(values)

    def _extend(self, values: Iterable[Any]) -> Self:
        """Add entries at the end; returns the container."""
        for value in self._checked(values):
            self._add(value)
        return self

    def pop(self, key: int | slice) -> Any:
        """Remove an entry and return it, or a container with the entries of a slice."""
        removed = self[key]
        del self[key]
        return removed

    def _insert(self, index: int, value: Any) -> None:
        entries = self._entries()
        entries.insert(index, *self._checked([value]))
        self._replace_entries(entries)

    def _replace_entries(self, entries: Iterable[Any]) -> None:
        """Replace all entries by these."""
        for name in self._names():
            delattr(self, name)
        self._extend(entries)


def _check_modules(where: str, modules: Iterable[Any]) -> list[Module | None]:
    """Return modules as a list; None is a member that is absent."""
    modules = list(modules)
    for module in modules:
        if not isinstance(module, Module | None):
            way_out = "put a star before the list: Sequential(*layers)" if isinstance(module, list | tuple) else ""
            way_out = f"make one: {module.__name__}()" if isinstance(module, type) else way_out
            way_out = way_out or "there are layers for functions, as nn.ReLU() for relu" * callable(module)
            raise TypeError(
                f"{where}: expected Modules, got {type(module).__name__}{way_out and f'; {way_out}'}: "
                f"{type(module).__name__} is not a Module subclass"
            )
    return modules


class Sequential(_IndexedContainer):
    """Run modules in sequence, each on the result of the previous one.

    Takes modules, which are named by index, or one dict of names to modules. Indexing returns a module, slicing a
    Sequential.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> model(rg.ones(3, 4)).shape
    (3, 2)
    >>> model[1], len(model[:2])
    (ReLU(), 2)
    """

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        named = modules[0] if len(modules) == 1 and isinstance(modules[0], Mapping) else None
        if named is None:
            named = {str(number): module for number, module in enumerate(modules)}
        _check_modules("Sequential", named.values())
        for name, module in named.items():
            self.add_module(name, module)

    def forward(self, input: Any) -> Any:
        """Run the modules in order."""
        for module in self._entries():
            input = module(input)
        return input

    def __getitem__(self, key: int | slice) -> Any:
        if isinstance(key, slice):
            return Sequential(OrderedDict(list(self._members("module"))[key]))
        return super().__getitem__(key)

    def append(self, module: Module) -> Self:
        """Add a module at the end; returns the container."""
        return self._extend([module])

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Add modules at the end; returns the container."""
        return self._extend(sequential)

    def insert(self, index: int, module: Module) -> Self:
        """Put a module before the one at that index; returns the container, whose modules are numbered."""
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Sequential: index {index} is out of range for {len(self)} modules")
        self._insert(index, module)
        return self

    def __add__(self, other: Any) -> "Sequential":
        return Sequential(*self, *_sequential(other))

    def __iadd__(self, other: Any) -> Self:
        return self._extend(_sequential(other))

    def __mul__(self, times: int) -> "Sequential":
        return Sequential(*self._entries() * _positive(times))

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Self:
        return self._extend(self._entries() * (_positive(times) - 1))


def _sequential(other: Any) -> "Sequential":
    if not isinstance(other, Sequential):
        raise ValueError(
            f"Sequential: add operator supports only objects of Sequential class, got {type(other).__name__}; "
            "extend() takes a list of modules"
        )
    return other


def _positive(times: Any) -> int:
    if not isinstance(times, int):
        raise TypeError(f"Sequential: unsupported operand type(s) for *: Sequential and {type(times).__name__}")
    if times < 1:
        raise ValueError(f"Sequential: Non-positive multiplication factor {times}")
    return times


class ModuleList(_IndexedContainer):
    """A list of modules, and of None for absent ones; it has no forward of its own.

    >>> from retrograd import nn
    >>> layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    >>> len(layers), layers[-1]
    (3, Linear(in_features=2, out_features=2, bias=True))
    """

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        self._extend(modules)

    def __add__(self, other: Iterable[Module]) -> "ModuleList":
        return ModuleList([*self, *other])

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Raise NotImplementedError: a list does not say how its modules are combined."""
        raise NotImplementedError(
            "ModuleList has no forward(): call its modules one by one, or make it a Sequential; Module [ModuleList] is "
            'missing the required "forward" function'
        )

    def append(self, module: Module) -> Self:
        """Add a module at the end; returns the list."""
        return self._extend([module])

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end; returns the list."""
        return self._extend(modules)

    def insert(self, index: int, module: Module) -> None:
        """Put a module before the one at that index, as in a Python list."""
        self._insert(index, module)

    def _repr_lines(self) -> Iterator[tuple[str, str]]:
        """Return the lines of the entries; equal neighbours share a line."""
        for text, run in groupby(enumerate(map(repr, self._entries())), key=lambda item: item[1]):
            numbers = [number for number, _ in run]
            if len(numbers) == 1:
                yield str(numbers[0]), text
            else:
                yield f"{numbers[0]}-{numbers[-1]}", f"{len(numbers)} x {text}"


class _KeyedContainer(Module):
    """Base of containers whose entries have keys: access, order, and the methods of dicts."""

    def _names(self) -> Mapping[str, Any]:
        """Return the keys of the entries, in order."""
        return self._kinds

    def __getitem__(self, key: str) -> Any:
        if key not in self._names():
            raise KeyError(key)
        return stored_attributes(self)[key]

    def __delitem__(self, key: str) -> None:
        self.pop(key)

    def __contains__(self, key: object) -> bool:
        return key in self._names()

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._names()))

    def __len__(self) -> int:
        return len(self._names())

    def keys(self) -> KeysView[str]:
        """The keys, as of a dict."""
        return dict.fromkeys(self._names()).keys()

    def values(self) -> ValuesView[Any]:
        """The entries, as of a dict."""
        return {key: self[key] for key in self}.values()

    def items(self) -> ItemsView[str, Any]:
        """Pairs of key and entry, as of a dict."""
        return {key: self[key] for key in self}.items()

    def update(self, entries: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Add the entries of a mapping or of pairs; existing keys are replaced."""
        raise NotImplementedError

    def pop(self, key: str) -> Any:
        """Remove an entry and return it."""
        value = self[key]
        delattr(self, key)
        return value

    def clear(self) -> None:
        """Remove all entries."""
        for key in self.keys():
            self.pop(key)


class ModuleDict(_KeyedContainer):
    """A dict of modules, in insertion order.

    >>> from retrograd import nn
    >>> heads = nn.ModuleDict({"small": nn.Linear(2, 1), "none": nn.Identity()})
    >>> list(heads), "small" in heads
    (['small', 'none'], True)
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None) -> None:
        super().__init__()
        if modules is not None:  # a subclass may have an update of its own
            self.update(modules)

    def __setitem__(self, key: str, value: Module) -> None:
        ModuleDict.update(self, {key: value})  # not the update of a subclass

    def update(self, entries: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add the modules of a mapping or of pairs; existing keys are replaced."""
        pairs = dict(entries)
        _check_modules("ModuleDict", pairs.values())
        for key, module in pairs.items():
            self.add_module(key, module)


class ParameterList(_IndexedContainer):
    """A list of parameters and of other objects, which are only stored; tensors put into it become parameters.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> weights = nn.ParameterList([rg.ones(2), rg.zeros(3)])
    >>> [name for name, _ in weights.named_parameters()]
    ['0', '1']
    """

    def __init__(self, values: Iterable[Any] = ()) -> None:
        super().__init__()
        self._size = 0
        self._extend(values)

    def append(self, value: Any) -> Self:
        """Add a parameter at the end; returns the list."""
        return self._extend([value])

    def extend(self, values: Iterable[Any]) -> Self:
        """Add parameters at the end; returns the list. A tensor is no list of parameters: TypeError."""
        return self._extend(values)

    def _names(self) -> list[str]:
        return [str(number) for number in range(self._size)]

    def _add(self, value: Any) -> None:
        setattr(self, str(self._size), value)
        self._size += 1

    def _checked(self, values: Iterable[Any]) -> list[Any]:
        if isinstance(values, Tensor):
            raise TypeError("ParameterList: expected an iterable of parameters, got a Tensor; put it into a list")
        return [_as_parameter(value) for value in values]

    def _replace_entries(self, entries: Iterable[Any]) -> None:
        for name in self._names():
            delattr(self, name)
        self._size = 0
        self._extend(entries)

    def _repr_lines(self) -> Iterator[tuple[str, str]]:
        return _parameter_lines(zip(self._names(), self, strict=True))


class ParameterDict(_KeyedContainer):
    """A dict of parameters and of other objects, which are only stored, in insertion order.

    Tensors put into it become parameters.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> scales = nn.ParameterDict({"left": rg.ones(2), "right": rg.zeros(3)})
    >>> [name for name, _ in scales.named_parameters()], scales["left"].requires_grad
    (['left', 'right'], True)
    """

    def __init__(self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:  # a subclass may have an update of its own
            self.update(parameters)

    def _names(self) -> Mapping[str, Any]:
        return self._keys

    def __setitem__(self, key: str, value: Any) -> None:
        ParameterDict.update(self, {key: value})  # not the update of a subclass

    def update(self, entries: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Add the parameters of a mapping or of pairs; existing keys are replaced.

        The entries of a plain dict are added in the order of their keys, as in PyTorch, where it orders `parameters()`.
        """
        has_order = isinstance(entries, OrderedDict | ParameterDict) or not isinstance(entries, Mapping)
        pairs = dict(entries)
        for key, value in pairs.items() if has_order else sorted(pairs.items()):
            value = _as_parameter(value)
            if isinstance(value, Parameter) or not isinstance(key, str):
                self.register_parameter(key, value)
            else:
                setattr(self, key, value)
            self._keys[key] = None

    def pop(self, key: str) -> Any:
        """Remove an entry and return it."""
        value = super().pop(key)
        del self._keys[key]
        return value

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the parameter of that key; if there is none, store and return the default."""
        if key not in self:
            self[key] = default
        return self[key]

    def get(self, key: str, default: Any = None) -> Any:
        """Return the parameter of that key, or the default."""
        return super().__getitem__(key) if key in self._keys else default

    def copy(self) -> "ParameterDict":
        """Return another dict of the same parameters."""
        return ParameterDict(self.items())

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> "ParameterDict":
        """Return another dict, with the default as a parameter for each key."""
        return ParameterDict([(key, default) for key in keys])

    def popitem(self) -> tuple[str, Any]:
        """Remove the entry that was added last; return its key and the entry."""
        key = next(reversed(self))
        return key, self.pop(key)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self))

    def __or__(self, other: Mapping[str, Any]) -> "ParameterDict":
        return ParameterDict([*self.items(), *other.items()])

    def __ror__(self, other: Mapping[str, Any]) -> Any:
        return other | dict(self.items())  # type: ignore[operator]  # as the other one has it

    def __ior__(self, other: Mapping[str, Any]) -> Self:
        self.update(other.items())
        return self

    def _repr_lines(self) -> Iterator[tuple[str, str]]:
        return _parameter_lines(self.items())


def _parameter_lines(entries: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, str]]:
    """Return one line per entry: the dtype and shape of a parameter, the class of another object."""
    for name, value in entries:
        if isinstance(value, Parameter):
            yield name, f"Parameter({value.aval})"
        else:
            yield name, "None" if value is None else f"Object of type: {type(value).__name__}"


def _as_parameter(value: Any) -> Any:
    """Return a tensor as a parameter, other objects as they are."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value
