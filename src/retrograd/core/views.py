"""Views: the record that links a view to its base, and how views follow writes to their base."""

from numpy import empty, ndarray

from retrograd.core.device import array_devices
from retrograd.core.hooks import move_retained
from retrograd.core.op import compound
from retrograd.core.state import at
from retrograd.core.tensor import (
    ANY_SIZE,
    INFERENCE,
    TensorBase,
    alias,
    bump_version,
    continue_version,
    has_plain_memory,
    is_floating_array,
    is_plain,
    is_weak_number,
    same_kind,
    version_of,
)

COPIED = "copied"  # `View.creation_meta` of a view whose elements had to be copied
ASSIGNED = "assigned"  # `View.creation_meta` of a view that has memory of its own, because its `.data` was assigned
IN_FUNCTION = "custom Function"  # `View.creation_meta` of a view that a user's Function returned


class View:
    """The record of a view: its base, and the chain of view operators that leads from the base to it.

    `attr_version` is the `rebases` count of the base at which the view got its history. `creation_meta` says why a
    recorded write is refused: "" (it is not), "no_grad", "inference", ASSIGNED, or the name of the function that
    returned several views at once.

    With `creation_meta == COPIED` no array can share those elements (as for some reshapes), so the tensor has a copy of
    them. Such a view refuses every write. It is recomputed when the memory of its base has changed; `attr_version` then
    encodes the version of that memory.

    `inverses` is that of the version counter at which the chain was recorded: see `base_of`.
    """

    __slots__ = ("attr_version", "base", "chain", "creation_meta", "inverses")

    def __init__(self, base, chain, creation_meta, attr_version):
        self.base = base
        self.inverses = None if base.version is None else base.version.inverses
        self.chain = chain  # tuple of (operator, params), from the base on
        self.creation_meta = creation_meta
        self.attr_version = attr_version


def is_view_of(array, source):
    """Return whether `array`, which was computed from `source`, shares its memory."""
    if array is source:
        return True
    if type(array) is not ndarray or type(source) is not ndarray:
        return is_view_of_composite(array, source)
    a: ndarray = array
    b: ndarray = source
    # NumPy collapses chains of views: `base` is the array that owns the memory.
    return a.base is not None and (a.base is b or a.base is b.base)


def is_view_of_composite(array, source):
    """Return `is_view_of` where an array is composite, by comparing the arrays that hold the elements."""
    mine, its = memory_of(array), memory_of(source)
    if mine is array and its is source:
        device = array_devices.get(type(array))
        return type(array) is type(source) and (device is None or device.share_memory(array, source))
    return is_view_of(mine, its)


def memory_of(array):
    """Return the plain array that holds the elements of a composite array; other arrays as they are."""
    return getattr(array, "memory", array)


def is_writable(x):
    """Return whether x may be written to: its memory is not read-only, and none of its elements share theirs.

    NumPy makes an expanded array read-only, and all parts of it, also those that have each element once.
    """
    array = x.value
    if type(array) in array_devices:
        return are_apart(array.shape, array.strides, array.itemsize)
    if array.flags.writeable:
        return True
    if type(array) is not ndarray or x._view is None or not base_of(x._view).value.flags.writeable:
        return False
    if not are_apart(array.shape, array.strides, array.itemsize):
        return False
    array.flags.writeable = True
    return True


def are_apart(shape, strides, itemsize):
    """Return whether no two elements overlap in memory, as far as sizes and strides tell."""
    reach = itemsize
    for stride, size in sorted([(abs(s), n) for n, s in zip(shape, strides, strict=True) if n > 1]):
        if stride < reach:
            return False
        reach += stride * (size - 1)
    return True


def track_view(op, out, source, params, state):
    """Make the result of a view operator a view: it shares the version, and if it is differentiable the history too.

    Above the ground no memory distinguishes views from copies. A result that would be a copy on the ground is a copy
    there too, and a result without gradients still follows the values of its base.
    """
    if source.level is None or source.level is not out.level:
        if op.differentiable or (source._view is not None and source._view.creation_meta == COPIED):
            set_view(out, source, op, params, creation_meta_of(state))
        else:
            out.version = version_of(source)
    elif source._view is None or would_be_view(op, source._view, params):
        set_view(out, source, op, params, creation_meta_of(state) if op.differentiable else "")


def would_be_view(op, view, params):
    """Return whether an operator on a view of a row-major array would share that array's memory."""
    if view.creation_meta == COPIED or compound(view.base) is not None:
        return True
    # Replay the chain on an uninitialized array of the base's shape, and look whether the memory is shared.
    array = empty(view.base.shape, view.base.dtype)
    for step, given in view.chain:
        array = step.kernel_for((array,))(array, **given)
    return is_view_of(op.kernel_for((array,))(array, **params), array)


def set_view(out, source, op, params, creation_meta):
    """Make `out`, the result of a view operator, a view of `source`: record the chain, share the version counter."""
    out.version = version_of(source)
    known: View = source._view
    step = ((op, params),)
    if known is None:
        out._view = View(source, step, creation_meta, out.version.rebases)
    else:
        # A view of a copy is as old as that copy; any other view is up to date with its base.
        attr_version = known.attr_version if known.creation_meta == COPIED else out.version.rebases
        out._view = View(base_of(known), known.chain + step, known.creation_meta or creation_meta, attr_version)


def set_view_copy(out, source, op, params):
    """Make `out` a COPIED view: the elements had to be copied, so it follows its base and refuses writes."""
    set_view(out, source, op, params, COPIED)
    view: View = out._view
    view.creation_meta, view.attr_version = (
        COPIED,
        copy_version(out.version),
    )  # also where the source is another kind of view


def copy_version(version):
    """Return the `View.attr_version` of a copy made at this version: negative, so it never equals a `rebases` count."""
    return -2 - version.count


def creation_meta_of(state):
    """Return the `View.creation_meta` of a view made in the current mode."""
    return "inference" if state.inference else "" if state.grad_enabled else "no_grad"


def mark_several(outs, name):
    """Mark views that one operator returned together: they refuse recorded writes, as in PyTorch."""
    for out in outs:
        if out._view is not None:
            out._view.creation_meta = out._view.creation_meta or name


def forget_hidden_bases(out, args):
    """Make the results of a composite operator that are views of its intermediate tensors tensors of their own.

    Nobody else holds such a base. A write to the result would give the base a new history, and the hooks on the result
    would be lost with the old one.
    """
    for o in out if isinstance(out, (tuple, list)) else (out,):
        if isinstance(o, TensorBase) and o._view is not None and not is_view_of_any(o, args):
            sync_view(o)
            o._view = None


def is_view_of_any(t, tensors):
    """Return whether a view is of one of some tensors, or of the base of one that is a view itself."""
    view: View = t._view
    for source in tensors:
        if isinstance(source, TensorBase):
            s: TensorBase = source
            if view.base is s or (s._view is not None and base_of(s._view) is base_of(view)):
                return True
    return False


def requires_grad_synced(t):
    """Return whether a tensor requires grad; a view is first synchronized with its base."""
    if t._view is not None:
        sync_view(t)
    return t._requires_grad


def sync_view(t):
    """Bring a view up to date with its base, unless it was made under rules that forbid that."""
    view: View = t._view
    if view.attr_version != t.version.rebases:
        base: TensorBase = base_of(view)
        if view.creation_meta == COPIED:
            sync_view_copy(t)
        elif (view.creation_meta or base.version is not t.version) and base._requires_grad:
            t._requires_grad = True  # but recording it is refused: see `check_stale_view`
        else:
            regenerate_view(t)


def sync_view_copy(t):
    """Recompute a COPIED view if the memory of its base was written to since."""
    view: View = t._view
    base: TensorBase = base_of(view)
    attr_version = copy_version(t.version)
    if view.attr_version == attr_version and attr_version != copy_version(
        INFERENCE
    ):  # inference tensors count no writes: always recompute
        return
    if base.version is not t.version:
        refuse_view(t, ASSIGNED, True)
    view.attr_version = attr_version
    with at(t.level, base._requires_grad):
        now = replay_view(view)
    t.value, t.tag = now.value, now.tag
    if base._requires_grad and is_differentiable_view(view):
        rebase_history(t, now)


def regenerate_view(t):
    """Give a view the new history of its base, and above the ground its new value, by replaying the chain."""
    view: View = t._view
    base: TensorBase = view.base
    view.attr_version = base.version.rebases
    if t.level is None and not base._requires_grad:
        return
    with at(t.level, base._requires_grad or t.level is not None):
        now = replay_view(view)
    if t.level is not None:
        t.value, t.tag = now.value, now.tag
    if base._requires_grad and is_differentiable_view(view):
        rebase_history(t, now)


def replay_view(view):
    """Return the view of its base as the base is now, as a new tensor."""
    now = view.base
    for op, params in view.chain:
        now = op(now, **params)
    return now


def base_of(view):
    """Return the base of a view, and update its chain where the base became another shape in place since.

    After `base.t_()` the chain begins with the step back. After `base.as_strided_()` the base is what it was before.
    """
    base: TensorBase = view.base
    if base._view is not None:
        inner: View = base._view
        base = view.base = inner.base
    if base.version is not None and view.inverses is not base.version.inverses:
        known = len(view.inverses or ())
        for moved, step in base.version.inverses[known:]:
            if moved() is base:
                view.chain = (step, *view.chain)
        view.inverses = base.version.inverses
    return base


def is_differentiable_view(view):
    """Return whether gradients pass from a base to a view."""
    for step, _ in view.chain:
        if not step.differentiable:
            return False
    return True


def copy_plain(kind, pairs):
    """Copy the second tensor of each pair into the first, outside all levels, if both are plain; return other pairs.

    Nothing is recorded. Tensors of which the class does not have `copy_` of `kind` are not plain.
    """
    last = None  # the class of the tensor before
    own = False
    others = []
    for pair in pairs:
        if type(pair[0]) is not last:
            last = type(pair[0])
            own = last.copy_ is kind.copy_
        t: TensorBase = pair[0]
        u: TensorBase = pair[1]
        if own and u.level is None and not u._overrides and is_plain(t, ANY_SIZE) and same_kind(t.value, u.value):
            requires_grad_synced(u)
            t.value[...] = u.value
            if u.tag is not None:
                t.tag = u.tag  # where it was detached
            bump_version(t)
        else:
            others.append(pair)
    return others


def fill_plain(t, number, mask):
    """Fill a plain tensor outside all levels with a Python number that its dtype has; return whether it is one.

    A mask of its shape, or None, says which elements. Nothing is recorded.
    """
    if not has_plain_memory(t) or not is_weak_number(t.value, number):
        return False
    if not is_floating_array(t.value) and not 0 <= number <= 127:
        return False
    if mask is None:
        t.value.fill(number)
    else:
        m: TensorBase = mask
        if m.level is not None or m._overrides or type(m.value) is not ndarray:
            return False
        t.value[m.value] = number
    bump_version(t)
    return True


def rebase_history(t, new):
    """Give a tensor the history of another one (PyTorch's `rebase_history`)."""
    old, number = t._grad_fn, t._output_nr
    t._grad_fn, t._output_nr = new._grad_fn, new._output_nr
    t._requires_grad = new._requires_grad
    if t._grad_fn is not None:
        move_retained(t, old, number)


def leave_memory(x):
    """Separate a tensor from the memory that it shares with its base or its views, because it gets another one.

    A view keeps its history, but can no longer follow its base. A base gets a version counter of its own, by which its
    older views are distinguished from later ones.
    """
    requires_grad_synced(x)
    if x._view is not None:
        x._view.creation_meta, x._view.attr_version = ASSIGNED, x.version.rebases
    elif x.version is not None and x.version is not INFERENCE:
        x.version = continue_version(x.version)


def synced_grad_fn(tensor):
    """Return the record of the node that made a tensor; a view has the new history of its base, if that was written to.

    It is None for a leaf.
    """
    requires_grad_synced(tensor)
    if tensor._view is not None and tensor._requires_grad:
        check_stale_view(tensor)
    return tensor._grad_fn


def check_stale_view(t):
    """Raise if a view that cannot be replayed is out of date with its base: it has no correct history."""
    if t._view.attr_version != t.version.rebases and t._view.creation_meta != COPIED:
        refuse_view(t, t._view.creation_meta or ASSIGNED, True)


def refuse_view(t, meta, by_base=False):
    """Raise the error for a recorded write that involves a view whose `creation_meta`, `meta`, forbids it.

    `by_base` says that the write was to the base of the view, or to another view of it.
    """
    changed = "its base or another view of its base has been modified" if by_base else "is being modified"
    if meta == ASSIGNED:
        raise RuntimeError(
            f"this tensor is a view, and {changed} in place, and data was assigned to the view or its base by "
            f"`.data =`, so they don't share memory. Write to a clone(), or under no_grad(), or take the view after "
            f"the assignment."
        )
    fn = t._grad_fn
    known = None if fn is None else f"Output {t._output_nr} of {fn.name().rpartition('Backward')[0]} is a view"
    if meta in ("no_grad", "inference"):
        mode, now = (meta, "with grad mode enabled") if meta == "no_grad" else ("inference", "in normal mode")
        start = "A view was" if known is None else f"{known} of a view which was"
        raise RuntimeError(
            f"{start} created in {mode} mode and {changed} inplace {now}. Such a write is ambiguous, so it is "
            f"forbidden. Make the view and write to it both inside the {meta}{'' if meta == 'no_grad' else '_mode'} "
            f"block, so that the write is not recorded, or both outside, or use an out-of-place operator."
        )
    if known is None:
        start = f"A view was created in no_grad mode and {changed} inplace with grad mode enabled"
    else:
        start = f"{known} and {changed} inplace"
    raise RuntimeError(
        f"{start}. This view "
        + (
            "was created inside a custom Function (or because an input was returned as-is) and the autograd logic to "
            "handle view+inplace would override the custom backward"
            if meta == IN_FUNCTION
            else "is the output of a function that returns multiple views. Such functions do not allow the output "
            "views to be modified inplace"
        )
        + ". You should replace the inplace operation by an out-of-place one, or take views by indexing."
    )


def unlink_copy(g):
    """Return a gradient without its COPIED link to another cotangent, so that it can be written to."""
    if g._view is None or g._view.creation_meta != COPIED:
        return g
    out = alias(g, g._grad_fn)
    out.version = None
    return out
