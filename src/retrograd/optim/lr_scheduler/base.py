"""The base of all schedules."""

from collections.abc import Collection, Mapping
from numbers import Real
from types import FunctionType
from typing import Any, ClassVar

from retrograd.autograd import no_grad
from retrograd.core import Tensor
from retrograd.foundation.describe_value import describe
from retrograd.foundation.number_arguments import checks_init_arguments
from retrograd.foundation.source_location import warn_user
from retrograd.foundation.suggestions import suggest_entry
from retrograd.optim.optimizer import Group, Optimizer

# Further entries of PyTorch's states: counts and flags that nothing here needs.
_FOREIGN = {
    "_is_initial", "_get_lr_called_within_step", "_scale_fn_custom", "use_beta1", "verbose",
    "lr_lambdas", "default_min_lr", "mode_worse",
}  # fmt: skip
EPOCH_IS_DEPRECATED = (
    "LRScheduler.step(epoch) is deprecated; call step() once for each epoch; The epoch parameter in `scheduler.step()` "
    "was not necessary and is being deprecated where possible"
)
_TOO_EARLY = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`: the first value of the learning rate schedule "
    "is skipped. Call `optimizer.step()` first, then `lr_scheduler.step()`"
)
_OVERRIDDEN = (
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization: whether "
    "`optimizer.step()` ran before `lr_scheduler.step()` is unknown"
)


@checks_init_arguments
class LRScheduler:
    """The base of all schedules: a subclass defines `get_lr`, one learning rate for each parameter group.

    `last_epoch` is the number of steps taken, -1 to start; `base_lrs` are the initial rates.

    >>> import retrograd as rg
    >>> from retrograd.optim import SGD
    >>> from retrograd.optim.lr_scheduler import LRScheduler
    >>> class Harmonic(LRScheduler):
    ...     def get_lr(self):
    ...         return [lr / (1 + self.last_epoch) for lr in self.base_lrs]
    >>> optimizer = SGD([rg.zeros(1, requires_grad=True)], lr=0.5)
    >>> schedule = Harmonic(optimizer)
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    # Users' schedules, written after PyTorch's, read these in `get_lr`.
    _get_lr_called_within_step: ClassVar[bool] = True
    _is_initial = False  # whether this is the step of the constructor
    _known_step: Any = None  # the optimizer's `step` at that time, if it is not its class's
    _step_count: int

    choices: ClassVar[Mapping[str, Collection[str]]] = {}  # the values that settings of a few words may have

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        for number, group in enumerate(groups_of(optimizer, self)):
            if last_epoch >= 0 and "initial_lr" not in group:
                raise KeyError(f"{type(self).__name__}: to resume, parameter group {number} needs an 'initial_lr'")
            if last_epoch < 0:
                group.setdefault("initial_lr", _own_value(group["lr"]))
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self._is_initial, self._known_step = True, vars(optimizer).get("step")
        self.step()
        del self._is_initial

    def __repr__(self) -> str:
        plain = {name: value for name, value in self.state_dict().items() if name[0] != "_" and _is_plain(value)}
        settings = {**plain, "last_lr": [group["lr"] for group in self.optimizer.param_groups]}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in settings.items())})"

    def get_lr(self) -> list[float]:
        """Return the learning rates after `last_epoch` steps; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} has no get_lr(); define it to give the learning rates")

    def get_last_lr(self) -> list[float]:
        """Return the learning rates that the schedule set last."""
        return list(self._last_lr)

    def step(self, epoch: int | None = None) -> None:
        """Take one step, and set the optimizer's learning rates; an error leaves both unchanged.

        epoch: deprecated; the number of steps to be at, which an earlier one is reached from the initial rates.
        """
        replaced = vars(self.optimizer).get("step") is not self._known_step
        if self._step_count == 1 and (replaced or not self.optimizer._opt_called):
            warn_user(_OVERRIDDEN if replaced else _TOO_EARLY)
        self._step_or_undo(epoch)

    def _step_or_undo(self, epoch: int | None = None) -> None:
        """Take a step; an error leaves the schedule and the optimizer unchanged."""
        own, groups = dict(vars(self)), [dict(group) for group in self.optimizer.param_groups]
        self._step_count += 1
        try:
            self._advance() if epoch is None else self._move_to(epoch)
        except BaseException:
            vars(self).clear()
            vars(self).update(own)
            for group, before in zip(self.optimizer.param_groups, groups, strict=True):
                group.clear()
                group.update(before)
            raise

    def restart(self) -> None:
        """Restart with the optimizer's initial rates."""
        for group, lr in zip(self.optimizer.param_groups, self.base_lrs, strict=False):
            set_rate(group, lr)
        self.begin()

    def begin(self) -> None:
        """Take the first step, from the optimizer's current rates."""
        self.last_epoch, self._step_count = -1, 0
        self.step()

    def _move_to(self, epoch: int) -> None:
        """Advance to a number of steps; if that is an earlier one, from the initial rates."""
        warn_user(EPOCH_IS_DEPRECATED)
        if not isinstance(epoch, int) or epoch < 0:
            hint = "" if isinstance(epoch, int) else "; only ReduceLROnPlateau takes a metric"
            raise ValueError(f"{type(self).__name__}.step: epoch must be an integer of at least 0, got {epoch!r}{hint}")
        if hasattr(self, "_get_closed_form_lr"):  # of users' schedules, written after PyTorch's
            self.last_epoch = epoch
            self._set_rates(self._get_closed_form_lr())
        elif epoch < self.last_epoch:
            self.restart()
        while self.last_epoch < epoch:
            self._advance()

    def _advance(self) -> None:
        self.last_epoch += 1
        self._set_rates(self.get_lr())

    def _set_rates(self, rates: list[float]) -> None:
        self._last_lr = rates
        for group, lr in zip(self.optimizer.param_groups, self._last_lr, strict=True):
            set_rate(group, lr)
        self.update_momentum()

    def update_momentum(self) -> None:
        """Set the momentum of a step; a schedule of the learning rate alone does nothing."""

    def state_dict(self) -> dict[str, Any]:
        """Return the schedule as plain data: everything but the optimizer and functions."""
        hidden = ("optimizer", "lr_lambdas", "scale_fn", "_loaded", "_is_initial", "_known_step")
        return {name: value for name, value in vars(self).items() if name not in hidden}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the result of `state_dict`; the optimizer's own state holds its learning rates.

        Raises TypeError or ValueError, and changes nothing, for an entry that the schedule lacks, or of another kind
        or length.
        """
        vars(self).update(self.check_state(state_dict))

    def check_state(self, state_dict: Mapping[str, Any]) -> dict[str, Any]:
        """Return the entries of a state that `load_state_dict` restores, or raise its errors."""
        name = type(self).__name__
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"{name}: expected a mapping as state, got {type(state_dict).__name__}")
        known = {entry: value for entry, value in state_dict.items() if entry not in _FOREIGN}
        unknown = [entry for entry in known if entry not in vars(self)]
        if unknown:
            entry = suggest_entry(state_dict, lambda entry: "last_epoch" in entry)
            hint = entry and f". {entry}"
            raise ValueError(f"{name}: the state has {', '.join(unknown)}, which this schedule lacks{hint}")
        for entry, value in known.items():
            _check_like(f"{name}: {entry}", vars(self)[entry], value)
            if value not in (vars(self)[entry], *self.choices.get(entry, (value,))):
                raise ValueError(
                    f"{name}: {entry} must be one of {', '.join(self.choices[entry])}, got {describe(value)}"
                )
        return known


def function_state(function: Any) -> dict[str, Any] | None:
    """Return the attributes of an object that is called as a function, and None for a function, as in PyTorch."""
    return None if isinstance(function, FunctionType) else dict(getattr(function, "__dict__", {}))


def check_function_state(name: str, function: Any, state: Any) -> None:
    """Raise TypeError unless a state is None, or one of attributes for an object that has some."""
    if state is not None and not (isinstance(state, Mapping) and hasattr(function, "__dict__")):
        raise TypeError(f"{name} must be None, or the attributes of a callable object, got {describe(state)}")


def restore_function(function: Any, state: Mapping[str, Any] | None) -> None:
    """Set the attributes of an object that is called as a function to those of a state."""
    if state:
        vars(function).update(state)


def _is_plain(value: Any) -> bool:
    """Return whether a value is short enough to be printed: a number, a word, or a list of numbers."""
    short = isinstance(value, list | tuple) and len(value) <= 8
    return value is None or isinstance(value, Real | str) or (short and all(isinstance(item, Real) for item in value))


def _check_like(name: str, own: Any, given: Any) -> None:
    """Raise TypeError or ValueError unless a value is of the kind of the current one, and a list of its length."""
    kinds = ((Real, "a number"), (str, "a string"), ((list, tuple), "a list"), (Mapping, "a mapping"))
    for kind, words in kinds:
        if isinstance(own, kind) and not isinstance(given, kind):
            raise TypeError(f"{name} must be {words}, got {type(given).__name__}")
    if isinstance(own, list | tuple):
        if len(given) != len(own):
            raise ValueError(f"{name} must have {len(own)} entries, got {len(given)}")
        for number, (item, other) in enumerate(zip(own, given, strict=True)):
            _check_like(f"{name} at index {number}", item, other)
    if isinstance(own, Mapping):
        if any(isinstance(key, str) for key in (*own, *given)) and own.keys() != given.keys():
            raise ValueError(f"{name} must have the keys {list(own)}, got {list(given)}")
        for key, value in given.items():
            _check_like(f"{name} at {key!r}", own.get(key, 0), value)


def groups_of(optimizer: Any, scheduler: LRScheduler) -> list[Group]:
    """Return the parameter groups of a schedule's optimizer; TypeError for anything else."""
    if not isinstance(optimizer, Optimizer):
        kind = type(optimizer).__name__
        raise TypeError(f"{type(scheduler).__name__}: expected an Optimizer, got {kind}; {kind} is not an Optimizer")
    return optimizer.param_groups


def _own_value(rate: Any) -> Any:
    """Return a rate; a copy of a tensor, which schedules overwrite."""
    return rate.detach().clone() if isinstance(rate, Tensor) else rate


def set_rate(group: Group, lr: Any) -> None:
    """Set the learning rate of a group; a tensor gets the value in place, so that others who have it see it."""
    if isinstance(group["lr"], Tensor):
        with no_grad():
            group["lr"].fill_(lr)
    else:
        group["lr"] = lr


def value_per_group(value: float | list[float], groups: list[Group]) -> list[float]:
    """Return a number for each parameter group; ValueError for a list of another length."""
    values = list(value) if isinstance(value, list | tuple) else [value] * len(groups)
    if len(values) != len(groups):
        raise ValueError(f"expected {len(groups)} values, one for each parameter group, got {len(values)}")
    return values


def check_momentum(name: str, groups: list[Group]) -> None:
    """Raise ValueError for an optimizer without momentum to cycle."""
    if not all("momentum" in group or "betas" in group for group in groups):
        raise ValueError(f"{name}: the optimizer has neither momentum nor betas; pass cycle_momentum=False")


def _cycles_beta1(self: Any) -> bool:
    """Whether the momentum is the first of Adam's betas."""
    return "betas" in self.optimizer.defaults


cycles_beta1 = property(_cycles_beta1)


def set_momentum(group: Group, momentum: float) -> None:
    """Set the momentum, or Adam's first beta."""
    if "betas" in group:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum
