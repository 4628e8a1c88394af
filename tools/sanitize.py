"""Runs the kernels' tests under AddressSanitizer with UBSan, and under ThreadSanitizer: `make sanitize`.

The kernels are built anew, beside a copy of the sources in build/sanitize, whose core is plain Python.  Needs GCC on
Linux.  Sanitizers must be loaded before Python, and their calls must not come as early as the choice among clones for
processors: there is one build, for this machine's processor.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np  # noqa: TID251 (where its headers are)

ROOT = Path(__file__).parents[1]
FLAGS = ["-std=c++17", "-O1", "-g", "-fno-omit-frame-pointer", "-fno-math-errno", "-fno-trapping-math", "-fPIC"]
FLAGS += ["-shared", "-march=native", "-DRETROGRAD_NO_CLONES", "-pthread", "-fno-sanitize-recover=all"]
KINDS = {  # by name: what the compiler is told, and what the library is
    "address": (["-fsanitize=address,undefined"], {"ASAN_OPTIONS": "detect_leaks=0"}),
    "thread": (["-fsanitize=thread"], {"TSAN_OPTIONS": "halt_on_error=1 die_after_fork=0"}),
}
LIBRARY = {"address": "libasan.so", "thread": "libtsan.so"}


def built(kind: str) -> Path:
    """A copy of the sources with the kernels as the sanitizer wants them."""
    tree = ROOT / "build/sanitize" / kind
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(ROOT / "src", tree, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    folder = tree / "retrograd/kernels"
    include = [f"-I{sysconfig.get_paths()['include']}", f"-I{np.get_include()}"]
    target = folder / f"native{sysconfig.get_config_var('EXT_SUFFIX')}"
    sources = sorted(map(str, folder.glob("*.cpp")))
    subprocess.run(["g++", *FLAGS, *KINDS[kind][0], *include, *sources, "-o", str(target)], check=True)
    return tree


def located(library: str) -> str:
    """Where the compiler has a library."""
    return subprocess.run(
        ["g++", f"-print-file-name={library}"], capture_output=True, text=True, check=True
    ).stdout.strip()


def run(kind: str, arguments: list[str]) -> int:
    """The exit status of the tests under one sanitizer."""
    print(f"== tests of kernels, {kind} sanitizer", flush=True)
    environment = {
        **os.environ,
        **KINDS[kind][1],
        "LD_PRELOAD": f"{located(LIBRARY[kind])} {located('libstdc++.so.6')}",
        "PYTHONPATH": str(built(kind)),
        "OMP_NUM_THREADS": "1",  # of matrix products; the tests ask for threads of kernels themselves
        "RETROGRAD_KEEP_MEMORY": "0",
    }
    tests = ["-q", "-p", "no:cacheprovider", "tests/kernels", "--deselect", "tests/kernels/test_memory.py", *arguments]
    return subprocess.run([sys.executable, "-m", "pytest", *tests], cwd=ROOT, env=environment).returncode


if __name__ == "__main__":
    sys.exit(max([run(kind, sys.argv[1:]) for kind in KINDS]))
