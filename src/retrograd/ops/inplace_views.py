"""In-place view operators: a tensor becomes a view of its former self, `x.unsqueeze_(0)`."""

from retrograd.core import Tensor, registry
from retrograd.core.level import is_recording
from retrograd.core.op import compound
from retrograd.core.tensor import alias, bump_version, preserve_snapshots, version_of
from retrograd.core.views import rebase_history, requires_grad_synced
from retrograd.ops.methods import method


def _set_view_in_place(name, x, view):
    """Turn x into the view that `view` returns for it; returns x."""
    _check_view_in_place(name, x)
    source = x
    if x._view is None:  # the view needs a base other than x: an alias with its memory, version counter and graph
        version_of(x)
        source = alias(x, x._grad_fn)
    new = view(source)
    if new is not source:
        preserve_snapshots(x)
        if new._view.creation_meta == "no_grad":  # nobody else has that view: it may be written to as x could before
            new._view.creation_meta = "" if x._view is None else x._view.creation_meta
        x.value, x.tag, x._view = new.value, new.tag, new._view
        if x._grad is not None:  # has the shape of x, also where later passes add to it
            x._grad = view(x._grad)
        rebase_history(x, new)
        bump_version(x)
    return x


def _check_view_in_place(name, x):
    if x.level is not None or compound(x) is not None:
        raise RuntimeError(
            f"{name}: only plain tensors outside of function transforms and traces become views in place; use "
            f"x = x.{name.rstrip('_')}(...)"
        )
    if requires_grad_synced(x) and (x._grad_fn is None or not is_recording()):
        raise RuntimeError(
            f"{name}: a leaf Variable that requires grad can't become a view in place, nor a tensor of a graph under "
            f"no_grad(); use x = x.{name.rstrip('_')}(...)"
        )


@method
def squeeze_(x, dim=None) -> Tensor:
    """Remove dimensions of size 1 of this tensor: all, or those of `dim`; returns it.

    >>> import retrograd as rg
    >>> rg.ones(1, 2, 1).squeeze_().shape
    (2,)
    """
    return _set_view_in_place("squeeze_", x, lambda x: registry["squeeze"](x, dim))


@method
def unsqueeze_(x, dim) -> Tensor:
    """Insert a dimension of size 1 in this tensor at `dim`; returns it."""
    return _set_view_in_place("unsqueeze_", x, lambda x: registry["unsqueeze"](x, dim))


@method
def transpose_(x, dim0, dim1) -> Tensor:
    """Swap two dimensions of this tensor; returns it."""
    return _set_view_in_place("transpose_", x, lambda x: registry["transpose"](x, dim0, dim1))


Tensor.swapdims_ = transpose_


@method
def swapaxes_(x, axis0, axis1) -> Tensor:
    """Swap two dimensions of this tensor; returns it."""
    return _set_view_in_place("swapaxes_", x, lambda x: registry["transpose"](x, axis0, axis1))


@method
def t_(x) -> Tensor:
    """Transpose this tensor of at most 2 dimensions; returns it."""
    return _set_view_in_place("t_", x, Tensor.t)


@method
def as_strided_(x, size, stride, storage_offset=None) -> Tensor:
    """Give this tensor another shape and other strides over the same memory; returns it."""
    return _set_view_in_place("as_strided_", x, lambda x: registry["as_strided"](x, size, stride, storage_offset))
