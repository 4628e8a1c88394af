"""Constructors from declarations: annotated fields of a class are the arguments, in the order of their declaration.

A class decorator calls `add_constructor`, which makes `__init__`; type checkers know its signature by
`typing_extensions.dataclass_transform`.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass, replace
from typing import Any

from retrograd.core import Tensor
from retrograd.foundation.number_arguments import call_hint
from retrograd.foundation.suggestions import bind_arguments

Check = Callable[[str, Any], None]
_REQUIRED = inspect.Parameter.empty


@dataclass(frozen=True)
class Field:
    """An argument of a constructor: its default, and a function of its name and value that raises if it is wrong.

    With `init=False` it is no argument: the value is always the default.
    """

    default: Any
    check: Check | None
    init: bool
    kw_only: bool
    annotation: Any = None

    def parameter(self, name: str) -> inspect.Parameter:
        """Return the parameter of `__init__`."""
        kind = inspect.Parameter.KEYWORD_ONLY if self.kw_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Parameter(name, kind, default=self.default, annotation=self.annotation)


def field(*, default: Any = _REQUIRED, check: Check | None = None, init: bool = True, kw_only: bool = False) -> Any:
    """Return a declaration, to be assigned to an annotated name in the class."""
    return Field(default, check, init, kw_only)


def fields_of(cls: type) -> Mapping[str, Field]:
    """Return the fields of a class by name: the inherited ones first, each at the position of its first declaration."""
    return getattr(cls, "_fields", {})


def add_constructor(cls: type, build: Callable[[Any, dict[str, Any]], None], declares: Callable[[Any], bool]) -> None:
    """Give a class an `__init__` whose arguments are its fields, and which passes their values to `build`.

    `declares(annotation)` is whether an annotated name of the class is a field.  A class may have an `_older_form` of
    `foundation.older_forms`, for calls that its signature refuses.
    """
    fields = dict(fields_of(cls))
    for name, annotation in inspect.get_annotations(cls).items():
        if declares(annotation):
            declared = vars(cls).get(name, _REQUIRED)
            declared = declared if isinstance(declared, Field) else field(default=declared)
            kind = annotation.type if isinstance(annotation, InitVar) else annotation
            fields[name] = replace(declared, annotation=kind)
            if name in vars(cls):
                delattr(cls, name)
    cls._fields = fields  # type: ignore[attr-defined]
    parameters = [one.parameter(name) for name, one in fields.items() if one.init]
    cls.__init__ = _make_init(cls, sorted(parameters, key=lambda one: one.kind), build)  # type: ignore[misc]


def _make_init(
    cls: type, parameters: list[inspect.Parameter], build: Callable[[Any, dict[str, Any]], None]
) -> Callable:
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = inspect.Signature([own, *parameters], return_annotation=None)
    defaults = {name: one.default for name, one in fields_of(cls).items()}

    def init(*args: Any, **kwargs: Any) -> None:
        name = type(args[0]).__name__
        try:
            bound = bind_arguments(f"{name}.__init__", signature, args, kwargs)
        except TypeError as error:
            older_form = getattr(args[0], "_older_form", None)
            today = older_form(name, args[1:], kwargs) if older_form else None
            if today is not None:
                return init(args[0], *today[0], **today[1])
            raise TypeError(f"{error}{hint_for(error, args)}") from None
        values = {**defaults, **bound.arguments}
        try:
            build(values.pop("self"), values)
        except (TypeError, ValueError) as error:
            if hint := hint_for(error, args):
                raise type(error)(f"{error}{hint}") from None
            raise

    def hint_for(error: Exception, args: tuple) -> str:
        return call_hint(args[0], str(error)) if any(isinstance(a, Tensor) for a in args[1:]) else ""

    init.__signature__, init.checks_arguments = signature, True  # type: ignore[attr-defined]
    init.__name__, init.__qualname__, init.__module__ = "__init__", f"{cls.__qualname__}.__init__", cls.__module__
    return init
