"""Stochastic gradient descent."""

from collections.abc import Iterable
from typing import Any

from retrograd.core import operator_named
from retrograd.optim.optimizer import Group, Optimizer, State, at_least_zero

_clone = operator_named("clone")


class SGD(Optimizer):
    """p ← p - lr · d, with d = g + weight_decay · p, or its running sum if there is momentum.

    The sum is b ← momentum · b + (1 - dampening) · d, from b = d in the first step on; then d is b, or
    d + momentum · b if `nesterov`: Sutskever et al., ICML 2013. `maximize` goes up instead of down.

    >>> import retrograd as rg
    >>> from retrograd.optim import SGD
    >>> x = rg.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = SGD([x], lr=0.25, momentum=0.9)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.5, 1. ], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def check(self, group: Group) -> None:
        """Ranges, and what Nesterov's momentum needs."""
        at_least_zero(group, "lr", "momentum", "weight_decay")
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError(
                f"nesterov needs momentum greater than 0 and dampening 0, got "
                f"momentum={group['momentum']} and dampening={group['dampening']}"
            )

    def update(self, param: Any, grad: Any, state: State, group: Group) -> None:
        """One step of one parameter."""
        d = -grad if group["maximize"] else grad
        if group["weight_decay"]:
            d = d + param * group["weight_decay"]
        if group["momentum"]:
            d = self._with_momentum(d, state, group)
        param.sub_(d, alpha=group["lr"])

    def _with_momentum(self, d: Any, state: State, group: Group) -> Any:
        momentum, buffer = group["momentum"], state.get("momentum_buffer")
        if buffer is None:
            buffer = _clone(d)
        else:
            buffer = buffer * momentum + (d * (1 - group["dampening"]) if group["dampening"] else d)
        state["momentum_buffer"] = buffer
        return d + buffer * momentum if group["nesterov"] else buffer
