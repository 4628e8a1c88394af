"""`ModuleTree`: the parameters, buffers and submodules of a module by name."""

import copyreg
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from retrograd.core import Tensor
from retrograd.foundation.class_members import add_members
from retrograd.foundation.number_arguments import check_init_arguments
from retrograd.foundation.own_attributes import AttributeOwner, share_attributes, stored_attributes
from retrograd.nn.hooks import BUFFER_HOOKS, MODULE_HOOKS, PARAMETER_HOOKS, registered_member
from retrograd.nn.members import BUFFER, BUFFERS, MODULE, PARAMETER, TRANSIENT, TRANSIENT_NAMES, ModuleAttributes
from retrograd.nn.parameter import Buffer, Parameter

if TYPE_CHECKING:
    from retrograd.nn.module import Module

_EXPECTED = {
    PARAMETER: (Parameter, "nn.Parameter"),
    BUFFER: (Tensor, "Tensor"),
    TRANSIENT: (Tensor, "Tensor"),
}
# A member replaces one of the same name whose kind comes later: a parameter a module, a module a buffer.
_PRECEDENCE = {PARAMETER: 0, MODULE: 1, BUFFER: 2, TRANSIENT: 2, None: 3}
# The methods that register assigned members, where a class overrides them.
_METHODS = {PARAMETER: "register_parameter", BUFFER: "register_buffer", TRANSIENT: "register_buffer"}
# The methods that decide what copies and files of an object have.
_OF_STATE = ("__getstate__", "__setstate__", "__reduce__", "__getnewargs__", "__getnewargs_ex__")
_REGISTRATION_HOOKS = {
    PARAMETER: PARAMETER_HOOKS,
    BUFFER: BUFFER_HOOKS,
    TRANSIENT: BUFFER_HOOKS,
    MODULE: MODULE_HOOKS,
}


def _replace_attributes(module: Any, given: Any) -> None:
    """Let a module have other attributes; those of another module, as `__dict__`, are shared with it."""
    if not isinstance(given, ModuleAttributes):
        attributes = ModuleAttributes({})
        attributes.update(given)
        given = attributes
    share_attributes(module, given._values)


# The attributes under PyTorch's keys, with dicts of members.
_attributes: Any = property(lambda module: ModuleAttributes(stored_attributes(module)), _replace_attributes)


def dict_property(name: str) -> Any:
    """Return the property of a dict that `__dict__` has under the same name."""

    def replace(module: "ModuleTree", members: Any) -> None:
        ModuleAttributes(stored_attributes(module))[name] = members

    return property(lambda module: ModuleAttributes(stored_attributes(module))[name], replace)


class ModuleTree(AttributeOwner):
    """Base of `Module`: registers members where they are assigned, and finds them by dotted names."""

    _kinds: dict[str, str]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        check_init_arguments(cls)
        if next(vars(base)["__dict__"] for base in cls.__mro__ if "__dict__" in vars(base)) is not _attributes:
            add_members(cls, {"__dict__": _attributes})  # Python's own, of a base that comes before `Module`
        if "__getattr__" in vars(cls) and "__getattribute__" not in vars(cls):
            cls.__getattribute__ = _member_by_getattr  # type: ignore[method-assign,assignment]

    def __init__(self) -> None:
        # Registered values are stored in the instance's dictionary, so that attribute access is fast; `_kinds` lists
        # their names in order.
        stored_attributes(self)["_kinds"] = {}

    # ----------------------------------------------------------------------------------------- registration

    def __setattr__(self, name: str, value: Any) -> None:
        kind = _kind_of(value)
        kinds: Any = stored_attributes(self).get("_kinds")
        if kinds is None:
            if kind is not None:
                raise _not_initialized(self, kind, name)
        elif kind is None or _PRECEDENCE[kind] > _PRECEDENCE[kinds.get(name)]:
            kind = self._kind_of_registered(name, value)
        if kind in _METHODS and getattr(type(self), _METHODS[kind]) is not getattr(ModuleTree, _METHODS[kind]):
            self._register_by_own_method(kind, name, value)
            return
        if kind is not None:
            value = self._after_hooks(kind, name, value)
        try:
            object.__setattr__(self, name, value)
        except AttributeError:  # a property without a setter: `_parameters` has the value, as in PyTorch
            if kind is None:
                raise
            stored_attributes(self)[name] = value
        if kind is not None and name in stored_attributes(self) and kinds.get(name) != kind:
            _list_member(kinds, name, kind)

    def _register_by_own_method(self, kind: str, name: str, value: Any) -> None:
        """Register an assigned member by the method of a class that overrides it, as PyTorch does."""
        if self._kinds.get(name) not in (BUFFERS if kind in BUFFERS else (kind,)):
            stored_attributes(self).pop(name, None)
            self._kinds.pop(name, None)
        if kind == TRANSIENT:
            self.register_buffer(name, value, persistent=False)
        else:
            getattr(self, _METHODS[kind])(name, value)

    def _after_hooks(self, kind: str, name: str, value: Any) -> Any:
        """Return the member to be registered, which hooks may replace; an absent parameter has none, as in PyTorch."""
        hooks = _REGISTRATION_HOOKS[kind]
        if not hooks or (kind == PARAMETER and value is None):
            return value
        return registered_member(hooks, self, name, value)

    def _kind_of_registered(self, name: str, value: Any) -> str | None:
        """Return the kind under which a name stays registered when a value of no kind is assigned to it."""
        kind: Any = self._kinds.get(name)
        expected, words = _EXPECTED.get(kind, (ModuleTree, "nn.Module"))
        if kind is not None and value is not None and not isinstance(value, expected):
            raise TypeError(
                f"cannot assign '{type(value).__name__}' as {kind} {name!r} ({words} or None expected): "
                f"{type(self).__name__}.{name} is a {kind}"
            )
        return kind

    def __getattr__(self, name: str) -> Any:
        # Python calls this if the attribute does not exist; for members only a class that overrides it does.
        values = stored_attributes(self)
        if name in values.get("_kinds", ()):
            return values[name]
        if "_kinds" not in values and not name.startswith("__"):
            raise AttributeError(f"{type(self).__name__} has no {name!r}: its __init__ must call super().__init__()")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    __dict__: Any = _attributes

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes, with dicts of the members as in PyTorch; subclasses may change them."""
        return ModuleAttributes(stored_attributes(self)).state()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Let copies and files have the attributes as they are stored, unless a class decides that itself."""
        if all(getattr(type(self), name, None) is getattr(ModuleTree, name, None) for name in _OF_STATE):
            return copyreg.__newobj__, (type(self),), stored_attributes(self)  # type: ignore[attr-defined]
        return super().__reduce_ex__(protocol)

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Set the attributes that a module, its copy or PyTorch's had; subclasses may change the state before."""
        values = stored_attributes(self)
        if "_kinds" in state:  # as they are stored
            values.update(state, _kinds=dict(state["_kinds"]))
        else:
            ModuleAttributes(values).update(state)

    def __dir__(self) -> list[str]:
        known = {*dir(type(self)), *self.__dict__, *stored_attributes(self).get("_kinds", ())}
        return sorted(name for name in known if name.isidentifier())

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        self._kinds.pop(name, None)

    def _register(self, kind: str, name: str, value: Any) -> None:
        expected, words = _EXPECTED.get(kind, (ModuleTree, "nn.Module"))
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type(name).__name__}")
        if not name or "." in name:
            words = 'contain "."' if name else 'be empty string ""'
            raise KeyError(
                f"{kind} name can't {words}: the name of a {kind} must be a string, not empty and without '.', got "
                f"{name!r}"
            )
        if "_kinds" not in stored_attributes(self):
            raise _not_initialized(self, kind, name)
        if self._kinds.get(name) not in (BUFFERS if kind in BUFFERS else (kind,)) and hasattr(self, name):
            raise KeyError(
                f"attribute {name!r} already exists: {type(self).__name__} has an attribute {name!r} already"
            )
        if value is not None and not isinstance(value, expected):
            words = f"cannot assign {type(value).__name__!r} object to {kind} {name!r} ({words} or None required)"
            raise TypeError(words if kind != MODULE else f"{type(value).__name__} is not a Module subclass: {words}")
        value = self._after_hooks(kind, name, value)
        _list_member(self._kinds, name, kind)
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

    def register_module(self, name: str, module: "Module | None") -> None:
        """Register a submodule by name, by `add_module`, which a subclass may override."""
        self.add_module(name, module)

    def _members(self, *kinds: str) -> Iterator[tuple[str, Any]]:
        """Return this module's own members of these kinds, in order; None for absent ones."""
        values = stored_attributes(self)
        return ((name, values[name]) for name, kind in list(self._kinds.items()) if kind in kinds)

    # PyTorch's dicts of members; the names of buffers that are not saved.
    _parameters = dict_property("_parameters")
    _buffers = dict_property("_buffers")
    _modules = dict_property("_modules")
    _non_persistent_buffers_set = dict_property(TRANSIENT_NAMES)

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
        # A stack, because each level of a recursion of generators delays every module below. Children are looked up in
        # their turn: the caller may replace them meanwhile.
        known = ModuleTree.named_modules
        pending: list[tuple[str, dict[str, Any], str]] = [(prefix, {"": self}, "")]
        while pending:
            path, values, key = pending.pop()
            module = values.get(key)
            if module is None or module in memo:
                continue
            if type(module).named_modules is not known and module is not self:
                yield from module.named_modules(memo, path, remove_duplicate)
                continue
            if remove_duplicate:
                memo.add(module)
            yield path, module
            kinds = module._kinds
            if MODULE in kinds.values():
                names = [name for name, kind in kinds.items() if kind == MODULE]
                names.reverse()
                values = stored_attributes(module)
                start = f"{path}." if path else ""
                pending += [(start + name, values, name) for name in names]

    def modules(self, remove_duplicate: bool = True) -> "Iterator[Module]":
        """Iterate over this module and its submodules, each once unless `remove_duplicate` is False."""
        return (module for _, module in self.named_modules(None, "", remove_duplicate))

    def _named_tensors(
        self, kinds: tuple[str, ...], prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        visited = set()
        owners = self.named_modules(None, prefix, remove_duplicate) if recurse else [(prefix, self)]
        for path, module in owners:
            if not (members := module._kinds):
                continue
            values, prefix = stored_attributes(module), f"{path}." if path else ""
            for name, kind in list(members.items()):
                if kind not in kinds or (tensor := values[name]) is None:
                    continue
                if remove_duplicate:
                    if id(tensor) in visited:
                        continue
                    visited.add(id(tensor))
                yield prefix + name, tensor

    def _named_members(
        self,
        get_members_fn: "Callable[[Module], Iterable[tuple[str, Any]]]",
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """Iterate over dotted names and members of modules, given by a function; PyTorch's name, for subclasses."""
        visited = set()
        owners = self.named_modules(None, prefix, remove_duplicate) if recurse else [(prefix, self)]
        for path, module in owners:
            for name, member in get_members_fn(module):  # type: ignore[arg-type]
                if member is not None and id(member) not in visited:
                    if remove_duplicate:
                        visited.add(id(member))
                    yield f"{path}.{name}" if path else name, member

    def _unnamed_tensors(self, kinds: tuple[str, ...], recurse: bool) -> Iterator[Any] | None:
        """Return the tensors of `_named_tensors`, without making names; None if a class overrides `named_modules`."""
        found = _collect(self, kinds, recurse)
        return None if found is None else iter(found.values())

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Iterate over dotted names and parameters; a shared one under its first name only, if `remove_duplicate`."""
        return self._named_tensors((PARAMETER,), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Iterate over the parameters, each once: of this module, and of its submodules if `recurse`."""
        if type(self).named_parameters is ModuleTree.named_parameters and "named_parameters" not in stored_attributes(
            self
        ):
            found = self._unnamed_tensors((PARAMETER,), recurse)
            if found is not None:
                return found
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Iterate over dotted names and buffers, persistent or not."""
        return self._named_tensors(BUFFERS, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Iterate over the buffers, each once."""
        if type(self).named_buffers is ModuleTree.named_buffers and "named_buffers" not in stored_attributes(self):
            found = self._unnamed_tensors(BUFFERS, recurse)
            if found is not None:
                return found
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> "Module":
        """Return the submodule of that dotted name, "" for this one; AttributeError names the part that is missing."""
        module = cast("Module", self)
        for name in target.split(".") if target else ():
            if module._kinds.get(name) != MODULE or stored_attributes(module)[name] is None:
                raise _no_member(module, name, target, "get_submodule", MODULE)
            module = stored_attributes(module)[name]
        return module

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter of that dotted name."""
        return self._get(target, "get_parameter", (PARAMETER,))

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer of that dotted name."""
        return self._get(target, "get_buffer", BUFFERS)

    def set_submodule(self, target: str, module: "Module", strict: bool = False) -> None:
        """Replace the submodule of a dotted name, or add one to an existing parent.

        Raises ValueError for an empty name or no module, AttributeError if the parent does not exist, or with `strict`
        if the submodule does not.
        """
        path, _, name = target.rpartition(".")
        if not name:
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, ModuleTree):
            raise ValueError(f"set_submodule: `module` is not an nn.Module, found {type(module)}")
        parent = self.get_submodule(path)
        if strict or (hasattr(parent, name) and parent._kinds.get(name) != MODULE):
            self.get_submodule(target)
        setattr(parent, name, module)

    def _get(self, target: str, caller: str, kinds: tuple[str, ...]) -> Any:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if owner._kinds.get(name) not in kinds:
            raise _no_member(owner, name, target, caller, kinds[0])
        return stored_attributes(owner)[name]


def _not_initialized(module: ModuleTree, kind: str, name: str) -> AttributeError:
    """Return the error of a member that is registered before `Module.__init__` has run."""
    what = "parameters" if kind == PARAMETER else "buffer" if kind in BUFFERS else "module"
    return AttributeError(
        f"cannot assign {what} before Module.__init__() call: {name!r} of {type(module).__name__}; call "
        f"super().__init__() of the module first"
    )


def _no_member(owner: ModuleTree, name: str, target: str, caller: str, kind: str) -> AttributeError:
    """Return the error of a dotted name whose last part is no member of a kind."""
    words = f"{caller} found no {kind} {name!r} (of {target!r})"
    if hasattr(owner, name):
        what = {PARAMETER: "an nn.Parameter", MODULE: "an nn.Module"}.get(kind, "a buffer")
        return AttributeError(f"`{name}` is not {what}: {words}")
    return AttributeError(f"{type(owner).__name__} has no attribute `{name}`: {words}")


def _collect(module: ModuleTree, kinds: tuple[str, ...], recurse: bool) -> dict[int, Any] | None:
    """Return the tensors of a module and of its submodules by identity, in order; None if it can't know them.

    A loop over a stack: a call for each module would take as long as the look-ups.
    """
    known = ModuleTree.named_modules
    found: dict[int, Any] = {}
    visited = set()
    pending = [module]
    while pending:
        module = pending.pop()
        if module in visited:
            continue
        visited.add(module)
        values = stored_attributes(module)
        if type(module).named_modules is not known or "named_modules" in values:
            return None
        if not (members := module._kinds):
            continue
        children = []
        for name, kind in members.items():
            if (value := values[name]) is None:
                continue
            if kind in kinds:
                found[id(value)] = value
            elif kind == MODULE:
                children.append(value)
        if children and recurse:
            children.reverse()
            pending += children
    return found


def _kind_of(value: Any) -> str | None:
    """Return the kind under which an assigned value is registered, or None."""
    if isinstance(value, Parameter):
        return PARAMETER
    if isinstance(value, ModuleTree):
        return MODULE
    if isinstance(value, Buffer):
        return BUFFER if value.persistent else TRANSIENT
    return None


def _list_member(kinds: dict[str, str], name: str, kind: str) -> None:
    """List a member under its kind: last, unless one of that name and kind is replaced, as in PyTorch's dicts."""
    if kinds.get(name) not in (BUFFERS if kind in BUFFERS else (kind,)):
        kinds.pop(name, None)
    kinds[name] = kind


def _member_by_getattr(self: ModuleTree, name: str) -> Any:
    """Look up an attribute: members by the `__getattr__` of a class that defines it, which gets them in PyTorch too."""
    if name in stored_attributes(self).get("_kinds", ()):
        return type(self).__getattr__(self, name)
    return object.__getattribute__(self, name)
