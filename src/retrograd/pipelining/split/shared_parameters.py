"""Parameters that several stages use: sent by an owner, or replicated with summed gradients."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum

from retrograd.core import Tensor
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.fx import GraphModule, Node
from retrograd.nn import Module, Parameter


class MultiUseParameterConfig(Enum):
    """How to treat a parameter that several stages use.

    TRANSMIT: the first of the stages owns it, sends its value to the others and receives its gradient.
    REPLICATE: each stage has it.  In one process that is one tensor, which accumulates the gradients; stages in
    several processes have copies, see `sum_replicated_gradients`.
    """

    TRANSMIT = "transmit"
    REPLICATE = "replicate"


StagesByTensor = Mapping[str, Collection[int]]  # the stages that have a tensor, by its qualified name
MultiUseParamSpec = MultiUseParameterConfig | Mapping[str, MultiUseParameterConfig]


def owners(captured: GraphModule, stage_of: Mapping[Node, int], spec: MultiUseParamSpec | None) -> dict[Node, int]:
    """Return the transmitted parameters, with the stage that owns each.

    spec: for all parameters, or by qualified name, under any of a parameter's names; others are
    replicated.  Raises ValueError for unknown names and for another kind of spec.
    """
    transmitted = _transmitted_parameters(captured, spec)
    found = {}
    for node in captured.graph.find_nodes(op="get_attr"):
        users = {stage_of[user] for user in node.users if user in stage_of}
        users |= {max(stage_of.values())} if any(user.op == "output" for user in node.users) else set()
        if len(users) > 1 and any(_value(captured, node) is parameter for parameter in transmitted):
            found[node] = min(users)
    return found


def owners_elsewhere(
    captured: GraphModule, stage_of: Mapping[Node, int], tensor_stages: StagesByTensor
) -> dict[Node, int]:
    """Return the parameters and buffers that stages use without having them in other captures, with their owners.

    tensor_stages: the stages that have each of them there, by qualified name.  The owner is the last one before the
    users.
    """
    found = {}
    for node in captured.graph.find_nodes(op="get_attr"):
        known = tensor_stages.get(str(node.target), ())
        users = {stage_of[user] for user in node.users if user in stage_of}
        before = [stage for stage in known if stage <= min(users, default=0)]
        if before and not users.issubset(known):
            found[node] = max(before)
    return found


def _transmitted_parameters(captured: GraphModule, spec: MultiUseParamSpec | None) -> list[Parameter]:
    named = dict(captured.named_parameters(remove_duplicate=False))
    configs = spec if isinstance(spec, Mapping) else dict.fromkeys(named, spec or MultiUseParameterConfig.REPLICATE)
    for name, config in configs.items():
        if name not in named:
            raise ValueError(
                f"multi_use_param_spec: the model has no parameter {name!r}; it has {', '.join(map(repr, named))}"
            )
        if not isinstance(config, MultiUseParameterConfig):
            raise ValueError(f"multi_use_param_spec: expected a MultiUseParameterConfig for {name!r}, got {config!r}")
    return [named[name] for name, config in configs.items() if config is MultiUseParameterConfig.TRANSMIT]


def _value(module: Module, node: Node) -> object:
    path, _, name = node.target.rpartition(".")
    return getattr(module.get_submodule(path), name)


def replicated(modules: Sequence[Module]) -> list[dict[int, str]]:
    """Return the parameters that several stages have: for each, its qualified name by stage."""
    names_by_stage: dict[int, dict[int, str]] = {}
    for stage, module in enumerate(modules):
        for name, parameter in module.named_parameters():
            names_by_stage.setdefault(id(parameter), {})[stage] = name
    return [by_stage for by_stage in names_by_stage.values() if len(by_stage) > 1]


def sum_replicated_gradients(shared: Iterable[Mapping[int, str]], modules: Mapping[int, Module]) -> None:
    """Set the gradient of all copies of a parameter to the sum over its stages, in order.

    shared: `Pipe.replicated_params`; modules: stages by number.  Call it once, after the backward pass and before the
    optimizer; it has no effect on parameters that stages share instead of having copies.

    Raises ValueError for a stage without a module, before any gradient changes.

    >>> import pickle
    >>> import retrograd as rg
    >>> layer = rg.nn.Linear(2, 1, bias=False)
    >>> copies = {stage: pickle.loads(pickle.dumps(layer)) for stage in (0, 1)}
    >>> copies[0](rg.tensor([1.0, 2.0])).backward(rg.ones(1))
    >>> copies[1](rg.tensor([4.0, 8.0])).backward(rg.ones(1))
    >>> sum_replicated_gradients([{0: "weight", 1: "weight"}], copies)
    >>> copies[0].weight.grad.tolist(), copies[1].weight.grad.tolist()
    ([[5.0, 10.0]], [[5.0, 10.0]])
    """
    shared = list(shared)
    missing = sorted({stage for by_stage in shared for stage in by_stage if stage not in modules})
    if missing:
        raise ValueError(
            f"sum_replicated_gradients: no module is given for stages {missing}; there are {list(modules)}"
        )
    for by_stage in shared:
        copies = {id(p): p for p in (modules[stage].get_parameter(by_stage[stage]) for stage in sorted(by_stage))}
        gradients = [copy.grad for copy in copies.values() if copy.grad is not None]
        if len(copies) > 1 and gradients:
            total: Tensor = sum(gradients[1:], start=gradients[0])
            for copy in copies.values():
                copy.grad = total.clone()


suggest_in_module(globals())
