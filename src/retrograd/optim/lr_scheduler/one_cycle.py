"""The one-cycle schedule: up, then far below the start."""

import math
from typing import Any, ClassVar

from retrograd.optim.lr_scheduler.base import (
    LRScheduler,
    check_momentum,
    cycles_beta1,
    groups_of,
    set_momentum,
    set_rate,
    value_per_group,
)
from retrograd.optim.optimizer import Optimizer


def cosine(start: float, end: float, done: float) -> float:
    """Interpolate by a cosine, slow at both ends."""
    return end + (start - end) / 2 * (1 + math.cos(math.pi * done))


def linear(start: float, end: float, done: float) -> float:
    """Interpolate linearly."""
    return start + (end - start) * done


ANNEAL = {"cos": cosine, "linear": linear}


class OneCycleLR(LRScheduler):
    """Up to max_lr, then far below the start, momentum inversely: Smith and Topin, 2017.

    Starts at max_lr / div_factor, reaches max_lr after `pct_start` of the steps, and ends at max_lr / div_factor /
    final_div_factor after total_steps - 1 steps; with `three_phase`, it is back at the initial value at twice
    pct_start. `step` may be called `total_steps`, or epochs · steps_per_epoch, times, the last of them past the end of
    the curve, as in PyTorch; more calls raise ValueError. The momentum, or Adam's first beta, moves from max_momentum
    to base_momentum and back.

    >>> import retrograd as rg
    >>> from retrograd.optim import SGD
    >>> from retrograd.optim.lr_scheduler import OneCycleLR
    >>> optimizer = SGD([rg.zeros(1, requires_grad=True)], lr=0.5, momentum=0.9)
    >>> schedule = OneCycleLR(optimizer, max_lr=0.5, total_steps=3, pct_start=0.67, div_factor=2.0)
    >>> schedule.get_last_lr()
    [0.25]
    """

    choices: ClassVar = {"_anneal_func_type": ANNEAL}
    use_beta1 = cycles_beta1

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if not 0 <= pct_start <= 1:
            raise ValueError(f"OneCycleLR: pct_start must lie between 0 and 1, got {pct_start}")
        if anneal_strategy not in ANNEAL:
            raise ValueError(f"OneCycleLR: anneal_strategy must be 'cos' or 'linear', got {anneal_strategy!r}")
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        self._anneal_func_type = anneal_strategy
        self._schedule_phases = _phases(self.total_steps, pct_start * self.total_steps, three_phase)
        self.cycle_momentum = cycle_momentum
        groups = groups_of(optimizer, self)
        if cycle_momentum:
            check_momentum("OneCycleLR", groups)
        each = (value_per_group(value, groups) for value in (max_lr, max_momentum, base_momentum))
        for group, top, high, low in zip(groups, *each, strict=True):
            initial = top / div_factor
            ends = {"max_lr": top, "min_lr": initial / final_div_factor}
            if cycle_momentum:
                ends |= {"max_momentum": high, "base_momentum": low}
            if last_epoch < 0:
                group.update(ends, initial_lr=initial)
                set_rate(group, initial)
            else:
                group.update({**ends, **group})
        super().__init__(optimizer, last_epoch)

    def _current_phase(self) -> tuple[dict[str, Any], float]:
        """Return the current phase, and the elapsed share of it."""
        if self.last_epoch > self.total_steps:
            raise ValueError(f"OneCycleLR: all {self.total_steps} steps of the cycle are done; give more total_steps")
        begin, phases = 0.0, self._schedule_phases
        for phase in phases[:-1]:
            if self.last_epoch <= phase["end_step"]:
                break
            begin = phase["end_step"]
        else:
            phase = phases[-1]
        length = phase["end_step"] - begin
        return phase, (self.last_epoch - begin) / length if length else 1.0

    def _between(self, value: str) -> list[float]:
        """Return for each group the number between the start and the end of the phase: of "lr" or "momentum"."""
        phase, done = self._current_phase()
        start, end = phase[f"start_{value}"], phase[f"end_{value}"]
        return [ANNEAL[self._anneal_func_type](group[start], group[end], done) for group in self.optimizer.param_groups]

    def get_lr(self) -> list[float]:
        """Return rates between the two learning rates of the phase."""
        return self._between("lr")

    def update_momentum(self) -> None:
        """Set the momentum, or Adam's first beta."""
        if self.cycle_momentum:
            for group, momentum in zip(self.optimizer.param_groups, self._between("momentum"), strict=True):
                set_momentum(group, momentum)


def _phases(total: int, up: float, three: bool) -> list[dict[str, Any]]:
    """Return the phases as PyTorch's states hold them: the last step of each, and what it moves between, by name."""

    def phase(end: float, lr: tuple[str, str], momentum: tuple[str, str]) -> dict[str, Any]:
        names = {"start_lr": lr[0], "end_lr": lr[1], "start_momentum": momentum[0], "end_momentum": momentum[1]}
        return {"end_step": end, **names}

    low, high = "base_momentum", "max_momentum"
    first = phase(up - 1.0, ("initial_lr", "max_lr"), (high, low))
    if not three:
        return [first, phase(total - 1, ("max_lr", "min_lr"), (low, high))]
    back = phase(2 * up - 2.0, ("max_lr", "initial_lr"), (low, high))
    return [first, back, phase(total - 1, ("initial_lr", "min_lr"), (high, high))]


def _total_steps(total: int | None, epochs: int | None, per_epoch: int | None) -> int:
    if total is None:
        if epochs is None or per_epoch is None:
            raise ValueError(
                "OneCycleLR: give total_steps, or both epochs and steps_per_epoch; You must define either total_steps "
                "OR (epochs AND steps_per_epoch)"
            )
        total = epochs * per_epoch
    if not isinstance(total, int) or total < 1:
        raise ValueError(f"OneCycleLR: the steps must be an integer of at least 1, got {total}")
    return total
