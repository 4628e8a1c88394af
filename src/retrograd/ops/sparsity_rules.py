"""How the elements of an operator's result depend on those of its inputs: what sparse Jacobians are found by.

Operators that only move elements, or only add them up, say it themselves: they run on the elements' numbers.  Of the
others a rule says it, `Definition.dependence`.
"""

import math

from retrograd.core import Tensor, registry
from retrograd.core import dtype as dtypes
from retrograd.core.aval import symbolic
from retrograd.core.graph import arguments
from retrograd.core.tensor import make


class Labels:
    """An element of the result depends on those of the input that have one of its labels.

    Labels are tensors of whole numbers from 1 on, 0 is no label.  `out` has the shape of the result, or one dimension
    more for several labels, `into` that of the input.  None: elements are their own labels, in row-major order.
    """

    __slots__ = ("into", "out")

    def __init__(self, out, into):
        self.out = out
        self.into = into


def numbered(shape, first=1):
    """The elements' numbers, from 1 on, in row-major order; in float64, which every kernel takes."""
    size = symbolic(shape)
    if size is not None:
        return make(size.made(lambda plain: numbered(plain, first).value, tuple(shape)), None, None)
    numbers = registry["arange"](first, first + math.prod(shape), 1, dtype=dtypes.float64)
    return registry["reshape"](numbers, tuple(shape))


def windows_seen(images, out, groups, see):
    """The labels of windows of images (n, c, *sizes) in a result (n, o, *size), channels being in groups.

    `see` says of images with one channel what each place of a window shows: (n, places, *size).
    """
    n, channels, *sizes = images
    numbers = numbered((n, groups, 1, *sizes))
    seen = see(registry["reshape"](numbers, (n * groups, 1, *sizes)))
    seen = registry["reshape"](seen, (n, groups, 1, seen.shape[1], *out[2:]))
    seen = registry["expand"](seen, (n, groups, out[1] // groups, *seen.shape[3:]))
    into = registry["expand"](numbers, (n, groups, channels // groups, *sizes))
    return Labels(registry["movedim"](seen, 3, -1), into)


def dependence(op, inputs, varies, args, out, params):
    """How the results, a tensor or a tuple of them, depend on inputs: pairs of inputs and what holds for each result.

    That is `Labels`, or shared dimensions: a dict from those of the input to those of the result, where an element
    depends on all elements that lie at its place along these.  Inputs that are moved come together, their elements
    numbered on and on; others alone.  `varies` says which inputs are no constants: places that depend on them may be
    any, since the next point may have others.
    """
    of, outs = op.definition, [o for o in (out if isinstance(out, tuple) else (out,)) if isinstance(o, Tensor)]
    rule = getattr(of, "dependence", None)
    if rule is None:  # a user's Function
        return [((i,), [{} for _ in outs]) for i in inputs]
    if (of.moves or of.sums) and not any(v and op.rules[min(j, op.last)] is None for j, v in enumerate(varies)):
        if of.moves:
            return [(inputs, _moved(op, inputs, args, out, params))]
        return [((i,), [_summed(op, i, args, out, params)]) for i in inputs]
    known = [_known(a, v) for a, v in zip(args, varies, strict=True)]
    return [((i,), [rule(i, o.aval, *known, **params) for o in outs]) for i in inputs]


def _known(a, varies):
    """What a rule sees of an argument: the aval of a tensor, unless it holds constant places or choices."""
    return a if not isinstance(a, Tensor) or (a.dtype.kind in "biu" and not varies) else a.aval


def _moved(op, inputs, args, out, params):
    """The tangents of the results along the elements' numbers, which both parts of a complex element have."""
    numbers, first = [None] * len(args), 1
    for i in inputs:
        number = numbered(args[i].shape, first)
        numbers[i] = registry["complex"](number, number) if args[i].dtype.kind == "c" else number
        first += args[i].numel()
    found = op.definition.jvp(op, tuple(map(_widened, args)), tuple(numbers), out, params)
    return [Labels(_of_both_parts(labels), None) for labels in (found if isinstance(found, tuple) else (found,))]


def _of_both_parts(labels):
    """The labels of elements; of complex ones those of both parts, which may have been moved there one by one."""
    return registry["view_as_real"](labels) if labels.dtype.kind == "c" else labels


def _summed(op, i, args, out, params):
    """The cotangent of the input for the results' numbers: where each element goes."""
    grouped = op.schema.group(tuple(map(_widened, args)))
    avals = {f"{name}_aval": a.aval for name, a in grouped.items() if isinstance(a, Tensor)}
    known = {**grouped, **avals, **params}
    rule = op.rules[min(i, op.last)].fn
    return Labels(None, rule(numbered(out.shape), **{n: known[n] for n in arguments(rule)}))


def _widened(a):
    """A floating or complex operand in a dtype that holds large numbers exactly."""
    if not isinstance(a, Tensor) or a.dtype.kind not in "fc":
        return a
    return registry["to"](a, dtypes.float64 if a.dtype.kind == "f" else dtypes.complex128)
