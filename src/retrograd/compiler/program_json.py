"""Captured programs as plain values for a file, and back, with full validation of the file.

Stored is the record: which operators run on which arrays. Kernels, plans and code are derived from it again.
"""

import operator
from collections import OrderedDict, deque
from collections.abc import Callable, Collection
from functools import partial
from itertools import count
from keyword import iskeyword
from typing import Any

import optree

from retrograd.backend import array_programs
from retrograd.compiler.arguments import ArgumentGuards, ObjectPattern, difference, is_record_class
from retrograd.compiler.capture import Program
from retrograd.compiler.guards import Guards
from retrograd.compiler.output_tree import Constant, Rebuilt, ResultTree, make_dict, make_record
from retrograd.compiler.plain_values import is_plain_value
from retrograd.compiler.player import makes_and_reads
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
    result_slots,
)
from retrograd.compiler.program_parts import Parts, is_argument
from retrograd.compiler.python_watch import EAGER_FUNCTIONS, EAGER_METHODS
from retrograd.compiler.recorder import kernel_of
from retrograd.core import Aval, Op, registry
from retrograd.core.dtype import is_differentiable
from retrograd.core.engine import copy_in_layout, ones_array
from retrograd.core.graph import zero_array
from retrograd.core.guards import TensorGuard
from retrograd.core.tensor import make
from retrograd.interop.json_values import (
    Encoding,
    StorageError,
    add_encoding,
    error_context,
    expect,
    fields,
    members,
    text,
)
from retrograd.interop.stored_names import class_name, find_class, read_schema
from retrograd.nn.module import Module
from retrograd.optim.lr_scheduler import LRScheduler
from retrograd.optim.optimizer import Optimizer

MOST_SLOTS = 1 << 24
_CONTAINERS: dict[Any, type] = {kind.__name__: kind for kind in (list, tuple, dict, OrderedDict, deque)}
_EAGER_FUNCTIONS = {function.__name__: function for function in EAGER_FUNCTIONS.values()}
_FUNCTIONS = {"copy_in_layout": copy_in_layout, "ones": ones_array}  # that are no operator's kernel


# ------------------------------------------------------------------------------------------------- writing


class ProgramWriter:
    """Writes programs as plain values, and collects the operators and tensors that they name.

    `names` are the names of the tensors from outside, by id; `external_data` are objects that the file does not have:
    modules, whose tensors are not stored, and optimizers and schedules, whose methods programs call.
    """

    def __init__(self, names: dict[int, str], external_data: dict[str, Any]) -> None:
        self.tensors: dict[str, Any] = {}  # that are stored: from outside, and constants
        self.operators: dict[str, str] = {}  # the schemas
        self._names, self._external_data = names, external_data
        self.elsewhere = external_tensors(external_data)
        self._parts: Any = None
        self._results: list[Result] = []
        self._rows: list[list] = []  # of the results
        self._arguments: list[list] = []  # the layouts of the tensors among the arguments

    def write(self, program: Program) -> dict[str, Any]:
        """Return a program; StorageError for what a file cannot hold."""
        if program.sets_state:
            raise StorageError("the function replaces attributes or variables outside, which a file does not have")
        if program.parts is None:
            raise StorageError("a result requires grad. Compile it under rg.no_grad(), or return gradients as results")
        parts = self._parts = program.parts
        self._results, self._rows, self._arguments = [], [], []
        call = self._call(program.arguments)
        tensors = [self._tensor(*pair) for pair in zip(program.tensors, program.tensor_guards, strict=True)]
        instructions = [self._instruction(i) for i in parts.instructions]
        used = {*[slot for slot, _ in parts.externals], *parts.results.slots()}
        used.update([slot for instruction in parts.instructions for slot in makes_and_reads(instruction)])
        return {
            "tensors": tensors,
            "arguments": self._arguments,
            "call": call,
            "grads": [[name, owner] for name, owner in parts.grads],
            "arrays": [self._array(slot) for slot in sorted(used)],
            "externals": [[int(slot), name] for slot, name in parts.externals],
            "instructions": instructions,
            "tree": self._tree(parts.results.tree),
            "results": self._rows,
            "serves_sizes": program.serves_sizes,
        }

    def _tensor(self, t: Any, guard: TensorGuard) -> list:
        key, name = self.elsewhere.get(id(t), (None, self._names[id(t)]))
        if key is None:
            self.tensors[name] = t
        layout = _write_layout(guard)
        if array_programs.layout(t.value) != (guard.shape, guard.dtype, guard.strides):  # as by `t.data = ...`
            raise StorageError(f"the {difference(guard, t)} of the tensor {name} since the call that was compiled")
        grad = guard.grad_guard if uses_grads(self._parts) else None
        return [key, name, layout, guard.requires_grad, None if grad is None else _write_layout(grad)]

    def _array(self, slot: Slot) -> list:
        (shape, dtype, strides), owner = self._parts.layouts[slot], self._parts.memories.get(slot)
        if strides is None:
            raise StorageError("it has nested or sparse tensors")
        return [int(slot), list(shape), dtype, list(strides), None if owner is None else int(owner)]

    def _operator(self, op: Any) -> str:
        if registry.get(op.name) is not op:
            raise StorageError(f"it calls {op.name}, which is no registered operator")
        self.operators[op.name] = str(op.schema)
        return str(op.name)

    # ---------------------------------------------------------------------------------------- instructions

    def _instruction(self, instruction: Instruction) -> list:
        backward = instruction.backward
        if isinstance(instruction, Write | Add):
            kind = "write" if isinstance(instruction, Write) else "add"
            return [kind, int(instruction.target), int(instruction.source), self._ref(instruction.owner), backward]
        if isinstance(instruction, SetGrad):
            return ["grad", self._ref(instruction.leaf), self._ref(instruction.result), backward]
        if isinstance(instruction, Eager):
            return ["eager", *self._method(instruction.function), self._operands(instruction.operands), backward]
        if isinstance(instruction, SetData):
            return ["data", self._ref(instruction.tensor), int(instruction.source), backward]
        assert isinstance(instruction, Call)
        outs = [int(out) for out in instruction.outs]
        if instruction.op is None:
            return [*self._function(instruction), outs, backward]
        operands, params = [*instruction.operands], dict(instruction.params)
        return ["call", self._operator(instruction.op), operands, params, outs, instruction.several, backward]

    def _method(self, function: Any) -> list:
        """Return the object and the name of a method that runs as it is; None and the name of a function."""
        if function.__name__ in _EAGER_FUNCTIONS:
            return [None, function.__name__]
        owner = function.__self__
        if not isinstance(owner, Optimizer | LRScheduler):
            raise StorageError(f"it calls {function.__qualname__}; files have steps of optimizers and schedules only")
        if getattr(owner, function.__name__) != function:
            raise StorageError(f"it calls {function.__qualname__}, which {type(owner).__name__} overrides")
        key = next((key for key, known in self._external_data.items() if known is owner), None)
        if key is None:
            raise StorageError(
                f"it calls {type(owner).__name__}.{function.__name__}, which is no part of the file. Give it, and the "
                f"module of its parameters, as external_data={{'model': ..., 'optimizer': ...}}"
            )
        return [key, function.__name__]

    def _operands(self, operand: Any) -> list:
        """Return the operands of a method that runs as it is."""
        if isinstance(operand, list | tuple):
            return ["list", None, [*map(self._operands, operand)]]
        is_tensor = isinstance(operand, External | Result)
        return ["tensor", self._ref(operand)] if is_tensor else ["value", operand]

    def _function(self, call: Call) -> list:
        """Return the beginning of a row for a call that is no operator's: of a constant, or in a backward pass."""
        function: Any = call.function
        if call.impure:
            raise StorageError("it draws random numbers again, in a checkpoint")
        if isinstance(function, partial) and function.func is array_programs.copy:
            name = free_name("constant", {*self.tensors, *self._names.values()})
            self.tensors[name] = make(function.args[0], None, None)
            return ["constant", name]
        if isinstance(function, partial) and function.func is zero_array:
            return ["function", "zeros", [*call.operands, function.keywords["dtype"]]]
        if function is operator.getitem and call.operands[1:] == (...,):
            return ["function", "alias", [call.operands[0], None]]
        name = next((name for name, known in _FUNCTIONS.items() if known is function), "")
        expect(name, "a function of the library", function)
        return ["function", name, [*call.operands]]

    # --------------------------------------------------------------------------------- tensors and structures

    def _ref(self, tensor: Any) -> str | None:
        """Return the reference to a result or a tensor from outside."""
        if tensor is None or isinstance(tensor, External):
            return None if tensor is None else str(self._parts.names[id(tensor.tensor)])
        if tensor not in self._results:  # compared by identity
            base = self._ref(tensor.base)
            chain = [[self._operator(op), dict(params)] for op, params in tensor.chain]
            slot = None if tensor.slot is None else int(tensor.slot)
            self._results.append(tensor)
            self._rows.append([slot, tensor.count, base, chain, tensor.creation_meta])
        return f"r{self._results.index(tensor)}"

    def _call(self, guards: ArgumentGuards) -> list:
        """Return the structure of the arguments."""
        if any(i != place for place, i in enumerate(guards.identities)):
            raise StorageError("a container is twice among the arguments, or the function also reads it from elsewhere")
        first = {i: first for first, i in guards.repetitions}  # tensors that are the same array

        def write(pattern: Any) -> list:
            if isinstance(pattern, TensorGuard):
                i = len(self._arguments)
                self._arguments.append(self._argument(pattern))
                return ["tensor", f"p{first.get(i, i)}"]
            if isinstance(pattern, ObjectPattern):
                if not is_plain_value(pattern.value):
                    raise StorageError(f"an argument is a {type(pattern.value).__name__}, no tensor or plain value")
                return ["value", pattern.value]
            kind, inside = pattern
            if isinstance(inside, dict):
                return _write_container(kind, [*inside], [*map(write, inside.values())])
            return _write_container(kind, None, [*map(write, inside)])

        return [write((tuple, guards.args)), write((dict, guards.kwargs))]

    def _argument(self, guard: TensorGuard) -> list:
        if not guard.is_leaf or guard.has_hooks:
            raise StorageError("an argument is part of a graph or has hooks. Pass x.detach()")
        grad = guard.grad_guard
        return [_write_layout(guard), guard.requires_grad, None if grad is None else _write_layout(grad)]

    def _tree(self, tree: Any) -> list:
        if isinstance(tree, External | Result):
            return ["tensor", self._ref(tree)]
        if isinstance(tree, Constant):
            return ["value", tree.value]
        if isinstance(tree, Rebuilt):
            make, inside = tree.make, [self._tree(member) for member in tree.members]
            is_of_record = isinstance(make, partial)
            if is_of_record and make.func is make_dict and make.args[0] not in _CONTAINERS.values():
                raise StorageError(f"a result is a {make.args[0].__name__}, no dict, tuple or dataclass")
            kind = make.args[0] if is_of_record else getattr(make, "__self__", make)
            return _write_container(kind, [*make.args[1]] if is_of_record else None, inside)
        kind, inside = tree
        keys = [*inside] if kind is dict else None
        return _write_container(kind, keys, [self._tree(m) for m in (inside.values() if kind is dict else inside)])


def _write_container(kind: type, keys: list | None, inside: list) -> list:
    """Return the row of a container: its class, the keys of a dict or fields of an object, and its members."""
    name = kind.__name__ if kind in _CONTAINERS.values() else [*class_name(kind)]
    return [name, keys, inside]


def _write_layout(guard: TensorGuard) -> list:
    if guard.composite is not None:
        raise StorageError("it has nested or sparse tensors")
    return [list(guard.shape), guard.dtype, list(guard.strides)]


def free_name(kind: str, taken: Collection[str]) -> str:
    """Return a name for a tensor that no other one has."""
    return next(name for i in count() if (name := f"{kind}_{i}") not in taken)


def uses_grads(parts: Parts) -> bool:
    """Return whether a program reads or sets the .grad of tensors."""
    return bool(parts.grads) or any(isinstance(i, SetGrad | Eager) for i in parts.instructions)


def external_tensors(external_data: dict[str, Any]) -> dict[int, tuple[str, str]]:
    """Return the tensors of modules by id: the name of the module, and that of the tensor in it."""
    found: dict[int, tuple[str, str]] = {}
    for key, module in external_data.items():
        for name, t in named_tensors(module) if isinstance(module, Module) else ():
            found.setdefault(id(t), (key, name))
    return found


def named_tensors(module: Module) -> list[tuple[str, Any]]:
    """Return the parameters and buffers of a module with their names."""
    return [*module.named_parameters(), *module.named_buffers()]


# ------------------------------------------------------------------------------------------------- reading


class ProgramReader:
    """Makes programs from the values that `ProgramWriter` returns; StorageError for anything else.

    `tensors` are those of the file by name, `operators` the schemas of the operators that its programs call.
    """

    def __init__(self, tensors: dict[str, Any], operators: dict[str, str], external_data: dict[str, Any]) -> None:
        self._operators = {name: _read_operator(name, schema) for name, schema in operators.items()}
        self.tensors: dict[tuple[str | None, str], Any] = {(None, name): t for name, t in tensors.items()}
        self._external_data = external_data
        for key, module in external_data.items():
            for name, t in named_tensors(module) if isinstance(module, Module) else ():
                self.tensors[key, name] = t
        self._layouts: Layouts = {}
        self._refs: dict[str, Any] = {}  # `External` or `Result`
        self._grads: dict[str, Any] = {}  # like the .grad that tensors have before the call
        self._known: set[Slot] = set()  # slots that have arrays, up to some instruction

    def read(self, data: Any, modes: Any) -> Program:
        """Return a program for a call in such modes."""
        outside, arguments, call, grads, arrays, externals, instructions, tree, results, serves_sizes = fields(
            data, "a program", tensors=list, arguments=list, call=list, grads=list, arrays=list, externals=list,
            instructions=list, tree=list, results=list, serves_sizes=bool,
        )  # fmt: skip
        self._layouts, self._known, self._refs, self._grads = {}, set(), {}, {}
        guards = [self._read_tensor(f"t{i}", row) for i, row in enumerate(outside)]
        for i, row in enumerate(arguments):
            self._read_argument(f"p{i}", row)
        tensors = [self._refs[f"t{i}"].tensor for i in range(len(outside))]
        program = self._begin(call, modes)
        pairs = [self._read_grad(f"g{i}", row) for i, row in enumerate(grads)]
        memories = dict([self._read_array(row) for row in arrays])
        loaded = [self._read_external(row) for row in externals]
        for i, row in enumerate(results):
            self._refs[f"r{i}"] = self._read_result(row)
        made = [self._read_instruction(number, row) for number, row in enumerate(instructions)]
        leaves: list[Any] = []
        output = ResultTree(self._read_tree(tree, _describe, leaves), leaves)
        expect({*output.slots()} <= self._known, "results that exist", tree)
        given = [i.tensor.tensor for i in made if isinstance(i, SetData) and isinstance(i.tensor, External)]
        left = {id(t): t.value for t in given}
        program.guard_tensors(tensors, {id(t): guard for t, guard in zip(tensors, guards, strict=True)}, {}, left)
        names = {id(e.tensor): name for name, e in reversed(self._refs.items()) if isinstance(e, External)}
        objects = {f"t{i}": t for i, t in enumerate(tensors)}
        program.serves_sizes = serves_sizes
        program.write(Parts(made, self._layouts, memories, output, pairs, loaded, names, objects, len(arguments)))
        return program

    def _begin(self, call: list, modes: Any) -> Program:
        """Return a program without instructions, for the arguments."""
        args, kwargs = [self._read_tree(row, _build, []) for row in members(call, 2, "the arguments of a call")]
        expect(type(args) is tuple and type(kwargs) is dict, "positional arguments and others by name", call)
        expect(all(type(name) is str for name in kwargs), "names of arguments", call)
        program = Program(modes, ArgumentGuards(args, kwargs), Guards([]))
        examples = [id(e.tensor) for name, e in self._refs.items() if is_argument(name)]
        repeated = [id(t) for t in program.arguments.tensors]
        expect({*repeated} <= {*examples} and len(repeated) == len(examples), "each argument once", call)
        return program

    def _read_tensor(self, ref: str, data: Any) -> TensorGuard:
        """Note a tensor from outside: of the file, or of a module in the external data; return its guard."""
        key, name, layout, requires_grad, grad = members(data, 5, "a tensor from outside")
        t, expected = self.tensor_named(key, name), _layout(layout)
        if key is None:
            t.value = array_programs.in_layout(t.value, expected)
        expect(array_programs.layout(t.value) == expected, f"{name} to be like {expected}", t)
        expect(t.requires_grad is requires_grad, f"{name} to have requires_grad={requires_grad}", t.requires_grad)
        self._refs[ref] = External(t)
        guard = TensorGuard(t, with_grad=False)
        if grad is not None:
            self._grads[ref] = make(array_programs.example(_layout(grad)), None, None)
            guard.grad_guard = TensorGuard(self._grads[ref], with_grad=False)
        return guard

    def tensor_named(self, key: Any, name: Any) -> Any:
        """Return a tensor of the file, or with a key of a module in the external data."""
        expect(type(key) in (str, type(None)) and type(name) is str, "the name of a tensor", name)
        if key is not None and key not in self._external_data:
            raise StorageError(f"it needs external_data={{{key!r}: ...}}, with the module that it was saved for")
        expect((key, name) in self.tensors, f"a tensor {name!r}{f' in {key!r}' if key else ''}", name)
        return self.tensors[key, name]

    def _read_argument(self, ref: str, data: Any) -> None:
        """Note a tensor like an argument, whose elements nobody reads."""
        layout, requires_grad, grad = members(data, 3, "an argument")
        expect(type(requires_grad) is bool, "whether it requires grad", requires_grad)
        t: Any = make(array_programs.example(_layout(layout)), None, None)
        t.requires_grad_(requires_grad)
        if grad is not None:
            t._grad = self._grads[ref] = make(array_programs.example(_layout(grad)), None, None)
        self._refs[ref] = External(t)

    def _read_grad(self, ref: str, data: Any) -> tuple[str, str]:
        """Return the names of a .grad and of the tensor that has it before the call."""
        name, owner = members(data, 2, "a .grad and its tensor")
        expect(name == ref and type(owner) is str and owner in self._grads, "a .grad and its tensor", data)
        self._refs[ref] = External(self._grads[owner])
        return name, owner

    # ------------------------------------------------------------------------------------ arrays and results

    def _read_array(self, data: Any) -> tuple[Slot, Slot | None]:
        """Note the layout of an array; return the slot, and that of the array that owns its memory."""
        number, shape, dtype, strides, owner = members(data, 5, "an array")
        slot = _slot(number)
        expect(slot not in self._layouts, "a new number of an array", number)
        self._layouts[slot] = _layout([shape, dtype, strides])
        return slot, None if owner is None else _slot(owner)

    def _read_external(self, data: Any) -> tuple[Slot, str]:
        number, name = members(data, 2, "an array from outside and its tensor")
        slot, tensor = _slot(number), self._ref(name)
        expect(isinstance(tensor, External) and slot not in self._known, "a tensor from outside", name)
        expect(array_programs.layout(tensor.tensor.value) == self._layouts.get(slot), "its layout", name)
        tensor.slot = slot
        self._known.add(slot)
        return slot, name

    def _ref(self, name: Any) -> Any:
        expect(type(name) is str and name in self._refs, "a tensor of the program", name)
        return self._refs[name]

    def _read_result(self, data: Any) -> Result:
        number, version, base, chain, meta = members(data, 5, "a result")
        expect(type(version) is int and 0 <= version < 2**63, "a version", version)
        slot = None if number is None else _slot(number)
        expect(slot is not None or base is not None, "an array or a base", data)
        steps = [self._read_view(step) for step in members(chain, None, "view operators")]
        source = None if base is None else self._ref(base)
        return Result(slot, None, version, source, tuple(steps), text(meta, "how a view was made"))

    def _read_view(self, data: Any) -> tuple[Any, dict]:
        name, params = members(data, 2, "a view operator and its params")
        op = self._operator(name)
        expect(op.view and type(params) is dict and all(type(key) is str for key in params), "a view operator", name)
        return op, params

    def _operator(self, name: Any) -> Any:
        expect(type(name) is str and name in self._operators, "an operator that the file gives the schema of", name)
        return self._operators[name]

    def _read_tree(self, data: Any, build: Callable, leaves: list[Any]) -> Any:
        """Return what `build` makes of containers, of tensors and of values; `leaves` gets the tensors."""
        if type(data) is list and len(data) == 2:
            kind, value = data
            expect(kind in ("tensor", "value"), "a tensor or a value", kind)
            if kind == "value":
                expect(is_plain_value(value), "a plain value", value)
                return build(None, None, value)
            leaves.append(self._ref(value))
            return build(None, None, leaves[-1])
        name, keys, rows = members(data, 3, "a container")
        kind = _read_class(name)
        inside = [self._read_tree(row, build, leaves) for row in members(rows, None, "members of a container")]
        is_named = not issubclass(kind, list | tuple | deque)
        names = members(keys, len(inside), "a key for each member") if is_named else keys
        expect(is_named or keys is None, "no keys", keys)
        expect(not is_named or all(map(is_plain_value, names)), "keys that are plain values", keys)
        if issubclass(kind, tuple) and kind is not tuple:
            expect(len(inside) == len(kind._fields), f"the fields of {kind.__name__}", rows)
        return build(kind, names, inside)

    # ------------------------------------------------------------------------------------------ instructions

    def _read_instruction(self, number: int, data: Any) -> Instruction:
        with error_context(f"instruction {number}"):
            expect(type(data) is list and data and type(data[0]) is str, "an instruction", data)
            expect(type(data[-1]) is bool, "whether it is of a backward pass", data)
            kinds: dict[str, Callable[..., Instruction]] = {
                "call": self._read_call, "function": self._read_function, "constant": self._read_constant,
                "write": self._read_write, "add": self._read_write, "grad": self._read_set_grad,
                "data": self._read_set_data, "eager": self._read_eager,
            }  # fmt: skip
            expect(data[0] in kinds, "an instruction", data[0])
            return kinds[data[0]](data)

    def _read_write(self, data: list) -> Write | Add:
        kind, target, source, owner, backward = members(data, 5, "a write")
        return (Write if kind == "write" else Add)(
            self._operand(target), self._operand(source), None if owner is None else self._made(owner), backward
        )

    def _read_set_grad(self, data: list) -> SetGrad:
        _, name, result, backward = members(data, 4, "a tensor and its new .grad")
        leaf, made = self._ref(name), None if result is None else self._made(result)
        expect(isinstance(leaf, External), "a tensor from outside", name)
        return SetGrad(leaf, made, backward)

    def _read_set_data(self, data: list) -> SetData:
        _, name, source, backward = members(data, 4, "a tensor and its new array")
        tensor, slot = self._made(name), self._operand(source)
        expect(isinstance(tensor, External) or not tensor.chain, "a tensor that is no view", name)
        dtype = self._layouts[slot][1]
        is_leaf = isinstance(tensor, External) and tensor.tensor.requires_grad
        expect(not is_leaf or is_differentiable(dtype), "an array of a dtype for gradients", data)
        return SetData(tensor, slot, None, backward)

    def _read_eager(self, data: list) -> Eager:
        _, key, name, operands, backward = members(data, 5, "the call of a method")
        tree: list[Any] = self._read_tree(operands, _plain, [])
        for tensor in _leaves(tree):
            self._check_made(tensor)
        expect(type(tree) is list, "the operands of a method", operands)
        if key is None:
            expect(name in _EAGER_FUNCTIONS, "a function that decides by values", name)
            function = _EAGER_FUNCTIONS[name]
            expect(len(tree) == function.__code__.co_argcount, "the operands of a function", operands)
            return Eager(function, tuple(tree), backward)
        owner = self._external_data.get(key) if type(key) is str else None
        if not isinstance(owner, Optimizer | LRScheduler):
            raise StorageError(
                f"it needs external_data={{{key!r}: ...}}, with the optimizer or schedule it was saved for"
            )
        expect(name in EAGER_METHODS[Optimizer] and not tree, "the call of a method without arguments", data)
        return Eager(getattr(owner, name), (), backward)

    def _made(self, name: Any) -> Any:
        """Return a tensor that exists by now."""
        tensor = self._ref(name)
        self._check_made(tensor)
        return tensor

    def _check_made(self, tensor: Any) -> None:
        expect({*result_slots(tensor)} <= self._known, "a tensor that exists by then", tensor)

    def _operand(self, number: Any) -> Slot:
        slot = _slot(number)
        expect(slot in self._known, "an array that exists by then", number)
        return slot

    def _results(self, data: Any) -> tuple[Slot, ...]:
        outs = [_slot(number) for number in members(data, None, "the results of a call")]
        for out in outs:
            expect(out in self._layouts and out not in self._known, "a new array", data)
            self._known.add(out)
        return tuple(outs)

    def _read_call(self, data: list) -> Call:
        _, name, operands, params, outs, several, backward = members(data, 7, "a call")
        op = self._operator(name)
        with error_context(op.name):
            for param in params if type(params) is dict else (None,):
                expect(type(param) is str and param.isidentifier() and not iskeyword(param), "a param", param)
            expect(type(several) is bool, "whether it has several results", several)
            given = members(operands, None, "the operands")
            for a in given:
                expect(type(a) is not Slot or a in self._known, "operands that exist by then", a)
            made = self._results(outs)
            expect(several or len(made) == 1, "one result", outs)
            self._check_layouts(op, given, params, made)
            arrays = [_stand_in(self._layouts[a]) if type(a) is Slot else a for a in given]
            scalars = tuple([not self._layouts[out][0] for out in made])
            return Call(
                kernel_of(op, arrays), tuple(given), params, made, scalars, several, op, backward, keeps=not op.view
            )

    def _check_layouts(self, op: Any, operands: list, params: dict, outs: tuple[Slot, ...]) -> None:
        """Check that an operator accepts such operands, and returns such results."""
        avals = [Aval(*self._layouts[a][:2]) if type(a) is Slot else a for a in operands]
        try:
            found = op.definition.shape(*avals, **params)
        except Exception as error:  # the params may be anything
            raise StorageError(str(error)) from None
        expected = found if isinstance(found, tuple | list) and not isinstance(found, Aval) else (found,)
        shapes = [getattr(aval, "shape", None) for aval in expected]
        expect(shapes == [self._layouts[out][0] for out in outs], f"results of the shapes {shapes}", outs)

    def _read_function(self, data: list) -> Call:
        _, name, operands, outs, backward = members(data, 5, "a call of a function")
        given, made = members(operands, 2, "two operands"), self._results(outs)
        expect(len(made) == 1, "one result", outs)
        if name == "copy_in_layout":
            slots = [self._operand(a) for a in given]
            same = [self._layouts[a][0] == self._layouts[made[0]][0] for a in slots]
            expect(all(same), "operands of the shape of the result", data)
            return _function_call(copy_in_layout, tuple(slots), made, backward)
        if name == "alias":
            source = self._operand(given[0])
            expect(self._layouts[source] == self._layouts[made[0]] and given[1] is None, "an array of its layout", data)
            return _function_call(operator.getitem, (source, ...), made, backward)
        shape, dtype, _ = self._layouts[made[0]]
        expect(name in ("ones", "zeros") and given == [shape, dtype], "a call of ones or zeros", data)
        if name == "ones":
            return _function_call(ones_array, (shape, dtype), made, backward)
        return _function_call(partial(zero_array, dtype=dtype), (shape,), made, backward)

    def _read_constant(self, data: list) -> Call:
        _, name, outs, backward = members(data, 4, "a constant")
        array, made = self.tensor_named(None, name).value, self._results(outs)
        expect(len(made) == 1, "one result", outs)
        expect(array_programs.layout(array) == self._layouts[made[0]], "the layout of the constant", name)
        return _function_call(partial(array_programs.copy, array), (), made, backward)


def _function_call(function: Callable, operands: tuple, outs: tuple[Slot, ...], backward: bool) -> Call:
    return Call(function, operands, {}, outs, (False,), False, backward=backward)


def _read_operator(name: str, schema: Any) -> Op:
    """Return an operator that is as it was where the file was written."""
    if read_schema(name, schema) is not registry[name].schema:
        raise StorageError(f"the operator {name!r} is another one in this version: compile and save again")
    return registry[name]


def _slot(number: Any) -> Slot:
    expect(type(number) in (int, Slot) and 0 <= number < MOST_SLOTS, "the number of an array", number)
    return Slot(number)


def _layout(data: Any) -> tuple:
    """Return a layout, of an array that can be."""
    shape, dtype, strides = members(data, 3, "the shape, dtype and strides of an array")
    for numbers, least in ((shape, 0), (strides, -(2**62))):
        valid = type(numbers) is list and len(numbers) <= 64 and all(type(n) is int for n in numbers)
        expect(valid and all(least <= n < 2**62 for n in numbers), "the sizes or strides of an array", numbers)
    expect(len(shape) == len(strides) and isinstance(dtype, array_programs.DTYPE), "a layout", [shape, dtype, strides])
    span = sum((n - 1) * abs(s) for n, s in zip(shape, strides, strict=True) if n)
    expect(0 in shape or span < 2**46, "the layout of an array that can be", [shape, dtype, strides])
    return tuple(shape), dtype, tuple(strides)


def _stand_in(layout: tuple) -> Any:
    """Return an array by whose dtype and dimensions the kernel is found."""
    shape, dtype, _ = layout
    return array_programs.example(((1,) * len(shape), dtype, (0,) * len(shape)))


def _read_class(name: Any) -> Any:
    """Return the class of a container."""
    if type(name) is str:
        expect(name in _CONTAINERS, f"one of {', '.join(_CONTAINERS)}", name)
        return _CONTAINERS[name]
    module, qualname = members(name, 2, "a module and a class")
    kind = find_class(text(module, "a module"), text(qualname, "a class"))
    if not optree.is_namedtuple_class(kind) and not is_record_class(kind):
        raise StorageError(
            f"there is no named tuple or dataclass {module}.{qualname}: import its module before loading"
        )
    return kind


def _leaves(tree: Any) -> list[Any]:
    """Return the members of nested lists."""
    return [leaf for member in tree for leaf in _leaves(member)] if isinstance(tree, list) else [tree]


def _plain(kind: Any, keys: list | None, inside: Any) -> Any:
    """Return an operand of a method: a tensor, a value, or a list."""
    expect(kind in (None, list), "a list", kind)
    return inside


def _build(kind: Any, keys: list | None, inside: Any) -> Any:
    """Return an argument: a tensor, a value, or a container."""
    if kind is None:
        return inside.tensor if isinstance(inside, External) else inside
    if keys is not None:
        return _maker(kind, tuple(keys))(inside)
    return kind(inside) if kind in _CONTAINERS.values() else kind._make(inside)


def _describe(kind: Any, keys: list | None, inside: Any) -> Any:
    """Return the tree of a result: see `ResultTree`."""
    if kind is None:
        return inside if isinstance(inside, External | Result) else Constant(inside)
    if kind in (list, tuple):
        return kind, inside
    if kind is dict:
        return kind, dict(zip(keys or (), inside, strict=True))
    if keys is not None:
        return Rebuilt(_maker(kind, tuple(keys)), inside)
    return Rebuilt(kind if kind is deque else kind._make, inside)


def _maker(kind: type, keys: tuple) -> Callable[[list], Any]:
    """Return the function that makes a dict, or an object of a dataclass, from its members."""
    return partial(make_dict, kind, keys, ()) if issubclass(kind, dict) else partial(make_record, kind, keys)


add_encoding(Slot, Encoding("array", lambda codec, value, depth: int(value), lambda codec, data, depth: _slot(data)))
