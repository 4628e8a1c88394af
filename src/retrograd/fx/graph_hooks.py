"""Hooks of graph modules: called when nodes are created, erased, replaced or renamed, and after deep copies."""

from collections.abc import Callable, Iterator
from typing import Any

from retrograd.core.blocks import generator_block
from retrograd.core.hooks import check_callable
from retrograd.fx.node import Node


class GraphHooks:
    """The hooks of a `GraphModule`, in the order of registration.

    `create_node` hooks are called with a new node, before it is in the graph; `erase_node` hooks with a node that is
    about to be removed; `replace_node` hooks with `old` (a node), `new` (a name) and `user`, for each user of a node
    that is replaced or renamed; `deepcopy` hooks with the copy of the module.

    >>> from retrograd import fx
    >>> module = fx.symbolic_trace(lambda x: x + 1)
    >>> module._register_create_node_hook(lambda node: print("created", node.name))
    >>> tanh = module.graph.call_method("tanh", ())
    created tanh
    """

    _create_node_hooks: list[Callable[[Node], Any]]
    _erase_node_hooks: list[Callable[[Node], Any]]
    _replace_hooks: list[Callable[..., Any]]
    _deepcopy_hooks: list[Callable[[Any], Any]]

    def _clear_hooks(self) -> None:
        self._create_node_hooks, self._erase_node_hooks, self._replace_hooks, self._deepcopy_hooks = [], [], [], []

    def _register_create_node_hook(self, f: Callable[[Node], Any]) -> None:
        """Call `f(node)` for every new node."""
        self._create_node_hooks.append(check_callable(f))

    def _unregister_create_node_hook(self, f: Callable[[Node], Any]) -> None:
        """Remove a hook; raise a ValueError if it is not registered."""
        self._create_node_hooks.remove(f)

    def _register_erase_node_hook(self, f: Callable[[Node], Any]) -> None:
        """Call `f(node)` for every node that is removed."""
        self._erase_node_hooks.append(check_callable(f))

    def _unregister_erase_node_hook(self, f: Callable[[Node], Any]) -> None:
        """Remove a hook; raise a ValueError if it is not registered."""
        self._erase_node_hooks.remove(f)

    def _register_replace_node_hook(self, f: Callable[..., Any]) -> None:
        """Call `f(old=node, new=name, user=node)` for every user of a node that is replaced or renamed."""
        self._replace_hooks.append(check_callable(f))

    def _unregister_replace_node_hook(self, f: Callable[..., Any]) -> None:
        """Remove a hook; raise a ValueError if it is not registered."""
        self._replace_hooks.remove(f)

    def _register_deepcopy_hook(self, f: Callable[[Any], Any]) -> None:
        """Call `f(module)` with every deep copy of the module."""
        self._deepcopy_hooks.append(check_callable(f))

    def _unregister_deepcopy_hook(self, f: Callable[[Any], Any]) -> None:
        """Remove a hook; raise a ValueError if it is not registered."""
        self._deepcopy_hooks.remove(f)

    @generator_block
    def _set_replace_hook(self, f: Callable[..., Any]) -> Iterator[None]:
        """Register a hook of replacements within the block."""
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)
