"""Passes that return whether they changed a module."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from retrograd.fx.graph_module import GraphModule

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """The module after a pass, and whether the pass changed it."""

    graph_module: GraphModule
    modified: bool


class PassBase(ABC):
    """A pass: `call` changes a module; `requires` and `ensures` check it before and after, and raise if it is wrong.

    >>> from retrograd import fx
    >>> class DeadCode(PassBase):
    ...     def call(self, graph_module):
    ...         return PassResult(graph_module, graph_module.graph.eliminate_dead_code())
    >>> DeadCode()(fx.symbolic_trace(lambda x: (x + 1, x)[1])).modified
    True
    """

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        """Run the pass and its checks."""
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """Change the module, and return it with whether it changed."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Raise an error if the pass cannot run on the module."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Raise an error if the module is wrong after the pass."""
