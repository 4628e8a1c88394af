"""`functionalize`: run programs without in-place writes."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import optree

from retrograd.core import Tensor
from retrograd.core.tensor import make
from retrograd.foundation.suggestions import suggest_in_module
from retrograd.levels import GradLevel, value_at
from retrograd.levels.sync_views import sync_views
from retrograd.levels.write_back import was_written, written_value

REMOVABLE = ("mutations", "mutations_and_views")
Arguments = dict[int, tuple[Tensor, Tensor]]  # by id: an outer tensor, and the tensor that replaces it inside


class FunctionalLevel(GradLevel):
    """Runs operators unchanged; writes to its tensors make new values, as always above the ground."""

    wrapper = "FunctionalTensor"
    own_mode = False


def functionalize(func: Callable, *, remove: str = "mutations") -> Callable:
    """Return the function with the same results that writes to no memory while it runs.

    Each in-place write becomes an operator that returns a new value.  When the function has returned, the new values of
    arguments are written into them; if it fails, they are not.  Arguments are treated as separate even if they share
    memory.  Results share no memory with an argument that was written to.  `remove="mutations_and_views"` is the same.

    Raises RuntimeError for a write to a tensor that is no argument, and where writing to an argument is refused.

    >>> import retrograd as rg
    >>> def double_first(x):
    ...     x[0].mul_(2)
    ...     return x.sum()
    >>> x = rg.ones(3)
    >>> rg.func.functionalize(double_first)(x), x
    (tensor(4.), tensor([2., 1., 1.]))
    """
    if remove not in REMOVABLE:
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}: remove must be one "
            f"of {', '.join(REMOVABLE)}, got {remove!r}"
        )

    @wraps(func, updated=())
    def functional(*args: Any, **kwargs: Any) -> Any:
        level, given = FunctionalLevel(func), Arguments()
        inputs: Any = (args, kwargs)
        inputs = optree.tree_map(lambda leaf: _wrap_argument(level, given, leaf), inputs)
        with level:
            out = sync_views(func(*inputs[0], **inputs[1]))
            written = [(outside, written_value(inside)) for outside, inside in given.values() if was_written(inside)]
        for outside, value in written:
            outside.copy_(value)
        return optree.tree_map(lambda leaf: _unwrap_result(level, given, leaf), out)

    return functional


def _wrap_argument(level: FunctionalLevel, given: Arguments, leaf: Any) -> Any:
    """Return the tensor at the level for an argument: the same one for each occurrence."""
    if not isinstance(leaf, Tensor):
        return leaf
    return given.setdefault(id(leaf), (leaf, make(leaf, level, None)))[1]


def _unwrap_result(level: FunctionalLevel, given: Arguments, leaf: Any) -> Any:
    """Return a result outside the level; a returned argument is that argument itself."""
    for outside, inside in given.values():
        if leaf is inside:
            return outside
    return value_at(level, leaf)


suggest_in_module(globals())
