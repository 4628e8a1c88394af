"""Functions that are compiled ahead of time: programs with their tensors, saved in a file, without the Python code."""

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from retrograd.backend import array_programs
from retrograd.compiler.capture import Program
from retrograd.compiler.compiled_function import INSIDE, CompiledFunction
from retrograd.compiler.program import Add, Eager, External, Result, SetData, SetGrad, Write
from retrograd.compiler.program_json import ProgramReader, ProgramWriter, free_name, named_tensors
from retrograd.compiler.program_kind import ProgramKind
from retrograd.core import Aval, Tensor, current
from retrograd.core.dtype import get_default_dtype
from retrograd.core.state import at
from retrograd.core.tensor import INFERENCE, make
from retrograd.interop import program_files
from retrograd.interop.json_values import Codec, StorageError, error_context, expect, fields, members, text
from retrograd.interop.program_files import check_version, library_version
from retrograd.interop.safetensors import save_file
from retrograd.interop.stored_tensors import encode_tensor, read_tensors
from retrograd.nn.module import Module
from retrograd.optim.optimizer import Optimizer

FORMAT, VERSION = "retrograd compiled function", 1


class AOTCompiledFunction(CompiledFunction):
    """A compiled function that consists of its programs, and of the tensors that they read, by name.

    `save_compiled_function` writes it to a file, from which `rg.compiler.load_compiled_function` makes it again. It
    can be pickled and copied, with its tensors. A call for which it has no program is a RuntimeError.
    """

    def __init__(self, kinds: list[list[Program]], names: dict[int, str], dtype: Any, name: str) -> None:
        self.kinds, self.names, self.dtype = kinds, names, dtype
        super().__init__(_NoFunction(name), name=name)

    def reset(self) -> None:
        """Forget the programs that were made for other sizes."""
        super().reset()
        self.programs = [program for kind in self.kinds for program in kind]
        self._recent = [*self.programs]
        for kind in self.kinds:
            made = ProgramKind(kind[0].arguments.tensors, None)
            for program in kind:
                program.kind = made
                made.symbolic.add(program)
        self._takes_views = not any(map(_shares_arguments, self.programs))

    def save_compiled_function(self, path: str | os.PathLike[str], external_data: dict[str, Any] | None = None) -> None:
        """Write the function to a file, which replaces an earlier one at the end.

        `external_data` are objects that the file does not contain, and that `load_compiled_function` gets under the
        same names: modules, whose parameters and buffers the function reads and writes, and the optimizers and
        schedules whose methods it calls.

        Raises `export.StorageError`, a ValueError, if a program contains what a file cannot hold: a result that
        requires grad, an optimizer that is not in `external_data`, nested or sparse tensors. FileExistsError if there
        is a file that is no compiled function or stored program.
        """
        program_files.write(Path(path), _writer(self, dict(external_data or {})), is_zip=True)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the tensors that the function reads from elsewhere than its arguments, by name."""
        tensors = {id(t): t for program in self.programs for t in program.tensors}
        return {self.names[key]: t for key, t in tensors.items()}

    def __reduce__(self) -> Any:
        """Return how a copy is made: from the bytes of the file."""
        file = io.BytesIO()
        program_files.write_to(file, _writer(self, {}))
        return _from_bytes, (file.getvalue(),)

    def find_program(self, args: tuple, kwargs: dict[str, Any]) -> tuple[Program, list[Any]] | None:
        """Return the program for a call, and the tensors among its arguments; None if there is none.

        Views and tensors of inference mode are as others where no program writes to arguments, or returns them.
        """
        found = super().find_program(args, kwargs)
        return super().find_program(*self._plain(args, kwargs)) if found is None and self._takes_views else found

    def _plain(self, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        return (_plain(args), _plain(kwargs)) if self._takes_views else (args, kwargs)

    def _capture(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run a call for which there is no program yet, by one that is made from those for other sizes."""
        args, kwargs = self._plain(args, kwargs)
        kind = next((p.kind for p in self.programs if p.is_for_sizes(args, kwargs)), None)
        with self._lock:
            found = self.find_program(args, kwargs) or self._make_program(kind, args, kwargs)
        if found is not None:
            return found[0].run(found[1])
        difference = self.programs[0].find_difference(args, kwargs)
        if not self.programs[0].modes.hold():
            difference = f"the default dtype was {self.dtype}"
        raise RuntimeError(
            f"{self.name}: the compiled function has no program for this call: {difference}. Compile it for such "
            f"arguments, too, before it is saved"
        )

    def _run_eagerly(self, reason: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run a call by its program although code around it observes operators: they see nothing."""
        if reason == INSIDE:
            raise RuntimeError(f"{self.name}: a saved function can't run {INSIDE.removeprefix('it is called ')}")
        with at(None, current().grad_enabled):
            found = self.find_program(args, kwargs)
            return self._capture(args, kwargs) if found is None else found[0].run(found[1])


class _NoFunction:
    """A callable that raises where a compiled function would run its Python code, which a file does not have."""

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{self.__name__}: a saved function has no Python code, which could run eagerly")


class DefaultDtype:
    """The mode that a program without Python code takes for granted; the grad mode is that of the compilation."""

    grad_enabled = None  # any

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    def hold(self) -> bool:
        """Return whether the default dtype is the same now."""
        return bool(get_default_dtype() == self.dtype)


def _plain(value: Any) -> Any:
    """Return arguments with tensors that are neither views nor of inference mode in place of those that are."""
    kind = type(value)
    if kind in (list, tuple):
        return kind([_plain(member) for member in value])
    if kind is dict:
        return {key: _plain(member) for key, member in value.items()}
    if isinstance(value, Tensor) and value.level is None and (value._view is not None or value.version is INFERENCE):
        return value if value.requires_grad else make(value.value, None, value.tag)
    return value


def _shares_arguments(program: Program) -> bool:
    """Return whether a program writes to its arguments, or gives them or their views to the caller or other tensors."""
    if program.parts is None:  # the results are part of a graph
        return True
    found: list[Any] = [*program.parts.results.leaves]
    for i in program.parts.instructions:
        match i:
            case Write() | Add():
                found.append(i.owner)
            case SetGrad():
                found += [i.leaf, i.result]
            case SetData():
                found.append(i.tensor)
            case Eager():  # it may keep what it gets
                found += i.operands
    while found:
        tensor = found.pop()
        if isinstance(tensor, External) and any(tensor.tensor is t for t in program.arguments.tensors):
            return True
        found += [tensor.base] if isinstance(tensor, Result) else tensor if isinstance(tensor, list) else []
    return False


# ------------------------------------------------------------------------------------------- making and storing


def aot_compile(function: CompiledFunction, example_inputs: Any, module: Module | None) -> AOTCompiledFunction:
    """Return the programs of a compiled function, with one for the example, as a function of their own.

    Tensors of `module` have the names that it has for them.
    """
    if not isinstance(example_inputs, tuple) or [*map(type, example_inputs)] != [tuple, dict]:
        raise TypeError("aot_compile: expected a tuple of the positional arguments, and a dict of those by name")
    args, kwargs = example_inputs
    before = function.programs
    if function.find_program(args, kwargs) is None:
        function(*args, **kwargs)
        if function.programs is before:
            raise RuntimeError(
                f"aot_compile: {function.name} runs in parts or eagerly for the example; "
                f"rg.compile(..., fullgraph=True) raises the reason"
            )
    modes = DefaultDtype(get_default_dtype())
    kinds: dict[int, list[Program]] = {}
    for program in function.programs:
        if not program.is_made_from_others and program.modes.hold() and program.guards.hold():
            kinds.setdefault(id(program.kind), []).append(program.without_surroundings(modes))
    names = _names_of(module, [t for kind in kinds.values() for program in kind for t in program.tensors])
    return AOTCompiledFunction([*kinds.values()], names, get_default_dtype(), function.name)


def _names_of(module: Module | None, tensors: list[Any]) -> dict[int, str]:
    """Return the names of tensors by id."""
    found: dict[int, str] = {}
    for name, t in [] if module is None else named_tensors(module):
        found.setdefault(id(t), name)
    for t in tensors:
        if id(t) not in found:
            found[id(t)] = free_name("tensor", found.values())
    return found


def load_compiled_function(
    file: str | os.PathLike[str] | BinaryIO, *, external_data: dict[str, Any] | None = None
) -> AOTCompiledFunction:
    """Return the function that `save_compiled_function` has written, from a path or a binary file.

    No Python code of the function runs, nothing is captured, and the file is data that is checked: see `export.load`.
    Its tensors are new, except those of modules in `external_data`, which has the names of `save_compiled_function`.
    Calls have the bits of the compiled function, and run in any grad mode as it did when it was compiled. A call with
    arguments of other shapes, dtypes, strides or values, for which there is no program, is a RuntimeError that names
    the difference.

    Raises FileNotFoundError, and `export.StorageError`, a ValueError, for invalid content, for operators of another
    version, and for external data that are missing or do not fit.

    Source: the names are those of torch.compiler.load_compiled_function.

    >>> import retrograd as rg, tempfile
    >>> compiled = rg.compile(lambda x: (x * 2).sum(), fullgraph=True).aot_compile(((rg.ones(3),), {}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     compiled.save_compiled_function(f"{folder}/double.zip")
    ...     loaded = rg.compiler.load_compiled_function(f"{folder}/double.zip")
    >>> loaded(rg.tensor([1.0, 2.0, 3.0]))
    tensor(12.)
    """
    source: Any = Path(file) if isinstance(file, str | os.PathLike) else file
    name = str(source) if isinstance(source, Path) else str(getattr(file, "name", "the file"))
    with error_context(name), program_files.open_files(source) as folder:
        try:
            return _read_function(folder, dict(external_data or {}))
        except StorageError:
            raise
        except Exception as error:  # the programs may be anything that JSON allows
            raise StorageError(f"it is not a valid compiled function: {error}") from error


def _from_bytes(data: bytes) -> AOTCompiledFunction:
    return load_compiled_function(io.BytesIO(data))


def _writer(function: AOTCompiledFunction, external_data: dict[str, Any]) -> Callable[[Path], None]:
    """Return what writes the two files of a function into a folder; StorageError if a file cannot hold it."""
    codec, writer = Codec(), ProgramWriter(function.names, external_data)
    with error_context(function.name):
        programs = [
            [number, codec.write(writer.write(program))]
            for number, kind in enumerate(function.kinds)
            for program in kind
        ]
        _check_memory(function.state_dict())
        optimized = {key: _write_params(o, writer) for key, o in external_data.items() if isinstance(o, Optimizer)}
    document = {
        "format": FORMAT,
        "version": VERSION,
        "retrograd": library_version(),
        "name": function.name,
        "dtype": codec.write(function.dtype),
        "operators": dict(sorted(writer.operators.items())),
        "optimized": optimized,
        "tensors": [[name, codec.write(t.aval), t.requires_grad] for name, t in writer.tensors.items()],
        "programs": programs,
    }

    def fill(folder: Path) -> None:
        program_files.write_json(folder / program_files.GRAPH, document, lines=("tensors", "programs"))
        stored = {name: encode_tensor(t) for name, t in writer.tensors.items()}
        save_file(stored, folder / program_files.TENSORS)

    return fill


def _check_memory(tensors: dict[str, Any]) -> None:
    """Raise StorageError if tensors share memory: writes to one would show in the other."""
    shared = array_programs.overlapping([t.value for t in tensors.values()])
    if shared is not None:
        names = [*tensors]
        raise StorageError(f"the tensors {names[shared[0]]} and {names[shared[1]]} share memory")


def _params(optimizer: Optimizer) -> list[Any]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _write_params(optimizer: Optimizer, writer: ProgramWriter) -> list[list]:
    """Return the modules and names of the parameters of an optimizer."""
    found = [writer.elsewhere.get(id(p)) for p in _params(optimizer)]
    if None in found:
        raise StorageError("an optimizer has parameters of no module in external_data")
    return [list(pair) for pair in found if pair is not None]


def _read_function(folder: Path, external_data: dict[str, Any]) -> AOTCompiledFunction:
    codec = Codec()
    document = program_files.read_json(folder / program_files.GRAPH)
    check_version(document, FORMAT, VERSION)
    _, _, _, name, dtype, operators, optimized, rows, programs = fields(
        document, "a compiled function", format=str, version=int, retrograd=str, name=str, dtype=dict, operators=dict,
        optimized=dict, tensors=list, programs=list,
    )  # fmt: skip
    default = codec.read(dtype)
    expect(isinstance(default, array_programs.DTYPE), "a default dtype", dtype)
    tensors = _read_tensors(folder, [members(row, 3, "a tensor") for row in rows], codec)
    reader, modes = ProgramReader(tensors, operators, external_data), DefaultDtype(default)
    for key, params in optimized.items():
        _check_params(external_data.get(key), key, members(params, None, "parameters"), reader)
    kinds: dict[int, list[Program]] = {}
    for row in programs:
        number, data = members(row, 2, "a program and the number of its kind")
        expect(type(number) is int, "the number of a kind", number)
        kinds.setdefault(number, []).append(reader.read(codec.read(data), modes))
    expect(kinds, "a program", programs)
    names = {id(t): path for (_, path), t in reader.tensors.items()}
    return AOTCompiledFunction([*kinds.values()], names, default, text(name, "a name"))


def _read_tensors(folder: Path, rows: list[list], codec: Codec) -> dict[str, Any]:
    """Return the tensors of a file by name."""
    avals = {text(name, "the name of a tensor"): codec.read(aval) for name, aval, _ in rows}
    expect(all(type(aval) is Aval for aval in avals.values()) and len(avals) == len(rows), "tensors", rows)
    found = read_tensors(folder / program_files.TENSORS, avals)
    for name, _, requires_grad in rows:
        expect(type(requires_grad) is bool, "whether a tensor requires grad", requires_grad)
        found[name].requires_grad_(requires_grad)
    return found


def _check_params(optimizer: Any, key: str, rows: list, reader: ProgramReader) -> None:
    """Check that an optimizer has the parameters, among those of the modules, that it had when the file was written."""
    expected = [id(reader.tensor_named(*members(row, 2, "a parameter"))) for row in rows]
    if not isinstance(optimizer, Optimizer) or [*map(id, _params(optimizer))] != expected:
        raise StorageError(f"it needs external_data={{{key!r}: ...}}, with an optimizer of the same parameters")
