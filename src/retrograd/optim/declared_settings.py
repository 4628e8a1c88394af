"""Optimizers that declare their settings: the constructor, the defaults and the checks follow."""

from collections.abc import Iterable
from dataclasses import InitVar
from typing import Any, ClassVar, TypeVar

from typing_extensions import dataclass_transform

from retrograd.core import Tensor
from retrograd.foundation.describe_value import describe
from retrograd.foundation.number_arguments import check_number
from retrograd.nn.constructor_fields import Check, add_constructor, field, fields_of
from retrograd.optim.optimizer import Group, Optimizer

Class = TypeVar("Class", bound=type)


@dataclass_transform(field_specifiers=(field,), eq_default=False)
def with_settings(cls: Class) -> Class:
    """Class decorator: give an optimizer a constructor whose arguments are its declared settings."""
    add_constructor(cls, _build, lambda annotation: isinstance(annotation, InitVar))
    return cls


def _build(optimizer: Any, settings: dict[str, Any]) -> None:
    params = settings.pop("params")
    Optimizer.__init__(optimizer, params, optimizer.complete_defaults(settings))
    optimizer.initialize_states()


@with_settings
class DeclaredOptimizer(Optimizer):
    """Base of optimizers whose settings are fields.

    A field is an annotated `InitVar` with a default, or `field(default=..., check=...)`, where `check(name, value)`
    raises for a value out of range.  Small parameters step together unless
    `foreach` is False, with the same results. `fused` and `capturable`, which choose between implementations of
    PyTorch, are stored and have no effect.
    """

    params: InitVar[Iterable[Any]]
    steps_on_parts: ClassVar[bool] = True
    takes_complex: ClassVar[bool] = True

    @classmethod
    def complete_defaults(cls, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the defaults, given the constructor's arguments: those, unless a subclass replaces some."""
        return settings

    def initialize_states(self) -> None:
        """Add the states that exist before the first step: none, unless a subclass has some."""

    def check(self, group: Group) -> None:
        """Check each setting, and that the parameters are real if the formula is for real ones only."""
        for name, declared in fields_of(type(self)).items():
            if name == "lr" and isinstance(group[name], Tensor) and group[name].numel() != 1:
                said = f"lr must be a number; Tensor lr must be 1-element, got shape {group[name].shape}"
                raise ValueError(f"{type(self).__name__}: {said}")
            check_number(f"{type(self).__name__}: {name}", declared.annotation, group[name])
            if declared.check is not None:
                declared.check(name, group[name])
        for param in group["params"]:
            if param.dtype.kind == "c" and not self.takes_complex:
                raise RuntimeError(f"{type(self).__name__} does not support complex parameters, got {param.aval}")


# ------------------------------------------------------------------------------------------------------- checks


_WORDS = {"lr": "learning rate", "eps": "epsilon value"}  # PyTorch's names of settings in messages


def check_non_negative(name: str, value: Any) -> None:
    """Raise ValueError for a setting below 0 or NaN."""
    if not value >= 0:
        raise _out_of_range(name, value, "at least 0")


def check_positive(name: str, value: Any) -> None:
    """Raise ValueError for a setting that is 0, below, or NaN."""
    if not value > 0:
        raise _out_of_range(name, value, "greater than 0")


def _out_of_range(name: str, value: Any, range_: str) -> ValueError:
    return ValueError(f"Invalid {_WORDS.get(name, f'{name} value')}: {value}; {name} must be {range_}, got {value}")


def check_betas(name: str, value: Any) -> None:
    """Raise ValueError unless the two factors of running means are 0 or more and less than 1."""
    for index, beta in enumerate(value):
        if not 0 <= beta < 1:
            raise ValueError(
                f"Invalid beta parameter at index {index}: {beta}; {name} must be two numbers from 0 up to but not "
                f"including 1, got {value}"
            )


def check_not_differentiable(name: str, value: Any) -> None:
    """Raise NotImplementedError for `differentiable=True`: a step is not recorded."""
    if value:
        raise NotImplementedError(
            f"{name}=True is not supported: the step is not recorded; compute new parameters by operators, and call "
            "the model with them by rg.func.functional_call"
        )


def check_one_of(*choices: Any) -> Check:
    """Return the check that a setting is one of some values."""

    def check(name: str, value: Any) -> None:
        if value not in choices:
            raise ValueError(f"{name} must be {' or '.join(map(repr, choices))}, got {describe(value)}")

    return check
