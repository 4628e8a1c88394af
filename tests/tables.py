"""Tables of what tests need to know of each operator: one file per family of operators, merged."""

from importlib import import_module
from pathlib import Path


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
