"""Running the graph of a pipe on one machine, its own backward pass included."""

from typing import Any

from retrograd.core import Tensor
from retrograd.fx import GraphModule, Interpreter, Node, map_nodes
from retrograd.pipelining.backward_graph import STAGE_BACKWARD


class DetachExecutor(Interpreter):
    """Runs a pipe's graph with every value that a stage takes from another cut into a leaf.

    So each stage has an autograd graph of its own, as on a rank of its own, and each `stage_backward` call runs
    through one of them.  Gradients accumulate on the parameters; what the model returns is returned.

    >>> import retrograd as rg
    >>> from retrograd.pipelining import SplitPoint, TrivialLossWrapper, pipeline
    >>> model = rg.nn.Sequential(rg.nn.Linear(4, 8), rg.nn.Linear(8, 2))
    >>> wrapper = TrivialLossWrapper(model, rg.nn.functional.mse_loss)
    >>> x, y = rg.ones(3, 4), rg.ones(3, 2)
    >>> pipe = pipeline(wrapper, (x, y), split_spec={"module.1": SplitPoint.BEGINNING})
    >>> loss = DetachExecutor(pipe.split_gm).run(x, y)
    >>> loss.shape, model[0].weight.grad.shape
    ((), (8, 4))
    """

    def __init__(self, module: GraphModule, garbage_collect_values: bool = True) -> None:
        super().__init__(module, garbage_collect_values)
        self._taken: dict[Node, dict[Node, Any]] = {}  # per call of a stage, its inputs, as leaves

    def run_node(self, node: Node) -> Any:
        """The result of one node."""
        if node.op == "call_module":
            return self._run_stage(node)
        if node.target is STAGE_BACKWARD:
            return self._run_stage_backward(node)
        return super().run_node(node)

    def _run_stage(self, node: Node) -> Any:
        taken = {a: self.env[a] if a.op == "placeholder" else _leaf(self.env[a]) for a in node.all_input_nodes}
        self._taken[node] = taken
        return self.call_module(node.target, map_nodes(node.args, taken.__getitem__), {})

    def _run_stage_backward(self, node: Node) -> Any:
        taken = self._taken.pop(node.kwargs["stage_output"])
        kwargs = map_nodes(node.kwargs, lambda used: taken.get(used, self.env[used]))
        return self.call_function(node.target, (), kwargs)


def _leaf(value: Any) -> Any:
    """A value outside every graph, which requires grad as it did."""
    if not isinstance(value, Tensor):
        return value
    leaf = value.detach()
    leaf.requires_grad = value.requires_grad
    return leaf
