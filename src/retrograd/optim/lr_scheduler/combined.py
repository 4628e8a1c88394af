"""Schedules composed of schedules."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from retrograd.optim.lr_scheduler.base import LRScheduler, set_rate
from retrograd.optim.lr_scheduler.plateau import ReduceLROnPlateau
from retrograd.optim.optimizer import Optimizer


class _CombinedScheduler(LRScheduler):
    """Several schedules of one optimizer."""

    _schedulers: list[LRScheduler]

    def _init_schedulers(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None) -> None:
        name = type(self).__name__
        if not schedulers:
            raise ValueError(f"{name}: expected at least one schedule, got none")
        for number, schedule in enumerate(schedulers):
            if not isinstance(schedule, LRScheduler):
                raise TypeError(f"{name}: schedule {number} must be an LRScheduler, got {type(schedule).__name__}")
        self.optimizer = schedulers[0].optimizer if optimizer is None else optimizer
        for number, schedule in enumerate(schedulers):
            if isinstance(schedule, ReduceLROnPlateau):
                raise ValueError(f"{name}: ReduceLROnPlateau steps with a quantity, so it can't be one of several")
            if schedule.optimizer is not self.optimizer:
                raise ValueError(f"{name}: schedule {number} belongs to another optimizer")
        self._schedulers = list(schedulers)

    def state_dict(self) -> dict[str, Any]:
        """Return the schedule as plain data, with the states of its parts."""
        return {**super().state_dict(), "_schedulers": [schedule.state_dict() for schedule in self._schedulers]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the result of `state_dict`."""
        super().load_state_dict(state_dict)
        for schedule, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            schedule.load_state_dict(state)

    def check_state(self, state_dict: Mapping[str, Any]) -> dict[str, Any]:
        """Return the entries that are not states of schedules, after checking those too."""
        name, states = type(self).__name__, state_dict.get("_schedulers")
        if not isinstance(states, list | tuple):
            raise TypeError(f"{name}: _schedulers must be a list of states, got {type(states).__name__}")
        if len(states) != len(self._schedulers):
            raise ValueError(f"{name}: the state has {len(states)} schedules, this one {len(self._schedulers)}")
        for number, (schedule, state) in enumerate(zip(self._schedulers, states, strict=True)):
            _check_schedule(f"{name}: _schedulers at index {number}", schedule, state)
        return super().check_state({entry: value for entry, value in state_dict.items() if entry != "_schedulers"})

    def restart(self) -> None:
        """Restart with the optimizer's initial rates."""
        for group in self.optimizer.param_groups:
            set_rate(group, group["initial_lr"])
        self.begin()

    def _rates(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]


def _check_schedule(where: str, schedule: LRScheduler, state: Any) -> None:
    try:
        schedule.check_state(state)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{where}: {error}") from error


class ChainedScheduler(_CombinedScheduler):
    """Run several schedules together: each step is a step of all of them, so that their factors multiply.

    >>> import retrograd as rg
    >>> from retrograd.optim import SGD
    >>> from retrograd.optim.lr_scheduler import ChainedScheduler, ConstantLR, ExponentialLR
    >>> optimizer = SGD([rg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = ChainedScheduler([ConstantLR(optimizer, factor=0.5), ExponentialLR(optimizer, gamma=0.5)])
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self._init_schedulers(schedulers, optimizer)
        self._last_lr = self._rates()

    def begin(self) -> None:
        """Take the first step of each."""
        for schedule in self._schedulers:
            schedule.begin()
        self._last_lr = self._rates()

    def step(self) -> None:  # type: ignore[override]  # without an epoch, as in PyTorch
        """Take one step of each."""
        for schedule in self._schedulers:
            schedule.step()
        self._last_lr = self._rates()


class SequentialLR(_CombinedScheduler):
    """Run schedules in sequence: the next one starts at each of the `milestones`, given as step counts.

    >>> import retrograd as rg
    >>> from retrograd.optim import SGD
    >>> from retrograd.optim.lr_scheduler import ConstantLR, ExponentialLR, SequentialLR
    >>> optimizer = SGD([rg.zeros(1, requires_grad=True)], lr=1.0)
    >>> warmup, decay = ConstantLR(optimizer, factor=0.25), ExponentialLR(optimizer, gamma=0.5)
    >>> schedule = SequentialLR(optimizer, [warmup, decay], milestones=[2])
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += schedule.get_last_lr()
    ...     optimizer.step()
    ...     schedule.step()
    >>> rates
    [0.25, 0.25, 1.0, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        self._init_schedulers(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1 or sorted(milestones) != list(milestones):
            raise ValueError(
                f"SequentialLR: {len(schedulers)} schedules need {len(schedulers) - 1} milestones that rise, "
                f"got {list(milestones)}: Sequential Schedulers expects number of schedulers provided to be one more "
                "than the number of milestone points"
            )
        self._milestones = list(milestones)
        self.restart()
        self.last_epoch = last_epoch + 1

    def begin(self) -> None:
        """Take the first step of the first schedule."""
        self.last_epoch = 0
        self._schedulers[0].begin()
        self._last_lr = self._schedulers[0].get_last_lr()

    def step(self) -> None:  # type: ignore[override]  # without an epoch, as in PyTorch
        """Take one step of the current schedule."""
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        schedule = self._schedulers[number]
        if number and self._milestones[number - 1] == self.last_epoch:
            schedule.restart()
        else:
            schedule.step()
        self._last_lr = schedule.get_last_lr()
