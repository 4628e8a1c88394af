"""`retrograd doctor`: what is installed."""

import os
import platform
import re
from importlib import metadata

from rich.console import Console
from rich.table import Table

import retrograd

_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(\[(?P<extras>[\w,-]+)\])?[^;]*(;.*extra == ['\"](?P<extra>[\w-]+)['\"])?")


def report() -> None:
    """Print the build, versions, and for each extra whether all of its packages are there."""
    retrograd.show_config()
    print(f"retrograd {retrograd.__version__} on {platform.platform()}, {os.cpu_count()} cores")
    table = Table("extra", "packages", "", title="What can be added", title_justify="left")
    for extra, packages in extras().items():
        told = {name: version(name) for name in packages}
        complete = all(told.values())
        listed = ", ".join(f"{name} {found or 'missing'}" for name, found in told.items())
        table.add_row(extra, listed, "complete" if complete else f'pip install "retrograd[{extra}]"')
    Console(markup=False, highlight=False).print(table)  # markup would take [extra] for a style


def version(package: str) -> str | None:
    """The installed version of a package, or None.

    >>> version("no-such-package") is None
    True
    """
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def extras() -> dict[str, list[str]]:
    """The packages of each extra that retrograd's own metadata lists; an extra within an extra is opened.

    >>> extras()["cli"]
    ['typer', 'rich']
    """
    direct: dict[str, list[str]] = {}
    for line in metadata.requires("retrograd") or ():
        match = _REQUIREMENT.match(line)
        if match and match["extra"]:
            inner = match["extras"].split(",") if match["name"] == "retrograd" and match["extras"] else []
            direct.setdefault(match["extra"], []).extend([f"[{name}]" for name in inner] or [match["name"]])
    return {extra: list(dict.fromkeys(_opened(extra, direct))) for extra in direct}


def _opened(extra: str, direct: dict[str, list[str]]) -> list[str]:
    opened = []
    for name in direct.get(extra, ()):
        opened += _opened(name[1:-1], direct) if name.startswith("[") else [name]
    return opened
