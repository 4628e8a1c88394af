"""Adapters that call user functions with tensors in place of arrays."""

from collections.abc import Callable, Sequence
from typing import Any

from retrograd.core import Tensor, at
from retrograd.core.function_node import is_separate
from retrograd.core.op import namespaces
from retrograd.core.tensor import make
from retrograd.foundation.describe_value import note_call
from retrograd.library import sanitizer
from retrograd.library.operator_outputs import check_and_flatten
from retrograd.library.registration import Registration
from retrograd.library.schema import CustomSchema


def user_arguments(schema: CustomSchema, inputs: Sequence, params: dict) -> tuple[tuple, dict[str, Any]]:
    """Return a call's flat inputs and params in the form of the user's functions: positional, and keyword-only."""
    values = schema.values(inputs, params)
    count = len(schema.by_position)
    if count == len(values):
        return values, {}
    alone = zip(schema.parameters[count:], values[count:], strict=True)
    return values[:count], {p.name: value for p, value in alone}


def adapt_kernel(schema: CustomSchema, part: Registration) -> Callable:
    """Return the user's kernel as a flat function of arrays; its last result is the structure, unless it is single."""
    simple = not schema.params and all(p.type == "Tensor" and not p.keyword_only for p in schema.inputs)
    function = drop_written_results(schema, part.function)
    if simple and schema.results == "Tensor" and schema.view_of is None:
        return _adapt_simple(schema, function)
    return _adapt_general(schema, function)


def drop_written_results(schema: CustomSchema, function: Callable) -> Callable:
    """Return a user's function without those of its results that are the arguments that it has written to."""
    if not schema.returned:
        return function

    def run(*args: Any, **kwargs: Any) -> Any:
        return schema.without_returned(schema.given(args, kwargs), function(*args, **kwargs))

    return run


def _adapt_simple(schema: CustomSchema, function: Callable) -> Callable:
    def run(*arrays: Any) -> Any:
        tensors = [make(a, None, None) for a in arrays]
        try:
            with at(None, False):
                result = sanitizer.invoke(schema, function, tensors, {}) if sanitizer.state.on else function(*tensors)
        except Exception as error:
            if not sanitizer.state.on:  # else the sanitizer adds the note, or another one
                note_call(error, f"the kernel of {schema.name}", tensors)
            raise
        return check_single_result(schema, tensors, result)

    return run


def check_single_result(schema: CustomSchema, tensors: Sequence, result: Any) -> Any:
    """Return the array of a kernel's only result, which must be a tensor with its own memory."""
    if not is_separate(result, tensors):
        if not isinstance(result, Tensor):
            check_and_flatten(schema.name, result, schema.results)  # raises with the reason
        sanitizer.check_memory(schema, [*tensors], {}, result)
    return result.value


def _adapt_general(schema: CustomSchema, function: Callable) -> Callable:
    def run(*arrays: Any, **params: Any) -> Any:
        args, kwargs = user_arguments(schema, [_wrap(a) for a in arrays], params)
        try:
            with at(None, False):
                result = sanitizer.invoke(schema, function, list(args), kwargs)
        except Exception as error:
            if not sanitizer.state.on:
                note_call(error, f"the kernel of {schema.name}", (*args, *kwargs.values()))
            raise
        tensors, structure = check_and_flatten(schema.name, result, schema.results)
        values = [t.value for t in tensors]
        if schema.view_of is None and _may_share_memory(arrays, values):
            sanitizer.check_memory(schema, list(args), kwargs, result)
        return values[0] if schema.results == "Tensor" else (*values, structure)

    return run


def _wrap(a: Any) -> Any:
    return make(a, None, None) if type(a) in namespaces else a


def _may_share_memory(arrays: Sequence, values: Sequence) -> bool:
    """Return whether a result may share memory with an input or another result: whether an owner repeats."""
    owners = [id(_owner(v)) for v in values]
    return len({*owners}) < len(owners) or not {*owners}.isdisjoint([id(_owner(a)) for a in arrays])


def _owner(array: Any) -> Any:
    base = getattr(array, "base", None)
    return array if base is None else base


def make_functional(schema: CustomSchema, part: Registration) -> Registration:
    """Return a function that writes to copies of its arguments, and returns these after its result."""
    function = drop_written_results(schema, part.function)

    def run(*args: Any, **kwargs: Any) -> Any:
        given = schema.given(args, kwargs)
        given.update({name: _clone_tensors(given[name]) for name in schema.mutated})
        result = function(*[given[p.name] for p in schema.by_position], **{k: given[k] for k in kwargs})
        return (result, *[given[name] for name in schema.mutated])

    return Registration(run, part.location)


def _clone_tensors(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_clone_tensors(v) for v in value]
    return value.clone() if isinstance(value, Tensor) else value
