"""`backward` and `grad`: check the arguments and run passes of the engine.

Inside, cotangents are transposed linear maps; PyTorch's gradients of complex tensors are their conjugates
(the direction of steepest ascent), so complex gradients are conjugated where they enter and leave.
"""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from retrograd import levels
from retrograd.autograd.grad_dtype import in_grad_dtype
from retrograd.autograd.graph import GradientEdge
from retrograd.autograd.node_views import record_of
from retrograd.autograd.outer_graph import OuterGraph
from retrograd.autograd.seeds import as_list, gradients_as_list, make_seeds
from retrograd.core import Level, Tensor, at, current, graph_level, registry
from retrograd.core.aval import describe_difference
from retrograd.core.blocks import generator_block
from retrograd.core.engine import (
    accumulating,
    add_into,
    edge_of,
    match_layout,
    pullback,
    simple_backward,
    simple_gradients,
    sum_of_gradients,
)
from retrograd.core.hooks import conjugate
from retrograd.core.op import compound, is_foreign
from retrograd.core.overrides import override_result
from retrograd.core.tensor import make
from retrograd.core.views import requires_grad_synced
from retrograd.foundation.source_location import warn_user
from retrograd.levels import value_at
from retrograd.levels.outer_grads import OuterGradLevel
from retrograd.ops.mutate import stateful_levels

Inputs = Tensor | GradientEdge | Sequence[Tensor | GradientEdge]


def backward(
    tensors: Inputs,
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Inputs | None = None,
) -> None:
    """Add the gradients of `tensors` to `.grad` of every leaf that they depend on, or of `inputs` only.

    `grad_tensors` has one cotangent per tensor, with its shape; None means 1 if the tensor has a single element.  Saved
    values are freed unless `retain_graph` (default: `create_graph`).

    Raises RuntimeError for a missing or unfit cotangent, a tensor that requires no gradient, empty inputs and
    a graph whose values are freed.

    >>> import retrograd as rg
    >>> x = rg.tensor([1.0, 2.0], requires_grad=True)
    >>> rg.autograd.backward((x * x).sum())
    >>> x.grad
    tensor([2., 4.])
    """
    if grad_variables is not None:
        warn_user("backward: grad_variables is deprecated, use grad_tensors", FutureWarning)
        if grad_tensors is not None:
            raise RuntimeError(
                "backward: `grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`; use "
                "the former"
            )
        grad_tensors = grad_variables
    alone = isinstance(tensors, Tensor) and not is_foreign(tensors)
    if not alone and (foreign := _foreign_operands(tensors, inputs, grad_tensors)):
        override_result(backward, foreign, (tensors, grad_tensors, retain_graph, create_graph), {"inputs": inputs})
        return
    roots = as_list("backward", tensors)
    targets = None if inputs is None else as_list("backward", inputs)
    if targets is not None and not targets:
        raise RuntimeError(
            "backward: `inputs` argument to `backward()` cannot be empty; without it every leaf gets a gradient"
        )
    for index, target in enumerate(targets or ()):
        _check_target(target, index)
    seeds = make_seeds("backward", roots, grad_tensors)
    for target in targets or ():
        if isinstance(target, Tensor) and target.level is None and not target.is_leaf:
            target.retain_grad()  # from now on, as in PyTorch
    if create_graph:
        warn_user(
            "Using backward() with create_graph=True makes a reference cycle: the leaf holds its .grad, whose graph "
            "holds the leaf. Use autograd.grad() instead, or set .grad to None after use; otherwise memory is freed "
            "only when Python's cycle collector runs."
        )
    _run_backward(list(zip(roots, seeds, strict=True)), targets, create_graph, retain_graph)


def _run_backward(pairs: list, targets: list | None, create_graph: bool, retain_graph: bool | None) -> None:
    """Run the pass at the current level, then continue one level below, down to the ground."""
    # Each level has its own graph. An output may be in the graph of this level, and its value in one further down:
    # first the nodes of this level run, then the same outputs are followed one level below.
    level = graph_level()
    own_pairs = [(root, seed) for root, seed in pairs if _is_in_graph(root, level)]
    own_targets = (
        None if targets is None else [_engine_edge(target) for target in targets if _is_in_graph(target, level)]
    )
    if own_pairs and own_targets != []:
        accumulate = _accumulate_with_graph if create_graph else _accumulate
        found = _run_engine(own_pairs, own_targets, create_graph, retain_graph, accumulate)
        with at(current().level, create_graph):
            for target, g in found.items():
                tensor = _tensor_of_target(target, targets)
                if tensor is not None and g is not None and not tensor.retains_grad:
                    accumulate(tensor, g, False)
    if level is not None:
        lifted_pairs = [(_lift(level, root), seed) for root, seed in pairs if isinstance(root, Tensor)]
        if any(root.value.requires_grad for root, _ in lifted_pairs):
            _run_backward_below(level, lifted_pairs, targets, create_graph, retain_graph)


def _run_backward_below(
    level: Level, pairs: list, targets: list | None, create_graph: bool, retain_graph: bool | None
) -> None:
    """Continue one level below, and update the `.grad` of outer tensors that the program at this level reads."""
    roots, seeds = [root for root, _ in pairs], [seed for _, seed in pairs]
    graph = OuterGraph(level, roots, None if targets is None else [_engine_edge(t)[0] for t in targets])
    leaves = [t for t in graph.leaves if targets is None or _contains(t, targets)]
    # `vmap` turns one pass into a pass over the summed examples, or one per example if hooks must see each gradient.
    with _update_outer_grads(level, graph, [*leaves, *graph.retained], roots, seeds, create_graph), level.below():
        passes = level.lower_passes(pairs, graph.has_hooks)
        for i, lower in enumerate(passes):
            _run_backward(lower, targets, create_graph, True if i + 1 < len(passes) else retain_graph)


@generator_block
def _update_outer_grads(
    level: Level, graph: OuterGraph, tensors: list, roots: list, seeds: list, create_graph: bool
) -> Iterator[None]:
    """Return a block after which `.grad` of outer tensors, as read at the level, contains this pass's gradients."""
    in_both = create_graph and any(_is_in_graph(x, level) for x in (*roots, *seeds))
    entries = level.outer_grads.entries(tensors, in_both) if isinstance(level, OuterGradLevel) else []
    yield
    added = partial(_outer_grad_term, level, graph, roots, seeds, create_graph)
    for entry in entries:
        entry.add(added, create_graph)


def _outer_grad_term(
    level: Level, graph: OuterGraph, roots: list, seeds: list, create_graph: bool, tensor: Tensor
) -> Tensor | None:
    """Return the gradient that a pass has added to an outer tensor, as a tensor of the level."""
    hooks = tensor._hooks
    if hooks is not None and (hooks.before or hooks.accumulated or hooks.after):
        raise RuntimeError(
            f"grad: what .grad of this tensor, of shape {tensor.shape}, would be inside {type(level).__name__} is not "
            f"known, because hooks run when it is accumulated; read it outside, or register a hook on the tensor itself"
        )
    with graph.restore_saved():
        (g,) = _outer_cotangents(level, create_graph, roots, seeds, [tensor])
    return None if g is None else conjugate(g)


def _contains(target: Any, targets: list) -> bool:
    return any(target is other for other in targets)


def _are_outside(level: Level, tensors: Sequence[Tensor | GradientEdge]) -> bool:
    """Return whether all tensors are in one graph outside this level, whose nodes can run on the level's cotangents."""
    known = [t for t in tensors if isinstance(t, Tensor)]
    levels = {t.level for t in known}
    return len(levels) < 2 and level not in levels and all(requires_grad_synced(t) for t in known)


def _lift(level: Level, root: Tensor) -> Tensor:
    """Return an output as a tensor of the level; an outer one becomes a constant."""
    return root if root.level is level else make(root, level, None)


def _is_in_graph(tensor: Tensor | GradientEdge, level: Level | None) -> bool:
    """Return whether a tensor is in the graph of a level, not of one below."""
    return isinstance(tensor, GradientEdge) or (tensor.level is level and requires_grad_synced(tensor))


def grad(
    outputs: Inputs,
    inputs: Inputs,
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """Return the gradients of `outputs` with respect to `inputs`, as a tuple; no `.grad` changes.

    `outputs` and `inputs` are tensors, edges, or sequences of them; `grad_outputs` has one cotangent per
    output, with its shape; None means 1 if the output has a single element.  Each gradient has the shape and dtype of
    its input.

    Raises RuntimeError for an input that the outputs do not depend on, unless `allow_unused` (its gradient is None) or
    `materialize_grads` (it is zeros), for missing or unfit cotangents, for no inputs at all, and for a graph whose
    values are freed; ValueError for `materialize_grads` without `allow_unused`.

    >>> import retrograd as rg
    >>> x = rg.tensor(3.0, requires_grad=True)
    >>> rg.autograd.grad(x**3, x)
    (tensor(27.),)
    """
    special = create_graph or is_grads_batched or materialize_grads or grad_outputs is not None or not only_inputs
    if not special and isinstance(inputs, (Tensor, tuple, list)):
        found = simple_gradients(outputs, (inputs,) if isinstance(inputs, Tensor) else inputs, bool(retain_graph))
        if found is not None:
            return _fill_unused(found, inputs, (), bool(allow_unused), False, False)
    foreign = _foreign_operands(outputs, inputs, grad_outputs)
    if foreign:
        options = {
            "grad_outputs": grad_outputs,
            "retain_graph": retain_graph,
            "create_graph": create_graph,
            "allow_unused": allow_unused,
            "materialize_grads": materialize_grads,
        }
        given = [value if isinstance(value, (tuple, list)) else (value,) for value in (outputs, inputs)]
        return override_result(grad, foreign, (*map(tuple, given),), options)
    if not only_inputs:
        warn_user("grad: only_inputs=False is ignored; use backward()", FutureWarning)
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "grad: Expected allow_unused to be True or not passed when materialize_grads=True, which fills in unused "
            "inputs, but got: allow_unused=False"
        )
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    roots, targets = as_list("grad", outputs), as_list("grad", inputs)
    if not targets:
        raise RuntimeError(
            "grad: `inputs` argument to `grad()` cannot be empty; name the tensors whose gradients are wanted"
        )
    for index, target in enumerate(targets):
        _check_target(target, index)
    if is_grads_batched:
        results, batch = _batched_cotangents(roots, grad_outputs, targets, create_graph, retain_graph)
    else:
        seeds, batch = make_seeds("grad", roots, grad_outputs), ()
        results = _cotangents(create_graph, retain_graph, roots, seeds, targets)
    gradients = [None if g is None else conjugate(g) for g in results]
    return _fill_unused(gradients, targets, batch, allow_unused, materialize_grads, create_graph)


def _cotangents(
    create_graph: bool, retain_graph: bool | None, roots: list, seeds: list, targets: list
) -> list[Tensor | None]:
    """Return the cotangent of each target, from the graph of its level; None where nothing flows."""
    level = graph_level()
    # If everything is outside this level, its nodes can run on cotangents of the level without leaving it.
    if level is not None and _are_outside(level, (*roots, *targets)):
        pairs = list(zip(roots, seeds, strict=True))
        with _set_outer_retained_grads(level, [_lift(level, root) for root in roots], seeds, targets):
            return _select_cotangents(
                _run_engine(pairs, [_engine_edge(t) for t in targets], create_graph, retain_graph, None), targets
            )
    own = [target for target in targets if level is None or _is_in_graph(target, level)]
    outer = [target for target in targets if not _contains(target, own)]
    own_pairs = [(root, seed) for root, seed in zip(roots, seeds, strict=True) if _is_in_graph(root, level)]
    found = (
        _run_engine(own_pairs, [_engine_edge(t) for t in own], create_graph, retain_graph, None)
        if own_pairs and own
        else {}
    )
    results, others = iter(_select_cotangents(found, own)), iter(list[Tensor | None]())
    if level is not None and outer:
        others = iter(_outer_cotangents(level, create_graph, roots, seeds, outer))
    return [next(results if _contains(target, own) else others) for target in targets]


def _outer_cotangents(level: Level, create_graph: bool, roots: list, seeds: list, targets: list) -> list[Tensor | None]:
    """Return the cotangents of targets that are in graphs below the level."""
    if create_graph and any(_is_in_graph(x, level) for x in (*roots, *seeds)):
        raise RuntimeError(
            f"grad: an input of shape {targets[0].shape} is in the graph of an outer transform or of the program "
            f"around, the outputs or their cotangents are in that of {type(level).__name__} too; with "
            f"create_graph=True the result would lack its derivative there. Pass that input to the function as an "
            f"argument."
        )
    if not all(above.observes for above in stateful_levels()):
        raise NotImplementedError(
            f"grad: an input of shape {targets[0].shape} is in the graph of an outer transform or of the program "
            f"around, which the dual_level does not see; enter that outside of {type(level).__name__}"
        )
    lifted = [_lift(level, root) for root in roots]
    pull = partial(_cotangents, create_graph, True)  # several passes may walk the graph
    with _set_outer_retained_grads(level, lifted, seeds, targets) as graph, level.below():
        if graph.has_hooks and level.forward_mode:
            raise NotImplementedError(
                f"grad: hooks on tensors from around {type(level).__name__} would not see the tangents of their "
                f"gradients; register them inside, or take them away"
            )
        found: list = level.vjp_below(pull, lifted, seeds, targets)
    return found


@generator_block
def _set_outer_retained_grads(level: Level, roots: list, seeds: list, targets: list) -> Iterator[OuterGraph]:
    """Return a block for passes through graphs outside the level; it sets the retained gradients of results there."""
    graph = OuterGraph(level, roots, [_engine_edge(t)[0] for t in targets])
    with graph.restore_saved():
        yield graph
    if graph.retained:
        below = [value_at(level, target) for target in targets]
        with _update_outer_grads(level, graph, graph.retained, roots, seeds, False), level.below():
            for lower in level.lower_passes(list(zip(roots, seeds, strict=True)), graph.has_hooks):
                _cotangents(False, True, [root for root, _ in lower], [seed for _, seed in lower], below)


def _batched_cotangents(
    roots: list, gradients: Any, targets: list, create_graph: bool, retain_graph: bool | None
) -> tuple[list[Tensor | None], tuple[int, ...]]:
    """Return the cotangents for a batch of seeds (along the first dimension) in one pass, and the batch size."""
    given = [None] * len(roots) if gradients is None else gradients_as_list("grad", gradients)
    sizes = {g.shape[:1] for g in given if isinstance(g, Tensor)}
    if len(sizes) != 1 or sizes == {()}:
        raise RuntimeError(
            f"grad: with is_grads_batched=True every gradient has the batch as its first dimension, of one size; got "
            f"{[getattr(g, 'shape', None) for g in given]}"
        )
    ((n,),) = sizes
    with at(current().level, create_graph):
        with levels.VmapLevel(n) as level:
            batched = [make(g, level, "the gradient") if isinstance(g, Tensor) else g for g in given]
            _check_batched(roots, batched)
            results = _cotangents(create_graph, retain_graph, roots, make_seeds("grad", roots, batched), targets)
        return [None if g is None else level.all_examples(g) for g in results], (n,)


def _check_batched(roots: list, batched: list) -> None:
    """Raise RuntimeError unless the cotangents, without their batch dimension, have the shapes of the outputs."""
    for index, (root, g) in enumerate(zip(roots, batched, strict=False)):
        if isinstance(g, Tensor) and isinstance(root, Tensor) and g.shape != root.shape:
            raise RuntimeError(
                f"grad: If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                f"dimension. Mismatch in shape: grad_output[{index}] has a shape of {g.shape} without it, and "
                f"output[{index}] has a shape of {root.shape}{describe_difference(root.shape, g.shape)}"
            )


def _select_cotangents(found: dict, targets: list) -> list[Tensor | None]:
    """Return the cotangent of each target from the results of a pass."""
    ends = [_engine_edge(target) for target in targets]
    return [found.get(edge if isinstance(edge, Tensor) else (edge, number)) for edge, number in ends]


def _foreign_operands(*values: Any) -> list:
    """Return the operands, alone or in sequences, whose classes implement `__tensor_function__`."""
    found = []
    for value in values:
        members = value if isinstance(value, (tuple, list)) else (value,)
        found += [m for m in members if m is not None and is_foreign(m)]
    return found


def _engine_edge(target: Tensor | GradientEdge) -> tuple[Any, int]:
    """Return the engine's edge at which the gradient of a target arrives."""
    if isinstance(target, Tensor):
        return edge_of(target)
    return record_of(target.node), target.output_nr


def _check_target(target: Any, index: int) -> tuple[Any, int]:
    if isinstance(target, GradientEdge):
        return _engine_edge(target)
    if not isinstance(target, Tensor):
        raise TypeError(f"inputs[{index}]: expected a Tensor or GradientEdge, got {type(target).__name__}")
    if not target.requires_grad:
        raise RuntimeError(
            f"One of the differentiated Tensors does not require grad: inputs[{index}], of shape {target.shape}; "
            f"can't retain_grad on Tensor that has requires_grad=False"
        )
    return edge_of(target)


def _run_engine(
    pairs: list, target_edges: Any, create_graph: bool, retain_graph: bool | None, accumulate: Any
) -> dict[Any, Tensor]:
    level = current().level
    with nullcontext() if create_graph or level is None else _disable_recording_below(level):
        return pullback(
            [_engine_edge(root) for root, _ in pairs],
            [seed for _, seed in pairs],
            level=level,
            inputs=target_edges,
            create_graph=create_graph,
            retain_graph=create_graph if retain_graph is None else retain_graph,
            accumulate=accumulate,
        )


@generator_block
def _disable_recording_below(level: Level | None) -> Iterator[None]:
    """Return a block in which `grad` levels record nothing below them: a gradient without a graph is a constant."""
    changed = []
    while level is not None:
        if level.own_mode:
            changed.append((level, level.parent_grad_enabled))
            level.parent_grad_enabled = False
        level = level.parent
    try:
        yield
    finally:
        for known, mode in changed:
            known.parent_grad_enabled = mode


def _fill_unused(
    gradients: list, targets: Any, batch: tuple[int, ...], allowed: bool, materialize: bool, create_graph: bool
) -> tuple[Tensor | None, ...]:
    """Return the gradients of the targets, with zeros for unused targets if they are materialized."""
    for i, g in enumerate(gradients):
        if g is None:
            gradients[i] = _unused_gradient(i, as_list("grad", targets)[i], batch, allowed, materialize, create_graph)
    return tuple(gradients)


def _unused_gradient(
    index: int, target: Any, batch: tuple[int, ...], allowed: bool, materialize: bool, create_graph: bool
) -> Tensor | None:
    if not allowed:
        raise RuntimeError(
            f"grad: The differentiated Tensor at index {index} appears to not have been used in the graph. Set "
            f"allow_unused=True for None in its place, or materialize_grads=True for zeros"
        )
    if not materialize:
        return None
    zeros = registry["zeros"]((*batch, *target.shape), dtype=target.dtype)
    return zeros.requires_grad_(create_graph)  # so that it can be differentiated like the others


def _tensor_of_target(target: Any, inputs: list | None) -> Tensor | None:
    """Return the tensor whose .grad receives a cotangent; None for a node without an input tensor."""
    if isinstance(target, Tensor):
        return target
    for tensor in inputs or ():
        if isinstance(tensor, Tensor):
            fn, number = edge_of(tensor)
            if fn is target[0] and number == target[1]:
                return tensor
    return None


def _accumulate(leaf: Tensor, g: Tensor, owned: bool) -> None:
    """Add to .grad in place; memory that is not owned is copied first."""
    if g.dtype.kind == "c":
        g = conjugate(g)
    if leaf._hooks is not None:
        g = in_grad_dtype(leaf, g)
    with accumulating:
        old = leaf._grad
        if old is None:
            leaf._grad = match_layout(g, leaf, owned)
        elif not add_into(old, g):
            leaf._grad = _add_gradients(old, g)


def _add_gradients(old: Tensor, g: Tensor) -> Tensor:
    """Return the sum of gradients, in the memory of the old one if that is plain, or both have the same structure."""
    with at(current().level, False):
        plain = compound(old) is None and compound(g) is not None
        in_place = (plain or (compound(old) is not None and compound(old) is compound(g))) and old.level is None
        return old.add_(g) if in_place and old.aval == g.aval else sum_of_gradients(old, g)


def _accumulate_with_graph(leaf: Tensor, g: Tensor, owned: bool) -> None:
    """Replace .grad by a new tensor, the sum with its graph."""
    g = in_grad_dtype(leaf, conjugate(g))
    with accumulating:
        old = leaf._grad
        # Several leaves may share the same tensor.
        leaf._grad = registry["clone"](g) if old is None else sum_of_gradients(old, g)


def _backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Inputs | None = None,
) -> None:
    """Add the gradients of this tensor to `.grad` of the leaves that it depends on; see `autograd.backward`."""
    if inputs is None and not create_graph and simple_backward(self, gradient, bool(retain_graph), _accumulate):
        return
    backward(self, gradient, retain_graph, create_graph, inputs=inputs)


_backward.__name__, _backward.__qualname__ = "backward", "Tensor.backward"
setattr(Tensor, "backward", _backward)  # noqa: B010 (a method that another layer adds)
