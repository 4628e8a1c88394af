"""Jacobians and Hessians by a batch of pullbacks (rows) or of pushforwards (columns)."""

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

import optree

from retrograd.core import Tensor, registry
from retrograd.core.tensor import make
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.func.argnums import (
    Argnums,
    BoundFunction,
    check_chunk_size,
    check_randomness,
    select_arguments,
    split_aux,
)
from retrograd.func.batch import vmap
from retrograd.func.forward import run_jvp
from retrograd.func.reverse import check_outputs
from retrograd.func.vjp_run import VjpRun, unwrap_tree
from retrograd.levels import VmapLevel
from retrograd.levels.flatten_nested import NestedFlattener
from retrograd.levels.jacobian import basis, column_blocks, map_in_chunks, row_blocks
from retrograd.ops.create import as_tensor


def jacrev(
    func: Callable,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable:
    """Return the function that computes the Jacobian with respect to the arguments `argnums`, by reverse mode.

    For an output of shape (*a) and an argument of shape (*b), it has shape (*a, *b).  For pytrees, the result has the
    structure of the output, with the structure of the argument at each leaf; for a tuple of argnums, a tuple.  The
    function runs once.  All rows are computed in one batch, or `chunk_size` at a time, to save memory.  With `has_aux`
    the function returns (output, aux), and the result is (Jacobian, aux).  `_preallocate_and_copy` is ignored; it
    exists for PyTorch's signature.

    Raises RuntimeError for complex inputs and outputs, and for argnums that fit no argument.

    >>> import retrograd as rg
    >>> rg.func.jacrev(lambda x: x[:2] * x[2])(rg.tensor([1.0, 2.0, 3.0]))
    tensor([[3., 0., 1.],
            [0., 3., 2.]])
    """
    return _jacrev("jacrev", func, argnums, has_aux, chunk_size)


def _jacrev(
    name: str, func: Callable, argnums: Argnums, has_aux: bool = False, chunk_size: int | None = None
) -> Callable:
    """Return `jacrev` for the transform called `name`, which errors mention."""
    check_chunk_size(name, chunk_size)

    @wraps(func, updated=())
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        x = select_arguments(name, args, argnums)
        main, aux = split_aux(func, name, has_aux)
        of_x = BoundFunction(main, args, kwargs, argnums)
        flattened = NestedFlattener(name, of_x, (x,))
        run = VjpRun(name, flattened, *flattened.args)
        outs = check_outputs(name, run.value)
        _check_real(name, "input", run.leaves)
        _check_real(name, "output", outs)
        flattened.check_jacobians()
        blocks = row_blocks(_pull_all_rows(run, outs, chunk_size), outs)
        of_x.write_back()
        trees = [run.tree([flattened.jacobian(block, i, k) for k, block in enumerate(row)])
                 for i, row in enumerate(blocks)]  # fmt: skip
        found = optree.tree_unflatten(optree.tree_structure(run.out), trees)
        return (found, unwrap_tree(run.level, aux.pop())) if has_aux else found

    return jacobian


def _check_real(name: str, what: str, tensors: Sequence[Tensor]) -> None:
    for i, t in enumerate(tensors):
        if t.dtype.kind == "c":
            raise RuntimeError(
                f"{name}: Expected all {what}s to be real but received complex tensor at flattened {what} idx: {i}: "
                f"{name}: expected real inputs and outputs, got {t.aval}; use vjp, jvp or real parts"
            )


def _pull_all_rows(run: VjpRun, outs: list[Tensor], chunk: int | None) -> list[Tensor]:
    """Return for each leaf the rows of the Jacobian, one for each element of the outputs."""
    if sum(out.numel() for out in outs) == 1:  # a gradient needs no batch
        return [registry["unsqueeze"](g, 0) for g in run.pull([registry["ones_like"](out) for out in outs])]
    pull = _pull_one if chunk == 1 else _pull_batch  # without a batch, code that reads values runs too
    return map_in_chunks(partial(pull, run), outs, run.leaves, chunk)


def _pull_one(run: VjpRun, cotangents: list[Tensor]) -> list[Tensor]:
    """Return the pullbacks of a batch of one cotangent, stacked along the first dimension."""
    return [registry["unsqueeze"](g, 0) for g in run.pull([registry["select"](g, dim=0, index=0) for g in cotangents])]


def _pull_batch(run: VjpRun, cotangents: list[Tensor]) -> list[Tensor]:
    """Return the pullbacks of a batch of cotangents, stacked along the first dimension."""
    with VmapLevel(cotangents[0].shape[0], function=run.level.function) as level:
        found = run.pull([make(g, level, "the cotangent") for g in cotangents])
    return [level.all_examples(g) for g in found]


def jacfwd(
    func: Callable,
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
    chunk_size: int | None = None,
) -> Callable:
    """Return the function that computes the Jacobian with respect to the arguments `argnums`, by forward mode.

    As `jacrev`, but by columns, one for each element of the arguments, in one batch or `chunk_size` at a time.  Use it
    if there are fewer inputs than outputs.  `randomness` is that of `vmap`.

    >>> import retrograd as rg
    >>> rg.func.jacfwd(lambda x: x[:2] * x[2])(rg.tensor([1.0, 2.0, 3.0]))
    tensor([[3., 0., 1.],
            [0., 3., 2.]])
    """
    return _jacfwd("jacfwd", func, argnums, has_aux, randomness, chunk_size)


def _jacfwd(
    name: str, func: Callable, argnums: Argnums, has_aux: bool = False, randomness: str = "error",
    chunk_size: int | None = None,
) -> Callable:  # fmt: skip
    """Return `jacfwd` for the transform called `name`, which errors mention."""
    check_randomness(name, randomness)
    check_chunk_size(name, chunk_size)

    @wraps(func, updated=())
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        x = select_arguments(name, args, argnums)
        main, kept = split_aux(func, name, has_aux)
        flattened = NestedFlattener(name, BoundFunction(main, args, kwargs, argnums), (x,))
        leaves, spec = optree.tree_flatten(flattened.args[0])
        leaves = [as_tensor(leaf) for leaf in leaves]
        _check_real(name, "input", leaves)
        x = optree.tree_unflatten(spec, leaves)

        @wraps(flattened, updated=())
        def of_x(x: Any) -> Any:
            out = flattened(x)
            return (out, kept.pop()) if has_aux else out

        def push(*unit: Tensor) -> Any:
            tangents = (optree.tree_unflatten(spec, unit),)
            (out, along, *aux), _ = run_jvp(name, of_x, (x,), tangents, False, has_aux)
            _check_real(name, "output", check_outputs(name, out))
            flattened.check_jacobians()
            return (along, *aux)

        columns, *aux_results = vmap(push, 0, (0, None)[: 1 + has_aux], randomness, chunk_size=chunk_size)(
            *basis(leaves)
        )
        stacked, out_spec = optree.tree_flatten(columns)
        trees = [
            optree.tree_unflatten(spec, [flattened.jacobian(block, i, k) for k, block in enumerate(row)])
            for i, row in enumerate(column_blocks(stacked, leaves))
        ]
        found = optree.tree_unflatten(out_spec, trees)
        return (found, aux_results[0]) if has_aux else found

    return jacobian


def hessian(func: Callable, argnums: Argnums = 0) -> Callable:
    """Return the function for second derivatives, forward over reverse: the Jacobian of the Jacobian.

    For an output of shape (*a) and an argument of shape (*b), the result has shape (*a, *b, *b).

    >>> import retrograd as rg
    >>> rg.func.hessian(lambda x: x[0] ** 2 * x[1])(rg.tensor([3.0, 5.0]))
    tensor([[10.,  6.],
            [ 6.,  0.]])
    """
    return _jacfwd("hessian", _jacrev("hessian", func, argnums), argnums)


suggest_in_module(globals())
