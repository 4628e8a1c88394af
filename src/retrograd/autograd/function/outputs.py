"""The results of a `Function`'s forward, as outputs of its node."""

import warnings

from retrograd.autograd.function.context import FunctionCtx, contains_tensor, save_tensors
from retrograd.core import Aval, GradFn, Tensor, current, operator_named
from retrograd.core.dispatch import note_cut
from retrograd.core.dtype import is_differentiable
from retrograd.core.graph import note_output
from retrograd.core.tensor import bump_version, make, version_of
from retrograd.core.views import COPIED, View, base_of
from retrograd.ops.mutate import adopt_history, check_history

IN_FUNCTION = "custom Function"
_detach = operator_named("detach")


def make_output(ctx: FunctionCtx, args: tuple, result: Tensor) -> Tensor:
    """Return an output for the caller: an input that is returned unchanged becomes a new tensor."""
    if ctx.dirty_tensors and contains_tensor(result, ctx.dirty_tensors):
        return result
    if result._requires_grad or contains_tensor(result, args):
        return _detach(result) if contains_tensor(result, ctx.non_differentiable) else _view_as_self(result)
    if result._view is not None and result._view.creation_meta != COPIED:
        result._view.creation_meta = IN_FUNCTION
    return result


def _view_as_self(tensor: Tensor) -> Tensor:
    """Return a view of all of a tensor, outside its graph, that refuses recorded writes."""
    out = make(tensor.value, tensor.level, tensor.tag)
    out.version = version_of(tensor)
    base = tensor if tensor._view is None else base_of(tensor._view)
    chain = () if tensor._view is None else tensor._view.chain
    out._view = View(base, chain, IN_FUNCTION, out.version.rebases)
    return out


def check_dirty(cls: type, ctx: FunctionCtx, args: tuple, results: tuple, recorded: bool) -> None:
    """Bump the versions of inputs marked as dirty, after checking that they may be written to."""
    tensors = sum(isinstance(r, Tensor) for r in results)
    for tensor in ctx.dirty_tensors:
        if not contains_tensor(tensor, results):
            raise RuntimeError(
                f"{cls.__name__}: Some elements marked as dirty during the forward method were not returned as output: "
                f"a tensor of shape {tensor.shape}. The inputs that are modified inplace must all be outputs"
            )
        bump_version(tensor)
        if not recorded:
            continue
        if not contains_tensor(tensor, args):
            warnings.warn(
                f"{cls.__name__}: Only input Tensors need ctx.mark_dirty(); that of shape {tensor.shape} is none",
                stacklevel=4,
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
    tensors = [(index, out.shape, out.dtype) for index, out in enumerate(outputs) if isinstance(out, Tensor)]
    ctx._outputs, ctx._num_returned = tensors, len(outputs)
    if len(tensors) > 1:
        fn.out_avals = tuple([Aval(shape, dtype) for _, shape, dtype in tensors])  # type: ignore[attr-defined]
    elif tensors:
        note_output(fn, outputs[tensors[0][0]])
    for number, (index, _, dtype) in enumerate(tensors):
        out = outputs[index]
        if not is_differentiable(dtype) or (ctx.non_differentiable and contains_tensor(out, ctx.non_differentiable)):
            if out.level is None:
                note_cut(out, "mark_non_differentiable")
        elif ctx.dirty_tensors and contains_tensor(out, ctx.dirty_tensors):
            _rebase_history(fn, number, out)
        else:
            out._grad_fn, out._output_nr, out._requires_grad = fn, number, True
    if ctx.to_save:
        save_tensors(fn, ctx, tuple([outputs[index] for index, _, _ in tensors]))
    for watcher in current().watchers or ():
        watcher.on_node_created(fn)


def _rebase_history(fn: GradFn, number: int, out: Tensor) -> None:
    """Give a tensor that was written to, and if it is a view its base, a new history."""
    target = make(out.value, out.level, None)
    target._grad_fn, target._output_nr, target._requires_grad = fn, number, True
    adopt_history(out, target)
