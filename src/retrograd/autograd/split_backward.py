"""A backward pass in two halves: the gradients of inputs first, those of weights later.

The first half runs the nodes that lead to an input, restricted to the edges that lead to an input.  If such a node has
other edges, which lead to weights only, a copy of it is stored: with these edges, the saved values that their rules
read, and the cotangents that arrive.  The second half starts from the copies.  So every rule runs once, in the half
that needs its result, and the terms of a weight's gradient are summed in the order of an undivided pass.
"""

import weakref
from collections.abc import Sequence
from typing import Any, TypedDict

from retrograd.autograd.backward import backward
from retrograd.autograd.graph import GradientEdge
from retrograd.autograd.node_views import as_node
from retrograd.autograd.seeds import make_seeds
from retrograd.core import GradFn, Tensor, current, graph_level
from retrograd.core.engine import edge_of, needed_for, pullback, reachable_from
from retrograd.core.graph import node, output_aval
from retrograd.core.hooks import Hooks, conjugate
from retrograd.core.tensor import count_of
from retrograd.core.vjp_rule import INPUT

Grads = tuple[Tensor | None, ...]
Start = tuple[Any, Grads]  # a start of the second half: a node or leaf, and the cotangent of each output


class ParamGroup(TypedDict, total=False):
    """Weights with all the nodes that compute their gradients; these nodes lead to no weight of another group."""

    params: list[Tensor]
    intermediates: list[Any]
    grads: list[Grads]
    versions: list[tuple[int, ...]]


def backward_input(
    outputs: Sequence[Tensor],
    gradients: Sequence[Tensor | None] | None,
    inputs: Sequence[Tensor],
    weights: Sequence[Tensor],
) -> tuple[list[Tensor | None], list[ParamGroup]]:
    """Return the gradients of the inputs, and the groups for `backward_weight`. Values saved for inputs only are freed.

    A weight that is an input too, or leads to one, is in no group.  Raises as `autograd.grad` does, and
    NotImplementedError inside a transform.

    >>> import retrograd as rg
    >>> x, w = rg.tensor([1.0, 2.0], requires_grad=True), rg.tensor([3.0, 4.0], requires_grad=True)
    >>> gradients, groups = backward_input([x * w], [rg.ones(2)], [x], [w])
    >>> gradients, w.grad
    ([tensor([3., 4.])], None)
    >>> backward_weight(groups)
    >>> w.grad
    tensor([1., 2.])
    """
    if graph_level() is not None:
        raise NotImplementedError("a backward pass in halves does not run inside a function transform")
    roots, seeds = [edge_of(out) for out in outputs], make_seeds("backward", list(outputs), gradients)
    targets, leaves = [edge_of(x) for x in inputs], [edge_of(w)[0] for w in weights]
    compiled = _split_compiled_calls([end for end, _ in roots], targets, leaves)
    try:
        found, starts, second = run_first_half(roots, seeds, targets, leaves, compiled)
    finally:
        rests = [fn.op.end_split(fn) for fn in compiled]
    starts += [start for start in rests if start is not None]
    return [conjugate(g) for g in found], _group_weights(starts, weights, second)


def run_first_half(
    roots: Sequence[Any], seeds: Sequence[Any], targets: Sequence[Any], leaves: Sequence[Any], split: Sequence[Any] = ()
) -> tuple[list[Any], list[Start], set]:
    """Return the cotangents of the targets, the starts of the second half, the latest first, and what it runs.

    `roots` and `targets` are edges, `leaves` nodes or leaves where the second half ends. The nodes in `split` keep what
    the second half needs of them.
    """
    ends = [end for end, _ in roots]
    first, second = _find_halves(ends, targets, leaves)
    border = [fn for fn in reachable_from(ends) if fn in first and isinstance(fn, GradFn) and fn not in split]
    copies = {fn: _copy_for_weights(fn, second) for fn in border if not second.isdisjoint(fn.edges)}
    border_outputs = [(fn, number) for fn in copies for number in range(len(fn.out_avals or (None,)))]
    found = pullback(roots, seeds, level=current().level, inputs=[*targets, *border_outputs])
    starts = [(end, (None,) * number + (seed,)) for (end, number), seed in zip(roots, seeds, strict=True)]
    starts = [start for start in starts if start[0] in second]
    starts += [_attach_cotangents(fn, copies[fn], found) for fn in sorted(copies)]  # the latest first
    return [found.get(end if isinstance(end, Tensor) else (end, number)) for end, number in targets], starts, second


def _find_halves(ends: Sequence[Any], targets: Sequence[Any], leaves: Sequence[Any]) -> tuple[set, set]:
    """Return the nodes and leaves of each half."""
    first = needed_for(ends, [end for end, _ in targets])
    return first, needed_for(ends, leaves) - first


def _split_compiled_calls(ends: Sequence[Any], targets: Sequence[Any], leaves: Sequence[Any]) -> list[Any]:
    """Return the nodes of compiled calls that run in both halves, each by a part of it.

    A call that cannot be split leads to the nodes inside, each of which is in one half or the other.
    """
    first, second = _find_halves(ends, targets, leaves)
    calls = [fn for fn in reachable_from(ends) if hasattr(getattr(fn, "op", None), "begin_split")]
    both = [fn for fn in calls if fn in first and not second.isdisjoint(fn.edges)]
    return [fn for fn in both if fn.op.begin_split(fn, first, second)]


def backward_weight(groups: Sequence[ParamGroup], retain_graph: bool = False) -> None:
    """Add the gradients of the groups' weights to their `.grad`, in one pass.

    A group can be used once, unless `retain_graph`.  Raises RuntimeError for a group that was used already, and if a
    gradient stored in it has been written to.
    """
    roots, gradients, weights = [], [], []
    for group in groups:
        if "grads" not in group:
            raise RuntimeError(
                "these weights have had their gradients: a param_group is played once; retain_graph=True keeps it"
            )
        _check_versions(group)
        weights += group["params"]
        for end, grads in zip(group["intermediates"], group["grads"], strict=True):
            roots += [GradientEdge(as_node(end), number) for number, g in enumerate(grads) if g is not None]
            gradients += [conjugate(g) for g in grads if g is not None]
    if roots:
        backward(roots, gradients, retain_graph=retain_graph, inputs=weights)
    if not retain_graph:
        for group in groups:
            del group["intermediates"], group["grads"]


def _check_versions(group: ParamGroup) -> None:
    """Raise if a gradient that waits for the second half has been written to."""
    for grads, versions in zip(group["grads"], group["versions"], strict=True):
        for g, version in zip(grads, versions, strict=True):
            if g is not None and count_of(g) != version:
                raise RuntimeError(
                    f"a gradient of shape {g.shape} that waits for the weights has been modified in place since the "
                    f"first half; write to a copy, gradient.clone(), or after stage_backward_weight"
                )


def _copy_for_weights(fn: GradFn, second: set) -> GradFn:
    """Return a copy of a node for its edges of the second half, with the same creation number and node hooks."""
    edges = tuple([edge if edge in second else None for edge in fn.edges])
    copy: Any = node(fn.op, fn.rules, fn.params, edges, fn.has_list_input)
    copy.numbers, copy.versions, copy.avals, copy.out_avals = fn.numbers, fn.versions, fn.avals, fn.out_avals
    copy.out_kind = output_aval(fn, 0)
    copy.sequence, copy.freed, copy.trace = fn.sequence, fn.freed, fn.trace
    copy.saved = fn.saved if fn.rules is None or fn.saved is None else _select_saved(fn, edges)
    if fn._hooks is not None:  # tensor hooks have run already, when the cotangents arrived
        copy._hooks = hooks = Hooks()
        hooks.before, hooks.after = fn._hooks.before, fn._hooks.after
    return copy


def _select_saved(fn: GradFn, edges: Sequence[Any]) -> tuple:
    """Return the saved values that the rules of some edges read."""
    last, read = len(fn.rules) - 1, set()
    for index, edge in enumerate(edges):
        if edge is not None:
            rule = fn.rules[min(index, last)]
            read |= {key for kind, key in zip(rule.kinds, rule.keys, strict=True) if kind == INPUT}
            read |= {len(fn.saved) - 1} if rule.needs_out else set()
    return tuple([value if index in read else None for index, value in enumerate(fn.saved)])


def _attach_cotangents(fn: GradFn, copy: GradFn, found: dict) -> Start:
    """Return a stashed node with its cotangents. From now on the copy is the node of a user's ctx."""
    if "ctx" in fn.params:
        fn.params["ctx"]._node = weakref.ref(copy)
    return copy, tuple([found.get((fn, number)) for number in range(len(fn.out_avals or (None,)))])


def _group_weights(starts: Sequence[Start], weights: Sequence[Tensor], second: set) -> list[ParamGroup]:
    """Return connected starts and weights in groups: no weight of a group can be reached from another group."""
    parent: dict[Any, Any] = {}

    def find_root(end: Any) -> Any:
        while parent.setdefault(end, end) is not end:
            parent[end] = end = parent[parent[end]]
        return end

    live = [start for start in starts if any(g is not None for g in start[1])]
    stack = [end for end, _ in live]
    while stack:
        end = stack.pop()
        find_root(end)
        for edge in () if isinstance(end, Tensor) else end.edges:
            if edge in second:
                if edge not in parent:
                    stack.append(edge)
                parent[find_root(edge)] = find_root(end)
    groups: dict[Any, ParamGroup] = {}
    for end, grads in live:
        group = groups.setdefault(find_root(end), ParamGroup(params=[], intermediates=[], grads=[], versions=[]))
        group["intermediates"].append(end)
        group["grads"].append(grads)
        group["versions"].append(tuple([0 if g is None else count_of(g) for g in grads]))
    for weight in weights:
        if edge_of(weight)[0] in parent:
            groups[find_root(edge_of(weight)[0])]["params"].append(weight)
    return list(groups.values())
