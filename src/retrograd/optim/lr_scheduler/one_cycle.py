"""The one-cycle schedule: up, then far below the start."""

import math
from typing import ClassVar, NamedTuple

from retrograd.optim.lr_scheduler.base import LRScheduler, check_momentum, groups_of, set_momentum, value_per_group
from retrograd.optim.optimizer import Optimizer


def cosine(start: float, end: float, done: float) -> float:
    """Interpolate by a cosine, slow at both ends."""
    return end + (start - end) / 2 * (1 + math.cos(math.pi * done))


def linear(start: float, end: float, done: float) -> float:
    """Interpolate linearly."""
    return start + (end - start) * done


ANNEAL = {"cos": cosine, "linear": linear}


class _Phase(NamedTuple):
    """A phase of a cycle: its end, and the names of the values between which lr and momentum move."""

    end: float
    lr: tuple[str, str]
    momentum: tuple[str, str]


class OneCycleLR(LRScheduler):
    """Up to max_lr, then far below the start, momentum inversely: Smith and Topin, 2017.

    Starts at max_lr / div_factor, reaches max_lr after `pct_start` of the steps, and ends at max_lr / div_factor /
    final_div_factor; with `three_phase`, it is back at the initial value at twice pct_start. `step` may be called
    `total_steps`, or epochs · steps_per_epoch, times; more calls raise ValueError. The momentum, or Adam's first beta,
    moves from max_momentum to base_momentum and back.

    >>> import retrograd as rg
    >>> from retrograd.optim import SGD
    >>> from retrograd.optim.lr_scheduler import OneCycleLR
    >>> optimizer = SGD([rg.zeros(1, requires_grad=True)], lr=0.5, momentum=0.9)
    >>> schedule = OneCycleLR(optimizer, max_lr=0.5, total_steps=3, pct_start=0.67, div_factor=2.0)
    >>> schedule.get_last_lr()
    [0.25]
    """

    choices: ClassVar = {"anneal_strategy": ANNEAL}

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
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
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
        self.pct_start = pct_start
        self.anneal_strategy = anneal_strategy
        self.cycle_momentum = cycle_momentum
        self.momenta = {"base": base_momentum, "max": max_momentum}
        self.div_factor = div_factor
        self.final_div_factor = final_div_factor
        self.three_phase = three_phase
        groups = groups_of(optimizer, self)
        tops = value_per_group(max_lr, groups)
        if cycle_momentum:
            check_momentum("OneCycleLR", groups)
        if last_epoch < 0:
            for group, top in zip(groups, tops, strict=True):
                group["lr"] = group["initial_lr"] = top / div_factor
        super().__init__(optimizer, last_epoch)

    def _phases(self) -> list[_Phase]:
        up = self.pct_start * self.total_steps
        first = _Phase(up - 1, ("initial", "max"), ("max", "base"))
        if not self.three_phase:
            return [first, _Phase(self.total_steps - 1, ("max", "min"), ("base", "max"))]
        back = _Phase(2 * up - 2, ("max", "initial"), ("base", "max"))
        return [first, back, _Phase(self.total_steps - 1, ("initial", "min"), ("max", "max"))]

    def _current_phase(self) -> tuple[_Phase, float]:
        """Return the current phase, and the elapsed share of it."""
        if self.last_epoch > self.total_steps:
            raise ValueError(f"OneCycleLR: the cycle has {self.total_steps} steps, and all of them are done")
        begin, phases = 0.0, self._phases()
        for phase in phases[:-1]:
            if self.last_epoch <= phase.end:
                break
            begin = phase.end
        else:
            phase = phases[-1]
        return phase, min(1.0, (self.last_epoch - begin) / (phase.end - begin)) if phase.end != begin else 1.0

    def get_lr(self) -> list[float]:
        """Return rates between the two learning rates of the phase."""
        (_, (start, end), _), done = self._current_phase()
        anneal = ANNEAL[self.anneal_strategy]
        factor = {"initial": 1.0, "max": self.div_factor, "min": 1 / self.final_div_factor}
        return [anneal(base * factor[start], base * factor[end], done) for base in self.base_lrs]

    def update_momentum(self) -> None:
        """Set the momentum, or Adam's first beta."""
        if not self.cycle_momentum:
            return
        (_, _, (start, end)), done = self._current_phase()
        momentum = ANNEAL[self.anneal_strategy](self.momenta[start], self.momenta[end], done)
        for group in self.optimizer.param_groups:
            set_momentum(group, momentum)


def _total_steps(total: int | None, epochs: int | None, per_epoch: int | None) -> int:
    if total is None:
        if epochs is None or per_epoch is None:
            raise ValueError(
                "OneCycleLR: give total_steps, or both epochs and steps_per_epoch; You must define either total_steps "
                "OR (epochs AND steps_per_epoch)"
            )
        total = epochs * per_epoch
    if total < 1:
        raise ValueError(f"OneCycleLR: the steps must be at least 1, got {total}")
    return total
