"""Optimizers that divide by the magnitude of past gradients: Adagrad, Adadelta, RMSprop."""

from dataclasses import InitVar
from typing import Any

from retrograd.core import operator_named
from retrograd.nn.constructor_fields import field
from retrograd.optim.declared_settings import (
    DeclaredOptimizer,
    check_non_negative,
    check_not_differentiable,
    with_settings,
)
from retrograd.optim.foreach import elementwise
from retrograd.optim.optimizer import Group, State, count_step, descent_gradient
from retrograd.optim.sparse_gradients import entries_of
from retrograd.optim.state_entries import declare_entries, step_count

_full_like = operator_named("full_like")


@with_settings
class Adagrad(DeclaredOptimizer):
    """p ← p - lr / (1 + lr_decay · (steps - 1)) · g / (sqrt(sum of g²) + eps): Duchi et al., JMLR 12 (2011).

    The sum starts at `initial_accumulator_value`; g includes weight_decay · p.

    >>> import retrograd as rg
    >>> from retrograd.optim import Adagrad
    >>> x = rg.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = Adagrad([x], lr=0.5)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([ 0.5000, -1.5000], requires_grad=True)
    """

    entries = declare_entries("sum", step=step_count)
    takes = ("dense", "sparse")

    lr: InitVar[float] = field(default=1e-2, check=check_non_negative)
    lr_decay: InitVar[float] = field(default=0, check=check_non_negative)
    weight_decay: InitVar[float] = field(default=0, check=check_non_negative)
    initial_accumulator_value: InitVar[float] = field(default=0, check=check_non_negative)
    eps: InitVar[float] = field(default=1e-10, check=check_non_negative)
    foreach: InitVar[bool | None] = field(default=None)
    differentiable: InitVar[bool] = field(default=False, check=check_not_differentiable, kw_only=True)
    fused: InitVar[bool | None] = field(default=None, kw_only=True)
    maximize: InitVar[bool] = field(default=False, kw_only=True)

    def initialize_states(self) -> None:
        """Start the sums, as in PyTorch; those of parameters that are added later start in their first steps."""
        for group in self.param_groups:
            for param in group["params"]:
                start = group["initial_accumulator_value"]
                start = complex(start, start) if param.dtype.kind == "c" else start
                self.state[param].update(step=0, sum=_full_like(param, start))

    @elementwise
    def update(self, param: Any, grad: Any, state: State, group: Group) -> None:
        """Take one step for one parameter."""
        g = descent_gradient(param, grad, group)
        count_step(param, state)
        if "sum" not in state:
            state["sum"] = _full_like(grad, group["initial_accumulator_value"])
        state["sum"] = state["sum"] + g * g
        param.sub_(g / (state["sum"].sqrt() + group["eps"]), alpha=_decayed_rate(state, group))

    def update_sparse(self, param: Any, grad: Any, state: State, group: Group) -> None:
        """Take one step for the elements that have entries."""
        count_step(param, state)
        if "sum" not in state:
            state["sum"] = _full_like(param, group["initial_accumulator_value"])
        at, g = entries_of(-grad if group["maximize"] else grad)
        state["sum"][at] = total = state["sum"][at] + g * g
        param[at] = param[at] - g / (total.sqrt() + group["eps"]) * _decayed_rate(state, group)


def _decayed_rate(state: State, group: Group) -> float:
    rate: float = group["lr"] / (1 + (state["step"] - 1) * group["lr_decay"])
    return rate


def _from_0_to_1(name: str, value: Any) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"Invalid {name} value: {value}; {name} must lie between 0 and 1, got {value}")


@with_settings
class Adadelta(DeclaredOptimizer):
    """p ← p - lr · d, with d = sqrt((u + eps) / (v + eps)) · g: Zeiler, arXiv 1212.5701.

    v and u are the running means of g² and d² with the factor `rho`; g includes weight_decay · p.

    >>> import retrograd as rg
    >>> from retrograd.optim import Adadelta
    >>> x = rg.tensor([1.0], requires_grad=True)
    >>> optimizer = Adadelta([x], rho=0.0, eps=1.0)
    >>> (3**0.5 * x).sum().backward()
    >>> optimizer.step()
    >>> round(x.item(), 3)  # 1 - sqrt(1 / 4) · sqrt(3)
    0.134
    """

    entries = declare_entries("square_avg", "acc_delta", step=step_count)

    lr: InitVar[float] = field(default=1.0, check=check_non_negative)
    rho: InitVar[float] = field(default=0.9, check=_from_0_to_1)
    eps: InitVar[float] = field(default=1e-6, check=check_non_negative)
    weight_decay: InitVar[float] = field(default=0, check=check_non_negative)
    foreach: InitVar[bool | None] = field(default=None)
    capturable: InitVar[bool] = field(default=False, kw_only=True)
    differentiable: InitVar[bool] = field(default=False, check=check_not_differentiable, kw_only=True)
    maximize: InitVar[bool] = field(default=False, kw_only=True)

    @elementwise
    def update(self, param: Any, grad: Any, state: State, group: Group) -> None:
        """Take one step for one parameter."""
        g, rho, eps = descent_gradient(param, grad, group), group["rho"], group["eps"]
        count_step(param, state, "square_avg", "acc_delta")
        state["square_avg"] = v = state["square_avg"] * rho + g * g * (1 - rho)
        delta = (state["acc_delta"] + eps).sqrt() / (v + eps).sqrt() * g
        state["acc_delta"] = state["acc_delta"] * rho + delta * delta * (1 - rho)
        param.sub_(delta, alpha=group["lr"])


@with_settings
class RMSprop(DeclaredOptimizer):
    """p ← p - lr · g / (sqrt(v) + eps), v the running mean of g² with the factor `alpha`: Hinton, 2012.

    `centered` subtracts the square of the running mean of g from v (Graves, arXiv 1308.0850); with `momentum`
    p moves by the running sum b ← momentum · b + g / (sqrt(v) + eps). g includes weight_decay · p.

    >>> import retrograd as rg
    >>> from retrograd.optim import RMSprop
    >>> x = rg.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = RMSprop([x], lr=0.5, alpha=0.0)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([ 0.5000, -1.5000], requires_grad=True)
    """

    entries = declare_entries("square_avg", "momentum_buffer", "grad_avg", step=step_count)

    lr: InitVar[float] = field(default=1e-2, check=check_non_negative)
    alpha: InitVar[float] = field(default=0.99, check=check_non_negative)
    eps: InitVar[float] = field(default=1e-8, check=check_non_negative)
    weight_decay: InitVar[float] = field(default=0, check=check_non_negative)
    momentum: InitVar[float] = field(default=0, check=check_non_negative)
    centered: InitVar[bool] = False
    capturable: InitVar[bool] = field(default=False)
    foreach: InitVar[bool | None] = field(default=None)
    maximize: InitVar[bool] = False
    differentiable: InitVar[bool] = field(default=False, check=check_not_differentiable)

    @elementwise
    def update(self, param: Any, grad: Any, state: State, group: Group) -> None:
        """Take one step for one parameter."""
        g = descent_gradient(param, grad, group)
        d = g / (self._root_mean_square(g, state, group) + group["eps"])
        if group["momentum"]:
            state["momentum_buffer"] = d = state["momentum_buffer"] * group["momentum"] + d
        param.sub_(d, alpha=group["lr"])

    def _root_mean_square(self, g: Any, state: State, group: Group) -> Any:
        """Update the means; return the root of the mean square, about the mean if `centered`."""
        used = {"square_avg": True, "momentum_buffer": group["momentum"], "grad_avg": group["centered"]}
        count_step(g, state, *(name for name in used if used[name]))
        alpha = group["alpha"]
        state["square_avg"] = v = state["square_avg"] * alpha + g * g * (1 - alpha)
        if not group["centered"]:
            return v.sqrt()
        state["grad_avg"] = mean = state["grad_avg"] * alpha + g * (1 - alpha)
        return (v - mean * mean).sqrt()
