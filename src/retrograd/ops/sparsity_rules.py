"""Rules for the dependence of an operator's results on its inputs, from which sparse Jacobians are found.

Operators that only move or sum elements need no rule: they run on the elements' labels.  Other operators define
`Definition.dependence`.
"""

import math

from retrograd.core import Tensor, registry
from retrograd.core import dtype as dtypes
from retrograd.core.aval import symbolic
from retrograd.core.tensor import make
from retrograd.core.vjp_rule import arguments
from retrograd.ops import jvp_rules


class Labels:
    """Dependence by labels: an element of the result depends on input elements that share a label.

    Labels are tensors of integers from 1 on; 0 means none.  `out` has the shape of the result, or one more dimension
    for several labels, `into` that of the input.  None: each element is its own label, in row-major order.
    """

    __slots__ = ("into", "out")

    def __init__(self, out, into):
        self.out = out
        self.into = into


def number_elements(shape, first=1):
    """The elements' labels, from 1 on in row-major order; in float64, which every kernel accepts."""
    size = symbolic(shape)
    if size is not None:
        return make(size.make_array(lambda plain: number_elements(plain, first).value, tuple(shape)), None, None)
    numbers = registry["arange"](first, first + math.prod(shape), 1, dtype=dtypes.float64)
    return registry["reshape"](numbers, tuple(shape))


def window_labels(images, out, groups, read_windows):
    """The labels of windows of images (n, c, *sizes) in a result (n, o, *size), with channels in groups.

    `read_windows` returns the elements of each window of images with one channel: (n, positions, *size).
    """
    n, channels, *sizes = images
    numbers = number_elements((n, groups, 1, *sizes))
    labels = read_windows(registry["reshape"](numbers, (n * groups, 1, *sizes)))
    labels = registry["reshape"](labels, (n, groups, 1, labels.shape[1], *out[2:]))
    labels = registry["expand"](labels, (n, groups, out[1] // groups, *labels.shape[3:]))
    into = registry["expand"](numbers, (n, groups, channels // groups, *sizes))
    return Labels(registry["movedim"](labels, 3, -1), into)


def dependence(op, inputs, varies, args, out, params):
    """Return the dependence of results (tensor or tuple) on inputs: pairs of inputs and the rule for each result.

    A rule is `Labels`, or shared dimensions: a dict from dimensions of the input to those of the result, where an
    element depends on all elements with equal indices along these.  Inputs that are moved come together, with
    consecutive labels, others alone.  `varies` states which inputs are not constant: indices that depend on them count
    as unknown, since another point may have others.
    """
    definition, outs = op.definition, [o for o in (out if isinstance(out, tuple) else (out,)) if isinstance(o, Tensor)]
    rule = getattr(definition, "dependence", None)
    if rule is None:  # a user's Function
        return [((i,), [{} for _ in outs]) for i in inputs]
    if definition.elements and not any(v and op.rules[min(j, op.last)] is None for j, v in enumerate(varies)):
        if definition.elements == "moved":
            return [(inputs, _label_tangents(op, inputs, args, out, params))]
        return [((i,), [_label_cotangent(op, i, args, out, params)]) for i in inputs]
    known = [_rule_argument(a, v) for a, v in zip(args, varies, strict=True)]
    return [((i,), [rule(i, o.aval, *known, **params) for o in outs]) for i in inputs]


def _rule_argument(a, varies):
    """The argument as a rule receives it: the aval of a tensor, unless it holds constant indices or conditions."""
    return a if not isinstance(a, Tensor) or (a.dtype.kind in "biu" and not varies) else a.aval


def _label_tangents(op, inputs, args, out, params):
    """The tangents of the results along the elements' labels, given to both parts of a complex element."""
    numbers, first = [None] * len(args), 1
    for i in inputs:
        number = number_elements(args[i].shape, first)
        numbers[i] = registry["complex"](number, number) if args[i].dtype.kind == "c" else number
        first += args[i].numel()
    found = jvp_rules.tangent(op, tuple(map(_widen, args)), tuple(numbers), out, params)
    return [Labels(_complex_labels(labels), None) for labels in (found if isinstance(found, tuple) else (found,))]


def _complex_labels(labels):
    """The labels of elements; for complex ones those of both parts, which may have been moved separately."""
    return registry["view_as_real"](labels) if labels.dtype.kind == "c" else labels


def _label_cotangent(op, i, args, out, params):
    """The cotangent of the input for the results' labels: the result that each element is summed into."""
    grouped = op.schema.group(tuple(map(_widen, args)))
    avals = {f"{name}_aval": a.aval for name, a in grouped.items() if isinstance(a, Tensor)}
    known = {**grouped, **avals, **params}
    rule = op.rules[min(i, op.last)].fn
    return Labels(None, rule(number_elements(out.shape), **{n: known[n] for n in arguments(rule)}))


def _widen(a):
    """A floating or complex operand in a dtype that represents large integers exactly."""
    if not isinstance(a, Tensor) or not dtypes.is_differentiable(a.dtype):
        return a
    return registry["to"](a, dtypes.float64 if dtypes.is_floating(a.dtype) else dtypes.complex128)
