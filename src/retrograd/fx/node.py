"""Nodes of graphs, and their arguments: nodes within tuples, lists, dicts and slices."""

import builtins
import dataclasses
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from retrograd.core import Op
from retrograd.fx.immutable_collections import immutable_dict, immutable_list

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


class Node:
    """One step of a `Graph`: an input, an attribute of the module, a call, or the output.

    `op` is the kind of node (see `KINDS`) and `target` its object: a placeholder's name, an attribute's or
    submodule's qualified name, the registered operator or Python function, a method's name.  `args` and `kwargs` hold
    constants and further nodes; of a placeholder, its default.  They change by assignment only: in-place changes, also
    of lists and dicts in them, raise a TypeError, because `users` would become wrong.  `meta` holds metadata:
    tracing stores "val", the `Aval` of the result (a tuple of them for several), and "stack_trace", the
    line of the user's code as `file:line in function`.

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
    ) -> None:
        if op not in KINDS:
            raise ValueError(f"node {name!r}: op must be one of {', '.join(KINDS)}, got {op!r}")
        self.graph = graph
        self.erased = False
        self.name = name
        self.op = op
        self.target = target
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._args: tuple = ()
        self._kwargs: dict[str, Any] = {}
        self._inputs: dict[Node, None] = {}
        self._previous = self._next = self  # the nodes of a graph are a doubly linked ring
        self._set(args, kwargs or {})

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
        args, kwargs = frozen((tuple(args), dict(kwargs)))
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

    def replace_input_with(self, old: "Node", new: "Node") -> None:
        """Replace `old` by `new` among the arguments."""
        args, kwargs = map_nodes((self._args, self._kwargs), lambda node: new if node is old else node)
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
        """Insert an argument into `args` before index `idx`; raise an IndexError beyond the end."""
        if not 0 <= idx <= len(self._args):
            raise IndexError(f"insert_arg: {self.name} has {len(self._args)} args, so there is no place {idx}")
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

    def prepend(self, node: "Node") -> None:
        """Move `node` before this one; raise a ValueError if it is of another graph."""
        if node.graph is not self.graph:
            raise ValueError(f"{self.name}: {node.name} is of another graph; copy it with graph.node_copy")
        if node is not self:
            node._unlink()
            node._link(self._previous, self)

    def append(self, node: "Node") -> None:
        """Move `node` after this one; raise a ValueError if it is of another graph."""
        if node is not self:
            self._next.prepend(node)

    def _link(self, before: "Node", after: "Node") -> None:
        self._previous, self._next = before, after
        before._next = after._previous = self

    def _unlink(self) -> None:
        self._previous._next, self._next._previous = self._next, self._previous

    # ------------------------------------------------------------------------------------------- properties

    def is_impure(self, impure_random: bool = True) -> bool:
        """Return whether the node has side effects, so that it must stay even without users.

        Impure are operators with that trait, random operators unless `impure_random` is False, functions marked by
        `has_side_effect`, methods whose names end in _, and modules that have `_is_impure`, or in training mode
        buffers that they may update.
        """
        if self.op == "call_function":
            if isinstance(self.target, Op):
                return self.target.definition.impure or (impure_random and self.target.definition.random)
            return _is_marked(self.target)
        if self.op == "call_method":
            return self.target == "__setitem__" or (self.target[-1:] == "_" and self.target[-2:] != "__")
        if self.op == "call_module":
            return self.graph.owning_module is None or _changes(self.graph.owning_module.get_submodule(self.target))
        return self.op in ("placeholder", "output")

    def __repr__(self) -> str:
        return self.name

    def format_node(self) -> str:
        """Return the node as one line of its graph's text."""
        if self.op == "output":
            return f"return {self._args[0]!r}"
        head = f"%{self.name} : [num_users={len(self.users)}] = {self.op}[target={target_text(self.target)}]"
        if self.op == "placeholder" and self._args:
            return f"{head}(default={format_value(self._args[0])})"
        if self.op not in CALLS:
            return head
        return f"{head}(args = {format_value(self._args)}, kwargs = {format_value(self._kwargs)})"


def _is_marked(function: Callable) -> bool:
    try:
        return function in SIDE_EFFECTS
    except TypeError:  # unhashable
        return False


def _changes(module: Any) -> bool:
    """Return whether calling a module may change it."""
    marked = getattr(module, "_is_impure", None)
    if marked is not None:
        return bool(marked)
    return module.training and next(module.buffers(), None) is not None


def target_name(target: Any) -> str:
    """Return a target's name, for an operator or a function without its module."""
    return target.name if isinstance(target, Op) else str(getattr(target, "__name__", target))


def target_text(target: Any) -> str:
    """Return a target as text: an operator by its name, a Python function by its module and name."""
    if isinstance(target, str | Op) or not hasattr(target, "__name__"):
        return target_name(target)
    home = getattr(target, "__module__", None) or builtins.__name__
    return f"{home.removeprefix('_') if home == '_operator' else home}.{target.__name__}"


def frozen(value: Any) -> Any:
    """Return immutable copies of nested tuples, lists, dicts and slices.

    >>> type(frozen([1, 2])).__name__
    'immutable_list'
    """
    if isinstance(value, tuple):
        members = [frozen(v) for v in value]
        return type(value)(*members) if hasattr(value, "_fields") else tuple(members)
    if isinstance(value, list):
        return immutable_list([frozen(v) for v in value])
    if isinstance(value, dict):
        return immutable_dict({k: frozen(v) for k, v in value.items()})
    if isinstance(value, slice):
        return slice(*[frozen(v) for v in (value.start, value.stop, value.step)])
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        _check_holds_none(value)
    return value


def _check_holds_none(value: Any) -> None:
    """Raise for a dataclass instance that contains nodes, which would not be computed."""
    held = list(nodes_in([getattr(value, f.name, None) for f in dataclasses.fields(value)]))
    if held:
        name = type(value).__name__
        raise TypeError(f"a {name} among the arguments holds the node {held[0].name}; add call_function({name}, ...)")


def map_leaves(value: Any, function: Callable[[Any], Any]) -> Any:
    """Return a copy of nested tuples, lists, dicts and slices with `function(leaf)` for every leaf.

    >>> map_leaves(([1], slice(2, 3)), str)
    (['1'], slice('2', '3', 'None'))
    """
    if isinstance(value, tuple):
        members = [map_leaves(v, function) for v in value]
        return type(value)(*members) if hasattr(value, "_fields") else tuple(members)
    if isinstance(value, list):
        return [map_leaves(v, function) for v in value]
    if isinstance(value, dict):
        return {k: map_leaves(v, function) for k, v in value.items()}
    if isinstance(value, slice):
        return slice(*[map_leaves(v, function) for v in (value.start, value.stop, value.step)])
    return function(value)


def is_record(value: Any) -> bool:
    """Return whether a value is a named tuple or a dataclass instance, which a call of its class rebuilds."""
    if isinstance(value, tuple):
        return hasattr(value, "_fields")
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def map_nodes(value: Any, function: Callable[[Node], Any]) -> Any:
    """Return a copy of nested tuples, lists, dicts and slices with `function(node)` for every node."""
    return map_leaves(value, lambda leaf: function(leaf) if isinstance(leaf, Node) else leaf)


def nodes_in(value: Any) -> Iterator[Node]:
    """Yield every node in nested tuples, lists, dicts and slices."""
    found: list[Node] = []
    map_nodes(value, found.append)
    return iter(found)


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
    if isinstance(value, slice):
        return f"slice({', '.join(map(format_value, (value.start, value.stop, value.step)))})"
    return repr(value)
