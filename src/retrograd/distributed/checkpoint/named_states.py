"""The state of an optimizer by parameter name, with the elements that this rank has of each tensor."""

import copy
from collections import defaultdict
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any, NamedTuple

from retrograd.core import Tensor, registry
from retrograd.distributed.checkpoint import layout
from retrograd.distributed.data_parallel import DistributedDataParallel
from retrograd.distributed.local_slice import LocalSlice, move_back
from retrograd.distributed.optim.zero_redundancy import ZeroRedundancyOptimizer
from retrograd.distributed.tensor.dtensor import DTensor
from retrograd.nn.module import Module
from retrograd.nn.tensor_part import local_tensor
from retrograd.optim.optimizer import Optimizer
from retrograd.pipelining.transports.process_group import default_group


class Part(NamedTuple):
    """The elements of a parameter that this rank updates.

    parameter: the parameter of the model.  elements: those elements.  local: the tensor that the optimizer updates for
    them.  state: the optimizer's, of these elements.
    """

    name: str
    parameter: Tensor
    elements: LocalSlice
    local: Tensor
    state: dict[str, Any]

    def divided(self) -> dict[str, Any]:
        """Return the state with tensors as parts, or slices, of whole ones.  TypeError if one cannot be divided."""
        return type(self.state)({key: self._divided(key, value) for key, value in self.state.items()})

    def _divided(self, key: str, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        own, like = self.elements, tuple(value.shape) == tuple(self.local.shape)
        if isinstance(self.local, DTensor) and (like or not value.ndim):
            return self.local.as_part(value) if like else value
        if self.local is self.parameter and not isinstance(self.local, DTensor):
            return value
        if like:
            return LocalSlice(value.detach(), own.shape, own.low)
        if own.tensor.numel() == prod(own.shape):
            return LocalSlice(value.detach(), tuple(value.shape), 0)
        raise TypeError(
            f"checkpoint: {key} of {self.name} has shape {tuple(value.shape)} in the optimizer's state, which cannot "
            f"be divided by the elements of the parameter"
        )

    def localized(self, key: str, value: Any) -> Any:
        """Return this rank's elements of a state like the parameter; others as they are."""
        own = self.elements
        if isinstance(value, DTensor | LocalSlice):
            given = layout.as_slice(value)
            if given.shape != own.shape:
                return given.tensor
            if (given.dim, given.box, given.low, given.high) != (own.dim, own.box, own.low, own.high):
                raise ValueError(
                    f"set_optimizer_state_dict: {key} of {self.name} has the elements {given.low} to {given.high} "
                    f"along dimension {given.dim}, and this rank updates {own.low} to {own.high} along {own.dim}; use "
                    f"`load`, which reads those of any division"
                )
            return move_back(given.tensor, own.dim).reshape(local_tensor(self.local).shape)
        if not isinstance(value, Tensor) or tuple(value.shape) != own.shape or not value.ndim:
            return value
        if isinstance(self.local, DTensor):
            return self.local.part_of(value)
        return value.reshape(-1)[own.low : own.high].reshape(self.local.shape)


def parts_of(module: Module, optimizer: Any, template: bool = False) -> Iterator[Part]:
    """Yield the elements of the parameters that this rank updates; template: with a state before the first step."""
    names, group = names_of(module), default_group()
    copies = (0, 1) if group is None else (group.rank(), group.size())
    divided = isinstance(optimizer, ZeroRedundancyOptimizer)
    inner = optimizer.optim if divided else optimizer
    unknown = [p.aval for p in optimizer._params() if id(p) not in names]
    if unknown:
        raise ValueError(f"checkpoint: the optimizer has parameters that the model lacks: {unknown}")
    if inner._params_with_shared_state():
        raise TypeError(
            f"checkpoint: {type(inner).__name__} has one entry for all parameters in the optimizer's state, which "
            f"cannot be divided; use its state_dict() on one rank"
        )
    states = {id(p): state for p, state in inner.state.items() if state}
    if template:
        states |= _first_states(inner, [p for p in inner._params() if id(p) not in states and p.requires_grad])
    if divided:
        for piece in optimizer.pieces:
            own = LocalSlice(piece.tensor.detach(), tuple(piece.param.shape), piece.low)
            yield Part(names[id(piece.param)], piece.param, own, piece.tensor, states.get(id(piece.tensor), {}))
        return
    for p in optimizer._params():
        own = p.local_slice if isinstance(p, DTensor) else LocalSlice(p.detach(), tuple(p.shape), 0, *copies)
        yield Part(names[id(p)], p, own, p, states.get(id(p), {}))


def states_by_name(module: Module, optimizer: Any, *, whole: bool = False, template: bool = False) -> dict[str, Any]:
    """Return the states and groups of an optimizer by names; whole: with whole tensors, for which all ranks call it."""
    names = names_of(module)
    parts = [part for part in parts_of(module, optimizer, template) if part.state]
    states: dict[str, Any] = {part.name: part.divided() for part in parts}
    if whole and isinstance(optimizer, ZeroRedundancyOptimizer):
        params = optimizer._params()
        states = {names[id(params[number])]: dict(s) for number, s in optimizer.full_state_dict()["state"].items()}
    elif whole:
        states = {
            name: {key: _gathered(x) for key, x in state.items()}
            for name, state in states.items()
            if not isinstance(state, layout.FirstState)
        }
    groups = [
        {**settings_of(group), "params": [names[id(p)] for p in group["params"]]} for group in optimizer.param_groups
    ]
    return {"state": states, "param_groups": groups}


def module_of(model: Any) -> Module:
    """Return the module of a `DistributedDataParallel`; another one as it is.  TypeError for other values."""
    if not isinstance(model, Module):
        raise TypeError(f"checkpoint: expected a Module or a Pipeline, got {type(model).__name__}")
    return model.module if isinstance(model, DistributedDataParallel) else model


def names_of(module: Module) -> dict[int, str]:
    """Return the first name of each parameter and buffer, by id; of divided ones, that of this rank's part."""
    found: dict[int, str] = {}
    for name, p in module.state_dict(keep_vars=True).items():
        found.setdefault(id(p), name)
    return found


def _first_states(optimizer: Optimizer, params: list[Any]) -> dict[int, layout.FirstState]:
    """Return the states that a first step would make for parameters, by a step of others with gradients of zero."""
    if not params or "dense" not in optimizer.takes:
        return {}
    zeros_like, twins, trial = registry["zeros_like"], dict[int, Tensor](), copy.copy(optimizer)
    for p in params:
        twins[id(p)] = zeros_like(p.detach()).requires_grad_()
        twins[id(p)].grad = zeros_like(p.detach())
    trial.state = defaultdict(dict)
    trial.param_groups = [
        {**group, "params": [twins[id(p)] for p in group["params"] if id(p) in twins]}
        for group in optimizer.param_groups
    ]
    Optimizer.step.__wrapped__(trial)  # type: ignore[attr-defined]  # without the hooks of steps
    return {key: layout.FirstState(trial.state[twin]) for key, twin in twins.items()}


def settings_of(group: Mapping[str, Any]) -> dict[str, Any]:
    """Return a group without its parameters."""
    return {key: value for key, value in group.items() if key not in ("params", "param_names")}


def _gathered(value: Any) -> Any:
    return value.full_tensor().detach() if isinstance(value, DTensor) else value
