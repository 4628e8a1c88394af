"""Run a benchmark's script for a peer: `import retrograd.bench` works, and imports nothing else of retrograd.

`python bare.py SCRIPT ARGUMENTS`. Importing retrograd starts threads, which must not affect a peer.
"""

import runpy
import sys
import types
from pathlib import Path

if __name__ == "__main__":
    package = types.ModuleType("retrograd")
    package.__path__ = [str(Path(__file__).resolve().parents[1])]
    sys.modules["retrograd"] = package
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
