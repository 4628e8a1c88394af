"""Learning rates that change as training goes on: one `step()` of the schedule after those of the optimizer.

Every schedule is a formula of the number of its steps and of the learning rates that the optimizer had.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from retrograd.optim.optimizer import Group, Optimizer


class LRScheduler:
    """The base of all schedules: a subclass defines `get_lr`, one learning rate for each parameter group.

    `last_epoch` is the number of steps taken, -1 to start anew; `base_lrs` are the rates at the start.

    >>> import retrograd as rg
    >>> from retrograd.optim import SGD
    >>> from retrograd.optim.lr_scheduler import LRScheduler
    >>> class Harmonic(LRScheduler):
    ...     def get_lr(self):
    ...         return [lr / (1 + self.last_epoch) for lr in self.base_lrs]
    >>> schedule = Harmonic(SGD([rg.zeros(1, requires_grad=True)], lr=0.5))
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(self).__name__}: expected an Optimizer, got {type(optimizer).__name__}")
        self.optimizer = optimizer
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch >= 0 and "initial_lr" not in group:
                raise KeyError(f"{type(self).__name__}: to resume, parameter group {number} needs an 'initial_lr'")
            if last_epoch < 0:
                group["initial_lr"] = group["lr"]
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self.step()

    def get_lr(self) -> list[float]:
        """The learning rates after `last_epoch` steps; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} has no get_lr(); define it to give the learning rates")

    def get_last_lr(self) -> list[float]:
        """The learning rates that the schedule set last."""
        return list(self._last_lr)

    def step(self) -> None:
        """Go one step on, and set the optimizer's learning rates; an error leaves both as they were."""
        own, groups = dict(vars(self)), [dict(group) for group in self.optimizer.param_groups]
        try:
            self._advance()
        except BaseException:
            vars(self).clear()
            vars(self).update(own)
            for group, before in zip(self.optimizer.param_groups, groups, strict=True):
                group.clear()
                group.update(before)
            raise

    def _advance(self) -> None:
        self.last_epoch += 1
        self._last_lr = self.get_lr()
        for group, lr in zip(self.optimizer.param_groups, self._last_lr, strict=True):
            group["lr"] = lr
        self.set_others()

    def set_others(self) -> None:
        """What a step sets besides learning rates: nothing, unless a subclass defines it."""

    def state_dict(self) -> dict[str, Any]:
        """The schedule as plain data: everything but the optimizer and functions."""
        return {name: value for name, value in vars(self).items() if name not in ("optimizer", "lr_lambdas")}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave; the optimizer's own state holds its learning rates."""
        unknown = [name for name in state_dict if name not in vars(self)]
        if unknown:
            raise ValueError(f"{type(self).__name__}: the state has {', '.join(unknown)}, which this schedule lacks")
        vars(self).update(state_dict)


class LambdaLR(LRScheduler):
    """lr = base · lr_lambda(steps); one function, or a list with one for each parameter group.

    >>> import retrograd as rg
    >>> from retrograd.optim import SGD
    >>> from retrograd.optim.lr_scheduler import LambdaLR
    >>> schedule = LambdaLR(SGD([rg.zeros(1, requires_grad=True)], lr=0.5), lambda steps: 0.5**steps)
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Iterable[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        groups = len(optimizer.param_groups)
        self.lr_lambdas = [lr_lambda] * groups if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != groups:
            raise ValueError(f"LambdaLR: expected {groups} functions, one for each group, got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Each group's function of the steps."""
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class StepLR(LRScheduler):
    """lr = base · gamma ^ (steps // step_size).

    >>> import retrograd as rg
    >>> from retrograd.optim import SGD
    >>> from retrograd.optim.lr_scheduler import StepLR
    >>> schedule = StepLR(SGD([rg.zeros(1, requires_grad=True)], lr=0.5), step_size=1, gamma=0.5)
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        if step_size < 1:
            raise ValueError(f"StepLR: step_size must be at least 1, got {step_size}")
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """A factor gamma every step_size steps."""
        factor = self.gamma ** (self.last_epoch // self.step_size)
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    """lr = base · f, where f goes evenly from start_factor to end_factor in total_iters steps, then stays.

    >>> import retrograd as rg
    >>> from retrograd.optim import SGD
    >>> from retrograd.optim.lr_scheduler import LinearLR
    >>> schedule = LinearLR(SGD([rg.zeros(1, requires_grad=True)], lr=0.5), start_factor=0.5, total_iters=2)
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.375]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise ValueError(
                f"LinearLR: start_factor must be greater than 0 and at most 1, and end_factor from 0 to 1, "
                f"got {start_factor} and {end_factor}"
            )
        if total_iters < 1:
            raise ValueError(f"LinearLR: total_iters must be at least 1, got {total_iters}")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """On the line between the factors, or at its end."""
        done = min(self.last_epoch, self.total_iters) / self.total_iters
        factor = self.start_factor + (self.end_factor - self.start_factor) * done
        return [base * factor for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """lr = eta_min + (base - eta_min) (1 + cos(π steps / T_max)) / 2, without restarts.

    Loshchilov and Hutter, SGDR, ICLR 2017.

    >>> import retrograd as rg
    >>> from retrograd.optim import SGD
    >>> from retrograd.optim.lr_scheduler import CosineAnnealingLR
    >>> schedule = CosineAnnealingLR(SGD([rg.zeros(1, requires_grad=True)], lr=0.5), T_max=1)
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.0]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        if T_max < 1:
            raise ValueError(f"CosineAnnealingLR: T_max must be at least 1, got {T_max}")
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """On the cosine."""
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


def _cosine(start: float, end: float, done: float) -> float:
    return end + (start - end) / 2 * (1 + math.cos(math.pi * done))


def _line(start: float, end: float, done: float) -> float:
    return start + (end - start) * done


_ANNEAL = {"cos": _cosine, "linear": _line}


class _Phase(NamedTuple):
    """A stretch of a cycle: where it ends, and the names of the values between which lr and momentum go."""

    end: float
    lr: tuple[str, str]
    momentum: tuple[str, str]


class OneCycleLR(LRScheduler):
    """Up to max_lr, down to far below where it began, the momentum the other way: Smith and Topin, 2017.

    Starts at max_lr / div_factor, reaches max_lr after `pct_start` of the steps, and ends at
    max_lr / div_factor / final_div_factor; with `three_phase`, back where it began at twice pct_start.
    The steps are `total_steps`, or epochs · steps_per_epoch; one more raises ValueError. The momentum, or
    Adam's first beta, goes from max_momentum to base_momentum and back.

    >>> import retrograd as rg
    >>> from retrograd.optim import SGD
    >>> from retrograd.optim.lr_scheduler import OneCycleLR
    >>> optimizer = SGD([rg.zeros(1, requires_grad=True)], lr=0.5, momentum=0.9)
    >>> schedule = OneCycleLR(optimizer, max_lr=0.5, total_steps=3, pct_start=0.67, div_factor=2.0)
    >>> schedule.get_last_lr()
    [0.25]
    """

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
        if anneal_strategy not in _ANNEAL:
            raise ValueError(f"OneCycleLR: anneal_strategy must be 'cos' or 'linear', got {anneal_strategy!r}")
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        self.pct_start = pct_start
        self.anneal_strategy = anneal_strategy
        self.cycle_momentum = cycle_momentum
        self.momenta = {"base": base_momentum, "max": max_momentum}
        self.div_factor = div_factor
        self.final_div_factor = final_div_factor
        self.three_phase = three_phase
        tops = _for_each(max_lr, optimizer.param_groups)
        if cycle_momentum:
            _check_momentum(optimizer.param_groups)
        if last_epoch < 0:
            for group, top in zip(optimizer.param_groups, tops, strict=True):
                group["lr"] = top / div_factor
        super().__init__(optimizer, last_epoch)

    def _phases(self) -> list[_Phase]:
        up = self.pct_start * self.total_steps
        first = _Phase(up - 1, ("initial", "max"), ("max", "base"))
        if not self.three_phase:
            return [first, _Phase(self.total_steps - 1, ("max", "min"), ("base", "max"))]
        back = _Phase(2 * up - 2, ("max", "initial"), ("base", "max"))
        return [first, back, _Phase(self.total_steps - 1, ("initial", "min"), ("max", "max"))]

    def _now(self) -> tuple[_Phase, float]:
        """The phase that the cycle is in, and the share of it that is over."""
        if self.last_epoch >= self.total_steps:
            raise ValueError(f"OneCycleLR: the cycle has {self.total_steps} steps, and all of them are done")
        begin, phases = 0.0, self._phases()
        for phase in phases[:-1]:
            if self.last_epoch <= phase.end:
                break
            begin = phase.end
        else:
            phase = phases[-1]
        return phase, (self.last_epoch - begin) / (phase.end - begin) if phase.end != begin else 1.0

    def get_lr(self) -> list[float]:
        """Between the two learning rates of the phase."""
        (_, (start, end), _), done = self._now()
        anneal = _ANNEAL[self.anneal_strategy]
        factor = {"initial": 1.0, "max": self.div_factor, "min": 1 / self.final_div_factor}
        return [anneal(base * factor[start], base * factor[end], done) for base in self.base_lrs]

    def set_others(self) -> None:
        """The momentum, or Adam's first beta."""
        if not self.cycle_momentum:
            return
        (_, _, (start, end)), done = self._now()
        momentum = _ANNEAL[self.anneal_strategy](self.momenta[start], self.momenta[end], done)
        for group in self.optimizer.param_groups:
            if "betas" in group:
                group["betas"] = (momentum, *group["betas"][1:])
            else:
                group["momentum"] = momentum


def _total_steps(total: int | None, epochs: int | None, per_epoch: int | None) -> int:
    if total is None:
        if epochs is None or per_epoch is None:
            raise ValueError("OneCycleLR: give total_steps, or both epochs and steps_per_epoch")
        total = epochs * per_epoch
    if total < 1:
        raise ValueError(f"OneCycleLR: the steps must be at least 1, got {total}")
    return total


def _for_each(value: float | list[float], groups: list[Group]) -> list[float]:
    values = list(value) if isinstance(value, list | tuple) else [value] * len(groups)
    if len(values) != len(groups):
        raise ValueError(f"expected {len(groups)} values, one for each parameter group, got {len(values)}")
    return values


def _check_momentum(groups: list[Group]) -> None:
    if not all("momentum" in group or "betas" in group for group in groups):
        raise ValueError("OneCycleLR: the optimizer has neither momentum nor betas; pass cycle_momentum=False")
