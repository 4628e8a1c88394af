"""Users' Functions in stored graphs: written by module and name, and looked up without imports."""

from collections.abc import Iterable
from typing import Any

from retrograd.autograd.function import Function
from retrograd.autograd.function.base import FunctionOp, operator_of
from retrograd.interop.json_values import StorageError, expect, fields, members, text
from retrograd.interop.stored_names import find_class

RANDOMNESS = ("error", "same", "different")


def function_name(op: FunctionOp) -> str:
    """Return the name of a Function in a file: its module and qualified name, and a batch that it runs on."""
    if op.cls.batched_from is None:
        return f"{op.cls.__module__}:{op.cls.__qualname__}"
    cls, batched, n, randomness = op.cls.batched_from
    marks = "".join([str(int(b)) for b in batched])
    return f"{function_name(operator_of(cls))}[{n}, {marks}, {randomness}]"


def write_function(op: FunctionOp) -> dict[str, Any]:
    """Return a Function as JSON: its module and qualified name, and for the batching rule of `vmap` the batch."""
    if op.cls.batched_from is None:
        return {"function": [op.cls.__module__, op.cls.__qualname__], "batch": None}
    cls, batched, n, randomness = op.cls.batched_from
    return {"function": write_function(operator_of(cls)), "batch": [list(batched), n, randomness]}


def read_function(data: Any, classes: Iterable[type[Function]], depth: int = 0) -> FunctionOp:
    """Return the operator of a Function from JSON: of a class in `classes`, else of one in an imported module."""
    expect(depth < 10, "no deeper batches of batches", data)
    function, batch = fields(data, "a Function", function=(list, dict), batch=(list, type(None)))
    if batch is None:
        module, name = members(function, 2, "a module and a name")
        return operator_of(_find_function_class(module, name, classes))
    batched, n, randomness = members(batch, 3, "a batch")
    expect(type(batched) is list and all(type(b) is bool for b in batched), "true or false for each argument", batched)
    expect(type(n) is int and n >= 0, "the number of examples", n)
    expect(randomness in RANDOMNESS, f"one of {', '.join(RANDOMNESS)}", randomness)
    return operator_of(read_function(function, classes, depth + 1).generated(tuple(batched), n, randomness))


def _find_function_class(module: Any, name: Any, classes: Iterable[type[Function]]) -> type[Function]:
    """Return the Function of that name; nothing is imported."""
    text(module, "the name of a module")
    text(name, "the name of a class")
    for cls in classes:
        if (cls.__module__, cls.__qualname__) == (module, name):
            return cls
    found = find_class(module, name)
    if not (isinstance(found, type) and issubclass(found, Function)):
        raise StorageError(
            f"the program calls the autograd.Function {name!r} of the module {module!r}, which is not there: import "
            f"that module, then load again, or pass the class: load(path, functions=[{name.rpartition('.')[2]}])"
        )
    return found
