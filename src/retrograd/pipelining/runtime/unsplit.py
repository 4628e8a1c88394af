"""Steps inside function transforms: the unsplit model on the calling thread, at the level of the transform."""

from collections.abc import Callable, Sequence
from typing import Any

from retrograd.autograd import no_grad
from retrograd.core import Tensor
from retrograd.core.level import graph_level
from retrograd.nn import Module, ModuleList
from retrograd.pipelining.microbatch import MicroBatch


def check_unsplit(name: str, model: Module, local: Sequence[int] | None) -> None:
    """Raise NotImplementedError if a call of a pipeline cannot run inside the current transform.

    Tensors of a level exist in one process only, and a trace records no accumulation of gradients.
    """
    level = graph_level()
    reason = ""
    if level is not None and level.traces:
        reason = "a trace; trace the model"
    elif local is not None:
        reason = "a function transform if ranks are processes; use transport='threads'"
    elif isinstance(model, ModuleList):
        reason = "a function transform for a model that is given as stages; give one module"
    if reason:
        raise NotImplementedError(f"Pipeline.{name} does not run inside {reason}")


def step_unsplit(
    model: Module,
    loss_fn: Callable[[Any, Any], Tensor] | None,
    batches: Sequence[MicroBatch],
    targets: Sequence[Any],
    shares: Sequence[float],
    scale: float,
) -> Tensor:
    """Return the loss over microbatches, weighted by their shares, and accumulate the gradients of `scale` times it.

    The graph is kept: transforms differentiate the loss.
    """
    if loss_fn is None:
        raise NotImplementedError("Pipeline.step inside a function transform needs a loss_fn")
    parts = [
        share * loss_fn(model(*batch.args, **batch.kwargs), target)
        for batch, target, share in zip(batches, targets, shares, strict=True)
        if share
    ]
    loss = sum(parts[1:], start=parts[0])
    (loss * scale).backward(retain_graph=True)
    return loss


def predict_unsplit(model: Module, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Return the model's outputs for a batch, without gradients."""
    with no_grad():
        return model(*args, **kwargs)
