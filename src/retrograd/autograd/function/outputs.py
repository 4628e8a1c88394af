"""The results of a `Function`'s forward, as outputs of its node."""

from retrograd.autograd.function.context import FunctionCtx
from retrograd.core import Aval, GradFn, Tensor, current, operator_named
from retrograd.core.dispatch import note_cut
from retrograd.core.dtype import is_differentiable
from retrograd.core.function_node import contains_tensor, describe_tensors, save_tensors
from retrograd.core.graph import note_output
from retrograd.core.record import notify_watchers
from retrograd.core.tensor import bump_version, make, version_of
from retrograd.core.views import COPIED, IN_FUNCTION, View, base_of
from retrograd.foundation.source_location import warn_user
from retrograd.ops.mutate import adopt_history, check_history

_detach = operator_named("detach")


def make_outputs(cls: type, ctx: FunctionCtx, args: tuple, results: tuple, recorded: bool) -> list:
    """Return the outputs for the caller: an input that is returned unchanged becomes a new tensor.

    Views that are returned refuse recorded writes: as those of a Function, or as several views of one operator.
    """
    single = len(results) == 1 or len(describe_tensors(results)) == 1
    meta = IN_FUNCTION if single else cls.__name__
    return [_make_output(ctx, args, r, meta, recorded) if isinstance(r, Tensor) else r for r in results]


def _make_output(ctx: FunctionCtx, args: tuple, result: Tensor, meta: str, recorded: bool) -> Tensor:
    if ctx.dirty_tensors and contains_tensor(result, ctx.dirty_tensors):
        return result
    if result._requires_grad or contains_tensor(result, args):
        fixed = contains_tensor(result, ctx.non_differentiable)
        return _detach(result) if fixed else _view_as_self(result, meta, recorded)
    if result._view is not None and result._view.creation_meta != COPIED:
        result._view.creation_meta = meta
    return result


def _view_as_self(tensor: Tensor, meta: str, recorded: bool) -> Tensor:
    """Return a view of all of a tensor, outside its graph, that refuses recorded writes."""
    out = make(tensor.value, tensor.level, tensor.tag)
    out.version = version_of(tensor)
    if tensor._requires_grad and not recorded:
        return out  # which may be written to: no backward could be wrong
    base = tensor if tensor._view is None else base_of(tensor._view)
    chain = () if tensor._view is None else tensor._view.chain
    out._view = View(base, chain, meta, out.version.rebases)
    return out


def check_dirty(cls: type, ctx: FunctionCtx, args: tuple, results: tuple, recorded: bool) -> None:
    """Bump the versions of inputs marked as dirty, after checking that they may be written to."""
    tensors = sum(isinstance(r, Tensor) for r in results)
    for tensor in ctx.dirty_tensors:
        if not contains_tensor(tensor, results):
            raise RuntimeError(
                f"{cls.__name__}: Some elements marked as dirty during the forward method were not returned as output. "
                f"The inputs that are modified inplace must all be outputs, and one of shape {tensor.shape} is not"
            )
        bump_version(tensor)
        if not recorded:
            continue
        if not contains_tensor(tensor, args):
            warn_user(
                f"{cls.__name__}: Only input Tensors should be given to ctx.mark_dirty(); that of shape {tensor.shape} "
                f"is none"
            )
        if tensor._grad_fn is None and tensor.requires_grad and tensor._view is None:
            raise RuntimeError(
                f"{cls.__name__}: a leaf Variable that requires grad has been used in an in-place operation: "
                f"mark_dirty "
                f"of a leaf of shape {tensor.shape}; pass x.clone()"
            )
        check_history(tensor)
        if tensor._view is not None and tensors > 1:
            raise RuntimeError(
                f"{cls.__name__}: If your Function modifies inplace an input that is a view of another Tensor, your "
                f"Function cannot return more than one Tensor"
            )


def attach_outputs(fn: GradFn, ctx: FunctionCtx, outputs: list) -> None:
    """Make the tensors that forward returned the outputs of the node."""
    tensors = describe_tensors(outputs)
    ctx._outputs, ctx._num_returned = tensors, len(outputs)
    if len(tensors) > 1:
        fn.out_avals = tuple([Aval(shape, dtype) for _, shape, dtype in tensors])  # type: ignore[attr-defined]
    elif tensors:
        note_output(fn, outputs[tensors[0][0]])
    for number, (index, _, dtype) in enumerate(tensors):
        out = outputs[index]
        if not is_differentiable(dtype) or (ctx.non_differentiable and contains_tensor(out, ctx.non_differentiable)):
            ctx._fixed_outputs = (*ctx._fixed_outputs, number)
            if out.level is None:
                note_cut(out, "mark_non_differentiable")
        elif ctx.dirty_tensors and contains_tensor(out, ctx.dirty_tensors):
            _rebase_history(fn, number, out)
        else:
            out._grad_fn, out._output_nr, out._requires_grad = fn, number, True
    if ctx.to_save:
        save_tensors(fn, ctx, tuple([outputs[index] for index, _, _ in tensors]))
    watchers = current().watchers
    if watchers is not None:
        notify_watchers(watchers, fn)


def _rebase_history(fn: GradFn, number: int, out: Tensor) -> None:
    """Give a tensor that was written to, and if it is a view its base, a new history."""
    target = make(out.value, out.level, None)
    target._grad_fn, target._output_nr, target._requires_grad = fn, number, True
    adopt_history(out, target)
