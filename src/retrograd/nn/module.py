"""`Module`: the base class of layers and models."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ParamSpec, Protocol, TypeVar

from retrograd.core import Tensor, operator_named
from retrograd.core import dtype as dtypes
from retrograd.nn.hooks import Hook, Hooks, RemovableHandle, register_hook, run_forward_hooks, run_forward_pre_hooks
from retrograd.nn.parameter import Buffer, Parameter, convert_dtype
from retrograd.nn.state_loading import IncompatibleKeys, load_state
from retrograd.ops.create import zeros
from retrograd.ops.layout import check_device, is_device

PARAMETER, BUFFER, TRANSIENT, MODULE = "parameter", "buffer", "transient buffer", "module"
_EXPECTED = {
    PARAMETER: (Parameter, "a Parameter"),
    BUFFER: (Tensor, "a Tensor"),
    TRANSIENT: (Tensor, "a Tensor"),
}

Self = TypeVar("Self", bound="Module")
_detach = operator_named("detach")


P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class Forward(Protocol[P, R]):
    """The type of modules with a `forward` of parameters P and result R, which a call of the module has as well."""

    _forward_pre_hooks: Hooks
    _forward_hooks: Hooks

    def forward(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Compute the result of a call."""

    def _call_with_hooks(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Compute the result of a call, with hooks before and after."""


class Module:
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

    def __init__(self) -> None:
        # Registered values are stored in the instance's dictionary, so that attribute access is fast; this lists their
        # names in order.
        object.__setattr__(self, "_kinds", {})
        self.training = True
        self._forward_pre_hooks: Hooks = {}
        self._forward_hooks: Hooks = {}

    # ------------------------------------------------------------------------------------------- running it

    def __call__(self: "Forward[P, R]", *args: P.args, **kwargs: P.kwargs) -> R:
        if self._forward_pre_hooks or self._forward_hooks:
            return self._call_with_hooks(args, kwargs)
        return self.forward(*args, **kwargs)

    def _call_with_hooks(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        args, kwargs = run_forward_pre_hooks(self, self._forward_pre_hooks, args, kwargs)
        output = self.forward(*args, **kwargs)
        return run_forward_hooks(self, self._forward_hooks, args, kwargs, output)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the result of a call; subclasses override it."""
        raise NotImplementedError(f"{type(self).__name__} has no forward(); define it to say what calling it does")

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Run `hook(module, args)` before each forward; its result, unless None, replaces the arguments.

        With `with_kwargs` it is `hook(module, args, kwargs)`, and returns None or `(args, kwargs)`.
        """
        return register_hook(self._forward_pre_hooks, Hook(hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Run `hook(module, args, output)` after each forward; its result, unless None, replaces the output.

        With `with_kwargs` it is `hook(module, args, kwargs, output)`.
        """
        return register_hook(self._forward_hooks, Hook(hook, with_kwargs), prepend)

    # ----------------------------------------------------------------------------------------- registration

    def __setattr__(self, name: str, value: Any) -> None:
        kind = _kind_of(value)
        kinds: Any = self.__dict__.get("_kinds")
        if kinds is None:
            if kind is not None:
                raise AttributeError(f"cannot assign {name!r}: call super().__init__() of the module first")
        elif kind is None:
            kind = self._kind_of_registered(name, value)
        object.__setattr__(self, name, value)
        if kind is not None and name in self.__dict__ and kinds.get(name) != kind:
            kinds.pop(name, None)
            kinds[name] = kind

    def _kind_of_registered(self, name: str, value: Any) -> str | None:
        """Return the kind under which a name stays registered when a value of no kind is assigned to it."""
        kind = self._kinds.get(name)
        expected, words = _EXPECTED.get(kind, (Module, "a Module"))
        if kind is not None and value is not None and not isinstance(value, expected):
            raise TypeError(
                f"cannot assign {type(value).__name__} to {type(self).__name__}.{name}, which is a {kind}: "
                f"expected {words} or None"
            )
        return kind

    def __getattr__(self, name: str) -> Any:
        # Python calls this only if the attribute does not exist.
        if "_kinds" not in self.__dict__ and not name.startswith("__"):
            raise AttributeError(f"{type(self).__name__} has no {name!r}: its __init__ must call super().__init__()")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        self._kinds.pop(name, None)

    def _register(self, kind: str, name: str, value: Any) -> None:
        expected, words = _EXPECTED.get(kind, (Module, "a Module"))
        if not isinstance(name, str) or not name or "." in name:
            raise KeyError(f"the name of a {kind} must be a string, not empty and without '.', got {name!r}")
        if "_kinds" not in self.__dict__:
            raise AttributeError(f"cannot register {name!r}: call super().__init__() of the module first")
        if name not in self._kinds and hasattr(self, name):
            raise KeyError(f"{type(self).__name__} has an attribute {name!r} already")
        if value is not None and not isinstance(value, expected):
            raise TypeError(f"{name!r} is to be a {kind}: expected {words} or None, got {type(value).__name__}")
        self._kinds.pop(name, None)
        self._kinds[name] = kind
        object.__setattr__(self, name, value)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Register a parameter by name; None reserves the name of an absent one."""
        self._register(PARAMETER, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register a tensor that is not trained; only a persistent one is part of the state dict."""
        self._register(BUFFER if persistent else TRANSIENT, name, tensor)

    def add_module(self, name: str, module: "Module | None") -> None:
        """Register a submodule by name."""
        self._register(MODULE, name, module)

    register_module = add_module

    def _members(self, *kinds: str) -> Iterator[tuple[str, Any]]:
        """Return this module's own members of these kinds, in order; None for absent ones."""
        values = self.__dict__
        return ((name, values[name]) for name, kind in list(self._kinds.items()) if kind in kinds)

    # ----------------------------------------------------------------------------------------- looking at it

    def named_children(self) -> "Iterator[tuple[str, Module]]":
        """Iterate over names and direct submodules, each once."""
        visited = set()
        for name, module in self._members(MODULE):
            if module is not None and module not in visited:
                visited.add(module)
                yield name, module

    def children(self) -> "Iterator[Module]":
        """Iterate over the direct submodules, each once."""
        return (module for _, module in self.named_children())

    def named_modules(
        self, memo: "set[Module] | None" = None, prefix: str = "", remove_duplicate: bool = True
    ) -> "Iterator[tuple[str, Module]]":
        """Iterate over dotted names and modules, this one first, parents first; each once, if `remove_duplicate`."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._members(MODULE):
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self) -> "Iterator[Module]":
        """Iterate over this module and its submodules, each once."""
        return (module for _, module in self.named_modules())

    def _named_tensors(
        self, kinds: tuple[str, ...], prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        visited = set()
        owners = self.named_modules(None, prefix, remove_duplicate) if recurse else [(prefix, self)]
        for path, module in owners:
            for name, tensor in module._members(*kinds):
                if tensor is None or id(tensor) in visited:
                    continue
                if remove_duplicate:
                    visited.add(id(tensor))
                yield f"{path}.{name}" if path else name, tensor

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Iterate over dotted names and parameters; a shared one under its first name only, if `remove_duplicate`."""
        return self._named_tensors((PARAMETER,), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Iterate over the parameters, each once: of this module, and of its submodules if `recurse`."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Iterate over dotted names and buffers, persistent or not."""
        return self._named_tensors((BUFFER, TRANSIENT), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Iterate over the buffers, each once."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> "Module":
        """Return the submodule of that dotted name, "" for this one; AttributeError names the part that is missing."""
        module = self
        for name in target.split(".") if target else ():
            if module._kinds.get(name) != MODULE or module.__dict__[name] is None:
                raise AttributeError(f"get_submodule: {type(module).__name__} has no module {name!r} (of {target!r})")
            module = module.__dict__[name]
        return module

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter of that dotted name."""
        return self._get(target, "get_parameter", (PARAMETER,))

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer of that dotted name."""
        return self._get(target, "get_buffer", (BUFFER, TRANSIENT))

    def _get(self, target: str, caller: str, kinds: tuple[str, ...]) -> Any:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if owner._kinds.get(name) not in kinds:
            raise AttributeError(f"{caller}: {type(owner).__name__} has no {kinds[0]} {name!r} (of {target!r})")
        return owner.__dict__[name]

    # --------------------------------------------------------------------------------------------- its state

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> dict[str, Tensor]:
        """Return all parameters and persistent buffers by dotted name, a shared one under each of its names.

        The tensors are detached and share the module's memory; with `keep_vars` they are the module's own tensors.
        """
        state = {}
        for path, module in self.named_modules(None, prefix.removesuffix("."), remove_duplicate=False):
            for name, tensor in (*module._members(PARAMETER), *module._members(BUFFER)):
                if tensor is not None:
                    state[f"{path}.{name}" if path else name] = tensor if keep_vars else _detach(tensor)
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> IncompatibleKeys:
        """Copy a state's tensors or arrays into this module's, by name, converted to their dtypes.

        Raises RuntimeError, before anything changes, that lists all names missing or unexpected (only if `strict`) or
        of another shape.

        >>> from retrograd import nn
        >>> nn.Linear(2, 1).load_state_dict(nn.Linear(2, 1).state_dict()).missing_keys
        []
        """
        return load_state(type(self).__name__, self.state_dict(keep_vars=True), state_dict, strict)

    # ------------------------------------------------------------------------------------ changes throughout

    def apply(self: Self, fn: "Callable[[Module], None]") -> Self:
        """Call `fn` on every submodule, children first, then on this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self: Self, mode: bool = True) -> Self:
        """Put this module and its submodules into training mode, or evaluation mode."""
        if not isinstance(mode, bool):
            raise ValueError(f"train: mode must be True or False, got {mode!r}")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self: Self) -> Self:
        """Put this module and its submodules into evaluation mode, in which dropout is the identity."""
        return self.train(False)

    def requires_grad_(self: Self, requires_grad: bool = True) -> Self:
        """Set `requires_grad` of all parameters."""
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or to zero."""
        clear_grads(self.parameters(), set_to_none)

    def to(self: Self, dtype: Any) -> Self:
        """Convert all floating and complex parameters, their gradients and buffers to a dtype, in place.

        Parameters stay the same objects, so optimizers keep working. The only device is the CPU, given by name or as a
        device.
        """
        if is_device(dtype):
            check_device(dtype)
            return self
        target = zeros(0, dtype=dtype).dtype
        if not dtypes.is_differentiable(target):
            raise TypeError(f"to: modules convert to floating or complex dtypes only, got {target}")
        converted: dict[int, Tensor] = {}  # keeps shared tensors shared
        for module in self.modules():
            for name, tensor in module._members(PARAMETER, BUFFER, TRANSIENT):
                if tensor is not None:
                    if id(tensor) not in converted:
                        converted[id(tensor)] = convert_dtype(tensor, target)
                    object.__setattr__(module, name, converted[id(tensor)])
        return self

    def bfloat16(self: Self) -> Self:
        """Convert to bfloat16.

        >>> import retrograd as rg
        >>> rg.nn.Linear(2, 3).bfloat16().weight.dtype
        dtype(bfloat16)
        """
        return self.to(dtypes.as_dtype("bfloat16"))

    def half(self: Self) -> Self:
        """Convert to float16."""
        return self.to(dtypes.float16)

    def float(self: Self) -> Self:
        """Convert to float32."""
        return self.to(dtypes.float32)

    def double(self: Self) -> Self:
        """Convert to float64."""
        return self.to(dtypes.float64)

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
        extra = self.extra_repr()
        lines = [f"({label}): {text}".replace("\n", "\n  ") for label, text in self._repr_lines()]
        if not lines:
            return f"{self._get_name()}({extra})"
        body = "\n  ".join([extra, *lines] if extra else lines)
        return f"{self._get_name()}(\n  {body}\n)"


def _kind_of(value: Any) -> str | None:
    """Return the kind under which an assigned value is registered, or None."""
    if isinstance(value, Parameter):
        return PARAMETER
    if isinstance(value, Module):
        return MODULE
    if isinstance(value, Buffer):
        return BUFFER if value.persistent else TRANSIENT
    return None


def clear_grads(parameters: Any, set_to_none: bool) -> None:
    """Set the gradients of parameters to None, or existing ones to zero."""
    for parameter in parameters:
        if set_to_none:
            parameter.grad = None
        elif parameter.grad is not None:
            parameter.grad = _detach(parameter.grad).zero_()
