"""Sparse Jacobians and Hessians: one run finds the pattern, and one product for each colour gives all entries."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import optree

from retrograd.backend import sparse
from retrograd.core import NotBatchedError, Tensor, graph_level
from retrograd.core.dtype import is_floating
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.func.argnums import BoundFunction, check_chunk_size, select_arguments, split_aux
from retrograd.func.batch import vmap
from retrograd.func.forward import linearize
from retrograd.func.reverse import grad, vjp
from retrograd.func.sparsity import Sparsity
from retrograd.levels import value_at
from retrograd.levels.flatten_nested import flatten_nested
from retrograd.levels.jacobian import map_in_loop
from retrograd.levels.sparsity_level import PatternLevel
from retrograd.levels.sync_views import sync_views
from retrograd.ops.create import as_tensor

BATCH = 2**24  # the most numbers in the tangents of one batch, unless chunk_size sets their count


# ------------------------------------------------------------------------------------------------- transforms


def sparse_jacobian(
    func: Callable, argnums: int = 0, *, has_aux: bool = False, sparsity: Any = None, chunk_size: int | None = None
) -> Callable:
    """Return the function for the Jacobian as a `scipy.sparse.csr_array`, without computing its zeros.

    Rows are the elements of the output, columns those of the argument `argnums`, tensors of any shape, in row-major
    order.  A first run finds which elements of the output depend on which of the argument; columns, or rows, that share
    no row, or column, form a group, and one derivative for each group, all in one batch, gives all entries (Curtis,
    Powell, Reid 1974).  All entries of the pattern are stored, including those that are zero.

    `sparsity`, a `Sparsity` or a pattern, skips the first run: see `jacobian_sparsity`.  `chunk_size` is how many
    derivatives run at a time.  With `has_aux` the function returns (output, aux), and the result is (Jacobian, aux).

    Needs SciPy.  Raises RuntimeError inside other transforms, and for complex inputs and outputs; TypeError for
    arguments and outputs that are no tensors; ValueError for a sparsity that does not fit.

    >>> import retrograd as rg
    >>> J = rg.func.sparse_jacobian(lambda x: x[1:] - x[:-1] ** 2)(rg.tensor([1.0, 2.0, 3.0]))
    >>> J.toarray()
    array([[-2.,  1.,  0.],
           [ 0., -4.,  1.]], dtype=float32)
    """
    known = _check_sparsity("sparse_jacobian", sparsity, chunk_size, symmetric=False)

    @wraps(func, updated=())
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        x, f = _prepare_argument("sparse_jacobian", func, args, kwargs, argnums)
        use = known or Sparsity(_find_pattern("sparse_jacobian", f, x, has_aux))
        return _compute_matrix("sparse_jacobian", f, x, has_aux, use, chunk_size)

    return jacobian


def sparse_hessian(
    func: Callable, argnums: int = 0, *, has_aux: bool = False, sparsity: Any = None, chunk_size: int | None = None
) -> Callable:
    """Return the function for the Hessian of a real scalar function as a `scipy.sparse.csr_array`.

    As `sparse_jacobian` of the gradient, but the pattern is symmetric, so fewer products do: an entry may be read off
    its mirror image (star colouring; Gebremedhin, Manne, Pothen 2005).  See `hessian_sparsity`.

    >>> import retrograd as rg
    >>> H = rg.func.sparse_hessian(lambda x: (x[1:] * x[:-1] ** 2).sum())(rg.tensor([1.0, 2.0, 3.0]))
    >>> H.toarray()
    array([[4., 2., 0.],
           [2., 6., 4.],
           [0., 4., 0.]], dtype=float32)
    """
    known = _check_sparsity("sparse_hessian", sparsity, chunk_size, symmetric=True)

    @wraps(func, updated=())
    def hessian(*args: Any, **kwargs: Any) -> Any:
        x, f = _prepare_argument("sparse_hessian", func, args, kwargs, argnums)
        slope = _gradient(f, has_aux)
        use = known or Sparsity(_find_pattern("sparse_hessian", slope, x, has_aux), symmetric=True)
        return _compute_matrix("sparse_hessian", slope, x, has_aux, use, chunk_size)

    return hessian


def jacobian_sparsity(func: Callable, argnums: int = 0, *, has_aux: bool = False) -> Callable:
    """Return the function for the `Sparsity` of the Jacobian of `func`, for use at many points.

    It holds wherever the function takes the same branches, with places and masks that do not depend on the argument the
    same too.  The values of other constants do not count: a matrix product depends on all of its rows' elements.

    >>> import retrograd as rg
    >>> def residual(x):
    ...     return x[1:] - x[:-1] ** 2
    >>> tridiagonal = rg.func.jacobian_sparsity(residual)(rg.ones(100))
    >>> tridiagonal
    <Sparsity of 99 x 100, 198 entries, 2 colours of columns>
    >>> J = rg.func.sparse_jacobian(residual, sparsity=tridiagonal)(rg.randn(100))
    """

    @wraps(func, updated=())
    def sparsity(*args: Any, **kwargs: Any) -> Sparsity:
        x, f = _prepare_argument("jacobian_sparsity", func, args, kwargs, argnums)
        return Sparsity(_find_pattern("jacobian_sparsity", f, x, has_aux))

    return sparsity


def hessian_sparsity(func: Callable, argnums: int = 0, *, has_aux: bool = False) -> Callable:
    """Return the function for the `Sparsity` of the Hessian of `func`: the elements that interact nonlinearly.

    >>> import retrograd as rg
    >>> rg.func.hessian_sparsity(lambda x: (x[1:] * x[:-1]).sum())(rg.ones(100))
    <Sparsity of 100 x 100, 198 entries, 3 colours of both>
    """

    @wraps(func, updated=())
    def sparsity(*args: Any, **kwargs: Any) -> Sparsity:
        x, f = _prepare_argument("hessian_sparsity", func, args, kwargs, argnums)
        return Sparsity(_find_pattern("hessian_sparsity", _gradient(f, has_aux), x, has_aux), symmetric=True)

    return sparsity


# ----------------------------------------------------------------------------------------------------- checks


def _check_sparsity(name: str, sparsity: Any, chunk_size: int | None, symmetric: bool) -> Sparsity | None:
    """Return the user's sparsity, coloured once."""
    check_chunk_size(name, chunk_size)
    if sparsity is None or (isinstance(sparsity, Sparsity) and (sparsity.by == "both") <= symmetric):
        return sparsity
    if isinstance(sparsity, Sparsity):
        raise ValueError(f"{name}: the sparsity is of a Hessian; pass its .pattern if it is meant")
    if not hasattr(sparsity, "shape"):
        raise TypeError(f"{name}: sparsity must be a Sparsity or a sparse array, got {type(sparsity).__name__}")
    return Sparsity(sparsity, symmetric)


def _prepare_argument(name: str, func: Callable, args: tuple, kwargs: dict, argnums: int) -> tuple[Tensor, Callable]:
    """Return the argument as a plain tensor, and the function of that alone."""
    if graph_level() is not None:
        raise RuntimeError(
            f"{name}: gives a SciPy array, which other transforms and traces can't see into; call it outside of them, "
            f"or use jacfwd, jacrev or hessian inside"
        )
    if not isinstance(argnums, int):
        raise TypeError(f"{name}: argnums must be one int, got {argnums!r}; concatenate the arguments into one tensor")
    given = select_arguments(name, args, argnums)
    if not hasattr(given, "dtype"):
        raise TypeError(f"{name}: the argument must be one tensor, got {type(given).__name__}")
    x = as_tensor(given).detach()
    if not is_floating(x.dtype):
        raise RuntimeError(f"{name}: expected a real floating argument, got {x.aval}")
    of_x = BoundFunction(func, args, kwargs, argnums, may_write=False)
    x, rebuilt = flatten_nested(x)
    if rebuilt is None:
        return x, of_x

    @wraps(of_x)
    def of_plain(x: Tensor) -> Any:
        return of_x(rebuilt(x, 0))

    return x, of_plain


def _gradient(f: Callable, has_aux: bool) -> Callable:
    """Return the gradient of a function that must be a real scalar."""

    def checked(x: Tensor) -> Any:
        returned = f(x)
        out = returned[0] if has_aux and isinstance(returned, tuple) and returned else returned
        if not isinstance(out, Tensor) or out.shape != () or not is_floating(out.dtype):
            what = out.aval if isinstance(out, Tensor) else type(out).__name__
            raise RuntimeError(f"sparse_hessian: the function must return a real scalar, got {what}")
        return returned

    return grad(checked, has_aux=has_aux)


def _check_single_output(name: str, f: Callable, has_aux: bool) -> tuple[Callable, list]:
    """Return the function with its only output, checked; the list gets the auxiliary part of the result."""
    main, aux = split_aux(f, name, has_aux)

    @wraps(f)
    def checked(x: Tensor) -> Tensor:
        out, _ = flatten_nested(main(x))
        if not isinstance(out, Tensor):
            raise TypeError(f"{name}: the function must return one tensor, got {type(out).__name__}")
        if not is_floating(out.dtype):
            raise RuntimeError(f"{name}: expected a real floating output, got {out.aval}")
        return out

    return checked, aux


# -------------------------------------------------------------------------------------------------- computing


def _find_pattern(name: str, f: Callable, x: Tensor, has_aux: bool) -> Any:
    """Return the pattern: which elements of the output depend on which of the argument."""
    main, _ = _check_single_output(name, f, has_aux)
    with PatternLevel(f) as level:
        out = sync_views(main(level.input(x)))
    return level.pattern(out)


def _compute_matrix(
    name: str, f: Callable, x: Tensor, has_aux: bool, sparsity: Sparsity, chunk_size: int | None
) -> Any:
    """Return the matrix, and the function's other result."""
    main, aux = _check_single_output(name, f, has_aux)
    if sparsity.by == "rows":
        out, pull = vjp(main, x)
        like, derivative = out, lambda g: pull(g)[0]
    else:
        out, derivative = linearize(main, x)
        like = x
    if sparsity.shape != (out.numel(), x.numel()):
        raise ValueError(f"{name}: the sparsity is of {sparsity.shape}, the matrix has {(out.numel(), x.numel())}")
    chunk = chunk_size or max(1, BATCH // max(x.numel(), out.numel(), 1))
    products = _compressed_products(derivative, like, sparsity, chunk)
    data = sparse.entries(sparsity.pattern, sparsity.colors, products, sparsity.by)
    found = sparse.assemble(sparsity.pattern, data, out.dtype)
    return (found, optree.tree_map(_unwrap_result, aux.pop())) if has_aux else found


def _unwrap_result(leaf: Any) -> Any:
    """Return a tensor of the single transform that has run as it is outside."""
    return leaf if not isinstance(leaf, Tensor) or leaf.level is None else value_at(leaf.level, leaf)


def _compressed_products(derivative: Callable, like: Tensor, sparsity: Sparsity, chunk: int) -> Any:
    """Return the matrix times the ones of each colour, or these times the matrix: one row for each colour."""
    seeds = as_tensor(sparse.seeds(sparsity.colors, sparsity.count, like.dtype, like.shape))
    if not sparsity.count:
        return seeds.value.reshape(0, 0)
    try:
        found = vmap(derivative, chunk_size=chunk)(seeds)
    except NotBatchedError:
        (found,) = map_in_loop(lambda seed: [derivative(seed)], seeds, [like])
    return found.value.reshape(sparsity.count, -1)


suggest_in_module(globals())
