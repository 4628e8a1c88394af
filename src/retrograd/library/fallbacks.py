"""Functions that run in place of kernels that operators lack: see `Library.fallback`."""

import functools
from typing import Any

from retrograd.core import registry
from retrograd.library.registration import Registration

FALLBACKS: dict[str, Registration] = {}  # by kind of array; "" is for all


def fallback_for(kind: str, name: str) -> Registration | None:
    """Return the kernel that calls the fallback of a kind of arrays for an operator; None if there is no fallback."""
    found = FALLBACKS.get(kind) or FALLBACKS.get("")
    return None if found is None else Registration(functools.partial(found.function, registry[name]), found.location)


def set_fallback(kind: str, fallback: Registration) -> None:
    """Set the fallback of a kind of arrays; a RuntimeError if there is one."""
    if kind in FALLBACKS:
        raise RuntimeError(
            f"Tried to register multiple backend fallbacks for the same dispatch key {kind.upper()}; previous "
            f"registration registered at {FALLBACKS[kind].location}, new registration registered at {fallback.location}"
        )
    FALLBACKS[kind] = fallback
    _refresh_operators()


def remove_fallback(kind: str) -> None:
    """Remove the fallback of a kind of arrays."""
    del FALLBACKS[kind]
    _refresh_operators()


def _refresh_operators() -> None:
    """Let operators look for their kernels again, which they have kept since their last call."""
    for operator in list(registry.values()):
        registrations: Any = getattr(operator, "registrations", None)
        if registrations is not None:
            registrations.changed()
