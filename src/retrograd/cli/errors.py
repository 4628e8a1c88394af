"""One-line errors of the command."""

from typing import NoReturn


class UsageError(Exception):
    """An error that the user can fix: shown as one line, without a traceback; the exit code is 2."""

    def format_message(self) -> str:
        """Return the line, under the name that typer's own errors have for it."""
        return str(self)


def needs_extra(what: str, package: str | None, extra: str) -> NoReturn:
    """Raise a UsageError that names a missing package and how to get it."""
    raise UsageError(f'{what} needs {package}: pip install "retrograd[{extra}]"')
