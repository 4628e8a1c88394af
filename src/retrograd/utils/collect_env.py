"""The names of `torch.utils.collect_env`: the versions of what computes, for reports of errors."""

import contextlib
import io
import platform
from importlib.metadata import version

from retrograd.kernels.build_report import show_config


def get_pretty_env_info() -> str:
    """Return the versions of the packages and of the kernels as text, a line for each.

    >>> get_pretty_env_info().splitlines()[0].startswith("Python version: ")
    True
    """
    lines = [f"Python version: {platform.python_version()}", f"OS: {platform.platform()}"]
    lines += [f"{name}: {version(name)}" for name in ("retrograd", "numpy")]
    with contextlib.redirect_stdout(io.StringIO()):  # it prints, too
        return "\n".join([*lines, *(f"{name}: {build}" for name, build in show_config().items())])


def main() -> None:
    """Print the versions."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
