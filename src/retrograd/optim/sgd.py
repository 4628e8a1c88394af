"""Stochastic gradient descent."""

from dataclasses import InitVar
from typing import Any

from retrograd.core import operator_named
from retrograd.nn.constructor_fields import field
from retrograd.ops.fused_update import update
from retrograd.ops.layout import has_sparse_layout
from retrograd.optim.declared_settings import (
    DeclaredOptimizer,
    check_non_negative,
    check_not_differentiable,
    with_settings,
)
from retrograd.optim.foreach import elementwise
from retrograd.optim.next_update import Update
from retrograd.optim.optimizer import Group, State
from retrograd.optim.state_entries import declare_entries

_zeros_like = operator_named("zeros_like")


@with_settings
class SGD(DeclaredOptimizer):
    """p ← p - lr · d, with d = g + weight_decay · p, or its running sum with momentum.

    The sum is b ← momentum · b + (1 - dampening) · d, from b = d in the first step on; then d is b, or d + momentum · b
    if `nesterov`: Sutskever et al., ICML 2013. `maximize` ascends instead of descending.

    >>> import retrograd as rg
    >>> from retrograd.optim import SGD
    >>> x = rg.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = SGD([x], lr=0.25, momentum=0.9)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.5000, 1.0000], requires_grad=True)
    """

    entries = declare_entries("momentum_buffer")
    takes = ("dense", "sparse")
    steps_on_parts = False
    lr: InitVar[float] = field(default=1e-3, check=check_non_negative)
    momentum: InitVar[float] = field(default=0, check=check_non_negative)
    dampening: InitVar[float] = 0
    weight_decay: InitVar[float] = field(default=0, check=check_non_negative)
    nesterov: InitVar[bool] = False
    maximize: InitVar[bool] = field(default=False, kw_only=True)
    foreach: InitVar[bool | None] = field(default=None, kw_only=True)
    differentiable: InitVar[bool] = field(default=False, check=check_not_differentiable, kw_only=True)
    fused: InitVar[bool | None] = field(default=None, kw_only=True)

    def check(self, group: Group) -> None:
        """Check the settings, and the requirements of Nesterov's momentum."""
        super().check(group)
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError(
                f"Nesterov momentum requires a momentum and zero dampening: greater than 0 and 0, got "
                f"momentum={group['momentum']} and dampening={group['dampening']}"
            )

    @elementwise
    def update(self, param: Any, grad: Any, state: State, group: Group) -> None:
        """Take one step for one parameter."""
        if group["momentum"]:
            _apply_momentum(param, grad, state, group)
        else:
            kernel, _, numbers, _ = self.next_update(state, group)
            update(kernel, param, grad, [], numbers)

    def next_update(self, state: State, group: Group) -> Update:
        """Return how the next step is taken, after the first one."""
        if group["momentum"]:
            numbers = _momentum_numbers(group, 1.0 - group["dampening"])
            return Update("momentum", ("momentum_buffer",), numbers, {})
        return Update("descent", (), (*_direction(group), group["lr"]), {})

    def update_sparse(self, param: Any, grad: Any, state: State, group: Group) -> None:
        """Take one step for the elements that have entries; with momentum, for those that the running sum has."""
        d = -grad if group["maximize"] else grad
        if group["momentum"]:
            buffer = state.get("momentum_buffer")
            state["momentum_buffer"] = b = d.clone() if buffer is None else _next_sum(buffer, d, group)
            d = b * group["momentum"] + d if group["nesterov"] else b
        param.sub_(d, alpha=group["lr"])


def _next_sum(buffer: Any, d: Any, group: Group) -> Any:
    return buffer * group["momentum"] + d * (1 - group["dampening"])


def _apply_momentum(param: Any, grad: Any, state: State, group: Group) -> None:
    taken, buffer = 1.0 - group["dampening"], state.get("momentum_buffer")
    if buffer is None:
        buffer = _zeros_like(param)
        taken = 1.0
    elif has_sparse_layout(buffer):  # earlier gradients were sparse
        buffer = buffer.to_dense()
    [state["momentum_buffer"]] = update("momentum", param, grad, [buffer], _momentum_numbers(group, taken))


def _momentum_numbers(group: Group, taken: float) -> tuple[float, ...]:
    """Return the numbers of the kernel; `taken` is the factor of the gradient in the running sum."""
    lr, momentum = group["lr"], group["momentum"]
    far, further = (lr, lr * momentum) if group["nesterov"] else (0.0, lr)
    return (*_direction(group), momentum, taken, far, further)


def _direction(group: Group) -> tuple[float, float]:
    """Return the sign of the gradient, and the factor of the parameter."""
    return -1.0 if group["maximize"] else 1.0, group["weight_decay"]
