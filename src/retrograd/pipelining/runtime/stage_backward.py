"""The backward pass of one stage, from gradients of its outputs to gradients of its inputs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import optree

from retrograd import autograd
from retrograd.core import Tensor
from retrograd.core.blocks import generator_block
from retrograd.foundation.suggestions import suggest_in_module


def stage_backward(
    stage_output: Any,
    output_grads: Any,
    input_values: Iterable[Any],
    outputs_with_grads_idxs: Sequence[int] | None = None,
) -> tuple[Tensor | None, ...]:
    """Run a stage backward: accumulate parameter gradients, and return the gradients of its inputs.

    stage_output: the stage's outputs, nested in tuples, lists and dicts.
    output_grads: gradients in the same nesting.  None for a tensor, bare or nested, means 1: the tensor is a loss of
     one element.  None for a container skips its content.  Outputs that are not tensors, or do not require grad,
     are skipped.
    input_values: the stage's inputs, leaves or not, in a tuple, list or another iterable.
    outputs_with_grads_idxs: the indices, in both, of the outputs to use; None: all of them.

    Returns one gradient per input value, None for non-tensors and inputs without gradient.  An earlier `.grad` of an
    input is added, and its `.grad` is None afterwards.

    Raises RuntimeError that shows the shapes, dtypes and devices of outputs, gradients and inputs, with the cause
    chained, for instance if a tensor of several elements has None; then every input has its earlier `.grad`.
    Raises TypeError for input_values that are a tensor, a dict or not iterable.

    >>> import retrograd as rg
    >>> x = rg.tensor([1.0, 2.0], requires_grad=True)
    >>> stage_backward((x * 3, "a note", x.sum()), (rg.ones(2), None, None), [x, 7])
    (tensor([4., 4.]), None)
    """
    values = as_list("stage_backward", input_values)
    try:
        if outputs_with_grads_idxs is not None:
            stage_output = [stage_output[i] for i in outputs_with_grads_idxs]
            output_grads = [output_grads[i] for i in outputs_with_grads_idxs]
        pairs = pair_with_gradients(stage_output, output_grads)
        with _collect_gradients(values) as found:
            if pairs:
                autograd.backward([out for out, _ in pairs], [g for _, g in pairs])
    except Exception as cause:
        raise backward_error("stage backward", cause, stage_output, output_grads, values) from cause
    return tuple(found.get(id(value)) for value in values)


@generator_block
def _collect_gradients(values: Sequence[Any]) -> Iterator[dict[int, Tensor]]:
    """Collect, by id, the gradients that a backward pass in the block computes for these values.

    The dict is filled when the block ends.  Earlier `.grad`s are added and cleared; an error restores them.
    """
    found: dict[int, Tensor] = {}
    tensors = {id(v): v for v in values if isinstance(v, Tensor)}
    holders = {key: t for key, t in tensors.items() if t.is_leaf or t.retains_grad}
    earlier = {key: t.grad for key, t in holders.items()}
    # A tensor that stores a gradient is read from `.grad`, which has it after all hooks; the others need a hook.
    handles = [
        t.register_hook(lambda g, key=key: found.update({key: g})) for key, t in tensors.items() if key not in holders
    ]
    try:
        for tensor in holders.values():
            tensor.grad = None
        yield found
        for key, tensor in holders.items():
            total = _sum(earlier[key], tensor.grad)
            tensor.grad = None
            if total is not None:
                found[key] = total
    except BaseException:
        for key, tensor in holders.items():
            tensor.grad = earlier[key]
        raise
    finally:
        for handle in handles:
            handle.remove()


def _sum(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """Return the sum of two gradients, of which either may be missing."""
    if a is None or b is None:
        return b if a is None else a
    with autograd.no_grad():
        return a + b


def pair_with_gradients(outputs: Any, gradients: Any) -> list[tuple[Tensor, Tensor | None]]:
    """Return the outputs that require grad, each with its gradient or None, which means 1.

    None for a container skips its members.  Raises ValueError if the two differ in nesting, TypeError for a
    gradient that is not a tensor.
    """
    return list(_pairs(outputs, gradients))


def drop_missing_gradients(outputs: Iterable[Any], gradients: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """Return the outputs whose gradient is not None, and the gradients; None here means that no gradient arrived."""
    pairs = [(output, g) for output, g in zip(outputs, gradients, strict=True) if g is not None]
    return [output for output, _ in pairs], [g for _, g in pairs]


def _pairs(output: Any, gradient: Any) -> Iterator[tuple[Tensor, Tensor | None]]:
    if isinstance(output, Tensor):
        if output.requires_grad:
            if gradient is not None and not isinstance(gradient, Tensor):
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
    """Return the members of a container by index or key; none for a leaf."""
    if optree.tree_is_leaf(container, none_is_leaf=True):
        return {}
    children, _, entries, _ = optree.tree_flatten_one_level(container, none_is_leaf=True)
    return dict(zip(entries, children, strict=True))


def as_list(name: str, values: Any) -> list[Any]:
    """Return a stage's inputs as a list; TypeError for a single tensor or a dict, which would iterate rows or keys."""
    if not isinstance(values, Iterable) or isinstance(values, (Tensor, Mapping, str)):
        raise TypeError(
            f"{name}: input_values must be a tuple, list or another iterable of the inputs, got {type(values).__name__}"
        )
    return list(values)


def leaves(tree: Any) -> list[Any]:
    """Return all leaves nested in tuples, lists and dicts, including None."""
    return optree.tree_leaves(tree, none_is_leaf=True)


def backward_error(name: str, cause: Exception, outputs: Any, gradients: Any, inputs: Sequence[Any]) -> RuntimeError:
    """Return the error for a stage whose backward pass failed."""
    return RuntimeError(
        f"Failed to run {name}: {str(cause) or type(cause).__name__}\n  outputs: {_describe(outputs)}\n  "
        f"gradients: {_describe(gradients)}\n  inputs: {_describe(list(inputs))}"
    )


def _describe(values: Any) -> str:
    return ", ".join(f"{v.aval} on {v.device}" if isinstance(v, Tensor) else repr(v) for v in leaves(values))


suggest_in_module(globals())
