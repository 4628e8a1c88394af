"""The registered parts of operators, and the source locations of the registrations."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

from retrograd.core.blocks import generator_block
from retrograd.foundation.source_location import user_line


class Registration:
    """A registered function and its source location; `ended` once the library that registered it has ended."""

    __slots__ = ("ended", "function", "location")

    def __init__(self, function: Callable, location: str) -> None:
        self.function = function
        self.location = location
        self.ended = False


class Registrations:
    """All parts of one operator except its schema."""

    def __init__(self, location: str, *, strict: bool) -> None:
        self.location = location  # source location of the definition
        self.strict = strict  # older interface: a call that needs a missing formula fails, and nothing is replaced
        self.kernels: dict[str, Registration] = {}  # by kind of array; "" is for all
        self.class_overrides: dict[type, Registration] = {}  # runs for operands of a class
        self.disabled: set[str] = set()  # the kinds of arrays whose kernels don't run
        self.composite: Registration | None = None  # runs instead of any kernel, as a function of operators
        self.abstract: Registration | None = None
        self.save: Registration | None = None  # save and backward: the older interface
        self.backward: Registration | None = None
        self.differentiable: tuple[bool, ...] | None = None  # for each output
        self.pull: Registration | None = None  # the newer interface's formula
        self.setup: Registration | None = None
        self.autograd: Registration | None = None
        self.jvp: Registration | None = None
        self.vmap: Registration | None = None
        self.autocast: Registration | None = None  # casts an operand under autocast
        self.changed: Callable[[], None] = _noop  # called after every change

    def register(self, what: str, field: str, function: Callable) -> Callable:
        """Register a function; `what` describes it, with its operator, in errors."""
        return self._store(what, vars(self), field, function)

    def register_kernel(self, what: str, kind: str, function: Callable) -> Callable:
        """Register a kernel for one kind of arrays, or for all of them, ""."""
        return self._store(what, self.kernels, kind, function)

    def register_for_class(self, what: str, cls: type, function: Callable) -> Callable:
        """Register the function that runs for operands of a class."""
        return self._store(what, self.class_overrides, cls, function)

    def kernel_for(self, kind: str) -> Registration | None:
        """Return the kernel that runs on one kind of arrays: its own, unless it is disabled, or the one for all."""
        own = None if kind in self.disabled else self.kernels.get(kind)
        return own or self.kernels.get("")

    def remove(self, fields: dict, key: str) -> None:
        """Remove the function in one of the dicts of functions, if there is one."""
        if fields.get(key) is not None:
            self._undo(fields, key, fields[key], None)

    @generator_block
    def kernel_enabled(self, kind: str, enabled: bool) -> Iterator[None]:
        """Context manager that enables or disables the kernel for one kind of arrays."""
        before = kind in self.disabled
        self._set_disabled(kind, not enabled)
        try:
            yield
        finally:
            self._set_disabled(kind, before)

    def _set_disabled(self, kind: str, disabled: bool) -> None:
        (self.disabled.add if disabled else self.disabled.discard)(kind)
        self.changed()

    def _store(self, what: str, fields: dict, key: Any, function: Callable) -> Callable:
        if not callable(function):
            raise TypeError(f"{what}: expected a function, got {type(function).__name__}")
        known: Registration | None = fields.get(key)
        location = user_line()
        if known is not None and self.strict:
            raise RuntimeError(f"{what}: registered already, at {known.location}; this is a second one, at {location}")
        fields[key] = Registration(function, location)
        self.changed()
        return function

    @generator_block
    def recording(self, undo: list[Callable[[], None]]) -> Iterator[None]:
        """Context manager for registrations: a function that undoes each is appended to `undo`."""
        before: list[tuple[dict, dict]] = [
            (fields, dict(fields)) for fields in (self.kernels, self.class_overrides, vars(self))
        ]
        yield
        for fields, old in before:
            pairs = [(key, fields[key], old.get(key)) for key in fields]
            new = [pair for pair in pairs if pair[1] is not pair[2] and any(isinstance(p, Registration) for p in pair)]
            undo += [functools.partial(self._undo, fields, *pair) for pair in new]

    def _undo(self, fields: dict, key: Any, installed: Registration | None, before: Registration | None) -> None:
        if installed is not None:
            installed.ended = True
        if fields.get(key) is not installed:  # replaced since
            return
        fields[key] = before
        if before is None and fields is not vars(self):
            del fields[key]
        self.changed()


def _noop() -> None:
    pass
