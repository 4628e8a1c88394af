"""Forward mode beside the program: tensors stay what they are, and a level keeps the tangents of some of them."""

import threading
import weakref
from typing import Any

from retrograd.core import Definition, Level, Op, Tensor, call, current, override_state, registry
from retrograd.core.definition import Operator
from retrograd.core.dtype import is_differentiable
from retrograd.core.level import thread_values
from retrograd.core.schema import parse
from retrograd.ops.batching import batch_all
from retrograd.ops.family import shown
from retrograd.ops.mutate import view_scatter


class _Switch(threading.local):
    """Whether forward levels are at work on this thread."""

    on = True


switch = _Switch()
thread_values.append(switch)


class WeakIdDict:
    """Something beside each of some objects, found by their identity, for as long as they live."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[weakref.ref, Any]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, owner: Any) -> Any:
        """What is beside an object, or None."""
        found = self._kept.get(id(owner))
        if found is None or found[0]() is not owner:  # an interrupt may have kept an entry whose owner is gone
            return None
        return found[1]

    def set(self, owner: Any, what: Any) -> None:
        """Put something beside an object, or with None take it away."""
        number, kept = id(owner), self._kept
        if what is None:
            kept.pop(number, None)
        else:
            kept[number] = weakref.ref(owner, lambda _: kept.pop(number, None)), what

    def clear(self) -> None:
        """Forget everything."""
        self._kept.clear()


class DualAnchor(list):
    """The shape of a view that shows all of its base, but whose tangent at one level is a matter of its own."""

    def __init__(self, level: "ForwardLevel", x: Tensor) -> None:
        super().__init__(x.shape)
        self.level = level
        self.aval = x.aval


class _Packed:
    """What hooks made of a saved tensor, and its tangent; the tensor itself until that is known."""

    def __init__(self, packed: Any, tensor: Tensor) -> None:
        self.packed = packed
        self.tensor: Tensor | None = tensor
        self.tangent: Tensor | None = None


class _Hooks:
    """Hooks of saved tensors, by which tangents come back with the values, in whatever form these were kept."""

    def __init__(self, level: "ForwardLevel", hooks: Any) -> None:
        self._level = level
        self._hooks = hooks
        self._new: list[_Packed] = []

    def pack(self, tensor: Tensor) -> _Packed:
        packed = _Packed(self._hooks.pack(tensor), tensor)
        self._new.append(packed)
        return packed

    def settle(self) -> None:
        """The operator that saved is done, and its result has a tangent."""
        for packed in self._new:
            packed.tangent, packed.tensor = self._level.tangent(packed.tensor), None
        self._new.clear()

    def unpack(self, packed: _Packed) -> Any:
        tensor = self._hooks.unpack(packed.packed)
        if packed.tangent is None or not self._level.active or not isinstance(tensor, Tensor):
            return tensor
        return self._level.again(tensor, packed.tangent)


class ForwardLevel(Level):
    """Keeps tangents, tensors of the level below, of tensors that are of that level too.

    A tangent belongs to the value of a tensor, an array or a tensor of the parent, since the graph knows a tensor by
    other objects around the same value.  Views have the same view of the tangent of their base, or of what they were
    made from behind the base: a view whose shape is a `DualAnchor`, as dual tensors are.
    """

    transparent, own_mode = True, False

    def __init__(self) -> None:
        self.paused = False  # a user's Function runs, whose tangents come from its jvp
        self._tangents = WeakIdDict()  # by what `_place` says
        self._views = WeakIdDict()  # on the ground, by value: hooks get saved views as tensors that are none

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)
        self._tangents.clear()
        self._views.clear()

    def process(self, op: Op, args: tuple, params: dict) -> Any:
        """The operator, and where an argument has a tangent its derivative along these."""
        if params.get("level") is self:
            return op.definition.here(self, *args)
        tangents = tuple([self.tangent(a) for a in args]) if len(self._tangents) else ()
        if not op.differentiable or all(t is None for t in tangents):
            return call(op, args, params)
        if current().saving is None:
            return self._differentiated(op, args, params, tangents)
        hooks = _Hooks(self, current().saving)
        with override_state("saving", hooks):
            out = self._differentiated(op, args, params, tangents)
        hooks.settle()
        return out

    def _differentiated(self, op: Op, args: tuple, params: dict, tangents: tuple) -> Any:
        """The result, with its tangent."""
        out = call(op, args, params)
        if isinstance(out, tuple):
            dots = op.definition.jvp(op, args, tangents, out, params)
            return tuple([self._with(op, o, t) for o, t in zip(out, dots, strict=True)])
        if not is_differentiable(out.dtype):
            return out
        if op.view and out._view is not None:
            if out.level is not None:  # where the graph saves it by its value, which is never overwritten
                self._tangents.set(out.value, self.tangent(out))
            return out
        return self._with(op, out, op.definition.jvp(op, args, tangents, out, params))

    def _with(self, op: Op, out: Tensor, tangent: Tensor | None) -> Tensor:
        """A result with its tangent."""
        if issubclass(op.definition, OfLevel):  # it may be a tensor that was there before
            return out if tangent is None else self.dual(out, tangent)
        if tangent is not None and is_differentiable(out.dtype):
            self.keep(out, tangent)
        return out

    def keep(self, out: Tensor, tangent: Tensor) -> None:
        """A new tensor, which is no view, has this tangent."""
        self._tangents.set(out.value, tangent)

    # ------------------------------------------------------------------------------------------ looking up

    def tangent(self, x: object) -> Tensor | None:
        """The tangent of a tensor; None is zero."""
        if self.paused or not switch.on or not isinstance(x, Tensor):
            return None
        owner, chain = self._place(x)
        found: Tensor | None = self._tangents.get(owner)
        if found is None:
            return None
        if x._view is not None and x.level is None:
            self._views.set(x.value, x._view)
        if not chain:
            return found
        with self.below():
            return shown(found, chain)

    def lost(self, x: Tensor) -> str:
        """Whether x has a tangent, as errors put it."""
        return "" if self.tangent(x) is None else "has a tangent"

    def storage(self, x: Tensor) -> object:
        """What the tangent of a tensor, or the one that it is a part of, belongs to."""
        return self._place(x)[0]

    def _place(self, x: Tensor) -> tuple[Any, tuple]:
        """What has the tangent that x has a part of, and the chain of views, (name, params), from there to x."""
        view = x._view if x._view is not None else self._views.get(x.value)
        if view is None:
            return x.value, ()
        steps: list[tuple[str, dict]] = []
        for op, params in reversed(view.chain):
            if not op.differentiable:  # as detach(): it shows the numbers alone
                return x.value, ()
            start = params.get("shape")
            if not isinstance(start, DualAnchor):
                steps.insert(0, (op.name, params))
            elif start.level is self:
                return start, tuple(steps)
        return view.base.value, tuple(steps)

    # ------------------------------------------------------------------------------------------ setting

    def dual(self, x: Tensor, tangent: Tensor | None) -> Tensor:
        """A view of all of x that has this tangent, whatever x has."""
        start = DualAnchor(self, x)
        out = call(registry["reshape"], (x,), {"shape": start})
        if x.level is None:
            self._tangents.set(start, tangent)
        else:  # nothing is overwritten above the ground: there is no memory to share
            out._view = out.version = None
            self._tangents.set(out.value, tangent)
        return out

    def again(self, x: Tensor, tangent: Tensor) -> Tensor:
        """A tensor that stands for one that was saved, with the tangent of that."""
        with self.below():
            out = self.dual(x, tangent)
        if out._view is not None:
            self._views.set(out.value, out._view)
        return out

    def put(self, x: Tensor, tangent: Tensor | None) -> None:
        """From now on x has this tangent, and what x shows or is shown by its part of it."""
        owner, chain = self._place(x)
        whole = self._tangents.get(owner)
        if whole is None and tangent is None:
            return
        with self.below():
            if whole is None and isinstance(owner, DualAnchor):
                whole = registry["zeros"](owner.aval.shape, dtype=owner.aval.dtype)
            elif whole is None:
                whole = registry["zeros_like"](x if x._view is None else x._view.base)
            self._tangents.set(
                owner, call(view_scatter, (whole, 0.0 if tangent is None else tangent), {"chain": chain})
            )

    def wrote(self, x: Tensor, src: Any) -> None:
        """`src` was written into x; None says that x left its graph."""
        if self.paused or not switch.on or not is_differentiable(x.dtype):
            return
        if src is None:
            self._tangents.set(self.storage(x), None)
        else:
            self.put(x, self.tangent(src))


# --------------------------------------------------------------------------------- operators of one forward level


class OfLevel(Definition):
    """Sets or reads tangents at the level that is its param: levels inside that one see an operator like others."""

    @classmethod
    def batch(cls, batched, n, /, *args, **params):
        """The tangent has the examples where the value has them."""
        return call(cls.operator(), tuple(batch_all(args, batched, n)), params)


def _inside_out(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"{name}: a function transform inside a dual_level can't differentiate with respect to the tangents of that "
        f"level; enter the dual_level inside the function that is transformed"
    )


class _MakeDual(OfLevel, linear="primal,tangent"):
    @classmethod
    def operator(cls) -> Op:
        return make_dual

    @classmethod
    def here(cls, level: ForwardLevel, primal: Tensor, tangent: Tensor) -> Tensor:
        if primal.level is None and tangent.level is None and primal.value.strides != tangent.value.strides:
            tangent = registry["zeros_like"](primal).copy_(tangent)  # in the order that the primal has in memory
        return level.dual(primal, tangent)

    def vjp_primal(g):
        return g

    def vjp_tangent(g):
        raise _inside_out("make_dual")


class _PrimalOf(OfLevel, linear="x"):
    @classmethod
    def operator(cls) -> Op:
        return primal_of

    @classmethod
    def here(cls, level: ForwardLevel, x: Tensor) -> Tensor:
        return level.dual(x, None)

    def vjp_x(g):
        return g


class _TangentOf(OfLevel, linear="x"):
    @classmethod
    def operator(cls) -> Op:
        return tangent_of

    @classmethod
    def here(cls, level: ForwardLevel, x: Tensor) -> Tensor:
        found = level.tangent(x)
        return registry["zeros"](x.shape, dtype=x.dtype) if found is None else found

    def vjp_x(g):
        raise _inside_out("unpack_dual")


# They are in no registry: they have no kernel, and no meaning without their level.
make_dual = Operator(parse("make_dual(Tensor primal, Tensor tangent, *, any level) -> Tensor"), _MakeDual)
primal_of = Operator(parse("primal_of(Tensor x, *, any level) -> Tensor"), _PrimalOf)
tangent_of = Operator(parse("tangent_of(Tensor x, *, any level) -> Tensor"), _TangentOf)


# ------------------------------------------------------------------------------------------------ which are at work


def forward_levels() -> list[ForwardLevel]:
    """The forward levels of this thread that are at work, from the outermost to the innermost."""
    found: list[ForwardLevel] = []
    level = current().level
    while level is not None:
        if isinstance(level, ForwardLevel):
            found.insert(0, level)
        level = level.parent
    return found
