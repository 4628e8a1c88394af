"""Optimizers that move by the sign of a direction: Rprop, Lion."""

from dataclasses import InitVar
from typing import Any

from retrograd.core import operator_named
from retrograd.nn.constructor_fields import field
from retrograd.optim.declared_settings import (
    DeclaredOptimizer,
    check_betas,
    check_non_negative,
    check_not_differentiable,
    with_settings,
)
from retrograd.optim.foreach import elementwise
from retrograd.optim.optimizer import Group, State, count_step, descent_gradient
from retrograd.optim.state_entries import declare_entries, step_count

_full_like = operator_named("full_like")
_where = operator_named("where")
_zeros_like = operator_named("zeros_like")


def _check_etas(name: str, value: Any) -> None:
    if not 0 < value[0] < 1 < value[1]:
        raise ValueError(
            f"Invalid eta values: {value[0]}, {value[1]}; {name} must lie between 0 and 1, and above 1, got {value}"
        )


def _check_step_sizes(name: str, value: Any) -> None:
    if not 0 <= value[0] <= value[1]:
        raise ValueError(f"{name} must be a smallest and a largest step, got {value}")


@with_settings
class Rprop(DeclaredOptimizer):
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
    tensor([ 0.5000, -1.5000], requires_grad=True)
    """

    entries = declare_entries("prev", "step_size", step=step_count)

    lr: InitVar[float] = field(default=1e-2, check=check_non_negative)
    etas: InitVar[tuple[float, float]] = field(default=(0.5, 1.2), check=_check_etas)
    step_sizes: InitVar[tuple[float, float]] = field(default=(1e-6, 50), check=_check_step_sizes)
    capturable: InitVar[bool] = field(default=False, kw_only=True)
    foreach: InitVar[bool | None] = field(default=None, kw_only=True)
    differentiable: InitVar[bool] = field(default=False, check=check_not_differentiable, kw_only=True)
    maximize: InitVar[bool] = field(default=False, kw_only=True)

    @elementwise
    def update(self, param: Any, grad: Any, state: State, group: Group) -> None:
        """Take one step for one parameter."""
        g = -grad if group["maximize"] else grad
        count_step(param, state, "prev")
        if "step_size" not in state:
            state["step_size"] = _full_like(grad, group["lr"])
        agree = g * state["prev"]
        less, more = group["etas"]
        size = state["step_size"]
        size = _where(agree > 0, size * more, _where(agree < 0, size * less, size))
        state["step_size"] = size.clamp(*group["step_sizes"])
        state["prev"] = g = _where(agree < 0, 0.0, g)
        param.sub_(g.sign() * state["step_size"])


@with_settings
class Lion(DeclaredOptimizer):
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
    tensor([ 0.5000, -1.5000], requires_grad=True)
    """

    entries = declare_entries("exp_avg")

    lr: InitVar[float] = field(default=1e-4, check=check_non_negative)
    betas: InitVar[tuple[float, float]] = field(default=(0.9, 0.99), check=check_betas)
    weight_decay: InitVar[float] = field(default=0, check=check_non_negative)
    maximize: InitVar[bool] = field(default=False, kw_only=True)
    decoupled_weight_decay: InitVar[bool] = field(default=True, init=False)

    @elementwise
    def update(self, param: Any, grad: Any, state: State, group: Group) -> None:
        """Take one step for one parameter."""
        g, (beta1, beta2) = descent_gradient(param, grad, group), group["betas"]
        m = state.get("exp_avg")
        m = _zeros_like(g) if m is None else m
        state["exp_avg"] = m * beta2 + g * (1 - beta2)
        param.sub_((m * beta1 + g * (1 - beta1)).sign(), alpha=group["lr"])
