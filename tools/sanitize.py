"""Run tests that use the kernels under AddressSanitizer with UBSan, and under ThreadSanitizer: `make sanitize`.

The kernels are built with a copy of the sources in build/sanitize, whose core is plain Python.  Needs GCC on Linux.
Sanitizers must be loaded before Python.  Each build has code for one processor: this machine's, or that of --march,
x86-64-v3 for 32-byte vectors.
"""

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np  # noqa: TID251 (where its headers are)

ROOT = Path(__file__).parents[1]
FLAGS = ["-std=c++17", "-g", "-fno-omit-frame-pointer", "-fno-math-errno", "-fno-trapping-math", "-fPIC"]
FLAGS += ["-shared", "-DRETROGRAD_ONE_PROCESSOR", "-D_GLIBCXX_ASSERTIONS", "-pthread", "-fno-sanitize-recover=all"]
KINDS = {  # by name: the compiler's option, and the runtime library
    "address": (["-O1", "-fsanitize=address,undefined,float-cast-overflow"], {"ASAN_OPTIONS": "detect_leaks=0"}),
    "thread": (["-O1", "-fsanitize=thread"], {"TSAN_OPTIONS": "halt_on_error=1 die_after_fork=0"}),
}
LIBRARY = {"address": "libasan.so", "thread": "libtsan.so"}

# Tests that use the kernels heavily.  Where there is no memory, sanitizers end the process.
HARD = {
    "backend": ["numpy", "special"],
    "nested": ["attention", "linalg", "reduce", "scan", "segments"],
    "nn": ["rnn", "transformers"],
    "ops": [
        "activation",
        "conv",
        "index",
        "interpolate",
        "losses",
        "matrices",
        "normalize",
        "pooling",
        "products",
        "random",
        "scatter",
        "as_strided",
    ],
    "optim": ["in_one_pass", "optimizers"],
}
TESTS = ["tests/kernels", "--deselect=tests/kernels/test_allocator.py"]
TESTS += [f"tests/{part}/test_{name}.py" for part, names in HARD.items() for name in names]


def build_copy(kind: str, march: str) -> Path:
    """Return a copy of the sources with the kernels built for the sanitizer."""
    tree = ROOT / "build/sanitize" / kind
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(ROOT / "src", tree, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    folder = tree / "retrograd/kernels"
    include = [f"-I{sysconfig.get_paths()['include']}", f"-I{np.get_include()}"]
    target = folder / f"native{sysconfig.get_config_var('EXT_SUFFIX')}"
    sources = sorted(map(str, folder.glob("*.cpp")))
    flags = [*FLAGS, f"-march={march}", *KINDS[kind][0]]
    subprocess.run(["g++", *flags, *include, *sources, "-o", str(target)], check=True)
    return tree


def preload_variable(kind: str) -> dict[str, str]:
    """Return the variable that loads the libraries of a sanitizer before Python."""
    if kind not in LIBRARY:
        return {}
    return {"LD_PRELOAD": f"{library_path(LIBRARY[kind])} {library_path('libstdc++.so.6')}"}


def library_path(library: str) -> str:
    """Return the path at which the compiler has a library."""
    return subprocess.run(
        ["g++", f"-print-file-name={library}"], capture_output=True, text=True, check=True
    ).stdout.strip()


def run(kind: str, march: str, arguments: list[str]) -> int:
    """Return the exit status of the tests under one sanitizer."""
    print(f"== tests of kernels, sanitizer: {kind}, {march}", flush=True)
    environment = {
        **os.environ,
        **KINDS[kind][1],
        **preload_variable(kind),
        "PYTHONPATH": str(build_copy(kind, march)),
        "OMP_NUM_THREADS": "1",  # of matrix products; the tests ask for threads of kernels themselves
        "RETROGRAD_KEEP_MEMORY": "0",
        "RETROGRAD_TEST_MEMORY": "0",  # sanitizers reserve terabytes
    }
    # A sanitizer that ends the process reports to the terminal, not to pytest.
    options = ["-q", "-p", "no:cacheprovider", "--capture=sys"]
    return subprocess.run([sys.executable, "-m", "pytest", *options, *arguments], cwd=ROOT, env=environment).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=KINDS, action="append", help="one sanitizer, not both")
    parser.add_argument("--march", default="native", help="the processor that is passed to the compiler")
    parser.add_argument("tests", nargs="*", default=TESTS, help="in place of those that go through kernels hard")
    chosen, options = parser.parse_known_args()
    return max([run(kind, chosen.march, [*chosen.tests, *options]) for kind in chosen.kind or LIBRARY])


if __name__ == "__main__":
    sys.exit(main())
