"""A block in which an optimizer works on other parameters and another state."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from retrograd.core.blocks import generator_block
from retrograd.optim.optimizer import Group, Optimizer, State, check_state_dict
from retrograd.optim.state_entries import load_scalars


@generator_block
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: Mapping[str, Any], swapin_optim_state: Mapping[str, Any]
) -> Iterator[None]:
    """Let an optimizer work on given parameters and a given state in a `with` block, and restore its own afterwards.

    swapin_parameters: tensors by name, in the order of the optimizer's own parameters.
    swapin_optim_state: a `state_dict()` of such an optimizer. Its tensors are used themselves, so steps write to them;
    new entries of a parameter's state are dropped at the end.

    Raises ValueError, before anything changes, if the parameters or the groups are not as many as the optimizer's, and
    TypeError if the state is no `state_dict()`.

    >>> import retrograd as rg
    >>> own, other = rg.ones(1, requires_grad=True), rg.zeros(1, requires_grad=True)
    >>> optimizer = rg.optim.SGD([own], lr=0.5)
    >>> other.grad = rg.ones(1)
    >>> with rg.optim.swap_in_optimizer_params_and_state(optimizer, {"x": other}, optimizer.state_dict()):
    ...     optimizer.step()
    >>> own.tolist(), other.tolist()
    ([1.0], [-0.5])
    """
    name = "swap_in_optimizer_params_and_state"
    states, groups = check_state_dict(name, swapin_optim_state)
    sizes = [len(group["params"]) for group in optimizer.param_groups]
    given = [len(group["params"]) for group in groups]
    if sizes != given:
        raise ValueError(f"{name}: this optimizer's groups have {sizes} parameters, the state's {given}")
    params = list(swapin_parameters.values())
    if len(params) != sum(sizes):
        raise ValueError(f"{name}: expected {sum(sizes)} parameters, one for each of the optimizer, got {len(params)}")
    numbers = [number for group in groups for number in group["params"]]
    state: defaultdict[Any, State] = defaultdict(dict)
    saved = [load_scalars(states.get(number, {}), optimizer.entries) for number in numbers]
    state.update(zip(params, saved, strict=True))
    kept, kept_groups = optimizer.state, [dict(group) for group in optimizer.param_groups]
    try:
        for group, swapped in zip(optimizer.param_groups, groups, strict=True):
            group.update({**swapped, "params": [params.pop(0) for _ in group["params"]]})
        optimizer.state = state
        yield
    finally:
        optimizer.state = kept
        _restore(optimizer.param_groups, kept_groups)


def _restore(groups: list[Group], kept: list[Group]) -> None:
    for group, own in zip(groups, kept, strict=False):  # the block may have added groups
        group.clear()
        group.update(own)
    del groups[len(kept) :]
