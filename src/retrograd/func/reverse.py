"""Reverse mode as function transforms: `grad`, `grad_and_value` and `vjp`, each with its own graph."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import optree

from retrograd.core import Tensor
from retrograd.core.aval import describe_difference
from retrograd.core.dispatch import as_operand
from retrograd.core.dtype import is_floating
from retrograd.core.engine import ones
from retrograd.core.hooks import conjugate
from retrograd.foundation.describe_value import describe, tensor_hint
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.func.argnums import Argnums, BoundFunction, pytorch_call, select_arguments, split_aux
from retrograd.func.vjp_run import VjpRun, unwrap_tree


def grad(func: Callable, argnums: Argnums = 0, has_aux: bool = False) -> Callable:
    """Return the function that computes the gradient of a real scalar function by the arguments `argnums`.

    Arguments are pytrees of tensors; each gradient has the structure of its argument.  For a tuple of argnums, the
    result is a tuple.  With `has_aux` the function returns (output, aux), and the transformed one (gradient, aux).
    Gradients of complex tensors follow PyTorch's convention.

    Raises RuntimeError for an output that is no real scalar, for argnums that fit no argument, and for arguments that
    are not floating.

    >>> import retrograd as rg
    >>> rg.func.grad(lambda x: (x**3).sum())(rg.tensor([1.0, 2.0]))
    tensor([ 3., 12.])
    """
    both = _grad_and_value("grad", func, argnums, has_aux)

    @wraps(func, updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def grad_and_value(func: Callable, argnums: Argnums = 0, has_aux: bool = False) -> Callable:
    """Return the function that computes (gradient, value), or with `has_aux` (gradient, (value, aux)).

    >>> import retrograd as rg
    >>> rg.func.grad_and_value(lambda x: (x**3).sum())(rg.tensor([1.0, 2.0]))
    (tensor([ 3., 12.]), tensor(9.))
    """
    return _grad_and_value("grad_and_value", func, argnums, has_aux)


def _grad_and_value(name: str, func: Callable, argnums: Argnums, has_aux: bool) -> Callable:
    """Return `grad_and_value` for the transform called `name`, which errors mention."""

    @wraps(func, updated=())
    def gradient_and_value(*args: Any, **kwargs: Any) -> Any:
        x = select_arguments(name, args, argnums)
        main, aux = split_aux(func, name, has_aux)
        of_x = BoundFunction(main, args, kwargs, argnums)
        run = VjpRun(name, of_x, x)
        value = run.value
        _check_scalar(name, value)
        found = run.tree([conjugate(g) for g in run.pull([ones((), value.dtype, value)])])
        of_x.write_back()
        return (found, (value, unwrap_tree(run.level, aux.pop()))) if has_aux else (found, value)

    return gradient_and_value


def _check_scalar(name: str, out: Any) -> None:
    if not isinstance(out, Tensor):
        raise RuntimeError(
            f"{name}: grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(out)}: the function "
            f"must return a tensor without dimensions, got {type(out).__name__}"
        )
    if out.shape != () or not is_floating(out.dtype):
        raise RuntimeError(
            f"{name}: grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
            f"{out.ndim} dims: the function must return a real scalar, got {out.aval}; use vjp, or jacrev"
        )


def vjp(func: Callable, *primals: Any, has_aux: bool = False) -> tuple:
    """Return the output of `func` at the primals, and the function that pulls a cotangent back to them.

    Primals and outputs are pytrees of tensors.  `pull(cotangent)` takes a tree like the output, and gives a tuple with
    a tree for each primal; it may be called again.  With `has_aux` the function returns (output, aux), and the result
    is (output, pull, aux).

    Raises RuntimeError for outputs that are no tensors, and for cotangents that do not fit.

    >>> import retrograd as rg
    >>> out, pull = rg.func.vjp(rg.sin, rg.zeros(2))
    >>> pull(rg.ones(2))
    (tensor([1., 1.]),)
    """
    main, aux = split_aux(func, "vjp", has_aux)
    run = VjpRun("vjp", BoundFunction(main, primals, {}, tuple(range(len(primals)))), primals)
    value = run.value
    outs = check_outputs("vjp", value)

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> tuple:
        seeds = check_tree("vjp", "cotangent", cotangents, value, outs)
        found: tuple = run.tree([conjugate(g) for g in run.pull([conjugate(g) for g in seeds])])
        return found

    return (value, pull, unwrap_tree(run.level, aux.pop())) if has_aux else (value, pull)


def check_outputs(name: str, value: Any) -> list[Tensor]:
    """Return the leaves of a function's result, after checking that there are some and all are tensors."""
    outs = optree.tree_leaves(value)
    name = f"{name}: {pytorch_call(name)}"
    if not outs:
        raise RuntimeError(
            f"{name}: Expected f to be a function that has non-empty output (got output = {describe(value)}): the "
            f"function must return at least one tensor, got {describe(value)}"
        )
    for out in outs:
        if not isinstance(out, Tensor):
            raise RuntimeError(
                f"{name}: expected f(*primals) to return only tensors, got unsupported type {type(out)}: the function "
                f"must return tensors only, got {type(out).__name__}"
            )
    return outs


# PyTorch's words for a tree of another structure, a leaf of another shape, and one of another dtype.
_MISMATCHES = {
    "vjp": (
        "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function",
        "Mismatch in shape",
        "Mismatch in dtype",
    ),
    "jvp": (
        "jvp(f, primals, tangents): Expected primals and tangents to have the same python structure",
        "Trying to set a forward gradient that has a different size than that of the original Tensor",
        "Expected tangents to have the dtypes of the primals",
    ),
    "linearize": (
        "Expected the tangents to have the same argspec as the primals",
        "A tangent in flattened pytree doesn't match the shape of the corresponding primal",
        "A tangent in flattened pytree doesn't match the dtype of the corresponding primal",
    ),
}


def check_tree(name: str, what: str, given: Any, tree: Any, leaves: list[Tensor]) -> list[Tensor]:
    """Return the leaves of a tree of cotangents or tangents, after checking them against their tensors.

    Leaves may be arrays.
    """
    found, spec = optree.tree_flatten(given)
    expected = optree.tree_structure(tree)
    structure, shape, dtype = _MISMATCHES.get(name, _MISMATCHES["jvp"])
    if spec != expected:
        hint = "; make tensors of numbers: rg.tensor([...])" if all(isinstance(g, float | int) for g in found) else ""
        raise RuntimeError(f"{name}: {structure}: the {what} is a tree {spec}, but must be one like {expected}{hint}")
    found = [as_operand(g) for g in found]
    for i, (g, leaf) in enumerate(zip(found, leaves, strict=True)):
        if not isinstance(g, Tensor):
            raise RuntimeError(
                f"{name}: {pytorch_call(name)}: Expected {what}s to only contain Tensors, got {type(g)}: {what} {i} "
                f"must be a Tensor, got {type(g).__name__}; {tensor_hint(g)}"
            )
        if g.shape != leaf.shape:
            given = type(optree.tree_leaves(tree)[i])
            number = f" (Expected primals to only contain Tensors, got {given})" if given in (float, complex) else ""
            raise RuntimeError(
                f"{name}: {shape}: {what} {i} has shape {g.shape}, but {leaf.shape} is "
                f"expected{describe_difference(leaf.shape, g.shape)}{number}"
            )
        if g.dtype != leaf.dtype:
            raise RuntimeError(
                f"{name}: {dtype}: {what} {i} is {g.dtype}, but {leaf.dtype} is expected; convert with "
                f".to({str(leaf.dtype)!r})"
            )
    return found


suggest_in_module(globals())
