"""`torch.__config__`: how the package was built."""

import contextlib
import io

from retrograd.kernels import get_num_threads
from retrograd.kernels.build_report import show_config


def show() -> str:
    """Return a line for each part of the build, such as "kernels: compiled"."""
    with contextlib.redirect_stdout(io.StringIO()):
        return "\n".join(f"{name}: {build}" for name, build in show_config().items())


def parallel_info() -> str:
    """Return how many threads there are."""
    return f"threads: {get_num_threads()}"
