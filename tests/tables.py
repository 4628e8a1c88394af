"""Tables of what tests need to know of each operator: one file per family of operators, merged."""

from importlib import import_module
from pathlib import Path

from retrograd.core import registry


def operators_on_arrays() -> list[str]:
    """The names of all operators but for those of `retrograd.nested`, which tests/nested holds to the laws.

    They are there if another test has imported that package.
    """
    numbers = ("int", "float")  # the results of calculations with sizes in graphs
    found = {n: op for n, op in registry.items() if op.schema.returns not in numbers}
    return sorted(n for n, op in found.items() if "retrograd.nested" not in op.definition.__module__)


def merged(package: str, table: str) -> dict:
    """The dicts of that name of all modules of a package; no entry may stand in two.

    `package` is relative to the folder of the tests: "ops.families".
    """
    found: dict = {}
    for path in sorted(Path(__file__).parent.joinpath(*package.split(".")).glob("[!_]*.py")):
        entries = getattr(import_module(f"{__package__}.{package}.{path.stem}"), table, {})
        assert not entries.keys() & found.keys(), f"{path.name}: {entries.keys() & found.keys()} stand elsewhere too"
        found |= entries
    return found
