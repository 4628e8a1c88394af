"""Scopes of registrations, which are undone when the scope ends."""

import functools
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from retrograd.core import parse, registry
from retrograd.foundation.source_location import user_line
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.library.custom_ops import check_name, duplicate_message, register, unregister, when_defined
from retrograd.library.fallbacks import remove_fallback, set_fallback
from retrograd.library.kernel_lookup import FIELDS, KERNELS, fallthrough_kernel
from retrograd.library.operator import CustomOperator
from retrograd.library.registration import Registration
from retrograd.library.schema import CustomSchema

SCOPES = ("DEF", "IMPL", "FRAGMENT")
RESERVED = ("prim",)
ALIAS_ANALYSES = ("", "CONSERVATIVE", "FROM_SCHEMA")
_defined: dict[str, str] = {}  # the namespaces of DEF libraries, and their source locations


class DispatchKeyError(RuntimeError, ValueError):
    """The error for a dispatch key that does not exist; RuntimeError in PyTorch."""


class Library:
    """A scope of registrations in one namespace: "DEF" defines it, "FRAGMENT" adds to it, "IMPL" extends operators.

    Its definitions and registrations are undone when a `with` block ends, by any exit, or when the library is garbage
    collected.  Registrations that were replaced meanwhile stay.

    Raises ValueError for another kind and for a reserved namespace, RuntimeError for a second "DEF" of a namespace.

    >>> import retrograd as rg
    >>> with rg.library.Library("docs_of_scopes", "FRAGMENT") as lib:
    ...     name = lib.define("twice(Tensor x) -> Tensor")
    ...     lib.impl(name, lambda x: x * 2, "CPU")
    ...     rg.ops.docs_of_scopes.twice(rg.ones(2))
    tensor([2., 2.])
    >>> hasattr(rg.ops, "docs_of_scopes")
    False
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in SCOPES:
            raise ValueError(
                f"Library: Unsupported kind: {kind}; kind must be one of {', '.join(SCOPES)}, got {kind!r}"
            )
        check_name(f"{ns}::x")
        if ns in RESERVED:
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        if kind == "DEF" and ns in _defined:
            raise RuntimeError(
                f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}: the namespace {ns!r} is "
                f"defined already, at {_defined[ns]}; use FRAGMENT"
            )
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._undo: list[Callable[[], Any]] = []
        self._end = weakref.finalize(self, _undo_all, self._undo)
        self._end.atexit = False
        if kind == "DEF":
            _defined[ns] = user_line()
            self._undo.append(functools.partial(_defined.pop, ns))

    def __repr__(self) -> str:
        return f"Library({self.ns!r}, {self.kind!r})"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define an operator by its schema, which has a name without namespace; return that name.

        It has the newer interface: a call without a formula fails in the backward pass.  `alias_analysis`, one of
        PyTorch's two, has no effect.

        Raises ValueError for a schema that can't be parsed; RuntimeError for a name that is taken, with both source
        locations, and in an "IMPL" library.
        """
        if self.kind == "IMPL":
            raise RuntimeError(
                f"def({schema!r}): Cannot define an operator inside of a TORCH_LIBRARY_IMPL block: an IMPL library "
                "defines nothing; use DEF or FRAGMENT"
            )
        if alias_analysis not in ALIAS_ANALYSES:
            raise RuntimeError(f"Library.define: Invalid alias_analysis type {alias_analysis}")
        parsed = parse(schema, CustomSchema)
        if not parsed.name:
            raise ValueError(
                f"Library.define: expected a schema with a name, such as 'f(Tensor x) -> Tensor', got {schema!r}"
            )
        name = f"{self.ns}::{parsed.name}"
        check_name(name)
        known, location = registry.get(name), user_line()
        if known is not None:
            raise RuntimeError(duplicate_message(known, location))
        self._undo.append(functools.partial(unregister, register(parsed.renamed(name), strict=False, tags=tags)))
        return parsed.name

    def impl(
        self,
        op_name: str | CustomOperator,
        fn: Callable,
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = True,
    ) -> None:
        """Register a function for an operator by PyTorch's dispatch key.

        "CPU" is for kernels, "CompositeExplicitAutograd" for one for all arrays,
        "Meta" for shapes and dtypes, "Autograd" for a function that runs if a gradient is needed.
        "CompositeImplicitAutograd", the default, is for a function of operators that replaces the operator in
        graphs, if it has no kernels.  `fallthrough_kernel` removes what is registered for the key.

        With `with_keyset`, the function gets a set of the dispatch key as its first argument.

        If no operator of that name is defined yet, the function is registered when it is.

        Raises ValueError for another key; with `allow_override=False`, RuntimeError for a second registration.
        """
        if not callable(fn):
            raise TypeError(f"Library.impl: Input function is required to be a callable but found type {type(fn)}")
        if not isinstance(op_name, (str, CustomOperator)):
            raise RuntimeError(
                f"Library.impl: impl should be passed either a name or an OpOverload object as the first argument, "
                f"that is a CustomOperator, got {type(op_name)}"
            )
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        if key not in KERNELS and key not in FIELDS:
            raise DispatchKeyError(
                f"Library.impl: could not parse dispatch key: unknown dispatch key {key!r}; known are "
                f"{', '.join((*KERNELS, *FIELDS))}"
            )
        function = functools.partial(fn, frozenset([key])) if with_keyset and fn is not fallthrough_kernel else fn
        is_complete = isinstance(op_name, CustomOperator) or "::" in op_name
        op = op_name if is_complete else f"{self.ns}::{op_name}"
        self.when_defined(op, functools.partial(_register, key, function, allow_override))

    def fallback(self, fn: Callable, dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Register a function for all custom operators that have no kernel: it is called as `fn(op, *args, **kwargs)`.

        `dispatch_key` is one of a kernel, such as "CPU", by default the library's, whose namespace is "_".  With
        `fallthrough_kernel` nothing changes.

        Raises RuntimeError for another namespace or key, and for a second fallback of a key.

        >>> import retrograd as rg
        >>> name = rg.library.define("docs::without_kernel", "(Tensor x) -> Tensor")
        >>> with rg.library.Library("_", "IMPL") as everywhere:
        ...     everywhere.fallback(lambda op, x: x + 1, "CPU")
        ...     rg.ops.docs.without_kernel(rg.ones(2))
        tensor([2., 2.])
        """
        key = dispatch_key or self.dispatch_key
        if self.ns != "_":
            raise RuntimeError(
                'Fallback can only be registered using library fragment on the global namespace "_" but it is '
                f"{self.ns}"
            )
        if not key:
            raise AssertionError("dispatch_key must not be empty for fallback: give one, such as 'CPU'")
        if key not in KERNELS:
            raise DispatchKeyError(
                f"Library.fallback: could not parse dispatch key: {key}; known are {', '.join(KERNELS)}"
            )
        if not callable(fn):
            raise TypeError(f"Library.fallback: Input function is required to be a callable but found type {type(fn)}")
        if fn is fallthrough_kernel:
            return
        kind = KERNELS[key].replace("default", "")
        function = functools.partial(_call_with_keys, fn, frozenset([key])) if with_keyset else fn
        set_fallback(kind, Registration(function, user_line()))
        self._undo.append(functools.partial(remove_fallback, kind))

    def when_defined(self, op: str | CustomOperator, action: Callable[[CustomOperator], Any]) -> None:
        """Call a function that extends an operator, now or when that is defined; the library undoes what it registers.

        The function must not refer to the library, which would never be garbage collected.
        """
        self._undo.append(when_defined(op, functools.partial(_call_recorded, self._undo, action)))

    def recording(self, op: CustomOperator) -> AbstractContextManager:
        """Return a context manager for registrations that the library undoes."""
        return op.registrations.recording(self._undo)

    def _destroy(self) -> None:
        """End the scope now."""
        _undo_all(self._undo)

    def __enter__(self) -> "Library":
        return self

    def __exit__(self, *exception: object) -> None:
        self._destroy()


def _call_with_keys(fn: Callable, keys: frozenset, op: CustomOperator, *args: Any, **kwargs: Any) -> Any:
    """Call a fallback that gets the operator and then the set of dispatch keys."""
    return fn(op, keys, *args, **kwargs)


def _call_recorded(undo: list[Callable[[], Any]], action: Callable, op: CustomOperator) -> None:
    """Call a function that extends an operator; what undoes each registration is appended to `undo`."""
    with op.registrations.recording(undo):
        action(op)


def _register(key: str, function: Callable, allow_override: bool, op: CustomOperator) -> None:
    """Register a function for a dispatch key of an operator."""
    if not allow_override:
        _check_unregistered(op, key)
    if function is fallthrough_kernel:
        op.registrations.remove(*_position_of(op, key))
    elif key in KERNELS:
        op.impl(KERNELS[key], function)
    else:
        op.registrations.register(f"{op.name}: {key}", FIELDS[key], function)


def _undo_all(undo: list[Callable[[], Any]]) -> None:
    while undo:
        undo.pop()()


def _position_of(op: CustomOperator, key: str) -> tuple[dict, str]:
    """Return the dict and the key under which the function of a dispatch key is registered."""
    if key in FIELDS:
        return vars(op.registrations), FIELDS[key]
    return op.registrations.kernels, KERNELS[key].replace("default", "")


def _check_unregistered(op: CustomOperator, key: str) -> None:
    fields, name = _position_of(op, key)
    known = fields.get(name)
    if known is not None:
        raise RuntimeError(
            f"{op.name}: Library.impl: {key} is registered already, at {known.location}: there's already a kernel "
            f"registered for the {key} dispatch key"
        )


suggest_in_module(globals())
