"""The arguments of operators in the form in which a user writes them."""

from itertools import takewhile
from typing import Any

from retrograd.core import Op
from retrograd.core.overrides import foreign_objects
from retrograd.core.schema import REQUIRED, Parameter


def normalized_args(op: Op, values: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """Return the arguments of a call in the usual form, from all of them by name.

    Inputs come first, by position, after what precedes them (`polygamma(2, x)`); what equals its default is omitted.
    """
    parameters = op.schema.parameters
    options = list(takewhile(lambda p: not (p.is_tensor or p.keyword_only), parameters))
    inputs = list(takewhile(lambda p: p.is_tensor and not p.keyword_only, parameters[len(options) :]))
    while inputs and _is_default(inputs[-1], values):
        inputs.pop()
    leading = [*options, *inputs] if inputs else []
    rest = [p for p in parameters if p not in leading and not _is_default(p, values)]
    args = [values[p.name] for p in leading]
    if options and inputs and inputs[-1].is_list:
        args[-1:] = args[-1]  # einsum("i,i", a, b)
    return tuple(args), {p.name: values[p.name] for p in rest}


def _is_default(parameter: Parameter, values: dict[str, Any]) -> bool:
    value, default = values[parameter.name], parameter.default
    if default is REQUIRED or type(value) is not type(default):
        return False
    return not foreign_objects(value) and bool(value == default)
