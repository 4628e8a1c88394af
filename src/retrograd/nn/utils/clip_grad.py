"""Gradient clipping."""

import math
from collections.abc import Iterable
from typing import Any

from retrograd.autograd import no_grad
from retrograd.core import Tensor, operator_named
from retrograd.core.dtype import is_floating
from retrograd.foundation.suggestions import suggest_in_module, suggest_keywords
from retrograd.nn.deprecated_names import older_name
from retrograd.nn.parameter_lists import list_tensors
from retrograd.nn.tensor_part import local_tensor, split_by_division
from retrograd.ops.create import zeros

_euclidean_norm = operator_named("euclidean_norm")
_norm = operator_named("norm")
_stack = operator_named("stack")


def _gradients_of(name: str, parameters: Tensor | Iterable[Tensor]) -> list[Any]:
    """Return the gradients of parameters, this rank's elements of divided ones."""
    whole, divided = split_by_division(list_tensors(name, parameters))
    return [local_tensor(p.grad) for p in [*whole, *(p for each in divided for p in each.tensors)]]


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:
    """Return the norm of all elements of all tensors together, a scalar tensor; 0 if there are none.

    `error_if_nonfinite` raises RuntimeError if it is infinite or NaN. `foreach` chooses between implementations of
    PyTorch, and has no effect.

    >>> import retrograd as rg
    >>> get_total_norm([rg.tensor([3.0]), rg.tensor([4.0])])
    tensor(5.)
    """
    norm_type = float(norm_type)
    listed = [tensors] if isinstance(tensors, Tensor) else tensors
    total = total_of_norms(norms_of([x for x in listed if x.numel()], norm_type), norm_type)
    if error_if_nonfinite and not math.isfinite(float(total)):
        raise RuntimeError(
            f"the norm of the gradients is {float(total)}, so they can't be clipped; The total norm of order "
            f"{norm_type} for gradients from `parameters` is non-finite, so it cannot be clipped"
        )
    return total


def norms_of(tensors: Iterable[Any], norm_type: float) -> list[Any]:
    """Return the norm of each tensor, which has elements, as a scalar tensor."""
    return [_norm_of(x, norm_type) for x in tensors]


def total_of_norms(norms: list[Any], norm_type: float) -> Any:
    """Return the norm of all elements of some tensors together from the norm of each."""
    return _norm(_stack(norms), norm_type) if norms else zeros(())


def _norm_of(x: Any, norm_type: float) -> Any:
    """Return the norm of one tensor; the 2-norm avoids the general operator's checks."""
    return _euclidean_norm(x) if norm_type == 2 and is_floating(x.dtype) else _norm(x, norm_type)


@suggest_keywords
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients of parameters in place so that their total norm is at most `max_norm`.

    Returns the norm before scaling. `norm_type` is any order of `linalg.vector_norm`, infinity also as "inf".
    `error_if_nonfinite` raises RuntimeError if it is infinite or NaN, before anything
    is scaled. `foreach` has no effect. If gradients are divided among ranks, as by `fully_shard`, a `Pipeline` over
    processes, and `ZeroRedundancyOptimizer(shard_gradients=True)`, the norm is that of the whole ones, and all ranks
    must call it.

    >>> import retrograd as rg
    >>> x = rg.zeros(2, requires_grad=True)
    >>> x.grad = rg.tensor([3.0, 4.0])
    >>> clip_grad_norm_(x, 1.0)
    tensor(5.)
    >>> round(float(x.grad[0]), 3)
    0.6
    """
    norm_type = float(norm_type)
    whole, divided = split_by_division(list_tensors("clip_grad_norm_", parameters))
    grads = [p.grad.detach() for p in whole]
    norms = list(grads)
    for each in divided:  # in the place of gradients that are divided, their norms on all ranks
        counted = [g.detach() for g in [local_tensor(p.grad) for p in each.counted] if g.numel()]
        total = total_of_norms(norms_of(counted, norm_type), norm_type)
        norms.append(each.stack_over_ranks(total.to(each.dtype)))
        grads += [local_tensor(p.grad).detach() for p in each.tensors]
    total = get_total_norm(norms, norm_type, error_if_nonfinite)
    _scale_gradients(grads, max_norm, total)
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor | float, foreach: bool | None = None
) -> None:
    """Scale the gradients of parameters in place from a total norm of `total_norm` to at most `max_norm`.

    `foreach` has no effect.

    >>> import retrograd as rg
    >>> x = rg.zeros(2, requires_grad=True)
    >>> x.grad = rg.tensor([3.0, 4.0])
    >>> clip_grads_with_norm_(x, 1.0, 2.0)
    >>> [round(g, 3) for g in x.grad.tolist()]
    [1.5, 2.0]
    """
    grads = [g.detach() for g in _gradients_of("clip_grads_with_norm_", parameters)]
    _scale_gradients(grads, max_norm, total_norm)


def _scale_gradients(grads: list[Any], max_norm: float, total: Any) -> None:
    if isinstance(total, Tensor) and total.device.type != "cpu":  # reading the norm would wait for the device
        factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
        for g in grads:
            g.mul_(factor.to(g.device))
        return
    scale = max_norm / (float(total) + 1e-6)
    if not scale >= 1:  # a NaN spreads to all gradients, as in PyTorch
        for g in grads:
            g.mul_(scale)


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Clamp each element of the gradients of parameters to -clip_value .. clip_value, in place.

    `foreach` has no effect.

    >>> import retrograd as rg
    >>> x = rg.zeros(2, requires_grad=True)
    >>> x.grad = rg.tensor([3.0, -0.5])
    >>> clip_grad_value_(x, 1.0)
    >>> x.grad
    tensor([ 1.0000, -0.5000])
    """
    if not clip_value >= 0:
        raise ValueError(f"clip_grad_value_: clip_value must be at least 0, got {clip_value}")
    with no_grad():
        for g in _gradients_of("clip_grad_value_", parameters):
            g.clamp_(-clip_value, clip_value)


clip_grad_norm = older_name(clip_grad_norm_, "clip_grad_norm", "nn.utils")


suggest_in_module(globals())
