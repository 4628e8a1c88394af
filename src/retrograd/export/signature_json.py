"""The signature of a graph as JSON: parameters, structures of arguments and result, mutations, varying sizes."""

import inspect
from typing import Any

from retrograd.core import Aval
from retrograd.export.dynamic_shapes import DynamicSignature, Guard, InputDim, Range, Sizes, linear
from retrograd.export.pytree_json import read_tree, write_tree
from retrograd.export.tensor_json import is_valid_name
from retrograd.export.traced_size import COMPARISONS
from retrograd.foundation.symbolic_expr import Expression
from retrograd.fx.signature import Constant, Input, Signature
from retrograd.fx.traced_writes import ATTRIBUTE, BUFFER, CONSTANT, PARAMETER, USER_INPUT, Mutation
from retrograd.interop.json_values import Codec, Encoding, StorageError, add_encoding, expect, fields, members, text

_KIND: Any = type(inspect.Parameter.KEYWORD_ONLY)
KINDS = {kind.name: kind for kind in _KIND}
MUTATION_KINDS = (ATTRIBUTE, BUFFER, CONSTANT, PARAMETER, USER_INPUT)


def write_signature(signature: Signature, codec: Codec) -> dict[str, Any]:
    """Return a signature as JSON; StorageError names a default or constant that cannot be stored."""
    return {
        "parameters": [_write_parameter(p, codec) for p in signature.parameters.parameters.values()],
        "arguments": [[name, write_tree(spec)] for name, spec in signature._specs.items()],
        "leaves": [_write_leaf(leaf, codec) for leaf in signature._leaves],
        "result": None if signature._result is None else write_tree(signature._result),
        "knows_sizes": signature.knows_sizes,
        "mutations": [list(mutation) for mutation in signature.mutations],
        "same": [list(pair) for pair in signature._returned_targets.items()],
        "sizes": _write_sizes(signature.sizes) if isinstance(signature, DynamicSignature) else None,
    }


def _write_parameter(parameter: inspect.Parameter, codec: Codec) -> list:
    default = [] if parameter.default is parameter.empty else [_write_value(parameter.default, parameter.name, codec)]
    return [parameter.name, parameter.kind.name, default]


def _write_leaf(leaf: Input | Constant, codec: Codec) -> list:
    kind = "input" if isinstance(leaf, Input) else "constant"
    return [kind, leaf.name, _write_value(leaf[1], leaf.name, codec)]


def _write_value(value: Any, name: str, codec: Codec) -> Any:
    try:
        return codec.write(value)
    except StorageError as error:
        raise StorageError(f"{name}: {error}") from None


def read_signature(data: Any, codec: Codec) -> Signature:
    """Return the signature encoded by JSON; StorageError if it is invalid or inconsistent."""
    none = type(None)
    parameters, arguments, leaves, result, knows_sizes, mutations, same, sizes = fields(
        data, "a signature", parameters=list, arguments=list, leaves=list, result=(dict, str, none),
        knows_sizes=bool, mutations=list, same=list, sizes=(dict, none),
    )  # fmt: skip
    parsed = _with_parameters(parameters, codec)
    for argument in arguments:
        name, spec = members(argument, 2, "an argument and its structure")
        expect(type(name) is str and name in parsed.parameters.parameters, "the name of a parameter", name)
        expect(name not in parsed._specs, "each argument once", name)
        parsed._specs[name] = read_tree(spec)
    expect(len(parsed._specs) == len(parameters), "an argument for each parameter", sorted(parsed._specs))
    parsed._leaves = [_read_leaf(leaf, codec) for leaf in leaves]
    count = sum(spec.num_leaves for spec in parsed._specs.values())
    expect(len(leaves) == count, f"{count} leaves of the arguments", len(leaves))
    expect(result is not None, "the structure of the result", result)
    parsed._result, parsed.knows_sizes = read_tree(result), knows_sizes
    _read_mutations(parsed, mutations, same)
    return parsed if sizes is None else DynamicSignature.of(parsed, _read_sizes(sizes, parsed))


def _with_parameters(data: list, codec: Codec) -> Signature:
    """Return an empty signature with these parameters."""
    try:
        parameters = inspect.Signature([_read_parameter(entry, codec) for entry in data])
    except (TypeError, ValueError) as error:  # invalid names, or an impossible order
        raise StorageError(f"the parameters are invalid: {error}") from None

    def function() -> None:
        """Replace the traced function, of which only the signature is needed."""

    function.__signature__ = parameters  # type: ignore[attr-defined]
    return Signature(function)


def _read_parameter(data: Any, codec: Codec) -> inspect.Parameter:
    name, kind, default = members(data, 3, "a parameter")
    expect(type(kind) is str and kind in KINDS, "the kind of a parameter", kind)
    expect(type(default) is list and len(default) <= 1, "at most one default", default)
    given = codec.read(default[0]) if default else inspect.Parameter.empty
    return inspect.Parameter(text(name, "the name of a parameter"), KINDS[kind], default=given)


def _read_leaf(data: Any, codec: Codec) -> Input | Constant:
    kind, name, value = members(data, 3, "a leaf of the arguments")
    value_read = codec.read(value)
    if kind == "input":
        expect(type(value_read) is Aval, "a shape and a dtype", value)
        return Input(text(name, "a name"), value_read)
    expect(kind == "constant", "an input or a constant", kind)
    return Constant(text(name, "a name"), value_read)


# --------------------------------------------------------------------------------- mutations


def _read_mutations(parsed: Signature, mutations: list, same: list) -> None:
    names = {leaf.name for leaf in parsed.inputs}
    found = []
    for entry in mutations:
        kind, target, recorded = members(entry, 3, "a write")
        expect(
            kind in MUTATION_KINDS and type(recorded) is bool, f"a write to one of {', '.join(MUTATION_KINDS)}", entry
        )
        expect(
            target in names if kind == USER_INPUT else type(target) is str and is_valid_name(target), "a target", target
        )
        found.append(Mutation(kind, target, recorded))
    pairs = {}
    for pair in same:
        leaf, number = members(pair, 2, "a result and the index of a write")
        fits = type(leaf) is type(number) is int and 0 <= leaf < parsed._result.num_leaves and 0 <= number < len(found)
        expect(fits, "the indices of a result and of a write", pair)
        pairs[leaf] = number
    parsed.learn_mutations(found, pairs)


# ---------------------------------------------------------------------------------------- varying sizes


def _write_sizes(sizes: Sizes) -> dict[str, Any]:
    return {
        "places": [[*place, _write_size(size)] for place, size in sizes.places.items()],
        "ranges": [[name, *limits] for name, limits in sizes.ranges.items()],
        "guards": [_write_guard(guard) for guard in sizes.guards],
    }


def _write_guard(guard: Guard) -> list:
    return [guard.op, _write_expression(guard.left), _write_expression(guard.right), guard.outcome, guard.line]


def _write_expression(expression: Expression) -> list:
    return [[[c, list(dims)] for c, dims in expression.terms], expression.over]


def _read_sizes(data: Any, signature: Signature) -> Sizes:
    places, ranges, guards = fields(data, "sizes", places=list, ranges=list, guards=list)
    limits = dict(_read_range(entry) for entry in ranges)
    ndims = {entry.name: entry.aval.ndim for entry in signature.inputs}
    found = {}
    for entry in places:
        name, dim, size = members(entry, 3, "a dimension of an input")
        fits = type(name) is str and type(dim) is int and 0 <= dim < ndims.get(name, 0)
        expect(fits, "a dimension of an input", entry)
        found[InputDim(name, dim)] = expression = linear(size) if type(size) is str else _read_expression(size)
        expect(_is_linear(expression) and expression.dims <= limits.keys(), "a size of a dimension", entry)
    checked = tuple([_read_guard(guard) for guard in guards])
    used = {d for guard in checked for d in guard.left.dims | guard.right.dims}
    expect(used <= {name for size in found.values() for name in size.dims}, "dimensions of inputs", sorted(used))
    return Sizes(found, limits, checked)


def _write_size(size: Expression) -> Any:
    """Write a size; a single dimension is written as its name."""
    [name] = size.dims
    return name if size == linear(name) else _write_expression(size)


def _is_linear(size: Expression) -> bool:
    monomials = [dims for _, dims in size.terms]
    fits = len(size.dims) == 1 and size.over == 1 and size.terms[0][0] > 0
    return fits and len(monomials[0]) == 1 and monomials[1:] in ([], [()])


def _read_range(data: Any) -> tuple[str, Range]:
    name, least, most, assumed = members(data, 4, "a range of sizes")
    expect(type(least) is int and type(most) in (int, type(None)) and type(assumed) is bool, "a range", data)
    return text(name, "the name of a size"), Range(least, most, assumed)


def _read_guard(data: Any) -> Guard:
    op, left, right, outcome, line = members(data, 5, "a comparison of sizes")
    expect(type(op) is str and op in COMPARISONS and type(outcome) is bool, "a comparison and its result", data)
    return Guard(op, _read_expression(left), _read_expression(right), outcome, text(line, "a line of code"))


def _read_expression(data: Any) -> Expression:
    terms, over = members(data, 2, "an expression of sizes")
    expect(type(over) is int and 0 < over < 2**63, "a positive divisor", over)
    return Expression(tuple([_read_term(term) for term in members(terms, None, "terms")]), over)


def _read_term(data: Any) -> tuple[int, tuple[str, ...]]:
    c, dims = members(data, 2, "a term")
    expect(type(c) is int and abs(c) < 2**63 and type(dims) is list and len(dims) <= 100, "a term", data)
    return c, tuple([text(d, "the name of a size") for d in dims])


add_encoding(
    Expression,
    Encoding(
        "expression",
        lambda codec, value, depth: _write_expression(value),
        lambda codec, data, depth: _read_expression(data),
    ),
)
for _kind in (Signature, DynamicSignature):
    add_encoding(
        _kind,
        Encoding(
            "signature",
            lambda codec, value, depth: write_signature(value, codec),
            lambda codec, data, depth: read_signature(data, codec),
        ),
    )
