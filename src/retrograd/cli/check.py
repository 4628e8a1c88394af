"""`retrograd check`: check an operator in a file with `opcheck`."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

import retrograd
from retrograd import library
from retrograd.cli.errors import UsageError, existing_file
from retrograd.cli.modules import import_file
from retrograd.core import Operator, registry
from retrograd.library import CustomOperator

Sample = tuple[tuple, dict[str, Any]]

SUCCESS, FAILURE = 0, 1


def check(target: str, arguments: str | None, checks: Sequence[str]) -> int:
    """Check `module.py:op`, print a table, and return the exit code: 0 if all is well, else 1."""
    path, name = _parse_target(target)
    module = import_file(path)
    op = _find_operator(module, path, name)
    samples = [_parse_arguments(arguments, module)] if arguments is not None else _find_samples(module, path, name, op)
    results_by_sample = [_run_opcheck(op, sample, checks) for sample in samples]
    _print_results(op, results_by_sample)
    return SUCCESS if all(text == "SUCCESS" for results in results_by_sample for text in results.values()) else FAILURE


def _parse_target(target: str) -> tuple[Path, str]:
    match = re.fullmatch(r"(?P<path>.+\.py)(:(?P<name>.+))?", target)
    if match is None:
        raise UsageError(f"the target is {target!r}; it must be like module.py:op, or module.py:namespace::op")
    path = Path(match["path"])
    return existing_file(path), match["name"] or ""


def _find_operator(module: ModuleType, path: Path, name: str) -> Operator:
    op = registry.get(name) if "::" in name else getattr(module, name, None)
    if isinstance(op, Operator):
        return op
    own = [n for n, value in vars(module).items() if isinstance(value, CustomOperator)]
    there = f"there is {', '.join(own)}" if own else "there are none at the top of it"
    if not name:
        raise UsageError(f"which operator of {path} to check? Add :name; {there}")
    raise UsageError(f"{path} has no operator {name!r}; {there}")


# ------------------------------------------------------------------------------------------------------ arguments


def _find_samples(module: ModuleType, path: Path, name: str, op: Operator) -> list[Sample]:
    short = name.rpartition("::")[2]
    for attribute in (f"{short}_samples", "samples"):
        samples_value = getattr(module, attribute, None)
        samples_value = (
            _call_samples(samples_value, f"{path}: {attribute}()") if callable(samples_value) else samples_value
        )
        if isinstance(samples_value, dict):
            samples_value = next((samples_value[key] for key in (short, name, op.name) if key in samples_value), None)
        if samples_value is not None:
            return _parse_samples(samples_value, f"{path}: {attribute}")
    raise UsageError(
        f"no arguments to check {name!r} with: write samples next to it in {path}, or say --args, "
        f"as in --args 'rg.ones(3), 2'"
    )


def _call_samples(function: Any, what: str) -> Any:
    try:
        results_by_sample = function()
        return results_by_sample if isinstance(results_by_sample, (dict, tuple, list)) else list(results_by_sample)
    except Exception as error:
        raise UsageError(f"{what} fails: {type(error).__name__}: {error}") from error


def _parse_samples(samples_value: Any, what: str) -> list[Sample]:
    """Parse samples: one is a tuple of arguments, or a pair of such a tuple and a dict of keyword arguments."""
    many: Iterable[Any] = [samples_value] if isinstance(samples_value, tuple) else samples_value
    samples: list[Sample] = []
    for sample in many:
        if not isinstance(sample, tuple):
            raise UsageError(f"{what}: a sample must be a tuple of arguments, got {type(sample).__name__}")
        named = len(sample) == 2 and isinstance(sample[0], tuple) and isinstance(sample[1], dict)
        samples.append((sample[0], sample[1]) if named else (sample, {}))
    if not samples:
        raise UsageError(f"{what} has no samples")
    return samples


def _parse_arguments(text: str, module: ModuleType) -> Sample:
    def collect(*args: Any, **kwargs: Any) -> Sample:
        return args, kwargs

    try:
        return eval(f"_take({text})", {"rg": retrograd, **vars(module), "_take": collect})
    except Exception as error:
        raise UsageError(f"--args is {text!r}, which fails: {type(error).__name__}: {error}") from error


# -------------------------------------------------------------------------------------------------------- results


def _run_opcheck(op: Operator, sample: Sample, checks: Sequence[str]) -> dict[str, str]:
    try:
        return library.opcheck(op, *sample, test_utils=tuple(checks) or "ALL", raise_exception=False)
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from error


def _print_results(op: Operator, results_by_sample: list[dict[str, str]]) -> None:
    location = f", defined at {op.registrations.location}" if isinstance(op, CustomOperator) else ""
    console = Console(markup=False, highlight=False)
    console.print(f"{op.schema}{location}", soft_wrap=True)
    many = len(results_by_sample) > 1
    table = Table("check", *(["sample"] if many else []), "", "what is wrong")
    for name in results_by_sample[0]:
        for number, results in enumerate(results_by_sample):
            fails = results[name] != "SUCCESS"
            verdict = Text("fails", "red") if fails else Text("ok", "green")
            table.add_row(name, *([str(number)] if many else []), verdict, results[name] if fails else "")
    console.print(table)
