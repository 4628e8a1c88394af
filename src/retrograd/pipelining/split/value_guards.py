"""The values that decide the control flow of a captured model, and their computation for other inputs."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from retrograd.core import Tensor
from retrograd.fx import GraphModule, Interpreter, Node
from retrograd.pipelining.microbatch import MicroBatch
from retrograd.pipelining.split.mutations import WRITE, signature_of


class Reading(NamedTuple):
    """A value that the model's code reads, as in `if x.sum() > 0`: the line, and the value as text."""

    source: str
    value: str

    def __repr__(self) -> str:
        return f"{self.source} read {self.value}"


class ValueGuards:
    """The guards of a captured program whose values are known before it runs, and the nodes that compute them.

    A guard is left to the run if its value depends on random draws, or on a tensor that the model writes to: its value
    for a microbatch then depends on the microbatches before.

    expected: the readings of the trace, in order.  reads_parameters: whether they depend on the model's state.
    """

    def __init__(self, captured: GraphModule) -> None:
        self._captured = captured
        graph = captured.graph
        written = {node.kwargs["target"] for node in graph.find_nodes(op="call_function", target=WRITE)}
        self._needed: dict[Node, list[Node]] = {}  # per guard, the nodes that those before do not need
        known: set[Node] = set()
        position = {node: number for number, node in enumerate(graph.nodes)}
        for guard in graph.guards:
            needed = _ancestors(guard)
            if not any(node in written or (node.op == "call_function" and node.is_impure()) for node in needed):
                self._needed[guard] = sorted(needed - known, key=position.__getitem__)
                known |= needed
        self.reads_parameters = any(node.op == "get_attr" for node in known)
        self.expected = [self._expected(guard) for guard in self._needed]

    def _expected(self, guard: Node) -> Reading:
        expected = guard.args[1]
        value = Interpreter(self._captured).fetch_attr(expected.target) if isinstance(expected, Node) else expected
        return _reading(guard, value)

    def readings(self, batch: MicroBatch) -> Iterator[Reading]:
        """Yield the value at each guard for a microbatch of the same kind; a value holds if those before it do."""
        run = Interpreter(self._captured, garbage_collect_values=False)
        inputs = signature_of(self._captured).flatten(batch.args, batch.kwargs)
        run.env = dict(zip(run.graph.find_nodes(op="placeholder"), inputs, strict=True))
        for guard, needed in self._needed.items():
            for node in needed:
                if node.op != "placeholder":
                    run.env[node] = run.run_node(node)
            yield _reading(guard, run.env[guard.args[0]])


def _ancestors(guard: Node) -> set[Node]:
    """Return the nodes that compute the value of a guard."""
    found: set[Node] = set()
    stack = [guard.args[0]]
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack += node.all_input_nodes
    return found


def _reading(guard: Node, value: Any) -> Reading:
    return Reading(guard.kwargs["source"], repr(value.tolist() if isinstance(value, Tensor) else value))
