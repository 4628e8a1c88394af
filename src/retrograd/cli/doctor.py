"""`retrograd doctor`: report what is installed, whether it works, and how to fix faults."""

import platform
import re
from importlib import metadata

from rich.console import Console
from rich.table import Table

import retrograd
from retrograd.cli import health

_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(\[(?P<extras>[\w,-]+)\])?[^;]*(;.*extra == ['\"](?P<extra>[\w-]+)['\"])?")


def report() -> int:
    """Print the build, versions, threads, the completeness of each extra, a self-test, and remedies.

    The exit code is 0, or 1 if something does not work.
    """
    config = retrograd.show_config()
    print(f"retrograd {retrograd.__version__} on {platform.platform()}")
    print(*health.threads(), sep="\n")
    table = Table("extra", "packages", "", title="Optional packages", title_justify="left")
    for extra, packages in extras().items():
        versions = {name: version(name) for name in packages}
        complete = all(versions.values())
        listed = ", ".join(f"{name} {found or 'missing'}" for name, found in versions.items())
        table.add_row(extra, listed, "complete" if complete else f'pip install "retrograd[{extra}]"')
    Console(markup=False, highlight=False).print(table)  # rich would parse [extra] as a style
    return _run_checks(list(health.problems(config)))


def _run_checks(problems: list[str]) -> int:
    """Run the checks, and print failures."""
    results, seconds = health.timed_self_test()
    failed = [(name, why) for name, why in results if why]
    print(f"self-test: {len(results) - len(failed)} of {len(results)} work ({seconds:.2f} s)")
    for name, why in failed:
        print(f"  {name}: {why}")
    if failed:
        problems.append(
            "something does not work: pip install --force-reinstall retrograd numpy, and if that does not "
            "help, report this output"
        )
    print("no problems" if not problems else f"problems: {len(problems)}")
    for problem in problems:
        print(f"  - {problem}")
    return 1 if failed else 0


def version(package: str) -> str | None:
    """Return the installed version of a package, or None.

    >>> version("no-such-package") is None
    True
    """
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def extras() -> dict[str, list[str]]:
    """Return the packages of each extra in retrograd's own metadata; nested extras are expanded.

    >>> extras()["cli"]
    ['typer', 'rich']
    """
    direct: dict[str, list[str]] = {}
    for line in metadata.requires("retrograd") or ():
        match = _REQUIREMENT.match(line)
        if match and match["extra"]:
            inner = match["extras"].split(",") if match["name"] == "retrograd" and match["extras"] else []
            direct.setdefault(match["extra"], []).extend([f"[{name}]" for name in inner] or [match["name"]])
    return {extra: list(dict.fromkeys(_expand_extra(extra, direct))) for extra in direct}


def _expand_extra(extra: str, direct: dict[str, list[str]]) -> list[str]:
    opened = []
    for name in direct.get(extra, ()):
        opened += _expand_extra(name[1:-1], direct) if name.startswith("[") else [name]
    return opened
