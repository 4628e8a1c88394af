"""Match a model and its optimizer with a checkpoint by parameter names."""

from collections.abc import Collection
from typing import Any, Protocol

from retrograd.nn import Module
from retrograd.optim import Optimizer
from retrograd.pipelining.checkpoint.manifest import Content, Group, States


class _ReleasedStates(dict[int, dict[str, Any]]):
    """Optimizer states that are released one by one as they are taken, so that only one has its tensors twice."""

    def __getitem__(self, number: int) -> dict[str, Any]:
        state = super().__getitem__(number)
        taken = dict(state)
        state.clear()
        return taken


class Scheduler(Protocol):
    """The interface of a learning rate scheduler that checkpoints use."""

    def state_dict(self) -> dict[str, Any]:
        """Return its state as plain data."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore such a state."""


def stored_names(model: Module) -> dict[str, str]:
    """Map each name in the model's state to the name it is stored under: the tensor's first name."""
    first: dict[int, str] = {}
    return {name: first.setdefault(id(tensor), name) for name, tensor in model.state_dict(keep_vars=True).items()}


def groups_of(optimizer: Optimizer, model: Module) -> list[Group]:
    """Return the optimizer's groups with names instead of parameters; ValueError for one that the model lacks."""
    names = _names(model)
    unknown = [p.aval for group in optimizer.param_groups for p in group["params"] if id(p) not in names]
    if unknown:
        raise ValueError(f"Checkpoints: the optimizer has parameters that the model lacks: {unknown}")
    return [
        {
            "params": [names[id(p)] for p in group["params"]],
            "settings": {name: value for name, value in group.items() if name != "params"},
        }
        for group in optimizer.param_groups
    ]


def states_of(optimizer: Optimizer, model: Module) -> States:
    """Return the optimizer's state by parameter name."""
    names = _names(model)
    return {names[id(parameter)]: dict(state) for parameter, state in optimizer.state.items()}


def _names(model: Module) -> dict[int, str]:
    return {id(parameter): name for name, parameter in model.named_parameters()}


def match_state(
    where: str, content: Content, model: Module, optimizer: Optimizer | None, scheduler: Scheduler | None
) -> dict[str, Any]:
    """Return the state for the optimizer's `load_state_dict`; ValueError, prefixed by `where`, lists all
    mismatches."""
    problems, groups = _model_problems(content, model), list[Group]()
    if optimizer is not None:
        groups = groups_of(optimizer, model)
        problems += _optimizer_problems(content, optimizer, groups)
    if scheduler is not None:
        problems += _scheduler_problems(content, scheduler)
    if problems:
        raise ValueError("\n  ".join([f"restore: the checkpoint {where} does not fit:", *problems]))
    return _optimizer_state(content, groups)


def load_states(content: Content, optimizer_state: dict[str, Any], optimizer: Any, scheduler: Any) -> None:
    """Load the states of optimizer and scheduler, either of which may be None; an error leaves both unchanged."""
    before = [(one, one.state_dict()) for one in (optimizer, scheduler) if one is not None]
    try:
        if optimizer is not None:
            optimizer.load_state_dict(optimizer_state)
        if scheduler is not None:
            scheduler.load_state_dict(content.scheduler)
    except Exception:
        for one, state in before:
            one.load_state_dict(state)
        raise


def _model_problems(content: Content, model: Module) -> list[str]:
    own = model.state_dict()
    return _names_differ("parameters or buffers", own, content.model) + [
        f"{name} has the shape {tuple(tensor.shape)}, in the checkpoint {tuple(content.model[name].shape)}"
        for name, tensor in own.items()
        if name in content.model and tensor.shape != content.model[name].shape
    ]


def _optimizer_problems(content: Content, optimizer: Optimizer, groups: list[Group]) -> list[str]:
    if content.groups is None:
        return ["it was saved without an optimizer"]
    if len(groups) != len(content.groups):
        return [f"the optimizer has {len(groups)} groups of parameters, in the checkpoint {len(content.groups)}"]
    problems = []
    for number, (own, stored) in enumerate(zip(groups, content.groups, strict=True)):
        found = _names_differ("parameters", own["params"], stored["params"]) or _settings_problems(
            optimizer, {**optimizer.param_groups[number], **stored["settings"]}, stored["settings"]
        )
        problems += [f"group {number} of the optimizer: {problem}" for problem in found]
    return problems


def _settings_problems(optimizer: Optimizer, group: Group, stored: dict[str, Any]) -> list[str]:
    missing = [name for name in optimizer.defaults if name not in stored]
    if missing:
        return [f"the checkpoint has no settings {', '.join(missing)}"]
    try:
        optimizer.check(group)
    except (ValueError, TypeError) as error:
        return [str(error)]
    return []


def _scheduler_problems(content: Content, scheduler: Scheduler) -> list[str]:
    if content.scheduler is None:
        return ["it was saved without a scheduler"]
    return _names_differ("entries of the scheduler's state", scheduler.state_dict(), content.scheduler)


def _names_differ(what: str, own: Collection[str], stored: Collection[str]) -> list[str]:
    """Return lines that list the names which only one side has."""
    lines = {
        f"{what} that the checkpoint lacks": [name for name in own if name not in stored],
        f"{what} that only the checkpoint has": [name for name in stored if name not in own],
    }
    return [f"{line}: {', '.join(names)}" for line, names in lines.items() if names]


def _optimizer_state(content: Content, groups: list[Group]) -> dict[str, Any]:
    """Return the state for `load_state_dict`, which numbers parameters in the optimizer's order and copies tensors.

    The tensors of `content.states` are released as they are copied.
    """
    numbers = {name: number for number, name in enumerate(name for group in groups for name in group["params"])}
    return {
        "state": _ReleasedStates((numbers[name], state) for name, state in content.states.items() if name in numbers),
        "param_groups": [
            {**stored["settings"], "params": [numbers[name] for name in own["params"]]}
            for own, stored in zip(groups, content.groups or (), strict=False)
        ],
    }
