"""Inference of schemas from the annotations of functions."""

import inspect
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Union

from retrograd.core import Tensor
from retrograd.core.device import device
from retrograd.core.dtype import DType
from retrograd.core.schema import REQUIRED, Parameter
from retrograd.core.schema_parser import LISTS, parse
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.library.function_schema import pytorch_text
from retrograd.library.schema import CustomSchema, Results
from retrograd.library.tags import Tag, tag_list

TYPE_OF = {
    Tensor: "Tensor", int: "int", float: "float", bool: "bool", str: "str", DType: "dtype", device: "device",
}  # fmt: skip
NUMBERS = {int, float, bool, complex}
EXPECTED = "Tensor, int, float, bool, str, dtype, device, int | float, or a list or optional of them"


def infer_schema(
    prototype_function: Callable,
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
    tags: Any = (),
) -> str:
    """Return the schema of a function, inferred from its annotations, as text with PyTorch's names of types.

    Arguments are tensors, int, float, bool, str, dtypes, devices and numbers (int | float), each as `T | None` or in a
    list; results are tensors, lists and tuples of them and of numbers, or None.  `mutates_args` names the arguments
    that are written to, or is "unknown": then all tensors may be.  `op_name` is prepended.

    With `rg.Tag.inplace` among the tags, the result is the first argument, the one in `mutates_args`.  With
    `rg.Tag.out`, the results are the arguments in `mutates_args`, which are keyword-only.

    Raises ValueError for an argument without annotation or with another one, for a name in `mutates_args` that is not a
    tensor argument, and for a function that is not as a tag says.

    >>> import retrograd as rg
    >>> def scale(x: rg.Tensor, times: int = 2, *, into: rg.Tensor | None = None) -> rg.Tensor: ...
    >>> infer_schema(scale, mutates_args=["into"])
    '(Tensor x, SymInt times=2, *, Tensor(a2!)? into=None) -> Tensor'
    """
    signature = inspect.signature(prototype_function)
    hints = _hints(prototype_function)
    parameters = [_parameter(p, hints) for p in signature.parameters.values()]
    if signature.return_annotation is inspect.Signature.empty:
        raise ValueError(
            "infer_schema(func): No return type annotation was provided. Please add one. It is -> None if the function "
            "returns nothing"
        )
    results = _results(hints["return"])
    mutated = _mutated(mutates_args, parameters)
    parameters = [p._replace(mutated=p.name in mutated) for p in parameters]
    returned = _returned_arguments(tag_list(tags), parameters, results)
    schema = CustomSchema(op_name or "", parameters, results, (), tuple(enumerate(returned)))
    return pytorch_text(parse(str(schema), CustomSchema))


def _hints(function: Callable) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except NameError as error:
        missing = error.name or ""
        hint = next((a for a in function.__annotations__.values() if isinstance(a, str) and missing in a), missing)
        raise ValueError(
            f"infer_schema(func): Unsupported type annotation {hint}. It is not a type. ({error}; define it at the top "
            "of the module, or give the schema)"
        ) from None


def _mutated(names: str | Iterable[str], parameters: list[Parameter]) -> tuple[str, ...]:
    tensors = [p.name for p in parameters if p.is_tensor]
    if names == "unknown":
        return tuple(tensors)
    if isinstance(names, str):
        raise ValueError(
            "infer_schema(func): mutates_args must either be a sequence of the names of the arguments that are mutated "
            f"or the string 'unknown'. Got {names!r}."
        )
    found = tuple(names)
    all_names = [p.name for p in parameters]
    for name in found:
        if name in tensors:
            continue
        if name in all_names:
            raise ValueError(
                f"infer_schema(func): Parameter {name} is in mutable_args but only Tensors or collections of Tensors "
                f"can be mutated; mutates_args has {name!r}, but the tensor arguments are {tensors}"
            )
        raise ValueError(
            f"infer_schema(func): { {name} } in mutates_args were not found in the custom op's signature; "
            f"mutates_args has {name!r}, but the tensor arguments are {tensors}. mutates_args must either be a "
            f"sequence of the names of the arguments that are mutated or the string 'unknown'."
        )
    return tuple([name for name in tensors if name in found])


def _returned_arguments(tags: list[Tag], parameters: list[Parameter], results: Results) -> list[str]:
    """Return the names of the written arguments that are the results, according to the tags `inplace` and `out`."""
    names = [p.name for p in parameters if p.mutated]
    problem = None
    if Tag.inplace in tags:
        problem = _problem_of_inplace(parameters, names, results)
    elif Tag.out in tags:
        problem = _problem_of_out([p for p in parameters if p.mutated], names, results)
    else:
        return []
    if problem:
        raise ValueError(f"infer_schema(func): {problem}.")
    return names


def _problem_of_inplace(parameters: list[Parameter], mutated: list[str], results: Results) -> str | None:
    first = next((p for p in parameters if not p.keyword_only), None)
    if first is None or first.type != "Tensor":
        return "rg.Tag.inplace requires the first positional argument to be a Tensor"
    if mutated != [first.name]:
        return f"rg.Tag.inplace requires mutates_args to contain exactly the first positional argument, got {mutated}"
    if results != "Tensor":
        return "rg.Tag.inplace requires the return annotation to be rg.Tensor"
    return None


def _problem_of_out(mutated: list[Parameter], names: list[str], results: Results) -> str | None:
    if not all(p.keyword_only for p in mutated):
        return "rg.Tag.out requires mutable arguments to be keyword-only"
    if not mutated:
        return "rg.Tag.out requires at least one mutable keyword-only Tensor argument"
    if any(p.type != "Tensor" for p in mutated):
        return "rg.Tag.out only supports mutable keyword-only Tensor arguments"
    if results != ("Tensor" if len(mutated) == 1 else ("Tensor",) * len(mutated)):
        return f"rg.Tag.out requires the return annotation to match the mutable arguments {tuple(names)}"
    return None


def _parameter(p: inspect.Parameter, hints: dict[str, Any]) -> Parameter:
    if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.POSITIONAL_ONLY):
        raise ValueError(
            f"infer_schema(func): {p}: We do not support positional-only args, varargs, or varkwargs: the arguments of "
            f"an operator are named one by one"
        )
    if p.name not in hints:
        raise ValueError(f"infer_schema(func): Parameter {p.name} must have a type annotation.")
    kind = _schema_type(hints[p.name])
    if kind is None:
        raise ValueError(
            f"infer_schema(func): Parameter {p.name} has unsupported type {hints[p.name]!r}. "
            f"{_advice_on_tuple(hints[p.name])}Expected {EXPECTED}."
        )
    return Parameter(p.name, kind, _default(p), p.kind is p.KEYWORD_ONLY)


def _advice_on_tuple(hint: Any) -> str:
    """Return the words on a list in place of a tuple: the list of its members' type, if they have one."""
    if typing.get_origin(hint) is not tuple:
        return ""
    members = {a for a in typing.get_args(hint) if a is not ...}
    example = ""
    if len(members) == 1 and _schema_type(*members):
        (member,) = members
        example = f" For example, list[{getattr(member, '__name__', member)}]."
    return f"We do not support Tuple inputs in schema. As a workaround, please try to use List instead.{example} "


def _default(p: inspect.Parameter) -> Any:
    if p.default is p.empty:
        return REQUIRED
    value = tuple(p.default) if isinstance(p.default, (list, tuple)) else p.default
    for member in value if isinstance(value, tuple) else (value,):
        if member is not None and not isinstance(member, (int, float, str, DType, device)):
            raise ValueError(
                f"infer_schema(func): Parameter {p.name} has an unsupported default value type {type(member)}: "
                f"{member!r}"
            )
    return str(value) if isinstance(value, device) else value


def _schema_type(hint: Any) -> str | None:
    """Return the schema type of an annotation; None if there is none."""
    if hint in TYPE_OF:
        return TYPE_OF[hint]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return _union(args)
    if origin is list or origin is Sequence:
        member = _schema_type(args[0])
        return f"{member}[]" if member == "Tensor?" or member in LISTS else None
    return None


def _union(args: tuple) -> str | None:
    members = [a for a in args if a is not types.NoneType]
    several = "number" if set(members) <= NUMBERS else None
    kind = several if len(members) > 1 else _schema_type(members[0])
    return kind and kind + "?" * (len(members) < len(args))


def _results(hint: Any) -> Results:
    if hint is None or hint is types.NoneType:
        return ()
    if typing.get_origin(hint) is tuple and ... not in typing.get_args(hint):
        return tuple([_results(a) for a in typing.get_args(hint)])
    kind = _schema_type(hint)
    if kind is None:
        raise ValueError(
            f"infer_schema(func): Return has unsupported type {hint!r}. Expected {EXPECTED}, or a tuple of them."
        )
    return kind


suggest_in_module(globals())
