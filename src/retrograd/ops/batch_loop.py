"""Loops over the examples of a batch, for operators that can't run on all at once."""

from retrograd.core import Definition, call, registry
from retrograd.core.aval import Aval
from retrograd.core.level import NotBatchedError
from retrograd.core.op import operator_named
from retrograd.core.tensor import TensorBase
from retrograd.ops.opmath import Family


class PerformanceWarning(UserWarning):
    """Warns of something that runs as asked for, but slower than it could."""


def iter_examples(batched, n, args):
    """Yield the arguments of each example: slices of those that are batched, the others as they are."""
    at = operator_named("slice")
    for i in range(n):
        yield tuple([at(a, spec=(i,)) if b else a for a, b in zip(args, batched, strict=True)])


joins = []  # the function that joins tensors of different shapes: see the package's root


def stack_results(results, joined=None):
    """Return the results of all examples, tensors or tuples of tensors, stacked along a new first dimension.

    `joined` is for results that differ in shape; without it they are an error.
    """
    if isinstance(results[0], tuple):
        return tuple([stack_results(parts, joined) for parts in zip(*results, strict=True)])
    shapes = list(dict.fromkeys([r.shape for r in results]))
    if len(shapes) > 1 and joined is not None:
        return joined(results)
    if len(shapes) > 1:
        raise NotBatchedError(
            f"vmap: the results of the examples differ in shape: {', '.join(sorted(map(str, shapes)))}"
        )
    return operator_named("stack")(results)


def example_avals(batched, args):
    """Return the avals of the arguments of one example, as a shape rule gets them."""
    return [_example_aval(a) if b else getattr(a, "aval", a) for a, b in zip(args, batched, strict=True)]


def empty_batch(operator, batched, args, params):
    """Return the result for a batch without examples, by the operator's shape rule."""
    out = operator.definition.shape(*example_avals(batched, args), **params)
    zeros = operator_named("zeros")
    if isinstance(out, tuple):
        return tuple([zeros((0, *o.shape), dtype=o.dtype) for o in out])
    return zeros((0, *out.shape), dtype=out.dtype)


def _example_aval(a):
    assert isinstance(a, TensorBase)
    return Aval(a.shape[1:], a.dtype)


class PerExample(Family):
    """The base class of operators that run on one example at a time; `vmap_fallback` says why."""

    vmap_fallback = ""

    @classmethod
    def batch(cls, batched, n, /, *args, **params):
        """Run the operator on one example after the other."""
        operator = registry[cls.__name__]
        if n == 0:
            return empty_batch(operator, batched, args, params)
        return stack_results([call(operator, one, params) for one in iter_examples(batched, n, args)])


class DataDependent(Definition):
    """The base class of operators whose results have a size that depends on the values of the inputs."""

    @classmethod
    def batch(cls, batched, n, /, *args, **params):
        """Raise NotBatchedError: the results of the examples may differ in size."""
        raise cls.not_batched(
            "how large its result is depends on the values (vmap: We do not support batching operators that can output "
            "dynamic shape)"
        )
