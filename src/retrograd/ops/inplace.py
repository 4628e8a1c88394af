"""Functions of `nn.functional` with the argument `inplace`: if true they write into their input, and return it."""

import inspect
from functools import wraps

from retrograd.core import Tensor
from retrograd.core.op import is_foreign
from retrograd.core.overrides import override_result
from retrograd.core.schema import Parameter, Schema
from retrograd.ops.functions import function
from retrograd.ops.mutate import call_in_place

_INPLACE_PARAMETER = Parameter("inplace", "bool", False, False)


def add_functions(operators):
    """Give the `nn.functional` functions of operators with the trait `in_place="argument"` the argument `inplace`."""
    for operator in operators:
        if operator.definition.in_place == "argument":
            function(f"nn.functional.{operator.name}")(_with_inplace(operator))


def _with_inplace(operator):
    """Return the operator as a function with a further last argument, `inplace`."""
    own = operator.called_as
    schema = Schema(own.name, (*own.parameters, _INPLACE_PARAMETER), own.results, own.outputs)
    count = len(schema.parameters)

    def without_override(*args, **kwargs):
        inputs, params = schema.bind(args, kwargs)
        if params.pop("inplace"):
            return call_in_place(operator, inputs[0], inputs[1:], params)
        return operator(*inputs, **params)

    @wraps(operator, assigned=("__name__", "__doc__"), updated=())
    def either(*args, **kwargs):
        if args and type(args[0]) is not Tensor and is_foreign(args[0]):
            return override_result(either, [args[0]], args, kwargs)
        if not kwargs and len(args) < count:
            return operator(*args)
        return without_override(*args, **kwargs)

    either.without_override = without_override  # type: ignore[attr-defined]
    either.__module__, either.__qualname__ = "retrograd.nn.functional", operator.name  # where pickle finds it
    either.called_as = schema  # type: ignore[attr-defined]
    added = inspect.Parameter("inplace", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=False, annotation="bool")
    either.__signature__ = inspect.Signature([*inspect.signature(operator).parameters.values(), added])  # type: ignore[attr-defined]
    return either
