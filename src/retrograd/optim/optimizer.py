"""`Optimizer`: parameters in groups, each group with settings, and a state for each parameter."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any, ClassVar, TypeAlias

from retrograd.autograd import enable_grad, no_grad
from retrograd.core import Tensor, operator_named
from retrograd.foundation.describe_value import describe
from retrograd.foundation.lazy_imports import lazy_names
from retrograd.foundation.suggestions import suggest_entry
from retrograd.nn.hooks import LOAD, LOAD_PRE, SAVE, SAVE_PRE
from retrograd.nn.module import clear_grads
from retrograd.nn.parameter_lists import list_parameters
from retrograd.nn.tensor_part import TensorPart, local_tensor
from retrograd.ops.layout import has_sparse_layout
from retrograd.optim.foreach import Batch, split_batches, update_batch
from retrograd.optim.state_dict_hooks import StateDictHooks
from retrograd.optim.state_entries import Entry, load_entries, save_scalars
from retrograd.optim.step_hooks import StepHooks
from retrograd.optim.step_hooks import register_optimizer_step_post_hook as register_optimizer_step_post_hook
from retrograd.optim.step_hooks import register_optimizer_step_pre_hook as register_optimizer_step_pre_hook

_view_as_complex = operator_named("view_as_complex")
_view_as_real = operator_named("view_as_real")
_zeros_like = operator_named("zeros_like")

Group = dict[str, Any]
State = dict[str, Any]
Update = Callable[[Any, Any, State, Group], None]
ParamsT: TypeAlias = Iterable[Tensor] | Iterable[Group] | Iterable[tuple[str, Tensor]]


class _RequiredParameter:
    """The class of `required`."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()  # as a default: a setting that each group must have


class Optimizer(StepHooks, StateDictHooks):
    """The base of all optimizers.

    `params` are tensors, (name, tensor) pairs, or dicts: groups, with their tensors as "params" and settings
    that differ from `defaults`. A subclass passes its defaults, and defines `check`, which refuses bad
    settings, and `update`, which takes one step for one parameter with a gradient. `entries` declares what its states
    contain, which `load_state_dict` checks. With "sparse" in `takes`, `update_sparse` takes a step with a sparse
    gradient, as `Embedding(sparse=True)` has one. With `steps_on_parts`, `update` gets the real and imaginary parts of
    a complex parameter, of its gradient and of its state, along a last dimension of size 2.

    >>> import retrograd as rg
    >>> from retrograd.optim import Optimizer
    >>> class Descent(Optimizer):
    ...     def __init__(self, params, lr):
    ...         super().__init__(params, {"lr": lr})
    ...
    ...     def update(self, param, grad, state, group):
    ...         param.sub_(grad, alpha=group["lr"])
    >>> x = rg.tensor([1.0], requires_grad=True)
    >>> optimizer = Descent([x], lr=0.25)
    >>> x.square().sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.5000], requires_grad=True)
    """

    entries: ClassVar[Mapping[str, Entry]] = {}
    takes: ClassVar[tuple[str, ...]] = ("dense",)  # the kinds of gradients that `step` takes
    steps_on_parts: ClassVar[bool] = False

    def __init__(self, params: Iterable[Any], defaults: Mapping[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params must be an iterable of tensors or dicts, got one Tensor; put it into a list; params argument "
                "given to the optimizer should be an iterable of Tensors or dicts"
            )
        self.defaults = dict(defaults)
        self.param_groups: list[Group] = []
        self.state: defaultdict[Tensor, State] = defaultdict(dict)  # so that a step may begin with `self.state[p]`
        groups = list_parameters(type(self).__name__, params)
        if not groups:
            raise ValueError(
                f"{type(self).__name__} got an empty list of parameters; optimizer got an empty parameter list"
            )
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def update(self, param: Any, grad: Any, state: State, group: Group) -> None:
        """Update one parameter in place, given its gradient; runs under `no_grad`."""
        raise NotImplementedError(f"{type(self).__name__} has no update(); define it to say what a step does")

    def update_sparse(self, param: Any, grad: Any, state: State, group: Group) -> None:
        """Update one parameter in place, given its gradient as a sparse tensor; runs under `no_grad`."""
        raise NotImplementedError(f"{type(self).__name__} has no update_sparse()")

    def check(self, group: Group) -> None:
        """Raise ValueError for settings out of range; subclasses define it."""

    def add_param_group(self, param_group: Group) -> None:
        """Add a group: {"params": tensors, and settings that differ from the defaults}.

        Raises TypeError or ValueError, and adds nothing, for a non-tensor, a non-leaf, a duplicate, or a
        setting out of range or missing.
        """
        if not isinstance(param_group, dict) or "params" not in param_group:
            raise TypeError(f"a parameter group must be a dict with 'params', got {describe(param_group)}")
        names, params = _split_names(param_group["params"])
        group = {**self.defaults, **param_group, "params": params, **names}
        for name, value in group.items():
            if value is required:
                raise ValueError(
                    f"{type(self).__name__}: parameter group didn't specify a value of required optimization parameter "
                    f"{name}"
                )
        self._check_params(params)
        self._check_names(group)
        self.check(group)
        self.param_groups.append(group)

    def _check_names(self, group: Group) -> None:
        """Raise ValueError if only one of the group and the earlier ones names its parameters."""
        if self.param_groups and ("param_names" in group) != ("param_names" in self.param_groups[0]):
            given = "with names" if "param_names" in group else "without names"
            raise ValueError(
                f"{type(self).__name__}: all optimizer param groups should be with/without names. cannot add param "
                f"group {given} to the optimizer"
            )

    def _check_params(self, params: list[Any]) -> None:
        known = {id(p) for group in self.param_groups for p in group["params"]}
        for p in params:
            if not isinstance(p, Tensor):
                hint = "; join the lists: [*first, *second]" if isinstance(p, list | tuple | Iterator) else ""
                hint = "; pass its .parameters()" if hasattr(p, "parameters") else hint
                raise TypeError(
                    f"{type(self).__name__}: expected tensors, got {type(p).__name__}; optimizer can only optimize "
                    f"Tensors, but one of the params is {type(p).__name__}{hint}"
                )
            if not p.is_leaf:
                raise ValueError(
                    f"{type(self).__name__}: can't optimize a tensor that an operator made: {p.aval}; can't optimize a "
                    "non-leaf Tensor"
                )
            if id(p) in known:
                raise ValueError(
                    f"{type(self).__name__}: a parameter, {p.aval}, is listed more than once; some parameters appear "
                    "in more than one parameter group"
                )
            known.add(id(p))

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters, or set them to zero."""
        for group in self.param_groups:
            clear_grads(group["params"], set_to_none)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; return the loss if a closure computes it first.

        Raises RuntimeError, and updates nothing, if a gradient is sparse, or dense, and the optimizer does not take it;
        and NotImplementedError for a class that defines no update.
        """
        kind = type(self)
        if kind.update is Optimizer.update and kind.update_sparse is Optimizer.update_sparse:
            raise NotImplementedError(f"{kind.__name__} has no update(); define it, or step(), to say what a step does")
        loss = None
        if closure is not None:
            check_closure(self, closure)
            with enable_grad():
                loss = closure()
        with no_grad():
            batches, planned = self._planned_updates()
            for batch, group in batches:
                update_batch(self, batch, group)
            for update, p, grad, group in planned:
                state = self.state.setdefault(p, {})
                if isinstance(p, TensorPart):
                    update_part(update, p, grad, state, group)
                else:
                    update(p, grad, state, group)
        return loss

    def _planned_updates(self) -> tuple[list[tuple[Batch, Group]], list[tuple[Update, Any, Any, Group]]]:
        """Return (batch, group) for parameters that step together; (function, parameter, gradient, group) for others.

        Parameters without a gradient are left out; the gradients are checked.
        """
        planned: list[tuple[Update, Any, Any, Group]] = []
        together: list[tuple[Batch, Group]] = []
        for group in self.param_groups:
            batches, others = split_batches(self, group)
            together += [(batch, group) for batch in batches]
            for p in others:
                grad = p.grad
                if grad is not None:
                    is_sparse = has_sparse_layout(grad)
                    if is_sparse or "dense" not in self.takes:
                        self._check_kind(is_sparse, group)
                    planned.append((self._update_for(p, is_sparse), p, grad, group))
        return together, planned

    def _update_for(self, param: Any, is_sparse: bool) -> Update:
        """Return the function that takes a step for a parameter."""
        if is_sparse:
            return self.update_sparse
        return self._update_parts if self.steps_on_parts and param.dtype.kind == "c" else self.update

    def _update_parts(self, param: Any, grad: Any, state: State, group: Group) -> None:
        """Update a complex parameter and its complex states by a step of their real and imaginary parts."""
        parts = {name: _view_as_real(v) if _is_like(v, param.shape) else v for name, v in state.items()}
        pairs = _view_as_real(param)
        self.update(pairs, _view_as_real(grad), parts, group)
        for name, v in parts.items():
            state[name] = _view_as_complex(v) if _is_like(v, pairs.shape) else v

    def _check_kind(self, is_sparse: bool, group: Group) -> None:
        """Raise RuntimeError for a kind of gradient that the optimizer, or the group's weight decay, does not take."""
        name = type(self).__name__
        if not is_sparse:
            raise RuntimeError(f"{name} does not support dense gradients, please consider Adam instead")
        if "sparse" not in self.takes:
            raise RuntimeError(
                f"{name} does not support sparse gradients, please consider SparseAdam instead; SGD and Adagrad take "
                f"them too"
            )
        if group.get("weight_decay"):
            raise RuntimeError(
                f"{name}: weight_decay option is not compatible with sparse gradients, since it changes every element, "
                f"got weight_decay={group['weight_decay']} (add(sparse, dense) is not supported)"
            )

    # ---------------------------------------------------------------------------------------------- its state

    def state_dict(self) -> dict[str, Any]:
        """Return settings and states as plain data: parameters are indices, in the order of the groups.

        {"state": {0: {"exp_avg": Tensor, ...}, ...}, "param_groups": [{"lr": ..., "params": [0, 1]}, ...]};
        the tensors are those of the optimizer, which later steps write to, not copies; only a number of steps, which
        `self.state` has as a number, becomes a new one.  Those with the shape of a parameter that is a part of a whole
        tensor, as by `fully_shard`, are parts too.  Entries of `self.state` whose keys are names keep them.
        """
        self._run_state_hooks(SAVE_PRE)
        number = {id(p): i for i, p in enumerate(self._params())}
        found = {
            "state": {
                number[id(p)] if isinstance(p, Tensor) else p: _saved_state(p, state, self.entries)
                for p, state in self.state.items()
                if isinstance(p, str) or state
            },
            "param_groups": [
                {**_settings_of(group), "params": [number[id(p)] for p in group["params"]]}
                for group in self.param_groups
            ],
        }
        return self._state_dict_by_hooks(SAVE, found)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load settings and states of a `state_dict`; floating tensors are cast to their parameter's dtype.

        Raises TypeError or ValueError, and changes nothing, if the groups have other sizes or settings out of range, or
        if an entry of a state is not of the kind or shape that `entries` declares. Entries may be arrays.
        """
        if self._hooks_of_state(LOAD_PRE):
            state_dict = self._state_dict_by_hooks(LOAD_PRE, dict(state_dict))
        saved_states, saved = self._check_groups(state_dict)
        numbers = [number for group in saved for number in group["params"]]
        others: Any = {key: deepcopy(value) for key, value in saved_states.items() if isinstance(key, str)}
        states = self._load_states(saved_states, numbers, self.entries)
        groups = [
            {**group, **deepcopy({**other, "params": None}), "params": group["params"]}
            for group, other in zip(self.param_groups, saved, strict=True)
        ]
        for group in groups:
            self.check(group)
        self.state = defaultdict(dict, states | others)
        for group, new in zip(self.param_groups, groups, strict=True):
            group.update(new)
        self._run_state_hooks(LOAD)

    def _check_groups(self, state_dict: Mapping[str, Any]) -> tuple[Mapping[int, Any], list[Group]]:
        """Return the states and groups of a `state_dict`.

        Raises TypeError or ValueError if its groups have other sizes, or states are of parameters that are in none.
        """
        saved_states, saved = check_state_dict("load_state_dict", state_dict)
        sizes = [len(group["params"]) for group in self.param_groups]
        given = [len(group["params"]) for group in saved]
        if sizes != given:
            words = (
                "contains a parameter group that doesn't match the size of optimizer's group"
                if len(sizes) == len(given)
                else "has a different number of parameter groups"
            )
            raise ValueError(
                f"load_state_dict: loaded state dict {words}: this optimizer's groups have {sizes} parameters, the "
                f"state's {given}"
            )
        numbers = [number for group in saved for number in group["params"]]
        unknown = [key for key in saved_states if key not in numbers and not isinstance(key, str)]
        if unknown:
            raise ValueError(f"load_state_dict: there are states of parameters {unknown}, which are in no group")
        return saved_states, saved

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Set the attributes of an unpickled optimizer; subclasses may add settings that were not there before."""
        self.__dict__.update(state)

    def _load_states(
        self, saved: Mapping[int, Any], numbers: list[int], entries: Mapping[str, Entry]
    ) -> dict[Tensor, State]:
        """Return the states by parameter, given the numbers of the parameters in the saved groups."""
        names = [name for group in self.param_groups for name in _name_suffixes(group)]
        sharing = self._params_with_shared_state()
        params = zip(numbers, names, self._params(), strict=True)
        return {
            param: _loaded(f"parameter {number}{name}", saved[number], entries, param, sharing)
            for number, name, param in params
            if number in saved
        }

    def _params_with_shared_state(self) -> list[Any]:
        """Return the parameters that have one state together: none, unless a subclass defines it."""
        return []

    def _params(self) -> list[Any]:
        return [p for group in self.param_groups for p in group["params"]]

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines += ["", f"Parameter Group {number}"] if number else [f"Parameter Group {number}"]
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])


def _is_like(value: Any, shape: tuple[int, ...]) -> bool:
    """Return whether an entry of a state has an element for each one of its parameter."""
    return isinstance(value, Tensor) and value.shape == shape


def _settings_of(group: Group) -> Group:
    """Return a group without its parameters."""
    return {name: value for name, value in group.items() if name != "params"}


def _saved_state(param: Any, state: Any, entries: Mapping[str, Entry]) -> Any:
    """Return the state of a parameter, or another value; tensors of its shape are parts of whole ones if it is."""
    if not isinstance(param, Tensor):
        return state
    saved = save_scalars(state, entries)
    if not isinstance(param, TensorPart):
        return saved
    return _as_parts(param, saved)


def _loaded(
    where: str, saved: Mapping[str, Any], entries: Mapping[str, Entry], param: Any, sharing: list[Any]
) -> State:
    """Return the state of a parameter to load; that of a divided one from whole tensors, or any of their parts."""
    if not isinstance(param, TensorPart) or not isinstance(saved, Mapping):
        return load_entries(where, saved, entries, sharing or [param])
    local = {name: param.same_part(x) if isinstance(x, Tensor) and x.ndim else x for name, x in saved.items()}
    return _as_parts(param, load_entries(where, local, entries, [param.local_tensor()]))


def _as_parts(param: TensorPart, state: State) -> State:
    """Return a state in which the tensors with the shape of this rank's part are parts of whole ones."""
    shape = param.local_tensor().shape
    return {
        name: param.as_part(value) if _is_like(value, shape) and not isinstance(value, TensorPart) else value
        for name, value in state.items()
    }


def _split_names(params: Any) -> tuple[dict[str, list[str]], list[Any]]:
    """Return the names of a group's parameters as its setting, if they have any, and the parameters.

    They are one tensor, several, or (name, tensor) pairs as from `named_parameters`.
    """
    if isinstance(params, set):
        raise TypeError(
            "params must be in order; got a set; optimizer parameters need to be organized in ordered collections, "
            "but the ordering of tensors in sets will change between runs"
        )
    listed = [params] if isinstance(params, Tensor) else list(params)
    pairs = [p for p in listed if isinstance(p, tuple) and len(p) == 2]
    if not pairs:
        return {}, listed
    if len(pairs) < len(listed):
        raise ValueError(
            "params: all optimizer params should be with/without names. Some param names are missing: got "
            f"{len(pairs)} for {len(listed)} parameters"
        )
    return {"param_names": [name for name, _ in pairs]}, [p for _, p in pairs]


def _name_suffixes(group: Group) -> list[str]:
    """Return the parts of messages with the parameters' names, empty for those that have none."""
    names = group.get("param_names", ())
    known = len(names) == len(group["params"])
    return [f" ({name!r})" for name in names] if known else [""] * len(group["params"])


def check_state_dict(name: str, state_dict: Mapping[str, Any]) -> tuple[Mapping[int, Any], list[Group]]:
    """Return the states and groups of a `state_dict`, after checking its structure; `name` is used in errors."""
    try:
        states, groups = state_dict["state"], state_dict["param_groups"]
        fits = isinstance(states, Mapping) and all(isinstance(group["params"], list | tuple) for group in groups)
    except (KeyError, TypeError, IndexError):
        fits = False
    if not fits:
        given, hint = type(state_dict).__name__, ""
        if isinstance(state_dict, Mapping):
            entry = suggest_entry(state_dict, lambda entry: "param_groups" in entry)
            given, hint = describe(list(state_dict)), entry and f". {entry}"
        raise TypeError(f"{name}: expected a mapping with 'state' and 'param_groups', got {given}{hint}")
    return states, groups


def check_closure(optimizer: Optimizer, closure: Any) -> None:
    """Raise TypeError for a closure that is no function, as a loss in its place."""
    if not callable(closure):
        kind = type(optimizer).__name__
        raise TypeError(f"{kind}.step: closure must be a function that returns the loss, got {describe(closure)}")


def update_part(update: Update, param: TensorPart, grad: Any, state: State, group: Group) -> None:
    """Update this rank's part of a parameter; tensors of its shape in the state are parts of whole ones too."""
    given = {name: local_tensor(value) for name, value in state.items()}
    local, updated = param.local_tensor(), dict(given)
    update(local, local_tensor(grad), updated, group)
    for name, value in updated.items():
        if value is not given.get(name):
            state[name] = param.as_part(value) if _is_like(value, local.shape) else value


def count_step(param: Any, state: State, *means: str) -> None:
    """Count a step, and initialize the running means that the state lacks with 0."""
    state["step"] = state.get("step", 0) + 1
    for name in means:
        if name not in state:
            state[name] = _zeros_like(param)


def descent_gradient(param: Any, grad: Any, group: Group) -> Any:
    """Return the gradient to descend: negated to `maximize`, plus weight_decay · p.

    In a group with `decoupled_weight_decay` the decay is applied to p directly instead.
    """
    g = -grad if group["maximize"] else grad
    decay = group["weight_decay"]
    if group.get("decoupled_weight_decay"):
        if decay:
            param.mul_(1 - group["lr"] * decay)
        return g
    return g + param * decay if decay else g


__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "_default_to_fused_or_foreach": "retrograd.optim.step_helpers",
        "_disable_dynamo_if_unsupported": "retrograd.optim.step_helpers",
        "_dispatch_sqrt": "retrograd.optim.step_helpers",
        "_get_capturable_supported_devices": "retrograd.optim.step_helpers",
        "_get_scalar_dtype": "retrograd.optim.step_helpers",
        "_get_value": "retrograd.optim.step_helpers",
        "_stack_if_compiling": "retrograd.optim.step_helpers",
        "_to_scalar": "retrograd.optim.step_helpers",
        "_use_grad_for_differentiable": "retrograd.optim.step_helpers",
    },
)
