"""Variants of Adam: Adamax, NAdam, RAdam."""

import math
from dataclasses import InitVar
from typing import Any

from retrograd.core import operator_named
from retrograd.kernels import update_formulas
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
from retrograd.optim.state_entries import declare_entries, scalar, step_count

_maximum = operator_named("maximum")


def moments(g: Any, state: State, group: Group) -> tuple[Any, Any]:
    """Update the running means of g and g²."""
    beta1, beta2 = group["betas"]
    means = update_formulas.moments(g, state["exp_avg"], state["exp_avg_sq"], beta1, beta2, 1 - beta1, 1 - beta2)
    state["exp_avg"], state["exp_avg_sq"] = means
    return means


_ENTRIES = declare_entries("exp_avg", "exp_avg_sq", "exp_inf", step=step_count, mu_product=scalar)


@with_settings
class Adamax(DeclaredOptimizer):
    """p ← p - lr · m̂ / u, u ← max(beta2 · u, |g| + eps): Adam in the maximum norm, Kingma and Ba, ICLR 2015.

    m̂ is the bias-corrected running mean of g; g includes weight_decay · p.

    >>> import retrograd as rg
    >>> from retrograd.optim import Adamax
    >>> x = rg.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = Adamax([x], lr=0.5)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([ 0.5000, -1.5000], requires_grad=True)
    """

    entries = _ENTRIES
    lr: InitVar[float] = field(default=2e-3, check=check_non_negative)
    betas: InitVar[tuple[float, float]] = field(default=(0.9, 0.999), check=check_betas)
    eps: InitVar[float] = field(default=1e-8, check=check_non_negative)
    weight_decay: InitVar[float] = field(default=0, check=check_non_negative)
    foreach: InitVar[bool | None] = field(default=None)
    differentiable: InitVar[bool] = field(default=False, check=check_not_differentiable, kw_only=True)
    capturable: InitVar[bool] = field(default=False, kw_only=True)
    maximize: InitVar[bool] = field(default=False, kw_only=True)

    @elementwise
    def update(self, param: Any, grad: Any, state: State, group: Group) -> None:
        """Take one step for one parameter."""
        count_step(param, state, "exp_avg", "exp_inf")
        g, (beta1, beta2) = descent_gradient(param, grad, group), group["betas"]
        state["exp_avg"] = state["exp_avg"] * beta1 + g * (1 - beta1)
        state["exp_inf"] = _maximum(state["exp_inf"] * beta2, g.abs() + group["eps"])
        param.sub_(state["exp_avg"] / state["exp_inf"], alpha=group["lr"] / (1 - beta1 ** state["step"]))


@with_settings
class NAdam(DeclaredOptimizer):
    """Adam with Nesterov's momentum, which increases slowly: Dozat, ICLR 2016 workshop.

    In step t the momentum is mu = beta1 · (1 - 0.96 ^ (t · momentum_decay) / 2). g includes weight_decay · p, or
    the decay acts on p itself if `decoupled_weight_decay`.

    >>> import retrograd as rg
    >>> from retrograd.optim import NAdam
    >>> x = rg.tensor([1.0], requires_grad=True)
    >>> optimizer = NAdam([x], lr=0.5, betas=(0.0, 0.5))
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.5000], requires_grad=True)
    """

    entries = _ENTRIES
    lr: InitVar[float] = field(default=2e-3, check=check_non_negative)
    betas: InitVar[tuple[float, float]] = field(default=(0.9, 0.999), check=check_betas)
    eps: InitVar[float] = field(default=1e-8, check=check_non_negative)
    weight_decay: InitVar[float] = field(default=0, check=check_non_negative)
    momentum_decay: InitVar[float] = field(default=4e-3, check=check_non_negative)
    decoupled_weight_decay: InitVar[bool] = False
    foreach: InitVar[bool | None] = field(default=None, kw_only=True)
    capturable: InitVar[bool] = field(default=False, kw_only=True)
    differentiable: InitVar[bool] = field(default=False, check=check_not_differentiable, kw_only=True)
    maximize: InitVar[bool] = field(default=False, kw_only=True)

    @elementwise
    def update(self, param: Any, grad: Any, state: State, group: Group) -> None:
        """Take one step for one parameter."""
        count_step(param, state, "exp_avg", "exp_avg_sq")
        g = descent_gradient(param, grad, group)
        m, v = moments(g, state, group)
        step, (beta1, beta2) = state["step"], group["betas"]
        mu, following = (beta1 * (1 - 0.5 * 0.96 ** (t * group["momentum_decay"])) for t in (step, step + 1))
        state["mu_product"] = product = state.get("mu_product", 1.0) * mu
        size = (v / (1 - beta2**step)).sqrt() + group["eps"]
        d = g * ((1 - mu) / (1 - product)) + m * (following / (1 - product * following))
        param.sub_(d / size, alpha=group["lr"])


@with_settings
class RAdam(DeclaredOptimizer):
    """Adam that uses m̂ alone until the variance of its divisor is known: Liu et al., ICLR 2020.

    From then on, the step is multiplied by a factor that rises to 1. g includes weight_decay · p, or with
    `decoupled_weight_decay` p itself decays.

    >>> import retrograd as rg
    >>> from retrograd.optim import RAdam
    >>> x = rg.tensor([1.0], requires_grad=True)
    >>> optimizer = RAdam([x], lr=0.5)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> round(x.item(), 5)
    0.0
    """

    entries = _ENTRIES
    lr: InitVar[float] = field(default=1e-3, check=check_non_negative)
    betas: InitVar[tuple[float, float]] = field(default=(0.9, 0.999), check=check_betas)
    eps: InitVar[float] = field(default=1e-8, check=check_non_negative)
    weight_decay: InitVar[float] = field(default=0, check=check_non_negative)
    decoupled_weight_decay: InitVar[bool] = False
    foreach: InitVar[bool | None] = field(default=None, kw_only=True)
    capturable: InitVar[bool] = field(default=False, kw_only=True)
    differentiable: InitVar[bool] = field(default=False, check=check_not_differentiable, kw_only=True)
    maximize: InitVar[bool] = field(default=False, kw_only=True)

    @elementwise
    def update(self, param: Any, grad: Any, state: State, group: Group) -> None:
        """Take one step for one parameter."""
        count_step(param, state, "exp_avg", "exp_avg_sq")
        m, v = moments(descent_gradient(param, grad, group), state, group)
        step, (beta1, beta2) = state["step"], group["betas"]
        lr = group["lr"] / (1 - beta1**step)
        factor = _rectification(beta2, step)
        if factor is None:
            param.sub_(m, alpha=lr)
        else:
            param.sub_(m / (v.sqrt() + group["eps"]), alpha=lr * factor * math.sqrt(1 - beta2**step))


def _rectification(beta2: float, step: int) -> float | None:
    """Return the factor of the step; None while the variance is unknown: with at most 5 degrees of freedom."""
    max_degrees = 2 / (1 - beta2) - 1
    degrees = max_degrees - 2 * step * beta2**step / (1 - beta2**step)
    if degrees <= 5:
        return None
    return math.sqrt((degrees - 4) * (degrees - 2) * max_degrees / ((max_degrees - 4) * (max_degrees - 2) * degrees))
