"""The arguments of operators in the form in which a user writes them."""

from itertools import takewhile
from typing import Any

from retrograd.core import Op
from retrograd.core.overrides import foreign_objects
from retrograd.core.schema import REQUIRED, Parameter


def normalized_args(op: Op, values: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """Return the arguments of a call in the usual form, from all of them by name.

    Inputs come first, by position; arguments that equal their defaults are omitted.
    """
    parameters = op.schema.parameters
    leading = list(takewhile(lambda p: p.is_tensor and not p.keyword_only, parameters))
    while leading and _is_default(leading[-1], values):
        leading.pop()
    rest = [p for p in parameters if p not in leading and not _is_default(p, values)]
    return tuple(values[p.name] for p in leading), {p.name: values[p.name] for p in rest}


def _is_default(parameter: Parameter, values: dict[str, Any]) -> bool:
    value, default = values[parameter.name], parameter.default
    if default is REQUIRED or type(value) is not type(default):
        return False
    return not foreign_objects(value) and bool(value == default)
