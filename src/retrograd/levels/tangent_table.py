"""Forward mode of `dual_level`: tensors stay as they are, and a level stores the tangents of some of them."""

import weakref
from typing import Any

from retrograd.core import Definition, Op, Tensor, call, current, override_state, registry
from retrograd.core.definition import Operator
from retrograd.core.dtype import is_differentiable
from retrograd.core.level import TransparentLevel
from retrograd.core.schema_parser import parse
from retrograd.core.views import base_of
from retrograd.levels.dual import forward_mode_switch, output_tangents
from retrograd.ops.batching import batch_all
from retrograd.ops.family import apply_views
from retrograd.ops.mutate import view_scatter


def is_forward_mode_on() -> bool:
    """Whether tangents are computed now on this thread: unless that is switched off, or in inference mode."""
    on: bool = forward_mode_switch().on and not current().inference
    return on


class WeakIdDict:
    """A dict from objects, compared by identity and held weakly, to values."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref, Any]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, owner: Any) -> Any:
        """Return the value of an object, or None."""
        found = self._entries.get(id(owner))
        if found is None or found[0]() is not owner:  # an interrupt may have left the entry of a freed owner
            return None
        return found[1]

    def set(self, owner: Any, what: Any) -> None:
        """Set the value of an object, or remove it with None."""
        number, entries = id(owner), self._entries
        if what is None:
            entries.pop(number, None)
        else:
            entries[number] = weakref.ref(owner, lambda _: entries.pop(number, None)), what

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()


class DualAnchor(list):
    """The `shape` param of a full view that, at one level, has another tangent than its base."""

    def __init__(self, level: "TangentTableLevel", x: Tensor) -> None:
        super().__init__(x.shape)
        self.level = level
        self.aval = x.aval


class _PackedTensor:
    """A saved tensor after the outer hooks, and its tangent; the tensor itself until the tangent is known."""

    def __init__(self, packed: Any, tensor: Tensor) -> None:
        self.packed = packed
        self.tensor: Tensor | None = tensor
        self.tangent: Tensor | None = None


class _TangentHooks:
    """Saved-tensor hooks that restore the tangents together with the values."""

    def __init__(self, level: "TangentTableLevel", hooks: Any) -> None:
        self._level = level
        self._hooks = hooks
        self._new: list[_PackedTensor] = []

    def pack(self, tensor: Tensor) -> _PackedTensor:
        packed = _PackedTensor(self._hooks.pack(tensor), tensor)
        self._new.append(packed)
        return packed

    def pack_tangents(self) -> None:
        """Pack the saved outputs, whose tangents are known once the operator is done."""
        for packed in self._new:
            packed.tangent, packed.tensor = self._level.tangent(packed.tensor), None
        self._new.clear()

    def unpack(self, packed: _PackedTensor) -> Any:
        tensor = self._hooks.unpack(packed.packed)
        if packed.tangent is None or not self._level.active or not isinstance(tensor, Tensor):
            return tensor
        return self._level.restore_saved(tensor, packed.tangent)


def _base(tangent: Tensor) -> Tensor:
    """Return the tensor whose memory a tangent views, or itself."""
    return tangent if tangent._view is None else base_of(tangent._view)


def _is_writable(tangent: Tensor) -> bool:
    """Whether a tangent may be written in place: above the ground values are never overwritten, and leaves neither."""
    return tangent.level is None and not (tangent.requires_grad and tangent._grad_fn is None)


class TangentTableLevel(TransparentLevel):
    """Stores tangents, tensors of the level below, for tensors that belong to that level too.

    A tangent belongs to the value of a tensor (an array or a tensor of the parent), since the graph holds other tensor
    objects with the same value. The tangent of a view is the same view of the tangent of its base, or of the last
    `DualAnchor` view in its chain, as dual tensors are.
    """

    def __init__(self) -> None:
        self.paused = False  # True while a user's Function runs: its jvp computes the tangents
        self._tangents = WeakIdDict()  # by the owner that `_owner_and_chain` returns
        self._given = WeakIdDict()  # the tangents, or their bases, that the program gave: writes to a dual change them
        self._views = WeakIdDict()  # on the ground, by value: hooks receive saved views as tensors without view data

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)
        self._tangents.clear()
        self._given.clear()
        self._views.clear()

    def process(self, op: Op, args: tuple, params: dict) -> Any:
        """Run the operator, and where an argument has a tangent its jvp rule."""
        if params.get("level") is self:
            return op.definition.here(self, *args)
        tangents = tuple([self.tangent(a) for a in args]) if len(self._tangents) else ()
        if not op.differentiable or all(t is None for t in tangents):
            return call(op, args, params)
        if current().saving is None:
            return self._apply_jvp(op, args, params, tangents)
        hooks = _TangentHooks(self, current().saving)
        with override_state("saving", hooks):
            out = self._apply_jvp(op, args, params, tangents)
        hooks.pack_tangents()
        return out

    def _apply_jvp(self, op: Op, args: tuple, params: dict, tangents: tuple) -> Any:
        """Return the result with its tangent."""
        out = call(op, args, params)
        if op.view and isinstance(out, Tensor) and out._view is not None:
            if out.level is not None:  # there the graph saves it by value, which is never overwritten
                self._tangents.set(out.value, self.tangent(out))
            return out
        dots = output_tangents(op, args, tangents, out, params)
        if isinstance(out, tuple):
            return tuple([self._attach_tangent(op, o, t) for o, t in zip(out, dots, strict=True)])
        return self._attach_tangent(op, out, dots)

    def _attach_tangent(self, op: Op, out: Tensor, tangent: Tensor | None) -> Tensor:
        """Return a result with its tangent."""
        if tangent is None:
            return out
        if issubclass(op.definition, LevelOperator):  # the result may be an existing tensor
            return self.dual(out, tangent)
        self.set_new_tangent(out, tangent)
        return out

    def set_new_tangent(self, out: Tensor, tangent: Tensor) -> None:
        """Set the tangent of a new tensor that is no view."""
        self._tangents.set(out.value, self._unshared(tangent))

    def _is_given(self, tangent: Tensor) -> bool:
        return self._given.get(_base(tangent)) is not None

    def _unshared(self, tangent: Tensor) -> Tensor:
        """Return a tangent that no write to another tensor changes: a copy of one that the program gave."""
        return registry["clone"](tangent) if self._is_given(tangent) else tangent

    # ------------------------------------------------------------------------------------------ looking up

    def tangent(self, x: object) -> Tensor | None:
        """Return the tangent of a tensor; None stands for zero."""
        if self.paused or not is_forward_mode_on() or not isinstance(x, Tensor):
            return None
        owner, chain = self._owner_and_chain(x)
        found: Tensor | None = self._tangents.get(owner)
        if found is None:
            return None
        if x._view is not None and x.level is None:
            self._views.set(x.value, x._view)
        if not chain:
            return found
        with self.below():
            return apply_views(found, chain)

    def lost_derivatives(self, x: Tensor) -> str:
        """Return "has a tangent", for errors, if x has one, else ""."""
        return "" if self.tangent(x) is None else "has a tangent"

    def tangent_owner(self, x: Tensor) -> object:
        """Return the object that the tangent of x, or of its base, is stored for."""
        return self._owner_and_chain(x)[0]

    def _owner_and_chain(self, x: Tensor) -> tuple[Any, tuple]:
        """Return the owner of the tangent, and the chain of views, (name, params), from the owner to x."""
        # A view has no tangent of its own: walk its chain back to the nearest anchor, or to the base, and remember the
        # view operators on the way, which turn the owner's tangent into that of x.
        view = x._view if x._view is not None else self._views.get(x.value)
        if view is None:
            return x.value, ()
        steps: list[tuple[str, dict]] = []
        for op, params in reversed(view.chain):
            if not op.differentiable:  # such as detach(): it shares values, not tangents
                return x.value, ()
            start = params.get("shape")
            if not isinstance(start, DualAnchor):
                steps.insert(0, (op.name, params))
            elif start.level is self:
                return start, tuple(steps)
        return view.base.value, tuple(steps)

    # ------------------------------------------------------------------------------------------ setting

    def dual_of_given(self, x: Tensor, tangent: Tensor) -> Tensor:
        """Return a full view of x with a tangent of the program, which writes to the view update."""
        self._given.set(_base(tangent), True)
        return self.dual(x, tangent)

    def dual(self, x: Tensor, tangent: Tensor | None) -> Tensor:
        """Return a full view of x with this tangent, whether or not x has one."""
        start = DualAnchor(self, x)
        out = call(registry["reshape"], (x,), {"shape": start})
        if x.level is None:
            self._tangents.set(start, tangent)
        else:  # values above the ground are never overwritten, so no memory is shared
            out._view = out.version = None
            self._tangents.set(out.value, tangent)
        return out

    def restore_saved(self, x: Tensor, tangent: Tensor) -> Tensor:
        """Return a saved tensor with the tangent that it had when it was saved."""
        with self.below():
            out = self.dual(x, tangent)
        if out._view is not None:
            self._views.set(out.value, out._view)
        return out

    def set_tangent(self, x: Tensor, tangent: Tensor | None) -> None:
        """Set the tangent of x, and with it the matching part of the tangents of its base and views."""
        owner, chain = self._owner_and_chain(x)
        whole = self._tangents.get(owner)
        if whole is None and tangent is None:
            return
        if whole is not None and self._is_given(whole) and _is_writable(whole):
            with self.below():
                part = apply_views(whole, chain)
                part.zero_() if tangent is None else part.copy_(tangent)
            return
        # A write to a part makes a new tangent for the whole owner: zeros where it had none, and the written part
        # scattered through the chain of views.
        with self.below():
            if whole is None and isinstance(owner, DualAnchor):
                whole = registry["zeros"](owner.aval.shape, dtype=owner.aval.dtype)
            elif whole is None:
                whole = registry["zeros_like"](x if x._view is None else x._view.base)
            new = call(view_scatter, (whole, 0.0 if tangent is None else tangent), {"chain": chain})
            self._tangents.set(owner, self._unshared(new))

    def on_write(self, x: Tensor, src: Any) -> None:
        """Update the tangent of x after `src` was written into it; None means that x was detached."""
        if self.paused or not is_forward_mode_on() or not is_differentiable(x.dtype):
            return
        if src is None:
            self._tangents.set(self.tangent_owner(x), None)
        else:
            self.set_tangent(x, self.tangent(src))


# --------------------------------------------------------------------------------- operators of one forward level


class LevelOperator(Definition):
    """Sets or reads tangents at the level that is its param; inner levels process it like any other operator."""

    @classmethod
    def batch(cls, batched, n, /, *args, **params):
        """Run the operator on batched arguments: the tangent has the examples where the value has them."""
        return call(cls.operator(), tuple(batch_all(args, batched, n)), params)


def _nesting_error(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"{name}: a function transform inside a dual_level can't differentiate with respect to the tangents of that "
        f"level; enter the dual_level inside the function that is transformed"
    )


class _MakeDual(LevelOperator, linear="primal,tangent"):
    @classmethod
    def operator(cls) -> Op:
        return make_dual

    @classmethod
    def here(cls, level: TangentTableLevel, primal: Tensor, tangent: Tensor) -> Tensor:
        if primal.level is None and tangent.level is None and primal.value.strides != tangent.value.strides:
            tangent = registry["zeros_like"](primal).copy_(tangent)  # in the memory order of the primal
        return level.dual_of_given(primal, tangent)

    def vjp_primal(g):
        return g

    def vjp_tangent(g):
        raise _nesting_error("make_dual")


class _PrimalOf(LevelOperator, linear="x"):
    @classmethod
    def operator(cls) -> Op:
        return primal_of

    @classmethod
    def here(cls, level: TangentTableLevel, x: Tensor) -> Tensor:
        return level.dual(x, None)

    def vjp_x(g):
        return g


class _TangentOf(LevelOperator, linear="x"):
    @classmethod
    def operator(cls) -> Op:
        return tangent_of

    @classmethod
    def here(cls, level: TangentTableLevel, x: Tensor) -> Tensor:
        found = level.tangent(x)
        return registry["zeros"](x.shape, dtype=x.dtype) if found is None else found

    def vjp_x(g):
        raise _nesting_error("unpack_dual")


# They are not registered: they have no kernel, and no meaning without their level.
make_dual = Operator(parse("make_dual(Tensor primal, Tensor tangent, *, any level) -> Tensor"), _MakeDual)
primal_of = Operator(parse("primal_of(Tensor x, *, any level) -> Tensor"), _PrimalOf)
tangent_of = Operator(parse("tangent_of(Tensor x, *, any level) -> Tensor"), _TangentOf)


# ------------------------------------------------------------------------------------------------ which are at work


def forward_levels() -> list[TangentTableLevel]:
    """Return the active forward levels of this thread, from the outermost to the innermost."""
    found: list[TangentTableLevel] = []
    level = current().level
    while level is not None:
        if isinstance(level, TangentTableLevel):
            found.insert(0, level)
        level = level.parent
    return found
