"""Schedules that multiply the learning rates by a factor of the number of steps."""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import zip_longest
from typing import Any

from retrograd.foundation.describe_value import describe
from retrograd.optim.lr_scheduler.base import (
    LRScheduler,
    check_function_state,
    function_state,
    groups_of,
    restore_function,
)
from retrograd.optim.optimizer import Optimizer


class FactorLR(LRScheduler):
    """lr = floor + (base - floor) · factor(steps); a subclass defines `factor`, and sets `eta_min` for a floor above
    0.

    If another schedule, or the user, has changed a learning rate since the last step, it is multiplied by the
    change of the factor, so that the factors of several schedules of one optimizer multiply.

    >>> import retrograd as rg
    >>> from retrograd.optim import SGD
    >>> from retrograd.optim.lr_scheduler import FactorLR
    >>> class Harmonic(FactorLR):
    ...     def factor(self, steps):
    ...         return 1 / (1 + steps)
    >>> optimizer = SGD([rg.zeros(1, requires_grad=True)], lr=0.5)
    >>> schedule = Harmonic(optimizer)
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    eta_min = 0.0
    _loaded = True  # until the first step

    def factor(self, steps: int) -> float:
        """Return the factor after `steps` steps; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} has no factor(); define it to give the factor of the rates")

    def _factor_after(self, steps: int) -> float:
        return self.factor(steps)

    def get_lr(self) -> list[float]:
        """Return the rates from the initial ones, or from the ones they were changed to."""
        # Groups that were added later have no initial rate: theirs are multiplied by the change of the factor.
        groups = zip_longest(self.optimizer.param_groups, self.base_lrs)
        rates = [self._rate(group["lr"], base) for group, base in groups]
        self._loaded = False
        return rates

    def _rate(self, now: float, base: float | None) -> float:
        steps, floor = self.last_epoch, self.eta_min
        share = self._factor_after(steps)
        before = self._factor_after(steps - 1) if steps else 1.0
        if base is None:
            return floor + (now - floor) * (share / before) if before else now
        expected = floor + (base - floor) * before if steps else base
        target = floor + (base - floor) * share
        if now == expected or not before or (self._loaded and (now == base or math.isclose(now, target))):
            return target
        return floor + (now - floor) * (share / before)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the result of `state_dict`, even if the optimizer has not stepped."""
        super().load_state_dict(state_dict)
        self._loaded = True


class StepLR(FactorLR):
    """lr = base · gamma ^ (steps // step_size).

    >>> import retrograd as rg
    >>> from retrograd.optim import SGD
    >>> from retrograd.optim.lr_scheduler import StepLR
    >>> optimizer = SGD([rg.zeros(1, requires_grad=True)], lr=0.5)
    >>> schedule = StepLR(optimizer, step_size=1, gamma=0.5)
    >>> optimizer.step()
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

    def factor(self, steps: int) -> float:
        """Return a power of gamma that grows every step_size steps."""
        return self.gamma ** (steps // self.step_size)


class MultiStepLR(FactorLR):
    """lr = base · gamma ^ (number of `milestones` reached); milestones are step counts.

    >>> import retrograd as rg
    >>> from retrograd.optim import SGD
    >>> from retrograd.optim.lr_scheduler import MultiStepLR
    >>> optimizer = SGD([rg.zeros(1, requires_grad=True)], lr=0.5)
    >>> schedule = MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5)
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, steps: int) -> float:
        """Return a power of gamma that grows at each milestone."""
        return self.gamma ** bisect_right(sorted(self.milestones.elements()), steps)


class ExponentialLR(FactorLR):
    """lr = base · gamma ^ steps.

    >>> import retrograd as rg
    >>> from retrograd.optim import SGD
    >>> from retrograd.optim.lr_scheduler import ExponentialLR
    >>> optimizer = SGD([rg.zeros(1, requires_grad=True)], lr=0.5)
    >>> schedule = ExponentialLR(optimizer, gamma=0.5)
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, steps: int) -> float:
        """Return gamma to the number of steps."""
        return self.gamma**steps


class ConstantLR(FactorLR):
    """lr = base · factor for total_iters steps, and base from then on.

    >>> import retrograd as rg
    >>> from retrograd.optim import SGD
    >>> from retrograd.optim.lr_scheduler import ConstantLR
    >>> optimizer = SGD([rg.zeros(1, requires_grad=True)], lr=0.5)
    >>> schedule = ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    factor: float  # type: ignore[assignment]  # a number, as PyTorch's states and attributes have it

    def __init__(self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(f"ConstantLR: factor must lie between 0 and 1, got {factor}")
        if total_iters < 0:
            raise ValueError(f"ConstantLR: total_iters must be at least 0, got {total_iters}")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor_after(self, steps: int) -> float:
        return self.factor if steps < self.total_iters else 1.0


class LinearLR(FactorLR):
    """lr = base · f, where f changes linearly from start_factor to end_factor in total_iters steps, then stays.

    >>> import retrograd as rg
    >>> from retrograd.optim import SGD
    >>> from retrograd.optim.lr_scheduler import LinearLR
    >>> optimizer = SGD([rg.zeros(1, requires_grad=True)], lr=0.5)
    >>> schedule = LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> optimizer.step()
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

    def factor(self, steps: int) -> float:
        """Return the point on the line between the factors, or its end."""
        done = min(steps, self.total_iters) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * done


class PolynomialLR(FactorLR):
    """lr = base · (1 - steps / total_iters) ^ power, and 0 after total_iters steps.

    >>> import retrograd as rg
    >>> from retrograd.optim import SGD
    >>> from retrograd.optim.lr_scheduler import PolynomialLR
    >>> optimizer = SGD([rg.zeros(1, requires_grad=True)], lr=0.5)
    >>> schedule = PolynomialLR(optimizer, total_iters=2, power=2.0)
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.125]
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        if total_iters < 1:
            raise ValueError(f"PolynomialLR: total_iters must be at least 1, got {total_iters}")
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def factor(self, steps: int) -> float:
        """Return the point on the curve, or its end."""
        return (1 - min(steps, self.total_iters) / self.total_iters) ** self.power


class CosineAnnealingLR(FactorLR):
    """lr = eta_min + (base - eta_min) (1 + cos(π steps / T_max)) / 2, without restarts.

    Loshchilov and Hutter, SGDR, ICLR 2017.

    >>> import retrograd as rg
    >>> from retrograd.optim import SGD
    >>> from retrograd.optim.lr_scheduler import CosineAnnealingLR
    >>> optimizer = SGD([rg.zeros(1, requires_grad=True)], lr=0.5)
    >>> schedule = CosineAnnealingLR(optimizer, T_max=1)
    >>> optimizer.step()
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

    def factor(self, steps: int) -> float:
        """Return the point on the cosine."""
        return (1 + math.cos(math.pi * steps / self.T_max)) / 2


class _FunctionScheduler(LRScheduler):
    """Base of schedules given by a function of the number of steps, or a list with one for each parameter group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        groups = len(groups_of(optimizer, self))
        given = [lr_lambda] * groups if callable(lr_lambda) or not isinstance(lr_lambda, Iterable) else list(lr_lambda)
        if not all(map(callable, given)):
            raise TypeError(
                f"{type(self).__name__}: lr_lambda must be a function of the number of steps, or a list of them, got "
                f"{describe(lr_lambda)}"
            )
        self.lr_lambdas = given
        if len(self.lr_lambdas) != groups:
            raise ValueError(
                f"{type(self).__name__}: Expected {groups} lr_lambdas, but got {len(self.lr_lambdas)}: one function "
                f"for each group"
            )
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return the schedule as plain data, with a None for each function, and the attributes of callable objects."""
        return {**super().state_dict(), "lr_lambdas": [function_state(f) for f in self.lr_lambdas]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the result of `state_dict`, the attributes of callable objects too."""
        super().load_state_dict(state_dict)
        for function, state in self._states_of_functions(state_dict):
            restore_function(function, state)

    def check_state(self, state_dict: Mapping[str, Any]) -> dict[str, Any]:
        """Return the entries but those of functions, after checking these too."""
        known = super().check_state(state_dict)
        for function, state in self._states_of_functions(state_dict):
            check_function_state(f"{type(self).__name__}: lr_lambdas", function, state)
        return known

    def _states_of_functions(self, state_dict: Mapping[str, Any]) -> list[tuple[Any, Any]]:
        states = state_dict.get("lr_lambdas", [None] * len(self.lr_lambdas))
        if not isinstance(states, list | tuple) or len(states) != len(self.lr_lambdas):
            name, expected = type(self).__name__, len(self.lr_lambdas)
            raise ValueError(f"{name}: lr_lambdas must be a list of {expected} entries, got {describe(states)}")
        return list(zip(self.lr_lambdas, states, strict=True))


Functions = Callable[[int], float] | Iterable[Callable[[int], float]]


class LambdaLR(_FunctionScheduler):
    """lr = base · lr_lambda(steps); one function, or a list with one for each parameter group.

    >>> import retrograd as rg
    >>> from retrograd.optim import SGD
    >>> from retrograd.optim.lr_scheduler import LambdaLR
    >>> optimizer = SGD([rg.zeros(1, requires_grad=True)], lr=0.5)
    >>> schedule = LambdaLR(optimizer, lambda steps: 0.5**steps)
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Functions, last_epoch: int = -1) -> None:
        super().__init__(optimizer, lr_lambda, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the base rates times each group's function of the steps."""
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(_FunctionScheduler):
    """lr ← lr · lr_lambda(steps) in every step; one function, or a list with one for each parameter group.

    >>> import retrograd as rg
    >>> from retrograd.optim import SGD
    >>> from retrograd.optim.lr_scheduler import MultiplicativeLR
    >>> optimizer = SGD([rg.zeros(1, requires_grad=True)], lr=0.5)
    >>> schedule = MultiplicativeLR(optimizer, lambda steps: 0.5)
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Functions, last_epoch: int = -1) -> None:
        super().__init__(optimizer, lr_lambda, last_epoch)

    def get_lr(self) -> list[float]:
        """Return the current rates times each group's function of the steps."""
        groups = self.optimizer.param_groups
        if self.last_epoch <= 0 or self._is_initial:
            return [group["lr"] for group in groups]
        return [group["lr"] * f(self.last_epoch) for group, f in zip(groups, self.lr_lambdas, strict=True)]
