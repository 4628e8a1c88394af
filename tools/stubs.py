"""Write the type stubs of the names that the registry adds to `retrograd` and `Tensor`, and the table of their modules.

python tools/stubs.py            # write
python tools/stubs.py --check    # exit with 1 and name the files that are out of date
"""

import ast
import inspect
import re
import sys
import typing
from collections.abc import Iterator
from pathlib import Path

import contents

import retrograd as rg
import retrograd.interop.array_namespace
import retrograd.interop.notebooks
import retrograd.sparse  # these add functions and methods, and are imported on first use
from retrograd import ops
from retrograd.core import Operator, Tensor
from retrograd.core.schema import REQUIRED, Parameter, Schema
from retrograd.foundation.lazy_imports import homes

PACKAGE = Path(rg.__file__).parent
HEADER = """\
# Made from the registry of operators by tools/stubs.py: change those, then run `make stubs`.
# ruff: noqa
# fmt: off
"""
# Methods are called `float` and `bool`, so the builtins need names of their own.
BUILTINS = """\
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, str as _str
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Self, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
"""
ALIASES = """\
_Number = _bool | _int | _float | _complex
_Operand = Tensor | NDArray[Any] | np.generic | _Number
_Ints = _int | Sequence[_int]
"""
TENSOR = "from retrograd.core.tensor_class import Tensor as Tensor\n"
RETURN_TYPES = "from retrograd import return_types as return_types\n"
PRIVATE = {name: f"_{name}" for name in ("bool", "complex", "float", "int", "str")}

TYPES = {
    "Tensor": "_Operand",
    "Tensor[]": "Sequence[_Operand]",
    "int": "_int",
    "float": "_float",
    "number": "_Number",
    "bool": "_bool",
    "str": "_str",
    "int[]": "_Ints",
    "int...": "_Ints",
    "dims": "_Ints | _bool",
    "dtype": "DTypeLike",
    "any": "Any",
}
# Types of attributes, which the sources do not declare.
HELD = {
    "Tensor": "H T data imag mH mT real",
    "Tensor | None": "_grad grad",
    "_bool": "_overrides _requires_grad _saved is_leaf requires_grad retains_grad",
    "_int": "_output_nr ndim output_nr",
    "Any": "device size",
    "np.dtype[Any]": "dtype",
    "tuple[_int, ...]": "shape",
}
FIELDS = {name: kind for kind, names in HELD.items() for name in names.split()}
OWN_FIELDS = (
    "_grad", "_grad_fn", "_hooks", "_overrides", "_requires_grad", "_saved", "_view", "level", "_output_nr", "tag",
    "value", "version",
)  # fmt: skip
REFLECTED = ("add", "sub", "mul", "truediv", "floordiv", "mod", "matmul", "pow")
AUGMENTED = ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow")
BINARY = (*REFLECTED, *(f"r{name}" for name in REFLECTED), *AUGMENTED, "lt", "le", "gt", "ge")

# ------------------------------------------------------------------------------------------------- operators


def operator_stub(name: str, operator: Operator, method: bool) -> str:
    """Return one operator as a function, or as a method: overloads, if params decide the type of the result."""
    schema, result, flags = operator.called_as, ops.result_of(operator), []
    if typing.get_origin(result) is typing.Annotated:
        whole, flags = typing.get_args(result)[0], result.__metadata__[0].split()
        result = next(kind for kind in typing.get_args(whole) if kind is not Tensor)
    is_tuple = typing.get_origin(result) is tuple
    own = return_type_name(operator) or (annotation(result) if is_tuple else result_type(schema.returns))
    overloads = [schema_stub(name, schema, own, None, method, {flag: required_flag(schema, flag)}) for flag in flags]
    plain = {flag: optional_flag(schema, flag) for flag in flags}
    last = schema_stub(name, schema, result_type(schema.returns) if flags else own, operator.__doc__, method, plain)
    return "".join("@overload\n" + stub for stub in [*overloads, last]) if flags else last


def return_type_name(operator: Operator) -> str | None:
    """Return the name in `return_types` of the class of an operator's results."""
    name = operator.public_names[0].replace(".", "_") if operator.public_names else operator.name
    return f"return_types.{name}" if operator.definition.result_class else None


def required_flag(schema: Schema, flag: str) -> str:
    """Return a required parameter of the values that turn a result into a tuple."""
    declared = next(p.type for p in schema.parameters if p.name == flag)
    return f"{flag}: {'Literal[True]' if declared == 'bool' else '_int'}"


def optional_flag(schema: Schema, flag: str) -> str:
    """Return an optional parameter of the other values."""
    declared = next(p.type for p in schema.parameters if p.name == flag)
    if declared == "any":
        return f"{flag}: Tensor | None = None"
    return f"{flag}: Literal[False] = False" if declared == "bool" else f"{flag}: None = None"


def schema_stub(
    name: str, schema: Schema, result: str, doc: str | None, method: bool, given: dict[str, str] | None = None
) -> str:
    """Return a function, or a method, whose first parameter is the tensor itself; `given` are other parameters."""
    given = given or {}
    parts, starred, optional = ["self"] if method else [], False, False
    for p in schema.parameters[1:] if method else schema.parameters:
        text = given.get(p.name) or parameter(p)
        if (p.keyword_only or (optional and "=" not in text)) and not starred:
            parts.append("*")
            starred = True
        parts.append(text)
        starred, optional = starred or p.type == "int...", optional or "=" in text
    return function(name, ", ".join(parts), result, doc)


def parameter(p: Parameter) -> str:
    """Return a parameter with its type and default."""
    if p.type == "int...":
        return f"*{p.name}: {TYPES[p.type]}"
    kind = TYPES[p.type.rstrip("?")] + (" | None" if p.type.endswith("?") and p.type != "any?" else "")
    return f"{p.name}: {kind}" + ("" if p.default is REQUIRED else f" = {p.default!r}")


def result_type(declared: str) -> str:
    """Return the Python type of a schema's result."""
    if declared.startswith("("):
        return f"tuple[{', '.join('Tensor' for _ in declared.split(','))}]"
    return {"Tensor": "Tensor", "Tensor[]": "tuple[Tensor, ...]"}.get(declared, "Any")


def function(name: str, arguments: str, result: str, doc: str | None) -> str:
    """Return a `def` with the first line of its docstring."""
    first = inspect.cleandoc(doc).splitlines()[0] if doc else ""
    body = f'\n    """{first}"""' if first else " ..."
    return f"def {name}({arguments}) -> {result}:{body}\n"


# ----------------------------------------------------------------------------------- names other than operators


def python_stub(name: str, member: object, method: bool = True) -> str:
    """Return the stub of a Python function or method: its own signature, `Any` where nothing is annotated.

    If the function has overloads, these have its docstring.
    """
    overloads = typing.get_overloads(member)
    if overloads:
        return "".join(f"@overload\n{written_stub(name, one, method, member.__doc__)}" for one in overloads)
    return written_stub(name, member, method, member.__doc__)


def written_stub(name: str, member: object, method: bool, doc: str | None) -> str:
    """Return the stub of a Python function without overloads, or of one of these."""
    signature = inspect.signature(member)
    parts, starred = ["self"] if method else [], False
    for p in list(signature.parameters.values())[method:]:
        if p.kind is p.KEYWORD_ONLY and not starred:
            parts.append("*")
        stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        starred = starred or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        default = "" if p.default is p.empty else f" = {default_text(p.default)}"
        parts.append(f"{stars}{p.name}: {annotation(p.annotation)}{default}")
    return function(name, ", ".join(parts), result_stub(name, signature.return_annotation), doc)


def result_stub(function: str, value: object) -> str:
    """Return the annotation of a function's result; a named tuple has the function's name in `return_types`."""
    names = [name for name, kind in ops.return_types().items() if kind is value and name.endswith(function)]
    return f"return_types.{min(names, key=len)}" if names else annotation(value)


def default_text(default: object) -> str:
    """Return a default as in the stubs: `...` if it is not a literal."""
    return repr(default) if default is None or isinstance(default, (bool, int, float, str, tuple)) else "..."


MODULE = re.compile(r"\b\w+\.(?=\w)")
PAIRS = [f"tuple[{', '.join(['Tensor'] * n)}]" for n in (2, 3)]


def annotation(value: object) -> str:
    """Return an annotation as in the stubs: `Any` if it needs imports of its own."""
    if value is inspect.Signature.empty:
        return "Any"
    text = value if isinstance(value, str) else inspect.formatannotation(value)
    parts = [PRIVATE.get(part, MODULE.sub("", part)) for part in text.split(" | ")]
    known = {*PRIVATE.values(), "Tensor", "None", "Any", "tuple[Tensor, ...]", *PAIRS}
    return " | ".join(parts) if set(parts) <= known else "Any"


def members() -> Iterator[str]:
    """Yield all members of `Tensor`: fields, Python's operators, then methods and properties by name."""
    internal = "level: Any = None, tag: Any = None, requires_grad: Any = ..."
    yield f"def __new__(cls, value: Any = ..., {internal}, *sizes: _int) -> Self: ...\n"
    yield "def __init__(self, *args: Any, **kwargs: Any) -> None: ...\n"
    for name in OWN_FIELDS:
        yield f"{name}: {FIELDS.get(name, 'Any')}\n"
    for name in BINARY:
        yield f"def __{name}__(self, other: _Operand) -> Tensor: ...\n"
    for name in ("eq", "ne"):
        yield f"def __{name}__(self, other: _Operand) -> Tensor: ...  # type: ignore[override]\n"
    yield "def __neg__(self) -> Tensor: ...\ndef __pos__(self) -> Tensor: ...\ndef __hash__(self) -> _int: ...\n"
    for name in sorted({n for cls in Tensor.__mro__[:-1] for n in vars(cls)} - {f"__{n}__" for n in AUGMENTED}):
        found = inspect.getattr_static(Tensor, name)
        if isinstance(found, Operator):
            yield operator_stub(name, found, True)
        elif hasattr(found, "writes"):
            yield schema_stub(name, found.writes.schema, "Tensor", found.__doc__, True)
        elif inspect.isfunction(found) and (not name.startswith("_") or found.__module__.startswith("retrograd.ops")):
            yield SPECIAL.get(name) or python_stub(name, found)
        elif isinstance(found, property) or (inspect.isgetsetdescriptor(found) and not name.startswith("_")):
            yield from property_stub(name, found)


def property_stub(name: str, found: object) -> Iterator[str]:
    """Yield an attribute, with a setter if it has one."""
    if name in OWN_FIELDS:
        return
    kind = FIELDS.get(name, "Any")
    yield "@property\n" + function(name, "self", kind, found.__doc__)
    if getattr(found, "fset", None) is not None:
        yield f"@{name}.setter\ndef {name}(self, value: {kind}) -> None: ...\n"


# Whose types the sources can't name: they do not import NumPy.
SPECIAL = {
    "__array__": "def __array__(self, dtype: Any = None, copy: _bool | None = None) -> NDArray[Any]: ...\n",
    "__iter__": "def __iter__(self) -> Iterator[Tensor]: ...\n",
    "numpy": "def numpy(self) -> NDArray[Any]: ...\n",
}


def imports() -> str:
    """Return the imports of `retrograd/__init__.py`, and the packages that it imports lazily."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    lines = [ast.unparse(node) for node in tree.body if isinstance(node, ast.ImportFrom)]
    late = {name: home for name, home in homes("retrograd").items() if home != "retrograd.ops.functions"}
    return "\n".join(lines + [lazy_import(name, home) for name, home in sorted(late.items())])


def lazy_import(name: str, home: str) -> str:
    """Return the import of a lazily imported name; a package is not imported here, since it may need an extra."""
    package = home == f"retrograd.{name}"
    module = "retrograd" if package else getattr(getattr(rg, name), "__module__", home)  # a dtype has none
    return f"from {module} import {name} as {name}"


def public_stub(home: str) -> str:
    """Return the stub of a name in `rg.<home>`: operator, function or class."""
    return "\n".join(member_stub(name, member) for name, member in sorted(ops.public(home).items()))


def member_stub(name: str, member: object) -> str:
    """Return the stub of a public operator, function or class."""
    if isinstance(member, Operator):
        return operator_stub(name, member, False)
    if hasattr(member, "called_as"):
        return schema_stub(name, member.called_as, result_type(member.called_as.returns), member.__doc__, False)
    if inspect.isclass(member):
        return f"from {member.__module__} import {member.__name__} as {name}\n"
    return python_stub(name, member, False)


HOMES = {
    "linalg": "linalg",
    "masked": "masked",
    "signal.windows": "signal/windows",
    "fft": "fft",
    "special": "special",
    "nn.functional": "nn/functional",
}


def return_types() -> str:
    """Return a class for each public name of an operator that returns named results, typed as a named tuple."""
    return "\n".join(tuple_stub(name, kind) for name, kind in sorted(ops.return_types().items()))


def tuple_stub(name: str, kind: type) -> str:
    """Return the class of named results: tensors, or tuples of tensors."""
    fields = "".join(f"    {field}: {annotation(declared)}\n" for field, declared in kind.__annotations__.items())
    return f'class {name}(NamedTuple):\n    """{inspect.cleandoc(kind.__doc__).splitlines()[0]}"""\n{fields}'


def stubs() -> dict[Path, str]:
    """Return each stub file and its expected text."""
    body = "\n".join("    " + line if line else "" for stub in members() for line in stub.splitlines())
    tensor = f'class Tensor:\n    """{Tensor.__doc__.splitlines()[0]}"""\n\n{body}\n'
    root = f"{imports()}\n\n{ALIASES}\n__version__: _str\n\n{public_stub('')}"
    found = {
        PACKAGE / "core" / "tensor_class.pyi": f"{HEADER}{BUILTINS}\n{RETURN_TYPES}\n{tensor}\n{ALIASES}",
        PACKAGE / "return_types.pyi": f"{HEADER}{BUILTINS}\n{TENSOR}\n{return_types()}",
        PACKAGE / "__init__.pyi": f"{HEADER}{BUILTINS}\n{root}",
        PACKAGE / "ops" / "contents.py": contents.text(),
    }
    for home, path in HOMES.items():
        names = f"{RETURN_TYPES}{TENSOR}"
        found[PACKAGE / f"{path}.pyi"] = f"{HEADER}{BUILTINS}\n{names}\n{ALIASES}\n{public_stub(home)}"
    return found


def main() -> int:
    """Write the stubs, or compare."""
    stale = [(path, text) for path, text in stubs().items() if not path.exists() or path.read_text() != text]
    for path, text in stale:
        print(f"{path.name} is out of date" if "--check" in sys.argv else f"wrote {path.name}")
        if "--check" not in sys.argv:
            path.write_text(text)
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
