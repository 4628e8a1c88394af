"""A user's Function on a batch: the results of its own `vmap`, or a rule generated from its other methods."""

from typing import Any, NamedTuple

from retrograd.core import Tensor, registry
from retrograd.core.tensor import make
from retrograd.foundation.lazy_imports import lazy_module
from retrograd.levels import VmapLevel, value_at
from retrograd.levels.batch import VmapOperands
from retrograd.ops.batching import broadcast_batch


class VmapInfo(NamedTuple):
    """The information passed to a Function's vmap: the number of examples, and the randomness mode."""

    batch_size: int
    randomness: str


def move_batch_dims_first(name: str, n: int, result: Any, operands: VmapOperands) -> Any:
    """Return the outputs of a user's vmap, with the batch dimension moved to the front."""
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(
            f"{name}: Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure "
            f"compatible with the output. Got a {type(result)} instead: vmap must return a tuple (output, out_dims)"
        )
    out, dims = result
    optree = lazy_module("optree")  # importing it is slow
    leaves, spec = optree.tree_flatten(out, none_is_leaf=True)
    try:
        each = optree.tree_leaves(optree.tree_broadcast_prefix(dims, out, none_is_leaf=True), none_is_leaf=True)
    except ValueError:
        raise RuntimeError(
            f"{name}: the vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
            f"out_dims={dims} to be compatible with the structure of `output`, {spec}"
        ) from None
    moved = [_move_batch_dim_first(o, d, n, operands) for o, d in zip(leaves, each, strict=True)]
    return optree.tree_unflatten(spec, moved)


def _move_batch_dim_first(out: Any, dim: int | None, n: int, operands: VmapOperands) -> Any:
    if not isinstance(out, Tensor):
        return out
    if dim is None:
        return broadcast_batch(out, n)
    if not dim:
        return out
    written = operands.value_if_given(out, dim)
    return registry["movedim"](out, dim, 0) if written is None else written


class _BatchedCall:
    """Moves the arguments of a Function into a level that runs it on all examples, and results out of it."""

    def __init__(self, n: int, randomness: str) -> None:
        self.n = n
        self.randomness = randomness

    def level(self, cls: type) -> VmapLevel:
        return VmapLevel(self.n, self.randomness, cls)

    def lift(self, level: VmapLevel, values: Any, batched: Any) -> list:
        return [
            make(v, level, "an argument" if b else None) if isinstance(v, Tensor) else v
            for v, b in zip(values, batched, strict=True)
        ]

    def all_examples(self, level: VmapLevel, out: Any) -> Any:
        if isinstance(out, tuple):
            return tuple([self.all_examples(level, o) for o in out])
        return level.all_examples(out) if isinstance(out, Tensor) else out

    def cotangent(self, level: VmapLevel, g: Any, batched: bool) -> Any:
        """Return the cotangent of an argument; a shared argument gets the sum over the examples."""
        if g is None:
            return None
        return level.all_examples(g) if batched else registry["sum"](level.all_examples(g), dim=0)


def make_batched_function(base: Any, cls: Any, batched: tuple[bool, ...], n: int, randomness: str) -> Any:
    """Return the Function that runs another's methods on n examples at once; `batched` marks arguments that differ."""
    batch = _BatchedCall(n, randomness)

    class Generated(base):
        generate_vmap_rule = True

        @staticmethod
        def forward(*args: Any) -> Any:
            with batch.level(cls) as level:
                out = cls.forward(*batch.lift(level, args, batched))
            return batch.all_examples(level, out)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
            outputs = output if isinstance(output, tuple) else (output,)
            with batch.level(cls) as level:
                lifted = batch.lift(level, outputs, (True,) * len(outputs))
                ctx.inner = cls._backward_cls()
                ctx.inner.needs_input_grad = ctx.needs_input_grad
                inner_output = tuple(lifted) if isinstance(output, tuple) else lifted[0]
                cls.setup_context(ctx.inner, tuple(batch.lift(level, inputs, batched)), inner_output)
            _save_from_inner(ctx, level, outputs, lifted)

        @staticmethod
        def backward(ctx: Any, *gs: Any) -> Any:
            with batch.level(cls) as level:
                ctx.inner.to_save = _restore_saved(level, ctx.saved_tensors, ctx.saved_batched)
                found = cls._run_backward(ctx.inner, batch.lift(level, gs, (True,) * len(gs)))
                ctx.inner.to_save = ()
            found = found if isinstance(found, tuple) else (found,)
            return tuple([batch.cotangent(level, g, b) for g, b in zip(found, batched, strict=False)])

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            with batch.level(cls) as level:
                ctx.inner.to_save = _restore_saved(
                    level, ctx.saved_tensors, ctx.saved_for_forward_batched or ctx.saved_batched
                )
                out = cls.jvp(ctx.inner, *batch.lift(level, tangents, batched))
            return batch.all_examples(level, out)

    Generated.__name__ = Generated.__qualname__ = Generated._operator.name = cls.__name__
    Generated._backward_cls = cls._backward_cls
    Generated.batched_from = cls, batched, n, randomness
    return Generated


def _save_from_inner(ctx: Any, level: VmapLevel, outputs: tuple, lifted: list) -> None:
    """Save, one level below, what setup_context saved for the examples, and note which of it differs between them."""
    inner = ctx.inner
    if inner.dirty_tensors:
        raise NotImplementedError(f"{level.function}: mark_dirty is not supported with generate_vmap_rule = True")
    ctx.saved_batched, ctx.saved_for_forward_batched = (
        _batched_flags(level, inner.to_save),
        _batched_flags(level, inner.saved_for_forward),
    )
    ctx.save_for_backward(*[value_at(level, t) for t in inner.to_save])
    ctx.save_for_forward(*[value_at(level, t) for t in inner.saved_for_forward])
    marked = inner.non_differentiable
    fixed = [out for out, shown in zip(outputs, lifted, strict=True) if any(shown is f for f in marked)]
    ctx.mark_non_differentiable(*fixed)
    ctx.set_materialize_grads(inner.materialize_grads)
    inner.to_save = inner.non_differentiable = inner.saved_for_forward = ()


def _batched_flags(level: VmapLevel, tensors: tuple) -> list[bool]:
    return [level.differs(t) for t in tensors]


def _restore_saved(level: VmapLevel, saved: tuple, differing: list[bool]) -> tuple:
    pairs = zip(saved, differing, strict=True)
    return tuple([make(t, level, "a saved tensor" if d else None) if isinstance(t, Tensor) else t for t, d in pairs])
