"""`custom_op`: define and register operators."""

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from retrograd import ops
from retrograd.core import Op, parse, registry
from retrograd.foundation.source_location import user_line
from retrograd.library.mixin import check_device_types
from retrograd.library.operator import CustomOperator
from retrograd.library.registration import Registrations
from retrograd.library.schema import CustomSchema
from retrograd.library.schema_inference import infer_schema
from retrograd.library.tag_checks import problem_with_tags
from retrograd.library.tags import Tag, tag_list

BUILT_IN = ("aten", "prim", "prims")  # namespaces of PyTorch's own operators, which can't be replaced here

# Calls for the definition of an operator, by its name: they register functions that were given before it.
_awaiting: dict[str, list[Callable[[CustomOperator], Any]]] = {}


def when_defined(op: str | CustomOperator, action: Callable[[CustomOperator], Any]) -> Callable[[], None]:
    """Call a function with an operator, now or when that is defined; return a function that cancels the latter.

    Raises RuntimeError for an operator that is not a custom one, and for a name in a namespace of PyTorch's operators.
    """
    if not isinstance(op, str) or op in registry or "::" not in op or op.partition("::")[0] in BUILT_IN:
        action(find_operator(op))
        return lambda: None
    check_name(op)
    _awaiting.setdefault(op, []).append(action)
    return functools.partial(_cancel, op, action)


def _cancel(name: str, action: Callable[[CustomOperator], Any]) -> None:
    if action in _awaiting.get(name, ()):
        _awaiting[name].remove(action)


def custom_op(
    name: str,
    fn: Callable | str | None = None,
    /,
    *,
    mutates_args: str | Iterable[str] | None = None,
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Define an operator "namespace::name", which levels, graphs and the engine treat like a built-in one.

    With `mutates_args`, the names of the arguments that it writes to, the function is the kernel, for `device_types`
    or for all kinds of arrays.  Formulas and rules are registered by methods of the returned operator.  A call
    without a formula fails in the backward pass.  A second definition replaces the first.

    Without it, in PyTorch's older form, the function only has the signature, kernels are registered by `impl`, and
    the second argument may be the schema.  A call that needs a missing formula fails, and nothing is replaced.

    Without a schema, it is inferred from the annotations.  `tags` are members of `rg.Tag`.

    Raises ValueError for a name without namespace, a reserved namespace, or a schema that can't be parsed or
    inferred; RuntimeError for a second definition in the older form.

    >>> import retrograd as rg
    >>> @rg.library.custom_op("docs::cube", mutates_args=())
    ... def cube(x: rg.Tensor) -> rg.Tensor:
    ...     return x**3
    >>> cube.register_autograd(
    ...     lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2,
    ...     setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    ... )
    >>> rg.func.hessian(cube)(rg.tensor(2.0))
    tensor(12.)
    """
    if isinstance(fn, str):
        fn, schema = None, fn
    build = functools.partial(_define_from_function, name, mutates_args, device_types, schema, tag_list(tags))
    return build if fn is None else build(fn)


def _define_from_function(
    name: str, mutates_args: Any, device_types: Any, schema: str | None, tags: list[Tag], fn: Callable
) -> CustomOperator:
    check_name(name)
    older = mutates_args is None
    kinds = "default" if device_types is None else device_types
    check_device_types(name, kinds)
    mutated = mutates_args if isinstance(mutates_args, str) else tuple(mutates_args or ())
    parsed = parse(infer_schema(fn, mutates_args=mutated, tags=tags) if schema is None else schema, CustomSchema)
    if older:
        _check_prototype(name, parsed, fn)
    else:
        _check_declarations(name, parsed, mutated, tags)
        tags = [Tag.pt2_compliant_tag, *[tag for tag in tags if tag is not Tag.pt2_compliant_tag]]
    operator = register(parsed.renamed(name), strict=older, tags=tags)
    if not older:
        operator.register_kernel(kinds, fn)
    functools.update_wrapper(operator, fn, assigned=("__module__", "__qualname__"), updated=())
    operator.__doc__ = fn.__doc__ or operator.__doc__
    return operator


def _check_declarations(name: str, schema: CustomSchema, mutated: str | tuple[str, ...], tags: list[Tag]) -> None:
    """Raise if the schema contradicts `mutates_args` or the tags."""
    if mutated != "unknown" and {*mutated} != {*schema.mutated}:
        raise ValueError(
            f"{name}: the schema {schema} suggests that the op mutates { {*schema.mutated} or '{}' }, which is "
            f"different from mutates_args={mutated}; please make these consistent"
        )
    problem = problem_with_tags(schema, tags)
    if problem is not None:
        raise ValueError(f"{name}: {problem}. Got: {schema}")
    if any(p.keyword_only and not p.mutated for p in schema.inputs):
        raise NotImplementedError(
            f"{name}: custom_op with kwarg-only Tensor args. Please make your tensors not kwarg-only, or define the "
            f"operator by rg.library.define. Got: {schema}"
        )


def _check_prototype(name: str, schema: CustomSchema, fn: Callable) -> None:
    """Raise if a function does not have the arguments of a schema, or has defaults."""
    parameters = inspect.signature(fn).parameters.values()
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.POSITIONAL_ONLY) for p in parameters):
        raise ValueError(f"{name}: positional-only arguments, *args and **kwargs are not supported: {fn}")
    declared = schema.defaults
    if any(p.default is not p.empty and p.default != declared.get(p.name, p.empty) for p in parameters):
        raise ValueError(
            f"{name}: default arguments of the function are not supported where they differ from the schema's: {schema}"
        )
    found = [(p.name, p.kind is p.KEYWORD_ONLY) for p in parameters]
    if found != [(p.name, p.keyword_only) for p in schema.parameters]:
        raise ValueError(
            f"{name}: expected the function's signature to match the schema {schema}, but it has the arguments "
            f"{', '.join(map(str, parameters))}"
        )


def define_by_schema(name: str, schema: CustomSchema) -> CustomOperator:
    """Define an operator of the older interface by its schema alone; return it."""
    check_name(name)
    return register(schema.renamed(name), strict=True)


def check_name(name: str) -> None:
    """Raise for a name that is not `namespace::name`, or in a namespace of the library."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*::[A-Za-z_][\w.]*", name):
        raise ValueError(
            f'library: Expected `qualname` to be of the form "namespace::name", but got {name}: expected a name with a '
            f"namespace, such as 'mylib::scale', got {name!r}"
        )
    namespace = name.partition("::")[0]
    if namespace in vars(ops):
        raise ValueError(f"library: the namespace of {name!r} is taken: rg.ops.{namespace} is something else")


def register(schema: CustomSchema, *, strict: bool, tags: Any = ()) -> CustomOperator:
    """Add a new operator to the registry; in the newer form it replaces one of the same name."""
    known, location = registry.get(schema.name), user_line()
    if known is not None and (strict or known.registrations.strict):
        raise RuntimeError(duplicate_message(known, location))
    if known is not None:
        unregister(known)
    operator = CustomOperator(schema, Registrations(location, strict=strict), tag_list(tags))
    registry[schema.name] = operator
    if operator.functional is not operator:
        registry[operator.functional.name] = operator.functional
    for action in _awaiting.pop(operator.name, ()):
        action(operator)
    return operator


def duplicate_message(known: CustomOperator, location: str) -> str:
    """Return the error for defining an operator twice, with the location of the first definition."""
    return (
        f"{known.name}: Tried to register an operator with the same name and overload name multiple times: defined "
        f"already, at {known.registrations.location}; this is a second definition, at {location}"
    )


def unregister(operator: CustomOperator) -> None:
    """Remove an operator from the registry, unless it was replaced there."""
    for name, known in ((operator.name, operator), (operator.functional.name, operator.functional)):
        if registry.get(name) is known:
            del registry[name]


class OperatorNameError(RuntimeError, ValueError):
    """The error for an object that can't be the name of an operator; ValueError in PyTorch."""


def check_operator(what: str, op: Any) -> None:
    """Raise an OperatorNameError for an object that is neither an operator nor a name; `what` names the function."""
    if not isinstance(op, (str, Op)):
        raise OperatorNameError(f"{what}({op}): got unexpected type for op: {type(op)}; give the operator or its name")


def find_operator(op: str | CustomOperator) -> CustomOperator:
    """Return the operator, given as itself or by name."""
    known = registry.get(op) if isinstance(op, str) else op
    if isinstance(op, str) and "::" not in op:
        raise OperatorNameError(
            f'library: Expected `qualname` to be of the form "namespace::name", but got {op}: no operator {op!r} is '
            "defined"
        )
    check_operator("library", op)
    if not isinstance(known, CustomOperator):
        raise RuntimeError(
            f"library: operator {op} does not exist: no operator {op!r} is defined; define it first, by custom_op or "
            "define"
        )
    return known
