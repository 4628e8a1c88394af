"""The `retrograd` command."""

import errno
import sys
from collections.abc import Sequence

from retrograd.cli.errors import explain

try:
    from retrograd.cli.app import app as commands
except ModuleNotFoundError as error:
    MISSING = (error.name or "").partition(".")[0]
    if MISSING not in ("rich", "typer"):
        raise
    commands = None  # type: ignore[assignment]

__all__ = ["main"]

USAGE_ERROR, INTERRUPTED = 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments (those of the process), and return its exit code.

    0: success. 2: invalid arguments or a missing package, with one line on standard error. 130: stopped by Ctrl-C.

    >>> main(["--version"])
    retrograd 0.1.0
    0
    """
    if commands is None:
        return _fail(f'the command needs {MISSING}: pip install "retrograd[cli]"')
    try:
        return commands(args=arguments, prog_name="retrograd", standalone_mode=False) or 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return _fail(f"the output can't be written: {error.strerror}")
    except Exception as error:
        if not hasattr(error, "format_message"):  # typer's errors have it; their class has moved between versions
            raise
        return _fail(explain(error))


def _fail(message: str) -> int:
    print(f"retrograd: {message}", file=sys.stderr)
    return USAGE_ERROR
