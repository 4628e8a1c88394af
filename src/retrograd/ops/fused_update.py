"""Writing several tensors at once, by a kernel that computes all of them in one pass over memory."""

from retrograd.backend.updates import update_kernel
from retrograd.core import current
from retrograd.core.tensor import bump_version, preserve_snapshots
from retrograd.ops.mutate import announce, check_write, inherit_cut, is_recorded


def overwrite(name, written, others, numbers) -> bool:
    """Let the kernel of that name write tensors, from what they are, what others are, and numbers; whether it did.

    It does where all of them are arrays on the ground that it knows, nothing is recorded and no transform looks on;
    else nothing has happened.  Errors are those of a write in place.
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
    cut = [t for t in others if t.tag is not None]  # there are none as a rule, nor who listens: optimizers wait here
    if cut or state.on_write is not None:
        for t in written:
            inherit_cut(t, *cut)
            announce(t)
    for t in written:
        preserve_snapshots(t)
    kernel(arrays[0], *read, *arrays[1:], *map(float, numbers), out=tuple(arrays))
    for t in written:
        bump_version(t)
    return True
