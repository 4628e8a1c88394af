"""One-line errors of the command."""

from collections.abc import Collection
from pathlib import Path
from typing import Any, NoReturn

from retrograd.foundation.suggestions import did_you_mean

# For `retrograd run`: options of mpiexec, torchrun and python, and what to do instead.
FOREIGN_OPTIONS = {
    "--nnodes": "-n is the number of ranks on all hosts, and --hostfile names the hosts",
    "--standalone": "without --hostfile all ranks run on this host",
    "-H --host --hosts": "write the hosts into a file, one a line as HOST or HOST:SLOTS, and pass it as --hostfile",
    "-f --machinefile": "the file with the hosts is passed as --hostfile",
    "-p --ppn": "write the hosts into a file, one a line as HOST:SLOTS, and pass it as --hostfile",
    "--max-restarts": "use --restarts",
    "--master-addr --master-port --node-rank --rdzv-backend --rdzv-endpoint --rdzv-id": "the launcher connects the "
    "ranks; --hostfile, or --transport ray with --address, says where they run",
    "-c": "write the program into a file",
}


class UsageError(Exception):
    """An error that the user can fix: shown as one line, without a traceback; the exit code is 2."""

    def format_message(self) -> str:
        """Return the line, under the name that typer's own errors have for it."""
        return str(self)


def needs_extra(what: str, package: str | None, extra: str) -> NoReturn:
    """Raise a UsageError that names a missing package and how to get it."""
    raise UsageError(f'{what} needs {package}: pip install "retrograd[{extra}]"')


def existing_file(path: Path, what: str = "file") -> Path:
    """Return the path of a file; raise a UsageError that suggests a file of its folder if there is none.

    what: the noun for the file, such as "script".
    """
    if path.is_file():
        return path
    if path.is_dir():
        raise UsageError(f"'{path}' is a folder; expected a {what}")
    folder = path.parent
    names = [file.name for file in folder.iterdir() if file.is_file()] if folder.is_dir() else []
    known = [str(folder / name) for name in names]
    suggested = did_you_mean(str(path), known) if f"{path}.py" not in known else f". Did you mean '{path}.py'?"
    raise UsageError(f"there is no {what} '{path}'{suggested}")


def invalid_choice(option: str, text: str, known: Collection[str]) -> UsageError:
    """Return the error for an option whose value is none of the known ones."""
    *first, last = known
    named = f"{', '.join(first)} or {last}" if len(known) == 2 else ", ".join(known)
    one_of = "" if len(known) == 2 else "one of "
    return UsageError(f"{option} is {text!r}; it must be {one_of}{named}{did_you_mean(text, known)}")


def explain(error: Any) -> str:
    """Return the message of an error of ours, or of typer's with the command that helps."""
    message: str = error.format_message()
    name = getattr(error, "option_name", None) or ""
    command = getattr(getattr(error, "ctx", None), "command_path", None)
    for options, hint in FOREIGN_OPTIONS.items():
        if command == "retrograd run" and name.replace("_", "-") in options.split():
            return f"{name} is no option of {command}: {hint}"
    if command is None or "Did you mean" in message or "Possible options" in message:
        return message
    return f"{message.removesuffix('.')}; see {command} --help"
