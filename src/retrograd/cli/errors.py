"""What the command says in one line when it can't do what was asked."""

from typing import NoReturn


class UsageError(Exception):
    """Something that the user can put right: shown as one line, without a traceback; the exit code is 2."""

    def format_message(self) -> str:
        """The line, under the name that typer's own errors have for it."""
        return str(self)


def needs_extra(what: str, package: str | None, extra: str) -> NoReturn:
    """Raise a UsageError that names a missing package and how to get it."""
    raise UsageError(f'{what} needs {package}: pip install "retrograd[{extra}]"')
