"""A schedule that depends on the progress of training."""

import math
from typing import Any, ClassVar

from retrograd.foundation.source_location import warn_user
from retrograd.optim.lr_scheduler.base import EPOCH_IS_DEPRECATED, LRScheduler, groups_of, set_rate, value_per_group
from retrograd.optim.optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """lr ← max(lr · factor, min_lr) when a metric has not improved for more than `patience` steps.

    `step(metrics)` takes the metric, such as the validation loss. `mode`: "min" if smaller is better, or "max". An
    improvement exceeds `threshold`, a fraction of the best so far (`threshold_mode` "rel") or a difference ("abs").
    After a reduction, `cooldown` steps are not counted. Changes of lr below `eps` are skipped.

    >>> import retrograd as rg
    >>> from retrograd.optim import SGD
    >>> from retrograd.optim.lr_scheduler import ReduceLROnPlateau
    >>> optimizer = SGD([rg.zeros(1, requires_grad=True)], lr=0.5)
    >>> schedule = ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    >>> for loss in (3.0, 2.0, 2.0):
    ...     schedule.step(loss)
    >>> schedule.get_last_lr()
    [0.25]
    """

    choices: ClassVar = {"mode": ("min", "max"), "threshold_mode": ("rel", "abs")}
    best: float
    num_bad_epochs: int
    cooldown_counter: int

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | list[float] = 0.0,
        eps: float = 1e-8,
    ) -> None:
        groups = groups_of(optimizer, self)
        if not factor < 1:
            raise ValueError(f"ReduceLROnPlateau: factor must be less than 1, got {factor}")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(
                f"ReduceLROnPlateau: mode must be 'min' or 'max', and threshold_mode 'rel' or 'abs', "
                f"got {mode!r} and {threshold_mode!r}"
            )
        self.optimizer = optimizer
        self.mode = mode
        self.factor = factor
        self.patience = patience
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.cooldown = cooldown
        self.min_lrs = value_per_group(min_lr, groups)
        self.default_min_lr = None if isinstance(min_lr, list | tuple) else min_lr  # of groups that are added later
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = [group["lr"] for group in groups]
        self._reset()

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]  # this takes a metric
        """Record the metric, a number or a tensor with one element, and reduce the rates if due.

        epoch: deprecated; the number of this step, by default one more than the last.
        """
        if epoch is not None:
            warn_user(EPOCH_IS_DEPRECATED)
        value = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(value, self.best):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def _reset(self) -> None:  # PyTorch's name, which scripts call
        """Forget the metrics."""
        self.best = self.mode_worse
        self.num_bad_epochs = self.cooldown_counter = 0

    @property
    def mode_worse(self) -> float:
        """The worst metric of the mode: infinity, or minus infinity."""
        return math.inf if self.mode == "min" else -math.inf

    @property
    def in_cooldown(self) -> bool:
        """Whether bad steps are not counted, since the rates were reduced at most `cooldown` steps ago."""
        return self.cooldown_counter > 0

    def is_better(self, a: float, best: float) -> bool:
        """Whether `a` is better than `best` by more than the threshold."""
        sign = 1 if self.mode == "min" else -1
        margin = self.threshold if self.threshold_mode == "abs" else self.threshold * best
        return sign * a < sign * best - margin if math.isfinite(best) else sign * a < sign * best

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        added = len(groups) - len(self.min_lrs)
        low = self.default_min_lr
        if added and low is None:
            raise RuntimeError(
                f"ReduceLROnPlateau: {added} parameter groups were added after the schedule, which has a list of "
                "min_lr; give it one number"
            )
        self.min_lrs += [low or 0.0] * added
        for group, low in zip(groups, self.min_lrs, strict=True):
            new = max(float(group["lr"]) * self.factor, low)
            if float(group["lr"]) - new > self.eps:
                set_rate(group, new)
