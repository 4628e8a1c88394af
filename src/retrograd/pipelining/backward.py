"""The backward pass of one stage, from the gradients of its outputs to those of its inputs."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import optree

from retrograd import autograd
from retrograd.core import Tensor


def stage_backward(
    stage_output: Any,
    output_grads: Any,
    input_values: Sequence[Any],
    outputs_with_grads_idxs: Sequence[int] | None = None,
) -> tuple[Tensor | None, ...]:
    """Run a stage backward: parameter gradients accumulate, the gradients of its inputs are returned.

    stage_output: what the stage returned, nested in tuples, lists and dicts.
    output_grads: gradients nested alike; None where there is none, or in place of a container where there are none.
        Outputs that are no tensors, or require no gradient, are skipped.  A single tensor without gradient is a loss:
        its gradient is 1.
    input_values: the stage's inputs, leaves or not.
    outputs_with_grads_idxs: the places, in both, of the outputs that count; None: all of them.

    Returns one gradient per input value, None for what is no tensor or got none; its `.grad` stays as it was.

    Raises RuntimeError that shows the shapes, dtypes and devices of outputs, gradients and inputs, with the cause
    chained; TypeError for input_values that are no sequence.

    >>> import retrograd as rg
    >>> x = rg.tensor([1.0, 2.0], requires_grad=True)
    >>> stage_backward((x * 3, "a note"), (rg.ones(2), None), [x, 7])
    (tensor([3., 3.]), None)
    """
    check_values("stage_backward", input_values)
    try:
        if outputs_with_grads_idxs is not None:
            stage_output = [stage_output[i] for i in outputs_with_grads_idxs]
            output_grads = [output_grads[i] for i in outputs_with_grads_idxs]
        pairs = paired(stage_output, output_grads)
        with _caught(input_values) as found:
            if pairs:
                autograd.backward([out for out, _ in pairs], [g for _, g in pairs])
    except Exception as cause:
        raise failure("stage_backward", cause, stage_output, output_grads, input_values) from cause
    return tuple(found.get(id(value)) for value in input_values)


@contextmanager
def _caught(values: Sequence[Any]) -> Iterator[dict[int, Tensor]]:
    """Inside, a backward pass brings the gradients of these values here, by their ids, and not to their `.grad`."""
    found: dict[int, Tensor] = {}
    tensors = {id(v): v for v in values if isinstance(v, Tensor) and v.requires_grad}
    leaves = [(t, t.grad) for t in tensors.values() if t.is_leaf]
    handles = [
        t.register_hook(lambda g, key=key: found.update({key: g})) for key, t in tensors.items() if not t.is_leaf
    ]
    try:
        for leaf, _ in leaves:
            leaf.grad = None
        yield found
        found.update({id(leaf): leaf.grad for leaf, _ in leaves if leaf.grad is not None})
    finally:
        for leaf, grad in leaves:
            leaf.grad = grad
        for handle in handles:
            handle.remove()


def paired(outputs: Any, gradients: Any) -> list[tuple[Tensor, Tensor | None]]:
    """The outputs that get a gradient, each with its own; None stands for 1 where the only output is a loss.

    Raises ValueError where the two are not nested alike, TypeError for a gradient that is no tensor.
    """
    if isinstance(outputs, Tensor) and gradients is None:
        return [(outputs, None)] if outputs.requires_grad else []
    return list(_pairs(outputs, gradients))


def _pairs(output: Any, gradient: Any) -> Iterator[tuple[Tensor, Tensor]]:
    if isinstance(output, Tensor):
        if output.requires_grad and gradient is not None:
            if not isinstance(gradient, Tensor):
                raise TypeError(f"expected a Tensor or None as gradient of a tensor, got {type(gradient).__name__}")
            yield output, gradient
    elif gradient is not None and not optree.tree_is_leaf(output, none_is_leaf=True):
        outputs, gradients = _members(output), {} if isinstance(gradient, Tensor) else _members(gradient)
        if outputs.keys() != gradients.keys():
            raise ValueError(
                f"outputs and their gradients must be nested alike: there are {list(outputs)} in a "
                f"{type(output).__name__}, but {list(gradients)} in a {type(gradient).__name__}"
            )
        for key, member in outputs.items():
            yield from _pairs(member, gradients[key])


def _members(container: Any) -> dict[Any, Any]:
    """What a tuple, list, dict or the like has, by place or key."""
    if optree.tree_is_leaf(container, none_is_leaf=True):
        return {}
    children, _, entries, _ = optree.tree_flatten_one_level(container, none_is_leaf=True)
    return dict(zip(entries, children, strict=True))


def check_values(name: str, values: Any) -> None:
    """A stage's inputs are several, whatever they are; a single tensor would be taken apart."""
    if not isinstance(values, Sequence):
        raise TypeError(f"{name}: input_values must be a tuple or list, got {type(values).__name__}")


def leaves(tree: Any) -> list[Any]:
    """All that is nested in tuples, lists and dicts, None too."""
    return optree.tree_leaves(tree, none_is_leaf=True)


def failure(name: str, cause: Exception, outputs: Any, gradients: Any, inputs: Sequence[Any]) -> RuntimeError:
    """The error of a stage whose backward has failed."""
    return RuntimeError(
        f"{name} failed: {str(cause) or type(cause).__name__}\n  outputs: {_described(outputs)}\n  "
        f"gradients: {_described(gradients)}\n  inputs: {_described(list(inputs))}"
    )


def _described(values: Any) -> str:
    return ", ".join(f"{v.aval} on {v.device}" if isinstance(v, Tensor) else repr(v) for v in leaves(values))
