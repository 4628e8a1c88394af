"""Measure the operators of a captured model: seconds forward and backward, and bytes."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from statistics import median
from typing import Any, NamedTuple

import optree

from retrograd import autograd
from retrograd.core import Tensor, registry
from retrograd.core.blocks import generator_block
from retrograd.fx import GraphModule, Interpreter, Node
from retrograd.interop.stored_arrays import memory_owner
from retrograd.nn import Module
from retrograd.ops.generator import default_generator
from retrograd.pipelining.microbatch import tensors_in
from retrograd.pipelining.split.partition import NEVER, cut_costs
from retrograd.utils import blas_threads

Loss = Callable[[Any], Any]  # from the model's output to the loss


class Operator(NamedTuple):
    """The cost of one operator for a microbatch.

    forward, backward: seconds.  saved: bytes of its saved tensors; parameters: bytes of those that it uses; both
    are keyed by memory, because operators share it.  sent_bytes: bytes sent to later stages if one ends here.
    nodes: number of graph nodes it covers; more than one if no stage can end between them.
    """

    forward: float
    backward: float
    saved: Mapping[int, int]
    parameters: Mapping[int, int]
    sent_bytes: float
    nodes: int = 1

    def followed_by(self, other: "Operator") -> "Operator":
        """Return the combination of two successive operators."""
        return Operator(
            self.forward + other.forward,
            self.backward + other.backward,
            {**self.saved, **other.saved},
            {**self.parameters, **other.parameters},
            other.sent_bytes,
            self.nodes + other.nodes,
        )


@generator_block
def preserve_state(model: Module) -> Iterator[None]:
    """Run the body on one thread; restore gradients, buffers and the generator state of the model afterwards."""
    gradients = [(parameter, parameter.grad) for parameter in model.parameters()]
    buffers = [(buffer, registry["clone"](buffer.detach())) for buffer in model.buffers()]
    state = default_generator._plain_state()
    for parameter, _ in gradients:
        parameter.grad = None
    try:
        with blas_threads(1), autograd.enable_grad():
            yield
    finally:
        for parameter, gradient in gradients:
            parameter.grad = gradient
        with autograd.no_grad():
            for buffer, value in buffers:
                buffer.copy_(value)
        default_generator._set_plain_state(state)


def operators(captured: GraphModule, args: tuple, kwargs: dict[str, Any], loss: Loss, rounds: int) -> list[Operator]:
    """Return the cost of every operator of a captured model in graph order; the loss counts to the last one."""
    timer = _Timer(captured, loss)
    for _ in range(rounds + 1):
        timer.run(*args, **kwargs)
    recorder = _SavedTensorRecorder(captured)
    recorder.run(*args, **kwargs)
    nodes = [node for node in captured.graph.nodes if node.op == "call_function"]
    cuts = cut_costs(nodes, lambda node: bytes_of(recorder.env[node]))
    found: list[Operator] = []
    for node, cut in zip(nodes, cuts, strict=True):
        operator = Operator(*timer.seconds(node), recorder.saved[node], recorder.parameters(node), cut)
        found.append(found.pop().followed_by(operator) if found and found[-1].sent_bytes >= NEVER else operator)
    return found


class _Timer(Interpreter):
    """Runs each operator on leaves, and times its forward and its backward pass with cotangents of 1."""

    def __init__(self, captured: GraphModule, loss: Loss) -> None:
        super().__init__(captured)
        self.loss = loss
        self.start_up = _empty_backward_seconds()
        self.samples: dict[Node, list[tuple[float, float]]] = defaultdict(list)

    def run_node(self, node: Node) -> Any:
        """Return the result of a node, detached from its graph."""
        if node.op == "placeholder":
            return detach_values(super().run_node(node), False)
        if node.op != "call_function":
            return super().run_node(node)
        args, kwargs = self.fetch_args_kwargs_from_env(node)
        output, *seconds = self._timed(lambda: node.target(*args, **kwargs))
        self.samples[node].append((seconds[0], seconds[1]))
        for used in node.all_input_nodes:
            if used.op == "call_function":
                _clear_gradients(self.env[used])
        return detach_values(output)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model, and the loss on its output."""
        output = super().run(*args, **kwargs)
        value, forward, backward = self._timed(lambda: self.loss(output))
        last = next(reversed(self.samples))
        before = self.samples[last].pop()
        self.samples[last].append((before[0] + forward, before[1] + backward))
        return value

    def _timed(self, work: Callable[[], Any]) -> tuple[Any, float, float]:
        start = time.perf_counter()
        output = work()
        forward = time.perf_counter() - start
        ends = [tensor for tensor in tensors_in(output) if tensor.requires_grad]
        seeds = [registry["ones_like"](tensor.detach()) for tensor in ends]
        start = time.perf_counter()
        if ends:
            autograd.backward(ends, seeds)
        backward = time.perf_counter() - start - self.start_up
        return output, forward, max(backward, 0.0) if ends else 0.0

    def seconds(self, node: Node) -> tuple[float, float]:
        """Return the median seconds of an operator, without the warm-up round."""
        forward, backward = zip(*self.samples[node][1:], strict=True)
        return median(forward), median(backward)


class _SavedTensorRecorder(Interpreter):
    """Runs a model once, holds every value, and records the saved tensors of operators."""

    def __init__(self, captured: GraphModule) -> None:
        super().__init__(captured, garbage_collect_values=False)
        self.saved: dict[Node, dict[int, int]] = defaultdict(dict)
        self.references: list[Any] = []  # prevents reuse of memory
        self.external: set[int] = set()  # memory of inputs, parameters and buffers

    def run_node(self, node: Node) -> Any:
        """Return the result of a node."""
        if node.op != "call_function":
            made = super().run_node(node)
            self.external.update(memory_of(tensor)[0] for tensor in tensors_in(made) if node.op != "output")
            return made

        def pack(tensor: Tensor) -> Tensor:
            self.references.append(tensor)
            key, size = memory_of(tensor)
            if key not in self.external:
                self.saved[node][key] = size
            return tensor

        with autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            return super().run_node(node)

    def parameters(self, node: Node) -> dict[int, int]:
        """Return the bytes of an operator's parameters, by their memory."""
        used = [self.env[argument] for argument in node.all_input_nodes if argument.op == "get_attr"]
        return dict(memory_of(value) for value in used if isinstance(value, Tensor) and value.requires_grad)


def _empty_backward_seconds() -> float:
    """Return the seconds of an empty backward pass."""
    leaf = registry["zeros"](()).requires_grad_()
    samples = []
    for _ in range(20):
        start = time.perf_counter()
        autograd.backward([leaf], [leaf.detach()])
        samples.append(time.perf_counter() - start)
    return median(samples)


def detach_values(value: Any, requires_grad: bool | None = None) -> Any:
    """Return a value with its tensors detached; `requires_grad` as before if None."""

    def leaf(tensor: Any) -> Any:
        if not isinstance(tensor, Tensor):
            return tensor
        detached = tensor.detach()
        detached.requires_grad = tensor.requires_grad if requires_grad is None else requires_grad
        return detached

    return optree.tree_map(leaf, value, none_is_leaf=True)


def _clear_gradients(value: Any) -> None:
    for tensor in tensors_in(value):
        tensor.grad = None


def memory_of(tensor: Tensor) -> tuple[int, int]:
    """Return the identity and the bytes of a tensor's memory; for a view, of its base."""
    owner = memory_owner(tensor.value)
    return id(owner), getattr(owner, "nbytes", tensor.nbytes)


def bytes_of(value: Any) -> int:
    """Return the bytes of a value; NEVER for a tuple of results, so that no stage ends before they are unpacked."""
    return NEVER if isinstance(value, tuple) else getattr(value, "nbytes", 0)
