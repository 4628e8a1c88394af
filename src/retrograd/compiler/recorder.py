"""The level that records a call: every kernel that runs on arrays, on all levels, in forward and backward passes."""

import operator
import sys
import weakref
from collections.abc import Callable
from functools import cache, partial
from itertools import takewhile
from typing import Any

from retrograd.backend import array_programs
from retrograd.compiler.exception_handlers import is_caught
from retrograd.compiler.generator_states import read_state, restore_state
from retrograd.compiler.program import (
    Add,
    Call,
    Eager,
    External,
    Instruction,
    Layouts,
    Result,
    SetData,
    SetGrad,
    Slot,
    Write,
)
from retrograd.compiler.specialization import may_raise
from retrograd.core import Tensor, call, current
from retrograd.core.aval import Aval
from retrograd.core.dispatch import in_order
from retrograd.core.graph import reserve_numbers
from retrograd.core.level import TransparentLevel
from retrograd.core.op import AuxOutput
from retrograd.core.state import Watcher
from retrograd.core.tensor import INFERENCE, count_of, is_floating_array, needs_no_promotion, version_of
from retrograd.core.views import ASSIGNED, COPIED
from retrograd.foundation.source_location import frames_from, is_user_frame, line_of, user_line
from retrograd.library.operator import CustomOperator

# What a function with some code is called with: the ids of its first argument, and of the variables around it.
Objects = tuple[int, tuple[int, ...]]
CALLED = ", called at "  # in the reason of a refusal, before the line of each call on the way to it


class Watched:
    """A tensor from outside the call, as it was when the call first could reach it."""

    __slots__ = ("count", "first_grad", "grad", "has_hooks", "position", "tensor", "value", "writes")

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.first_grad, self.has_hooks = tensor._grad, tensor._hooks is not None
        self.accept()

    def accept(self) -> None:
        """Take the tensor as it is for unchanged."""
        t = self.tensor
        self.grad, self.value, self.position = t._grad, t.value, _position(t)
        self.count, self.writes = count_of(t), 0

    def unrecorded_change(self) -> str:
        """Return what has changed besides .grad, without recorded writes; "" if nothing."""
        t = self.tensor
        if t.value is not self.value:
            return "the memory"
        if _position(t) != self.position:
            return "the graph"
        if (t._hooks is not None) is not self.has_hooks:
            return "the hooks"
        return "the values" if count_of(t) != self.count + self.writes and t.version is not INFERENCE else ""


def _position(t: Any) -> tuple:
    """Return the position of a tensor in its graph."""
    rebases = 0 if t.version is None else t.version.rebases
    return t._requires_grad, id(t._grad_fn), t.output_nr, id(t._view), rebases


class _Memory:
    """The array and the version counter that a tensor has had until now."""

    __slots__ = ("array", "tensor", "version")

    def __init__(self, tensor: Any) -> None:
        self.tensor, self.array, self.version = tensor, tensor.value, tensor.version

    def is_left(self) -> bool:
        """Return whether the tensor has another array now; if not, note its version counter."""
        if self.tensor.value is not self.array:
            return True
        self.version = self.tensor.version  # which a tensor has only from its first view or write on
        return False


class Recorder(TransparentLevel, Watcher):
    """Records the instructions of one call. It is the lowest level, so all others compute through it.

    As a level it sees operators and writes, as a watcher the arrays that backward passes compute themselves. Where it
    meets something that a program cannot contain, it notes the reason and records no more; the call goes on.
    """

    observes = True
    needs_results = True  # of every operator, so that recomputations end after one, and not within it

    def __init__(self) -> None:
        self.start = reserve_numbers(0)  # the creation number of the last node before the call
        self.instructions: list[Instruction] = []
        self.externals: dict[int, External] = {}  # by the id of the tensor
        self.refusal = ""
        self.refused_in: set[tuple[Any, int]] = set()  # the codes of users' functions that ran, their instructions
        self.refused_at: dict[Any, set[int]] = {}  # by the code of each function on the way to it: its instructions
        self.refused_for: dict[Any, set[Objects]] = {}  # by the same code
        self.operators = 0  # that ran, also after a refusal
        self._is_running = False  # whether an operator runs
        self._end: BaseException | None = None  # is raised after it
        self._caller = sys._getframe(1).f_code
        self._slots: dict[int, tuple[Any, Slot]] = {}  # by the id of an array: a weak reference to it, and its slot
        self._count = 0
        self.layouts: Layouts = {}
        self.memories: dict[Slot, Slot | None] = {}  # the array that owns the memory of each; None: one without a slot
        self.varying: list[Any] = []  # the tensors in whose place a later call may have others
        self.hooked: set[int] = set()  # the ids of leaves from outside whose hooks are guarded
        self.catching: set[Any] = set()  # the codes that were entered and handle exceptions
        self.watched: dict[int, Watched] = {}  # by the id of the tensor
        self._results: dict[int, tuple[Any, Any]] = {}  # by the id of a tensor: the tensor, and how to make it
        self._memory: dict[int, _Memory] = {}  # of the tensors that a program has names for, by their ids
        self._left: list[_Memory] = []  # what tensors have left: others may still share it
        self._states: dict[int, tuple[bytes, Slot]] = {}  # of random generators, by the id of the bytes
        self.first_arrays: dict[int, Any] = {}  # by the id of a tensor from outside that has left it

    def refuse(self, reason: str) -> None:
        """Note why the call cannot be captured; the first reason counts."""
        if not self.refusal:
            self.refuse_here(reason)

    def refuse_here(self, reason: str) -> None:
        """Note that no program can do what the code does now, also if another reason has refused the capture."""
        frames = self.frames_from(sys._getframe(1))
        users = [frame for frame in frames if is_user_frame(frame)]
        if not self.refusal:
            lines = [*map(line_of, users)] or [user_line()]
            self.refusal = f"{reason}, at {CALLED.join(lines)}" if lines[0] else reason
        if users:
            self.refused_in.add((users[0].f_code, users[0].f_lasti))
        for frame in frames[frames.index(users[0]) :] if users else []:
            self.refused_at.setdefault(frame.f_code, set()).add(frame.f_lasti)
            self.refused_for.setdefault(frame.f_code, set()).add(_objects_of(frame))

    def frames_from(self, frame: Any) -> list[Any]:
        """Return a frame, and those of the functions in the captured call that have called it."""
        return [*takewhile(lambda f: f.f_code is not self._caller, frames_from(frame))]

    # ---------------------------------------------------------------------------------------------- operators

    def process(self, op: Any, args: tuple, params: dict) -> Any:
        """Run and record an operator."""
        self._is_running = True
        try:
            out = op(*args) if op.simple and op.simple == len(args) else call(op, args, params)
        except Exception:  # which code may catch
            self.refuse(f"{op.name} raises an error, which may depend on values")
            raise
        finally:
            self._is_running, end, self._end = False, self._end, None
        self.operators += 1
        if not self.refusal:
            watch = sys.getprofile()
            sys.setprofile(None)  # it would look at each function of the recorder, too
            try:
                self.record_operator(op, args, params, out)
            finally:
                sys.setprofile(watch)
        if end is not None:
            raise end
        return out

    def end_after_operator(self, error: BaseException) -> bool:
        """Raise an error once the operator that runs is recorded; return whether there is one."""
        self._end = error if self._is_running else None
        return self._is_running

    def record_operator(self, op: Any, args: tuple, params: dict, out: Any) -> None:
        """Record the kernel of an operator that has run."""
        self.record_replaced()
        several = type(out) is tuple
        outs = out if several else (out,)
        has_structure = isinstance(outs[-1], AuxOutput) if outs else False
        outs = outs[:-1] if has_structure else outs
        if not all(map(_is_on_ground, outs)):
            self.refuse(f"{op.name} returns something else than plain tensors")
            return
        operands = [self._operand(op, a) for a in args]
        if any(_contains_array(value) for value in params.values()):
            self.refuse(f"a param of {op.name} contains an array")
        if self.refusal or (not several and self._is_known(op, args, out)):
            return  # a result that is an operand itself, as that of detach()
        if isinstance(op, CustomOperator) and op.registrations.abstract is None:
            self.refuse(f"{op.name} has no function that tells the shape of its result; register one by register_fake")
            return
        if not _has_known_shape(op, args, params, outs):
            self.refuse(f"the shape of the result of {op.name} depends on values")
            return
        arrays = [a.value if isinstance(a, Tensor) else a for a in args]
        kernel = kernel_of(op, arrays)
        made = Call(
            partial(_run_without_structure, kernel) if has_structure else kernel,
            tuple(operands),
            params,
            tuple([self._new_slot(o.value) for o in outs]),
            tuple([o.value.ndim == 0 for o in outs]),
            several,
            op,
            current().running is not None,
            keeps=not op.view,
        )
        self.instructions.append(made)
        if self.catching and may_raise(made, self.layouts):
            self.refuse_if_caught(op.name)

    def refuse_if_caught(self, name: str) -> None:
        """Refuse the capture if code handles an error that a function may raise in another call."""
        frames = [f for f in self.frames_from(sys._getframe(1)) if f.f_code in self.catching]
        caught = next(filter(is_caught, frames), None)
        if caught is not None:
            handler = caught.f_code.co_qualname
            self.refuse(f"{handler} handles exceptions, and {name} may raise one, depending on values")

    def _is_known(self, op: Any, args: tuple, out: Any) -> bool:
        """Return whether the array of a result is known already, as an operand or the buffer of one."""
        slot = self.slot_of_array(out.value)
        if slot is None:
            return False
        if not array_programs.is_plain(getattr(args[0], "value", out.value)) and self._is_external(slot):
            self.refuse("a buffer of a nested or sparse tensor is a tensor from outside, too")
        return True

    def _is_external(self, slot: Slot) -> bool:
        return any(external.slot == slot for external in self.externals.values())

    def _operand(self, op: Any, a: Any) -> Any:
        if isinstance(a, Tensor):
            return self.slot_of_tensor(a)
        if array_programs.is_array(a):
            self.refuse(f"an operand of {op.name} is an array of NumPy's; make it a tensor before")
        return a

    # ------------------------------------------------------------------------------------------- arrays and slots

    def slot_of_tensor(self, t: Any) -> Slot | None:
        """Return the slot of a tensor's array; an unknown tensor is one from outside the call."""
        if not _is_on_ground(t):
            self.refuse("a tensor that is no plain tensor of the ground is used")
            return None
        known = self.slot_of_array(t.value)
        if known is None and id(t) not in self.watched and not self._is_grad(t):
            known = self._slot_of_alias(t.value)
        if known is not None:
            return known
        if t._view is not None and t._view.creation_meta == COPIED:
            self.refuse("a tensor is used whose elements were copied from another one that it follows")
            return None
        slot = self._new_slot(t.value)
        self.external(t).slot = slot
        return slot

    def external(self, t: Any) -> External:
        """Return the entry of a tensor from outside the call."""
        found = self.externals.get(id(t))
        if found is None:
            found = self.externals[id(t)] = External(t)
        return found

    def slot_of_array(self, array: Any) -> Slot | None:
        """Return the slot of an array; None if it has none."""
        found = self._slots.get(id(array))
        return found[1] if found is not None and found[0]() is array else None

    def _slot_of_alias(self, array: Any) -> Slot | None:
        """Return the slot of an array with the same elements in the same memory, as that of `x.data`; None if none."""
        for watched in self.watched.values():  # if several share the memory, a program is for such only
            for t in (watched.tensor, watched.tensor._grad):
                if t is not None and t.value is not array and array_programs.is_alias(t.value, array):
                    return self.slot_of_tensor(t)
        return next((slot for a, slot in self._slots.values() if array_programs.is_alias(a(), array)), None)

    def _new_slot(self, array: Any) -> Slot:
        slot = Slot(self._count)
        self._count += 1
        self.layouts[slot] = array_programs.layout(array)
        if self.slot_of_array(array) is None:
            self._slots[id(array)] = weakref.ref(array), slot
        self.memories[slot] = self.slot_of_array(array_programs.owner(array))
        return slot

    def note_constant(self, array: Any) -> None:
        """Record an array that was made from Python numbers."""
        if array_programs.is_plain(array) and self.slot_of_array(array) is None and not self.refusal:
            make = partial(array_programs.copy, array_programs.copy(array))
            self._append_call(make, (), array)

    def _append_call(self, function: Callable, operands: tuple, out: Any) -> None:
        backward = current().running is not None
        slots = (self._new_slot(out),)
        self.instructions.append(Call(function, operands, {}, slots, (False,), False, backward=backward))

    # ------------------------------------------------------------------------------------------ random generators

    def record_state(self, generator: Any, state: bytes) -> None:
        """Record that the state of a generator was read; it is needed if code restores these bytes."""
        if self.refusal:
            return
        array, read = read_state(generator), partial(read_state, generator)
        slot = self._new_slot(array)
        backward = current().running is not None
        self.instructions.append(Call(read, (), {}, (slot,), (False,), False, backward=backward, impure=True))
        self._states[id(state)] = state, slot

    def record_restored_states(self, states: list[tuple[Any, bytes]]) -> None:
        """Record that generators get states which they have had in the call."""
        backward = current().running is not None
        for generator, state in [] if self.refusal else states:
            if id(state) not in self._states:
                self.refuse("the code restores a state of a random generator from outside")
                return
            operands, params = (self._states[id(state)][1],), {"generator": generator}
            self.instructions.append(
                Call(restore_state, operands, params, (), (), True, backward=backward, keeps=True, impure=True)
            )

    # --------------------------------------------------------------------------------- writes and backward passes

    def on_write(self, x: Any, src: Any) -> None:
        """Record the write of one tensor into another."""
        if self.refusal:
            return
        self.record_replaced()
        if src is None:
            self.refuse("a tensor is detached in place")
        elif src.dtype != x.dtype:
            self.refuse("a value of another dtype is written into a tensor")
        else:
            target, source = self.slot_of_tensor(x), self.slot_of_tensor(src)
            if target is not None and source is not None:
                owner = self._owner(version_of(x))
                self.instructions.append(Write(target, source, owner, current().running is not None))

    def _owner(self, version: Any) -> Any:
        """Return the result or external tensor with this version counter, which a write increments; None if none has.

        A tensor that only the program itself sees needs no count.
        """
        for watched in self.watched.values():
            if watched.tensor.version is version:
                watched.writes += 1
        return self.known_with(version)

    def known_with(self, version: Any) -> Any:
        """Return the first result or external tensor with this version counter; None if there is none."""
        for watched in self.watched.values():
            if watched.tensor.version is version:
                return self.external(watched.tensor)
        known = [(e.tensor, e) for e in self.externals.values()] + list(self._results.values())
        return next((found for t, found in known if t.version is version), None)

    def run_node(self, proceed: Callable, fn: Any, cotangents: Any) -> Any:
        """Run a node of a backward pass inside of the call."""
        if fn.sequence <= self.start:
            self.refuse("a backward pass in the call continues in a graph outside")
        if any(isinstance(edge, Tensor) and edge._hooks is not None and self._is_unguarded(edge) for edge in fn.edges):
            self.refuse("a backward pass in the call reaches a tensor whose hooks no guard compares")
        return proceed(fn, cotangents)

    def _is_unguarded(self, leaf: Any) -> bool:
        """Return whether a leaf is from outside, and has other hooks than those that are guarded."""
        return id(leaf) in self.watched and id(leaf) not in self.hooked

    def on_array_call(self, function: Callable, operands: tuple, out: Any) -> None:
        """Record an array that a backward pass has computed."""
        if self.refusal:
            return
        self.record_replaced()
        found: list[Any] = [self.slot_of_array(a) if array_programs.is_array(a) else a for a in operands]
        for i, a in enumerate(operands):
            if array_programs.is_array(a) and found[i] is None:
                found[i] = self._slot_of_grad(a)
        if any(slot is None for slot in found):
            self.refuse("a backward pass uses an array of unknown origin")
        elif any(a is out for a in operands):
            target, source = Slot(found[0]), Slot(found[1])
            self.instructions.append(Add(target, source, self._owner_of_array(out)))
        else:
            self._append_call(function, tuple(found), out)

    def _slot_of_grad(self, array: Any) -> Slot | None:
        """Return the slot of an array that belongs to a leaf, or to the .grad of one, from outside the call."""
        for watched in self.watched.values():
            for t in (watched.tensor, watched.tensor._grad):
                if t is not None and t.value is array:
                    return self.slot_of_tensor(t)
        return None

    def _owner_of_array(self, array: Any) -> Any:
        known = [e.tensor for e in self.externals.values()] + [t for t, _ in self._results.values()]
        return next((self._owner(version_of(t)) for t in known if t.value is array), None)

    # ------------------------------------------------------------------------------------- tensors from outside

    def watch_tensor(self, t: Any) -> None:
        """Record from now on when the .grad of a tensor becomes another one, and check at the end what else changed."""
        if id(t) not in self.watched:
            self.watched[id(t)] = Watched(t)
            self._note_memory(t)
            if t._grad is not None:
                self._note_memory(t._grad)

    def _note_memory(self, t: Any) -> None:
        """Note the array of a tensor that a program has a name for."""
        self._memory[id(t)] = _Memory(t)

    def record_replaced(self) -> None:
        """Record which tensors have other memory, or another .grad, than before."""
        self._record_data()
        self._record_grads()

    def _record_data(self) -> None:
        """Record which tensors have got other memory, as by `x.data = y`."""
        changed = [memory for memory in self._memory.values() if memory.is_left()]
        if not changed or self.refusal:
            return
        slots = [self._slot_of_new_memory(memory.tensor.value) for memory in changed]
        for memory, slot in zip(changed, slots, strict=True):
            if slot is None or not self._may_leave(memory):
                self.refuse(f"the code changes the memory of a tensor of shape {memory.tensor.shape}")
                return
            self._record_leaving(memory, slot)

    def _may_leave(self, memory: "_Memory") -> bool:
        """Return whether a program can give a tensor other memory: it is no view, and has none from outside."""
        t, version = memory.tensor, memory.version
        shares = version is not None and any(
            w.tensor is not t and w.tensor.version is version for w in self.watched.values()
        )
        return t._view is None and not shares and array_programs.is_plain(memory.array)

    def _record_leaving(self, memory: "_Memory", slot: Slot) -> None:
        t = memory.tensor
        tensor = self.result_of(t)
        if isinstance(tensor, External):
            self.first_arrays.setdefault(id(t), memory.array)
            self._slot_before(memory)  # perhaps something uses it later
        self.instructions.append(SetData(tensor, slot, t.tag, current().running is not None))
        self._left.append(memory)
        self._note_memory(t)
        if id(t) in self.watched:
            self.watched[id(t)].value = t.value

    def _slot_of_new_memory(self, array: Any) -> Slot | None:
        """Return a slot for the array that a tensor has got; None if its origin is unknown."""
        for memory in self._memory.values():
            if memory.array is array or array_programs.is_alias(memory.array, array):
                self._slot_before(memory)
        found = self.slot_of_array(array)
        if found is not None or not array_programs.is_plain(array):
            return found
        source = self._slot_of_alias(array)
        if source is None:
            return None
        self._append_call(operator.getitem, (source, ...), array)
        return self.slot_of_array(array)

    def _slot_before(self, memory: "_Memory") -> None:
        """Give the array that a tensor had until now a slot."""
        if self.slot_of_array(memory.array) is None:
            self.external(memory.tensor).slot = self._new_slot(memory.array)

    def _record_grads(self) -> None:
        """Record which tensors have another .grad than before."""
        for watched in self.watched.values():
            t = watched.tensor
            if watched.grad is not t._grad:
                watched.grad = t._grad
                made = None if t._grad is None else self.result_of(t._grad)
                self.instructions.append(SetGrad(self.external(t), made, current().running is not None))

    def check_changes(self) -> None:
        """Refuse the capture if a tensor from outside has changed in a way that the instructions do not show."""
        for watched in self.watched.values():
            change = watched.unrecorded_change()
            if change:
                self.refuse(f"the code changes {change} of a tensor of shape {watched.tensor.shape} from outside")

    def check_externals(self) -> None:
        """Refuse the capture if the code uses a tensor that no guard knows."""
        for external in self.externals.values():
            if id(external.tensor) not in self.watched and not self._is_grad(external.tensor):
                self.refuse(f"the code uses a tensor of shape {external.tensor.shape} of unknown origin")

    def _is_grad(self, t: Any) -> bool:
        return any(watched.first_grad is t for watched in self.watched.values())

    # ------------------------------------------------------------------------------------------------- results

    def result_of(self, t: Any) -> Result | External | None:
        """Return how a program makes a tensor that the call has made, or the external tensor that it is."""
        if id(t) in self.watched:
            return self.external(t)
        if self._is_grad(t):
            return self.external(t)
        if id(t) in self.externals and self.externals[id(t)].tensor is t:
            return self.externals[id(t)]
        found = self._results.get(id(t))
        if found is None:
            found = self._results[id(t)] = t, self._new_result(t)
            self._note_memory(t)
        return found[1]

    def _new_result(self, t: Any) -> Result | None:
        if not _is_on_ground(t) or type(t) is not Tensor:
            self.refuse("a result is no plain tensor of the ground")
        elif t._requires_grad and t._grad_fn is None:
            self.refuse("a result is a leaf that the call has made")
        elif t._hooks is not None or t.version is INFERENCE:
            self.refuse("a result has hooks, or is made in inference mode")
        elif t.version is not None and any(t.version is left.version for left in self._left):
            self.refuse("a result shares the memory that another tensor has left")
        elif t._view is not None:
            return self._result_of_view(t)
        else:
            slot = self.slot_of_array(t.value)
            if slot is None:
                self.refuse("a result has an array of unknown origin")
            return Result(slot, t.tag, count_of(t), None if t.version is None else self.known_with(t.version))
        return None

    def _result_of_view(self, t: Any) -> Result | None:
        view = t._view
        if (
            view.creation_meta in (COPIED, ASSIGNED, "inference")
            or view.inverses is not None
            or view.base.version is not t.version
            or any(v._view is not None and v._view.base is view.base for v in self.varying)  # perhaps a view of it
        ):
            self.refuse("a result is a view of a kind that a program cannot make")
            return None
        base = self.result_of(view.base)
        return None if base is None else Result(None, t.tag, 0, base, view.chain, view.creation_meta)

    # ------------------------------------------------------------------------------------ calls that stay eager

    def record_eager(self, function: Callable, operands: tuple = (), is_safe: bool = False) -> None:
        """Record the call of a function that runs as it is; one that is safe raises no errors that depend on values."""
        self.operators += 1
        if not self.refusal:
            if self.catching and not is_safe:
                self.refuse_if_caught(getattr(function, "__qualname__", "a function"))
            self.record_replaced()
            self.check_changes()  # before the function makes changes of its own
            self.instructions.append(Eager(function, tuple(map(self._eager_operand, operands))))

    def _eager_operand(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._eager_operand(member) for member in value]
        return self.result_of(value) if isinstance(value, Tensor) else value

    def after_eager(self) -> None:
        """Take over the .grad of leaves as a method has left it that runs as it is."""
        for watched in self.watched.values():
            watched.accept()
            if watched.grad is not None:
                self._note_memory(watched.grad)
        for memory in [*self._memory.values()]:
            self._note_memory(memory.tensor)


def _objects_of(frame: Any) -> Objects:
    """Return which objects the function in a frame is for."""
    code, variables = frame.f_code, frame.f_locals
    first = code.co_varnames[0] if code.co_argcount else ""
    return id(variables.get(first)), tuple([id(variables.get(name)) for name in code.co_freevars])


def _is_on_ground(t: Any) -> bool:
    return isinstance(t, Tensor) and t.level is None and not t._overrides and array_programs.is_recorded(t.value)


def _contains_array(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_contains_array, value))
    if isinstance(value, dict):
        return any(map(_contains_array, value.values()))
    return isinstance(value, Tensor) or array_programs.is_array(value)


def _has_known_shape(op: Any, args: tuple, params: dict, outs: tuple) -> bool:
    """Return whether the shapes and dtypes of the operands determine the shapes of the results."""
    if array_programs.is_ufunc(op.kernel):
        return True
    avals = [Aval(a.value.shape, a.value.dtype) if isinstance(a, Tensor) else a for a in args]
    try:
        found = op.definition.shape(*avals, **params)
    except Exception:
        return False
    expected = found if isinstance(found, tuple | list) and not isinstance(found, Aval) else (found,)
    shapes = [getattr(aval, "shape", None) for aval in expected]
    return shapes == [o.value.shape for o in outs]


def kernel_of(op: Any, arrays: list) -> Callable:
    """Return the function that computes an operator on such arrays, as `retrograd.core.dispatch` does."""
    if not _is_promoted(op, arrays):
        kernel: Callable = op.kernel_for(arrays)
    else:
        kernel = partial(_promote_and_run, op)
    return kernel if op.orders is None else _ordered_kernel(op, kernel)


def _is_promoted(op: Any, arrays: list) -> bool:
    """Return whether the operands are converted to another dtype before the kernel runs."""
    if not op.promotes:
        return False
    if len(arrays) == 2 and needs_no_promotion(*arrays) and op.kernel is not None:
        return op.to_float and not any(map(is_floating_array, arrays))
    promoted = op.definition.promote(arrays)
    return any(a is not b for a, b in zip(arrays, promoted, strict=True))


def _promote_and_run(op: Any, *arrays: Any, **params: Any) -> Any:
    promoted = op.definition.promote(arrays)
    return op.kernel_for(promoted)(*promoted, **params)


@cache
def _ordered_kernel(op: Any, kernel: Callable) -> Callable:
    return partial(_run_in_order, op, kernel)


def _run_without_structure(kernel: Callable, *arrays: Any, **params: Any) -> Any:
    """Return the tensors that a kernel returns, without the structure of a user's result behind them."""
    return kernel(*arrays, **params)[:-1]


def _run_in_order(op: Any, kernel: Callable, /, *arrays: Any, **params: Any) -> Any:
    return in_order(op, arrays, kernel(*arrays, **params))
