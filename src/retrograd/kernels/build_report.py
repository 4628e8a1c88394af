"""The report of the build: which modules of the core and which kernels are compiled."""

import sys
from importlib.util import find_spec

import numpy as np

from retrograd import core
from retrograd.core.build_config import HOT


def show_config():
    """Print and return the build: "compiled" or "pure" for each hot module and the kernels, and NumPy's version.

    Kernels may also be "outdated": compiled from older sources, so that they lack some, and not used.

    >>> show_config()["numpy"] == np.__version__
    retrograd ...
    True
    """
    modules = {name: _build_of(f"{core.__name__}.{name}") for name in HOT}
    kernels = sys.modules[__package__].build
    core_build = _common_build(modules.values())
    config = {"core": core_build, "modules": modules, "kernels": kernels, "numpy": np.__version__}
    python = sys.version.split()[0]
    print(f"retrograd core: {core_build}; kernels: {kernels}; numpy {np.__version__}; python {python}")
    return config


def _build_of(name):
    """Return the build of a module, also of one that is imported on first use."""
    return "pure" if find_spec(name).origin.endswith(".py") else "compiled"


def _common_build(builds):
    found = set(builds)
    return found.pop() if len(found) == 1 else "mixed"
