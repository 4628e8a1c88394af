"""Writes of a traced program: proxies for a module's tensors while it runs, and their final values."""

import inspect
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import Any, NamedTuple

from retrograd.core import Op, Tensor, operator_named
from retrograd.core.blocks import Block
from retrograd.core.tensor import count_of
from retrograd.foundation.own_attributes import stored_attributes
from retrograd.fx.node import Node, nodes_in
from retrograd.fx.operators import OVERWRITTEN
from retrograd.nn.members import all_attributes, restore_attributes
from retrograd.nn.module import Module
from retrograd.nn.parameter import Parameter

USER_INPUT, PARAMETER, BUFFER, CONSTANT, ATTRIBUTE = "user_input", "parameter", "buffer", "constant", "attribute"
CONSTANT_NAME = "_tensor_constant"
_clone, _detach, _view_scatter = map(operator_named, ("clone", "detach", "view_scatter"))


class Mutation(NamedTuple):
    """A target that a program writes to; the graph's output at the same index is its final value.

    `kind` is "user_input" (then `target` is the placeholder's name), "parameter", "buffer", "constant" (a tensor of
    the module that is neither), or "attribute" (where there was no tensor); then `target` is the qualified name.
    """

    kind: str
    target: str
    recorded: bool = True  # False: written under no_grad, so it keeps its node in the autograd graph


class AttributeAssignment(NamedTuple):
    """A value assigned by the program to an attribute; it replaces `outside` if that was a tensor."""

    name: str
    outside: Tensor | None
    now: Tensor


class ProxiedAttributes(Block):
    """A block in which a module's tensors are replaced by a trace's proxies; all attributes are restored after it.

    `changes` then lists the program's assignments to them.
    """

    def __init__(self, level: Any, root: Any) -> None:
        self._level = level
        self._modules = _reachable_modules(root)
        self._before = [(all_attributes(module), dict(module._kinds)) for _, module in self._modules]
        self.changes: list[AttributeAssignment] = []

    def _enter(self) -> "ProxiedAttributes":
        """Put the proxies into the modules."""
        for _, module in self._modules:
            for name, value in all_attributes(module).items():
                if isinstance(value, Tensor):
                    stored_attributes(module)[name] = self._level.proxy_of(value)
        return self

    def _leave(self, kind: Any, error: BaseException | None, traceback: TracebackType | None) -> None:
        """Restore the attributes, and record the assignments."""
        after = [all_attributes(module) for _, module in self._modules]
        for (_, module), (attributes, kinds) in zip(self._modules, self._before, strict=True):
            module._kinds.clear()
            module._kinds.update(kinds)
            restore_attributes(module, attributes)
        if error is None:
            self._compare(after)

    def _compare(self, after: list[dict[str, Any]]) -> None:
        replacements: dict[int, set[int]] = {}  # for each former tensor: the ids now at its attributes
        for (path, _), (before, _), now in zip(self._modules, self._before, after, strict=True):
            for name in {**before, **now}:
                old, new = before.get(name), now.get(name)
                self._record_assignment(f"{path}.{name}" if path else name, old, new)
                replacements.setdefault(id(old), set()).add(id(new))
        # An assignment to one of several names of a tensor separates them, which `write_back` could not repeat.
        for change in self.changes:
            if change.outside is not None and len(replacements[id(change.outside)]) > 1:
                raise NotImplementedError(
                    f"trace: the code assigned to {change.name}, a tensor that goes by other names too, and not to "
                    f"those; write into it, {change.name}.copy_(...), and the graph holds the change"
                )

    def _record_assignment(self, name: str, old: Any, new: Any) -> None:
        if not isinstance(old, Tensor):
            if isinstance(new, Tensor) and new.level is self._level:
                self.changes.append(AttributeAssignment(name, None, new))
        elif new is not self._level.proxy_of(old):
            if not isinstance(new, Tensor) or new.aval != old.aval:
                got = new.aval if isinstance(new, Tensor) else repr(new)
                raise NotImplementedError(
                    f"trace: the code replaced {name}, {old.aval}, by {got}; a graph can hold a change of values, not "
                    f"of shape or dtype: give {name} its final shape and dtype before, and write into a part of it"
                )
            self.changes.append(AttributeAssignment(name, old, new))


def _reachable_modules(root: Any) -> list[tuple[str, Module]]:
    """Return the modules that a program can reach, each once, with its path.

    For a function these are the modules that it names, and the one whose method it is.
    """
    found = {"": root, "self": getattr(root, "__self__", None)}
    if inspect.isfunction(inspect.unwrap(root)):
        with suppress(ValueError):  # an unbound variable
            names = inspect.getclosurevars(inspect.unwrap(root))
            found |= {**names.globals, **names.nonlocals}
    seen: set[Module] = set()
    return [pair for name, m in found.items() if isinstance(m, Module) for pair in m.named_modules(seen, name)]


# --------------------------------------------------------------------------------------------- end of a trace


class TracedMutation(NamedTuple):
    """A mutation, the proxy of its target, and the nodes of the target's old and new value."""

    mutation: Mutation
    proxy: Tensor | None
    old: Node | None
    new: Any


def input_mutations(
    operand: Callable, names: Iterable[str], nodes: Iterable[Node], given: Iterable[Tensor]
) -> list[TracedMutation]:
    """Return the inputs that have been written to."""
    triples = zip(names, nodes, given, strict=True)
    return [_traced_mutation(USER_INPUT, name, x, node, operand(x)) for name, node, x in triples if count_of(x)]


def attribute_mutations(
    level: Any, proxies: Iterable[tuple[Tensor, Tensor]], changes: list[AttributeAssignment]
) -> list[TracedMutation]:
    """Return the module's tensors that were written to or replaced, and new tensors assigned to it."""
    found, operand = [], level.operand
    replaced = {id(change.outside): change.now for change in changes}
    for outside, x in proxies:
        if count_of(x) or id(outside) in replaced:
            old, now = level.attribute(outside), operand(replaced.get(id(outside), x))
            same = None if id(outside) in replaced else x
            found.append(_traced_mutation(_kind(outside, old.target), old.target, same, old, now))
    return found + [
        _traced_mutation(ATTRIBUTE, c.name, None, None, operand(c.now)) for c in changes if c.outside is None
    ]


def _kind(tensor: Tensor, name: str) -> str:
    if isinstance(tensor, Parameter):
        return PARAMETER
    return CONSTANT if name.startswith(CONSTANT_NAME) else BUFFER


def _traced_mutation(kind: str, target: str, proxy: Tensor | None, old: Node | None, new: Any) -> TracedMutation:
    """Return the mutation, without the nodes that only mark a write: see `write_back`."""
    # A write under no_grad is an OVERWRITTEN node around the old value. If there are only such nodes, the target keeps
    # its gradients, and `write_back` writes to the detached target.
    last, recorded = new, True
    while _is_call(last, OVERWRITTEN):
        last = last.args[0]
    if last is old and new is not old:
        new, recorded = new.args[1], False
    return TracedMutation(Mutation(kind, target, recorded), proxy, old, written_value(new, recorded))


def written_value(node: Any, recorded: bool = False) -> Any:
    """Return the value written to an entire tensor, from the result of the write."""
    merged = node.args[0] if _is_call(node, _detach) and not recorded else node
    # A write to an entire tensor is a view_scatter through an empty chain of views; its source is the value.
    is_whole = _is_call(merged, _view_scatter) and merged.kwargs["chain"] == () and _same_aval(merged, merged.args[1])
    value = merged.args[1] if is_whole else node
    return value.args[0] if _is_call(value, _detach) and _is_call(value.args[0], _detach) else value


def _is_call(node: Any, operator: Any) -> bool:
    return isinstance(node, Node) and node.target is operator


def _same_aval(a: Node, b: Any) -> bool:
    return isinstance(b, Node) and bool(a.meta["val"] == b.meta["val"])


def outlives_write(node: Node) -> bool:
    """Return whether a view or a saved value outlives the run although its memory has been written to."""
    return any(user.op == "output" or _saves_input(user, node) or _is_view_call(user) for user in node.users)


def _is_view_call(user: Node) -> bool:
    return _is_opaque(user.target) or (user.target.view and outlives_write(user))


def _is_opaque(target: Any) -> bool:
    """Return whether the saved values and views of a call are unknown, as for functions and operators of users."""
    return not isinstance(target, Op) or target.rules is None


def _saves_input(user: Node, node: Node) -> bool:
    """Return whether the derivative of a call needs the value of one of its inputs."""
    if _is_opaque(user.target):
        return True
    if all(_is_call(n, _detach) for n in user.users):
        return False
    schema = user.target.schema
    given = dict(zip([p.name for p in schema.parameters], user.args, strict=False)) | user.kwargs
    inputs = [set(nodes_in(given.get(p.name))) for p in schema.inputs]
    mask = sum(1 << i for i, nodes in enumerate(inputs) if node in nodes)
    rules = zip(user.target.rules, inputs, strict=True)
    return any(rule is not None and rule.needs_values & mask for rule, nodes in rules if nodes)


def insert_copies(graph: Any, written: Iterable[Node]) -> None:
    """Insert copies of values that will be written to, for nodes that are views of them or save them."""
    for node in written:
        if outlives_write(node):
            # Placeholders stay at the beginning, so the copy of an input follows the last of them.
            first = next(n for n in graph.nodes if n.op != "placeholder")
            with graph.inserting_before(first if node.op == "placeholder" else node.next):
                copy = graph.call_function(_clone)
            node.replace_all_uses_with(copy)
            copy.args = (node,)
            copy.meta = dict(node.meta)


def mutated_tensors(signature: Any) -> list[str]:
    """Return the qualified names of the module's tensors that a graph of this signature writes to."""
    mutations = signature.mutations if signature is not None else []
    return [m.target for m in mutations if m.kind not in (USER_INPUT, ATTRIBUTE)]


def mutated_nodes(graph: Any) -> list[Node]:
    """Return the inputs and attributes of a graph that it writes to."""
    names = mutated_tensors(graph.signature)
    inputs = [m.target for m in graph.signature.mutations if m.kind == USER_INPUT] if graph.signature else []
    return [
        node
        for node in graph.nodes
        if (node.op == "get_attr" and node.target in names) or (node.op == "placeholder" and node.target in inputs)
    ]


# ------------------------------------------------------------------------------------------------- running a graph


def write_back(mutations: list[Mutation], values: Iterable[Any], inputs: dict[str, Tensor], module: Module) -> list:
    """Write the values to their targets; return the targets."""
    targets = []
    for (kind, target, recorded), value in zip(mutations, values, strict=True):
        path, _, name = target.rpartition(".")
        if kind == ATTRIBUTE:
            setattr(get_or_add_submodule(module, path), name, value)
            targets.append(value)
        else:
            target_tensor = inputs[target] if kind == USER_INPUT else getattr(module.get_submodule(path), name)
            (target_tensor if recorded else target_tensor.detach()).copy_(value)
            targets.append(target_tensor)
    return targets


def get_or_add_submodule(home: Module, path: str) -> Module:
    """Return the submodule of that qualified name; create missing ones on the path."""
    for name in path.split(".") if path else ():
        if home._modules.get(name) is None:
            home.add_module(name, Module())
        home = home.get_submodule(name)
    return home
