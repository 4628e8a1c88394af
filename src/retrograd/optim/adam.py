"""Adam and AdamW."""

import math
from collections.abc import Iterable
from typing import Any

from retrograd.core import operator_named
from retrograd.optim.moments import moments
from retrograd.optim.optimizer import (
    Group,
    Optimizer,
    State,
    at_least_zero,
    check_betas,
    descent,
    refuse_complex,
)

_maximum = operator_named("maximum")


def _direction(grad: Any, state: State, group: Group) -> tuple[Any, Any, float]:
    """Advance the moments; p moves by -step · m / d, returned as (m, d, step).

    The corrections of both moments' bias are numbers, so they go into step and eps, not into arrays.
    """
    beta1, beta2 = group["betas"]
    m, v = moments(grad, state, group)
    if group["amsgrad"]:
        largest = state.get("max_exp_avg_sq")
        state["max_exp_avg_sq"] = v = v if largest is None else _maximum(largest, v)
    root = math.sqrt(1 - beta2 ** state["step"])
    return m, v.sqrt() + group["eps"] * root, group["lr"] * root / (1 - beta1 ** state["step"])


class Adam(Optimizer):
    """p ← p - lr · m̂ / (sqrt(v̂) + eps): Kingma and Ba, ICLR 2015.

    m and v are the running means of g and g² with factors `betas`, m̂ and v̂ without their bias towards 0;
    g includes weight_decay · p, or with `decoupled_weight_decay` the decay is that of `AdamW`. `amsgrad` divides
    by the largest v so far (Reddi et al., ICLR 2018), and `maximize` goes up instead of down.

    >>> import retrograd as rg
    >>> from retrograd.optim import Adam
    >>> x = rg.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = Adam([x], lr=0.5)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([ 0.5, -1.5], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        decoupled_weight_decay: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def check(self, group: Group) -> None:
        """Ranges of the settings."""
        at_least_zero(group, "lr", "eps", "weight_decay")
        check_betas(group)
        refuse_complex("Adam", group)

    def update(self, param: Any, grad: Any, state: State, group: Group) -> None:
        """One step of one parameter."""
        m, d, step = _direction(descent(param, grad, group), state, group)
        param.sub_(m / d, alpha=step)


class AdamW(Adam):
    """Adam whose weight decay acts on p itself: p ← (1 - lr · weight_decay) p, then the step without it.

    Loshchilov and Hutter, Decoupled weight decay regularization, ICLR 2019.

    >>> import retrograd as rg
    >>> from retrograd.optim import AdamW
    >>> x = rg.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = AdamW([x], lr=0.5, weight_decay=0.0)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([ 0.5, -1.5], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, decoupled_weight_decay=True)
