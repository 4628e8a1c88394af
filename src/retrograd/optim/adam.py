"""Adam and AdamW."""

import math
from collections.abc import Iterable
from typing import Any

from retrograd.ops.fused_update import update
from retrograd.optim.optimizer import (
    Group,
    Optimizer,
    State,
    at_least_zero,
    check_betas,
    count_step,
    refuse_complex,
)
from retrograd.optim.state_entries import count, declare

_MEANS = ("exp_avg", "exp_avg_sq")
_WITH_LARGEST = (*_MEANS, "max_exp_avg_sq")


class Adam(Optimizer):
    """p ← p - lr · m̂ / (sqrt(v̂) + eps): Kingma and Ba, ICLR 2015.

    m and v are the running means of g and g² with factors `betas`, m̂ and v̂ their bias-corrected values. g includes
    weight_decay · p; `decoupled_weight_decay` decays as `AdamW` does. `amsgrad` divides by the largest v so far (Reddi
    et al., ICLR 2018). `maximize` ascends instead of descending.

    >>> import retrograd as rg
    >>> from retrograd.optim import Adam
    >>> x = rg.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = Adam([x], lr=0.5)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([ 0.5, -1.5], requires_grad=True)
    """

    entries = declare(*_WITH_LARGEST, step=count)

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
        """Check the ranges of the settings."""
        at_least_zero(group, "lr", "eps", "weight_decay")
        check_betas(group)
        refuse_complex("Adam", group)

    def update(self, param: Any, grad: Any, state: State, group: Group) -> None:
        """Take one step for one parameter."""
        kernel, names = ("amsgrad", _WITH_LARGEST) if group["amsgrad"] else ("adam", _MEANS)
        count_step(param, state, *names)
        # The bias corrections are scalars, so they are applied to step and eps instead of to arrays.
        lr, decay, (beta1, beta2) = group["lr"], group["weight_decay"], group["betas"]
        root = math.sqrt(1 - beta2 ** state["step"])
        eps, step = group["eps"] * root, lr * root / (1 - beta1 ** state["step"])
        pull, left = (0.0, 1 - lr * decay) if group["decoupled_weight_decay"] else (decay, 1.0)
        numbers = (-1 if group["maximize"] else 1, pull, left, beta1, beta2, 1 - beta1, 1 - beta2, eps, step)
        state.update(zip(names, update(kernel, param, grad, [state[name] for name in names], numbers), strict=True))


class AdamW(Adam):
    """Adam with decoupled weight decay: p ← (1 - lr · weight_decay) p, then Adam's step without decay.

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
