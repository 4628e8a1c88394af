"""In-place view operators: a tensor becomes a view of its former self, `x.unsqueeze_(0)`."""

from contextlib import nullcontext
from functools import partial
from weakref import ref

from retrograd.core import Tensor, at, current, graph_level, override_state, registry
from retrograd.core.blocks import generator_block
from retrograd.core.op import compound
from retrograd.core.tensor import alias, bump_version, preserve_snapshots, version_of
from retrograd.core.views import rebase_history, replay_view
from retrograd.foundation.lazy_imports import add_attribute
from retrograd.ops.methods import method
from retrograd.ops.mutate import check_history, check_inference, check_write, is_recorded


def _set_view_in_place(name, x, view, inverse=None):
    """Turn x into the view that `view` returns for it; returns x.

    A tensor without a base stays one if the function `inverse` leads back, and its hooks stay with it, as in PyTorch:
    the chains of its older views begin with the inverse from now on. Else it becomes a view of its former self.
    """
    _check_view_in_place(name, x)
    version = version_of(x)
    leaf = x._grad_fn is None
    source = alias(x, x._grad_fn) if x._view is None else x
    # The step is recorded in every mode: else the gradient would arrive at the old node in the new shape.
    recording = partial(_recording, leaf)
    with recording():
        new = view(source)
    if new is not source:
        preserve_snapshots(x)
        if x._view is None and inverse is not None:
            steps = [(ref(x), step) for step in reversed(_steps_back(new, inverse))]
            version.inverses = (*(version.inverses or ()), *steps)
        else:
            if new._view.creation_meta == "no_grad":  # nobody else has that view: it may be written to as before
                new._view.creation_meta = "" if x._view is None else x._view.creation_meta
            x._view = new._view
            if not leaf:  # from the base, as after a write: without the hooks of views on the way
                with recording():
                    new = replay_view(new._view)
        x.value, x.tag = new.value, new.tag
        if x._grad is not None:  # has the shape of x, also where later passes add to it
            x._grad = view(x._grad)
        if not leaf:
            rebase_history(x, new)
        if x.level is None:  # above the ground a version counts the writes that reach the caller's tensor
            bump_version(x)
    return x


@generator_block
def _recording(leaf):
    """Return a block outside inference mode in which views are recorded, except those of a leaf."""
    with override_state("inference", False), nullcontext() if leaf else at(current().level, True):
        yield


def _steps_back(new, inverse):
    """Return the chain of view operators that leads from a view back to its base."""
    plain = alias(new.detach(), None)
    plain._view = None
    back = inverse(plain)
    return () if back._view is None else back._view.chain  # squeeze_ may remove nothing


def _check_view_in_place(name, x):
    check_inference(name, x)
    if compound(x) is not None or (x.level is not None and x.level.on_write is not None):
        raise RuntimeError(
            f"{name}: only plain tensors outside of traces become views in place; use x = x.{name.rstrip('_')}(...)"
        )
    if x.level is not graph_level():  # as for writes: a captured tensor keeps its shape
        check_write(name, x)
    if is_recorded(x):
        check_history(x)


@method
def squeeze_(x, dim=None) -> Tensor:
    """Remove dimensions of size 1 of this tensor: all, or those of `dim`; returns it.

    >>> import retrograd as rg
    >>> rg.ones(1, 2, 1).squeeze_().shape
    (2,)
    """
    removed = [i for i, size in enumerate(x.shape) if size == 1]
    if dim is not None:
        dims = {d % x.ndim if x.ndim else 0 for d in ((dim,) if isinstance(dim, int) else dim)}
        removed = [i for i in removed if i in dims]

    def inverse(x):
        for i in removed:
            x = registry["unsqueeze"](x, i)
        return x

    return _set_view_in_place("squeeze_", x, lambda x: registry["squeeze"](x, dim), inverse)


@method
def unsqueeze_(x, dim) -> Tensor:
    """Insert a dimension of size 1 in this tensor at `dim`; returns it."""
    squeeze = registry["squeeze"]
    return _set_view_in_place("unsqueeze_", x, lambda x: registry["unsqueeze"](x, dim), lambda x: squeeze(x, dim))


def _transpose_in_place(name, x, dim0, dim1):
    def transpose(x):
        return registry["transpose"](x, dim0, dim1)

    return _set_view_in_place(name, x, transpose, transpose)


@method
def transpose_(x, dim0, dim1) -> Tensor:
    """Swap two dimensions of this tensor; returns it."""
    return _transpose_in_place("transpose_", x, dim0, dim1)


add_attribute(Tensor, "swapdims_", transpose_)


@method
def swapaxes_(x, axis0, axis1) -> Tensor:
    """Swap two dimensions of this tensor; returns it."""
    return _transpose_in_place("swapaxes_", x, axis0, axis1)


@method
def t_(x) -> Tensor:
    """Transpose this tensor of at most 2 dimensions; returns it."""
    return _set_view_in_place("t_", x, Tensor.t, Tensor.t)


@method
def as_strided_(x, size, stride, storage_offset=None) -> Tensor:
    """Give this tensor another shape and other strides over the same memory; returns it."""
    return _set_view_in_place("as_strided_", x, lambda x: registry["as_strided"](x, size, stride, storage_offset))
