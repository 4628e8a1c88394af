"""Averages of the parameters over the training."""

from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import partial
from typing import Any, ClassVar

from retrograd.autograd import no_grad
from retrograd.foundation.describe_value import describe
from retrograd.nn import Buffer, Module
from retrograd.ops.create import tensor
from retrograd.optim.lr_scheduler import LRScheduler
from retrograd.optim.lr_scheduler.base import groups_of, value_per_group
from retrograd.optim.lr_scheduler.one_cycle import ANNEAL
from retrograd.optim.optimizer import Optimizer

Average = Callable[[Any, Any, int], Any]
MultiAverage = Callable[[Any, Any, Any], None]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Return the function decay · average + (1 - decay) · parameter, for `AveragedModel`.

    >>> get_ema_avg_fn(0.75)(1.0, 2.0, 7)
    1.25
    """
    if not 0 <= decay <= 1:
        raise ValueError(f"get_ema_avg_fn: decay must lie between 0 and 1, got {decay}")
    return partial(_decayed, decay)


def get_swa_avg_fn() -> Average:
    """Return the function for the mean of all parameters so far, for `AveragedModel`.

    >>> get_swa_avg_fn()(1.0, 2.0, 3)
    1.25
    """
    return _mean


def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiAverage:
    """Return the function that updates lists of averages in place like `get_ema_avg_fn`: `multi_avg_fn`.

    >>> import retrograd as rg
    >>> averages = [rg.ones(1)]
    >>> get_ema_multi_avg_fn(0.75)(averages, [2 * rg.ones(1)], 7)
    >>> averages
    [tensor([1.2500])]
    """
    return partial(_update_each, get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> MultiAverage:
    """Return the function that updates lists of averages in place like `get_swa_avg_fn`: `multi_avg_fn`.

    >>> import retrograd as rg
    >>> averages = [rg.ones(1)]
    >>> get_swa_multi_avg_fn()(averages, [2 * rg.ones(1)], 3)
    >>> averages
    [tensor([1.2500])]
    """
    return partial(_update_each, _mean)


# Functions of this module, not of a call: a model with averages can be pickled.
def _decayed(decay: float, average: Any, value: Any, count: int) -> Any:
    return average * decay + value * (1 - decay)


def _mean(average: Any, value: Any, count: int) -> Any:
    return average + (value - average) / (count + 1)


def _update_each(average_of: Average, averages: Any, values: Any, count: Any) -> None:
    """Update each tensor of a list in place."""
    with no_grad():
        for average, value in zip(averages, values, strict=True):
            average.copy_(average_of(average, value, int(count)))


class _AveragingError(ValueError, AssertionError):
    """The error for two functions that average; AssertionError in PyTorch."""


class AveragedModel(Module):
    """A copy of a model whose parameters are the average of those passed to `update_parameters`.

    `avg_fn(average, parameter, count)` is the next average after `count` of them; None means the mean: Izmailov et al.,
    UAI 2018. `multi_avg_fn(averages, parameters, count)` updates lists of them in place instead; a ValueError if both
    are given. `device` may be the CPU. Buffers are averaged too with `use_buffers`, else copied. Calling it runs the
    averaged model, `module`.

    >>> from retrograd import nn
    >>> from retrograd.optim.swa_utils import AveragedModel
    >>> model = nn.Linear(1, 1, bias=False)
    >>> averaged = AveragedModel(model)
    >>> for value in (1.0, 2.0, 6.0):
    ...     _ = nn.init.constant_(model.weight, value)
    ...     averaged.update_parameters(model)
    >>> averaged.module.weight.item()
    3.0
    """

    n_averaged: Any

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: MultiAverage | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if not isinstance(model, Module):
            raise TypeError(f"AveragedModel: model must be a Module, got {describe(model)} ({type(model).__name__})")
        if avg_fn is not None and multi_avg_fn is not None:
            raise _AveragingError("AveragedModel: only one of avg_fn and multi_avg_fn may be given")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.multi_avg_fn = multi_avg_fn
        self.n_averaged = Buffer(tensor(0))
        self.avg_fn = get_swa_avg_fn() if avg_fn is None else avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the averaged model."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Include the parameters of a model in the average; the first ones are copied."""
        count = int(self.n_averaged)
        pairs = list(
            zip(
                _averaged_tensors(self.module, self.use_buffers),
                _averaged_tensors(model, self.use_buffers),
                strict=True,
            )
        )
        with no_grad():
            if count and self.multi_avg_fn is not None:
                self.multi_avg_fn([a.detach() for a, _ in pairs], [v.detach() for _, v in pairs], count)
            else:
                for average, value in pairs:
                    average.copy_(self.avg_fn(average.detach(), value.detach(), count) if count else value)
            for own_buffer, other_buffer in (
                [] if self.use_buffers else zip(self.module.buffers(), model.buffers(), strict=True)
            ):
                own_buffer.copy_(other_buffer)
            self.n_averaged.add_(1)


def _averaged_tensors(model: Module, buffers: bool) -> list[Any]:
    return [*model.parameters(), *(model.buffers() if buffers else ())]


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recompute the running means and variances of all batch norms, in one pass over the data.

    If the loader yields a pair or tuple, its first item is the input of the model. device: where to move inputs to,
    None to leave them where they are.
    """
    norms = [module for module in model.modules() if getattr(module, "running_mean", None) is not None]
    if not norms:
        return
    factors, was = {module: module.momentum for module in norms}, model.training
    for module in norms:
        module.reset_running_stats()
        module.momentum = None  # the mean over all batches
    model.train()
    try:
        with no_grad():
            for batch in loader:
                x = batch[0] if isinstance(batch, list | tuple) else batch
                model(x if device is None else x.to(device))
    finally:
        for module, momentum in factors.items():
            module.momentum = momentum
        model.train(was)


class SWALR(LRScheduler):
    """From the current learning rates to `swa_lr` within anneal_epochs steps, and constant from then on.

    `anneal_strategy`: "cos" or "linear". For averages of the parameters: Izmailov et al., UAI 2018.

    >>> import retrograd as rg
    >>> from retrograd.optim import SGD
    >>> from retrograd.optim.swa_utils import SWALR
    >>> optimizer = SGD([rg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = SWALR(optimizer, 0.5, 2, "linear")
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.75]
    """

    choices: ClassVar = {"_anneal_strategy": ANNEAL}

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in ANNEAL:
            raise ValueError(f"SWALR: anneal_strategy must be 'cos' or 'linear', got {anneal_strategy!r}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"SWALR: anneal_epochs must be an integer of at least 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        groups = groups_of(optimizer, self)
        for group, lr in zip(groups, value_per_group(swa_lr, groups), strict=True):
            group["swa_lr"] = lr
        super().__init__(optimizer, last_epoch)

    def _progress(self, steps: int) -> float:
        """Return the elapsed share of the annealing."""
        done = min(1.0, max(0.0, steps / max(1, self.anneal_epochs)))
        return ANNEAL[self._anneal_strategy](0.0, 1.0, done)

    def get_lr(self) -> list[float]:
        """Return the rates after a step from the current rates, whichever schedule set them."""
        groups = self.optimizer.param_groups
        if (self.last_epoch <= 0 or self._is_initial) and self.anneal_epochs:
            return [group["lr"] for group in groups]
        before, share = self._progress(max(0, self.last_epoch - 1)), self._progress(self.last_epoch)
        if before == 1 or not self.anneal_epochs:
            return [group["swa_lr"] for group in groups]
        left = (1 - share) / (1 - before)
        return [group["swa_lr"] + (group["lr"] - group["swa_lr"]) * left for group in groups]
