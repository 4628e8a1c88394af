"""The nodes that a backend can run, for partitions of graphs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from retrograd.fx.node import CALLS, Node
from retrograd.fx.passes.tools_common import get_node_target
from retrograd.nn.module import Module

__all__ = ["OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain", "create_op_support"]

Submodules = Mapping[str, Module]
DTypes = Sequence[Any]


class OperatorSupportBase(ABC):
    """Decides which nodes are supported."""

    @abstractmethod
    def is_node_supported(self, submodules: Submodules, node: Node) -> bool:
        """Return whether a node is supported; `submodules` are those of the module, by qualified name."""


class OperatorSupport(OperatorSupportBase):
    """Supports the calls whose targets are in a dict, by the names of `tools_common.get_node_target`.

    A value of None accepts all arguments; a pair of a sequence and a dict has the accepted dtypes of each argument, by
    position and by name, as `ShapeProp` stores them.  Nodes that are no calls are supported.

    >>> import operator
    >>> from retrograd import fx
    >>> module = fx.symbolic_trace(lambda x: (x + 1).exp())
    >>> support = OperatorSupport({"_operator.add": None})
    >>> [support.is_node_supported({}, node) for node in module.graph.nodes]
    [True, True, False, True]
    """

    def __init__(self, support_dict: Mapping[str, tuple[Sequence[DTypes], dict[str, DTypes]] | None] | None = None):
        self._support = support_dict or {}

    def is_node_supported(self, submodules: Submodules, node: Node) -> bool:
        """Return whether a node's target and the dtypes of its arguments are supported."""
        if node.op not in CALLS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support:
            return False
        accepted = self._support[target]
        if accepted is None:
            return True
        by_position, by_name = accepted
        pairs = [*zip(node.args, by_position, strict=False), *((node.kwargs.get(k), v) for k, v in by_name.items())]
        return all(_dtype(argument) in dtypes for argument, dtypes in pairs if isinstance(argument, Node))


class _FunctionSupport(OperatorSupportBase):
    def __init__(self, function: Callable[[Submodules, Node], bool]) -> None:
        self._function = function

    def is_node_supported(self, submodules: Submodules, node: Node) -> bool:
        return self._function(submodules, node)


def create_op_support(is_node_supported: Callable[[Submodules, Node], bool]) -> OperatorSupportBase:
    """Return an `OperatorSupportBase` that asks a function."""
    return _FunctionSupport(is_node_supported)


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Return the support of nodes that all of these support."""
    return create_op_support(lambda modules, node: all(s.is_node_supported(modules, node) for s in op_support))


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Return the support of nodes that any of these supports."""
    return create_op_support(lambda modules, node: any(s.is_node_supported(modules, node) for s in op_support))


class OpSupports:
    """Parts of supports, for `chain`."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: Any) -> OperatorSupportBase:
        """Return the support of nodes without an input of this dtype."""
        return create_op_support(lambda _, node: all(_dtype(used) != dtype for used in node.all_input_nodes))

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """Return the support of nodes with other names."""
        return create_op_support(lambda _, node: node.name not in disallow_set)


def _dtype(node: Node) -> Any:
    """Return the dtype of a node's result, as `ShapeProp` or tracing stored it; None if it is unknown."""
    return getattr(node.meta.get("tensor_meta", node.meta.get("val")), "dtype", None)
