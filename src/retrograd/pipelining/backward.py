"""The backward pass of one stage, from the gradients of its outputs to those of its inputs."""

from collections.abc import Sequence
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
    output_grads: gradients nested alike; None where there is none.  Outputs that are no tensors, or require no
        gradient, are skipped.
    input_values: the stage's inputs, leaves that require grad where a gradient is wanted.
    outputs_with_grads_idxs: which outputs, counted flat, the gradients belong to; None: all of them.

    Returns one gradient per input value, None for what is no tensor or got none.  Raises RuntimeError that
    shows the shapes and dtypes of outputs, gradients and inputs, with the cause chained.

    >>> import retrograd as rg
    >>> x = rg.tensor([1.0, 2.0], requires_grad=True)
    >>> stage_backward((x * 3, "a note"), (rg.ones(2), None), [x, 7])
    (tensor([3., 3.]), None)
    """
    outputs, gradients = _leaves(stage_output), _leaves(output_grads)
    if outputs_with_grads_idxs is not None:
        outputs = [outputs[i] for i in outputs_with_grads_idxs]
    try:
        pairs = [
            (out, g)
            for out, g in zip(outputs, gradients, strict=True)
            if isinstance(out, Tensor) and out.requires_grad and g is not None
        ]
        if pairs:
            autograd.backward([out for out, _ in pairs], [g for _, g in pairs])
    except (RuntimeError, ValueError, TypeError) as cause:
        raise RuntimeError(
            f"stage_backward failed: {cause}\n  outputs: {_describe(outputs)}\n  gradients: "
            f"{_describe(gradients)}\n  inputs: {_describe(input_values)}"
        ) from cause
    return tuple(value.grad if isinstance(value, Tensor) else None for value in input_values)


def _leaves(tree: Any) -> list[Any]:
    return optree.tree_leaves(tree, none_is_leaf=True)


def _describe(values: Sequence[Any]) -> str:
    return ", ".join(f"{v.aval} on {v.device}" if isinstance(v, Tensor) else repr(v) for v in values)
