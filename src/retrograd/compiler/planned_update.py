"""Planned updates: the step of an optimizer whose updates are kernels runs as one plan over all parameters."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from retrograd import kernels
from retrograd.backend import array_programs
from retrograd.compiler.program import Eager, Instruction
from retrograd.core import Tensor
from retrograd.core.tensor import arrays_of, bump_versions, split_plain
from retrograd.ops.fused_update import are_all_plain, are_apart
from retrograd.optim.optimizer import Optimizer, State

OF_ANY_SIZE = 1 << 62
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
        self.__qualname__ = optimizer.step.__qualname__  # in reports

    def __call__(self) -> None:
        """Take a step."""
        updates = self._next_updates()
        if updates is None:
            self._optimizer.step()
            return
        for update in updates:
            for part in update.parts():
                self._run(update, *part)
            bump_versions(update.written)
            for state in update.states:
                state.update(update.entries)

    def _next_updates(self) -> list["_Update"] | None:
        """Return the updates of the groups with gradients; None if there is no plan for the step."""
        optimizer: Any = self._optimizer
        if optimizer.__dict__.get("_pre_hooks") or optimizer.__dict__.get("_post_hooks"):
            return None
        updates = []
        for group in optimizer.param_groups:
            params, grads, others = split_plain(group["params"], OF_ANY_SIZE)
            states = [optimizer.state.get(p) for p in params]
            if others or any(state is None for state in states):
                return None
            if params:
                update = _Update(params, grads, states, optimizer.next_update(states[0], group))
                if not update.is_plannable():
                    return None
                updates.append(update)
        return updates

    def _run(self, update: "_Update", params: list[Any], grads: list[Any], own: list[Any]) -> None:
        """Run the plan for some parameters, their gradients and states."""
        arrays = arrays_of(params + grads + own)
        key = (update.ufunc, arrays[0].dtype, *[a.shape for a in arrays])
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = _plan_arrays(update.ufunc, arrays, len(params), len(update.numbers))
        plan(array_programs.vector(update.numbers, arrays[0].dtype), *arrays)


class _Update:
    """The next step of a group: tensors, numbers, and the entries of the new states."""

    __slots__ = ("entries", "grads", "names", "numbers", "own", "params", "states", "ufunc")

    def __init__(self, params: list[Any], grads: list[Any], states: list[State], found: tuple) -> None:
        self.params, self.grads, self.states = params, grads, states
        kernel, self.names, self.numbers, self.entries = found
        self.ufunc = getattr(kernels, kernel)
        self.own: list[Any] = [state.get(name) for state in states for name in self.names]

    @property
    def written(self) -> list[Any]:
        """The parameters, and the tensors of the states."""
        return self.params + self.own

    def is_plannable(self) -> bool:
        """Return whether a kernel may write to all of the tensors, with the same numbers for each."""
        first = self.states[0]
        if any(state.get(key) != first.get(key) for key in self.entries for state in self.states):
            return False
        if not all(isinstance(t, Tensor) for t in self.own) or not array_programs.is_ufunc(self.ufunc):
            return False
        dtype, count = self.params[0].value.dtype, len(self.names)
        if any(t.value.dtype != dtype for t in self.written):
            return False
        if any(t.value.shape != self.params[i // count].value.shape for i, t in enumerate(self.own)):
            return False
        return are_all_plain(self.own) and are_apart(self.written, self.grads)

    def parts(self) -> list[tuple[list[Any], list[Any], list[Any]]]:
        """Return the parameters, gradients and states in parts for which there can be a plan."""
        starts, count = range(0, len(self.params), MOST_PARAMS), len(self.names)
        ranges = [(start, start + MOST_PARAMS) for start in starts]
        return [(self.params[a:b], self.grads[a:b], self.own[a * count : b * count]) for a, b in ranges]


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
