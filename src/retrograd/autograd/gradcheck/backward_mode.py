"""For `gradcheck`: its settings and inputs, and derivatives by backward passes."""

from collections.abc import Callable
from typing import Any, NamedTuple

import optree

from retrograd.autograd.backward import grad
from retrograd.autograd.function.undefined_grad import UndefinedGrad
from retrograd.autograd.gradcheck.differences import Array, GradcheckError, Output, Probe, coarsest_epsilon, to_double
from retrograd.core import Tensor, registry
from retrograd.core import dtype as dtypes
from retrograd.core.op import compound
from retrograd.levels.jacobian import map_in_loop, unit_vectors
from retrograd.ops.create import from_numpy, zeros
from retrograd.ops.methods import concrete
from retrograd.ops.random import Generator, rand

ROUNDING_ULPS = 32  # tolerance of rounding, in units in the last place


class Settings(NamedTuple):
    """The options of the caller."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    undefined: bool
    dtypes: bool
    fast: bool
    backward: bool
    forward: bool
    batched: bool
    batched_forward: bool


class Input(NamedTuple):
    """A checked tensor: its name in messages, and its memory, which differences shift."""

    name: str
    tensor: Tensor
    array: Array


class Problem(NamedTuple):
    """The data that all checks need."""

    func: Callable
    arguments: tuple
    inputs: list[Input]
    outputs: list[Output]  # those that require grad
    settings: Settings

    @property
    def tensors(self) -> list[Tensor]:
        """The checked inputs."""
        return [i.tensor for i in self.inputs]

    @property
    def probe(self) -> Probe:
        """The function, for differences."""
        return Probe(self.func, self.arguments, self.outputs)


def named_leaves(kind: str, values: Any) -> list[tuple[str, Any]]:
    """Return the leaves of a sequence of pytrees by name: 'input 0', or 'input 0['weight']' for a nested one."""
    paths, found, _ = optree.tree_flatten_with_path(values, none_is_leaf=True)
    return [
        (f"{kind} {path[0]}" + "".join(f"[{key!r}]" for key in path[1:]), leaf)
        for path, leaf in zip(paths, found, strict=True)
    ]


def unravel_index(number: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index in a tensor of the entry with a flat index."""
    index: tuple[int, ...] = ()
    for size in reversed(shape):
        number, position = divmod(number, size)
        index = (position, *index)
    return index


def random_like(x: Tensor, generator: Generator) -> Tensor:
    """Return random numbers in the shape and dtype of x; their real and imaginary parts have sizes from 0.5 to 1.5."""
    r = rand(*x.shape, generator=generator, dtype=dtypes.float64) * 2 - 1
    r = r + r.sign() / 2
    return (r + 1j * random_like(r, generator) if x.dtype.kind == "c" else r).to(x.dtype)


# ------------------------------------------------------------------------------------------------ rows of Jacobians


Parts = dict[str, list[Array]]  # by part of an output: a matrix per input, with a row per entry of the output


def real_parts(output: Tensor) -> dict[str, complex]:
    """Return the real parts of an output, with the cotangents that select them."""
    return {"real": 1.0, "imaginary": 1.0j} if output.dtype.kind == "c" else {"": 1.0}


def backward_jacobians(problem: Problem, output: Output) -> Parts:
    """Return the Jacobians of an output with respect to every input, after checking that they are reproducible.

    Two passes from one dense cotangent show whether anything varies; only then each row is computed twice.
    """
    found = _jacobian_rows(problem, output)
    v = random_like(output.tensor, Generator(0))
    if any(
        _distance(x, *gs) > 0
        for x, *gs in zip(problem.inputs, *_gradients_of_two_passes(problem, output, v), strict=True)
    ):
        for part, again in _jacobian_rows(problem, output).items():
            for x, first, second in zip(problem.inputs, found[part], again, strict=True):
                _check_reproducible(problem, output, x, float(abs(first - second).max(initial=0.0)))
    return found


def _gradients_of_two_passes(problem: Problem, output: Output, v: Tensor) -> tuple[tuple, tuple]:
    return _gradients_of_output(problem, output, v), _gradients_of_output(problem, output, v)


def _gradients_of_output(problem: Problem, output: Output, cotangent: Tensor) -> tuple[Tensor | None, ...]:
    """Return the gradients if only this output has a cotangent."""
    try:
        return grad(output.tensor, problem.tensors, cotangent, retain_graph=True, allow_unused=True)
    except Exception as error:  # whatever a user's backward does with a None
        if len(problem.outputs) == 1:
            raise
        raise GradcheckError(
            f"backward fails where {output.name} alone has a cotangent; undefined cotangents mean zero: "
            f"{type(error).__name__}: {error}"
        ) from error


def _distance(x: Input, first: Tensor | None, second: Tensor | None) -> float:
    """Return the largest difference between two gradients; None stands for zero."""
    return float(abs(dense_entries(x, first) - dense_entries(x, second)).max(initial=0.0))


def _check_reproducible(problem: Problem, output: Output, x: Input, distance: float) -> None:
    if distance > problem.settings.nondet_tol:
        raise GradcheckError(
            f"Backward is not reentrant: two backward passes from {output.name} with the same cotangent give "
            f"gradients of {x.name} that differ by {distance:g}, with nondet_tol={problem.settings.nondet_tol:g}"
        )


def _jacobian_rows(problem: Problem, output: Output) -> Parts:
    """Return the gradients of each entry of an output by every input."""
    likes = [_zero_gradient(x.tensor) for x in problem.inputs]

    def pull(cotangent: Tensor) -> list[Tensor]:
        gs = _gradients_of_output(problem, output, cotangent.clone())  # a user's backward may write to it
        return [
            from_numpy(_gradient_row(x, g, problem.settings.dtypes)) for x, g in zip(problem.inputs, gs, strict=True)
        ]

    return {
        part: [rows.numpy() for rows in map_in_loop(pull, unit_vectors(output.tensor, unit), likes)]
        for part, unit in real_parts(output.tensor).items()
    }


def _zero_gradient(x: Tensor) -> Tensor:
    """Return the gradient zero, in double precision."""
    return zeros(x.numel(), dtype=dtypes.complex128 if x.dtype.kind == "c" else dtypes.float64)


def _gradient_row(x: Input, g: Tensor | None, same_dtype: bool) -> Array:
    """Return the entries of a gradient in double precision, zeros for None."""
    return _zero_gradient(x.tensor).numpy() if g is None else to_double(check_entries(x, g, same_dtype))


def check_entries(x: Input, g: Tensor, same_dtype: bool = False) -> Array:
    """Return the entries of a gradient, after checking that it fits its input."""
    if same_dtype and g.dtype != x.tensor.dtype:
        raise GradcheckError(f"Gradient has dtype mismatch: {x.name} is {x.tensor.dtype}, its gradient {g.dtype}")
    if compound(g) is not compound(x.tensor):
        raise GradcheckError(
            f"grad is incorrect layout: that of {x.name} is {g.layout}, and the input is {x.tensor.layout}"
        )
    if g.shape != x.tensor.shape:
        raise GradcheckError(
            f"Analytical gradient has incorrect size: {x.name} has shape {x.tensor.shape}, its gradient {g.shape}"
        )
    flat = concrete(g).reshape(-1)
    return flat if x.tensor.dtype.kind == "c" else flat.real


def dense_entries(x: Input, g: Tensor | None) -> Array:
    """Return the entries of a gradient, zeros for None."""
    return _zero_gradient(x.tensor).numpy() if g is None else check_entries(x, g)


def backward_slopes(problem: Problem, output: Output, v: Tensor, us: list[Tensor]) -> list[float]:
    """Return the slopes of v . output along each u, by backward passes."""
    found = []
    for x, u, *gs in zip(problem.inputs, us, *_gradients_of_two_passes(problem, output, v), strict=True):
        if gs[0] is not None:
            check_entries(x, gs[0], problem.settings.dtypes)
        _check_reproducible(problem, output, x, _distance(x, *gs))
        found.append(float((dense_entries(x, gs[0]).conj() * u.numpy().reshape(-1)).real.sum()))
    return found


# ------------------------------------------------------------------------------------ zero and missing cotangents


def check_zero_cotangents(problem: Problem) -> None:
    """Check that zero cotangents give zero gradients, since gradients are linear in them."""
    outs = [o.tensor for o in problem.outputs]
    found = grad(outs, problem.tensors, [registry["zeros_like"](o.detach()) for o in outs], True, allow_unused=True)
    for x, g in zip(problem.inputs, found, strict=True):
        if g is not None and (check_entries(x, g) != 0).any():
            raise GradcheckError(
                f"backward not multiplied by grad_output: for zero cotangents the gradient of {x.name} is {g.detach()}"
            )


def check_undefined(problem: Problem) -> None:
    """Check that an undefined cotangent means zero: of each of several outputs in turn, then of all at once."""
    if not problem.settings.undefined:
        return
    if len(problem.outputs) > 1:
        _check_each_undefined(problem)
    _check_all_undefined(problem)


def _check_each_undefined(problem: Problem) -> None:
    outs = [o.tensor for o in problem.outputs]
    generator = Generator(0)
    cotangents = [random_like(o, generator) for o in outs]
    for k, output in enumerate(problem.outputs):
        zero = [g * 0 if i == k else g for i, g in enumerate(cotangents)]
        expected = grad(outs, problem.tensors, zero, retain_graph=True, allow_unused=True)
        found = _gradients_without(problem, k, outs, cotangents)
        for x, g, e in zip(problem.inputs, found, expected, strict=True):
            _check_same(problem, output, x, dense_entries(x, g), dense_entries(x, e))


def _check_all_undefined(problem: Problem) -> None:
    """Check that the gradients are undefined or zero if the cotangents of all outputs are undefined."""
    outs = [UndefinedGrad()(o.tensor) for o in problem.outputs]
    seeds = [registry["zeros_like"](o) for o in outs]
    try:
        found = grad(outs, problem.tensors, seeds, retain_graph=True, allow_unused=True)
    except Exception as error:
        raise GradcheckError(
            f"Expected backward function to handle undefined output grads, which mean zero, but without any of them it "
            f"fails: {type(error).__name__}: {error}"
        ) from error
    for x, g in zip(problem.inputs, found, strict=True):
        if dense_entries(x, g).any():
            raise GradcheckError(
                f"Expected all input grads to be undefined or zero when all output grads are undefined or zero, but "
                f"without any of them the gradient of {x.name} is {g}"
            )


def agree_within_rounding(problem: Problem, like: Tensor, first: Array, second: Array) -> bool:
    """Return whether two derivatives differ by no more than rounding in the tensor's dtype."""
    largest = max(abs(first).max(initial=0.0), abs(second).max(initial=0.0))
    allowed = problem.settings.nondet_tol + ROUNDING_ULPS * coarsest_epsilon([like]) * largest
    same = (abs(first - second) <= allowed) | (first != first) & (second != second)
    return bool(same.all())


def _check_same(problem: Problem, output: Output, x: Input, without: Array, with_zero: Array) -> None:
    if not agree_within_rounding(problem, x.tensor, without, with_zero):
        raise GradcheckError(
            f"backward does not take an undefined cotangent for zero: without that of {output.name}, the gradient "
            f"of {x.name} is {without.tolist()}, but {with_zero.tolist()} if it is zero"
        )


def _gradients_without(
    problem: Problem, k: int, outs: list[Tensor], cotangents: list[Tensor]
) -> tuple[Tensor | None, ...]:
    """Return the gradients for the cotangents of all outputs except number k."""
    rest, given = outs[:k] + outs[k + 1 :], cotangents[:k] + cotangents[k + 1 :]
    try:
        return grad(rest, problem.tensors, given, retain_graph=True, allow_unused=True)
    except Exception as error:  # whatever a user's backward does with a None
        raise GradcheckError(
            f"Expected backward function to handle undefined output grads, which mean zero, but without that of "
            f"{problem.outputs[k].name} it fails: "
            f"{type(error).__name__}: {error}"
        ) from error
