"""Sparsity patterns: which unknowns the elements of every tensor depend on, recorded while the program runs."""

from collections.abc import Callable
from typing import Any

from retrograd.backend import sparse
from retrograd.core import Op, Tensor, call
from retrograd.core.dtype import is_differentiable
from retrograd.core.level import tags_at, values_at, wrap_result
from retrograd.core.tensor import make
from retrograd.levels.flatten_nested import flatten_nested
from retrograd.levels.outer_grads import OuterGradLevel
from retrograd.levels.unwrap import outputs
from retrograd.ops.sparsity_rules import Labels, dependence


class PatternLevel(OuterGradLevel):
    """A tensor's tag is its dependence on the unknowns, a boolean SciPy array; None marks a constant.

    The tag of a value that varies without derivative, such as a comparison or random numbers, has no entries.
    """

    own_mode = False
    grads_differ = True

    def __init__(self, function: Callable | None = None) -> None:
        self.function = function
        self.unknowns = 0

    def input(self, value: Tensor) -> Tensor:
        """Return the tensor whose elements are the unknowns."""
        self.unknowns = value.numel()
        return make(value, self, sparse.identity_dependence(self.unknowns))

    def pattern(self, out: Tensor) -> Any:
        """Return the dependence of a tensor's elements."""
        if out.level is self and out.tag is not None:
            return sparse.as_pattern(out.tag)
        return sparse.no_dependence(out.numel(), self.unknowns)

    def lost_derivatives(self, tensor: Tensor) -> str:
        """Return "has a sparsity pattern", for errors, if the tensor's elements have derivatives, else ""."""
        return "has a sparsity pattern" if tensor.tag is not None and tensor.tag.nnz else ""

    def process(self, op: Op, args: tuple, params: dict) -> Any:
        """Run the operator on the values, and compute the dependence of its results."""
        values, tags = values_at(self, args), tags_at(self, args)
        out = call(op, values, params)
        # Random numbers vary between runs, so they are no constants: they get an empty tag.
        if tags is None and not op.random:
            return wrap_result(self, out, None)
        found = iter(self._dependence_of_results(op, tags or (None,) * len(args), values, out, params))
        return outputs(out, lambda o: make(o, self, next(found)))

    def _dependence_of_results(self, op: Op, tags: tuple, values: tuple, out: Any, params: dict) -> list:
        """Return the dependence of each result: the union over the inputs."""
        outs: list[Tensor] = []
        outputs(out, outs.append)
        found = [sparse.no_dependence(o.numel(), self.unknowns) for o in outs]
        varies = tuple([tag is not None for tag in tags])
        inputs = tuple([i for i, tag in enumerate(tags) if tag is not None and tag.nnz and op.differentiable])
        for group, links in dependence(op, inputs, varies, values, out, params) if inputs else ():
            tag = sparse.concat_dependences([tags[i] for i in group])
            for k, (o, link) in enumerate(zip(outs, links, strict=True)):
                if is_differentiable(o.dtype):
                    more = _propagate(link, tag, values[group[0]], o)
                    # A sum copies both patterns, so an empty one is replaced.
                    found[k] = found[k] + more if found[k].nnz else more
        return found


def _propagate(link: Labels | dict, tag: Any, x: Tensor, out: Tensor) -> Any:
    """Return the dependence of a result's elements on the unknowns through one input."""
    if isinstance(link, dict):
        if x.shape == out.shape and link == {d: d for d in range(x.ndim)}:
            return tag
        into, labels = sparse.shared_labels(x.shape, out.shape, link)
    else:
        into = None if link.into is None else sparse.as_labels(flatten_nested(link.into)[0].value, x.numel())
        labels = None if link.out is None else sparse.as_labels(flatten_nested(link.out)[0].value, out.numel())
    return sparse.propagate_dependence(tag, into, labels, out.numel())
