"""Functions generated from signatures: a target under the name and with the arguments of another library."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

from retrograd.core.schema import ALIASES

_COMMA = re.compile(r",\s*(?![^()]*\))")  # outside of the parentheses of a default
_ARGUMENT = re.compile(r"(~?&?|\*)(\w+)(?:->(\w+))?(?:=(.+))?")


class Operands(NamedTuple):
    """How a library converts operands before an operator is called; None: not at all."""

    convert: Callable | None  # an operand
    to_floating: Callable | None  # an operand marked by ~
    promote: Callable  # the operands marked by &, together


class Argument(NamedTuple):
    """An argument of a signature: its mark, its name, the target's name for it, and the source of its default."""

    mark: str
    name: str
    target: str | None
    default: str | None


@cache
def parse(signature: str) -> tuple[str, tuple[str | Argument, ...]]:
    """Return the name and the arguments in a signature such as "linalg.cross(&x1, &x2, /, *, axis->dim=-1)".

    `~` marks an operand that becomes floating, `&` operands of one promoted dtype; `->` gives the target's name.

    >>> parse("tril(x, /, *, k->diagonal=0)")[1][-1]
    Argument(mark='', name='k', target='diagonal', default='0')
    """
    name, _, rest = signature.removesuffix(")").partition("(")
    return name, tuple([_argument(part) for part in _COMMA.split(rest)])


def _argument(part: str) -> str | Argument:
    if part in ("/", "*"):
        return part
    match = _ARGUMENT.fullmatch(part)
    if not match:
        raise ValueError(f"expected an argument of a signature, got {part!r}")
    return Argument(match[1], match[2], match[3], match[4])


def function_with_signature(
    signature: str, target: Callable, operands: Operands, module: str, *, finish: Callable | None = None, **fixed: Any
) -> Callable:
    """Return a function with this signature that calls the target, with its own names and fixed arguments.

    It has the first line of the target's docstring. TypeError if an operator has no parameter for an argument.

    >>> from retrograd import amax, ones
    >>> plain = Operands(None, None, lambda *xs: xs)
    >>> largest = function_with_signature("largest(a, /, axis=None)", amax, plain, __name__)
    >>> largest(ones(2, 3), 0)
    tensor([1., 1., 1.])
    """
    dotted, arguments = parse(signature)
    name = dotted.rpartition(".")[2]
    parameters = [a for a in arguments if isinstance(a, Argument)]
    call = ", ".join(_argument_sources(parameters, target, operands, fixed, dotted))
    joined = ", ".join(_floating_source(a, operands) for a in parameters if "&" in a.mark)
    lines = [
        f"def function({', '.join(a if isinstance(a, str) else _parameter_source(a) for a in arguments)}):",
        *([f" {', '.join(a.name for a in parameters if '&' in a.mark)} = _joined({joined})"] if joined else []),
        f" return {f'_finish(_target({call}))' if finish else f'_target({call})'}",
    ]
    namespace = {
        "_target": target, "_finish": finish, "_fixed": fixed, "__name__": module,
        "_one": operands.convert, "_floating": operands.to_floating, "_joined": operands.promote,
    }  # fmt: skip
    exec(_compile("\n".join(lines)), namespace)
    function: Any = namespace["function"]
    function.__code__ = function.__code__.replace(co_name=name, co_qualname=name)  # tracebacks show it
    function.__name__ = function.__qualname__ = name
    function.__doc__ = _first_line(target)
    return function


@cache
def _compile(source: str) -> Any:
    """Return the code of a function's source, which many functions have in common except for their names."""
    return compile(source, f"<{__name__}>", "exec")


def _parameter_source(a: Argument) -> str:
    return ("*" if a.mark == "*" else "") + a.name + ("" if a.default is None else f"={a.default}")


def _first_line(target: Callable) -> str:
    """Return the first line of a docstring with the word for dimensions that these libraries use."""
    line = (target.__doc__ or "").partition("\n")[0]
    if "dim" not in line:
        return line
    return re.sub(r"\bdim\b", "axis", line).replace("dimension", "axis").replace("axiss", "axes")


# ------------------------------------------------------------------------------------------------- arguments

# Arguments that operators lack: they have no effect on tensors, except `out=`, which is written to elsewhere.
_IGNORED = ("order", "out", "subok")


def _argument_sources(
    parameters: list[Argument], target: Callable, operands: Operands, fixed: dict, dotted: str
) -> Iterator[str]:
    """Yield the source of each argument of the call: operands by position as far as they lead, the others by name."""
    schema = getattr(target, "schema", None)
    if schema is None:
        yield from _sources_without_schema(parameters)
    else:
        given = dict(_match_schema(parameters, schema, operands, dotted))
        leading = True
        for parameter in schema.parameters:
            source = given.get(parameter.name)
            leading = leading and source is not None and not parameter.keyword_only
            if source is not None:
                yield source if leading else f"{parameter.name}={source}"
    if fixed:
        yield "**_fixed"


def _sources_without_schema(parameters: list[Argument]) -> Iterator[str]:
    """Yield the arguments of a target without a schema: required ones by position, the others by name."""
    yield from (a.name for a in parameters if a.default is None)
    yield from (
        f"{a.target or a.name}={a.name}" for a in parameters if a.default is not None and a.name not in _IGNORED
    )


def _match_schema(
    parameters: list[Argument], schema: Any, operands: Operands, dotted: str
) -> Iterator[tuple[str, str]]:
    """Yield the operator's name and the source of each argument: by its name, a synonym, or as the next operand."""
    names = {p.name for p in schema.parameters}
    unnamed = [p.name for p in schema.inputs if p.name not in {a.target or a.name for a in parameters}]
    for a in parameters:
        own = a.target or (a.name if a.name in names else ALIASES.get(a.name))
        if own in names:
            pass
        elif a.default is None and unnamed:
            own = unnamed.pop(0)
        elif a.name in _IGNORED:
            continue
        else:
            raise TypeError(f"{dotted}: the operator {schema} has no parameter for {a.name!r}")
        is_input = own in {p.name for p in schema.inputs}
        yield str(own), _operand_source(a, operands) if is_input else a.name


def _operand_source(a: Argument, operands: Operands) -> str:
    if "&" in a.mark:
        return a.name
    if a.mark == "*":
        return f"[_one(x) for x in {a.name}]" if operands.convert else f"list({a.name})"
    if a.mark == "~":
        return _floating_source(a, operands)
    return f"_one({a.name})" if operands.convert and a.default is None else a.name


def _floating_source(a: Argument, operands: Operands) -> str:
    return f"_floating({a.name})" if "~" in a.mark and operands.to_floating else a.name
