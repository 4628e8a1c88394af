"""The surroundings that a function reads: globals, closures, attributes, modules, and the tensors in them.

Each value is noted with the container that it was read from, when the code that reads it begins to run. These are the
guards of a program, and they tell whether the call itself has changed anything: then they fail right after it.
"""

import abc
import dis
import functools
import itertools
import os
import sys
import threading
import types
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any

import optree

from retrograd.amp.grad_scaler import GradScaler
from retrograd.backend import array_programs
from retrograd.compiler.arguments import builtin_base
from retrograd.compiler.attribute_reads import computes_names, names_in_patterns
from retrograd.compiler.guards import (
    CODE,
    KEYS,
    KIND,
    LENGTH,
    Absent,
    ClassFields,
    Entry,
    Guards,
    OfLibrary,
    Slots,
    View,
    cell_contents,
    fields_of,
    keys_of,
)
from retrograd.compiler.id_uses import may_be_ids
from retrograd.compiler.namespaces import MISSING, Namespaces, has_own_class, has_plain_dicts, is_library, slots_of
from retrograd.compiler.plain_values import is_plain_value
from retrograd.core import Tensor
from retrograd.core.tensor import attributes_of
from retrograd.foundation.own_attributes import stored_attributes
from retrograd.foundation.source_location import PACKAGE
from retrograd.library.operator import CustomOperator
from retrograd.nn.module import Module
from retrograd.optim.lr_scheduler import LRScheduler
from retrograd.optim.optimizer import Optimizer
from retrograd.optim.step_hooks import hooks_around_steps

MOST_EXPLORED = 100  # functions
_OPAQUE = (Optimizer, LRScheduler, GradScaler)  # only their methods are called, which a program runs as they are
_UNCHANGING = (
    types.UnionType,
    types.GenericAlias,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    type(vars(dis.Instruction.__mro__[1])["opname"]),  # of the fields of a named tuple
    optree.PyTreeSpec,
    type(threading.Lock()),  # whether it is held is asked by a method, which refuses the capture
    type(threading.RLock()),
)
_LOADS = {"LOAD_GLOBAL", "LOAD_NAME"}
_ATTRIBUTES = {"LOAD_ATTR", "LOAD_METHOD"}
_STORES = {"STORE_ATTR", "DELETE_ATTR"}
_PARTS_OF_FUNCTIONS = {"__defaults__", "__kwdefaults__", "__closure__"}
_REFUSED = {"DELETE_GLOBAL": "deletes the global variable"}
_SIZES = {"shape", "size", "numel", "nelement", "stride", "nbytes", "itemsize", "element_size", "__len__", "len"}
_CHANGES = {"STORE_ATTR", "DELETE_ATTR", "STORE_SUBSCR", "DELETE_SUBSCR", "STORE_GLOBAL"}
MUTATIONS = {"add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popleft", "remove",
             "setdefault", "update"}  # fmt: skip
_IMPORTS = ("retrograd", "math")  # modules whose import changes nothing
Parent = tuple[int, Any]  # of a value: the id of the container that has it, and the key there


def is_imported(name: str) -> bool:
    """Return whether the import of a module has no effects."""
    return name in sys.modules or name.partition(".")[0] in _IMPORTS


def imported_names(code: types.CodeType, variables: dict[str, Any]) -> list[tuple[str, bool]]:
    """Return the full names of the modules that code imports, each with whether it imports members of it.

    >>> def f():
    ...     import os.path
    ...     from math import pi
    >>> imported_names(f.__code__, {})
    [('os.path', False), ('math', True)]
    """
    steps = [step for step in dis.get_instructions(code) if step.opname not in ("CACHE", "EXTENDED_ARG")]
    found = []
    for level, members, step in zip(steps, steps[1:], steps[2:], strict=False):
        if step.opname == "IMPORT_NAME":
            package = str(variables.get("__package__") or "")
            base = package.rsplit(".", level.argval - 1)[0] + "." if level.argval else ""
            found.append(((base + step.argval).strip("."), members.argval is not None))
    return found


_COMMANDS = os.path.join(PACKAGE, "cli", "")
_COMPILER = os.path.join(PACKAGE, "compiler", "")


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
        self._globals: set[int] = set()  # the ids of dicts of global variables
        self.user_codes: list[types.CodeType] = []  # that were entered
        self._local: set[types.CodeType] = set()  # functions that the code defines
        self._of_library: set[str] = set()  # the names that code of this package has
        self._texts: set[str] = set()  # the strings in the code that may be names of attributes
        self._reads_any = False  # whether the code computes names of attributes
        self._reads_functions = False  # whether it names what functions consist of
        self._namespaces = Namespaces()
        self._namespaces.add_class(Tensor)
        self._values: dict[int, tuple[Any, str]] = {}  # classes and modules that are values, and their names
        self._named: set[tuple[int, str]] = set()  # their attributes that are noted
        self._absent: list[Absent] = []
        self._slots: dict[int, Slots] = {}  # by the ids of objects
        self._class_fields: dict[int, ClassFields] = {}  # by the ids of classes
        self._has_ids = False  # whether code has ids of objects as keys
        self._compares_ids = False  # whether other code than that of copies has them
        self.hooked: set[int] = set()  # the ids of leaves whose hooks are guarded
        self.first: dict[Parent, Entry] = {}  # the entries that were noted first
        self.keys: dict[int, tuple[dict, tuple]] = {}  # by the id of a dict: the dict, and the keys when it was noted
        self.parents: dict[int, set[Parent | None]] = {}  # by the id of a value; None: something else has it
        self._guards: Guards | None = None

    # -------------------------------------------------------------------------------------------- code that runs

    def enter(self, code: types.CodeType, variables: dict[str, Any]) -> None:
        """Note what a function of the user reads; `variables` are its globals."""
        if code in self._entered:
            return
        self._entered.add(code)
        self._globals.add(id(variables))
        self.user_codes.append(code)
        self._local.update(c for c in code.co_consts if isinstance(c, types.CodeType))
        self._texts.update(c for c in code.co_consts if isinstance(c, str) and c.isidentifier())
        self._texts |= names_in_patterns(code)
        self.names |= self._texts  # as in getattr(x, "name")
        self._namespaces.names.update(code.co_names)
        self._reads_any = self._reads_any or computes_names(code)
        if code is _INSTANCE_CHECK:  # of an abstract class, with which classes may be registered
            view = View(lambda key, default: abc.get_cache_token())
            self._note(view, "token", abc.get_cache_token(), "the registered classes", None)
        self.reads_sizes = self.reads_sizes or not _SIZES.isdisjoint([*code.co_names, *self._texts])
        for chain in self._chains(code):
            self._read_chain(chain, variables)
        for name, has_members in imported_names(code, variables):
            self._read_import(name if has_members else name.partition(".")[0], name)
        known = list(self._functions.get(code, ()))
        for function in known:
            self._read_function(function)
        if not self._reads_functions and not _PARTS_OF_FUNCTIONS.isdisjoint(self.names):
            self._reads_functions = True
            others = [f for c, found in self._functions.items() if c not in self._entered for f in found]
            for function in others:
                self._read_function(function)
        if not known and code not in self._local and set(code.co_freevars) - {"__class__"}:
            self._refuse(f"{code.co_qualname} reads variables of a function around it that cannot be found")
        self._read_values()

    def enter_library(self, code: types.CodeType, variables: dict[str, Any]) -> None:
        """Note what a function of the library reads."""
        if code not in self._entered and not code.co_filename.startswith(_COMPILER):
            self._entered.add(code)
            self._of_library.update(code.co_names)
            self._namespaces.names.update(code.co_names)
            self._namespaces.names.update(c for c in code.co_consts if type(c) is str and c.isidentifier())
            self._namespaces.add_module(variables, True)

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
            if step.opname == "STORE_GLOBAL":
                yield [step.argval]
        if chain:
            yield chain

    def _check_step(self, code: types.CodeType, step: dis.Instruction) -> None:
        if step.opname in _ATTRIBUTES or step.opname in _STORES:
            self.names.add(step.argval)
        elif step.opname in _REFUSED:
            self._refuse(f"{code.co_qualname} {_REFUSED[step.opname]} {step.argval}")
        elif step.opname == "IMPORT_FROM":
            self.names.add(step.argval)

    def _read_import(self, name: str, full_name: str) -> None:
        """Note the module that an import statement gives the code, if it is there already."""
        if full_name in sys.modules:  # else the watch sees whether the statement runs
            self._note(sys.modules, name, sys.modules[name], f"the module {name}", None)

    def _read_chain(self, chain: list[str], variables: dict[str, Any]) -> None:
        name = chain[0]
        value = self._note(variables, name, variables.get(name, MISSING), name, None, descend=False)
        parent: Parent | None = (id(variables), name)
        for attribute in chain[1:]:
            if not issubclass(type(value), types.ModuleType | type):
                break
            self._note_namespace(value, name, None)
            owners = value.__mro__ if isinstance(value, type) else [value]
            home = next((owner for owner in owners if attribute in vars(owner)), None)
            value = MISSING if home is None else vars(home)[attribute]
            name, parent = f"{name}.{attribute}", self._place_in(home, attribute)
        self.visit(value, name, None, parent)

    def _read_values(self) -> None:
        """Note the attributes that the code names of classes and modules which it has as values."""
        before = -1
        while before != len(self._values):  # an attribute may be another class or module
            before = len(self._values)
            for value, name in list(self._values.values()):
                self._read_value(value, name)

    def _read_value(self, value: Any, name: str) -> None:
        owners = [o for o in value.__mro__ if o is not object] if isinstance(value, type) else [value]
        for owner in owners:
            fields = vars(owner)
            for key in fields.keys() if self._reads_any else self.names & fields.keys():
                if (id(owner), key) not in self._named:
                    self._named.add((id(owner), key))
                    self.visit(fields[key], f"{name}.{key}", key, self._place_in(owner, key))
            if isinstance(value, type) and (id(owner), "__dict__") not in self._named:
                self._named.add((id(owner), "__dict__"))
                self._visit_special_methods(owner)

    def _visit_special_methods(self, kind: type) -> None:
        """Note the methods that Python calls without their names; those that have run become guards."""
        for key, member in list(vars(kind).items()):
            if key.startswith("__") and isinstance(member, types.FunctionType):
                self.visit(member, f"{kind.__qualname__}.{key}", member.__code__)

    def _read_function(self, function: Any) -> None:
        parts = function.__code__, function.__defaults__, function.__kwdefaults__
        self.entries.append(Entry(function, CODE, parts, f"the code or defaults of {function.__qualname__}", None))
        cells = function.__closure__ or ()
        for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
            if cell_contents(cell) is not MISSING:  # it is assigned already
                self._note(cell, None, cell_contents(cell), name, None)
        for i, value in enumerate(function.__defaults__ or ()):
            self.visit(value, f"default {i} of {function.__qualname__}", None)
        if function.__kwdefaults__:
            self._visit_dict(function.__kwdefaults__, f"the defaults of {function.__qualname__}", None)

    # ---------------------------------------------------------------------------------------------- values

    def visit(self, value: Any, name: str, attribute: Any, parent: Parent | None = None) -> None:
        """Note what is read through a value: the members of containers, and the attributes of objects."""
        if value is MISSING:
            return
        if not is_plain_value(value):
            self.parents.setdefault(id(value), set()).add(parent)
        if (id(value), attribute) in self._seen:
            return
        if is_plain_value(value):
            if isinstance(value, CustomOperator):
                self.visit(value.registrations, f"the registrations of {value.name}", None)
            elif has_own_class(value):
                self._seen[id(value), attribute] = value
                self._visit_attributes(value, name, attribute)
            return
        self._seen[id(value), attribute] = value
        if _overrides_reading(value) and not issubclass(type(value), Module | types.ModuleType | type):
            self._visit_object(value, name, attribute)  # to ask for its class runs the user's code
        elif isinstance(value, Tensor):
            self.tensors[id(value)] = value
            self._namespaces.add_class(type(value))
            self._visit_hooks(value, name)
            for key, member in (attributes_of(value) or {}).items():
                self._note(vars(value), key, member, f"{name}.{key}", key)
        elif isinstance(value, Module):
            self._visit_module(value, name)
        elif isinstance(value, dict | list | tuple | frozenset) or type(value) is deque:
            if isinstance(value, dict):
                self._visit_dict(value, name, attribute)
            else:
                self._visit_sequence(value, name, attribute)
            if has_own_class(value):
                self._visit_attributes(value, name, attribute)
        elif isinstance(value, types.FunctionType):
            self._visit_function(value, name)
        elif isinstance(value, types.MethodType):
            self.visit(value.__self__, name, attribute)
            self.visit(value.__func__, name, attribute)
        elif isinstance(value, property | staticmethod | classmethod):
            self.visit(value.fget if isinstance(value, property) else value.__func__, name, attribute)
        elif isinstance(value, ContextVar):
            view = View(lambda key, default: value.get(default))
            self._note(view, "value", value.get(MISSING), f"the value of {name}", attribute)
        elif isinstance(value, FunctionHolder):
            self.visit(value._function, name, attribute)
        elif isinstance(value, functools.partial):
            view = View(functools.partial(getattr, value))
            for key in ("func", "args", "keywords"):
                self._note(view, key, getattr(value, key), f"{name}.{key}", attribute)
        elif isinstance(value, _OPAQUE):
            fields = {key for key, member in vars(value).items() if not isinstance(member, _OPAQUE)}
            self._unknown += [(f"reads {key} of an optimizer, a schedule or a scaler", key) for key in fields]
            self._note_absent(vars(value), name, attribute, by_name=True)
            self._namespaces.add_class(type(value))
        elif isinstance(value, type | types.ModuleType):
            self._note_namespace(value, name, attribute)
            if not is_library(value):
                self._values[id(value)] = value, name
        elif not _is_unchanging(value) and not _is_reference_of_library(value, attribute):
            self._visit_object(value, name, attribute)

    def _note_namespace(self, value: Any, name: str, attribute: Any) -> None:
        """Note a class or module; the guards cannot compare classes of ctypes."""
        if isinstance(value, type) and not has_plain_dicts(value):
            self._unknown.append((f"reads {name}, a class of ctypes", attribute))
        self._namespaces.add_value(value)

    def _visit_hooks(self, tensor: Any, name: str) -> None:
        """Note the hooks of a leaf; those of the library and of C may change anything, and are left to eager passes."""
        hooks = tensor._hooks
        if hooks is None or hooks.retaining or tensor._grad_fn is not None:
            return
        view = View(functools.partial(getattr, hooks))
        self._note(view, "grad_dtype", hooks.grad_dtype, f"the grad_dtype of {name}", None)
        kinds = (hooks.tensor, *hooks.tensor.values(), hooks.before, hooks.after, hooks.accumulated)
        for functions in kinds:
            self._visit_dict(functions, f"the hooks of {name}", None)
        functions = [function for of_kind in kinds[1:] for function in of_kind.values()]
        if all(_is_python(f) and not is_library(f) for f in functions):
            self.hooked.add(id(tensor))

    def _visit_function(self, function: Any, name: str) -> None:
        code = function.__code__
        known = self._functions.setdefault(code, [])
        if function in known:
            return
        known.append(function)
        if code in self._entered or self._reads_functions:  # entered by another function that has it
            self._read_function(function)
        if not is_library(function):
            self._note_absent(vars(function), name, None)
            for key, member in self._items(vars(function)):
                self._note(vars(function), key, member, f"{name}.{key}", None if key == "__wrapped__" else key)

    def _visit_object(self, value: Any, name: str, attribute: Any) -> None:
        if type(value) is set and all(is_plain_value(member) or isinstance(member, type) for member in value):
            view = View(lambda key, default: frozenset(value))
            self._note(view, "members", frozenset(value), f"the members of {name}", attribute, descend=False)
            return
        fields = fields_of(value)
        has_slots = bool(slots_of(type(value)))
        if has_slots and _overrides_reading(value):
            fields, has_slots = None, False
        if (fields is None and not has_slots) or type(value).__module__ == "builtins" or _is_unwatched(value):
            self._unknown.append((f"reads {name}, a {type(value).__name__}", attribute))
        else:
            self._visit_attributes(value, name, attribute)

    def _visit_attributes(self, value: Any, name: str, attribute: Any) -> None:
        """Note the attributes of an object, those in slots included, and its class."""
        fields = fields_of(value)
        any_name = _overrides_reading(value)  # the class may read any attribute for any name
        self.entries.append(Entry(value, KIND, (type(value), fields), f"the class of {name}", attribute))
        if fields is not None:
            for key, member in self._items(fields):
                read_as = None if any_name else _attribute_in(type(value), key)
                self._note(fields, key, member, f"{name}.{key}", read_as)
            if any_name:
                self._note_length(fields, f"the number of attributes of {name}", None)
            self._note_absent(fields, name, attribute)
        slots = slots_of(type(value))
        if slots:
            view = self._slots.setdefault(id(value), Slots(value))
            for key in slots:
                self._note(view, key, getattr(value, key, MISSING), f"{name}.{key}", _attribute_in(type(value), key))
        self._visit_class(type(value), name)

    def _visit_module(self, module: Any, name: str) -> None:
        """Note all fields of a module, because code of the library reads them too."""
        fields, ours = stored_attributes(module), is_library(type(module))
        self.entries.append(Entry(module, KIND, (type(module), fields), f"the class of {name}", None))
        self._note_length(fields, f"the number of attributes of {name}", None)
        for key, member in self._items(fields):
            member = self._note(fields, key, member, f"{name}.{key}", None, descend=False)
            attribute = None if ours else _attribute_in(type(module), key)
            self.visit(member, f"{name}.{key}", attribute, (id(fields), key))
        self._visit_class(type(module), name, read_here=("forward",))

    def _visit_class(self, kind: type, name: str, read_here: tuple[str, ...] = ()) -> None:
        """Note what the members of a user's class contain; those of any class are in its namespace."""
        self._namespaces.add_class(kind)
        for owner in kind.__mro__:
            if is_library(owner) or owner.__module__ == "builtins":
                continue
            self._visit_special_methods(owner)
            for key, member in vars(owner).items():
                if not key.startswith("__"):
                    attribute = None if key in read_here else key
                    self.visit(member, f"{owner.__qualname__}.{key}", attribute, self._place_in(owner, key))

    def _place_in(self, owner: Any, key: str) -> Parent | None:
        """Return where a class has an attribute; None for other owners."""
        return (id(self.fields_of(owner)), key) if isinstance(owner, type) else None

    def fields_of(self, owner: type) -> ClassFields:
        """Return the container of the attributes of a class."""
        return self._class_fields.setdefault(id(owner), ClassFields(owner))

    def _visit_dict(self, value: dict, name: str, attribute: str | None) -> None:
        keys = keys_of(value)
        if len(keys) > 1 and all(map(is_plain_value, keys)):
            self._note(value, KEYS, keys, f"the keys of {name}", attribute, descend=False)
        else:
            self._note_length(value, f"the length of {name}", attribute)
        for key, member in self._items(value):
            self._note(value, key, member, f"{name}[{key!r}]", attribute)

    def _visit_sequence(self, value: Any, name: str, attribute: str | None) -> None:
        is_list = isinstance(value, list | deque)
        if is_list:
            self._note_length(value, f"the length of {name}", attribute)
        kind = builtin_base(type(value))
        known = self.first[id(value), LENGTH].value if is_list else kind.__len__(value)  # as before the call
        for i, member in enumerate(itertools.islice(kind.__iter__(value), known)):
            if is_list:
                self._note(value, i, member, f"{name}[{i}]", attribute)
            else:
                self.visit(member, f"{name}[{i}]", attribute, (id(value), i))

    def _note(self, container: Any, key: Any, value: Any, name: str, attribute: Any, descend: bool = True) -> Any:
        """Note a value, and return it: the one that was noted first, as the call may have replaced it since."""
        entry = Entry(container, key, value, name, attribute)
        entry.value = value = self.first.setdefault((id(container), key), entry).value
        self.entries.append(entry)
        if descend:
            self.visit(value, name, attribute, (id(container), key))
        return value

    def _items(self, container: dict) -> list[tuple[Any, Any]]:
        """Return the members of a dict, without those that it has got since it was first noted."""
        _, keys = self.keys.setdefault(id(container), (container, keys_of(container)))
        return [(key, dict.get(container, key, MISSING)) for key in keys]

    def _note_absent(self, fields: dict, name: str, attribute: Any, by_name: bool = False) -> None:
        """Note that an object may not get another attribute that the code reads."""
        key = Absent(frozenset(fields), by_name)
        self._absent.append(key)
        self.entries.append(Entry(fields, key, (), name, attribute))

    def _note_length(self, container: Any, name: str, attribute: Any) -> None:
        length = builtin_base(type(container)).__len__(container)
        self._note(container, LENGTH, length, name, attribute, descend=False)

    def note_optimizer(self, optimizer: Optimizer) -> None:
        """Note the parameters and hooks of an optimizer: its methods change the .grad of these parameters."""
        if (id(optimizer), "members") in self._seen:
            return
        self._namespaces.add_class(type(optimizer))
        self._seen[id(optimizer), "members"] = optimizer
        noted = _members_of(optimizer)

        def read(key: str, default: Any) -> list[int]:
            now = _members_of(optimizer)
            return noted if now == noted else now

        self._note(View(read), "members", noted, "the parameters or hooks of an optimizer", None, descend=False)

    def note_signature(self, function: Any) -> str:
        """Note what the signature of a function is made from; return why that is not possible, "" if it is."""
        self.names |= {"__wrapped__", "__signature__"}
        while True:
            function = getattr(function, "__func__", function)
            if type(function) is not types.FunctionType or "__signature__" in vars(function):
                return f"asks for the signature of a {type(function).__name__}"
            if function in self._functions.get(function.__code__, ()):
                self._read_function(function)
                self._note_annotations(function)
            elif function.__code__ not in self._local and not is_library(function):
                return f"asks for the signature of {function.__qualname__}, of whose changes nothing is known"
            if "__wrapped__" not in vars(function):
                return ""
            function = vars(function)["__wrapped__"]

    def _note_annotations(self, function: Any) -> None:
        name, found = f"the annotations of {function.__qualname__}", tuple(function.__annotations__.items())
        view = View(lambda key, default: tuple(function.__annotations__.items()))
        self._note(view, "annotations", found, name, None, descend=False)

    def note_answer(self, function: types.MethodType, operand: Any, name: str) -> None:
        """Note the result of a method without effects, which is called again to compare."""
        key = (id(function.__self__), f"{function.__name__}({operand!r})")
        if key in self._seen:
            return
        self._seen[key] = function.__self__
        view = View(lambda key, default: function(key))
        self._note(view, operand, function(operand), name, None, descend=False)

    def note_warnings(self) -> None:
        """Note which warnings are shown."""
        if (id(warnings), "filters") in self._seen:
            return
        self._seen[id(warnings), "filters"] = warnings
        view = View(lambda key, default: tuple(warnings.filters))
        self._note(view, "filters", tuple(warnings.filters), "the filters of warnings", None, descend=False)

    def note_ids(self, in_copies: bool) -> None:
        """Note that code has ids of objects as keys: no numbers from outside may be ids.

        `in_copies`: the standard library has them, in dicts of its own.
        """
        self._has_ids = True
        self._compares_ids = self._compares_ids or not in_copies

    def note_scaler(self, scaler: GradScaler) -> None:
        """Note what a scaler of losses reads, the scale itself included, which its methods write to."""
        for key in ("_enabled", "_scale"):
            self._note(vars(scaler), key, vars(scaler)[key], f"{key} of a scaler", None)

    def note_argument(self, tensor: Tensor) -> None:
        """Note the attributes of an argument, of which the next one of its kind may have others."""
        for key in attributes_of(tensor) or ():
            self._unknown.append((f"reads or sets {key}, an attribute of a tensor among the arguments", key))

    # ---------------------------------------------------------------------------------------------- the result

    def _refuse(self, reason: str) -> None:
        self.refusal = self.refusal or reason

    def find_refusal(self, given: Iterable[Any] = ()) -> str:
        """Return why no guards can be made for the call, with these arguments; "" if they can."""
        if self.refusal:
            return self.refusal
        if self._has_ids and (any(map(self._contains_ids, given)) or any(map(self._notes_ids, self.entries))):
            return "the code compares ids of objects, and reads numbers from outside that may be ids"
        for reason, attribute in self._unknown:
            if self._is_read(attribute) and (type(attribute) is not str or attribute in self.names):
                return f"the code {reason}, of whose changes nothing is known"
        return ""

    def _notes_ids(self, entry: Entry) -> bool:
        """Return whether an entry is of a number that code may compare with ids."""
        if isinstance(entry.container, dict) and may_be_ids(entry.key):
            return True
        is_member = isinstance(entry.container, list | deque)
        return (is_member and self._compares_ids and may_be_ids(entry.value)) or self._contains_ids(entry.value)

    def _contains_ids(self, value: Any) -> bool:
        """Return whether a container has numbers that code may compare with ids."""
        if type(value) in (dict, frozenset):
            return any(map(may_be_ids, value))
        return self._compares_ids and type(value) in (list, tuple) and any(map(may_be_ids, value))

    def count_doubts(self) -> int:
        """Return how much was found that may refuse guards."""
        return len(self._unknown) + bool(self.refusal)

    def changed_state(self) -> dict[int, tuple[str, Any]]:
        """Return the names and present values of the noted state that has changed, by the ids of the entries."""
        return {id(entry): (entry.name, entry.now()) for entry in self.entries if not entry.holds()}

    def seen_ids(self) -> set[int]:
        """Return the ids of the containers and objects that were found."""
        return {key for key, _ in self._seen}

    def guards(self) -> "Guards":
        """Return the guards for what the code can have read, and for the code itself: reloading a module changes it."""
        if self._guards is None:
            named = frozenset(self.names)
            names = None if self._reads_any else named
            for key in self._absent:
                key.names = named if key.by_name else names
            entries = [e for e in self.entries if self._is_read(e.attribute)]
            self._guards = Guards(entries, self._namespaces.guards(names, self._texts))
        return self._guards

    def replace_guards(self, drops: Callable[[Entry], bool], others: list[Entry], free: dict[type, set[str]]) -> None:
        """Drop the guards of entries that a program reads at each call, and of attributes of classes; take others."""
        self._guards = self.guards().replaced(drops, others, free)

    def class_changes(self) -> tuple[list[Entry], str]:
        """Return the attributes of classes that have changed, as entries of before; and a change of another kind."""
        found, other = [], ""
        for owner, label, name, before, _ in self.guards().namespace_changes():
            if owner is None or name.startswith("__") or any(map(is_library, owner.__mro__)):
                other = other or f"{label}.{name}"
                continue
            view = self.fields_of(owner)
            entry = Entry(view, name, before, f"{label}.{name}", None)
            found.append(self.first.setdefault((id(view), name), entry))
        return found, other

    def has_other_readers(self, name: str, container: Any) -> bool:
        """Return whether code may read an attribute or variable without having its name as that of one."""
        if self._reads_any or name in self._texts:
            return True
        owners = [type(e.container) for e in self.entries if e.key is KIND and e.value[1] is container]
        return any(map(is_library, [base for owner in owners for base in owner.__mro__])) and name in self._of_library

    def is_namespace(self, container: Any) -> bool:
        """Return whether code may have the items of a dict as attributes or global variables, too."""
        return id(container) in self._globals or any(e.key is KIND and e.value[1] is container for e in self.entries)

    def _is_read(self, attribute: Any) -> bool:
        """Return whether the code may read something, by the attribute as in `Entry`."""
        if attribute is None or attribute in self.names:
            return True
        if isinstance(attribute, OfLibrary):
            return attribute.name in self.names or attribute.name in self._namespaces.names
        return attribute in self._entered or (self._reads_any and type(attribute) is str)


_INSTANCE_CHECK = abc.ABCMeta.__instancecheck__.__code__


def _attribute_in(kind: type, key: str) -> Any:
    """Return the attribute, as in `Entry`, of an object of a class: code of this package reads those of its classes."""
    return OfLibrary(key) if is_library(kind) or key in _names_in_library(kind) else key


@functools.cache
def _names_in_library(kind: type) -> frozenset[str]:
    """Return the names in the methods that a class has from classes of this package."""
    found: set[str] = set()
    for owner in filter(is_library, kind.__mro__):
        members = [getattr(m, "fget", None) or getattr(m, "__func__", m) for m in vars(owner).values()]
        found.update(*[f.__code__.co_names for f in members if isinstance(f, types.FunctionType)])
    return frozenset(found)


def _is_python(function: Any) -> bool:
    """Return whether a call runs Python code, whose effects are seen, unlike those of a method such as list.append."""
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)
    return isinstance(function if hasattr(function, "__code__") else type(function).__call__, types.FunctionType)


def _overrides_reading(value: Any) -> bool:
    """Return whether a class decides itself what its objects' attributes are."""
    return isinstance(type(value).__getattribute__, types.FunctionType)


@functools.cache
def may_change_objects(code: types.CodeType) -> bool:
    """Return whether code may change objects in place, except one that it has just made, or variables around it."""
    changes = any(
        step.opname in _CHANGES or (step.opname == "STORE_DEREF" and step.argval in code.co_freevars)
        for step in dis.get_instructions(code)
    )
    return not MUTATIONS.isdisjoint(code.co_names) or (changes and code.co_name != "__init__")


def _is_unchanging(value: Any) -> bool:
    """Return whether a value has nothing that may change; an `object()` is a mark, compared by its identity."""
    return type(value) is object or isinstance(value, _UNCHANGING)


def _is_reference_of_library(value: Any, attribute: Any) -> bool:
    """Return whether a value is a weak reference that an object of this package has."""
    return type(value) is weakref.ref and isinstance(attribute, OfLibrary)


def _is_unwatched(value: Any) -> bool:
    """Return whether a value may change, or change others, in ways that nothing observes, as functions of Cython do."""
    is_function = type(value).__name__ == "cython_function_or_method" and not is_library(value)
    return is_function or (not _overrides_reading(value) and array_programs.is_array(value))


def _members_of(optimizer: Optimizer) -> list[int]:
    """Return the ids of the parameters of an optimizer, and those of its hooks."""
    hooks = [key for found in hooks_around_steps(optimizer) for key in found]
    return [id(p) for group in optimizer.param_groups for p in group["params"]] + hooks


def is_library_code(code: types.CodeType) -> bool:
    """Return whether code is of this package, without its commands, which use it as users' code does."""
    return code.co_filename.startswith(PACKAGE) and not code.co_filename.startswith(_COMMANDS)
