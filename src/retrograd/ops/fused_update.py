"""Steps of optimizers: by a kernel that writes several tensors in one pass over memory, or by the formula."""

from retrograd.backend.updates import are_disjoint, read_flat, update_formula, update_kernel, write_flat
from retrograd.core import current
from retrograd.core.tensor import ANY_SIZE, arrays_of, bump_version, bump_versions, is_plain, make, preserve_snapshots
from retrograd.ops.mutate import check_write, inherit_detached, is_recorded


def update(name, param, grad, states, numbers):
    """Take the named step for one parameter: write it, and return its new states.

    Without a kernel for the tensors, states are new tensors.
    """
    if overwrite(name, [param, *states], [grad], numbers):
        return states
    new, *states = update_formula(name)(param, grad, *states, *numbers)
    param.copy_(new)
    return states


def overwrite(name, written, others, numbers) -> bool:
    """Let the named kernel update tensors in place, from other tensors and numbers; return whether it did.

    It does if all are ground arrays that it supports, nothing is recorded and no transform is active; otherwise nothing
    is written.  Errors are those of an in-place write.
    """
    state = current()
    if state.level is not None or is_recorded(*written, *others):
        return False
    arrays = [t.value for t in written]
    read = [t.value for t in others]
    kernel = update_kernel(name, arrays + read)
    if kernel is None:
        return False
    for t in written:
        check_write(name, t)
    in_graph = [t for t in others if t.tag is not None]  # usually empty; optimizers wait for this
    for t in written:
        if in_graph:
            inherit_detached(t, *in_graph)
        preserve_snapshots(t)
    kernel(arrays[0], *read, *arrays[1:], *map(float, numbers), out=tuple(arrays))
    for t in written:
        bump_version(t)
    return True


# ------------------------------------------------------------------------------------------- many tensors at once


def join(tensors):
    """Return the elements of plain tensors, one after the other, as a vector."""
    return make(read_flat(arrays_of(tensors)), None, None)


def write_joined(joined, tensors):
    """Write the parts of a vector to plain tensors."""
    write_flat(joined.value, arrays_of(tensors))
    bump_versions(tensors)


def are_all_plain(tensors) -> bool:
    """Whether `join` takes all of the tensors, and `write_joined` may write to them."""
    return all(is_plain(t, ANY_SIZE) for t in tensors)


def are_apart(written, read) -> bool:
    """Whether the plain tensors to write share no memory with each other or with those to read."""
    return are_disjoint(arrays_of(written), arrays_of(read))
