"""Derivatives of a function at a point, as PyTorch has them: products with the Jacobian and the Hessian, and these.

The function takes and returns tensors, or nested tuples of tensors.  It runs once, on tensors that require grad in
place of its inputs.  Backward passes through the resulting graph compute the derivatives, so the function may contain
any code with a backward.  Forward mode is used only if `strategy` selects it.

Complex derivatives follow PyTorch's convention, as those of `autograd.grad` do.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from retrograd.autograd.functional.calls import (
    HESSIAN,
    JACOBIAN,
    OUTPUT,
    Call,
    Tree,
    fill_zeros,
    gradients,
    linear_pullback,
    make_leaf,
    pushforward,
)
from retrograd.autograd.grad_mode import enable_grad, is_grad_enabled, set_grad_enabled
from retrograd.core import Tensor
from retrograd.core.tensor import make
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.levels import VmapLevel
from retrograd.levels.flatten_nested import NestedFlattener
from retrograd.levels.jacobian import Blocks, basis, column_blocks, map_in_chunks, map_in_loop, row_blocks, unit_vectors
from retrograd.levels.tangent_table import TangentTableLevel
from retrograd.ops.create import zeros

FORWARD, REVERSE = "forward-mode", "reverse-mode"

# ------------------------------------------------------------------------------------------ products with vectors


def vjp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """Return the output of `func` at the inputs, and v times its Jacobian there, a tree like the inputs.

    `v` is a tree like the output; None means 1 if that is one tensor of one element.  With `create_graph` both
    results are in the graph of the inputs, else they are in none.  Where the output does not depend on an input, the
    product is zero; with `strict` that is an error, and with `create_graph` it is one, too, if the product itself does
    not depend on anything that requires grad.

    Raises TypeError for inputs and outputs that are no tensors, RuntimeError for inputs that are not floating, for a
    `v` that does not fit, and for what `strict` forbids.

    >>> import retrograd as rg
    >>> rg.autograd.functional.vjp(lambda x: x * x, rg.tensor([1.0, 2.0]), rg.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    call = Call("vjp", create_graph, strict)
    with enable_grad():
        point = call.make_leaves(inputs)
        outs = call.outputs(func, point)
        vector = call.vector(v, outs)
        found = gradients(outs.leaves, point.leaves, vector, create_graph)
        return call.result(outs, outs.leaves), call.result(point, call.fill_missing(found, point, OUTPUT, JACOBIAN))


def jvp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """Return the output of `func` at the inputs, and its Jacobian there times v, a tree like the output.

    `v` is a tree like the inputs; all else is as in `vjp`.  The product comes from two passes backward; `func.jvp`, in
    forward mode, is faster, but requires more of the program: every operator and Function in it must have a forward
    derivative, and it may not write to tensors that it does not get as arguments.

    >>> import retrograd as rg
    >>> rg.autograd.functional.jvp(lambda x: x * x, rg.tensor([1.0, 2.0]), rg.tensor([1.0, 0.0]))
    (tensor([1., 4.]), tensor([2., 0.]))
    """
    call = Call("jvp", create_graph, strict)
    with enable_grad():
        point = call.make_leaves(inputs)
        vector = call.vector(v, point)
        outs = call.outputs(func, point)
        back, cotangents = linear_pullback(outs.leaves, point.leaves)
        call.check(back, point, OUTPUT, "the gradient of {} is not differentiable", True)
        found = pushforward(back, cotangents, vector, create_graph)
        missing = "{} of the user-provided function is independent of the inputs"
        constant = "The jacobian of the user-provided function is independent of input 0, and of all others, for {}"
        found = call.fill_missing(found, outs, missing, constant)
        return call.result(outs, outs.leaves), call.result(outs, found)


def vhp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """Return the output of `func`, one number, at the inputs, and v times its Hessian there, a tree like the inputs.

    `v` is a tree like the inputs; all else is as in `vjp`.  Where second derivatives are continuous this is `hvp`, in
    one pass less.

    Raises RuntimeError, besides, for an output that is not one tensor of one element.

    >>> import retrograd as rg
    >>> rg.autograd.functional.vhp(lambda x: (x**3).sum(), rg.tensor([1.0, 2.0]), rg.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    call = Call("vhp", create_graph, strict)
    with enable_grad():
        point = call.make_leaves(inputs)
        vector = call.vector(v, point)
        outs, slopes = call.scalar_gradient(func, point)
        found = gradients(slopes, point.leaves, vector, create_graph)
        return call.result(outs, outs.leaves), call.result(point, call.fill_missing(found, point, JACOBIAN, HESSIAN))


def hvp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """Return the output of `func`, one number, at the inputs, and its Hessian there times v, a tree like the inputs.

    As `vhp`, which takes one pass less.

    >>> import retrograd as rg
    >>> rg.autograd.functional.hvp(lambda x: (x**3).sum(), rg.tensor([1.0, 2.0]), rg.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    call = Call("hvp", create_graph, strict)
    with enable_grad():
        point = call.make_leaves(inputs)
        vector = call.vector(v, point)
        outs, slopes = call.scalar_gradient(func, point)
        back, cotangents = linear_pullback(slopes, point.leaves)
        found = pushforward(back, cotangents, vector, create_graph)
        return call.result(outs, outs.leaves), call.result(point, call.fill_missing(found, point, HESSIAN, HESSIAN))


# ------------------------------------------------------------------------------------------- Jacobians and Hessians


def jacobian(
    func: Callable,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = REVERSE,
) -> Any:
    """Return the Jacobian of `func` at the inputs: a tree like the output, of trees like the inputs.

    For an output of shape (*a) and an input of shape (*b), it has shape (*a, *b) and the dtype of the input.  Its rows
    are pulled back one by one, or with `vectorize` all at once.  With `strategy="forward-mode"`, which needs
    `vectorize`, its columns are pushed forward all at once, better where they are fewer; it then has the output's
    dtype.  `create_graph` and `strict` are as in `vjp`.

    Raises RuntimeError for complex outputs without `vectorize`, and for `strict` with `vectorize`; NotImplementedError
    for forward mode without `vectorize`, ValueError for any other strategy; TypeError and RuntimeError as `vjp`.

    >>> import retrograd as rg
    >>> rg.autograd.functional.jacobian(lambda x: x[:2] * x[2], rg.tensor([1.0, 2.0, 3.0]))
    tensor([[3., 0., 1.],
            [0., 3., 2.]])
    """
    return _jacobian(Call("jacobian", create_graph, strict), func, inputs, vectorize, strategy)


def hessian(
    func: Callable,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = REVERSE,
) -> Any:
    """Return the Hessian of `func`, which returns one number, at the inputs: the Jacobian of its gradient.

    The result has the structure of the inputs twice: for inputs of shapes (*a) and (*b), a tensor of shape (*a, *b).
    Everything else is as in `jacobian`.

    >>> import retrograd as rg
    >>> rg.autograd.functional.hessian(lambda x: x[0] ** 2 * x[1], rg.tensor([3.0, 5.0]))
    tensor([[10.,  6.],
            [ 6.,  0.]])
    """
    call = Call("hessian", create_graph, strict)
    given = call.inputs(inputs)

    def gradient(*xs: Any) -> Any:
        with enable_grad():
            point = given.with_leaves([make_leaf(x, True) for x in call.tree("input", xs).leaves])
            _, slopes = call.scalar_gradient(func, point)
            return point.like(fill_zeros(slopes, point.leaves))

    return _jacobian(call, gradient, inputs, vectorize, outer_jacobian_strategy)


def _jacobian(call: Call, func: Callable, inputs: Any, vectorize: bool, strategy: str) -> Any:
    _check_strategy(call, vectorize, strategy)
    flattened = NestedFlattener(call.name, func, inputs if isinstance(inputs, tuple) else (inputs,))
    inputs = flattened.args if isinstance(inputs, tuple) else flattened.args[0]
    if strategy == FORWARD:
        outs, point, found = _columns_batched(call, flattened, inputs)
    else:
        with enable_grad():
            point = call.make_leaves(inputs)
            outs = call.outputs(flattened, point)
            flattened.check_jacobians()
            found = (_rows_batched if vectorize else _rows_in_loop)(call, outs, point)
    found = [[flattened.jacobian(part, i, k) for k, part in enumerate(row)] for i, row in enumerate(found)]
    return outs.like([call.result(point, row) for row in found])


def _check_strategy(call: Call, vectorize: bool, strategy: str) -> None:
    if strategy not in (FORWARD, REVERSE):
        raise ValueError(f'{call.name}: Expected strategy to be either "{FORWARD}" or "{REVERSE}", got {strategy!r}')
    if call.strict and (vectorize or strategy == FORWARD):
        raise RuntimeError(
            f"{call.name}: `strict=True` and `vectorized=True` are not supported together, nor strict=True and "
            f"{FORWARD!r}: only single rows show which output depends on which input; set strict=False, or "
            f"vectorize=False and {REVERSE!r}"
        )
    if strategy == FORWARD and not vectorize:
        raise NotImplementedError(f"{call.name}: {FORWARD!r} pushes all columns at once: set vectorize=True")


def _rows_in_loop(call: Call, outs: Tree, point: Tree) -> Blocks:
    """Return the Jacobian of each output and input, with one pass for each row."""
    found: Blocks = []
    for i, out in enumerate(outs.leaves):
        what = outs.label(i) if call.name == "jacobian" else f"the gradient by {point.label(i)}"
        if out.dtype.kind == "c":
            raise RuntimeError(
                f"{call.name}: {what} is {out.dtype}, and its rows are ambiguous; use real and imaginary parts, or "
                f"vectorize=True, which gives the conjugates of a holomorphic function's"
            )
        independent = f"{what} of the user-provided function is independent of {{}}"
        missing = independent[0].upper() + independent[1:]
        constant = f"The jacobian of the user-provided function is independent of {{}}, for {what}"
        pull = partial(_row, call, point, out, missing, constant)
        found += row_blocks(map_in_loop(pull, unit_vectors(out), point.leaves), [out])
    return found


def _row(call: Call, point: Tree, out: Tensor, missing: str, constant: str, unit: Tensor) -> list[Tensor]:
    row = gradients([out], point.leaves, [unit], call.create_graph, retain_graph=True)
    return call.fill_missing(row, point, missing, constant)


def _rows_batched(call: Call, outs: Tree, point: Tree) -> Blocks:
    """Return the Jacobian of each output and input, by one backward pass with a batch of cotangents."""

    def pull(units: list[Tensor]) -> list[Tensor]:
        found = gradients(outs.leaves, point.leaves, units, call.create_graph, batched=True)
        pairs = zip(found, point.leaves, strict=True)
        return [zeros(units[0].shape[0], *x.shape, dtype=x.dtype) if g is None else g for g, x in pairs]

    return row_blocks(map_in_chunks(pull, outs.leaves, point.leaves), outs.leaves)


def _columns_batched(call: Call, func: NestedFlattener, inputs: Any) -> tuple[Tree, Tree, Blocks]:
    """Return outputs, inputs and the Jacobian of each pair, by one forward pass with a batch of tangents."""
    point = call.inputs(inputs)
    primals = [x if call.create_graph else x.detach() for x in point.leaves]
    with set_grad_enabled(call.create_graph or is_grad_enabled()):
        units = basis(primals)
        with VmapLevel(sum(x.numel() for x in primals), randomness="same", function=func) as batch:
            inside = [make(primal, batch, None) for primal in primals]
            with TangentTableLevel() as level:
                for x, copy, unit in zip(point.leaves, inside, units, strict=True):
                    copy.requires_grad = x.requires_grad
                    level.set_tangent(copy, make(unit, batch, "the tangent"))
                outs = call.outputs(func, point.with_leaves(inside))
                func.check_jacobians()
                columns = fill_zeros([level.tangent(out) for out in outs.leaves], outs.leaves)
        return outs, point, column_blocks([batch.all_examples(column) for column in columns], primals)


suggest_in_module(globals())
