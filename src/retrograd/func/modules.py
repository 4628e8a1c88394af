"""Modules as functions: called with other tensors, and several of one class stacked for `vmap`."""

from collections.abc import Iterator, Sequence
from typing import Any

from retrograd.core import Tensor, registry
from retrograd.core.blocks import generator_block
from retrograd.foundation.describe_value import describe
from retrograd.foundation.own_attributes import stored_attributes
from retrograd.foundation.suggestions import suggest_in_module

Dicts = dict[str, Tensor] | Sequence[dict[str, Tensor]]


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Remove the running statistics of every batch norm in a module, in place; return the module.

    They then use the statistics of the batch, also in evaluation: `vmap` of a training step would write a batched
    mean to them.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> model = rg.func.replace_all_batch_norm_modules_(nn.Sequential(nn.BatchNorm1d(3)))
    >>> model[0].running_mean is None, model[0].track_running_stats
    (True, False)
    """
    for module in _check_module("replace_all_batch_norm_modules_", root).modules():
        remove = getattr(module, "_remove_running_stats", None)
        if remove is not None:
            remove()
    return root


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Dicts,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with the given parameters and buffers in place of its own, which are unchanged.

    `parameter_and_buffer_dicts` is a dict of tensors by dotted name, or a sequence of such dicts; for other names the
    module's own tensors are used.  `args` is a tuple, or else a single argument.  If `forward` replaces a given tensor
    or writes to it, the dict contains the new value afterwards.  With `tie_weights`, any of the names of a shared
    tensor may be given; with `strict`, exactly the module's names must be given.

    Raises ValueError for a name in two dicts and for two values of one tied tensor, RuntimeError for names that
    `strict` refuses, AttributeError for a missing submodule, and TypeError for values that are not tensors.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> layer, x, y = nn.Linear(2, 1), rg.tensor([1.0, 2.0]), rg.tensor([0.0])
    >>> def loss(params, x, y):
    ...     return nn.functional.mse_loss(rg.func.functional_call(layer, params, x), y)
    >>> rg.func.grad(loss)({"weight": rg.zeros(1, 2), "bias": rg.ones(1)}, x, y)
    {'weight': tensor([[2., 4.]]), 'bias': tensor([2.])}
    """
    _check_module("functional_call", module)
    dicts = _check_dicts(parameter_and_buffer_dicts)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replace_tensors(module, dicts, tie_weights, strict):
        return module(*args, **kwargs or {})


def _reparametrize_module(
    module: Any,
    parameters_and_buffers: dict[str, Tensor],
    *,
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
) -> Any:
    """Return a block in which a module has other tensors: PyTorch's private name, which libraries call.

    `stack_weights` has no effect: blocks inside one another end in the inverse order always.
    """
    return _replace_tensors(module, [parameters_and_buffers], tie_weights, strict)


def _replace_tensors(module: Any, dicts: list[dict], tie_weights: bool, strict: bool) -> Any:
    """Return a block in which a module has the tensors of the dicts; their final values are written to these."""
    values = {name: value for given in dicts for name, value in given.items()}
    if tie_weights:
        values = _expand_tied_names(module, values)
    if strict:
        _check_names(module, values)
    return _swap_tensors(module, values, dicts)


class NoModuleError(TypeError, AttributeError):
    """An argument is no Module: an AttributeError in PyTorch, which looks for its parameters."""


def _check_module(name: str, module: Any) -> Any:
    """Return a module; raise NoModuleError for something else."""
    if not hasattr(module, "named_parameters") or isinstance(module, type):
        words = f"{type(module).__name__!r} object has no attribute 'named_parameters'"
        raise NoModuleError(f"{name}: expected a Module, got {describe(module)}: {words}")
    return module


def _check_dicts(given: Any) -> list[dict]:
    """Return the dicts of tensors, after checking that they share no name."""
    dicts = [given] if isinstance(given, dict) else given
    if not isinstance(dicts, (list, tuple)) or not all(isinstance(d, dict) for d in dicts):
        raise ValueError(
            f"functional_call: Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(given)}"
        )
    names = [name for d in dicts for name in d]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(
            f"functional_call: {sorted(twice)} appeared in multiple dictionaries; behavior of functional call is "
            f"ambiguous: {', '.join(sorted(twice))} appeared in more than one dict"
        )
    return list(dicts)


def _named_tensors(module: Any) -> list[tuple[str, Tensor]]:
    """Return all parameters and buffers, under each of their names."""
    return [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]


def _expand_tied_names(module: Any, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values, with those of tied tensors under each of their names."""
    names: dict[int, list[str]] = {}
    for name, tensor in _named_tensors(module):
        names.setdefault(id(tensor), []).append(name)
    found = dict(values)
    for tied in names.values():
        given = [name for name in tied if name in values]
        if len({id(values[name]) for name in given}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {given}, which are tied: {', '.join(given)} are tied, "
                f"but have different values; give one of them. Consider using tie_weights=False"
            )
        if given:
            found.update(dict.fromkeys(tied, values[given[0]]))
    return found


def _check_names(module: Any, values: dict[str, Any]) -> None:
    own = dict(_named_tensors(module))
    missing, unexpected = sorted(own.keys() - values.keys()), sorted(values.keys() - own.keys())
    problems = {"unexpected": unexpected, "missing": missing}
    if missing or unexpected:
        listed = "; ".join(f"{what}: {', '.join(names)}" for what, names in problems.items() if names)
        kind = type(module).__name__
        raise RuntimeError(
            f"functional_call: Error(s) in reparametrizing for {kind}: the names given do not fit {kind}: {listed}"
        )


_ABSENT: Any = object()


@generator_block
def _swap_tensors(module: Any, values: dict[str, Any], dicts: list[dict]) -> Iterator[None]:
    """Return a block in which a module has other tensors; their final values are written to the dicts."""
    owners = {name: _find_owner(module, name, value) for name, value in values.items()}
    before = [(attributes, last, attributes.get(last, _ABSENT)) for attributes, last in owners.values()]
    for name, (attributes, last) in owners.items():
        attributes[last] = values[name]
    try:
        yield
    finally:
        for given in dicts:
            for name, value in given.items():
                attributes, last = owners[name]
                given[name] = attributes.get(last, value)
        for attributes, last, value in before:
            if value is _ABSENT:
                attributes.pop(last, None)
            else:
                attributes[last] = value


def _find_owner(module: Any, name: str, value: Any) -> tuple[dict[str, Any], str]:
    """Return the owner's attributes and the name for a dotted name."""
    path, _, last = name.rpartition(".")
    if not last:
        raise KeyError(f"functional_call: {name!r} is no name of a tensor")
    owner = module.get_submodule(path)
    for x in (value, getattr(owner, last, None)):
        if x is not None and not isinstance(x, Tensor):
            raise TypeError(
                f"functional_call: {describe(x)} is not an instance of retrograd.Tensor: {name!r} is to be replaced by "
                f"a tensor, but {type(x).__name__} is no tensor"
            )
    return stored_attributes(owner), last


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the parameters and buffers of models of one class by name, stacked along a new first dimension.

    With `functional_call` and `vmap` they run as one model.  The stacked tensors are new leaves; they require gradients
    if those of the models do.

    Raises RuntimeError for no model, and for models that differ in class, mode, names or `requires_grad`.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> models = [nn.Linear(3, 2) for _ in range(5)]
    >>> params, buffers = rg.func.stack_module_state(models)
    >>> def call(params, buffers, x):
    ...     return rg.func.functional_call(models[0], (params, buffers), x)
    >>> rg.func.vmap(call, in_dims=(0, 0, None))(params, buffers, rg.ones(4, 3)).shape
    (5, 4, 2)
    """
    if not hasattr(models, "__iter__"):
        raise TypeError(f"stack_module_state: expected a list of models, got {describe(models)}")
    models = [_check_module("stack_module_state", model) for model in models]
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0")
    if len({type(model) for model in models}) > 1:
        names = sorted({type(model).__name__ for model in models})
        raise RuntimeError(
            f"stack_module_state: Expected all models to be of the same class: the models must be of one class, got "
            f"{', '.join(names)}"
        )
    if len({model.training for model in models}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode: some models are in training "
            "mode and some in evaluation mode"
        )
    return (
        _stack_states([dict(model.named_parameters()) for model in models]),
        _stack_states([dict(model.named_buffers()) for model in models]),
    )


def _stack_states(states: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    for i, state in enumerate(states):
        differing = sorted(state.keys() ^ states[0].keys())
        if differing:
            raise RuntimeError(f"stack_module_state: models 0 and {i} differ in what they have: {', '.join(differing)}")
    return {name: _stack_leaf(name, [state[name] for state in states]) for name in states[0]}


def _stack_leaf(name: str, tensors: list[Tensor]) -> Tensor:
    flags = {t.requires_grad for t in tensors}
    if len(flags) > 1:
        raise RuntimeError(
            f"stack_module_state: Expected {name} from each model to have the same .requires_grad: {name} requires "
            f"gradients in some models and not in others"
        )
    stacked: Tensor = registry["stack"](tensors).detach()
    return stacked.requires_grad_(flags.pop())


suggest_in_module(globals())
