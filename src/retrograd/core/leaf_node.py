"""The node at a leaf, as users see it in the graph; the engine's edges lead to the leaf itself."""

import weakref

from retrograd.core.hooks import add_hook, hooks_of
from retrograd.core.input_metadata import InputMetadata
from retrograd.core.tensor import TensorBase


class AccumulateGrad:
    """The node at a leaf in the graph that users see: it adds to `variable.grad`."""

    __slots__ = ("__weakref__", "variable")

    def __init__(self, variable):
        self.variable = variable

    def name(self):
        """Return the name that PyTorch gives this node."""
        return "AccumulateGrad"

    next_functions = ()

    @property
    def metadata(self):
        """A dict for the user's own data about this node."""
        return hooks_of(self.variable).metadata

    @property
    def _input_metadata(self):
        """Shape, dtype and device of the gradient that arrives at the leaf."""
        return (InputMetadata(self.variable.aval),)

    def register_hook(self, fn):
        """Call `fn(grad_inputs, grad_outputs)` after the gradient was added; there are no grad_inputs."""
        return add_hook(hooks_of(self.variable).after, fn)

    def register_prehook(self, fn):
        """Call `fn(grad_outputs)` before the gradient is added; a tuple that it returns replaces it."""
        return add_hook(hooks_of(self.variable).before, fn)

    def __repr__(self):
        return f"<AccumulateGrad {self.variable.shape}>"


_accumulators = weakref.WeakValueDictionary()  # by the id of the leaf; each node holds its leaf, so ids stay valid


def accumulator(leaf):
    """Return the node at a leaf: the same one as long as somebody holds it."""
    found = _accumulators.get(id(leaf))
    if found is None:
        found = _accumulators.setdefault(id(leaf), AccumulateGrad(leaf))
    return found


def as_node(edge):
    """Return an edge as users see it: the node, with AccumulateGrad for a leaf."""
    return accumulator(edge) if isinstance(edge, TensorBase) else edge
