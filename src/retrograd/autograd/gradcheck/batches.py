"""For `gradcheck`: checks that batches of cotangents or tangents give the same results as single ones."""

from collections.abc import Sequence

from retrograd.autograd.backward import grad
from retrograd.autograd.gradcheck.backward_mode import Problem, dense_entries, random_like, unravel_index
from retrograd.autograd.gradcheck.differences import Array, GradcheckError, Output
from retrograd.autograd.gradcheck.forward_mode import batched_forward_tangents, forward_tangents
from retrograd.autograd.gradcheck.forward_mode import dense_tangent as dense_tangent
from retrograd.core import Tensor, registry
from retrograd.ops.create import from_numpy
from retrograd.ops.random import Generator

EXAMPLES = 2


def check_batched_backward(problem: Problem) -> None:
    """Compare random cotangents of each output pulled back one by one with all pulled back at once."""
    for output in problem.outputs:
        generator = Generator(0)
        cotangents = [random_like(output.tensor, generator) for _ in range(EXAMPLES)]
        expected = [_pull(problem, output, g) for g in cotangents]
        try:
            found = _pull(problem, output, registry["stack"](cotangents), batched=True)
        except Exception as error:  # whatever a user's backward does that a batch can't
            raise GradcheckError(_failure_message(f"backward from {output.name}", "cotangents", error)) from error
        for number, x in enumerate(problem.inputs):
            what = f"the gradient of {x.name} for {EXAMPLES} cotangents of {output.name}"
            rows = _split_batch(found[number])
            pairs = [
                (dense_entries(x, row), dense_entries(x, e[number])) for row, e in zip(rows, expected, strict=True)
            ]
            _check_equal(problem, what, x.tensor.shape, pairs)


def _pull(problem: Problem, output: Output, g: Tensor, batched: bool = False) -> tuple[Tensor | None, ...]:
    return grad(output.tensor, problem.tensors, g, retain_graph=True, allow_unused=True, is_grads_batched=batched)


def check_batched_forward(problem: Problem) -> None:
    """Compare random tangents of each input pushed forward one by one with all pushed forward at once."""
    for number, x in enumerate(problem.inputs):
        generator = Generator(0)
        tangents = [random_like(x.tensor, generator) for _ in range(EXAMPLES)]
        expected = [forward_tangents(problem, {number: t}) for t in tangents]
        try:
            found = batched_forward_tangents(problem, {number: registry["stack"](tangents)}, EXAMPLES)
        except Exception as error:  # whatever a user's jvp does that a batch can't
            raise GradcheckError(_failure_message(f"forward mode from {x.name}", "tangents", error)) from error
        for o, output in enumerate(problem.outputs):
            what = f"the tangent of {output.name} for {EXAMPLES} tangents of {x.name}"
            rows = _split_batch(found[o])
            pairs = [
                (dense_tangent(output, r), dense_tangent(output, e[o])) for r, e in zip(rows, expected, strict=True)
            ]
            _check_equal(problem, what, output.tensor.shape, pairs)


def _split_batch(batch: Tensor | None) -> Sequence[Tensor | None]:
    return [None] * EXAMPLES if batch is None else list(batch)


def _failure_message(what: str, of: str, error: Exception) -> str:
    return (
        f"gradcheck or gradgradcheck failed while testing batched gradient computation: {what} can't take a batch of "
        f"{of}, as vmap and vectorize=True give it, though it takes them one by one: {type(error).__name__}: {error}"
    )


def _check_equal(problem: Problem, what: str, shape: tuple[int, ...], pairs: list[tuple[Array, Array]]) -> None:
    """Compare the results of a batch with those of its examples one by one."""
    settings = problem.settings
    for example, (found, expected) in enumerate(pairs):
        excess = abs(found - expected) - settings.atol - settings.rtol * abs(expected)
        wrong = ~(excess <= 0)
        if wrong.any():
            worst = int(excess.argmax())
            index = unravel_index(worst, shape)
            raise GradcheckError(
                f"Batched derivative mismatch: {what}, at once and one by one, differ. In example {example} they are"
                f"\nat once:{from_numpy(found.reshape(shape))}\none by one:{from_numpy(expected.reshape(shape))}\n"
                f"{wrong.sum()} of {wrong.size} entries are wrong. The worst, at index {index}: at once "
                f"{found[worst].item():.8g}, one by one {expected[worst].item():.8g}."
            )
