"""A graph module with one graph for training and one for evaluation."""

from collections.abc import Iterable, Mapping
from typing import Any

from retrograd.fx import Graph, GraphModule
from retrograd.fx.graph_module import extract, tensor_names
from retrograd.nn import Module
from retrograd.nn.members import all_attributes

BY_MODE = ("_graph", "_code", "_parameter_names")  # attributes of a graph module that depend on its graph
OTHERS = ("_kinds", "_by_mode", "__signature__", *BY_MODE)
MODES = {True: "training", False: "evaluation"}


def _of_mode(name: str) -> property:
    """Return a property whose value depends on the module's mode."""

    def get(module: "ModalGraphModule") -> Any:
        found = module._by_mode.get(module.training)
        if found is None:
            raise RuntimeError(
                f"this graph was captured in {MODES[not module.training]} mode only, because the model cannot be "
                f"captured, or not be cut into the same stages, in {MODES[module.training]} mode"
            )
        return found[name]

    def set_value(module: "ModalGraphModule", value: Any) -> None:
        module._by_mode.setdefault(module.training, {})[name] = value

    return property(get, set_value)


class ModalGraphModule(GraphModule):
    """A graph module with one graph for training and one for evaluation: `train()` and `eval()` choose.

    graphs: by mode, True for training.  With a graph for one mode only, a run in the other mode raises RuntimeError.
    All that depends on the graph, such as `graph`, `code` and `recompile()`, is that of the current mode.

    >>> import retrograd as rg
    >>> traced = {True: rg.fx.trace(lambda x: x + 1, rg.ones(1)), False: rg.fx.trace(lambda x: x, rg.ones(1))}
    >>> module = ModalGraphModule(traced[True], {mode: part.graph for mode, part in traced.items()})
    >>> module(rg.ones(1)), module.eval()(rg.ones(1))
    (tensor([2.]), tensor([1.]))
    """

    _graph, _code, _parameter_names = map(_of_mode, BY_MODE)

    def __init__(
        self, root: Module | Mapping[str, Any], graphs: Mapping[bool, Graph], keep: Iterable[str] = ()
    ) -> None:
        vars(self)["_by_mode"] = {}
        self._by_mode: dict[bool, dict[str, Any]]
        read = [str(n.target) for g in graphs.values() for n in g.nodes if n.op in ("get_attr", "call_module")]
        super().__init__(root, next(iter(graphs.values())), type(self).__name__, keep=[*keep, *read])
        present, compiled = self.training, list(self._by_mode.values())  # the first graph's
        self._by_mode.clear()
        for self.training, graph in graphs.items():
            reused = next((found for found in compiled if found["_graph"] is graph), None)
            if reused is None:
                self.graph = graph
                compiled.append(self._by_mode[self.training])
            else:
                self._by_mode[self.training] = reused
        self.training = present

    @property
    def graphs(self) -> dict[bool, Graph]:
        """The graphs by mode, True for training."""
        return {mode: found["_graph"] for mode, found in self._by_mode.items()}

    def __reduce__(self) -> tuple:
        kept = [*self._kinds, *OTHERS]
        names = [*tensor_names(self), *(name for name, _ in self.named_children())]
        read = [str(node.target) for graph in self.graphs.values() for node in graph.find_nodes(op="get_attr")]
        others = {name: value for name, value in all_attributes(self).items() if name not in kept}
        return type(self), (extract(self, [*names, *read]), self.graphs, names), others
