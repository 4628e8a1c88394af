"""Nodes of graphs, and their arguments: nodes within tuples, lists, dicts and slices."""

import builtins
import dataclasses
import functools
import operator
import sys
from collections.abc import Callable, Iterable, Iterator
from types import GenericAlias, ModuleType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from retrograd.core import Op
from retrograd.fx.immutable_collections import immutable_dict, immutable_list
from retrograd.fx.operator_schemas import ArgsKwargsPair, normalize_function, normalize_module

if TYPE_CHECKING:
    from retrograd.fx.graph import Graph

KINDS = ("placeholder", "get_attr", "call_function", "call_module", "call_method", "output")
CALLS = ("call_function", "call_module", "call_method")

IN_PLACE = ("add", "and", "floordiv", "lshift", "matmul", "mod", "mul", "or", "pow", "rshift", "sub", "truediv", "xor")
# Python functions with side effects: see `has_side_effect`.
SIDE_EFFECTS: set[Callable] = {getattr(operator, f"i{name}") for name in IN_PLACE}
SIDE_EFFECTS |= {operator.iconcat, operator.setitem, operator.delitem, setattr, delattr, print}

F = TypeVar("F", bound=Callable)


def has_side_effect(fn: F) -> F:
    """Mark a function as impure, so that unused calls of it stay in a graph; return it.

    >>> @has_side_effect
    ... def log(x):
    ...     print("log", x)
    """
    SIDE_EFFECTS.add(fn)
    return fn


class NodeError(ValueError, AssertionError):
    """The error for a node that does not exist, or is of another graph; AssertionError in PyTorch."""


class ArgumentIndexError(IndexError, AssertionError):
    """The error for an index beyond the arguments of a node; AssertionError in PyTorch."""


@functools.total_ordering
class Node:
    """One step of a `Graph`: an input, an attribute of the module, a call, or the output.

    `op` is the kind of node (see `KINDS`) and `target` its object: a placeholder's name, an attribute's or
    submodule's qualified name, the registered operator or Python function, a method's name.  `args` and `kwargs` hold
    constants and further nodes; of a placeholder, its default.  They change by assignment only: in-place changes, also
    of lists and dicts in them, raise a TypeError, because `users` would become wrong.  `meta` holds metadata:
    tracing stores "val", the `Aval` of the result (a tuple of them for several), and "stack_trace", the
    line of the user's code as `file:line in function`.  `type` is the annotation of the result, or None.  Nodes of one
    graph are ordered by their positions: `a < b` if `a` is before `b`.

    Raises ValueError if the target of "call_function" cannot be called, or another target is no string.

    >>> from retrograd.core import registry
    >>> from retrograd.fx import Graph
    >>> graph = Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(registry["mul"], (x, 2.0))
    >>> y.all_input_nodes, list(x.users), y.format_node()
    ([x], [mul], '%mul : [num_users=0] = call_function[target=mul](args = (%x, 2.0), kwargs = {})')
    """

    def __init__(
        self,
        graph: "Graph",
        name: str,
        op: str,
        target: Any,
        args: tuple = (),
        kwargs: dict[str, Any] | None = None,
        return_type: Any = None,
    ) -> None:
        if op not in KINDS:
            raise NodeError(
                f"node {name!r}: op must be one of {', '.join(KINDS)}, got {op!r}: op {op!r} is not in _legal_ops"
            )
        if not (callable(target) if op == "call_function" else isinstance(target, str)):
            expected = "Callable" if op == "call_function" else "str"
            raise ValueError(f"node {name!r}: target {target!r} has type {type(target)} but a {expected} is expected")
        self.graph = graph
        self._erased = False
        self._name = name
        self.op = op
        self.target = target
        self.type = return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._args: tuple = ()
        self._kwargs: dict[str, Any] = {}
        self._inputs: dict[Node, None] = {}
        self._previous = self._next = self  # the nodes of a graph are a doubly linked ring
        self._set(args, kwargs or {})

    @property
    def name(self) -> str:
        """The name of the result in generated code; unique in the graph if that chose it."""
        return self._name

    @name.setter
    def name(self, value: str) -> None:
        for user in self.users:
            self._notify("_replace_hooks", old=self, new=value, user=user)
        self._name = value

    def _rename(self, candidate: str) -> None:
        """Change the name to a free variant of `candidate`."""
        if candidate != self._name:
            self.name = self.graph._namespace.create_name(candidate)

    def _notify(self, hooks: str, *args: Any, **kwargs: Any) -> None:
        """Call the hooks of the module that has the graph: see `GraphHooks`."""
        for hook in getattr(self.graph.owning_module, hooks, ()):
            hook(*args, **kwargs)

    # ------------------------------------------------------------------------------------------- its inputs

    @property
    def args(self) -> tuple:
        """The positional arguments; assign a new tuple to change them."""
        return self._args

    @args.setter
    def args(self, value: tuple) -> None:
        self._set(value, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments; assign a new dict to change them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, value: dict[str, Any]) -> None:
        self._set(self._args, value)

    def _set(self, args: tuple, kwargs: dict[str, Any]) -> None:
        """Set new arguments, as copies, and update the users of old and new inputs."""
        args, kwargs = freeze((tuple(args), dict(kwargs)))
        for node in self._inputs:
            node.users.pop(self, None)
        self._args, self._kwargs = args, kwargs
        self._inputs = dict.fromkeys(nodes_in((args, kwargs)))
        for node in self._inputs:
            node.users[self] = None

    @property
    def all_input_nodes(self) -> list["Node"]:
        """The nodes among the arguments, without repetitions."""
        return list(self._inputs)

    @property
    def stack_trace(self) -> str | None:
        """The line of the user's code that the node comes from, if tracing stored it in `meta`."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def replace_input_with(self, old_input: "Node", new_input: "Node") -> None:
        """Replace `old_input` by `new_input` among the arguments."""
        self._notify("_replace_hooks", old=old_input, new=new_input.name, user=self)
        args, kwargs = map_nodes((self._args, self._kwargs), lambda n: new_input if n is old_input else n)
        self._set(args, kwargs)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Replace an argument by its index in `args`; raise an IndexError if there is none."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Set a keyword argument."""
        self.kwargs = {**self._kwargs, key: arg}

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Insert an argument into `args` before index `idx`; raise an ArgumentIndexError beyond the end."""
        if not 0 <= idx <= len(self._args):
            raise ArgumentIndexError(
                f"insert_args index must be between 0 and len(self.args), got {idx}; it is {len(self._args)} for "
                f"{self.name}"
            )
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def replace_all_uses_with(
        self,
        replace_with: "Node",
        delete_user_cb: "Callable[[Node], bool] | None" = None,
        *,
        propagate_meta: bool = False,
    ) -> list["Node"]:
        """Replace this node by `replace_with` in all its users, except that one itself; return the changed users.

        `delete_user_cb(user)` returns whether to change a user.  With `propagate_meta` this node's `meta` is copied to
        the new node; a ValueError if that has its own.
        """
        if propagate_meta:
            if replace_with.meta:
                raise ValueError(f"replace_all_uses_with: {replace_with.name} has a meta of its own; clear it first")
            replace_with.meta = dict(self.meta)
        wanted = [user for user in self.users if user is not replace_with]
        changed = [user for user in wanted if delete_user_cb is None or delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    # -------------------------------------------------------------------------------------------- position

    @property
    def next(self) -> "Node":
        """The node after this one."""
        return self._next

    @property
    def prev(self) -> "Node":
        """The node before this one."""
        return self._previous

    def prepend(self, x: "Node") -> None:
        """Move `x` before this node; raise a NodeError if it is of another graph."""
        if x.graph is not self.graph:
            raise NodeError(
                f"{self.name}: Attempting to move a Node into a different Graph: {x.name} is of another graph; copy it "
                "with graph.node_copy"
            )
        if x is not self:
            x._unlink()
            x._link(self._previous, self)

    def append(self, x: "Node") -> None:
        """Move `x` after this node; raise a NodeError if it is of another graph."""
        if x is not self:
            self._next.prepend(x)

    def _link(self, before: "Node", after: "Node") -> None:
        self._previous, self._next = before, after
        before._next = after._previous = self
        self.graph._positions = None

    def _unlink(self) -> None:
        self.graph._positions = None
        self._previous._next, self._next._previous = self._next, self._previous

    def _position(self) -> int:
        """Return the index of the node in its graph."""
        if self.graph._positions is None:
            self.graph._positions = {node: index for index, node in enumerate(self.graph.nodes)}
        if self._erased:
            raise NodeError(f"{self.name}: the node was erased, so it has no position in the graph")
        return self.graph._positions[self]

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Node) or other.graph is not self.graph:
            return NotImplemented
        return self._position() < other._position()

    # ------------------------------------------------------------------------------------------- properties

    def is_impure(self, impure_random: bool = True) -> bool:
        """Return whether the node has side effects, so that it must stay even without users.

        Impure are operators with that trait, random operators unless `impure_random` is False, functions marked by
        `has_side_effect`, methods whose names end in _, and modules that have `_is_impure`, or in training mode
        buffers that they may update.
        """
        if self.op == "call_function":
            if isinstance(self.target, Op):
                return self.target.definition.impure or (impure_random and self.target.random)
            return _has_side_effect(self.target)
        if self.op == "call_method":
            return self.target == "__setitem__" or (self.target[-1:] == "_" and self.target[-2:] != "__")
        if self.op == "call_module":
            return self.graph.owning_module is None or _is_impure_module(
                self.graph.owning_module.get_submodule(self.target)
            )
        return self.op in ("placeholder", "output")

    def normalized_arguments(
        self,
        root: Any,
        arg_types: tuple | None = None,
        kwarg_types: dict[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> ArgsKwargsPair | None:
        """Return the arguments in one form, with the defaults; None if that is impossible.

        `root` has the submodules that are called.  See `operator_schemas.normalize_function`.
        """
        kwargs = self._kwargs
        if self.op == "call_function":
            types = arg_types, kwarg_types
            return normalize_function(self.target, self._args, kwargs, *types, normalize_to_only_use_kwargs)
        if self.op == "call_module":
            return normalize_module(root, self.target, self._args, kwargs, normalize_to_only_use_kwargs)
        return None

    def __repr__(self) -> str:
        return self.name

    def format_node(
        self, placeholder_names: list[str] | None = None, maybe_return_typename: list[str] | None = None
    ) -> str | None:
        """Return the node as one line of its graph's text.

        If `placeholder_names` is not empty, a placeholder is appended to it instead, and the result is None.  The
        first element of `maybe_return_typename` becomes the annotation of an output.
        """
        annotation = "" if self.type is None else f"{type_text(self.type)} "
        if self.op == "output":
            if annotation and maybe_return_typename:
                maybe_return_typename[0] = f" -> {annotation.rstrip()}"
            return f"return {self._args[0]!r}"
        if self.op == "placeholder" and placeholder_names:
            placeholder_names.append(f"{self.target}: {annotation.rstrip()}" if annotation else self.target)
            return None
        target = target_text(self.target)
        head = f"%{self.name} : {annotation}[num_users={len(self.users)}] = {self.op}[target={target}]"
        if self.op == "placeholder" and self._args:
            return f"{head}(default={format_value(self._args[0])})"
        if self.op not in CALLS:
            return head
        return f"{head}(args = {format_value(self._args)}, kwargs = {format_value(self._kwargs)})"


def _has_side_effect(function: Callable) -> bool:
    try:
        return function in SIDE_EFFECTS
    except TypeError:  # unhashable
        return False


def _is_impure_module(module: Any) -> bool:
    """Return whether calling a module may change it."""
    flag = getattr(module, "_is_impure", None)
    if flag is not None:
        return bool(flag)
    return module.training and next(module.buffers(), None) is not None


def target_name(target: Any) -> str:
    """Return a target's name, for an operator or a function without its module."""
    return target.name if isinstance(target, Op) else str(getattr(target, "__name__", target))


def target_text(target: Any) -> str:
    """Return a target as text: an operator by its name, a Python function by its module and name."""
    if isinstance(target, str | Op) or not hasattr(target, "__name__"):
        return target_name(target)
    name: str = target.__name__
    if getattr(package(), name, None) is target:
        return f"{package().__name__}.{name}"
    module: str = getattr(target, "__module__", None) or builtins.__name__
    return f"{module.removeprefix('_') if module == '_operator' else module}.{name}"


def package() -> ModuleType:
    """Return this package's module, whose names are those that users write."""
    return sys.modules[__name__.partition(".")[0]]


def type_text(annotation: Any) -> str:
    """Return an annotation as text: a class by its module and name, anything else by its repr.

    >>> import retrograd as rg
    >>> type_text(int), type_text(list[int]), type_text(rg.Tensor | None)
    ('int', 'list[int]', 'retrograd.Tensor | None')
    """
    if isinstance(annotation, UnionType):
        return " | ".join("None" if member is type(None) else type_text(member) for member in get_args(annotation))
    if not isinstance(annotation, type) or isinstance(annotation, GenericAlias):
        return repr(annotation)
    name = annotation.__qualname__
    if getattr(package(), name, None) is annotation:
        return f"{package().__name__}.{name}"
    return name if annotation.__module__ == builtins.__name__ else f"{annotation.__module__}.{name}"


# The most common classes of leaves, and no containers: tested first, as most of the time of tracing goes to leaves.
SIMPLE_LEAVES = frozenset({Node, str, int, float, bool, type(None)})


def freeze(value: Any) -> Any:
    """Return immutable copies of nested tuples, lists, dicts and slices.

    >>> type(freeze([1, 2])).__name__
    'immutable_list'
    """
    if type(value) in SIMPLE_LEAVES:
        return value
    if isinstance(value, tuple):
        members = [freeze(v) for v in value]
        return type(value)(*members) if hasattr(value, "_fields") else tuple(members)
    if isinstance(value, list):
        return immutable_list([freeze(v) for v in value])
    if isinstance(value, dict):
        return immutable_dict({k: freeze(v) for k, v in value.items()})
    if isinstance(value, slice):
        return slice(*[freeze(v) for v in (value.start, value.stop, value.step)])
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        _check_no_nodes(value)
    return value


def _check_no_nodes(value: Any) -> None:
    """Raise for a dataclass instance that contains nodes, which would not be computed."""
    contained = list(nodes_in([getattr(value, f.name, None) for f in dataclasses.fields(value)]))
    if contained:
        name = type(value).__name__
        raise TypeError(
            f"a {name} among the arguments holds the node {contained[0].name}; add call_function({name}, ...)"
        )


def map_leaves(value: Any, function: Callable[[Any], Any]) -> Any:
    """Return a copy of nested tuples, lists, dicts and slices with `function(leaf)` for every leaf.

    >>> map_leaves(([1], slice(2, 3)), str)
    (['1'], slice('2', '3', 'None'))
    """
    if type(value) in SIMPLE_LEAVES:
        return function(value)
    if isinstance(value, tuple):
        members = _map_members(value, function)
        return type(value)(*members) if hasattr(value, "_fields") else tuple(members)
    if isinstance(value, list):
        return _map_members(value, function)
    if isinstance(value, dict):
        return dict(zip(value, _map_members(value.values(), function), strict=True))
    if isinstance(value, slice):
        return slice(*_map_members((value.start, value.stop, value.step), function))
    return function(value)


def _map_members(members: Iterable[Any], function: Callable[[Any], Any]) -> list[Any]:
    # The test of map_leaves, without a call for each leaf.
    return [function(v) if type(v) in SIMPLE_LEAVES else map_leaves(v, function) for v in members]


def is_record(value: Any) -> bool:
    """Return whether a value is a named tuple or a dataclass instance, which a call of its class rebuilds."""
    if isinstance(value, tuple):
        return hasattr(value, "_fields")
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def map_nodes(value: Any, function: Callable[[Node], Any]) -> Any:
    """Return a copy of nested tuples, lists, dicts and slices with `function(node)` for every node."""
    return map_leaves(value, lambda leaf: function(leaf) if isinstance(leaf, Node) else leaf)


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Return an immutable copy of nested tuples, lists, dicts and slices with `fn(leaf)` for every leaf.

    >>> map_aggregate([1, (2,)], str)
    ['1', ('2',)]
    """
    return freeze(map_leaves(a, fn))


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """Return an immutable copy of nested tuples, lists, dicts and slices with `fn(node)` for every node.

    >>> from retrograd.fx import Graph
    >>> x = Graph().placeholder("x")
    >>> map_arg(([x, 1],), lambda node: node.name)
    (['x', 1],)

    Raises NodeError if `fn` is no function.
    """
    if not callable(fn):
        raise NodeError(f"map_arg(a, fn): fn must be a callable, got {type(fn).__name__}")
    return freeze(map_nodes(a, fn))


def nodes_in(value: Any) -> Iterator[Node]:
    """Yield every node in nested tuples, lists, dicts and slices."""
    if isinstance(value, Node):
        yield value
    elif type(value) in SIMPLE_LEAVES:
        return
    elif isinstance(value, (tuple, list)):
        for member in value:
            yield from nodes_in(member)
    elif isinstance(value, dict):
        for member in value.values():
            yield from nodes_in(member)
    elif isinstance(value, slice):
        yield from nodes_in((value.start, value.stop, value.step))


def format_value(value: Any) -> str:
    """Return a value as text, with each node as `%name`."""
    if isinstance(value, Node):
        return f"%{value.name}"
    if isinstance(value, tuple):
        return f"({', '.join(map(format_value, value))}{',' * (len(value) == 1)})"
    if isinstance(value, list):
        return f"[{', '.join(map(format_value, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{k}: {format_value(v)}' for k, v in value.items())}}}"
    return str(value)
