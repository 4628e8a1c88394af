"""Recording: create the node of a result, with edges to its inputs and the values that the vjp rules need."""

from functools import partial

from retrograd.core.dtype import is_differentiable
from retrograd.core.graph import GradFn, Packed, node, note_output, snapshot_of
from retrograd.core.state import State, current
from retrograd.core.tensor import (
    TensorBase,
    alias,
    aval_of_tensor,
    count_of,
    has_numpy_dtype,
    is_floating_array,
    same_kind,
    unwrap_all,
    version_of,
)
from retrograd.core.views import check_stale_view
from retrograd.core.vjp_rule import VjpRule

compiled = not __file__.endswith(".py")
if not compiled:  # compiled, this is a cast without a check: see tensor.pxd
    globals()["known_tensor"] = lambda tensor: tensor


def record2(op, a, b, out, state):
    """Record an operator of two inputs and one output on the ground: `record`, specialized for the hot path."""
    # Saved-tensor hooks and snapshots are rare; the general function handles them.
    if state.saving is not None or op.snapshots:
        return record(op, (a, b), op.params, out, None)
    left = edge_to(op, 0, a)
    right = edge_to(op, 1, b)
    values = 0
    avals = 0
    keeps_out = False
    if left is not None:
        # Save only what the rules of inputs with an edge read: bit i of these masks stands for input i.
        rule: VjpRule = op.rules[0]
        values, avals, keeps_out = rule.needs_values, rule.needs_avals, rule.needs_out != 0
        if a._output_nr:
            return record(op, (a, b), op.params, out, None)
    if right is not None:
        rule = op.rules[1]
        values |= rule.needs_values
        avals |= rule.needs_avals
        keeps_out = keeps_out or rule.needs_out != 0
        if b._output_nr:
            return record(op, (a, b), op.params, out, None)
    fn: GradFn = node(op, op.rules, op.params, (left, right), False)
    if values or keeps_out:
        x = a if values & 1 else None
        y = b if values & 2 else None
        fn.saved = (x, y, saved_output(out) if keeps_out else None)
        m = 0 if x is None else saved_version(op, x)
        n = 0 if y is None else saved_version(op, y)
        if m or n:
            fn.versions = (m, n, 0)
    if avals or op.reduces_cotangent:
        # A cotangent has the shape and dtype of the output. If broadcasting or promotion made these differ from the
        # input's, its aval is saved, and `GradFn.vjp` reduces the cotangent to it.
        x = aval_of(a) if avals & 1 or (op.reduces_cotangent and left is not None and not agrees(a, out)) else None
        y = aval_of(b) if avals & 2 or (op.reduces_cotangent and right is not None and not agrees(b, out)) else None
        if x is not None or y is not None:
            fn.avals = (x, y)
    out._grad_fn = note_output(fn, out)
    out._requires_grad = True
    if state.watchers is not None:
        notify_watchers(state.watchers, fn)


def edge_to(op, index, a):
    """Return the edge to an operand on the ground: its grad_fn, the operand itself if it is a leaf, or None."""
    if isinstance(a, TensorBase):
        t: TensorBase = known_tensor(a)  # noqa: F821
        if t._requires_grad:
            if t._view is not None:
                check_stale_view(t)
            if op.rules[index] is None:
                missing_rule(op, index)
            return t if t._grad_fn is None else t._grad_fn
    return None


def saved_version(op, a):
    """Return the version at which a node saves an operand, and mark it as saved; 0 for numbers and arrays."""
    if isinstance(a, TensorBase):
        t: TensorBase = known_tensor(a)  # noqa: F821
        if t.version is None:
            # No write yet, so no counter is allocated: `version_of` reads the flag when the first write creates one.
            t._saved = True
            return 0
        t.version.saved = True
        count = t.version.count
        if count < 0:
            raise RuntimeError(
                f"{op.name}: Inference tensors cannot be saved for backward, which needs the operand of shape "
                f"{t.value.shape}; use its clone(), made outside inference_mode()"
            )
        return count
    return 0


def record(op, args, params, out, level):
    """Create the node of an output in the level's graph."""
    if op.rules is None:  # a user's Function: its backward computes all gradients at once
        return op.definition.record(op, args, params, out, level)
    single = type(out) is not tuple
    if single:
        t: TensorBase = out
        array = unwrap_all(t)
        # Integer and boolean results have no gradient, so they get no node.
        if not is_floating_array(array) and not is_differentiable(t.dtype):
            return
        rules = op.rules if has_numpy_dtype(array) else op.rules_for(t)
    else:
        rules = op.rules_for(out[0]) if out else op.rules
    edges = []
    numbers = None
    values = 0
    avals = 0
    outs = 0
    for i, a in enumerate(args):
        edge = None
        if isinstance(a, TensorBase):
            u: TensorBase = a
            if u._requires_grad and u.level is level:
                if u._view is not None:
                    check_stale_view(u)
                edge = u if u._grad_fn is None else u._grad_fn
                if u._output_nr:
                    numbers = True
                rule: VjpRule = rules[min(i, op.last)]
                if rule is None:
                    missing_rule(op, i)
                values |= rule.needs_values
                avals |= rule.needs_avals
                outs |= rule.needs_out
        edges.append(edge)
    fn: GradFn = node(op, rules, params, tuple(edges), op.variadic)
    state: State = current()
    if numbers:
        fn.numbers = tuple([a._output_nr if isinstance(a, TensorBase) else 0 for a in args])
    if values or outs:
        save(fn, op, args, out, values, outs)
        if state.saving is not None:
            fn.saved = map_saved(fn.saved, partial(Packed, state.saving))
        elif op.snapshots:
            chosen = op.snapshots
            fn.saved = tuple([map_saved(s, snapshot_of) if chosen >> i & 1 else s for i, s in enumerate(fn.saved)])
    if avals or op.reduces_cotangent:
        save_avals(fn, op, args, out, avals)
    if single:
        t = out
        t._grad_fn = note_output(fn, t)
        t._requires_grad = True
    else:
        mark_outputs(fn, out)
    if state.watchers is not None:
        notify_watchers(state.watchers, fn)


def notify_watchers(watchers, fn):
    """Call `on_node_created` of every watcher for a new node."""
    for watcher in watchers:
        watcher.on_node_created(fn)


def mark_outputs(fn, outs):
    """Make each differentiable output of an operator an output of its node."""
    fn.out_avals = tuple([out.aval for out in outs])
    for i, out in enumerate(outs):
        if is_differentiable(out.dtype):
            out._grad_fn, out._output_nr, out._requires_grad = fn, i, True


def save(fn, op, args, out, arg_bits, outs):
    """Save the inputs that some rule reads and the outputs that a rule asks for, with their versions."""
    last = op.last
    saved = []
    versions = []
    written = False  # whether one of the versions is not 0
    for i in range(last + 1):
        keep = None
        version = 0
        if arg_bits >> i & 1:
            if op.variadic and i == last:
                keep = tuple(args[i:])
                version = tuple([saved_version(op, a) for a in keep])
            else:
                keep = args[i]
                version = saved_version(op, keep)
        saved.append(keep)
        versions.append(version)
        if version:
            written = True
    saved.append(kept_outputs(out, outs) if outs else None)
    versions.append(versions_of(out) if outs else 0)
    fn.saved = tuple(saved)
    if written or versions[last + 1]:
        fn.versions = tuple(versions)


def versions_of(out):
    """Return the versions of an output; they are not 0 if an in-place operator wrote it before it is saved."""
    return tuple([count_of(o) for o in out]) if type(out) is tuple else count_of(out)


def kept_outputs(out, outs):
    """Return the output to save; of several, those whose bits are set, and None for the others."""
    if type(out) is not tuple:
        return saved_output(out)
    return tuple([saved_output(o) if outs >> i & 1 else None for i, o in enumerate(out)])


def saved_output(out):
    """Return the output without its history, so that the node does not reference itself."""
    out.version = version_of(out)
    out.version.saved = True
    return alias(out, None)


def map_saved(saved, form):
    """Return a saved value with `form(tensor)` in place of each tensor; numbers and arrays as they are."""
    if type(saved) is tuple:
        return tuple([map_saved(member, form) for member in saved])
    return form(saved) if isinstance(saved, TensorBase) else saved


def save_avals(fn, op, args, out, arg_bits):
    """Save the avals that rules ask for, and those of inputs to which a cotangent must be reduced."""
    avals = [None] * (op.last + 1)
    needed = False
    # A rule that reads inputs of several dtypes may promote the cotangent of an input that agrees with the output.
    mixed = op.reduces_cotangent and op.last > 0 and mixes(args)
    for i in range(op.last + 1):
        if op.variadic and i == op.last:
            if arg_bits >> i & 1:
                avals[i] = tuple([aval_of(a) for a in args[i:]])
                needed = True
        elif arg_bits >> i & 1 or (
            op.reduces_cotangent and fn.edges[i] is not None and (mixed or not agrees(args[i], out))
        ):
            avals[i] = aval_of(args[i])
            needed = True
    if needed:
        fn.avals = tuple(avals)


def agrees(a, out):
    """Return whether a cotangent of the output has the shape and dtype of the input."""
    return (a.level is None and same_kind(a.value, out.value)) or a.aval == out.aval


def mixes(args):
    """Return whether operands are floating tensors of different dtypes."""
    first = None
    for a in args:
        if isinstance(a, TensorBase):
            t: TensorBase = known_tensor(a)  # noqa: F821
            if is_floating_array(t.value) or (t.level is not None and is_differentiable(t.dtype)):
                dtype = t.value.dtype
                if first is not None and dtype is not first and dtype != first:
                    return True
                first = dtype
    return False


def aval_of(a):
    """Return the aval of an operand; a number or None stands for itself."""
    return aval_of_tensor(a) if isinstance(a, TensorBase) else a


def missing_rule(op, index):
    """Raise for an input that requires grad and has no vjp rule: a silent zero would be wrong."""
    name = op.schema.inputs[min(index, op.last)].name
    raise NotImplementedError(
        f"{op.name}: no gradient is defined with respect to {name!r}, which requires one. Detach it, or run "
        f"under no_grad()."
    )
