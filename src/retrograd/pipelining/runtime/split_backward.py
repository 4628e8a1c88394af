"""The split backward pass of one stage: two halves, which zero-bubble schedules interleave with other work.

After P. Qi, X. Wan, G. Huang, M. Lin, "Zero Bubble Pipeline Parallelism" (2024): the previous stage waits only for
input gradients; weight gradients fill the time in which a rank would be idle.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from retrograd import autograd
from retrograd.autograd.split_backward import ParamGroup, backward_input, backward_weight
from retrograd.core import Tensor, registry
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.pipelining.runtime.stage_backward import as_list, backward_error, leaves, pair_with_gradients


def stage_backward_input(
    stage_outputs_or_loss: Any, output_grads: Any, input_values: Iterable[Any], weights: Iterable[Tensor]
) -> tuple[tuple[Tensor | None, ...], list[ParamGroup]]:
    """Compute the gradients of a stage's inputs, and return them with the data for the weight half.

    stage_outputs_or_loss: the stage's outputs, nested in tuples, lists and dicts, or the loss.
    output_grads: gradients in the same nesting.  None for a tensor means 1: the tensor is a loss of one element.  None
     for a container skips its content; None instead of all gradients means ones for every output.
    input_values: the stage's inputs, leaves or not, in an iterable; None is returned for those that require no grad.
    weights: the leaves of the second half.  Those that require no grad get nothing.

    The gradients are accumulated in `.grad` of inputs that are leaves, too, and no other `.grad` changes.  Saved
    tensors are freed, except those that the weights' gradients need, which the groups hold.  Hooks of tensors inside
    the stage run now, those of weights later.

    Raises RuntimeError that shows outputs, gradients and inputs, with the cause chained, and TypeError for a
    tensor instead of an iterable.

    >>> import retrograd as rg
    >>> x, w = rg.tensor([1.0, 2.0], requires_grad=True), rg.tensor([3.0, 4.0], requires_grad=True)
    >>> gradients, groups = stage_backward_input([x * w], [rg.ones(2)], [x], [w])
    >>> gradients, w.grad
    ((tensor([3., 4.]),), None)
    >>> stage_backward_weight([w], groups)
    (tensor([1., 2.]),)
    """
    values = as_list("stage_backward_input", input_values)
    found, groups = input_gradients(stage_outputs_or_loss, output_grads, values, weights)
    for value, gradient in zip(values, found, strict=True):
        # The engine returns these gradients and accumulates nothing; PyTorch accumulates them in leaves.
        if gradient is not None and value.is_leaf:
            _accumulate(value, gradient)
    return found, groups


def input_gradients(
    stage_outputs_or_loss: Any, output_grads: Any, values: Sequence[Any], weights: Iterable[Tensor]
) -> tuple[tuple[Tensor | None, ...], list[ParamGroup]]:
    """Return the results of `stage_backward_input`, and change no `.grad`."""
    trained = _trainable("stage_backward_input", weights)
    try:
        if output_grads is None:
            pairs = [
                (out, registry["ones_like"](out.detach()))
                for out in leaves(stage_outputs_or_loss)
                if _requires_grad(out)
            ]
        else:
            pairs = pair_with_gradients(stage_outputs_or_loss, output_grads)
        inputs = [value for value in values if _requires_grad(value)]
        found, groups = backward_input([out for out, _ in pairs], [g for _, g in pairs], inputs, trained)
    except Exception as cause:
        raise backward_error("stage backward input", cause, stage_outputs_or_loss, output_grads, values) from cause
    gradients = iter(found)
    return tuple(next(gradients) if _requires_grad(value) else None for value in values), groups


def stage_backward_weight(
    weights: Iterable[Tensor], param_groups: Sequence[ParamGroup], retain_graph: bool = False
) -> tuple[Tensor | None, ...]:
    """Accumulate the gradients of the weights in `.grad`, and return them.

    weights: the same as in the first half, or some of them together with their groups.
    param_groups: those of `stage_backward_input`, all or some.  Each can be used once, unless `retain_graph`.

    Raises RuntimeError for a group that was used before, for values or gradients modified in place since the
    first half, and ValueError for groups of weights that are not given.
    """
    weights = _tensors("stage_backward_weight", weights)
    weight_ids = {id(weight) for weight in weights}
    for group in param_groups:
        if not isinstance(group, Mapping) or "params" not in group:
            raise TypeError(
                f"stage_backward_weight: param_groups are those that stage_backward_input returns, got {group!r}"
            )
    unknown = [param for group in param_groups for param in group["params"] if id(param) not in weight_ids]
    if unknown:
        raise ValueError(
            f"stage_backward_weight: the param_groups are for {len(unknown)} weights that are not among the "
            f"{len(weights)} given, the first of shape {unknown[0].shape}"
        )
    backward_weight(param_groups, retain_graph)
    return tuple(weight.grad for weight in weights)


def _accumulate(x: Tensor, gradient: Tensor) -> None:
    """Add a gradient to `.grad` in place, or make it `.grad`."""
    if x.grad is None:
        x.grad = gradient
    else:
        with autograd.no_grad():
            x.grad += gradient


def _requires_grad(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _trainable(name: str, weights: Iterable[Tensor]) -> list[Tensor]:
    """Return the weights that get gradients, without duplicates."""
    return list({id(weight): weight for weight in _tensors(name, weights) if weight.requires_grad}.values())


def _tensors(name: str, weights: Iterable[Tensor]) -> list[Tensor]:
    """Return the weights as a list; a single tensor is refused, because it would be iterated by rows."""
    if isinstance(weights, Tensor):
        raise TypeError(f"{name}: weights must be several tensors, got one of shape {weights.shape}; pass [weight]")
    found = list(weights)
    for weight in found:
        if not isinstance(weight, Tensor):
            raise TypeError(f"{name}: weights must be tensors, got {type(weight).__name__}")
    return found


suggest_in_module(globals())
