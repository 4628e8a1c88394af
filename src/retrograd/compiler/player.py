"""The player of a program: a function of straight-line Python code, with one line for each instruction."""

from collections.abc import Callable
from functools import lru_cache
from types import CodeType
from typing import Any

from retrograd.backend import array_programs
from retrograd.compiler.program import (
    Add,
    Call,
    External,
    FusedCalls,
    Instruction,
    PlannedCalls,
    Result,
    SetData,
    SetGrad,
    Slot,
    Write,
    makes,
    reads,
)
from retrograd.core.dispatch import as_array
from retrograd.core.operand_errors import explain
from retrograd.core.state import at
from retrograd.core.tensor import Version, bump_version, make, preserve_snapshots, version_of
from retrograd.core.views import leave_memory

FILE = "<compiled program>"  # of the code, in tracebacks
_INDENT = "    "
_LITERALS = (bool, int, type(None))


class Source:
    """The code of a player, and the objects that it names.

    A tensor or array has one name: `p0` is an argument of the call, `t0` another tensor from outside, `g0` the .grad of
    one before the call, `a0` an array, `r0` a result, `c0` a constant, `f0` a function.
    """

    def __init__(self, arguments: int, names: dict[int, str], literals: bool = True) -> None:
        self.objects: dict[str, Any] = dict(_HELPERS)
        self.lines = [f"def play({', '.join(f'p{i}' for i in range(arguments))}):"]
        self.call_of_line: dict[int, Call] = {}
        self._names = names  # of the tensors from outside, by their ids
        self._results: dict[int, str] = {}
        self._constants: dict[int, str] = {}
        self._literals = _LITERALS if literals else (type(None),)
        self._indent = _INDENT

    @property
    def text(self) -> str:
        """The whole code."""
        return "\n".join(self.lines) + "\n"

    @property
    def body(self) -> str:
        """The code without the names of the arguments."""
        return "\n".join(self.lines[1:])

    def add(self, line: str) -> None:
        """Append a line at the present indentation."""
        self.lines.append(self._indent + line)

    def load(self, slot: Slot, array: str) -> None:
        """Append the line that gives a slot an array, by its code."""
        self.add(f"a{int(slot)} = {array}")

    def load_constants(self, constants: dict[Slot, Any]) -> None:
        """Append the lines that give slots their constant arrays."""
        for slot, array in constants.items():
            self.load(slot, self.constant(array))

    def constant(self, value: Any, prefix: str = "c") -> str:
        """Return the code for an object: a literal, or a name."""
        if type(value) in self._literals:
            return repr(value)
        found = self._constants.get(id(value))
        if found is None:
            found = self._constants[id(value)] = f"{prefix}{len(self._constants)}"
            self.objects[found] = value
        return found

    def functions(self, instructions: list[Instruction]) -> list[tuple[Any, str]]:
        """Return the instructions that call a function of their own, with its name."""
        own = [i for i in instructions if not isinstance(i, Write | Add | SetGrad | SetData)]
        return [(i, self._constants[id(i.function)]) for i in own]

    def name_of(self, tensor: External | Result) -> str:
        """Return the name of a tensor; the line that makes it is added if it is a result that has none."""
        if isinstance(tensor, External):
            return self._names[id(tensor.tensor)]
        found = self._results.get(id(tensor))
        if found is None:
            found = self._results[id(tensor)] = f"r{len(self._results)}"
            self.add(f"{found} = {self._making(tensor)}")
        return found

    def _making(self, result: Result) -> str:
        if result.base is not None and result.slot is not None:
            return f"share(a{int(result.slot)}, {self.name_of(result.base)}, {self.constant(result.tag)})"
        if result.base is not None:
            chain = self.constant(result.chain)
            meta = self.constant(result.creation_meta)
            return f"replay({self.name_of(result.base)}, {chain}, {meta}, {self.constant(result.tag)})"
        if result.tag is None and not result.count:
            return f"make(a{int(result.slot or 0)}, None, None)"
        return f"result(a{int(result.slot or 0)}, {self.constant(result.tag)}, {result.count})"

    # ------------------------------------------------------------------------------------------- instructions

    def begin(self, backward: bool) -> None:
        """Begin a sequence of instructions; those of a backward pass ignore NumPy's warnings."""
        self._indent = _INDENT
        if backward:
            self.add("with quiet():")
            self._indent = 2 * _INDENT

    def add_instruction(self, instruction: Instruction) -> None:
        """Append the lines of an instruction."""
        if isinstance(instruction, Call):
            self._add_call(instruction)
        elif isinstance(instruction, FusedCalls | PlannedCalls):
            outs = "".join(f"a{int(out)}, " for out in instruction.outs)
            slots = ", ".join(f"a{int(a)}" for a in instruction.operands)
            self.add(f"{outs}{'= ' if outs else ''}{self.constant(instruction.function, 'f')}({slots})")
        elif isinstance(instruction, Write | Add):
            self._add_write(instruction)
        elif isinstance(instruction, SetGrad):
            made = "None" if instruction.result is None else self.name_of(instruction.result)
            self.add(f"{self.name_of(instruction.leaf)}._grad = {made}")
        elif isinstance(instruction, SetData):
            name, tag = self.name_of(instruction.tensor), self.constant(instruction.tag)
            self.add(f"set_data({name}, a{int(instruction.source)}, {tag})")
        else:
            operands = [self._operand(operand) for operand in instruction.operands]
            self.add(f"{self.constant(instruction.function, 'f')}({', '.join(operands)})")

    def _operand(self, operand: Any) -> str:
        """Return the code for an operand of a function that runs as it is."""
        if isinstance(operand, list):
            return f"[{', '.join(map(self._operand, operand))}]"
        return self.name_of(operand) if isinstance(operand, External | Result) else self.constant(operand)

    def _add_call(self, call: Call) -> None:
        operands = [f"a{int(a)}" if isinstance(a, Slot) else self.constant(a) for a in call.operands]
        params = [f"{name}={self.constant(value)}" for name, value in call.params.items()]
        code = f"{self.constant(call.function, 'f')}({', '.join(operands + params)})"
        outs = [f"a{int(out)}" for out in call.outs]
        self.call_of_line[len(self.lines)] = call
        if call.several:
            self.add(f"{', '.join(outs)}{',' if len(outs) == 1 else ''} = {code}" if outs else code)
            for out, is_scalar in zip(outs, call.scalars, strict=True):
                if is_scalar:
                    self.add(f"{out} = as_array({out})")
        else:
            self.add(f"{outs[0]} = as_array({code})" if call.scalars[0] else f"{outs[0]} = {code}")

    def _add_write(self, write: Write | Add) -> None:
        owner = None if write.owner is None else self.name_of(write.owner)
        if owner is not None:
            self.add(f"preserve({owner})")
        function = "add_into" if isinstance(write, Add) else "assign"
        self.add(f"{function}(a{int(write.target)}, a{int(write.source)})")
        if owner is not None:
            self.add(f"bump({owner})")

    def free(self, slots: list[Slot]) -> None:
        """Free arrays that no later instruction reads."""
        if slots:
            self.add(f"del {', '.join(f'a{int(slot)}' for slot in slots)}")


def write_source(
    instructions: list[Instruction],
    source: Source,
    output: Callable[[Source], str],
    wanted: list[Slot],
) -> None:
    """Write the code that runs the instructions; `output` writes the expression that the player returns."""
    last_use = _last_uses(instructions, wanted)
    quiet = False
    for number, instruction in enumerate(instructions):
        if instruction.backward is not quiet and (quiet or _may_warn(instruction)):
            quiet = instruction.backward
            source.begin(quiet)
        source.add_instruction(instruction)
        source.free([slot for slot in makes_and_reads(instruction) if last_use.get(slot) == number])
    source.begin(False)
    source.add(f"return {output(source)}")


def _may_warn(instruction: Instruction) -> bool:
    """Return whether NumPy may warn in an instruction; groups and plans of a backward pass see to that themselves."""
    return not isinstance(instruction, FusedCalls | PlannedCalls | SetGrad | SetData)


def makes_and_reads(instruction: Instruction) -> list[Slot]:
    """Return the slots of an instruction, each once."""
    return list(dict.fromkeys([*makes(instruction), *reads(instruction)]))


def _last_uses(instructions: list[Instruction], wanted: list[Slot]) -> dict[Slot, int]:
    """Return the number of the last instruction that has a slot, for slots that the result does not need."""
    last: dict[Slot, int] = {}
    for number, instruction in enumerate(instructions):
        last.update(dict.fromkeys(makes_and_reads(instruction), number))
    for slot in wanted:
        last.pop(slot, None)
    return last


def function_of(source: Source) -> Callable[..., Any]:
    """Return the function that the code defines."""
    return code_function(source, source.objects)


def code_function(source: Source, objects: dict[str, Any]) -> Callable[..., Any]:
    """Return the function that the code defines with some objects for the names in it."""
    scope = dict(objects)
    exec(_compiled(source.text), scope)
    play: Callable[..., Any] = scope["play"]
    return play


@lru_cache(128)
def _compiled(text: str) -> CodeType:
    return compile(text, FILE, "exec")


def explain_error(source: Source, error: BaseException) -> None:
    """Raise what an operator says about its operands, if the error comes from its kernel, as a call of it does."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename != FILE:
        traceback = traceback.tb_next
    call = None if traceback is None else source.call_of_line.get(traceback.tb_lineno - 1)
    if traceback is not None and call is not None and call.op is not None:
        arrays = traceback.tb_frame.f_locals
        args = [make(arrays[f"a{int(a)}"], None, None) if isinstance(a, Slot) else a for a in call.operands]
        explain(call.op, tuple(args), call.params)


# ---------------------------------------------------------------------------------------- functions that it calls


def make_result(array: Any, tag: Any, count: int) -> Any:
    """Return a result with the given version."""
    out = make(array, None, tag)
    if count:
        out.version = Version()
        out.version.count = count
    return out


def share_memory(array: Any, base: Any, tag: Any) -> Any:
    """Return a tensor that shares the memory and version of another one, without being its view."""
    out = make(array, None, tag)
    out.version = version_of(base)
    return out


def set_data(tensor: Any, array: Any, tag: Any) -> None:
    """Give a tensor other memory, as `tensor.data = ...` does."""
    leave_memory(tensor)
    tensor.value, tensor.tag = array, tag


def replay_views(base: Any, chain: tuple, creation_meta: str, tag: Any) -> Any:
    """Return a view of a tensor by its chain of view operators."""
    out = base
    with at(None, creation_meta != "no_grad"):
        for op, params in chain:
            out = op(out, **params)
    if out._view is not None:
        out._view.creation_meta = creation_meta
    out.tag = tag
    return out


_HELPERS = {
    "add_into": array_programs.add_into,
    "as_array": as_array,
    "assign": array_programs.assign,
    "bump": bump_version,
    "make": make,
    "preserve": preserve_snapshots,
    "quiet": array_programs.quiet,
    "replay": replay_views,
    "result": make_result,
    "set_data": set_data,
    "share": share_memory,
}
