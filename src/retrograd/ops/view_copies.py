"""View operators that return copies: `expand_copy` returns a copy of `expand`."""

import inspect
import operator

from retrograd.core import Tensor
from retrograd.core.overrides import check_out_shape, write_result
from retrograd.core.views import requires_grad_synced
from retrograd.ops.as_strided import as_strided, unfold_dim
from retrograd.ops.complex import view_as_complex, view_as_real
from retrograd.ops.diagonal import diagonal
from retrograd.ops.family import canonical_dim
from retrograd.ops.functions import check_tensor, function, overridable
from retrograd.ops.index import select
from retrograd.ops.layout import contiguous_format
from retrograd.ops.layout_methods import clone
from retrograd.ops.matrices import t
from retrograd.ops.pointwise import detach
from retrograd.ops.split import split, split_with_sizes, unbind
from retrograd.ops.view import expand, permute, squeeze, transpose, unsqueeze


def _define_copy(name, view):
    """Register `<name>_copy`, which copies the result of `view` in row-major order; `out=` receives the copies."""

    def copy(*args, out=None, **params):
        views = view(*args, **params)
        if out is not None:
            return _write_out(f"{name}_copy", views, out)
        if isinstance(views, Tensor):
            return clone(views, memory_format=contiguous_format)
        return tuple([clone(part, memory_format=contiguous_format) for part in views])

    copy.__name__ = f"{name}_copy"
    copy.__doc__ = f"Return a copy of what `{name}` shows, in memory of its own."
    own = inspect.signature(view)
    last = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)
    result = tuple[Tensor, ...] if name in ("split", "split_with_sizes", "unbind") else Tensor
    parameters = [*own.parameters.values(), last]
    copy.__signature__ = own.replace(parameters=parameters, return_annotation=result)  # type: ignore[attr-defined]
    return function()(overridable(copy))


def _write_out(name, views, out):
    """Write one result, or several, into the `out=` tensors."""
    pairs = [(out, views)] if isinstance(views, Tensor) else list(zip(out, views, strict=True))
    for target, part in pairs:
        check_out_shape(name, target, part)
        if requires_grad_synced(target) or requires_grad_synced(part):
            raise RuntimeError(
                f"{name}(): functions with out=... arguments don't support automatic differentiation, but a tensor "
                f"requires grad"
            )
    for target, part in pairs:
        write_result(target, part)
    return out


def _expand(input, size, *, implicit=False) -> Tensor:
    return expand(input, size)


def _slice(input, dim=0, start=None, end=None, step=1) -> Tensor:
    at = canonical_dim("slice_copy", operator.index(dim), check_tensor("slice_copy", input).ndim)
    return input[(slice(None),) * at + (slice(start, end, step),)]


def _view(input, size=None, dtype=None) -> Tensor:
    return Tensor.view(input.contiguous(), size if dtype is None else dtype)  # a copy is made of any memory


def _alias(input) -> Tensor:
    return input


def _permute(input, dims) -> Tensor:
    return permute(input, dims)


def _unfold(input, dimension, size, step) -> Tensor:
    return unfold_dim(input, dimension, size, step)


for _name, _show in {
    "alias": _alias, "as_strided": as_strided, "detach": detach, "diagonal": diagonal, "expand": _expand,
    "permute": _permute, "select": select, "slice": _slice, "split": split, "split_with_sizes": split_with_sizes,
    "squeeze": squeeze, "t": t, "transpose": transpose, "unbind": unbind, "unfold": _unfold, "unsqueeze": unsqueeze,
    "view": _view, "view_as_complex": view_as_complex, "view_as_real": view_as_real,
}.items():  # fmt: skip
    _define_copy(_name, _show)
