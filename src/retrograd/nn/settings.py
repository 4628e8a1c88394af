"""Bases of layers: arguments stored as attributes, and parameters with deferred initial values."""

import inspect
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, get_origin

from typing_extensions import dataclass_transform

from retrograd.core.errors import OperandValueError
from retrograd.foundation.number_arguments import check_number
from retrograd.foundation.suggestions import suggest_keywords
from retrograd.nn.constructor_fields import Field, add_constructor, field, fields_of
from retrograd.nn.module import Module
from retrograd.nn.parameter import Parameter
from retrograd.ops.functions import functions

Class = TypeVar("Class", bound=type)


@dataclass(frozen=True)
class BufferField(Field):
    """An argument that the layer registers as a buffer, or None."""


def buffer(*, default: Any = None, kw_only: bool = False) -> Any:
    """Return the declaration of an argument that becomes a buffer."""
    return BufferField(default, None, init=True, kw_only=kw_only)


@dataclass_transform(field_specifiers=(field, buffer), eq_default=False)
def layer(cls: Class) -> Class:
    """Class decorator: give a layer a constructor whose arguments are its annotated names, except class variables.

    The base class is `StoredSettings` or `Settings`.
    """
    add_constructor(
        cls, _build, lambda annotation: annotation is not ClassVar and get_origin(annotation) is not ClassVar
    )
    return cls


def _build(module: Any, values: dict[str, Any]) -> None:
    fields = fields_of(type(module))
    buffers = {name: values.pop(name) for name, one in fields.items() if isinstance(one, BufferField)}
    for name, value in values.items():
        _check(module, fields[name], name, value)
    StoredSettings.__init__(module, **values)
    for name, value in buffers.items():
        module.register_buffer(name, value)
    module.__post_init__()


def _check(module: Any, declared: Field, name: str, value: Any) -> None:
    try:
        check_number(name, declared.annotation, value)
        if declared.check is not None:
            declared.check(name, value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{type(module).__name__}: {error}") from None


class StoredSettings(Module):
    """A module that stores its arguments as attributes of the same names."""

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self._settings = tuple(settings)
        for name, value in settings.items():
            setattr(self, name, value)

    def __post_init__(self) -> None:
        """Check settings together, or compute some from others; runs at the end of a declared constructor."""


class Settings(StoredSettings):
    """A module that stores its arguments as attributes of the same names, and shows them in `repr`."""

    _repr_template: ClassVar[str | None] = None  # of classes that PyTorch prints in another form

    def extra_repr(self) -> str:
        """Return the settings in the form of the class; without one, those that are not False or None."""
        if self._repr_template is not None:
            return self._repr_template.format_map(vars(self))
        values = {name: getattr(self, name) for name in self._settings}
        return ", ".join(f"{name}={v!r}" for name, v in values.items() if v is not None and v is not False)


def check_probability(name: str, value: Any) -> None:
    """Raise ValueError for a number outside of 0 to 1."""
    if not 0 <= value <= 1:
        raise OperandValueError(f"{name} has to be between 0 and 1, but got {value}")


def check_positive(name: str, value: Any) -> None:
    """Raise ValueError for 0 or less."""
    if value <= 0:
        raise ValueError(f"{name} must be greater than 0, got {value}")


def empty_parameter(enabled: bool, shape: tuple[int, ...], device: Any, dtype: Any) -> Any:
    """Return an uninitialized parameter of that shape; None if not `enabled`."""
    return Parameter(functions["empty"](shape, dtype=dtype, device=device)) if enabled else None


def uninitialized(name: str, cls: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Return a module whose own parameters have their shapes but undefined values; no random numbers are drawn.

    name: of the caller, in errors.  Raises TypeError for a class that is no module, RuntimeError for one without a
    parameter `device`.
    """
    if not (isinstance(cls, type) and issubclass(cls, Module)):
        raise TypeError(f"{name}: expected a class of modules, got {cls!r}")
    if "device" not in inspect.signature(cls).parameters:
        raise RuntimeError(
            f"{name}: module must support a 'device' arg to skip initialization; {cls.__name__} has none"
        )
    module = type(cls.__name__, (cls,), {"reset_parameters": lambda self: None})(*args, **kwargs)
    module.__class__ = cls
    return module


@suggest_keywords
def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """Return the keywords of functions that make tensors: device, dtype, memory_format, and those in "factory_kwargs".

    Raises TypeError for other keywords, and for one that is given twice.

    >>> factory_kwargs({"device": "cpu", "factory_kwargs": {"dtype": "float64"}})
    {'dtype': 'float64', 'device': 'cpu'}
    """
    given = dict(kwargs or {})
    found = dict(given.pop("factory_kwargs", {}))
    others = sorted(given.keys() - {"device", "dtype", "memory_format"})
    if others:
        raise TypeError(f"factory_kwargs: unexpected kwargs {', '.join(others)}")
    for name, value in given.items():
        if name in found:
            raise TypeError(f"factory_kwargs: {name} specified twice, in **kwargs and in factory_kwargs")
        found[name] = value
    return found
