"""Arguments of calls by the names of their parameters."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from retrograd.core import Op
from retrograd.core.schema import REQUIRED
from retrograd.nn.module import Module

__all__ = ["ArgsKwargsPair", "check_for_mutable_operation", "normalize_function", "normalize_module"]

KEYWORD_ONLY, POSITIONAL_OR_KEYWORD = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD


class ArgsKwargsPair(NamedTuple):
    """The arguments of a call, by position and by name."""

    args: tuple
    kwargs: dict[str, Any]


def check_for_mutable_operation(target: Callable, args: tuple, kwargs: dict[str, Any]) -> None:
    """Raise RuntimeError for a call that writes to its arguments or to `out`."""
    mutates = isinstance(target, Op) and any(p.mutated for p in target.schema.parameters)
    if mutates or kwargs.get("out") is not None:
        raise RuntimeError(
            f"Tried to trace mutable operation {getattr(target, '__name__', target)}: the tracer refuses calls that "
            f"write to their arguments (check_mutable_operations)"
        )


def normalize_function(
    target: Callable,
    args: tuple,
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """Return the arguments of a call of an operator or a Python function in one form, with the defaults.

    All are by name with `normalize_to_only_use_kwargs`, else those that are given by position stay so.  None if the
    function has no signature, one with `*args`, `**kwargs` or positional-only parameters, or refuses the arguments.
    An operator has one signature, so
    `arg_types` and `kwarg_types` decide nothing.

    >>> import operator, retrograd as rg
    >>> normalize_function(rg.clamp, (1.0, 0), {"max": 2}, normalize_to_only_use_kwargs=True).kwargs
    {'x': 1.0, 'min': 0, 'max': 2}
    """
    signature = _signature(target)
    return None if signature is None else _normalized(signature, args, kwargs or {}, normalize_to_only_use_kwargs)


def normalize_module(
    root: Module,
    target: str,
    args: tuple,
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """Return the arguments of a call of a submodule in one form, with the defaults, like `normalize_function`.

    Raises AttributeError if `root` has no submodule of that name.
    """
    signature = inspect.signature(root.get_submodule(target).forward)
    return _normalized(signature, args, kwargs or {}, normalize_to_only_use_kwargs)


def _signature(target: Callable) -> inspect.Signature | None:
    if isinstance(target, Op):
        return inspect.Signature(
            [
                inspect.Parameter(
                    p.name,
                    KEYWORD_ONLY if p.keyword_only else POSITIONAL_OR_KEYWORD,
                    default=inspect.Parameter.empty if p.default is REQUIRED else p.default,
                )
                for p in target.schema.parameters
            ]
        )
    try:
        return inspect.signature(target)
    except (TypeError, ValueError):
        return None


def _normalized(
    signature: inspect.Signature, args: tuple, kwargs: dict[str, Any], only_names: bool
) -> ArgsKwargsPair | None:
    if not {p.kind for p in signature.parameters.values()} <= {KEYWORD_ONLY, POSITIONAL_OR_KEYWORD}:
        return None
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    items = list(bound.arguments.items())
    count = 0 if only_names else len(args)
    return ArgsKwargsPair(tuple(value for _, value in items[:count]), dict(items[count:]))
