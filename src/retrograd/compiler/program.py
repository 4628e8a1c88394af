"""The captured program: instructions on slots, each of which holds one array of a call."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class Slot(int):
    """The number of an array in a program; other operands of an instruction are constants."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"a{int(self)}"


Layouts = dict[Slot, tuple]  # shape, dtype and strides of the arrays


@dataclass(slots=True)
class Call:
    """`outs = function(*operands, **params)`; `op` is the operator whose kernel the function is, if it is one."""

    function: Callable[..., Any]
    operands: tuple
    params: dict[str, Any]
    outs: tuple[Slot, ...]
    scalars: tuple[bool, ...]  # of each result, whether it has no dimensions: NumPy may return a number for it
    several: bool  # whether the function returns a tuple
    op: Any = None
    backward: bool = False  # in a backward pass, which ignores the warnings of NumPy
    keeps: bool = False  # needed even if nobody reads its results: it may draw random numbers, warn or raise
    impure: bool = False  # reads or changes the state of an object, and is no operator's kernel


@dataclass(slots=True)
class Write:
    """`target[...] = source`; `owner` is the external tensor whose version counts the write, if there is one."""

    target: Slot
    source: Slot
    owner: Any = None
    backward: bool = False


@dataclass(slots=True)
class Add:
    """A backward pass adds an array into another one, which is an external tensor's if there is an `owner`."""

    target: Slot
    source: Slot
    owner: Any = None
    backward: bool = True


@dataclass(slots=True)
class SetGrad:
    """`leaf.grad` becomes None, or a new tensor."""

    leaf: Any
    result: Any  # a `Result`, or None
    backward: bool = False


@dataclass(slots=True)
class SetData:
    """`tensor.data` becomes an array: the tensor leaves the memory that it had."""

    tensor: Any  # an `External` or a `Result`
    source: Slot
    tag: Any
    backward: bool = False


@dataclass(slots=True)
class Eager:
    """A function that runs as it is, on tensors: a method of an optimizer, or one that decides by values.

    An operand is a tensor from outside, a result, a list of such, or a constant.
    """

    function: Callable[..., Any]
    operands: tuple = ()
    backward: bool = False


@dataclass(slots=True)
class FusedCalls:
    """Elementwise calls that run as one: `outs = function(*operands)`, without the results that only they need."""

    function: Callable[..., tuple]
    calls: list[Call]
    operands: tuple[Slot, ...]
    outs: tuple[Slot, ...]
    backward: bool = False


@dataclass(slots=True)
class PlannedCalls:
    """Calls and fused groups that run as one, on memory that is planned: `outs = function(*operands)`."""

    function: Callable[..., tuple]
    calls: list[Call | FusedCalls]
    operands: tuple[Slot, ...]
    outs: tuple[Slot, ...]
    backward: bool = False


@dataclass(slots=True, eq=False)
class Result:
    """A tensor that the program makes: from an array, or by view operators from its base.

    A tensor with both is no view, but shares the memory and version of the base, as that of `detach()` does.
    """

    slot: Slot | None
    tag: Any
    count: int  # the version
    base: "Result | External | None" = None
    chain: tuple = ()
    creation_meta: str = ""  # of a view, as in `retrograd.core.views.View`


@dataclass(slots=True, eq=False)
class External:
    """A tensor that existed before the call: an argument, or one that the function reads from its surroundings."""

    tensor: Any
    slot: Slot | None = None  # None if no instruction reads its array
    number: int = 0


Instruction = Call | FusedCalls | PlannedCalls | Write | Add | SetGrad | SetData | Eager


def reads(instruction: Instruction) -> list[Slot]:
    """Return the slots that an instruction reads or writes to, without those that it makes."""
    if isinstance(instruction, Call | FusedCalls | PlannedCalls):
        return [a for a in instruction.operands if isinstance(a, Slot)]
    if isinstance(instruction, Write | Add):
        return [instruction.target, instruction.source]
    if isinstance(instruction, SetGrad):
        return result_slots(instruction.result)
    if isinstance(instruction, SetData):
        return [instruction.source, *result_slots(instruction.tensor)]
    return result_slots(list(instruction.operands))


def result_slots(result: Any) -> list[Slot]:
    """Return the slots that a result, or a list of such, is made from."""
    if isinstance(result, list):
        return [slot for member in result for slot in result_slots(member)]
    if not isinstance(result, Result):
        return []
    return ([] if result.slot is None else [result.slot]) + result_slots(result.base)


def makes(instruction: Instruction) -> tuple[Slot, ...]:
    """Return the slots that an instruction makes."""
    return instruction.outs if isinstance(instruction, Call | FusedCalls | PlannedCalls) else ()


def without_dead_code(instructions: list[Instruction], wanted: list[Slot]) -> list[Instruction]:
    """Return the instructions without calls whose results nobody reads."""
    live = set(wanted)
    kept = []
    for instruction in reversed(instructions):
        if isinstance(instruction, Call) and not instruction.keeps and live.isdisjoint(instruction.outs):
            continue
        live.update(reads(instruction))
        kept.append(instruction)
    return kept[::-1]
