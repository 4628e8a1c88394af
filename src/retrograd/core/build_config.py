"""Selects the build: the compiled modules, or their Python sources."""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import spec_from_file_location

import numpy as np

HOT = ("level", "tensor", "graph", "op", "views", "record", "dispatch", "arithmetic", "engine")
PURE_VARIABLE = "RETROGRAD_PURE"


class SourceFinder:
    """An import finder for the sources of the hot modules, which precedes the finder of compiled files."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """Return the spec of `retrograd.core.<hot>` from its .py file; None leaves other modules to other finders."""
        package, _, module = name.rpartition(".")
        if package == __package__ and module in HOT:
            return spec_from_file_location(name, os.path.join(os.path.dirname(__file__), module + ".py"))
        return None


def choose():
    """Put the SourceFinder before Python's PathFinder if the environment asks for the sources."""
    if os.environ.get(PURE_VARIABLE, "") not in ("", "0") and SourceFinder not in sys.meta_path:
        sys.meta_path.insert(sys.meta_path.index(PathFinder), SourceFinder)


def show_config():
    """Print and return the build: "compiled" or "pure" for each hot module and the kernels, and NumPy's version.

    Kernels may also be "outdated": compiled from older sources, so that they lack some, and not used.

    >>> show_config()["numpy"] == np.__version__
    retrograd ...
    True
    """
    modules = {name: _build_of(f"{__package__}.{name}") for name in HOT}
    kernels = sys.modules["retrograd.kernels"].build
    config = {"core": _agreed(modules.values()), "modules": modules, "kernels": kernels, "numpy": np.__version__}
    print(
        f"retrograd core: {config['core']}; kernels: {kernels}; numpy {np.__version__}; python {sys.version.split()[0]}"
    )
    return config


def _build_of(name):
    return "pure" if sys.modules[name].__file__.endswith(".py") else "compiled"


def _agreed(builds):
    found = set(builds)
    return found.pop() if len(found) == 1 else "mixed"
