"""Optimizers that treat a parameter as a matrix: Adafactor sums rows and columns, Muon orthogonalises."""

import math
from dataclasses import InitVar
from typing import Any

from retrograd.backend.type_info import finfo
from retrograd.core import operator_named
from retrograd.nn.constructor_fields import field
from retrograd.optim.declared_settings import DeclaredOptimizer, check_non_negative, check_one_of, with_settings
from retrograd.optim.optimizer import Group, State
from retrograd.optim.state_entries import declare_entries, mean_of, step_count

_norm = operator_named("norm")
_zeros_like = operator_named("zeros_like")


@with_settings
class Adafactor(DeclaredOptimizer):
    """Adam's divisor estimated from mean squares of the rows and columns of g: Shazeer and Stern, ICML 2018.

    The step is min(lr, 1 / sqrt(steps)) times the root mean square of p, at least eps[1]. The means have the factor 1 -
    steps ^ beta2_decay. An update with a root mean square above `d` is scaled down to it. Weight decay is decoupled.
    eps[0] bounds the divisor from below; None is the dtype's epsilon.

    >>> import retrograd as rg
    >>> from retrograd.optim import Adafactor
    >>> x = rg.ones(2, 3, requires_grad=True)
    >>> optimizer = Adafactor([x], lr=0.25)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x[0], optimizer.state[x]["row_var"].shape
    (tensor([0.7500, 0.7500, 0.7500], grad_fn=<SelectBackward0>), (2, 1))
    """

    entries = declare_entries("variance", step=step_count, row_var=mean_of(-1), col_var=mean_of(-2))
    takes_complex = False

    lr: InitVar[float] = field(default=1e-2, check=check_non_negative)
    beta2_decay: InitVar[float] = -0.8
    eps: InitVar[tuple[float | None, float]] = (None, 1e-3)
    d: InitVar[float] = 1.0
    weight_decay: InitVar[float] = field(default=0.0, check=check_non_negative)
    foreach: InitVar[bool | None] = field(default=None, kw_only=True)
    maximize: InitVar[bool] = field(default=False, kw_only=True)

    def check(self, group: Group) -> None:
        """Check the settings."""
        super().check(group)
        if group["beta2_decay"] > 0:
            raise ValueError(
                f"beta2_decay must be at most 0, got {group['beta2_decay']}; beta2_decay should be <= 0 but is: "
                f"{group['beta2_decay']}"
            )
        for name, eps in zip(("epsilon1", "epsilon2"), group["eps"], strict=True):
            if eps is not None and not eps >= 0:
                raise ValueError(f"eps must be at least 0, got eps={group['eps']}; {name} should be >= 0 but is: {eps}")
        if not group["d"] >= 1:
            raise ValueError(
                f"d must be at least 1, got d={group['d']}; Clipping threshold d should be >= 1 but is: {group['d']}"
            )

    def update(self, param: Any, grad: Any, state: State, group: Group) -> None:
        """Take one step for one parameter."""
        g = -grad if group["maximize"] else grad
        state["step"] = step = state.get("step", 0) + 1
        low = group["eps"][0]
        low = float(finfo(param.dtype).eps) if low is None else low
        size = max(group["eps"][1], _rms(param)) * min(group["lr"], 1 / math.sqrt(step))
        if group["weight_decay"]:
            param.mul_(1 - group["lr"] * group["weight_decay"])
        u = g / _factored_second_moment(g, state, step ** group["beta2_decay"], low).clamp(min=low * low).sqrt()
        param.sub_(u, alpha=size / max(1.0, _rms(u) / group["d"]))


def _rms(x: Any) -> float:
    return float(_norm(x)) / math.sqrt(x.numel()) if x.numel() else 0.0


def _factored_second_moment(g: Any, state: State, share: float, low: float) -> Any:
    """Update the means by a share of g²; return an estimate of every element's."""
    squares = g * g
    if g.ndim < 2:
        return _update_mean(state, "variance", squares, share)
    rows = _update_mean(state, "row_var", squares.mean(-1, keepdim=True), share)
    columns = _update_mean(state, "col_var", squares.mean(-2, keepdim=True), share)
    return rows * columns / rows.mean(-2, keepdim=True).clamp(min=low)


def _update_mean(state: State, name: str, new: Any, share: float) -> Any:
    old = state.get(name)
    state[name] = new * share if old is None else old + (new - old) * share
    return state[name]


@with_settings
class Muon(DeclaredOptimizer):
    """p ← (1 - lr · weight_decay) p - lr' · O, O the matrix with orthogonal rows or columns nearest to the momentum.

    For matrices only: use another optimizer for biases, embeddings etc. O is computed by `ns_steps` Newton-Schulz steps
    with `ns_coefficients`, which bring singular values near 1. lr' is lr · sqrt(max(1, rows / columns)), or lr · 0.2 ·
    sqrt(max(rows, columns)) if `adjust_lr_fn` is "match_rms_adamw". Jordan et al., Muon, 2024. PyTorch computes these
    steps in bfloat16, so its last digits differ.

    >>> import retrograd as rg
    >>> from retrograd.optim import Muon
    >>> x = rg.zeros(2, 2, requires_grad=True)
    >>> optimizer = Muon([x], lr=1.0)
    >>> (rg.tensor([[3.0, 0.0], [0.0, 1.0]]) * x).sum().backward()
    >>> optimizer.step()
    >>> bool((x + rg.eye(2)).abs().amax() < 0.35)
    True
    """

    entries = declare_entries("momentum_buffer")
    takes_complex = False

    lr: InitVar[float] = field(default=1e-3, check=check_non_negative)
    weight_decay: InitVar[float] = field(default=0.1, check=check_non_negative)
    momentum: InitVar[float] = field(default=0.95, check=check_non_negative)
    nesterov: InitVar[bool] = True
    ns_coefficients: InitVar[tuple[float, float, float]] = (3.4445, -4.775, 2.0315)
    eps: InitVar[float] = 1e-7
    ns_steps: InitVar[int] = 5
    adjust_lr_fn: InitVar[str | None] = field(default=None, check=check_one_of(None, "original", "match_rms_adamw"))

    def check(self, group: Group) -> None:
        """Check the settings, and that all parameters are matrices."""
        super().check(group)
        for param in group["params"]:
            if param.ndim != 2:
                raise ValueError(
                    f"Muon takes matrices only, got {param.aval}; give it to another optimizer; Muon only supports 2D "
                    f"parameters whereas we found a parameter with size: {list(param.shape)}"
                )

    def update(self, param: Any, grad: Any, state: State, group: Group) -> None:
        """Take one step for one parameter."""
        momentum, old = group["momentum"], state.get("momentum_buffer")
        state["momentum_buffer"] = m = grad * (1 - momentum) if old is None else old + (grad - old) * (1 - momentum)
        o = _newton_schulz(grad + (m - grad) * momentum if group["nesterov"] else m, group)
        rows, columns = param.shape
        scale = math.sqrt(max(1, rows / max(columns, 1)))
        if group["adjust_lr_fn"] == "match_rms_adamw":
            scale = 0.2 * math.sqrt(max(rows, columns))
        param.copy_(param * (1 - group["lr"] * group["weight_decay"]) - o * (group["lr"] * scale))


def _newton_schulz(x: Any, group: Group) -> Any:
    a, b, c = group["ns_coefficients"]
    tall = x.shape[0] > x.shape[1]
    x = x.mT if tall else x
    x = x / max(float(_norm(x)), group["eps"])
    for _ in range(group["ns_steps"]):
        square = x @ x.mT
        x = x * a + (square * b + square @ square * c) @ x
    return x.mT if tall else x
