"""Specialization: kernels in Python become functions for arrays of the layouts that a program has (decision 0036).

A kernel decides by shapes, dtypes and strides what it calls, and checks its operands. For the layouts of a program it
has decided already: the specialized function has only the calls.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from retrograd.backend import array_programs
from retrograd.backend.kernel_trace import KernelTrace, direct_function, is_like, trace_kernel
from retrograd.backend.traced_array import Number, Step
from retrograd.compiler.program import Call, Instruction, Layouts, Slot
from retrograd.library.operator import CustomOperator


def specialize(instructions: list[Instruction], layouts: Layouts) -> list[Instruction]:
    """Return the instructions with specialized functions in place of kernels, where these can be traced."""
    return [_specialized(i, layouts) if isinstance(i, Call) else i for i in instructions]


def _specialized(call: Call, layouts: Layouts) -> Call:
    trace = None if array_programs.is_ufunc(call.function) else trace_call(call, layouts)
    if trace is None:
        return call
    slots = tuple([a for a in call.operands if isinstance(a, Slot)])
    return replace(call, function=_function_of(trace, len(slots)), operands=slots, params={})


def trace_call(call: Call, layouts: Layouts) -> KernelTrace | None:
    """Return the trace of a call's kernel; None if it has none, or if the call returns other arrays than the trace."""
    if isinstance(call.op, CustomOperator) or call.impure or not any(isinstance(a, Slot) for a in call.operands):
        return None  # a user's kernel runs in calls only
    operands = [layouts[a] if isinstance(a, Slot) else a for a in call.operands]
    trace = trace_kernel(call.function, operands, call.params)
    if trace is None or len(trace.results) != len(call.outs):
        return None
    like = [is_like(trace.layouts[n], layouts[out]) for n, out in zip(trace.results, call.outs, strict=True)]
    return trace if all(like) else None


def may_raise(call: Call, layouts: Layouts) -> bool:
    """Return whether a kernel may raise an error because of the values of its operands."""
    if isinstance(call.op, CustomOperator):
        return True
    if array_programs.is_ufunc(call.function) or call.op.view or not any(isinstance(a, Slot) for a in call.operands):
        return False
    trace = trace_call(call, layouts)
    return trace is None or any(getattr(step.function, "does", "").startswith("check") for step in trace.steps)


@lru_cache(4096)
def _function_of(trace: KernelTrace, count: int) -> Callable:
    """Return the function that replaces a kernel with some number of operands."""
    return _as_one_step(trace, count) or _as_function(trace, count)


def _as_one_step(trace: KernelTrace, count: int) -> Callable | None:
    """Return the function of the only step, if it takes the operands as they are."""
    step = trace.steps[0]
    if len(trace.steps) > 1 or step.operands != tuple(range(count)) or step.params or step.results != trace.results:
        return None
    return direct_function(step) if all(type(a) is Number for a in step.operands) else None


def _as_function(trace: KernelTrace, count: int) -> Callable:
    """Return a function of straight-line code with one line for each step."""
    scope: dict[str, Any] = {}
    lines = [f"def kernel({', '.join(f'x{i}' for i in range(count))}):"]
    lines += [f"    {_line(step, scope)}" for step in trace.steps]
    lines.append("    return " + ", ".join(f"x{number}" for number in trace.results))
    exec(compile("\n".join(lines), "<specialized kernel>", "exec"), scope)
    kernel: Callable = scope["kernel"]
    return kernel


def _line(step: Step, scope: dict[str, Any]) -> str:
    """Return the line of a step, and add the objects that it names to the scope."""
    operands = [f"x{int(a)}" if type(a) is Number else _name(a, scope) for a in step.operands]
    operands += [f"{name}={_name(value, scope)}" for name, value in step.params.items()]
    outs = "".join([f"x{number}, " for number in step.results]) if len(step.results) > 1 else ""
    outs = outs or "".join([f"x{number}" for number in step.results])
    return f"{outs}{' = ' if outs else ''}{_name(direct_function(step), scope)}({', '.join(operands)})"


def _name(value: Any, scope: dict[str, Any]) -> str:
    if value is None or type(value) in (bool, int):
        return repr(value)
    scope[f"c{len(scope)}"] = value
    return f"c{len(scope) - 1}"
