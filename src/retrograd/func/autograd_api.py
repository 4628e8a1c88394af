"""Derivatives of plain functions of plain arrays, under the names and with the signatures of HIPS autograd.

Arguments are numbers, arrays, tensors, and tuples, lists and dicts of these.  Inside, the function gets tensors.
Results are arrays, or tensors if an argument is a tensor.  Derivatives are plain transposes, as in HIPS
autograd and JAX: of a real function of x + iy the gradient is df/dx - i df/dy, the conjugate of PyTorch's.
"""

import inspect
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

import optree

from retrograd.core import Tensor, registry
from retrograd.core.dtype import promote
from retrograd.core.engine import ones
from retrograd.core.tensor import make
from retrograd.foundation.describe_value import describe
from retrograd.foundation.source_location import warn_user
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.func.argnums import BoundFunction
from retrograd.func.array_vjp import ArrayVjpRun, array_jvp, as_differentiable, has_tensor, to_arrays, tree_to_arrays
from retrograd.func.vjp_run import unwrap_tree
from retrograd.levels import GradLevel
from retrograd.levels.grad import pull_cotangents
from retrograd.levels.jacobian import column_blocks, map_in_loop, row_blocks, unit_vectors
from retrograd.ops.create import as_tensor
from retrograd.ops.family import cast_to

Argnum = int | Sequence[int]


def _argnum_transform(operator: Callable) -> Callable:
    """Turn `operator(fun, x)`, for functions of one argument, into `operator(fun, argnum)(*args, **kwargs)`."""

    @wraps(operator, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def transform(fun: Callable, argnum: Argnum = 0) -> Callable:
        numbers = argnum if isinstance(argnum, (tuple, list)) else (argnum,)
        if not all(isinstance(i, int) and not isinstance(i, bool) for i in numbers):
            raise TypeError(f"{operator.__name__}: argnum must be an int or a tuple of them, got {describe(argnum)}")

        @wraps(fun, updated=())
        def derived(*args: Any, **kwargs: Any) -> Any:
            of_one = BoundFunction(fun, args, kwargs, argnum, may_write=False)
            return operator(of_one, _select_arguments(operator.__name__, args, argnum), not has_tensor(args, kwargs))

        derived.__name__ = f"{operator.__name__}_of_{getattr(fun, '__name__', 'function')}"
        return derived

    del transform.__wrapped__  # it has other parameters
    return transform


def _select_arguments(name: str, args: tuple, argnum: Argnum) -> Any:
    for i in (argnum,) if isinstance(argnum, int) else argnum:
        if not -len(args) <= i < len(args):
            raise IndexError(f"{name}: argnum has {i}, but there are only {len(args)} positional arguments")
    return args[argnum] if isinstance(argnum, int) else tuple(args[i] for i in argnum)


def _pull_ones(run: ArrayVjpRun, out: Tensor) -> list[Tensor]:
    """Return the pullback of a cotangent of ones."""
    return run.pull([ones(out.shape, out.dtype, out)])


def _check_scalar(run: ArrayVjpRun, out: Tensor) -> None:
    if out.dtype.kind == "c":
        raise TypeError(f"{run.name}: the function returned a complex number; use holomorphic_grad, or take its real()")
    if out.numel() != 1:
        raise TypeError(
            f"{run.name} only applies to real scalar-output functions, and this one returned shape {out.shape}; use "
            f"jacobian or elementwise_grad"
        )


def _gradient(run: ArrayVjpRun, plain: bool) -> Any:
    out = run.single_output()
    _check_scalar(run, out)
    return run.tree(to_arrays(_pull_ones(run, out), plain))


@_argnum_transform
def grad(fun: Callable, x: Any, plain: bool) -> Any:
    """Return the function that computes the gradient of a real scalar function by the argument `argnum`.

    >>> grad(lambda x: x**3)(2.0)
    np.float64(12.0)
    """
    return _gradient(ArrayVjpRun("grad", fun, x), plain)


@_argnum_transform
def value_and_grad(fun: Callable, x: Any, plain: bool) -> tuple[Any, Any]:
    """Return the function that computes both value and gradient, as scipy.optimize expects them.

    >>> value_and_grad(lambda x: x**3)(2.0)
    (np.float64(8.0), np.float64(12.0))
    """
    run = ArrayVjpRun("value_and_grad", fun, x)
    return tree_to_arrays(run.value, plain), _gradient(run, plain)


@_argnum_transform
def grad_and_aux(fun: Callable, x: Any, plain: bool) -> tuple[Any, Any]:
    """Return the function that computes the gradient of a scalar, and returns the auxiliary result unchanged."""
    aux_values: list = []

    def first(x: Any) -> Any:
        out, aux = fun(x)
        aux_values.append(aux)
        return out

    run = ArrayVjpRun("grad_and_aux", first, x)
    aux = unwrap_tree(run.level, aux_values.pop())
    return _gradient(run, plain), tree_to_arrays(aux, plain)


@_argnum_transform
def elementwise_grad(fun: Callable, x: Any, plain: bool) -> Any:
    """Return the function for the sum of the Jacobian's rows: the derivative of an elementwise function.

    >>> import numpy as np
    >>> elementwise_grad(lambda x: x**2)(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    run = ArrayVjpRun("elementwise_grad", fun, x)
    out = run.single_output()
    if out.dtype.kind == "c":
        raise TypeError("elementwise_grad only applies to real-output functions; use holomorphic_grad or jacobian")
    return run.tree(to_arrays(_pull_ones(run, out), plain))


@_argnum_transform
def holomorphic_grad(fun: Callable, x: Any, plain: bool) -> Any:
    """Return the complex derivative of a holomorphic function."""
    run = ArrayVjpRun("holomorphic_grad", fun, x)
    if any(leaf.dtype.kind != "c" for leaf in run.leaves):
        warn_user("holomorphic_grad: an input is not complex")
    return run.tree(to_arrays(_pull_ones(run, run.single_output()), plain))


@_argnum_transform
def deriv(fun: Callable, x: Any, plain: bool) -> Any:
    """Return the forward-mode derivative along the direction of ones: the derivative of a function of one number."""
    direction = optree.tree_map(lambda leaf: registry["ones_like"](as_differentiable("deriv", leaf)), x)
    return tree_to_arrays(array_jvp("deriv", fun, x, direction)[1], plain)


# --------------------------------------------------------------------------------------- Jacobians and Hessians


@_argnum_transform
def jacobian(fun: Callable, x: Any, plain: bool) -> Any:
    """Return the function that computes the Jacobian, of shape (*output.shape, *input.shape), for each leaf.

    The function runs once.  Rows are pulled back one by one, or, where there are fewer of them, columns.

    >>> import numpy as np
    >>> jacobian(lambda x: x[:2] * x[2])(np.array([1.0, 2.0, 3.0]))
    array([[3., 0., 1.],
           [0., 3., 2.]])
    """
    run = ArrayVjpRun("jacobian", fun, x)
    out = run.single_output()
    fewer_columns = 2 * sum(leaf.numel() for leaf in run.leaves) < out.numel()
    fewer_columns = fewer_columns and all(leaf.dtype.kind == out.dtype.kind for leaf in run.leaves)
    return run.tree(to_arrays((_by_columns if fewer_columns else _by_rows)(run, out), plain))


def _by_rows(run: ArrayVjpRun, out: Tensor) -> list[Tensor]:
    """Return the Jacobian with one pullback for each element of the output."""
    rows = _pull_rows(run, out, 1)
    if out.dtype.kind == "c" and out.numel():
        # For a real input a pullback gives the real part; of -i times the cotangent, that is the imaginary part.
        imaginary = _pull_rows(run, out, -1j)
        rows = [g if g.dtype.kind == "c" else registry["complex"](g, t) for g, t in zip(rows, imaginary, strict=True)]
    return row_blocks(rows, [out])[0]


def _pull_rows(run: ArrayVjpRun, out: Tensor, entry: complex) -> list[Tensor]:
    return map_in_loop(lambda unit: run.pull([unit]), unit_vectors(out, entry), run.leaves)


def _by_columns(run: ArrayVjpRun, out: Tensor) -> list[Tensor]:
    """Return the Jacobian by columns: the pullback is linear, so its own pullback gives one column for each element."""
    outer = GradLevel()
    cotangent = make(registry["zeros_like"](out), outer, None)
    with outer:
        cotangent.requires_grad = True
        cotangent_in = run.pull([cotangent])
    blocks = []
    for leaf, g in zip(run.leaves, cotangent_in, strict=True):
        push = partial(_push_column, outer, g, cotangent)
        blocks += column_blocks(map_in_loop(push, unit_vectors(leaf), [out]), [leaf])[0]
    return blocks


def _push_column(outer: GradLevel, g: Tensor, cotangent: Tensor, unit: Tensor) -> list[Tensor]:
    return pull_cotangents(outer, [g], [unit], [cotangent])


def hessian(fun: Callable, argnum: Argnum = 0) -> Callable:
    """Return the function for second derivatives, of shape (*output.shape, *input.shape, *input.shape).

    >>> import numpy as np
    >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([3.0, 5.0]))
    array([[10.,  6.],
           [ 6.,  0.]])
    """
    return jacobian(jacobian(fun, argnum), argnum)


# ------------------------------------------------------------------------------------ products with derivatives


@_argnum_transform
def make_vjp(fun: Callable, x: Any, plain: bool) -> tuple[Callable, Any]:
    """Return a function that returns, at a point, the pullback of cotangents to the argument, and the value.

    >>> pull, value = make_vjp(lambda x: x**3)(2.0)
    >>> value, pull(1.0), pull(10.0)
    (np.float64(8.0), np.float64(12.0), np.float64(120.0))
    """
    run = ArrayVjpRun("make_vjp", fun, x)

    def pull(cotangent: Any) -> Any:
        given = optree.tree_leaves(cotangent)
        if len(given) != len(run.outs):
            raise ValueError(f"make_vjp: the cotangent has {len(given)} leaves, the output {len(run.outs)}")
        seeds = [_as_seed(g, out) for g, out in zip(given, run.outs, strict=True)]
        return run.tree(to_arrays(run.pull(seeds), plain and not has_tensor(cotangent)))

    return pull, tree_to_arrays(run.value, plain)


def _as_seed(g: Any, out: Any) -> Tensor:
    """Return a cotangent as a tensor in the dtype of its output; dtypes may be converted, shapes not."""
    seed = as_tensor(g, getattr(out, "dtype", None))
    if seed.shape != getattr(out, "shape", ()):
        raise ValueError(f"make_vjp: a cotangent has shape {seed.shape}, its output {getattr(out, 'shape', ())}")
    return seed


@_argnum_transform
def make_jvp(fun: Callable, x: Any, plain: bool) -> Callable:
    """Return a function that returns, at a point, the map from a tangent to the value and derivative along it.

    >>> make_jvp(lambda x: x**3)(2.0)(10.0)
    (np.float64(8.0), np.float64(120.0))
    """

    def push(tangent: Any) -> tuple[Any, Any]:
        value, along = array_jvp("make_jvp", fun, x, tangent)
        as_arrays = plain and not has_tensor(tangent)
        return tree_to_arrays(value, as_arrays), tree_to_arrays(along, as_arrays)

    return push


def make_hvp(fun: Callable, argnum: Argnum = 0) -> Callable:
    """Return a function that returns, at a point, the Hessian-vector product of a scalar function, and the gradient."""
    return make_vjp(grad(fun, argnum), argnum)


def hessian_tensor_product(fun: Callable, argnum: Argnum = 0) -> Callable:
    """Return the function of (*args, v) for the Hessian at args times v, without forming the Hessian.

    >>> hessian_tensor_product(lambda x: x**3)(2.0, 10.0)
    np.float64(120.0)
    """

    def product(*args: Any, **kwargs: Any) -> Any:
        *point, vector = args
        return make_hvp(fun, argnum)(*point, **kwargs)[0](vector)

    return product


def tensor_jacobian_product(fun: Callable, argnum: Argnum = 0) -> Callable:
    """Return the function of (*args, v) for v times the Jacobian, contracted over all axes of the output."""

    def product(*args: Any, **kwargs: Any) -> Any:
        *point, vector = args

        def contracted(*inner: Any, **named: Any) -> Any:
            out = as_tensor(fun(*inner, **named))
            weights = as_tensor(vector, None if hasattr(vector, "dtype") else out.dtype)
            both = promote(weights.dtype, out.dtype)
            return registry["tensordot"](cast_to(weights, both), cast_to(out, both), weights.ndim)

        return jacobian(contracted, argnum)(*point, **kwargs)

    return product


hessian_vector_product = hessian_tensor_product
vector_jacobian_product = tensor_jacobian_product


def make_ggnvp(f: Callable, g: Callable | None = None, f_argnum: Argnum = 0) -> Callable:
    """Return a function that returns, at a point, the generalised Gauss-Newton matrix-vector product of g(f(x)).

    That is J^T H J, with the Jacobian J of f and the Hessian H of g, by default half the sum of squares.
    """

    def at_point(*args: Any, **kwargs: Any) -> Callable:
        pull, value = make_vjp(f, f_argnum)(*args, **kwargs)
        curvature = make_hvp(_half_square if g is None else g)(value)[0]
        push = make_jvp(f, f_argnum)(*args, **kwargs)
        return lambda v: pull(curvature(push(v)[1]))

    return at_point


def _half_square(x: Tensor) -> Tensor:
    return 0.5 * registry["sum"](x * x)


# ----------------------------------------------------------------------------------------------- arguments by name


def grad_named(fun: Callable, argname: str) -> Callable:
    """Return the gradient with respect to the argument of that name, which is passed by position."""
    return grad(fun, list(inspect.signature(fun).parameters).index(argname))


def multigrad_dict(fun: Callable) -> Callable:
    """Return the gradients with respect to all arguments, defaults included, as a dict by name.

    >>> multigrad_dict(lambda x, y=2.0: x * y)(3.0)
    {'x': np.float64(2.0), 'y': np.float64(3.0)}
    """
    signature = inspect.signature(fun)

    def gradients(*args: Any, **kwargs: Any) -> dict[str, Any]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()

        def of_all(arguments: dict[str, Any]) -> Any:
            bound.arguments.update(arguments)
            return fun(*bound.args, **bound.kwargs)

        found = grad(of_all)(dict(bound.arguments))
        return {name: found[name] for name in signature.parameters}

    return gradients


suggest_in_module(globals())
