"""Read pickled data without running code: an interpreter of plain data that calls only the given functions.

Python's own reader calls any function that a file names, and can set attributes of permitted objects. This one supports
only the opcodes that plain containers need.
"""

import pickletools
import reprlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

MARK = object()
LARGEST_KEY = 1000  # maximum number of values in a dict key or set member, including nested tuples


class RefusedError(TypeError):
    """The data is valid, but contains something that is not supported."""


class AllowedGlobal:
    """A global name in pickled data: the result of calling it, if that is allowed."""

    def __init__(
        self,
        name: str,
        call: Callable[..., Any] | None = None,
        value: Any = None,
        create: Callable[..., Any] | None = None,
    ) -> None:
        self.name = name
        self.call = call
        self.create = create or call  # makes an object by `__new__` alone
        self.value = value


class IgnoredObject:
    """A stand-in for an object of an unsupported class: its attributes are dropped."""

    __slots__ = ()


Restore = Callable[[Any, Any], None]


def read(
    data: bytes,
    allowed: Mapping[str, Any],
    persistent: Callable[[Any], Any],
    restore: Mapping[type, Restore] | None = None,
) -> Any:
    """Return the content of pickled data.

    known: "module.name" -> its replacement, a Known or plain data; other names raise a ValueError that contains the
    name.
    persistent: maps a reference to data outside of the pickled data to the object.
    restore: by type, the function that gives an object its state.

    Raises ValueError for damaged or unsupported data, and for data that would use more memory than a multiple of its
    length; a RefusedError of `allowed` or `persistent` propagates.
    """
    machine = _Machine(allowed, persistent, 4 * len(data) + 1000, restore or {})
    try:
        for operation, argument, _ in pickletools.genops(data):
            machine.step(operation.name, argument)
        return machine.result()
    except RefusedError:
        raise
    except _FAULTS as error:
        raise ValueError(f"damaged pickled data: {type(error).__name__}: {error}") from error


_FAULTS = (IndexError, KeyError, TypeError, AttributeError, OverflowError, UnicodeError)
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_LITERALS = {
    "BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "LONG4", "BINFLOAT", "FLOAT", "BINUNICODE",
    "SHORT_BINUNICODE", "BINUNICODE8", "UNICODE", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8",
}  # fmt: skip
_EMPTY = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple, "EMPTY_SET": set}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_NO_EFFECT = {"PROTO", "FRAME", "STOP"}


class _Machine:
    """A stack of values, and the memo."""

    def __init__(
        self,
        allowed: Mapping[str, Any],
        persistent: Callable[[Any], Any],
        budget: int,
        restore: Mapping[type, Restore],
    ) -> None:
        self._restore = restore
        self._allowed = allowed
        self._persistent = persistent
        self._budget = budget  # limit for the total members of call arguments, because each call may copy them
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def step(self, name: str, argument: Any) -> None:
        """Run one opcode of the pickled data."""
        if name in _LITERALS:
            self._stack.append(argument)
        elif name in _CONSTANTS:
            self._stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            self._stack.append(_EMPTY[name]())
        elif name in _TUPLES:
            parts = [self._pop() for _ in range(_TUPLES[name])]
            self._stack.append(tuple(reversed(parts)))
        elif name not in _NO_EFFECT:
            operation = _OPERATIONS.get(name)
            if operation is None:
                raise ValueError(f"the pickled data has the operation {name}, which plain data has not")
            operation(self, argument)

    def result(self) -> Any:
        """Return the final value."""
        result = self._pop()
        if self._stack:
            raise ValueError("damaged pickled data: more than one value is left")
        return result.value if isinstance(result, AllowedGlobal) else result

    def _pop(self) -> Any:
        value = self._stack.pop()
        if value is MARK:
            raise IndexError("a value is missing")
        return value

    def _pop_to_mark(self) -> list[Any]:
        """Pop the values since the last mark."""
        start = len(self._stack) - 1
        while self._stack[start] is not MARK:
            start -= 1
            if start < 0:
                raise IndexError("a mark is missing")
        values = self._stack[start + 1 :]
        del self._stack[start:]
        return values

    def mark(self, _: Any) -> None:
        self._stack.append(MARK)

    def pop(self, _: Any) -> None:
        self._stack.pop()

    def pop_mark(self, _: Any) -> None:
        self._pop_to_mark()

    def put(self, number: int) -> None:
        self._memo[number] = self._stack[-1]

    def memoize(self, _: Any) -> None:
        self.put(len(self._memo))

    def get(self, number: int) -> None:
        self._stack.append(self._memo[number])

    def make_tuple(self, _: Any) -> None:
        self._stack.append(tuple(self._pop_to_mark()))

    def make_list(self, _: Any) -> None:
        self._stack.append(self._pop_to_mark())

    def make_dict(self, _: Any) -> None:
        self._stack.append(pairs_to_dict(self._pop_to_mark()))

    def make_frozenset(self, _: Any) -> None:
        self._stack.append(frozenset(members_of_set(self._pop_to_mark())))

    def append(self, _: Any) -> None:
        value = self._pop()
        self._top(list).append(value)

    def appends(self, _: Any) -> None:
        values = self._pop_to_mark()
        self._top(list).extend(values)

    def set_item(self, _: Any) -> None:
        value, key = self._pop(), self._pop()
        self._top(dict, OrderedDict)[_key(key)] = value

    def set_items(self, _: Any) -> None:
        values = self._pop_to_mark()
        self._top(dict, OrderedDict).update(pairs_to_dict(values))

    def add_items(self, _: Any) -> None:
        values = self._pop_to_mark()
        self._top(set).update(members_of_set(values))

    def _top(self, *kinds: type) -> Any:
        if type(self._stack[-1]) not in kinds:
            raise TypeError(f"a {kinds[0].__name__} is missing")
        return self._stack[-1]

    def find(self, name: str) -> None:
        self._stack.append(self._find_global(name.replace(" ", ".", 1)))

    def find_on_stack(self, _: Any) -> None:
        name, module = self._pop(), self._pop()
        if type(name) is not str or type(module) is not str:
            raise TypeError("a name is missing")
        self._stack.append(self._find_global(f"{module}.{name}"))

    def _find_global(self, name: str) -> Any:
        if name not in self._allowed:
            raise ValueError(
                f"it asks for {name}, which is neither a tensor nor a plain container; no code of files is run"
                f"{_remedy(name)}"
            )
        return self._allowed[name]

    def reduce(self, _: Any) -> None:
        self._call(lambda called: called.call)

    def new_object(self, _: Any) -> None:
        self._call(lambda called: called.create)

    def _call(self, function_of: Callable[[AllowedGlobal], Callable[..., Any] | None]) -> None:
        """Call the function of an allowed name, and push the result."""
        arguments, called = self._pop(), self._pop()
        function = function_of(called) if isinstance(called, AllowedGlobal) else None
        if function is None or type(arguments) is not tuple:
            name = called.name if isinstance(called, AllowedGlobal) else called
            raise ValueError(f"the pickled data calls {short_repr(name)}, which is no function of it")
        given = [part.value if isinstance(part, AllowedGlobal) else part for part in arguments]
        self._budget -= sum(len(part) for part in given if isinstance(part, (str, bytes, tuple, list, dict, set)))
        if self._budget < 0:
            raise ValueError("the pickled data copies what it has over and over, which nothing that was saved does")
        self._stack.append(function(*given))

    def build(self, _: Any) -> None:
        """Give an object its state; a dict only the versions of a state dict."""
        state, top = self._pop(), self._stack[-1]
        restore = next((function for kind, function in self._restore.items() if isinstance(top, kind)), None)
        if restore is not None:
            restore(top, state)
        elif type(top) is not IgnoredObject:
            restore_versions(self._top(dict, OrderedDict), state)

    def load_persistent(self, _: Any) -> None:
        self._stack.append(self._persistent(self._pop()))


_OPERATIONS: dict[str, Callable[[_Machine, Any], None]] = {
    "MARK": _Machine.mark,
    "POP": _Machine.pop,
    "POP_MARK": _Machine.pop_mark,
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), _Machine.put),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), _Machine.get),
    "MEMOIZE": _Machine.memoize,
    "TUPLE": _Machine.make_tuple,
    "LIST": _Machine.make_list,
    "DICT": _Machine.make_dict,
    "FROZENSET": _Machine.make_frozenset,
    "APPEND": _Machine.append,
    "APPENDS": _Machine.appends,
    "SETITEM": _Machine.set_item,
    "SETITEMS": _Machine.set_items,
    "ADDITEMS": _Machine.add_items,
    "GLOBAL": _Machine.find,
    "STACK_GLOBAL": _Machine.find_on_stack,
    "REDUCE": _Machine.reduce,
    "NEWOBJ": _Machine.new_object,
    "BUILD": _Machine.build,
    "BINPERSID": _Machine.load_persistent,
}


def restore_versions(made: Any, state: Any) -> None:
    """Give an OrderedDict its `_metadata`, a dict that maps the paths of modules to their versions; ignore others."""
    versions = state.get("_metadata") if isinstance(state, dict) else None
    if isinstance(made, OrderedDict) and isinstance(versions, dict):
        made._metadata = versions  # type: ignore[attr-defined]


def pairs_to_dict(values: list[Any]) -> dict[Any, Any]:
    """Return the dict of a list of alternating keys and values."""
    return {_key(key): value for key, value in zip(values[::2], values[1::2], strict=True)}


def members_of_set(values: Iterable[Any] = ()) -> set[Any]:
    """Return a set; all values must be hashable."""
    return set(map(_key, values))


def _key(value: Any) -> Any:
    """Return a value to be hashed. Python's hash of nested tuples has no depth limit and is not cached."""
    waiting, count = [value], 0
    while waiting:
        one = waiting.pop()
        count += 1
        if type(one) is tuple:
            waiting += one
        if count > LARGEST_KEY or len(waiting) > LARGEST_KEY:
            raise ValueError(f"a key is made of more than {LARGEST_KEY} values")
    return value


def _remedy(name: str) -> str:
    """Return the way out for a class that is refused."""
    if name.startswith(("torch.nn.", "torch.optim.")):
        return "; in PyTorch, save the state_dict() instead of the object: torch.save(model.state_dict(), path)"
    return ", but rg.serialization.add_safe_globals([...]) allows classes"


def short_repr(value: Any) -> str:
    """Return a value as text for messages, at most a few hundred characters: it may reference itself many times."""
    return _SHORT.repr(value)


_SHORT = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxother = 2, 100, 100
