"""A user's Function on a batch: the results of its own `vmap`, or a rule generated from its other methods."""

from typing import Any

from retrograd.core import Tensor, registry
from retrograd.core.tensor import make
from retrograd.levels import VmapLevel, value_at
from retrograd.ops.batching import broadcast_batch


class VmapInfo:
    """The information passed to a Function's vmap: the number of examples, and the randomness mode."""

    __slots__ = ("batch_size", "randomness")

    def __init__(self, batch_size: int, randomness: str) -> None:
        self.batch_size = batch_size
        self.randomness = randomness


def examples_in_front(name: str, n: int, result: Any) -> Any:
    """Return the outputs of a user's vmap, with the batch dimension moved to the front."""
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(f"{name}: vmap must return a tuple (output, out_dims), got {type(result).__name__}")
    return _in_front(name, *result, n)


def _in_front(name: str, out: Any, dims: Any, n: int) -> Any:
    if isinstance(out, (tuple, list)):
        each = dims if isinstance(dims, (tuple, list)) else (dims,) * len(out)
        if len(each) != len(out):
            raise RuntimeError(f"{name}: vmap returned {len(out)} outputs, but out_dims for {len(each)}")
        found = [_in_front(name, o, d, n) for o, d in zip(out, each, strict=True)]
        return found if isinstance(out, list) else tuple(found)
    if not isinstance(out, Tensor):
        return out
    return broadcast_batch(out, n) if dims is None else out if dims == 0 else registry["movedim"](out, dims, 0)


class _Batch:
    """Moves the arguments of a Function into a level that runs it on all examples, and results out of it."""

    def __init__(self, n: int, randomness: str) -> None:
        self.n = n
        self.randomness = randomness

    def level(self, cls: type) -> VmapLevel:
        return VmapLevel(self.n, self.randomness, cls)

    def lifted(self, level: VmapLevel, values: Any, batched: Any) -> list:
        return [
            make(v, level, "an argument" if b else None) if isinstance(v, Tensor) else v
            for v, b in zip(values, batched, strict=True)
        ]

    def whole(self, level: VmapLevel, out: Any) -> Any:
        if isinstance(out, tuple):
            return tuple([self.whole(level, o) for o in out])
        return level.whole(out) if isinstance(out, Tensor) else out

    def cotangent(self, level: VmapLevel, g: Any, batched: bool) -> Any:
        """Return the cotangent of an argument; a shared argument gets the sum over the examples."""
        if g is None:
            return None
        return level.whole(g) if batched else registry["sum"](level.whole(g), dim=0)


def generated(base: Any, cls: Any, batched: tuple[bool, ...], n: int, randomness: str) -> Any:
    """Return the Function that runs another's methods on n examples at once; `batched` marks arguments that differ."""
    batch = _Batch(n, randomness)

    class Generated(base):
        generate_vmap_rule = True

        @staticmethod
        def forward(*args: Any) -> Any:
            with batch.level(cls) as level:
                out = cls.forward(*batch.lifted(level, args, batched))
            return batch.whole(level, out)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
            outputs = output if isinstance(output, tuple) else (output,)
            with batch.level(cls) as level:
                lifted = batch.lifted(level, outputs, (True,) * len(outputs))
                ctx.inner = type(ctx)()
                ctx.inner.needs_input_grad = ctx.needs_input_grad
                shown = tuple(lifted) if isinstance(output, tuple) else lifted[0]
                cls.setup_context(ctx.inner, tuple(batch.lifted(level, inputs, batched)), shown)
            _take_over(ctx, level, outputs, lifted)

        @staticmethod
        def backward(ctx: Any, *gs: Any) -> Any:
            with batch.level(cls) as level:
                ctx.inner._saved = _given_back(level, ctx.saved_tensors, ctx.kept)
                rule = cls.vjp if cls.backward is base.backward else cls.backward
                found = rule(ctx.inner, *batch.lifted(level, gs, (True,) * len(gs)))
                ctx.inner._saved = ()
            found = found if isinstance(found, tuple) else (found,)
            return tuple([batch.cotangent(level, g, b) for g, b in zip(found, batched, strict=False)])

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            with batch.level(cls) as level:
                ctx.inner._saved = _given_back(level, ctx.saved_tensors, ctx.kept_for_forward or ctx.kept)
                out = cls.jvp(ctx.inner, *batch.lifted(level, tangents, batched))
            return batch.whole(level, out)

    Generated.__name__ = Generated.__qualname__ = cls.__name__
    return Generated


def _take_over(ctx: Any, level: VmapLevel, outputs: tuple, lifted: list) -> None:
    """Save, one level below, what setup_context saved for the examples, and note which of it differs between them."""
    inner = ctx.inner
    if inner._dirty:
        raise NotImplementedError(f"{level.function}: mark_dirty is not supported with generate_vmap_rule = True")
    ctx.kept, ctx.kept_for_forward = _differing(level, inner._saved), _differing(level, inner._saved_for_forward)
    ctx.save_for_backward(*[value_at(level, t) for t in inner._saved])
    ctx.save_for_forward(*[value_at(level, t) for t in inner._saved_for_forward])
    fixed = [o for o, shown in zip(outputs, lifted, strict=True) if any(shown is f for f in inner._fixed)]
    ctx.mark_non_differentiable(*fixed)
    ctx.set_materialize_grads(inner._materializes)
    inner._saved = inner._fixed = inner._saved_for_forward = ()


def _differing(level: VmapLevel, tensors: tuple) -> list[bool]:
    return [level.differs(t) for t in tensors]


def _given_back(level: VmapLevel, saved: tuple, differing: list[bool]) -> tuple:
    pairs = zip(saved, differing, strict=True)
    return tuple([make(t, level, "a saved tensor" if d else None) if isinstance(t, Tensor) else t for t, d in pairs])
