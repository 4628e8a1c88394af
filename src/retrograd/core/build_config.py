"""Selects the build: the compiled modules, or their Python sources."""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import spec_from_file_location

HOT = (
    "state", "blocks", "aval", "level", "tensor", "vjp_rule", "graph", "op", "views", "record", "dispatch",
    "arithmetic", "engine", "function_node", "guards",
)  # fmt: skip
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
