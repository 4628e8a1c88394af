"""Periodic schedules."""

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from retrograd.optim.lr_scheduler.base import (
    LRScheduler,
    check_function_state,
    check_momentum,
    cycles_beta1,
    function_state,
    groups_of,
    restore_function,
    set_momentum,
    set_rate,
    value_per_group,
)
from retrograd.optim.optimizer import Optimizer

_MODES = ("triangular", "triangular2", "exp_range")
_SCALE_MODES = ("cycle", "iterations")


class CosineAnnealingWarmRestarts(LRScheduler):
    """A repeated cosine from base to eta_min: the first takes T_0 steps, each later one T_mult times as many.

    `step(epoch)` moves to any point; fractions are points within an epoch. Loshchilov and Hutter, SGDR, ICLR 2017.

    >>> import retrograd as rg
    >>> from retrograd.optim import SGD
    >>> from retrograd.optim.lr_scheduler import CosineAnnealingWarmRestarts
    >>> optimizer = SGD([rg.zeros(1, requires_grad=True)], lr=0.5)
    >>> schedule = CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> rates = []
    >>> for _ in range(3):
    ...     rates.append(round(schedule.get_last_lr()[0], 3))
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [0.5, 0.25, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 < 1 or T_mult < 1 or int(T_0) != T_0 or T_mult != int(T_mult):
            raise ValueError(
                f"CosineAnnealingWarmRestarts: T_0 and T_mult must be integers from 1 up, got {T_0} and {T_mult}"
            )
        self.T_0 = self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = 0
        self._epoch: float | None = None
        super().__init__(optimizer, last_epoch)

    def step(self, epoch: float | None = None) -> None:
        """Take one step, or move to a point that may be between two steps."""
        if epoch is not None and not epoch >= 0:
            raise ValueError(f"CosineAnnealingWarmRestarts.step: epoch must be at least 0, got {epoch}")
        self._epoch = epoch
        self._step_or_undo()

    def get_lr(self) -> list[float]:
        """Return the rates on the cosine of the current period."""
        at: float = self.last_epoch if self._epoch is None else self._epoch
        if self._epoch is None and self.last_epoch > 0 and not self._is_initial:
            self.T_cur += 1  # which scripts may set
            if self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur % self.T_i, self.T_i * self.T_mult
        else:
            self.T_i, self.T_cur = self._period(at)
        self.last_epoch, self._epoch = math.floor(at), None
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    def _period(self, at: float) -> tuple[int, float]:
        """Return the length of the period, and the elapsed part."""
        length = self.T_0
        if self.T_mult == 1:
            return length, at % length
        while at >= length:
            at, length = at - length, length * self.T_mult
        return length, at

    def state_dict(self) -> dict[str, Any]:
        """Return the schedule as plain data."""
        return {name: value for name, value in super().state_dict().items() if name != "_epoch"}


class CyclicLR(LRScheduler):
    """Up from base_lr to max_lr in step_size_up steps, down in step_size_down, repeatedly: Smith, WACV 2017.

    `mode`: "triangular" has constant height; "triangular2" halves it in every cycle; "exp_range" scales it by gamma ^
    steps; or `scale_fn` scales it, a function of the cycle, from 1, or of the steps if `scale_mode` is "iterations".
    With `cycle_momentum`, the momentum, or Adam's first beta, moves inversely between max_momentum and base_momentum.

    >>> import retrograd as rg
    >>> from retrograd.optim import SGD
    >>> from retrograd.optim.lr_scheduler import CyclicLR
    >>> optimizer = SGD([rg.zeros(1, requires_grad=True)], lr=0.5, momentum=0.9)
    >>> schedule = CyclicLR(optimizer, base_lr=0.25, max_lr=0.75, step_size_up=2)
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    choices: ClassVar = {"mode": _MODES}
    use_beta1 = cycles_beta1

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if scale_fn is None and mode not in _MODES:
            raise ValueError(f"CyclicLR: mode must be one of {', '.join(_MODES)}, got {mode!r}")
        if scale_mode not in _SCALE_MODES:
            raise ValueError(f"CyclicLR: scale_mode must be {' or '.join(_SCALE_MODES)}, got {scale_mode!r}")
        down = step_size_up if step_size_down is None else step_size_down
        if step_size_up <= 0 or down <= 0:
            raise ValueError(f"CyclicLR: the steps up and down must be at least 1, got {step_size_up} and {down}")
        groups = groups_of(optimizer, self)
        self.max_lrs = value_per_group(max_lr, groups)
        base_lrs = value_per_group(base_lr, groups)
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self.scale_fn = scale_fn
        self.scale_mode = "iterations" if scale_fn is None and mode == "exp_range" else scale_mode
        self.cycle_momentum = cycle_momentum
        self.base_momentums = value_per_group(base_momentum, groups)
        self.max_momentums = value_per_group(max_momentum, groups)
        if cycle_momentum:
            check_momentum("CyclicLR", groups)
        if cycle_momentum and last_epoch < 0:
            for group, low, high in zip(groups, self.base_momentums, self.max_momentums, strict=True):
                group.update(max_momentum=high, base_momentum=low)
        if last_epoch < 0:
            for group, lr in zip(groups, base_lrs, strict=True):
                group["initial_lr"] = lr
                set_rate(group, lr)
        super().__init__(optimizer, last_epoch)

    def _height(self) -> float:
        """Return the position in the cycle between its ends, from 0 to 1."""
        cycles = self.last_epoch / self.total_size
        done = cycles - math.floor(cycles)
        high = done / self.step_ratio if done <= self.step_ratio else (done - 1) / (self.step_ratio - 1)
        return high * self._scale(math.floor(1 + cycles) if self.scale_mode == "cycle" else self.last_epoch)

    def _scale(self, x: float) -> float:
        if self.scale_fn is not None:
            return self.scale_fn(x)
        return {"triangular": 1.0, "triangular2": 0.5 ** (x - 1), "exp_range": self.gamma**x}[self.mode]

    def get_lr(self) -> list[float]:
        """Return rates between base_lr and max_lr."""
        height = self._height()
        return [low + (high - low) * height for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def update_momentum(self) -> None:
        """Set the momentum, or Adam's first beta."""
        if not self.cycle_momentum:
            return
        height = self._height()
        ends = zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True)
        for group, low, high in ends:
            set_momentum(group, high - (high - low) * height)

    def state_dict(self) -> dict[str, Any]:
        """Return the schedule as plain data, with the attributes of a callable object as `scale_fn`."""
        custom = None if self.scale_fn is None else function_state(self.scale_fn)
        return {**super().state_dict(), "_scale_fn_custom": custom}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the result of `state_dict`, the attributes of a callable object as `scale_fn` too."""
        super().load_state_dict(state_dict)
        restore_function(self.scale_fn, state_dict.get("_scale_fn_custom"))

    def check_state(self, state_dict: Mapping[str, Any]) -> dict[str, Any]:
        """Return the entries but the one of `scale_fn`, after checking it too."""
        known = super().check_state(state_dict)
        check_function_state("CyclicLR: _scale_fn_custom", self.scale_fn, state_dict.get("_scale_fn_custom"))
        return known
