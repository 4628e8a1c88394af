"""Optimizers that move by the sign of a direction: Rprop, Lion."""

from collections.abc import Iterable
from typing import Any

from retrograd.core import operator_named
from retrograd.optim.optimizer import (
    Group,
    Optimizer,
    State,
    at_least_zero,
    check_betas,
    count_step,
    descent,
    refuse_complex,
)
from retrograd.optim.state_entries import count, declare

_full_like = operator_named("full_like")
_where = operator_named("where")
_zeros_like = operator_named("zeros_like")


class Rprop(Optimizer):
    """p ← p - s · sign(g), with a step s for each element: Riedmiller and Braun, ICNN 1993.

    s begins at lr; it grows by the second of `etas` where g keeps its sign, and shrinks by the first where the sign
    changes, within `step_sizes`; where it changes, p stays for this step. Use full-batch gradients.

    >>> import retrograd as rg
    >>> from retrograd.optim import Rprop
    >>> x = rg.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = Rprop([x], lr=0.5)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([ 0.5, -1.5], requires_grad=True)
    """

    entries = declare("prev", "step_size", step=count)

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize})

    def check(self, group: Group) -> None:
        """Check the ranges of the settings."""
        at_least_zero(group, "lr")
        if not 0 < group["etas"][0] < 1 < group["etas"][1]:
            raise ValueError(f"etas must lie between 0 and 1, and above 1, got {group['etas']}")
        if not 0 <= group["step_sizes"][0] <= group["step_sizes"][1]:
            raise ValueError(f"step_sizes must be a smallest and a largest step, got {group['step_sizes']}")
        refuse_complex("Rprop", group)

    def update(self, param: Any, grad: Any, state: State, group: Group) -> None:
        """Take one step for one parameter."""
        g = -grad if group["maximize"] else grad
        count_step(param, state, "prev")
        if "step_size" not in state:
            state["step_size"] = _full_like(grad, group["lr"])
        agree = g * state["prev"]
        less, more = group["etas"]
        factor = _where(agree > 0, more, _where(agree < 0, less, 1.0))
        state["step_size"] = (state["step_size"] * factor).clamp(*group["step_sizes"])
        state["prev"] = g = _where(agree < 0, 0.0, g)
        param.sub_(g.sign() * state["step_size"])


class Lion(Optimizer):
    """p ← (1 - lr · weight_decay) p - lr · sign(beta1 · m + (1 - beta1) · g), then m ← beta2 · m + (1 - beta2) · g.

    Chen et al., Symbolic discovery of optimization algorithms, NeurIPS 2023. Every element moves by lr: use a tenth of
    AdamW's lr, and ten times its weight decay. Not in PyTorch.

    >>> import retrograd as rg
    >>> from retrograd.optim import Lion
    >>> x = rg.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = Lion([x], lr=0.5)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([ 0.5, -1.5], requires_grad=True)
    """

    entries = declare("exp_avg")

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "betas": betas,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "decoupled_weight_decay": True,
        }
        super().__init__(params, defaults)

    def check(self, group: Group) -> None:
        """Check the ranges of the settings."""
        at_least_zero(group, "lr", "weight_decay")
        check_betas(group)
        refuse_complex("Lion", group)

    def update(self, param: Any, grad: Any, state: State, group: Group) -> None:
        """Take one step for one parameter."""
        g, (beta1, beta2) = descent(param, grad, group), group["betas"]
        m = state.get("exp_avg")
        m = _zeros_like(g) if m is None else m
        state["exp_avg"] = m * beta2 + g * (1 - beta2)
        param.sub_((m * beta1 + g * (1 - beta1)).sign(), alpha=group["lr"])
