"""Inference of schemas from the annotations of functions."""

import inspect
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Union

from retrograd.core import Tensor
from retrograd.core.dtype import DType
from retrograd.core.schema import REQUIRED, Parameter
from retrograd.core.schema_parser import LISTS, parse
from retrograd.library.schema import CustomSchema, Results

TYPE_OF = {Tensor: "Tensor", int: "int", float: "float", bool: "bool", str: "str", DType: "dtype"}
NUMBERS = {int, float, bool, complex}
EXPECTED = "Tensor, int, float, bool, str, dtype, int | float, or a list or optional of them"


def infer_schema(
    prototype_function: Callable,
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
    tags: Any = (),
) -> str:
    """Return the schema of a function, inferred from its annotations, as text.

    Arguments are tensors, int, float, bool, str, dtypes and numbers (int | float), each as `T | None` or in a list;
    results are tensors, lists and tuples of them and of numbers, or None.  `mutates_args` names the arguments that are
    written to, or is "unknown": then all tensors may be.  `op_name` is prepended.  `tags` is ignored.

    Raises ValueError for an argument without annotation or with another one, and for a name in `mutates_args` that is
    not a tensor argument.

    >>> import retrograd as rg
    >>> def scale(x: rg.Tensor, factor: float = 2.0, *, into: rg.Tensor | None = None) -> rg.Tensor: ...
    >>> infer_schema(scale, mutates_args=["into"])
    '(Tensor x, float factor=2.0, *, Tensor(a2!)? into=None) -> Tensor'
    """
    signature = inspect.signature(prototype_function)
    hints = _hints(prototype_function)
    parameters = [_parameter(p, hints) for p in signature.parameters.values()]
    if signature.return_annotation is inspect.Signature.empty:
        raise ValueError("infer_schema: the function has no annotation of its result; write -> None if there is none")
    results = _results(hints["return"])
    mutated = _mutated(mutates_args, parameters)
    parameters = [p._replace(mutated=p.name in mutated) for p in parameters]
    return str(parse(str(CustomSchema(op_name or "", parameters, results)), CustomSchema))


def _hints(function: Callable) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except NameError as error:
        raise ValueError(
            f"infer_schema: an annotation is not defined where the function's module can see it: {error}; define it at "
            "the top of the module, or give the schema"
        ) from None


def _mutated(names: str | Iterable[str], parameters: list[Parameter]) -> tuple[str, ...]:
    tensors = [p.name for p in parameters if p.is_tensor]
    if names == "unknown":
        return tuple(tensors)
    found = (names,) if isinstance(names, str) else tuple(names)
    for name in found:
        if name not in tensors:
            raise ValueError(f"infer_schema: mutates_args has {name!r}, but the tensor arguments are {tensors}")
    return tuple([name for name in tensors if name in found])


def _parameter(p: inspect.Parameter, hints: dict[str, Any]) -> Parameter:
    if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
        raise ValueError(f"infer_schema: {p}: the arguments of an operator are named one by one")
    if p.name not in hints:
        raise ValueError(f"infer_schema: the argument {p.name!r} has no annotation")
    kind = _kind(hints[p.name])
    if kind is None:
        raise ValueError(f"infer_schema: {p.name!r} is annotated {hints[p.name]!r}; expected {EXPECTED}")
    return Parameter(p.name, kind, _default(p), p.kind is p.KEYWORD_ONLY)


def _default(p: inspect.Parameter) -> Any:
    if p.default is p.empty:
        return REQUIRED
    value = tuple(p.default) if isinstance(p.default, (list, tuple)) else p.default
    for member in value if isinstance(value, tuple) else (value,):
        if member is not None and not isinstance(member, (int, float, str, DType)):
            raise ValueError(f"infer_schema: the default of {p.name!r} is {member!r}, which a schema can't say")
    return value


def _kind(hint: Any) -> str | None:
    """Return the schema type of an annotation; None if there is none."""
    if hint in TYPE_OF:
        return TYPE_OF[hint]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return _union(args)
    if origin is list or origin is Sequence or (origin is tuple and args[1:] == (...,)):
        member = _kind(args[0])
        return f"{member}[]" if member and member.removesuffix("?") in LISTS else None
    return None


def _union(args: tuple) -> str | None:
    members = [a for a in args if a is not types.NoneType]
    several = "number" if set(members) <= NUMBERS else None
    kind = several if len(members) > 1 else _kind(members[0])
    return kind and kind + "?" * (len(members) < len(args))


def _results(hint: Any) -> Results:
    if hint is None or hint is types.NoneType:
        return ()
    if typing.get_origin(hint) is tuple and typing.get_args(hint)[1:] != (...,):
        return tuple([_results(a) for a in typing.get_args(hint)])
    kind = _kind(hint)
    if kind is None:
        raise ValueError(f"infer_schema: the result is annotated {hint!r}; expected {EXPECTED}, or a tuple of them")
    return kind
