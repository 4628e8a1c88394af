"""Functions generated from the rows of the table of all faces; NumPy's convert their operands to tensors."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from retrograd.core import registry
from retrograd.interop.function_table import Row
from retrograd.interop.numpy_protocol.table import (
    as_floating,
    functions,
    over,
    promote_operands,
    tensor,
    ufuncs,
)
from retrograd.interop.signatures import Operands, function_with_signature
from retrograd.ops import public

NUMPYS = Operands(tensor, as_floating, promote_operands)


def target(row: Row) -> Callable:
    """Return what the functions of a row call: an operator, a public function, or a function of NumPy's protocol."""
    home, _, rest = row.operator.partition(".")
    if home == "np":
        return functions.get(rest) or ufuncs[rest]
    found: Any = _public().get(row.operator) or registry[row.operator]
    if not row.reduces:
        return found
    reducing = partial(over, found)
    reducing.__doc__ = found.__doc__
    return reducing


@cache
def _public() -> dict[str, Callable]:
    """Return the public operators and functions by dotted name."""
    homes = ("", "fft", "linalg", "special")
    return {f"{home}.{name}".lstrip("."): member for home in homes for name, member in public(home).items()}


def function_of_row(row: Row, signature: str, operands: Operands, module: str) -> Callable:
    """Return the function with one of a row's signatures."""
    return function_with_signature(signature, target(row), operands, module, finish=row.finish, **row.fixed)
