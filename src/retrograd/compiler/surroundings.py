"""The surroundings that a function reads: globals, closures, attributes, modules, and the tensors in them.

Each value is noted with the container that it was read from, when the code that reads it begins to run. These are the
guards of a program, and they tell whether the call itself has changed anything: then they fail right after it.
"""

import dis
import functools
import os
import types
from collections.abc import Callable, Iterator
from typing import Any

import optree

from retrograd.backend import array_programs
from retrograd.compiler.plain_values import is_plain_value, is_same
from retrograd.core import Tensor
from retrograd.core.guards import fields_hold
from retrograd.core.tensor import attributes_of
from retrograd.foundation.source_location import PACKAGE
from retrograd.nn.module import Module
from retrograd.optim.lr_scheduler import LRScheduler
from retrograd.optim.optimizer import Optimizer

MISSING = object()
MOST_EXPLORED = 100  # functions
_OPAQUE = (Optimizer, LRScheduler)  # only their methods are called, which a program runs as they are
_UNCHANGING = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    optree.PyTreeSpec,
)
_LOADS = {"LOAD_GLOBAL", "LOAD_NAME"}
_ATTRIBUTES = {"LOAD_ATTR", "LOAD_METHOD"}
_STORES = {"STORE_ATTR", "DELETE_ATTR"}
_REFUSED = {"STORE_GLOBAL": "assigns the global variable", "DELETE_GLOBAL": "deletes the global variable"}
_SIZES = {"shape", "size", "numel", "nelement", "stride", "nbytes", "itemsize", "element_size", "__len__", "len"}
_CHANGES = {"STORE_ATTR", "DELETE_ATTR", "STORE_SUBSCR", "DELETE_SUBSCR"}
MUTATIONS = {"add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popleft", "remove",
             "setdefault", "update"}  # fmt: skip
IMPORTS = ("retrograd", "math")  # a module that is imported in a function is not found among its globals


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
            return len(container)
        if key is KEYS:
            return tuple(container)
        if key is CODE:
            return container.__code__, container.__defaults__, container.__kwdefaults__
        if key is KIND:
            return type(container)
        if isinstance(container, types.CellType):
            return container.cell_contents
        if isinstance(container, list):
            return container[key] if key < len(container) else MISSING
        return container.get(key, MISSING)

    def holds(self) -> bool:
        """Return whether the value is still the same."""
        return is_same(self.now(), self.value)


LENGTH, KEYS, CODE, KIND = object(), object(), object(), object()


class _View:
    """The content of an object that is no container, as a dict."""

    __slots__ = ("_read",)

    def __init__(self, read: Callable[[Any, Any], Any]) -> None:
        self._read = read

    def get(self, key: Any, default: Any) -> Any:
        """Return the value of a key."""
        return self._read(key, default)


_COMMANDS = os.path.join(PACKAGE, "cli", "")


class FunctionHolder:
    """A callable of this package that runs a function of the user, `_function`."""

    _function: Callable[..., Any]


class Surroundings:
    """The values that the code of one call reads, apart from its arguments."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.tensors: dict[int, Any] = {}
        self.refusal = ""
        self.names: set[str] = set()  # of the attributes that the code reads
        self.reads_sizes = False  # whether the code may read sizes of tensors
        self._unknown: list[tuple[str, str | None]] = []  # what is read, and the attribute as in `Entry`
        self._seen: dict[tuple[int, str | None], Any] = {}
        self._functions: dict[types.CodeType, list[Any]] = {}
        self._entered: set[types.CodeType] = set()
        self._local: set[types.CodeType] = set()  # functions that the code defines
        self._texts: set[str] = set()  # the strings in the code that may be names of attributes
        self._namespaces: dict[int, tuple[Any, str]] = {}  # classes and modules that are values, and their names
        self._named: set[tuple[int, str]] = set()  # their attributes that are noted

    # -------------------------------------------------------------------------------------------- code that runs

    def enter(self, code: types.CodeType, variables: dict[str, Any]) -> None:
        """Note what a function of the user reads; `variables` are its globals."""
        if code in self._entered:
            return
        self._entered.add(code)
        self._local.update(c for c in code.co_consts if isinstance(c, types.CodeType))
        self._texts.update(c for c in code.co_consts if isinstance(c, str) and c.isidentifier())
        self.names |= self._texts  # as in getattr(x, "name")
        self.reads_sizes = self.reads_sizes or not _SIZES.isdisjoint([*code.co_names, *self._texts])
        for chain in self._chains(code):
            self._read_chain(chain, variables)
        known = list(self._functions.get(code, ()))
        for function in known:
            self._read_function(function)
        if not known and code not in self._local and set(code.co_freevars) - {"__class__"}:
            self._refuse(f"{code.co_qualname} reads variables of a function around it that cannot be found")
        self._read_namespaces()

    def explore(self, is_user: Callable[[types.CodeType], bool]) -> None:
        """Note what all functions of the user read that the code names, or defines, so far as they can be found.

        Functions near the first one come first, and at most MOST_EXPLORED are read.
        """
        pending: list[tuple[types.CodeType, dict[str, Any]]] = []
        explored: set[types.CodeType] = set()
        while len(explored) < MOST_EXPLORED:
            pending += [(f.__code__, f.__globals__) for found in self._functions.values() for f in found]
            pending = [(code, variables) for code, variables in pending if code not in explored and is_user(code)]
            if not pending:
                return
            code, variables = pending.pop(0)
            explored.add(code)
            self.enter(code, variables)
            pending += [(inner, variables) for inner in code.co_consts if isinstance(inner, types.CodeType)]

    def _chains(self, code: types.CodeType) -> Iterator[list[str]]:
        """Yield the global names that the code reads, each with the attributes that it reads of it."""
        chain: list[str] = []
        for step in dis.get_instructions(code):
            self._check_step(code, step)
            if step.opname in _ATTRIBUTES and chain:
                chain.append(step.argval)
                continue
            if chain and step.opname in ("CACHE", "PUSH_NULL", "PRECALL", "EXTENDED_ARG", "NOP"):
                continue
            if chain:
                yield chain
            chain = [step.argval] if step.opname in _LOADS else []
        if chain:
            yield chain

    def _check_step(self, code: types.CodeType, step: dis.Instruction) -> None:
        if step.opname in _ATTRIBUTES or step.opname in _STORES:
            self.names.add(step.argval)
        elif step.opname in _REFUSED:
            self._refuse(f"{code.co_qualname} {_REFUSED[step.opname]} {step.argval}")
        elif step.opname == "IMPORT_NAME" and step.argval.partition(".")[0] not in IMPORTS:
            self._refuse(f"{code.co_qualname} imports {step.argval}")

    def _read_chain(self, chain: list[str], variables: dict[str, Any]) -> None:
        name = chain[0]
        value = variables.get(name, MISSING)
        self._note(variables, name, value, name, None, descend=not isinstance(value, types.ModuleType | type))
        for attribute in chain[1:]:
            if isinstance(value, types.ModuleType) and not value.__name__.startswith("retrograd"):
                fields: Any = vars(value)
            elif isinstance(value, type) and not _is_ours(value):
                fields = next((vars(c) for c in value.__mro__ if attribute in vars(c)), {})
            else:
                return
            name = f"{name}.{attribute}"
            value = fields.get(attribute, MISSING)
            self._note(fields, attribute, value, name, None, descend=not isinstance(value, types.ModuleType | type))

    def _read_namespaces(self) -> None:
        """Note the attributes that the code names of classes and modules which it has as values."""
        before = -1
        while before != len(self._namespaces):  # an attribute may be another class or module
            before = len(self._namespaces)
            for value, name in list(self._namespaces.values()):
                self._read_namespace(value, name)

    def _read_namespace(self, value: Any, name: str) -> None:
        owners = [o for o in value.__mro__ if o is not object] if isinstance(value, type) else [value]
        for owner in owners:
            fields = vars(owner)
            for key in self.names & fields.keys():
                if (id(owner), key) not in self._named:
                    self._named.add((id(owner), key))
                    self._note(fields, key, fields[key], f"{name}.{key}", key)
            if isinstance(value, type) and (id(owner), "__dict__") not in self._named:
                self._named.add((id(owner), "__dict__"))
                self._note_special_methods(owner)
        for key in self._texts:  # as in getattr(Config, "name", None)
            if (id(value), key) not in self._named and not any(key in vars(owner) for owner in owners):
                self._named.add((id(value), key))
                self._note(vars(value), key, MISSING, f"{name}.{key}", key)

    def _note_special_methods(self, kind: type) -> None:
        """Note the methods that Python calls without their names; those that have run become guards."""
        for key, member in list(vars(kind).items()):
            if key.startswith("__") and isinstance(member, types.FunctionType):
                self._note(vars(kind), key, member, f"{kind.__qualname__}.{key}", member.__code__)

    def _read_function(self, function: Any) -> None:
        parts = function.__code__, function.__defaults__, function.__kwdefaults__
        self.entries.append(Entry(function, CODE, parts, f"the code or defaults of {function.__qualname__}", None))
        cells = function.__closure__ or ()
        for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
            try:
                value = cell.cell_contents
            except ValueError:
                continue  # not assigned yet
            self._note(cell, None, value, name, None)
        for i, value in enumerate(function.__defaults__ or ()):
            self.visit(value, f"default {i} of {function.__qualname__}", None)
        for name, value in (function.__kwdefaults__ or {}).items():
            self.visit(value, f"default {name} of {function.__qualname__}", None)

    # ---------------------------------------------------------------------------------------------- values

    def visit(self, value: Any, name: str, attribute: str | None) -> None:
        """Note what is read through a value: the members of containers, and the attributes of objects."""
        if is_plain_value(value) or value is MISSING or (id(value), attribute) in self._seen:
            return
        self._seen[id(value), attribute] = value
        if isinstance(value, Tensor):
            self.tensors[id(value)] = value
            for key, member in (attributes_of(value) or {}).items():
                self._note(vars(value), key, member, f"{name}.{key}", key)
        elif isinstance(value, Module):
            self._visit_module(value, name)
        elif isinstance(value, dict):
            self._visit_dict(value, name, attribute)
        elif isinstance(value, list | tuple):
            self._visit_sequence(value, name, attribute)
        elif isinstance(value, types.FunctionType):
            self._visit_function(value, name)
        elif isinstance(value, types.MethodType):
            self.visit(value.__self__, name, attribute)
            self.visit(value.__func__, name, attribute)
        elif isinstance(value, property | staticmethod | classmethod):
            self.visit(value.fget if isinstance(value, property) else value.__func__, name, attribute)
        elif isinstance(value, FunctionHolder):
            self.visit(value._function, name, attribute)
        elif isinstance(value, functools.partial):
            for part in (value.func, value.args, value.keywords):
                self.visit(part, name, attribute)
        elif isinstance(value, _OPAQUE):
            fields = {key for key, member in vars(value).items() if not isinstance(member, _OPAQUE)}
            self._unknown += [(f"reads {key} of an optimizer or a schedule", key) for key in fields]
        elif isinstance(value, type | types.ModuleType):
            if not _is_ours(value):
                self._namespaces[id(value)] = value, name
        elif not isinstance(value, _UNCHANGING):
            self._visit_object(value, name, attribute)

    def _visit_function(self, function: Any, name: str) -> None:
        code = function.__code__
        known = self._functions.setdefault(code, [])
        if function in known:
            return
        known.append(function)
        if code in self._entered:  # by another function that has it
            self._read_function(function)
        if not _is_ours(function):
            self._note_length(vars(function), f"the number of attributes of {name}", None)
            for key, member in vars(function).items():
                self._note(vars(function), key, member, f"{name}.{key}", None if key == "__wrapped__" else key)

    def _visit_object(self, value: Any, name: str, attribute: str | None) -> None:
        overridden = isinstance(type(value).__getattribute__, types.FunctionType)
        fields = None if overridden else getattr(value, "__dict__", None)
        if type(value) is set and all(map(is_plain_value, value)):
            view = _View(lambda key, default: frozenset(value))
            self._note(view, "members", frozenset(value), f"the members of {name}", attribute)
        elif fields is None and _slots_of(type(value)):
            self._visit_slots(value, name)
        elif type(value).__module__ == "builtins" or fields is None or _is_unwatched(value):
            self._unknown.append((f"reads {name}, a {type(value).__name__}", attribute))
        else:
            self.entries.append(Entry(value, KIND, type(value), f"the class of {name}", attribute))
            for key, member in fields.items():
                self._note(fields, key, member, f"{name}.{key}", key)
            self._visit_class(type(value), fields, name)
            if not _is_ours(type(value)):
                self._note_length(fields, f"the number of attributes of {name}", attribute)

    def _visit_slots(self, value: Any, name: str) -> None:
        """Note the fields of an object without a dict."""
        view, ours = _View(functools.partial(getattr, value)), _is_ours(type(value))
        for key in _slots_of(type(value)):
            self._note(view, key, getattr(value, key, MISSING), f"{name}.{key}", None if ours else key)
        self._visit_class(type(value), {}, name)

    def _visit_module(self, module: Any, name: str) -> None:
        """Note all fields of a module, because code of the library reads them too."""
        fields, ours = vars(module), _is_ours(type(module))
        self.entries.append(Entry(module, KIND, type(module), f"the class of {name}", None))
        self._note_length(fields, f"the number of attributes of {name}", None)
        for key, member in fields.items():
            self._note(fields, key, member, f"{name}.{key}", None, descend=False)
            self.visit(member, f"{name}.{key}", None if ours else key)
        self._visit_class(type(module), fields, name, read_here=("forward",))

    def _visit_class(self, kind: type, fields: dict, name: str, read_here: tuple[str, ...] = ()) -> None:
        """Note the attributes of a user's class that objects of the class have; the library reads some of them."""
        owners = [owner for owner in kind.__mro__ if not _is_ours(owner) and owner.__module__ != "builtins"]
        for i, owner in enumerate(owners):
            self._note_special_methods(owner)
            for key, member in vars(owner).items():
                if not key.startswith("__"):
                    attribute = None if key in read_here else key
                    self._note(vars(owner), key, member, f"{owner.__qualname__}.{key}", attribute)
                    for before in (fields, *map(vars, owners[:i])):  # one there would be read instead
                        if key not in before:
                            self._note(before, key, MISSING, f"{name}.{key}", attribute)

    def _visit_dict(self, value: dict, name: str, attribute: str | None) -> None:
        is_ordered = len(value) > 1 and all(type(key) is str for key in value)
        if is_ordered:
            self.entries.append(Entry(value, KEYS, tuple(value), f"the keys of {name}", attribute))
        else:
            self._note_length(value, f"the length of {name}", attribute)
        for key, member in value.items():
            self._note(value, key, member, f"{name}[{key!r}]", attribute)

    def _visit_sequence(self, value: Any, name: str, attribute: str | None) -> None:
        is_list = isinstance(value, list)
        if is_list:
            self._note_length(value, f"the length of {name}", attribute)
        for i, member in enumerate(value):
            if is_list:
                self._note(value, i, member, f"{name}[{i}]", attribute)
            else:
                self.visit(member, f"{name}[{i}]", attribute)

    def _note(self, container: Any, key: Any, value: Any, name: str, attribute: Any, descend: bool = True) -> None:
        self.entries.append(Entry(container, key, value, name, attribute))
        if descend:
            self.visit(value, name, attribute)

    def _note_length(self, container: Any, name: str, attribute: Any) -> None:
        self.entries.append(Entry(container, LENGTH, len(container), name, attribute))

    def note_optimizer(self, optimizer: Optimizer) -> None:
        """Note the parameters and hooks of an optimizer: its methods change the .grad of these parameters."""
        if (id(optimizer), "members") in self._seen:
            return
        self._seen[id(optimizer), "members"] = optimizer
        noted = _members_of(optimizer)

        def read(key: str, default: Any) -> list[int]:
            now = _members_of(optimizer)
            return noted if now == noted else now

        self._note(_View(read), "members", noted, "the parameters or hooks of an optimizer", None, descend=False)

    def note_argument(self, tensor: Tensor) -> None:
        """Note the attributes of an argument, of which the next one of its kind may have others."""
        for key in attributes_of(tensor) or ():
            self._unknown.append((f"reads or sets {key}, an attribute of a tensor among the arguments", key))

    # ---------------------------------------------------------------------------------------------- the result

    def _refuse(self, reason: str) -> None:
        self.refusal = self.refusal or reason

    def find_refusal(self) -> str:
        """Return why no guards can be made for the call; "" if they can."""
        if self.refusal:
            return self.refusal
        for reason, attribute in self._unknown:
            if attribute is None or attribute in self.names:
                return f"the code {reason}, of whose changes nothing is known"
        return ""

    def count_doubts(self) -> int:
        """Return how much was found that may refuse guards."""
        return len(self._unknown) + bool(self.refusal)

    def seen_ids(self) -> set[int]:
        """Return the ids of the containers and objects that were found."""
        return {key for key, _ in self._seen}

    def guards(self) -> list[Entry]:
        """Return the entries that the code can have read, and the code itself: reloading a module replaces it."""
        read = {None, *self.names, *self._entered}
        return [e for e in self.entries if e.attribute in read]


class Guards:
    """The entries of a program, ordered by kind of container so that they are checked fast."""

    def __init__(self, entries: list[Entry]) -> None:
        self.entries = entries
        self._lengths: list[tuple[Any, int]] = []
        self._keys: list[tuple[dict, tuple]] = []
        self._codes: list[tuple[Any, Any, Any, Any]] = []
        self._kinds: list[tuple[Any, type]] = []
        self._fields: list[tuple[dict, Any, Any]] = []
        self._others: list[Entry] = []
        for entry in entries:
            if entry.key is LENGTH:
                self._lengths.append((entry.container, entry.value))
            elif entry.key is KEYS:
                self._keys.append((entry.container, entry.value))
            elif entry.key is CODE:
                self._codes.append((entry.container, *entry.value))
            elif entry.key is KIND:
                self._kinds.append((entry.container, entry.value))
            elif type(entry.container) is dict:
                self._fields.append((entry.container, entry.key, entry.value))
            else:
                self._others.append(entry)

    def hold(self) -> bool:
        """Return whether all values are still the same."""
        for container, length in self._lengths:
            if len(container) != length:
                return False
        for mapping, keys in self._keys:
            if tuple(mapping) != keys:
                return False
        for function, code, defaults, named in self._codes:
            if function.__code__ is not code or function.__defaults__ is not defaults:
                return False
            if function.__kwdefaults__ is not named:
                return False
        for value, kind in self._kinds:
            if type(value) is not kind:
                return False
        return fields_hold(self._fields, MISSING, is_same) and first_change(self._others) is None


def first_change(entries: list[Entry]) -> Entry | None:
    """Return the first entry whose value has changed; None if all are the same."""
    for entry in entries:
        if not entry.holds():
            return entry
    return None


def handles_exceptions(code: types.CodeType) -> bool:
    """Return whether code has `except` or `finally`; `with` has handlers, too, which are not counted."""
    names = [step.opname for step in dis.get_instructions(code)]
    return names.count("PUSH_EXC_INFO") > names.count("WITH_EXCEPT_START")


@functools.cache
def may_change_objects(code: types.CodeType) -> bool:
    """Return whether code may change objects in place, except one that it has just made, or variables around it."""
    changes = any(
        step.opname in _CHANGES or (step.opname == "STORE_DEREF" and step.argval in code.co_freevars)
        for step in dis.get_instructions(code)
    )
    return not MUTATIONS.isdisjoint(code.co_names) or (changes and code.co_name != "__init__")


def _is_unwatched(value: Any) -> bool:
    """Return whether a value may change, or change others, in ways that nothing observes, as functions of Cython do."""
    is_function = type(value).__name__ == "cython_function_or_method" and not _is_ours(value)
    return is_function or array_programs.is_array(value)


def _members_of(optimizer: Optimizer) -> list[int]:
    """Return the ids of the parameters of an optimizer, and those of its hooks."""
    fields = vars(optimizer)
    hooks = [key for name in ("_pre_hooks", "_post_hooks") for key in fields.get(name, ())]
    return [id(p) for group in optimizer.param_groups for p in group["params"]] + hooks


def _slots_of(kind: type) -> tuple[str, ...]:
    """Return the names of the slots of a class."""
    declared = [vars(owner).get("__slots__", ()) for owner in kind.__mro__]
    return tuple([name for slots in declared for name in ([slots] if isinstance(slots, str) else slots)])


def _is_ours(value: Any) -> bool:
    """Return whether a class or function is defined in this package, or a module is a part of it."""
    home = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", "")
    return str(home).partition(".")[0] == "retrograd"


def is_library_code(code: types.CodeType) -> bool:
    """Return whether code is of this package, without its commands, which use it as users' code does."""
    return code.co_filename.startswith(PACKAGE) and not code.co_filename.startswith(_COMMANDS)
