"""The arguments of a user's Function: given by name, or left to the defaults of its forward."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from retrograd.core import Tensor
from retrograd.core.op import is_foreign

NEVER_FOREIGN = frozenset({Tensor, int, float, bool, str, type(None)})  # checked first, since it is quick
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class _KeywordOnlyError(TypeError, NotImplementedError):
    """A forward takes arguments by name only; PyTorch raises a TypeError or, under vmap, a NotImplementedError."""


class _ForwardSignature(NamedTuple):
    """The signature of a forward: the number of positional arguments, and whether some have defaults."""

    forward: Callable
    signature: inspect.Signature
    positional: int
    has_defaults: bool


def bind_arguments(cls: Any, args: tuple, kwargs: dict[str, Any]) -> tuple:
    """Return all arguments of `cls.forward` by position, those that are left to their defaults among them.

    Raises TypeError for names that do not fit, and for arguments that forward takes by name only.
    """
    known = _signature_of_forward(cls)
    if not kwargs and (known is None or not known.has_defaults or known.positional == len(args)):
        return args
    if known is None:
        raise TypeError(f"{cls.__name__}: forward has no signature, so its arguments must be given by position")
    try:
        bound = known.signature.bind(*args, **kwargs)
    except TypeError as error:
        if not kwargs:
            return args  # forward itself raises the error
        raise TypeError(f"{cls.__name__}.forward: {error}") from None
    bound.apply_defaults()
    by_name = [name for name in bound.kwargs if name in kwargs]
    if by_name:
        raise _KeywordOnlyError(
            f"{cls.__name__}: forward takes {', '.join(by_name)} by name only, which setup_context and backward would "
            f"not get, and vmap does not run on autograd.Function with kwarg-only Tensor args; make it an argument by "
            f"position"
        )
    return bound.args


def _signature_of_forward(cls: Any) -> _ForwardSignature | None:
    """Return the cached signature data of the class's forward; None if Python has no signature for it."""
    known: _ForwardSignature | None = cls.__dict__.get("_known_forward")
    if known is None or known.forward is not cls.forward:
        try:
            signature = inspect.signature(cls.forward)
        except ValueError:
            return None
        defaults = [p.default is not p.empty for p in signature.parameters.values() if p.kind in POSITIONAL]
        known = cls._known_forward = _ForwardSignature(cls.forward, signature, len(defaults), any(defaults))
    return known


def check_keywords(cls: Any, kwargs: dict[str, Any]) -> None:
    """Raise TypeError for tensors that a forward with ctx would get by name: they would have no gradient."""
    for name, value in kwargs.items():
        if isinstance(value, Tensor):
            raise TypeError(f"{cls.__name__}: apply takes tensors by position only, but {name} was given by name")


def find_foreign(value: Any) -> list[Any]:
    """Return the objects in nested tuples, lists and dicts whose classes compute results themselves."""
    found: list[Any] = []
    for a in value:
        if type(a) in NEVER_FOREIGN:
            continue
        if isinstance(a, (tuple, list)):
            found += find_foreign(a)
        elif isinstance(a, dict):
            found += find_foreign(a.values())
        elif not isinstance(a, Tensor) and is_foreign(a):
            found.append(a)
    return found
