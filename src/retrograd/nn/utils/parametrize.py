"""Parameters that are computed from others each time they are read."""

import copy
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from retrograd.autograd import no_grad
from retrograd.core import Tensor
from retrograd.core.blocks import generator_block
from retrograd.foundation.own_attributes import stored_attributes
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.nn.containers import ModuleDict, ModuleList
from retrograd.nn.module import Module
from retrograd.nn.parameter import Buffer, Parameter

_cache: dict[tuple[int, str], Any] = {}
_caching = 0


@generator_block
def cached() -> Iterator[None]:
    """Compute every parametrized tensor only once within this block, for modules that read it often.

    >>> from retrograd.nn.utils import parametrize
    >>> with parametrize.cached():
    ...     pass
    """
    global _caching
    _caching += 1
    try:
        yield
    finally:
        _caching -= 1
        if not _caching:
            _cache.clear()


class ParametrizationList(ModuleList):
    """The functions that compute a tensor from `original`, or from `original0`, `original1`, ...; call it to do so."""

    def __init__(self, modules: Sequence[Module], original: Any, unsafe: bool = False) -> None:
        super().__init__()
        self.unsafe = unsafe
        value = original
        with no_grad(), suppress(NotImplementedError):  # a parametrization without an inverse begins at the value
            for module in reversed(modules):
                if hasattr(module, "right_inverse"):
                    value = module.right_inverse(value)
        self._count = len(value) if isinstance(value, tuple | list) else 0
        kind = Parameter if isinstance(original, Parameter) else Buffer
        for name, part in zip(self._original_names(), value if self._count else [value], strict=True):
            if not isinstance(part, Tensor):
                raise ValueError(
                    f"ParametrizationList: 'right_inverse' must return a Tensor or a Sequence of tensors (list, "
                    f"tuple...). Got {type(part).__name__}"
                )
            if not self._count:
                _check_inverse("ParametrizationList", original, part, ("dtype", "device"))
            tensor: Any = original if part is original else _copy_tensor(kind, part, original)
            if isinstance(original, Parameter):
                self.register_parameter(name, tensor)
            else:
                self.register_buffer(name, tensor)
        for module in modules:
            self._append(module)

    @property
    def is_tensor(self) -> bool:
        """Whether one tensor, `original`, is parametrized."""
        return not self._count

    @property
    def ntensors(self) -> int:
        """The number of originals."""
        return len(self._original_names())

    def _original_names(self) -> list[str]:
        return [f"original{number}" for number in range(self._count)] if self._count else ["original"]

    def _append(self, module: Module) -> None:
        self.add_module(str(sum(1 for _ in self._members("module"))), module)

    def __iter__(self) -> Iterator[Any]:
        return (module for _, module in self._members("module"))

    def __len__(self) -> int:
        return sum(1 for _ in self._members("module"))

    def __getitem__(self, key: Any) -> Any:
        return list(self)[key]

    def _entries(self) -> list[Any]:
        return list(self)

    def right_inverse(self, value: Any) -> None:
        """Set the originals so that the tensor has that value."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"{type(module).__name__} has no right_inverse, so what it parametrizes can't be assigned to"
                    )
                value = module.right_inverse(value)
            values = value if self._count else [value]
            for name, part in zip(self._original_names(), values, strict=True):
                getattr(self, name).copy_(part)

    def forward(self) -> Any:
        """Return the tensor."""
        modules = list(self)
        x = modules[0](*(getattr(self, name) for name in self._original_names()))
        for module in modules[1:]:
            x = module(x)
        return x


def _copy_tensor(kind: Any, part: Any, original: Any) -> Any:
    """Return a new parameter or buffer with its own memory."""
    part = part.detach().clone()
    return Parameter(part, original.requires_grad) if issubclass(kind, Parameter) else Buffer(part)


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Make `module.<tensor_name>` return `parametrization(original)`; returns the module.

    The original is then the parameter `parametrizations.<tensor_name>.original`. If the parametrization has a method
    `right_inverse`, it computes the original from the existing tensor, and from values assigned later; it may return
    several, named original0, original1, ... Parametrizations compose. Raises ValueError, before anything changes, if
    the module has no such tensor, or if shape or dtype would change without `unsafe`. The parametrization takes over
    the module's mode, training or not.

    >>> import retrograd as rg
    >>> from retrograd import nn
    >>> from retrograd.nn.utils import parametrize
    >>> class Symmetric(nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).mT
    >>> layer = parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.mT).all()), list(layer.state_dict())
    (True, ['bias', 'parametrizations.weight.original'])
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        return _append_parametrization(module, tensor_name, parametrization, unsafe)
    kinds = module._kinds
    if kinds.get(tensor_name) not in ("parameter", "buffer", "transient buffer"):
        raise ValueError(f"register_parametrization: {type(module).__name__} has no tensor {tensor_name!r}")
    original = stored_attributes(module)[tensor_name]
    functions = ParametrizationList([parametrization], original, unsafe)
    if not unsafe:
        _check_parametrization(tensor_name, original, functions)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        module.parametrizations = ModuleDict()
        _change_class(module)
    _add_property(type(module), tensor_name)
    module.parametrizations[tensor_name] = functions
    return module


def _append_parametrization(module: Any, name: str, parametrization: Module, unsafe: bool) -> Module:
    """Append a parametrization; if it has an inverse, update the originals so that the tensor stays the same."""
    functions = module.parametrizations[name]
    before = getattr(module, name)
    if not unsafe:
        with no_grad():
            value = parametrization(before)
        _check_same_aval(name, before, value)
    inverse = getattr(parametrization, "right_inverse", None)
    if inverse is not None:
        with no_grad():
            value = inverse(before)
            if not unsafe:
                _check_inverse("register_parametrization", before, value, ("shape", "dtype", "device"))
            functions.right_inverse(value)
    functions._append(parametrization)
    return module


def _check_parametrization(name: str, original: Any, functions: ParametrizationList) -> None:
    with no_grad():
        _check_same_aval(name, original, functions())


def _check_same_aval(name: str, before: Any, after: Any) -> None:
    if not isinstance(after, Tensor):
        raise ValueError(
            f"register_parametrization: A parametrization must return a tensor. Got {type(after).__name__}"
        )
    if tuple(before.shape) != tuple(after.shape) or before.dtype != after.dtype:
        raise ValueError(
            f"register_parametrization: {name} has shape {before.shape} and dtype {before.dtype}, its parametrization "
            f"gives {after.shape} and {after.dtype}; pass unsafe=True if it should"
        )


def _check_inverse(function: str, before: Tensor, after: Any, kept: Sequence[str]) -> None:
    """Raise ValueError unless a `right_inverse` gives a tensor with the same attributes of these names."""
    if not isinstance(after, Tensor):
        raise ValueError(f"{function}: right_inverse must return a tensor. Got {type(after).__name__}")
    for name in kept:
        own, given = getattr(before, name), getattr(after, name)
        if own != given:
            raise ValueError(f"{function}: right_inverse must keep the {name}: the tensor has {own}, it gives {given}")


def _change_class(module: Any) -> None:
    """Give the module its own class, because properties belong to classes."""
    base = type(module)
    members = {"__module__": base.__module__, "__getstate__": _refuse_pickling, "__deepcopy__": _deepcopy}
    if hasattr(base, "__deepcopy__"):
        del members["__deepcopy__"]
    object.__setattr__(module, "__class__", type(f"Parametrized{base.__name__}", (base,), members))


def _refuse_pickling(module: Any) -> Any:
    raise RuntimeError(
        f"{type(module).__name__}: Serialization of parametrized modules is only supported through state_dict(); or "
        "call parametrize.remove_parametrizations first"
    )


def _deepcopy(module: Any, memo: dict[int, Any]) -> Any:
    """Return a copy of a parametrized module; its class is shared with it."""
    memo[id(module)] = copied = object.__new__(type(module))
    copied.__setstate__(copy.deepcopy(module.__dict__, memo))
    return copied


def _add_property(cls: type, name: str) -> None:
    def read(self: Any) -> Any:
        if not _caching:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def write(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(cls, name, property(read, write))


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module has a parametrized tensor, or one of that name.

    >>> from retrograd import nn
    >>> is_parametrized(nn.Linear(1, 1))
    False
    """
    known = stored_attributes(module).get("parametrizations")
    if not isinstance(known, ModuleDict):
        return False
    return bool(len(known)) if tensor_name is None else tensor_name in known


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Restore an ordinary parameter with the tensor's value, or the original's if not `leave_parametrized`.

    The parameter is the original itself, so that optimizers keep it, unless the parametrization has several originals.

    >>> from retrograd import nn
    >>> from retrograd.nn.utils import parametrizations, parametrize
    >>> layer = parametrizations.weight_norm(nn.Linear(2, 2))
    >>> list(parametrize.remove_parametrizations(layer, "weight").state_dict())
    ['bias', 'weight']
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"remove_parametrizations: {type(module).__name__} has no parametrized {tensor_name!r}")
    functions = module.parametrizations[tensor_name]
    names = functions._original_names()
    if not leave_parametrized and len(names) > 1:
        raise ValueError(f"remove_parametrizations: {tensor_name} has {len(names)} originals; leave it parametrized")
    first = getattr(functions, names[0])
    if leave_parametrized:
        with no_grad():
            value = _copy_tensor(type(first), getattr(module, tensor_name), first)
        if functions.is_tensor and first.dtype == value.dtype:
            first.data = value.detach()  # the same parameter, which an optimizer may have
        else:
            first = value
    del module.parametrizations[tensor_name]
    delattr(type(module), tensor_name)
    module.register_parameter(tensor_name, first) if isinstance(first, Parameter) else module.register_buffer(
        tensor_name, first
    )
    if not len(module.parametrizations):
        del module.parametrizations
        object.__setattr__(module, "__class__", type(module).__bases__[0])
    return module


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Parametrize a module as another one, with the same parametrizations and originals; return it.

    tensor_name: the tensor whose parametrizations are transferred; None, those of all tensors.  A tensor that
    `to_module` lacks is added.  Raises ValueError if `from_module` has no such parametrizations.

    >>> from retrograd import nn
    >>> from retrograd.nn.utils import parametrizations, parametrize
    >>> first, other = parametrizations.orthogonal(nn.Linear(3, 3)), nn.Linear(3, 3)
    >>> bool((parametrize.transfer_parametrizations_and_params(first, other).weight == first.weight).all())
    True
    """
    if not is_parametrized(from_module, tensor_name):
        raise ValueError(
            f"transfer_parametrizations_and_params: {type(from_module).__name__} has no parametrized "
            f"{'tensor' if tensor_name is None else repr(tensor_name)}"
        )
    source: Any = from_module.parametrizations
    for name in [tensor_name] if tensor_name is not None else list(source):
        functions = source[name]
        if name not in to_module._kinds and not is_parametrized(to_module, name):
            setattr(to_module, name, getattr(functions, functions._original_names()[0]))
        for function in functions:
            register_parametrization(to_module, name, function, unsafe=functions.unsafe)
        target: Any = to_module.parametrizations[name]
        for original in functions._original_names():
            setattr(target, original, getattr(functions, original))
    return to_module


def type_before_parametrizations(module: Module) -> type:
    """Return the module's class before parametrization.

    >>> from retrograd import nn
    >>> type_before_parametrizations(nn.Linear(1, 1)).__name__
    'Linear'
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


suggest_in_module(globals())
