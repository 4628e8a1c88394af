"""Operators, by family of use.  Importing this package registers all of them."""

from retrograd import backend as backend
from retrograd.core import bind_arithmetic, registry
from retrograd.ops import complex as complex
from retrograd.ops import create, index, linalg, losses, methods, mutate, nn, pointwise, random, reduce, view

__all__ = [
    "complex",
    "create",
    "index",
    "linalg",
    "losses",
    "methods",
    "mutate",
    "nn",
    "pointwise",
    "random",
    "reduce",
    "view",
]

_ARITHMETIC = "add sub mul div matmul pow neg remainder floor_divide lt le gt ge eq ne"

bind_arithmetic({name: registry[name] for name in _ARITHMETIC.split()})
methods.add_operators(registry)
mutate.add_in_place(registry)


def public():
    """The operators that have a name of their own in `rg.`, by name."""
    return {name: operator for name, operator in registry.items() if operator.definition.public}
