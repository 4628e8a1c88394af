"""Planned updates: the step of an optimizer whose updates are kernels runs as one plan over all parameters."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from retrograd import kernels
from retrograd.backend import array_programs
from retrograd.backend.updates import are_disjoint
from retrograd.compiler.program import Eager, Instruction
from retrograd.core import Tensor
from retrograd.core.guards import have_plain_arrays
from retrograd.core.tensor import ANY_SIZE, arrays_of, bump_versions, split_plain
from retrograd.ops.fused_update import are_all_plain
from retrograd.optim.next_update import Update
from retrograd.optim.optimizer import Optimizer, State
from retrograd.optim.step_hooks import hooks_around_steps

MOST_PARAMS = 200  # of a plan, which has at most 1,024 memories


def plan_updates(instructions: list[Instruction]) -> list[Instruction]:
    """Return the instructions with planned updates in place of the steps of optimizers that allow it."""
    return [_planned(i) if isinstance(i, Eager) else i for i in instructions]


def _planned(instruction: Eager) -> Eager:
    optimizer = getattr(instruction.function, "__self__", None)
    if not isinstance(optimizer, Optimizer) or instruction.function != optimizer.step:
        return instruction
    return replace(instruction, function=PlannedUpdate(optimizer)) if _has_plans(type(optimizer)) else instruction


def _has_plans(kind: type[Optimizer]) -> bool:
    """Return whether a class declares its update as a kernel, and has the step of all optimizers."""
    updating = next(owner for owner in kind.__mro__ if "update" in vars(owner))
    return kind.step is Optimizer.step and "next_update" in vars(updating)


class PlannedUpdate:
    """The step of an optimizer: one call for all parameters, or the optimizer's own where its state does not allow it.

    It does not if there are hooks, parameters without a state, gradients that are no plain arrays, or states of a group
    that differ in their numbers.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer
        self._plans: dict[Any, Callable] = {}  # by the kernel, and the layouts of the arrays
        self._last: dict[int, _Update] = {}  # the updates of the last step, by the numbers of their groups
        self.__qualname__ = optimizer.step.__qualname__  # in reports

    def __call__(self) -> None:
        """Take a step."""
        updates = self._next_updates()
        if updates is None:
            self._optimizer.step()
            return
        for update, grads in updates:
            update.run(grads)

    def _next_updates(self) -> list[tuple["_Update", list[Any]]] | None:
        """Return the updates of the groups with gradients, and these arrays; None if there is no plan for the step."""
        optimizer: Any = self._optimizer
        if any(hooks_around_steps(optimizer)):
            return None
        updates = []
        for number, group in enumerate(optimizer.param_groups):
            params, grads, others = split_plain(group["params"], ANY_SIZE)
            states = [optimizer.state.get(p) for p in params]
            if others or None in states or (optimizer.steps_on_parts and any(p.dtype.kind == "c" for p in params)):
                return None
            if params:
                update = self._update_of(number, params, states, optimizer.next_update(states[0], group))
                arrays = arrays_of(grads)
                if update is None or not update.may_read(arrays):
                    return None
                updates.append((update, arrays))
        return updates

    def _update_of(self, number: int, params: list[Any], states: list[State], found: Update) -> "_Update | None":
        """Return the update of a group, that of the last step if the arrays are the same; None if there is no plan."""
        last = self._last.pop(number, None)
        if last is None or not last.is_of(params, states, found):
            last = _Update(params, states, found)
            if not last.is_plannable():
                return None
            last.plan(self._plans)
        self._last[number] = last
        return last if last.are_states_alike() else None


class _Update:
    """The step of a group. The arrays that it writes are the same in each step; gradients and numbers change."""

    __slots__ = ("_arrays", "_count", "_found", "_parts", "_states", "_written")

    def __init__(self, params: list[Any], states: list[State], found: Update) -> None:
        self._found, self._states, self._count = found, states, len(params)
        self._written: list[Any] = [*params, *self._own_of(states)]
        self._arrays: list[Any] = []  # of the tensors that are written
        self._parts: list[tuple[Callable, int, int, list[Any]]] = []  # plans, ranges of parameters, arrays of states

    def _own_of(self, states: list[State]) -> list[Any]:
        """Return the tensors of states."""
        return [state.get(name) for state in states for name in self._found.names]

    def is_of(self, params: list[Any], states: list[State], found: Update) -> bool:
        """Return whether the next step writes to the same arrays, by the same kernel; note what else it consists of."""
        if found.kernel != self._found.kernel or found.names != self._found.names or len(params) != self._count:
            return False
        written = [*params, *self._own_of(states)]
        if not have_plain_arrays(written, self._arrays):
            return False
        self._found, self._states, self._written = found, states, written
        return True

    def are_states_alike(self) -> bool:
        """Return whether the numbers in the states are the same for all parameters."""
        columns = [[state.get(key) for state in self._states] for key in self._found.entries]
        return all(column.count(column[0]) == self._count for column in columns)

    def is_plannable(self) -> bool:
        """Return whether a kernel may write to all of the tensors."""
        params, own, each = self._written[: self._count], self._written[self._count :], len(self._found.names)
        if not all(isinstance(t, Tensor) for t in own) or not array_programs.is_ufunc(self._ufunc):
            return False
        dtype = params[0].value.dtype
        if any(t.value.dtype != dtype for t in self._written):
            return False
        if any(t.value.shape != params[i // each].value.shape for i, t in enumerate(own)):
            return False
        return are_all_plain(own)

    @property
    def _ufunc(self) -> Any:
        return getattr(kernels, self._found.kernel)

    def plan(self, plans: dict[Any, Callable]) -> None:
        """Find the plans, each for some of the parameters; `plans` has those that were made before."""
        self._arrays, each = arrays_of(self._written), len(self._found.names)
        for start in range(0, self._count, MOST_PARAMS):
            end = min(self._count, start + MOST_PARAMS)
            own = self._arrays[self._count + start * each : self._count + end * each]
            arrays = [*self._arrays[start:end], *self._arrays[start:end], *own]  # gradients are like their parameters
            key = (self._ufunc, arrays[0].dtype, *[a.shape for a in arrays])
            if key not in plans:
                plans[key] = _plan_arrays(self._ufunc, arrays, end - start, len(self._found.numbers))
            self._parts.append((plans[key], start, end, own))

    def may_read(self, grads: list[Any]) -> bool:
        """Return whether the arrays to write share no memory with each other, or with the gradients."""
        return are_disjoint(self._arrays, grads)

    def run(self, grads: list[Any]) -> None:
        """Write the parameters and states; the arrays of the gradients are in the order of the parameters."""
        numbers = array_programs.vector(self._found.numbers, self._arrays[0].dtype)
        for plan, start, end, own in self._parts:
            plan(numbers, *self._arrays[start:end], *grads[start:end], *own)
        bump_versions(self._written)
        for state in self._states:
            state.update(self._found.entries)


def _plan_arrays(ufunc: Any, arrays: list[Any], params: int, numbers: int) -> Callable:
    """Return a function of numbers and arrays: parameters, gradients and states. It writes the first and last of these.

    Each number is an operand of its own, at its offset in the vector of all.
    """
    each = len(arrays) // params - 2  # states of a parameter
    layouts = [array_programs.layout(a) for a in arrays]
    dtype = layouts[0][1]
    values = [(i + 1, 0, one) for i, one in enumerate(layouts)]
    values += [(0, k * dtype.itemsize, ((), dtype, ())) for k in range(numbers)]
    steps, calls = [], []
    for i in range(params):
        own = [2 * params + i * each + k for k in range(each)]
        calls.append((i, params + i, own))
        scalars = range(len(arrays), len(arrays) + numbers)
        steps.append((ufunc, True, 1 + each, i, params + i, *own, *scalars, i, *own))

    def one_by_one(given: Any, *arrays: Any) -> tuple:
        for p, grad, own in calls:
            states = [arrays[k] for k in own]
            ufunc(arrays[p], arrays[grad], *states, *given, out=(arrays[p], *states))
        return ()

    operands = (((numbers,), dtype, (dtype.itemsize,)), *layouts)
    return kernels.planned_calls(operands, (), (), tuple(values), tuple(steps), (), one_by_one)
