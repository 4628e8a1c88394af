"""Averaged stochastic gradient descent."""

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
from retrograd.optim.state_entries import declare_entries, scalar, step_count

_clone = operator_named("clone")


@with_settings
class ASGD(DeclaredOptimizer):
    """Gradient descent with an average of the iterates: Polyak and Juditsky, SIAM J. Control Optim. 30 (1992).

    p ← (1 - lambd · eta) p - eta · g, eta = lr / (1 + lambd · lr · steps) ^ alpha; from step `t0` on, `state[p]["ax"]`
    is the mean of p. g includes weight_decay · p.

    >>> import retrograd as rg
    >>> from retrograd.optim import ASGD
    >>> x = rg.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = ASGD([x], lr=0.25, lambd=0.0, t0=0.0)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x, optimizer.state[x]["ax"]
    (tensor([ 0.5000, -1.0000], requires_grad=True), tensor([ 0.5000, -1.0000]))
    """

    entries = declare_entries("ax", step=step_count, eta=scalar, mu=scalar)

    steps_on_parts = False
    lr: InitVar[float] = field(default=1e-2, check=check_non_negative)
    lambd: InitVar[float] = 1e-4
    alpha: InitVar[float] = 0.75
    t0: InitVar[float] = 1e6
    weight_decay: InitVar[float] = field(default=0, check=check_non_negative)
    foreach: InitVar[bool | None] = field(default=None)
    maximize: InitVar[bool] = False
    differentiable: InitVar[bool] = field(default=False, check=check_not_differentiable)
    capturable: InitVar[bool] = field(default=False)

    @elementwise
    def update(self, param: Any, grad: Any, state: State, group: Group) -> None:
        """Take one step for one parameter."""
        g, lr = descent_gradient(param, grad, group), group["lr"]
        count_step(param, state, "ax")
        eta, mu = state.get("eta", lr), state.get("mu", 1.0)
        param.copy_(param * (1 - group["lambd"] * eta) - g * eta)
        state["ax"] = _clone(param) if mu == 1 else state["ax"] + (param - state["ax"]) * mu
        state["eta"] = lr / (1 + group["lambd"] * lr * state["step"]) ** group["alpha"]
        state["mu"] = 1 / max(1, state["step"] - group["t0"])
