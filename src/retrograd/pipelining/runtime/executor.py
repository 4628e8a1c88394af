"""Run the graph of a pipe in one process, including its own backward pass."""

import operator
from typing import Any

import optree

from retrograd.core import Tensor
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.fx import GraphModule, Interpreter, Node, map_nodes
from retrograd.fx.node import nodes_in
from retrograd.fx.operators import PICK
from retrograd.pipelining.split.backward_graph import STAGE_BACKWARD


class DetachExecutor(Interpreter):
    """An interpreter of a pipe's graph that detaches each value passed between stages.

    Each stage therefore has its own autograd graph, as on a separate rank, and each `stage_backward` call runs
    through one of them.  Gradients accumulate on the parameters; the result is the model's output.

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
        self._stage_inputs: dict[Node, dict[Node, Any]] = {}  # per call of a stage, its inputs, as leaves

    def run_node(self, node: Node) -> Any:
        """Return the result of one node."""
        if node.op == "call_module":
            return self._run_stage(node)
        if node.target is STAGE_BACKWARD:
            return self._run_stage_backward(node)
        return super().run_node(node)

    def _run_stage(self, node: Node) -> Any:
        inputs = {a: self._stage_input(a) for a in node.all_input_nodes}
        self._stage_inputs[node] = inputs
        args, kwargs = map_nodes((node.args, node.kwargs), inputs.__getitem__)
        return self.call_module(node.target, args, kwargs)

    def _stage_input(self, source: Node) -> Any:
        """Return a value as input of a stage.  Inputs and parameters are leaves already, whose gradients
        accumulate."""
        value = self.env[source]
        return value if source.op in ("placeholder", "get_attr") else optree.tree_map(_leaf, value, none_is_leaf=True)

    def _run_stage_backward(self, node: Node) -> Any:
        inputs = self._stage_inputs.pop(self._stage_call(node))
        kwargs = map_nodes(node.kwargs, lambda used: inputs.get(used, self.env[used]))
        return self.call_function(node.target, (), kwargs)

    def _stage_call(self, node: Node) -> Node:
        """Return the stage call whose results a backward call receives, possibly picked or nested in tuples."""
        for used in nodes_in(node.kwargs["stage_output"]):
            while used.target in (PICK, operator.getitem):
                used = used.args[0]
            if used in self._stage_inputs:
                return used
        raise RuntimeError(
            f"{node.name}: its stage_output comes from no stage that has run, or whose backward has not run yet"
        )


def _leaf(value: Any) -> Any:
    """Return a detached value that requires grad as before."""
    if not isinstance(value, Tensor):
        return value
    leaf = value.detach()
    leaf.requires_grad = value.requires_grad
    return leaf


suggest_in_module(globals())
