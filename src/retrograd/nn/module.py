"""`Module`: the base class of layers and models."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, ParamSpec, Protocol, TypeVar

from retrograd.autograd import no_grad
from retrograd.core import Tensor, operator_named
from retrograd.core import dtype as dtypes
from retrograd.core.dispatch import detach_all
from retrograd.core.level import graph_level
from retrograd.core.tensor import drop_grads
from retrograd.foundation.describe_value import describe
from retrograd.foundation.lazy_imports import lazy_module
from retrograd.foundation.own_attributes import stored_attributes
from retrograd.nn.backward_hooks import ModuleCallGradients
from retrograd.nn.hooks import (
    BACKWARD,
    BACKWARD_PRE,
    COMPILED,
    FORWARD,
    FORWARD_PRE,
    GLOBAL_HOOKS,
    HOOK_DICTS,
    LOAD,
    LOAD_PRE,
    SAVE,
    SAVE_PRE,
    Hook,
    Hooks,
    RemovableHandle,
    of_kind,
    register_hook,
    run_forward_hooks,
    run_forward_pre_hooks,
    run_hooks_after_exception,
    run_state_hooks,
)
from retrograd.nn.layer_notes import note_layer
from retrograd.nn.module_tree import BUFFER, MODULE, PARAMETER, TRANSIENT, ModuleTree, dict_property
from retrograd.nn.parameter import apply_to_tensor, convert_dtype, convert_floating, convert_format, empty_on, move_to
from retrograd.nn.state_loading import EXTRA_STATE, IncompatibleKeys, empty_state, load_own, load_state
from retrograd.ops.create import zeros
from retrograd.ops.layout import find_device, is_device
from retrograd.ops.to_dtype import target_device, target_dtype

Self = TypeVar("Self", bound="Module")
_detach = operator_named("detach")


P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class Forward(Protocol[P, R]):
    """The type of modules with a `forward` of parameters P and result R, which a call of the module has as well."""

    _call_hooks: Hooks

    def forward(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Compute the result of a call."""

    def _call_with_hooks(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Compute the result of a call, with hooks before and after."""


class Module(ModuleTree):
    """Base of all layers and models: stores parameters, buffers and submodules by name.

    A subclass calls `super().__init__()`, assigns its `Parameter`s and submodules as attributes, and defines `forward`;
    calling the module runs it. Names, order and `state_dict` are PyTorch's, so that states can be exchanged.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> class Scale(nn.Module):
    ...     def __init__(self, size):
    ...         super().__init__()
    ...         self.weight = nn.Parameter(rg.ones(size))
    ...
    ...     def forward(self, x):
    ...         return x * self.weight
    >>> scale = Scale(2)
    >>> [name for name, _ in scale.named_parameters()]
    ['weight']
    >>> scale(rg.tensor([3.0, 4.0])).tolist()
    [3.0, 4.0]
    """

    training: bool
    _version = 1  # of the class's state dicts, which subclasses count

    _is_full_backward_hook: bool | None = None  # whether its backward hooks are full ones; None without hooks
    call_super_init = False  # whether `__init__` passes its arguments to the next class, of several bases

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if (args or kwargs) and not self.call_super_init:
            got = f"got an unexpected keyword argument {next(iter(kwargs))!r}" if kwargs else ""
            got = got or f"takes 1 positional argument but {len(args) + 1} were given"
            raise TypeError(f"{type(self).__name__}.__init__() {got}")
        ModuleTree.__init__(self)
        self.training = True
        self._call_hooks: Hooks = {}
        self._state_hooks: Hooks = {}
        if self.call_super_init:
            super(ModuleTree, self).__init__(*args, **kwargs)

    # ------------------------------------------------------------------------------------------- running it

    def __call__(self: "Forward[P, R]", *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            if self._call_hooks or GLOBAL_HOOKS:
                return self._call_with_hooks(args, kwargs)
            return self.forward(*args, **kwargs)
        except Exception as error:
            note_layer(error, self, Module.__call__.__code__)
            raise

    def _call_with_hooks(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        compiled = of_kind(self._call_hooks, COMPILED)
        return compiled[0].function(*args, **kwargs) if compiled else self._call_impl(*args, **kwargs)

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        return self._run_with_hooks(self.forward, args, kwargs)

    def _run_with_hooks(self, forward: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        hooks, called, gradients = {**GLOBAL_HOOKS, **self._call_hooks}, list[Hook](), None
        try:
            args, kwargs = run_forward_pre_hooks(self, hooks, args, kwargs)
            backward, backward_pre = of_kind(hooks, BACKWARD), of_kind(hooks, BACKWARD_PRE)
            if backward or backward_pre:
                gradients = ModuleCallGradients(self, backward, backward_pre)
                args = gradients.watch_arguments(args)
            output = run_forward_hooks(self, hooks, args, kwargs, forward(*args, **kwargs), called)
        except Exception:
            run_hooks_after_exception(self, hooks, args, kwargs, called)
            raise
        return output if gradients is None else gradients.watch_results(output)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile the calls of this module, hooks included, by `rg.compile` with these arguments.

        The module stays the same object, with the same parameters, and can be saved and copied as before.

        >>> import retrograd as rg
        >>> layer = rg.nn.Linear(2, 1, bias=False)
        >>> _ = rg.nn.init.ones_(layer.weight)
        >>> layer.compile()
        >>> [layer(rg.tensor([1.0, n])).tolist() for n in range(3)]
        [[1.0], [2.0], [3.0]]
        """
        compiled = lazy_module("retrograd.compiler").compile(self._call_impl, *args, **kwargs)
        for key in [key for key, hook in self._call_hooks.items() if hook.kind == COMPILED]:
            del self._call_hooks[key]
        register_hook(self._call_hooks, Hook(compiled, COMPILED))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result of a call; subclasses override it."""
        raise NotImplementedError(
            f"{type(self).__name__} has no forward(); define it to say what calling it does; Module "
            f'[{type(self).__name__}] is missing the required "forward" function'
        )

    # PyTorch's attributes of registered hooks, which programs count and clear.
    _backward_pre_hooks, _backward_hooks, _forward_hooks, _forward_pre_hooks = map(dict_property, list(HOOK_DICTS)[:4])
    _state_dict_hooks, _state_dict_pre_hooks, _load_state_dict_pre_hooks, _load_state_dict_post_hooks = map(
        dict_property, list(HOOK_DICTS)[4:]
    )

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Run `hook(module, args)` before each forward; its result, unless None, replaces the arguments.

        With `with_kwargs` it is `hook(module, args, kwargs)`, and returns None or `(args, kwargs)`.
        """
        return register_hook(self._call_hooks, Hook(hook, FORWARD_PRE, with_kwargs), prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Run `hook(module, args, output)` after each forward; its result, unless None, replaces the output.

        With `with_kwargs` it is `hook(module, args, kwargs, output)`.  With `always_call` it also runs if the call
        raises an exception, with None as the output.
        """
        return register_hook(self._call_hooks, Hook(hook, FORWARD, with_kwargs, always_call), prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Run `hook(module, grad_input, grad_output)` when the gradients of a call's arguments are computed.

        Both are tuples, with None for arguments that are no tensors or need no gradient; keyword arguments have no
        entries. A result other than None replaces `grad_input`.

        >>> import retrograd as rg
        >>> from retrograd import nn
        >>> double = nn.Linear(1, 1, bias=False)
        >>> hook = lambda module, grad_input, grad_output: (grad_input[0] * 10,)
        >>> handle = double.register_full_backward_hook(hook)
        >>> x = rg.ones(1, requires_grad=True)
        >>> double(x).backward()
        >>> bool(x.grad == 10 * double.weight[0])
        True
        """
        return self._register_backward_hook(hook, True, prepend)

    def _register_backward_hook(self, hook: Callable[..., Any], full: bool, prepend: bool = False) -> RemovableHandle:
        """Register a backward hook; RuntimeError if one was registered under the other name, as in PyTorch."""
        if self._is_full_backward_hook is not None and self._is_full_backward_hook is not full:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only "
                "one of them."
            )
        self._is_full_backward_hook = full
        return register_hook(self._call_hooks, Hook(hook, BACKWARD), prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Run `hook(module, grad_output)` before the gradients of a call are computed; a result replaces them."""
        return register_hook(self._call_hooks, Hook(hook, BACKWARD_PRE), prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Run `hook(module, grad_input, grad_output)` in backward: the older name of `register_full_backward_hook`."""
        return self._register_backward_hook(hook, False)

    # --------------------------------------------------------------------------------------------- its state

    def state_dict(
        self, *, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Return all parameters and persistent buffers by dotted name, a shared one under each of its names.

        The result is an OrderedDict, whose `_metadata` has the versions of the modules' classes by dotted name.
        The tensors are detached and share the module's memory; with `keep_vars` they are the module's own tensors.  A
        module that defines `get_extra_state` adds its result as "_extra_state".  With `destination` the entries are
        added to that dict.
        """
        state = empty_state() if destination is None else destination
        if _saves_members_only(type(self)) and not _has_own_saving(self):
            save_state(self, state, prefix, keep_vars)
            return state
        for hook in of_kind(self._state_hooks, SAVE_PRE) if self._state_hooks else ():
            hook.function(self, prefix, keep_vars)
        metadata = {"version": self._version}
        if hasattr(state, "_metadata"):
            state._metadata[prefix.removesuffix(".")] = metadata
        self._save_to_state_dict(state, prefix, keep_vars)
        for name, module in self._members(MODULE):
            if module is not None:
                save_state(module, state, f"{prefix}{name}.", keep_vars)
        return run_state_hooks(self, state, prefix, metadata) if self._state_hooks else state

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Add the module's own tensors and extra state, without those of submodules."""
        found: dict[str, Tensor] = {}
        save_tensors(stored_attributes(self), self._kinds, found, prefix)
        _add_entries(destination, found, keep_vars)
        if self._has_extra_state():
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def _saved_tensors(self) -> dict[str, Tensor]:
        """Return the module's own parameters and the buffers that its state dict has, by their names."""
        found: dict[str, Tensor] = {}
        save_tensors(stored_attributes(self), self._kinds, found, "")
        return found

    def _has_extra_state(self) -> bool:
        """Return whether the class defines `get_extra_state`."""
        return type(self).get_extra_state is not Module.get_extra_state

    def _loads_extra_state(self) -> bool:
        """Return whether the class defines `set_extra_state`, so that a state dict must have an extra state."""
        return type(self).set_extra_state is not Module.set_extra_state

    def get_extra_state(self) -> Any:
        """Return what the state dict stores besides tensors; a subclass that overrides it defines `set_extra_state`."""
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state: Any) -> None:
        """Take what `get_extra_state` returned when the state dict was made."""
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy a state's tensors or arrays into this module's, by name, converted to their dtypes.

        With `assign` the tensors of the state become the module's parameters and buffers, with their own dtypes.
        Raises RuntimeError, before anything changes, that lists all names missing or unexpected (only if `strict`) or
        of another shape.

        >>> from retrograd import nn
        >>> nn.Linear(2, 1).load_state_dict(nn.Linear(2, 1).state_dict()).missing_keys
        []
        """
        return load_state(self, state_dict, strict, assign)

    def _complete_state(self, state_dict: dict[str, Any], prefix: str) -> None:
        """Add to a state, a copy, what states of earlier versions of the class lack, before keys are compared."""

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load the module's own tensors; `load_state_dict` calls a subclass's own method, which may call this one.

        It may change `state_dict`, a copy, and adds the faults that it finds to the lists.
        """
        load_own(self, state_dict, prefix, local_metadata, missing_keys, unexpected_keys, error_msgs)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Run `hook(module, prefix, keep_vars)` before the module's entries of a state dict are made."""
        return register_hook(self._state_hooks, Hook(hook, SAVE_PRE))

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Run `hook(module, state_dict, prefix, local_metadata)` after them; it may change the dict in place."""
        return register_hook(self._state_hooks, Hook(hook, SAVE))

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Run a hook after the entries are made, whose result, unless None, replaces the dict; PyTorch's older name."""
        return register_hook(self._state_hooks, Hook(hook, SAVE, replaces=True))

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Run a hook before a state is loaded, which may change its argument `state_dict`, a copy, in place.

        It is called as `hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
        error_msgs)`; what it adds to the last three lists is reported.
        """
        return register_hook(self._state_hooks, Hook(hook, LOAD_PRE))

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        """Run a hook before a state is loaded, without the module as first argument; PyTorch's older name."""
        called = hook if with_module else partial(_without_module, hook)  # which can be pickled if the hook can
        return register_hook(self._state_hooks, Hook(called, LOAD_PRE))

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Run `hook(module, incompatible_keys)` after a state was loaded; it may change the two lists in place."""
        return register_hook(self._state_hooks, Hook(hook, LOAD))

    # ------------------------------------------------------------------------------------ changes throughout

    def apply(self: Self, fn: "Callable[[Module], None]") -> Self:
        """Call `fn` on every submodule, children first, then on this module; TypeError if it is not callable."""
        if not callable(fn):
            raise TypeError(f"apply: fn must be a function of a module, got {describe(fn)}")
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self: Self, mode: bool = True) -> Self:
        """Put this module and its submodules into training mode, or evaluation mode."""
        if not isinstance(mode, bool):
            raise ValueError(
                f"train: mode must be True or False, got {mode!r}; training mode is expected to be boolean"
            )
        self.training = mode
        for module in self.children():
            module.train(mode)  # which its class may override, to freeze statistics or to merge weights
        return self

    def eval(self: Self) -> Self:
        """Put this module and its submodules into evaluation mode, in which dropout is the identity."""
        return self.train(False)

    def requires_grad_(self: Self, requires_grad: bool = True) -> Self:
        """Set `requires_grad` of all parameters."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or to zero."""
        clear_grads(self.parameters(), set_to_none)

    def to(
        self: Self,
        *target: Any,
        dtype: Any = None,
        device: Any = None,
        tensor: Tensor | None = None,
        non_blocking: bool = False,
        memory_format: Any = None,
    ) -> Self:
        """Convert all floating and complex parameters, their gradients and buffers to a dtype, in place.

        Takes the arguments of `Tensor.to`: a dtype, a device, both, or a tensor whose dtype and device are taken.
        Parameters stay the same objects, so optimizers keep working. Buffers of integers move to the device too. With
        `memory_format` the tensors of 4 dimensions, of 5 for `channels_last_3d`, get that layout.
        """
        given, _ = target_dtype(target, dtype, device, tensor)
        self._apply(lambda own: move_to(own, target_device(own, target, device, tensor)))
        if given is not None:
            converted = zeros(0, dtype=given).dtype
            if not dtypes.is_differentiable(converted):
                raise TypeError(
                    f"to: nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={converted}"
                )
            self._apply(lambda tensor: convert_dtype(tensor, converted))
        if memory_format is not None:
            self._apply(lambda tensor: convert_format(tensor, memory_format))
        return self

    def _apply(self: Self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace parameters, their gradients and buffers by `fn` of them, without recording; a shared tensor once.

        All conversions and moves call it. Submodules whose class overrides it are changed by their own method.
        """
        replaced: dict[int, Tensor] = {}
        pending, visited = [self], {self}
        with no_grad():
            while pending:
                module: Any = pending.pop()
                for name, tensor in module._members(PARAMETER, BUFFER, TRANSIENT):
                    if tensor is not None:
                        if id(tensor) not in replaced:
                            replaced[id(tensor)] = apply_to_tensor(tensor, fn)
                        object.__setattr__(module, name, replaced[id(tensor)])
                for child in module.children() if recurse else ():
                    if child in visited:
                        continue
                    visited.add(child)
                    if type(child)._apply is Module._apply:
                        pending.append(child)
                    else:
                        child._apply(fn)
        return self

    def bfloat16(self: Self) -> Self:
        """Convert to bfloat16; complex parameters and buffers stay as they are.

        >>> import retrograd as rg
        >>> rg.nn.Linear(2, 3).bfloat16().weight.dtype
        dtype(bfloat16)
        """
        return self._apply(lambda tensor: convert_floating(tensor, dtypes.as_dtype("bfloat16")))

    def type(self: Self, dst_type: Any) -> Self:
        """Convert all parameters and buffers, those of integers too, to a dtype, given by name too."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def half(self: Self) -> Self:
        """Convert to float16; complex parameters and buffers stay as they are."""
        return self._apply(lambda tensor: convert_floating(tensor, dtypes.float16))

    def float(self: Self) -> Self:
        """Convert to float32; complex parameters and buffers stay as they are."""
        return self._apply(lambda tensor: convert_floating(tensor, dtypes.float32))

    def double(self: Self) -> Self:
        """Convert to float64; complex parameters and buffers stay as they are."""
        return self._apply(lambda tensor: convert_floating(tensor, dtypes.float64))

    def cpu(self: Self) -> Self:
        """Move all parameters, their gradients and buffers to host memory, in place."""
        return self._apply(lambda own: move_to(own, find_device("cpu")))

    def cuda(self: Self, device: Any = None) -> Self:
        """Move all parameters, their gradients and buffers to a CUDA device, in place; RuntimeError without one."""
        return self._apply(lambda own: move_to(own, find_device(device if is_device(device) else "cuda")))

    def share_memory(self: Self) -> Self:
        """Move parameters and buffers to memory that other processes share, by `Tensor.share_memory_`.

        A process that is started with the module as an argument then trains these parameters in place.
        """
        return self._apply(lambda tensor: tensor.share_memory_())

    def to_empty(self: Self, *, device: Any, recurse: bool = True) -> Self:
        """Give all parameters and buffers memory on a device, in place; their values are undefined.

        It follows the making of a module on the device "meta"; then initialize or load the values.

        >>> import retrograd as rg
        >>> with rg.device("meta"):
        ...     layer = rg.nn.Linear(3, 4)
        >>> layer.to_empty(device="cpu").reset_parameters()
        >>> layer.weight.device
        device(type='cpu')
        """
        return self._apply(lambda own: empty_on(own, find_device(device)), recurse)

    # ------------------------------------------------------------------------------------------- showing it

    def extra_repr(self) -> str:
        """Return the text in the parentheses of the module's `repr`; subclasses override it."""
        return ""

    def _repr_lines(self) -> Iterator[tuple[str, str]]:
        """Return labels and texts of the lines below the first in `repr`."""
        return ((name, repr(module)) for name, module in self._members(MODULE))

    def _get_name(self) -> str:
        """Return the name of the module in `repr`."""
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr().replace("\n", "\n  ")
        lines = [f"({label}): {text}".replace("\n", "\n  ") for label, text in self._repr_lines()]
        if not lines and "\n" not in extra:
            return f"{self._get_name()}({extra})"
        body = "\n  ".join([extra, *lines] if extra else lines)
        return f"{self._get_name()}(\n  {body}\n)"


def _without_module(hook: Callable[..., Any], module: Module, *args: Any) -> None:
    """Call a hook that does not take the module."""
    hook(*args)


def _saves_members_only(kind: type[Module]) -> bool:
    """Return whether the modules of a class save their own tensors only: it overrides no method of state dicts."""
    return (
        kind.state_dict is Module.state_dict
        and kind._save_to_state_dict is Module._save_to_state_dict
        and kind.get_extra_state is Module.get_extra_state
    )


def _has_own_saving(module: Module) -> bool:
    """Return whether a module has hooks of state dicts, or a method of its own for them."""
    values = stored_attributes(module)
    return bool(module._state_hooks) or "state_dict" in values or "_save_to_state_dict" in values


def save_state(module: Module, state: dict[str, Any], prefix: str, keep_vars: bool) -> None:
    """Add the entries of a module and of its submodules to a state dict; as `state_dict` of each, where overridden."""
    found: dict[str, Tensor] = {}  # the entries that are still to be detached and added, all at once
    known: dict[type[Module], int | None] = {}  # the versions of the classes met; None if they save more than members
    pending = [(module, prefix)]
    versions = getattr(state, "_metadata", {})
    while pending:
        module, prefix = pending.pop()
        values, kind = stored_attributes(module), type(module)
        if kind not in known:
            known[kind] = kind._version if _saves_members_only(kind) else None
        version = known[kind]
        # `_has_own_saving`, whose call would be a tenth of the time.
        if version is None or module._state_hooks or "state_dict" in values or "_save_to_state_dict" in values:
            _add_entries(state, found, keep_vars)
            found = {}
            module.state_dict(destination=state, prefix=prefix, keep_vars=keep_vars)
            continue
        versions[prefix[:-1]] = {"version": version}
        members = values["_kinds"]
        if members and (modules := save_tensors(values, members, found, prefix)):
            pending += modules[::-1]
    _add_entries(state, found, keep_vars)


def _add_entries(state: dict[str, Any], found: dict[str, Tensor], keep_vars: bool) -> None:
    """Add entries to a state dict, detached unless `keep_vars`."""
    state.update(found if keep_vars else zip(found, detach_all(_detach, found.values()), strict=True))


def save_tensors(
    values: dict[str, Any], members: dict[str, str], found: dict[str, Tensor], prefix: str
) -> list[tuple[Any, str]] | None:
    """Add a module's own parameters and persistent buffers to `found`; return its submodules, or None.

    `values` are the module's attributes, `members` the kinds of its members. Each submodule comes with the prefix of
    its names.
    """
    modules: list[tuple[Any, str]] | None = None
    buffers: list[str] | None = None
    for name, kind in members.items():
        value = values[name]
        if value is None:
            continue
        if kind == PARAMETER:
            found[prefix + name] = value
        elif kind == MODULE:
            if modules is None:
                modules = []
            modules.append((value, f"{prefix}{name}."))
        elif kind == BUFFER:
            if buffers is None:
                buffers = []
            buffers.append(name)
    for name in buffers or ():  # after the parameters, as in PyTorch
        found[prefix + name] = values[name]
    return modules


def clear_grads(parameters: Any, set_to_none: bool) -> None:
    """Set the gradients of parameters to None, or existing ones to zero."""
    if set_to_none:
        parameters = drop_grads(parameters) if graph_level() is None else parameters
        for parameter in parameters:
            parameter.grad = None
        return
    for parameter in parameters:
        grad = parameter.grad
        if grad is not None:
            if grad.requires_grad:
                grad = parameter.grad = _detach(grad)
            grad.zero_()
