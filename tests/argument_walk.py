"""Call public functions with one argument of a wrong kind at a time, and print as JSON what they did: `run_walk`.

Valid arguments come from the operators' samples, and for other functions and classes from the first call in their own
docstring: the example runs up to this call. Functions that have neither are not walked. It runs in a process of its
own, where files, registered operators and settings are nobody else's.
"""

import ast
import contextlib
import doctest
import importlib
import inspect
import io
import json
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
KINDS = {"None": None, "int": 3, "str": "a", "list": [], "dict": {}, "object": object()}
# The beginnings of messages of Python and NumPy, which do not say which argument of the user's call is wrong.
PYTHON_WORDS = re.compile(
    r"'?[\w.]+'? object |unsupported operand|bad operand|cannot unpack|argument of type|must be real|'[^']+' not supp"
    r"|ufunc|not enough values|can only concatenate|(int|float)\(\) arg|'[<>=]+' not|too many values|object of type"
    r"|cannot convert|can't|type object '|an integer is req|argument must be"
)
# Messages that say what is wanted, in words for whatever holds numbers.
CLEAR = re.compile(
    r"tensor: Could not infer dtype of|new\(\): invalid data type|Cannot interpret '.*' as a data type"
    r"|expected a dtype or the name of one, got"
)
CLASSES = (TypeError, ValueError, RuntimeError, IndexError, ImportError)


def run_walk(folder: Path) -> list[list[str]]:
    """Return (function, argument, kind, result) of each call that raised no clear error, of a walk run in `folder`.

    The result is "accepted", or the error. CalledProcessError if the interpreter crashed.
    """
    command = [sys.executable, __file__]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def public_callables() -> dict[str, Any]:
    """Return the callables that tests/api.txt lists, each under its first name."""
    import api

    found = {}
    for name in api.modules():
        module = importlib.import_module(f"retrograd.{name}")
        found |= {f"rg.{name}.{a}": value for a, value in api.reference._public_names(module).items()}
    own = {f"rg.{name}": getattr(rg, name) for name in dir(rg) if name[0] != "_"}
    found |= {path: value for path, value in own.items() if not inspect.ismodule(value)}
    for path, value in list(found.items()):
        if isinstance(value, type) and not issubclass(value, BaseException):
            for name, member in api.reference.members(value):
                found[f"{path}.{name}"] = getattr(member, "__func__", member)
    unique: dict[int, tuple[str, Any]] = {}
    for path, value in found.items():
        if callable(value) and not (isinstance(value, type) and issubclass(value, BaseException)):
            unique.setdefault(id(value), (path, value))
    return dict(unique.values())


def is_clear(path: str, function: Any, argument: str, error: Exception) -> bool:
    """Return whether an error names the function or the argument, in words that are not Python's."""
    text = str(error)
    if not isinstance(error, CLASSES) or PYTHON_WORDS.match(text):
        return False
    named = getattr(function, "name", None), getattr(function, "__name__", None)  # an alias may be the first of two
    names = {*path.split(".")[-2:], argument.strip("_*"), *named} - {"rg", "", None}
    return bool(CLEAR.match(text)) or any(re.search(rf"(?<![A-Za-z]){re.escape(n)}(?![A-Za-z])", text) for n in names)


def values_of(value: Any) -> Any:
    """Return the values that an argument holds, to compare them."""
    if isinstance(value, rg.Tensor):
        return value.detach().tolist() if value.layout == rg.strided and not value.is_nested else str(value.layout)
    if isinstance(value, rg.nn.Module):
        return {name: values_of(x) for name, x in value.state_dict().items()}
    if isinstance(value, (list, tuple)):
        return [values_of(x) for x in value]
    return {str(key): values_of(x) for key, x in value.items()} if isinstance(value, dict) else None


def replaced(function: Any, args: tuple, kwargs: dict) -> Iterator[tuple[str, Any, tuple, dict, str]]:
    """Yield name, parameter, args, kwargs and kind, with one required argument replaced by one of each kind."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        parameters = {}
    listed = list(parameters.values())
    starred = next((i for i, p in enumerate(listed) if p.kind is p.VAR_POSITIONAL), len(listed) - 1)
    slots: list[tuple[Any, Any]] = [(i, listed[min(i, starred)] if listed else None) for i in range(len(args))]
    slots += [(name, parameters.get(name)) for name in kwargs]
    for slot, parameter in slots:
        if parameter is not None and parameter.default is not parameter.empty:
            continue
        given = {**dict(enumerate(args)), **kwargs}[slot]
        for kind, wrong in KINDS.items():
            if type(given) is not type(wrong):
                changed = tuple(wrong if i == slot else a for i, a in enumerate(args))
                named = {name: wrong if name == slot else a for name, a in kwargs.items()}
                yield parameter.name if parameter else str(slot), parameter, changed, named, kind


def may_be(function: Any, parameter: Any, kind: str) -> bool:
    """Return whether a parameter can be of a kind, as far as its annotation, or the operator's schema, says."""
    if parameter is None:
        return True
    if isinstance(parameter.annotation, str) and isinstance(function, Operator):
        number = kind == "int" or (kind == "list" and "[]" in parameter.annotation)
        return not parameter.annotation.startswith("Tensor") or "?" in parameter.annotation or number
    return kind == "int" or fits_kind(KINDS[kind], _evaluated(parameter.annotation, function))


def try_kinds(path: str, function: Any, args: tuple, kwargs: dict) -> Iterator[list[str]]:
    """Yield the calls with an argument of a wrong kind that raise no clear error, or change other arguments."""
    if isinstance(function, type):
        described = getattr(function.__init__, "_suggests_for", function.__init__)
    else:
        described = getattr(function, "_suggests_for", function)
    for name, parameter, changed, named, kind in replaced(function, args, kwargs):
        before = values_of([*args, *kwargs.values(), getattr(function, "__self__", None)])
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                function(*changed, **named)
        except Exception as error:
            if before != values_of([*args, *kwargs.values(), getattr(function, "__self__", None)]):
                yield [path, name, kind, f"changed arguments: {error}"]
            elif not is_clear(path, function, name, error):
                yield [path, name, kind, f"{type(error).__name__}: {error}"]
        else:
            if not may_be(described, parameter, kind):
                yield [path, name, kind, "accepted"]


class Recorded(ast.NodeTransformer):
    """Replace the calls in an example, `f(x)`, by `__call(f, x)`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Replace one call, and those in its arguments."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in ("super", "locals", "globals"):
            return node
        return ast.Call(ast.Name("__call", ast.Load()), [node.func, *node.args], node.keywords)


def from_example(path: str, target: Any) -> list[list[str]]:
    """Return the results of `try_kinds` for the first call of a function in its own docstring."""
    found: list[list[str]] = []
    reached = False

    def call(function: Any, /, *args: Any, **kwargs: Any) -> Any:
        nonlocal reached
        if not reached and (function is target or getattr(function, "__func__", None) is target):
            reached = True
            found.extend(try_kinds(path, function, args, kwargs))
        return function(*args, **kwargs)

    home = importlib.import_module(getattr(target, "__module__", None) or "retrograd")
    names = {**vars(home), "__call": call, "__name__": "__main__"}
    doc = inspect.getdoc(target) or ""
    if isinstance(target, type):
        doc += "\n\n" + (inspect.getdoc(target.__init__) or "")
    for example in doctest.DocTestParser().get_examples(doc):
        tree = ast.fix_missing_locations(Recorded().visit(ast.parse(example.source)))
        with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
            exec(compile(ast.Interactive(tree.body), path, "single"), names)
        if reached:
            break
    return found


def from_samples(path: str, operator: Any) -> list[list[str]]:
    """Return the results of `try_kinds` for the first sample of an operator."""
    inputs, params = next(iter(samples_of(operator)))
    schema, given = operator.schema, dict(params)
    names = [p.name for p in schema.inputs]
    given |= dict(zip(names, inputs, strict=False))
    if schema.variadic:
        given[names[-1]] = list(inputs[len(names) - 1 :])
    known = [p for p in schema.parameters if p.name in given]
    args = tuple(given[p.name] for p in known if not p.keyword_only)
    return list(try_kinds(path, operator, args, {p.name: given[p.name] for p in known if p.keyword_only}))


def walk() -> list[list[str]]:
    """Return the calls of all public functions that raised no clear error."""
    found = []
    for path, value in public_callables().items():
        sampled = isinstance(value, Operator) and getattr(value.definition, "samples", None)
        found += from_samples(path, value) if sampled else from_example(path, value)
        rg.set_default_dtype("float32")
    return found


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tools")]
    warnings.simplefilter("ignore")

    import retrograd as rg
    from retrograd.core import Operator
    from retrograd.foundation.function_arguments import _evaluated, fits_kind
    from retrograd.testing import samples_of

    print("\n" + json.dumps(walk()))
