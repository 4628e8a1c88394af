"""For `gradcheck`: derivatives by forward mode."""

from typing import Any

import optree

from retrograd.autograd.gradcheck.backward_mode import Input, Problem, agree_within_rounding, random_like
from retrograd.autograd.gradcheck.differences import Array, GradcheckError, Output, result_leaves, to_double
from retrograd.core import Tensor, registry
from retrograd.core.tensor import make
from retrograd.levels import VmapLevel
from retrograd.levels.jacobian import map_in_loop, unit_vectors
from retrograd.levels.tangent_table import TangentTableLevel
from retrograd.ops.create import from_numpy, zeros
from retrograd.ops.layout import strided
from retrograd.ops.methods import concrete
from retrograd.ops.random import Generator

Tangents = dict[int, Tensor]  # by index of the input; the others have no tangent


def forward_tangents(problem: Problem, tangents: Tangents) -> list[Tensor | None]:
    """Return the tangents of the outputs by one forward pass; None stands for zero."""
    return _run_forward(problem, problem.arguments, {}, tangents)


def batched_forward_tangents(problem: Problem, tangents: Tangents, n: int) -> list[Tensor | None]:
    """Return the tangents of the outputs for n tangents at once, along the first dimension."""
    with VmapLevel(n, function=problem.func) as batch:
        # The function may ask for gradients by its arguments, so they are of the level at which it runs.
        inside = {id(x): _leaf_at(batch, x) for x in problem.tensors}
        arguments: Any = problem.arguments
        arguments = optree.tree_map(lambda leaf: inside.get(id(leaf), leaf), arguments, none_is_leaf=True)
        at = {number: make(t, batch, "the tangent") for number, t in tangents.items()}
        found = _run_forward(problem, arguments, inside, at)
    return [None if t is None else batch.all_examples(t) for t in found]


def _leaf_at(level: VmapLevel, x: Tensor) -> Tensor:
    with level.below():
        value = x.detach()
    leaf = make(value, level, None)
    leaf.requires_grad = True
    return leaf


def _run_forward(
    problem: Problem, arguments: tuple, inside: dict[int, Tensor], tangents: Tangents
) -> list[Tensor | None]:
    """Return the tangents of the outputs for given tangents of the inputs."""
    with TangentTableLevel() as level:
        for x, t in _sum_tangents(problem.tensors, tangents):
            level.set_tangent(x, t)
            if id(x) in inside:
                level.set_tangent(inside[id(x)], t)
        found = result_leaves(problem.func(*arguments))
        return [_check_tangent(problem, output, level.tangent(found[output.position])) for output in problem.outputs]


def _sum_tangents(tensors: list[Tensor], tangents: Tangents) -> list[tuple[Tensor, Tensor]]:
    """Return each tensor with its tangent; a tensor that is several inputs gets the sum of their tangents."""
    found: dict[int, tuple[Tensor, Tensor]] = {}
    for number, t in tangents.items():
        x = tensors[number]
        found[id(x)] = (x, found[id(x)][1] + t) if id(x) in found else (x, t)
    return list(found.values())


def _check_tangent(problem: Problem, output: Output, tangent: Tensor | None) -> Tensor | None:
    """Return the tangent of an output, after checking its shape and dtype."""
    if tangent is None:
        return None
    if tangent.shape != output.tensor.shape:
        raise GradcheckError(
            f"Tangent has incorrect size: {output.name} has shape {output.tensor.shape}, its tangent {tangent.shape}"
        )
    real = output.tensor.dtype.kind != "c" and tangent.dtype.kind == "c"
    if real or (problem.settings.dtypes and tangent.dtype != output.tensor.dtype):
        raise GradcheckError(
            f"Tangent has dtype mismatch: {output.name} is {output.tensor.dtype}, its tangent {tangent.dtype}"
        )
    return tangent


def dense_tangent(output: Output, tangent: Tensor | None) -> Array:
    """Return the entries of a tangent, zeros for None."""
    like = output.tensor
    return to_double(zeros(like.shape, dtype=like.dtype).numpy() if tangent is None else concrete(tangent))


def forward_columns(problem: Problem) -> list[list[Array]]:
    """Return the derivatives (directions, input entries, output entries) for each input and output."""
    return [_jacobian_columns(problem, number, x.tensor) for number, x in enumerate(problem.inputs)]


def _jacobian_columns(problem: Problem, number: int, x: Tensor) -> list[Array]:
    likes = [from_numpy(dense_tangent(output, None)) for output in problem.outputs]

    def push(tangent: Tensor) -> list[Tensor]:
        found = _push_one(problem, number, tangent.clone())  # the function may write to its inputs
        return [from_numpy(dense_tangent(output, t)) for output, t in zip(problem.outputs, found, strict=True)]

    units = (1.0, 1.0j) if x.dtype.kind == "c" else (1.0,)
    directions = [map_in_loop(push, unit_vectors(x, unit), likes) for unit in units]
    return [registry["stack"](list(found)).numpy() for found in zip(*directions, strict=True)]


def _push_one(problem: Problem, number: int, tangent: Tensor) -> list[Tensor | None]:
    """Return the outputs' tangents for the tangent of one input; the others have zeros, which functions may read."""
    zeros = {n: registry["zeros_like"](x) for n, x in enumerate(problem.tensors) if x.layout is strided}
    return forward_tangents(problem, {**zeros, number: tangent})


def forward_slopes(problem: Problem, us: list[Tensor], vs: list[Tensor]) -> list[list[float]]:
    """Return the slope of v . output along u for each output and input, by one forward pass for each input."""
    found: list[list[float]] = [[] for _ in problem.outputs]
    for number, u in enumerate(us):
        for row, output, v, t in zip(found, problem.outputs, vs, _push_one(problem, number, u), strict=True):
            row.append(float((v.numpy().reshape(-1).conj() * dense_tangent(output, t)).real.sum()))
    return found


def check_undefined_tangents(problem: Problem) -> None:
    """Check that omitting the tangent of an input means zero, for each input in turn."""
    if not problem.settings.undefined or len(problem.inputs) < 2:
        return
    generator = Generator(0)
    tangents = {number: random_like(x, generator) for number, x in enumerate(problem.tensors)}
    for number, x in enumerate(problem.inputs):
        expected = forward_tangents(problem, {**tangents, number: tangents[number] * 0})
        found = _tangents_without(problem, number, tangents)
        for output, t, e in zip(problem.outputs, found, expected, strict=True):
            _check_same(problem, output, x, dense_tangent(output, t), dense_tangent(output, e))


def _tangents_without(problem: Problem, number: int, tangents: Tangents) -> list[Tensor | None]:
    """Return the outputs' tangents for the tangents of all inputs but one."""
    try:
        return forward_tangents(problem, {other: t for other, t in tangents.items() if other != number})
    except Exception as error:  # whatever a user's jvp does with a None
        raise GradcheckError(
            f"forward mode fails where the tangent of {problem.inputs[number].name} is undefined, which means zero: "
            f"{type(error).__name__}: {error}"
        ) from error


def _check_same(problem: Problem, output: Output, x: Input, without: Array, with_zero: Array) -> None:
    if not agree_within_rounding(problem, output.tensor, without, with_zero):
        raise GradcheckError(
            f"forward mode does not take an undefined tangent for zero: without that of {x.name}, the tangent of "
            f"{output.name} is {without.tolist()}, but {with_zero.tolist()} if it is zero"
        )
