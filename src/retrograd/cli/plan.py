"""`retrograd plan`: plan how to split a model over ranks, and which schedule to use."""

import importlib
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from retrograd.cli.errors import UsageError, existing_file
from retrograd.cli.modules import import_file
from retrograd.interop.atomic_write import atomic_replace
from retrograd.pipelining.planning import Plan, plan
from retrograd.pipelining.timeline.timeline import write_html

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
RETURNED = "it must return (model, example_args), and after these target and loss_fn where there are any"


class Settings(NamedTuple):
    """The options of the command; see `retrograd.pipelining.plan`."""

    target: str
    ranks: int
    micro_batches: int
    schedules: list[str] | None
    memory_limit: float | None
    cores: int | None
    html: Path | None
    json: Path | None


def run(settings: Settings) -> int:
    """Plan, print the plan, write the requested files; return the exit code: 1 if no plan exists."""
    model, example, *rest = _load_example(settings.target)
    target, loss_fn = [*rest, None, None][:2]
    try:
        result = plan(
            model,
            example,
            settings.ranks,
            settings.micro_batches,
            target=target,
            loss_fn=loss_fn,
            schedules=settings.schedules,
            memory_limit=settings.memory_limit,
            cores=settings.cores,
        )
    except ValueError as error:
        print(f"retrograd: {error}", file=sys.stderr)
        return 1
    _print_plan(result)
    try:
        _write(result, settings)
    except OSError as error:
        raise UsageError(f"the plan can't be written: {error}") from error
    return 0


def _write(result: Plan, settings: Settings) -> None:
    if settings.html is not None:
        write_html(settings.html, {f"planned: {result.schedule}": result.timeline}, title="Planned step")
    if settings.json is not None:
        with atomic_replace(settings.json) as unfinished:
            unfinished.write_text(json.dumps(result.to_dict(), indent=1))


def size(text: str) -> float:
    """Parse bytes from text such as 2GiB, 500MB or 4096.

    >>> size("2GiB"), size("1.5 kB")
    (2147483648.0, 1500.0)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]?i?B?)", str(text), re.IGNORECASE | re.ASCII)
    if match is None or match[2].upper() not in UNITS or not float(match[1]):
        raise UsageError(f"--memory-limit is {text!r}; it must be a size above 0, like 2GiB, 500MB or 4096")
    return float(match[1]) * UNITS[match[2].upper()]


def _load_example(target: str) -> tuple:
    """Return the result of the function in the target."""
    module_name, _, name = target.rpartition(":")
    if not module_name:
        raise UsageError(f"the target is {target!r}; it must be like train.py:example or package.module:example")
    function = getattr(_import_module(module_name), name, None)
    if not callable(function):
        raise UsageError(f"{module_name} has no function {name!r}")
    result = _call_function(function, target)
    if not isinstance(result, tuple) or not 2 <= len(result) <= 4:
        raise UsageError(f"{target} returned {type(result).__name__}; {RETURNED}")
    example = result[1] if isinstance(result[1], tuple) else (result[1],)
    return (result[0], example, *result[2:])


def _call_function(function: Callable[[], Any], target: str) -> Any:
    try:
        return function()
    except Exception as error:
        raise UsageError(f"{target} fails: {type(error).__name__}: {error}") from error


def _import_module(module_name: str) -> Any:
    if module_name.endswith(".py"):
        return import_file(existing_file(Path(module_name)))
    sys.path.insert(0, os.getcwd())  # as for python -m
    try:
        return importlib.import_module(module_name)
    except ImportError as error:
        raise UsageError(f"{module_name} can't be imported: {error}") from error


def _print_plan(result: Plan) -> None:
    console = Console(markup=False, highlight=False)
    table = _table(result.header(), f"{result.ranks} ranks, {result.micro_batches} microbatches")
    for row, choice in zip(result.rows(), result.choices, strict=True):
        table.add_row(*row, style="green" if choice is result.recommended else None if choice.fits else "dim")
    console.print(table)
    console.print(*result.notes(), sep="\n", soft_wrap=True)
    head, *stages = result.stage_rows()
    split = _table(head, "\nStages")
    for row in stages:
        split.add_row(*row)
    console.print(split)


def _table(head: list[str], title: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0), header_style="bold")
    for number, name in enumerate(head):
        table.add_column(name, justify="right" if number else "left", no_wrap=True)
    return table
