"""The table of what the modules of operators add to the library: `retrograd/ops/contents.py`; tools/stubs.py writes it.

Importing this module imports all modules of operators, one by one, and notes what each of them adds.
"""

import importlib
import sys
import textwrap
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import retrograd as rg
from retrograd.core import Tensor, registry
from retrograd.foundation import lazy_imports
from retrograd.foundation.lazy_imports import LazyAttribute
from retrograd.ops.functions import functions, public_members
from retrograd.ops.publish import publish_operators

FOLDER = Path(rg.__file__).parent / "ops"
TABLES: tuple[Any, ...] = (registry, functions, public_members)
HEADER = '''\
"""The modules of operators that are imported on first use, and what each of them adds.

For each module the names of its operators, its public functions, public names of its operators, methods of tensors.
Made by tools/contents.py from the modules: change those, then run `make stubs`.
"""

# fmt: off
CONTENTS = {
'''

Members = tuple[dict[str, Any], ...]  # of the three tables and of Tensor, by name


def members() -> Members:
    """Return all members of the tables and of the Tensor class by name; nothing is imported."""
    return (*[dict(dict.items(table)) for table in TABLES], dict(vars(Tensor)))


def difference(new: Members, old: Members) -> Members:
    """Return the members that are new, or that were replaced."""
    return tuple(
        {name: m for name, m in after.items() if before.get(name) is not m}
        for after, before in zip(new, old, strict=True)
    )


def forget_the_table() -> None:
    """Let the modules add their members as if they were imported at once, whatever the table says now."""
    lazy_imports._incomplete.clear()
    for table in TABLES:
        table.homes.clear()
    for late in [member for member in vars(Tensor).values() if isinstance(member, LazyAttribute)]:
        late.publish()
        delattr(Tensor, late.name)


def import_all() -> dict[str, Members]:
    """Import all modules of operators, and return what each of them adds, without the modules that it imports."""
    added: dict[str, Members] = {}
    execute = SourceFileLoader.exec_module

    def exec_module(loader: SourceFileLoader, module: ModuleType) -> None:
        before = members()
        execute(loader, module)
        added[module.__name__] = tuple(
            {name: m for name, m in new.items() if not any(own[i].get(name) is m for own in added.values())}
            for i, new in enumerate(difference(members(), before))
        )

    SourceFileLoader.exec_module = exec_module  # type: ignore[method-assign]
    try:
        for path in sorted(FOLDER.glob("*.py")):
            importlib.import_module(f"retrograd.ops.{path.stem}" if path.stem != "__init__" else "retrograd.ops")
    finally:
        SourceFileLoader.exec_module = execute  # type: ignore[method-assign]
    return added


def publish_all(added: dict[str, Members]) -> dict[str, Members]:
    """Publish the operators of the modules, and return all that the modules add, by module."""
    registry.pop_unlisted()
    for home, own in added.items():
        before = members()
        publish_operators(list(own[0].values()), home)
        added[home] = tuple(a | b for a, b in zip(own, difference(members(), before), strict=True))
    return added


def entry(home: str, own: Members) -> str:
    """Return the entry of a module in the table."""
    operators, own_functions, public, attributes = map(sorted, own)
    fields = operators, own_functions, [name for name in public if name not in own_functions], attributes
    return f'    "{home.rpartition(".")[2]}": (\n{"".join(map(field, fields))}    ),\n'


def field(names: list[str]) -> str:
    """Return names as one string over several lines, followed by a comma."""
    lines = textwrap.wrap(" ".join(names), 105, break_on_hyphens=False) or [""]
    quoted = [f'        "{line} "' for line in lines[:-1]] + [f'        "{lines[-1]}",']
    return "\n".join(quoted) + "\n"


def text() -> str:
    """Return the text of the table."""
    found = {home: own for home, own in ADDED.items() if home.startswith("retrograd.ops.")}
    check_attributes(found)
    return HEADER + "".join(entry(home, own) for home, own in sorted(found.items())) + "}\n"


def check_attributes(found: dict[str, Members]) -> None:
    """Refuse attributes that can be assigned to: a module that adds one has to be imported at once."""
    for home, own in found.items():
        settable = [name for name, member in own[3].items() if hasattr(type(member), "__set__")]
        if settable:
            sys.exit(
                f"{home} adds the properties {', '.join(settable)} to Tensor: import it in retrograd/ops/__init__.py"
            )


forget_the_table()
ADDED = publish_all(import_all())

if __name__ == "__main__":
    print(text(), end="")
