"""A plugin of mypy for classes of operators: their functions are rules without `self`, typed by the schema.

`@op` replaces a class by an operator, which mypy does not follow: for mypy, a call of the class is of any type. In the
class, `vjp_x(g, out, dim)` is a static function whose parameters have the types that the schema gives to these names:
inputs, cotangents and outputs are tensors, and params are what they are declared to be.
"""

import re
from collections.abc import Callable
from functools import partial

from mypy.nodes import (
    ARG_NAMED,
    ARG_NAMED_OPT,
    ARG_OPT,
    ARG_POS,
    ARG_STAR,
    ARG_STAR2,
    CallExpr,
    ClassDef,
    FuncDef,
    NameExpr,
    StrExpr,
    TypeInfo,
)
from mypy.plugin import ClassDefContext, FunctionContext, FunctionSigContext, Plugin
from mypy.types import AnyType, CallableType, Instance, NoneType, Type, TypeOfAny, UnionType, is_unannotated_any
from mypy.types_utils import remove_optional

DEFINITION = "retrograd.core.definition.Definition"
TENSOR = "retrograd.core.tensor_class.Tensor"
BUILTINS = ("int", "float", "bool", "str")
KEY = "operators"  # of the plugin's entries in mypy's cache
PARAMETER = re.compile(r"(\* ?,? ?)?([\w.\[\]]+\??) (\w+)(=[^,]*)?")
KINDS = {(False, False): ARG_POS, (False, True): ARG_OPT, (True, False): ARG_NAMED, (True, True): ARG_NAMED_OPT}
ANYTHING = AnyType(TypeOfAny.special_form)


class Operators(Plugin):
    """Treat classes of operators as operators, and their functions as rules."""

    def get_customize_class_mro_hook(self, fullname: str) -> Callable[[ClassDefContext], None]:
        """Return the function that mypy calls before it analyzes the functions of a class."""
        return declare_rules

    def get_function_signature_hook(self, fullname: str) -> Callable[[FunctionSigContext], CallableType] | None:
        """Return the function that gives the signature of calls of an operator's class."""
        schema = self._schema(fullname)
        return None if schema is None else partial(signature, schema)

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        """Return the function that gives the type of calls of an operator's class: a tensor, if its schema says so."""
        schema = self._schema(fullname)
        if schema is None:
            return None
        tensor = self.lookup_fully_qualified(TENSOR) if schema.endswith("-> Tensor") else None
        return lambda _: Instance(tensor.node, []) if tensor and isinstance(tensor.node, TypeInfo) else ANYTHING

    def _schema(self, fullname: str) -> str | None:
        found = self.lookup_fully_qualified(fullname)
        if found is None or not isinstance(found.node, TypeInfo) or not found.node.has_base(DEFINITION):
            return None
        return found.node.metadata.get(KEY, {}).get("schema", "")


def declare_rules(context: ClassDefContext) -> None:
    """Make the functions of an operator or a family static, and give types to the rules of an operator."""
    if context.cls.info.has_base(DEFINITION):
        schema = schema_of(context.cls)
        names = declared_types(schema, context)
        for function in context.cls.defs.body:
            if isinstance(function, FuncDef) and not function.name.startswith("__"):
                function.is_static = True
                if function.name == "compose" and function.type is not None:  # it says more about the result
                    schema = schema.rpartition(" -> ")[0] + " -> any"
                if names and function.name.startswith(("vjp_", "jvp_", "compose")):
                    declare(function, names, context)
        context.cls.info.metadata[KEY] = {"schema": schema}


def schema_of(cls: ClassDef) -> str:
    """Return the schema that `@op` registers a class with; "" for families."""
    for call in cls.decorators:
        if isinstance(call, CallExpr) and isinstance(call.callee, NameExpr) and call.callee.name == "op":
            return call.args[0].value if isinstance(call.args[0], StrExpr) else ""
    return ""


def declared_types(schema: str, context: ClassDefContext) -> dict[str, Type]:
    """Return the types of the names in the rules of an operator."""
    tensor = context.api.named_type_or_none(TENSOR)
    if tensor is None or not schema:
        return {}
    arguments, _, returns = schema.partition("(")[2].rpartition(") -> ")
    names: dict[str, Type] = {}
    for kind, name in re.findall(r"([\w.\[\]]+\??) (\w+)", arguments + ", " + returns.strip("()")):
        plain: Type = ANYTHING
        if kind.rstrip("?") == "Tensor":
            plain = tensor
        elif kind.rstrip("?") in BUILTINS:
            plain = context.api.named_type("builtins." + kind.rstrip("?"))
        names[name] = UnionType.make_union([plain, NoneType()]) if kind.endswith("?") else plain
    if returns == "Tensor":
        names["g"] = names["out"] = tensor
    names.setdefault("t", tensor)
    return names


def declare(function: FuncDef, names: dict[str, Type], context: ClassDefContext) -> None:
    """Give the parameters of a rule that have no annotations the types of the schema."""
    own = function.name.partition("_")[2]
    known = names | {own: remove_optional(names[own])} if own in names else names  # it is there: it has a cotangent
    types = [ANYTHING if a.kind.is_star() else known.get(a.variable.name, ANYTHING) for a in function.arguments]
    if isinstance(function.type, CallableType):
        pairs = zip(types, function.type.arg_types, strict=True)
        types = [ours if is_unannotated_any(theirs) else theirs for ours, theirs in pairs]
        function.type = function.type.copy_modified(arg_types=types)
    else:
        fallback = context.api.named_type("builtins.function")
        kinds, parameters = function.arg_kinds, function.arg_names
        function.type = CallableType(types, kinds, parameters, ANYTHING, fallback, line=function.line)
    function.unanalyzed_type = function.type


def signature(schema: str, context: FunctionSigContext) -> CallableType:
    """Return the signature of calls of an operator: its schema's; any without a schema."""
    kinds, names = [ARG_STAR, ARG_STAR2], [None, None]
    found = PARAMETER.findall(schema.partition("(")[2].rpartition(") -> ")[0])
    if found and not any(kind.endswith(("[]", "...")) for star, kind, name, default in found):
        kinds, names, only = [], [], False
        for star, _, name, default in found:
            only = only or bool(star)
            kinds.append(KINDS[only, bool(default)])
            names.append(name)
    return context.default_signature.copy_modified([ANYTHING] * len(kinds), kinds, names, ret_type=ANYTHING)


def plugin(version: str) -> type[Plugin]:
    """Return the plugin, for mypy."""
    return Operators
