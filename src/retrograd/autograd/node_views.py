"""The nodes of the graph as users see them: PyTorch's names, classes and members around the engine's own records.

`tensor.grad_fn` and `next_functions` return these; the engine's edges lead to a `GradFn`, or to a leaf itself. A view
holds its record, and the graph finds the view only while somebody holds it, so that a graph does not pay for views.
"""

import weakref
from abc import ABCMeta
from collections.abc import Callable
from functools import cache
from typing import Any

from retrograd.autograd.input_metadata import InputMetadata
from retrograd.autograd.saved_names import raw_saved_by_name, saved_by_name, saved_names
from retrograd.core import GradFn, Tensor
from retrograd.core.dtype import is_differentiable
from retrograd.core.engine import run_alone
from retrograd.core.graph import output_avals
from retrograd.core.hooks import RemovableHandle, add_hook, conjugate, hooks_of
from retrograd.core.views import synced_grad_fn
from retrograd.foundation.read_only import read_only


class NodeMembers:
    """The members of every node; `_record` is the engine's `GradFn`."""

    __slots__ = ()
    _record: Any

    def name(self) -> str:
        """Return the name, such as MulBackward0."""
        name: str = self._record.name()
        return name

    @read_only
    def next_functions(self) -> tuple:
        """Pairs of the node that gets the gradient of an input, or None, and the index of that node's output."""
        fn = self._record
        numbers = fn.numbers or (0,) * len(fn.edges)
        return tuple([(as_node(edge), number) for edge, number in zip(fn.edges, numbers, strict=True)])

    @read_only
    def metadata(self) -> dict:
        """A dict for the user's own data about this node; anomaly mode adds where and by which node it was made."""
        fn = self._record
        metadata = hooks_of(fn).metadata
        if fn.trace is not None:
            fn.trace.describe(metadata)
        return metadata

    @read_only
    def _input_metadata(self) -> tuple[InputMetadata, ...]:
        """Shape, dtype and device of each gradient that the node receives: none of indices, as of `max`."""
        avals = output_avals(self._record)
        return tuple([InputMetadata(aval) for aval in avals if is_differentiable(aval.dtype)])

    @read_only
    def requires_grad(self) -> bool:
        """True: an operator makes a node only if some input requires grad."""
        return True

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_inputs, grad_outputs)` after the node has run; a tuple that it returns replaces grad_inputs."""
        return add_hook(hooks_of(self._record).after, fn)

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call `fn(grad_outputs)` before the node runs; a tuple that it returns replaces grad_outputs."""
        return add_hook(hooks_of(self._record).before, fn)

    def _register_hook_dict(self, tensor: Tensor) -> None:
        """Let the hooks of a tensor run on the gradient of the output of this node that has the tensor's number."""
        if not isinstance(tensor, Tensor):
            raise TypeError(f"_register_hook_dict expected a variable, got {type(tensor).__name__}")
        number, owner = tensor._output_nr, tensor if tensor._grad_fn is None else tensor._grad_fn
        hooks_of(self._record).tensor[number] = hooks_of(owner).tensor.setdefault(number, {})

    def _sequence_nr(self) -> int:
        """Return the creation number, which orders the nodes of a graph, or the number that the user has set."""
        chosen: int | None = hooks_of(self._record).sequence
        return self._record.sequence if chosen is None else chosen

    def _set_sequence_nr(self, sequence_nr: int) -> None:
        """Set the number that `_sequence_nr` returns; passes keep running nodes in the order of their creation."""
        if not isinstance(sequence_nr, int):
            raise TypeError(f"_set_sequence_nr: an integer is required, got {type(sequence_nr).__name__}")
        hooks_of(self._record).sequence = sequence_nr

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"cannot pickle {type(self).__name__!r} object: a node is a part of its graph")

    def __repr__(self) -> str:
        return f"<{self.name()} #{self._record.sequence}>"


class NodeType(ABCMeta):
    """The class of the classes of nodes, of which users can make no instances."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is Node:
            raise TypeError("Can't instantiate abstract class Node: operators on tensors that require grad make nodes")
        raise TypeError(f"cannot create {cls.__name__!r} instances: operators on tensors that require grad make them")


class Node(NodeMembers, metaclass=NodeType):
    """The abstract class of graph nodes, for isinstance; it cannot be instantiated.

    Its members are those of every node.

    >>> import retrograd as rg
    >>> y = rg.ones(2, requires_grad=True) * 3
    >>> type(y.grad_fn).__name__, isinstance(y.grad_fn, rg.autograd.graph.Node)
    ('MulBackward0', True)
    """

    __slots__ = ("__weakref__", "_record")

    def metadata(self) -> dict:
        """Return a dict for the user's own notes; an attribute of each node, and a method of this class in PyTorch."""
        raise NotImplementedError

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__()} - {"_record", "_abc_impl"})


class OperatorNode(Node):
    """A node of an operator; there is one subclass per name. `node(*grads)` computes the gradients of its inputs.

    >>> import retrograd as rg
    >>> x = rg.tensor([3.0, 4.0], requires_grad=True)
    >>> (x * x).grad_fn(rg.ones(2))[0].tolist()
    [3.0, 4.0]
    """

    __slots__ = ()
    metadata = NodeMembers.metadata

    def __call__(self, *grads: Tensor | None) -> Any:
        """Return the gradients of the inputs for those of the outputs, None for an input without one; no hooks run.

        One gradient is returned as it is, several are a tuple. The computation is recorded if grad mode is on.
        Raises TypeError for another number of gradients, or for a gradient that is no tensor.
        """
        check_grads(grads, len(output_avals(self._record)))
        found = run_alone(self._record, tuple([conjugate(g) for g in grads]))
        return conjugate(found[0]) if len(found) == 1 else tuple([conjugate(g) for g in found])

    def __getattr__(self, name: str) -> Any:
        """Return a saved value as `_saved_<name>`, before it is unpacked as `_raw_saved_<name>`."""
        if name.startswith("_saved_"):
            return saved_by_name(self._record, name.removeprefix("_saved_"))
        if name.startswith("_raw_saved_"):
            return raw_saved_by_name(self._record, name.removeprefix("_raw_saved_"))
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        names, tensors = saved_names(self._record)
        saved = [f"_saved_{name}" for name in names] + [f"_raw_saved_{name}" for name in tensors]
        return [*super().__dir__(), *saved]


class AccumulateGrad(Node):
    """The node at a leaf: it adds to `variable.grad`, also if it is called with a gradient."""

    __slots__ = ()

    @read_only
    def variable(self) -> Tensor:
        """The leaf."""
        leaf: Tensor = self._record
        return leaf

    def name(self) -> str:
        """Return the name with PyTorch's namespace, torch::autograd::AccumulateGrad."""
        return "torch::autograd::AccumulateGrad"

    next_functions = read_only(lambda node: (), "next_functions")
    metadata = read_only(lambda node: hooks_of(node._record).metadata, "metadata")
    _input_metadata = read_only(lambda node: (InputMetadata(node._record.aval),), "_input_metadata")

    def _sequence_nr(self) -> int:
        """Return the highest number, unless the user has set another: leaves come before all nodes of operators."""
        chosen: int | None = hooks_of(self._record).sequence
        return FIRST if chosen is None else chosen

    def __call__(self, *grads: Tensor | None) -> Any:
        """Add a gradient to `variable.grad`, after the hooks of the variable; return ()."""
        check_grads(grads, 1)
        if grads[0] is not None:
            self._record.backward(grads[0])
        return ()

    def __repr__(self) -> str:
        return f"<AccumulateGrad {self._record.shape}>"


FIRST = 2**64 - 1  # the sequence number of leaves


def check_grads(grads: tuple, count: int) -> None:
    """Raise TypeError unless there are `count` gradients, each a tensor or None."""
    if len(grads) != count:
        raise TypeError(f"expected {count} arguments, got {len(grads)} instead: a node takes one gradient per output")
    for index, g in enumerate(grads):
        if g is not None and not isinstance(g, Tensor):
            raise TypeError(f"argument {index} is not a Variable: a gradient must be a Tensor, not {type(g).__name__}")


@cache
def named_class(base: type, name: str) -> Any:
    """Return the subclass of a class of nodes that has the name of its nodes."""
    return type(base)(name, (base,), {"__slots__": (), "__module__": base.__module__, "__doc__": base.__doc__})


_views: weakref.WeakValueDictionary[int, Any] = (
    weakref.WeakValueDictionary()
)  # by the id of the record; each view holds its record, so ids stay valid


def as_node(edge: GradFn | Tensor | None) -> Any:
    """Return a record or leaf as users see it: the same view as long as somebody holds it; None for None."""
    if edge is None:
        return None
    found = _views.get(id(edge))
    return _views.setdefault(id(edge), _make_view(edge)) if found is None else found


def _make_view(edge: Any) -> Any:
    if isinstance(edge, Tensor):
        cls = AccumulateGrad
    elif edge.rules is None and "ctx" in edge.params:
        return edge.params["ctx"]._as_node(edge)
    else:
        cls = named_class(OperatorNode, edge.name())
    view = object.__new__(cls)
    view._record = edge
    return view


def record_of(node: Node) -> Any:
    """Return the engine's record of a node that a user holds, or the leaf."""
    return node._record


def _grad_fn(self: Tensor) -> Any:
    """The graph node that made this tensor; None for leaves."""
    return as_node(synced_grad_fn(self))


Tensor.grad_fn = read_only(_grad_fn, "grad_fn")  # type: ignore[assignment]
