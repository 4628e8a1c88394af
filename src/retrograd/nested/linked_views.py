"""Copies linked to their base: views of nested tensors that no single strided array can represent.

The first rows of all components, for example, have no common stride in the buffer.  Such a result of a view operator
is a copy that records how it was made: it follows writes to its base, and refuses writes to itself.  So programs
never get other values than with a view in PyTorch.
"""

from typing import Any

from retrograd.core import Internal, Op, Tensor, call, op, registry
from retrograd.core.views import COPIED, set_view_copy
from retrograd.ops.family import Composite

UNLINKED = {  # view operators whose results are not linked, and why
    "reshape": "it copies in PyTorch too where it can't be a view",
    "detach": "it always shows the memory, though outside the graph no view is remembered",
}


@op("nested.member(Tensor x, *, str name, any params, int number) -> Tensor")
class member(Internal, Composite, accepts_nested=True):
    """One of the results of an operator that returns several."""

    def compose(x, *, name, params, number):
        return call(registry[name], (x,), params)[number]

    def samples(r):
        yield (r(4, 3),), {"name": "unbind", "params": {"dim": 0}, "number": 2}


def link_copies(op: Op, x: Any, params: dict, out: Any) -> Any:
    """Return the result of an operator on a nested tensor; copies from view operators become linked to x."""
    if op.view and op.name not in UNLINKED:
        _link(op, x, params, out)
    elif op.definition.view:
        for number, part in enumerate(out):
            _link(registry["nested.member"], x, {"name": op.name, "params": params, "number": number}, part)
    return out


def _link(op: Op, x: Tensor, params: dict, out: Tensor) -> None:
    if out is not x and not (out._view is not None and out._view.base is _base(x)):
        set_view_copy(out, x, op, params)


def is_view_of(out: Tensor, x: Tensor) -> bool:
    """Whether a tensor is a view with the same base as x, in the same memory."""
    return out._view is not None and out._view.base is _base(x) and out._view.creation_meta != COPIED


def _base(x: Tensor) -> Tensor:
    return x if x._view is None else x._view.base
