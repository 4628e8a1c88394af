"""Schemas of operators in the form of PyTorch's `FunctionSchema`: `op._schema`, and schemas as text."""

import json
from typing import Any

from retrograd.core.schema import REQUIRED, Parameter
from retrograd.library.schema import CustomSchema, Results

PYTORCH_TYPES = {"int": "SymInt", "number": "Scalar", "dtype": "ScalarType", "device": "Device"}


class AliasInfo:
    """The memory of an argument or result: names of it before and after a call, and whether the call writes to it."""

    def __init__(self, name: str, is_write: bool) -> None:
        self.is_write = is_write
        self.before_set = {name}
        self.after_set = {name}


class Argument:
    """An argument, or a result, of a `FunctionSchema`."""

    def __init__(
        self, name: str, kind: str, default: Any, alias_info: AliasInfo | None, *, kwarg_only: bool = False
    ) -> None:
        self.name = name
        self.type = type_text(kind)
        self.default_value = None if default is REQUIRED else _as_list(default)
        self.alias_info = alias_info
        self.kwarg_only = kwarg_only
        self._has_default = default is not REQUIRED

    @property
    def is_write(self) -> bool:
        """Whether a call writes to the argument."""
        return self.alias_info is not None and self.alias_info.is_write

    @property
    def is_out(self) -> bool:
        """Whether a call writes to the argument, which is keyword-only."""
        return self.kwarg_only and self.is_write

    def has_default_value(self) -> bool:
        """Return whether a call may omit the argument."""
        return self._has_default

    def __repr__(self) -> str:
        return f"Argument({self.type} {self.name})"


class FunctionSchema:
    """A schema with PyTorch's attributes.

    >>> import retrograd as rg
    >>> @rg.library.custom_op("docs::scaled", mutates_args=())
    ... def scaled(x: rg.Tensor, *, times: int = 2) -> rg.Tensor:
    ...     return x * times
    >>> scaled._schema
    docs::scaled(Tensor x, *, SymInt times=2) -> Tensor
    >>> [(a.name, a.type, a.kwarg_only, a.default_value) for a in scaled._schema.arguments]
    [('x', 'Tensor', False, None), ('times', 'int', True, 2)]
    """

    def __init__(self, schema: CustomSchema) -> None:
        self.name, _, self.overload_name = schema.name.partition(".")
        self._text = pytorch_text(schema)
        marks = {argument: index for index, argument in schema.aliases}
        self.arguments = [_argument(i, p, p.name in marks) for i, p in enumerate(schema.parameters)]
        by_name = {a.name: a for a in self.arguments}
        results = schema.declared_results if isinstance(schema.declared_results, tuple) else (schema.declared_results,)
        aliases = {index: by_name[argument].alias_info for index, argument in schema.aliases}
        self.returns = [
            Argument("", kind if isinstance(kind, str) else "any", REQUIRED, aliases.get(i))
            for i, kind in enumerate(results)
        ]
        self.is_mutable = any(a.is_write for a in self.arguments)

    def __repr__(self) -> str:
        return self._text


def _argument(index: int, p: Parameter, aliased: bool) -> Argument:
    alias = AliasInfo(f"a{index}", p.mutated) if p.mutated or aliased else None
    return Argument(p.name, p.type, p.default, alias, kwarg_only=p.keyword_only)


def _as_list(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def type_text(kind: str) -> str:
    """Return a type as PyTorch writes the types of a `FunctionSchema`: "Optional[List[int]]" for "int[]?"."""
    if kind.endswith("?"):
        return f"Optional[{type_text(kind[:-1])}]"
    if kind.endswith("[]"):
        return f"List[{type_text(kind[:-2])}]"
    return {"dtype": "int", "device": "Device"}.get(kind, kind)


def pytorch_text(schema: CustomSchema) -> str:
    """Return a schema as text with PyTorch's names of types, and double quotes."""
    parameters = [p._replace(type=_pytorch_type(p.type), default=_quoted(p.default)) for p in schema.parameters]
    return str(CustomSchema(schema.name, parameters, _pytorch_results(schema.declared_results), (), schema.aliases))


def _pytorch_type(kind: str) -> str:
    base = kind.rstrip("[]?")
    return PYTORCH_TYPES.get(base, base) + kind[len(base) :]


def _pytorch_results(results: Results) -> Results:
    return tuple(map(_pytorch_results, results)) if isinstance(results, tuple) else _pytorch_type(results)


class _Quoted(str):
    """A string whose repr has double quotes."""

    def __repr__(self) -> str:
        return json.dumps(str(self))


def _quoted(value: Any) -> Any:
    return _Quoted(value) if isinstance(value, str) else value
