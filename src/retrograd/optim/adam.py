"""Adam and AdamW."""

import math
from dataclasses import InitVar
from typing import Any

from retrograd.nn.constructor_fields import field
from retrograd.ops.fused_update import update
from retrograd.optim.declared_settings import (
    DeclaredOptimizer,
    check_betas,
    check_non_negative,
    check_not_differentiable,
    with_settings,
)
from retrograd.optim.foreach import elementwise
from retrograd.optim.next_update import Update
from retrograd.optim.optimizer import Group, State, count_step
from retrograd.optim.state_entries import declare_entries, step_count

_MEANS = ("exp_avg", "exp_avg_sq")
_WITH_LARGEST = (*_MEANS, "max_exp_avg_sq")


@with_settings
class Adam(DeclaredOptimizer):
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
    tensor([ 0.5000, -1.5000], requires_grad=True)
    """

    entries = declare_entries(*_WITH_LARGEST, step=step_count)

    lr: InitVar[float] = field(default=1e-3, check=check_non_negative)
    betas: InitVar[tuple[float, float]] = field(default=(0.9, 0.999), check=check_betas)
    eps: InitVar[float] = field(default=1e-8, check=check_non_negative)
    weight_decay: InitVar[float] = field(default=0, check=check_non_negative)
    amsgrad: InitVar[bool] = False
    maximize: InitVar[bool] = field(default=False, kw_only=True)
    foreach: InitVar[bool | None] = field(default=None, kw_only=True)
    capturable: InitVar[bool] = field(default=False, kw_only=True)
    differentiable: InitVar[bool] = field(default=False, check=check_not_differentiable, kw_only=True)
    fused: InitVar[bool | None] = field(default=None, kw_only=True)
    decoupled_weight_decay: InitVar[bool] = field(default=False, kw_only=True)

    @elementwise
    def update(self, param: Any, grad: Any, state: State, group: Group) -> None:
        """Take one step for one parameter."""
        kernel, names, numbers, _ = self.next_update(state, group)
        count_step(param, state, *names)
        state.update(zip(names, update(kernel, param, grad, [state[name] for name in names], numbers), strict=True))

    def next_update(self, state: State, group: Group) -> Update:
        """Return how the next step is taken."""
        count = state.get("step", 0) + 1
        # The bias corrections are scalars, so they are applied to step and eps instead of to arrays.
        lr, decay, (beta1, beta2) = group["lr"], group["weight_decay"], group["betas"]
        root = math.sqrt(1 - beta2**count)
        eps, step = group["eps"] * root, lr * root / (1 - beta1**count)
        pull, left = (0.0, 1 - lr * decay) if group["decoupled_weight_decay"] else (decay, 1.0)
        numbers = (-1 if group["maximize"] else 1, pull, left, beta1, beta2, 1 - beta1, 1 - beta2, eps, step)
        kernel, names = ("amsgrad", _WITH_LARGEST) if group["amsgrad"] else ("adam", _MEANS)
        return Update(kernel, names, numbers, {"step": count})


@with_settings
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
    tensor([ 0.5000, -1.5000], requires_grad=True)
    """

    weight_decay: InitVar[float] = field(default=1e-2, check=check_non_negative)
    decoupled_weight_decay: InitVar[bool] = field(default=True, init=False)
