"""Write tests/api.txt: every public name of the package with its signature, one a line.

python tools/api.py            # write, and list what users of the last snapshot would miss
python tools/api.py --check    # exit with 1 if the snapshot is out of date

`tests/test_api.py` compares the file with the package. docs/compatibility.md says which changes a release may contain.
"""

import difflib
import enum
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import reference

import retrograd as rg
from retrograd.core import Operator

SNAPSHOT = Path(__file__).parents[1] / "tests" / "api.txt"
HEAD = "# Public names with their arguments and defaults, written by tools/api.py: run `make stubs` after a change.\n"
REPR = re.compile(r"<(?:function|class|module|built-in function) '?([\w.]+(?:<lambda>)?)'?(?: (?:at|from|\()[^>]*)?>")


def lines() -> list[str]:
    """Return the lines of the snapshot, sorted."""
    found = {line for name in modules() for line in _module(name, importlib.import_module(f"retrograd.{name}"))}
    names = {name: getattr(rg, name) for name in dir(rg) if not name.startswith("_")}
    own = {name: value for name, value in names.items() if not isinstance(value, ModuleType)}
    found |= {line for name, value in own.items() for line in _entry(f"rg.{name}", value)}
    return sorted(found)


def modules() -> list[str]:
    """Return the names of the modules that the reference documents."""
    return [name for names in reference.MODULES.values() for name in names]


def _module(name: str, module: ModuleType) -> Iterator[str]:
    yield f"rg.{name}: module"
    for attribute, value in reference._public_names(module).items():
        yield from _entry(f"rg.{name}.{attribute}", value)


def _entry(path: str, value: Any) -> Iterator[str]:
    """Yield the line of a name, and those of the members that its class adds to those of its bases."""
    if isinstance(value, type) and not issubclass(value, BaseException):
        yield f"{path}: class{_arguments(value)}"
        yield from (line for name, member in reference.members(value) for line in _member(f"{path}.{name}", member))
    elif callable(value) or isinstance(value, type):
        yield f"{path}{_arguments(value)}"
    else:
        yield f"{path}: {type(value).__name__}"


def _member(path: str, value: Any) -> Iterator[str]:
    value = getattr(value, "__func__", value)
    if isinstance(value, Operator) or inspect.isroutine(value):
        yield f"{path}{_arguments(value)}"
    else:
        yield f"{path}: {'member' if isinstance(value, enum.Enum) else 'attribute'}"


def _arguments(value: Any) -> str:
    """Return arguments and defaults without types: those depend on the versions of Python and NumPy."""
    if hasattr(value, "called_as"):
        return f"({str(value.called_as).partition('(')[2].rpartition(') ->')[0]})"
    if isinstance(value, type) and issubclass(value, enum.Enum | BaseException):
        return ""
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return "(...)"
    plain = [p.replace(annotation=p.empty) for p in parameters if p.name != "self"]
    signature = inspect.Signature(plain, __validate_parameters__=False)
    return REPR.sub(r"\1", str(signature))


def text() -> str:
    """Return the snapshot of the package as it is."""
    return HEAD + "".join(f"{line}\n" for line in lines())


def differences() -> list[str]:
    """Return the lines that the snapshot has and the package does not, with `-`, and the other way round, with `+`."""
    before = SNAPSHOT.read_text().splitlines() if SNAPSHOT.exists() else []
    compared = difflib.unified_diff(before, text().splitlines(), lineterm="", n=0)
    return [line for line in compared if line[0] in "+-" and line[:3] not in ("+++", "---")]


def main() -> int:
    """Write the snapshot, or compare it."""
    changed = differences()
    if "--check" in sys.argv:
        print(*changed, sep="\n")
        return bool(changed)
    if changed:
        SNAPSHOT.write_text(text())
        print(f"wrote {SNAPSHOT.name}")
    missed = [line for line in changed if line.startswith("-")]
    if missed:
        print("public names removed or changed; docs/compatibility.md says what that needs:", *missed, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
