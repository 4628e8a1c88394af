"""Measure the import time, and the size on disk with all dependencies.

    python benchmarks/footprint.py [--rounds 9] [--json FILE] [--check]

Imports run in fresh processes with cached bytecode, as after an installation; the time of a bare interpreter is
subtracted.  One row is the processor time that `import retrograd` adds to `import numpy`; below it are the modules that
take longest, by Python's `-X importtime`.
The size is that of the files listed by the installed packages (RECORD) and by everything they require.
For an editable installation of retrograd, it is that of the source tree with the compiled modules.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
from functools import partial
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

from retrograd.bench import Row, Table, main, parser, seconds
from retrograd.bench.subjects import KNOWN, thread_limits, versions

BUDGET = 0.15  # of PyTorch's
ABOVE_NUMPY = 60  # ms
NAMES = ("retrograd", "PyTorch", "JAX jit", "HIPS autograd", "tinygrad", "MLX", "NumPy")
MODULES = {"mlx": "mlx.core", "autograd": "autograd.numpy"}
SOURCE = Path(__file__).parents[1] / "src" / "retrograd"
REQUIREMENT = re.compile(r"([\w.-]+)[^;]*(?:;(.*))?")
EXTRAS = {"mlx": ["mlx-cpu"]}  # required to run on this kind of machine
BUILT = (".pyc", ".c", ".cpp", ".hpp", ".pxd")  # of a source tree: not in a wheel, or not needed


def environment(cache: str) -> dict[str, str]:
    """Return the environment of imports whose bytecode is cached in a directory."""
    return {**os.environ, **thread_limits(1), "PYTHONPYCACHEPREFIX": cache, "PYTHONDONTWRITEBYTECODE": ""}


def run(code: str, cache: str) -> None:
    """Run code in a new process."""
    subprocess.run([sys.executable, "-c", code], check=True, env=environment(cache), capture_output=True)


def import_seconds(rounds: int) -> Row:
    """Return the seconds of an import in a new process, minus those of the bare interpreter."""
    packages = {name: KNOWN[name].package for name in NAMES}
    present = {name: MODULES.get(p, p) for name, p in packages.items() if versions([p])}
    samples: dict[str, list[float]] = {name: [] for name in present}
    with TemporaryDirectory() as cache:
        for number in range(rounds + 1):
            bare = seconds(lambda: run("pass", cache))
            for name, module in present.items():
                taken = seconds(partial(run, f"import {module}", cache))
                if number:  # the first round compiles
                    samples[name].append(taken - bare)
    return Row("import", samples, {"PyTorch": BUDGET})


def processor_seconds(code: str, cache: str) -> float:
    """Return the processor time of code in a new process, with the start of the interpreter."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(code, cache)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def import_above_numpy(rounds: int) -> Row:
    """Return the processor time that importing retrograd adds to importing NumPy."""
    with TemporaryDirectory() as cache:
        run("import retrograd", cache)
        added = [
            processor_seconds("import retrograd", cache) - processor_seconds("import numpy", cache)
            for _ in range(rounds)
        ]
    return Row("import, beyond that of NumPy", {"retrograd": added}, {"": ABOVE_NUMPY})


def slowest_imports(rounds: int, count: int = 8) -> str:
    """Return a note of the modules that take `import retrograd` longest: the least time of each, in ms."""
    least: dict[str, int] = {}
    with TemporaryDirectory() as cache:
        for _ in range(rounds + 1):
            command = [sys.executable, "-X", "importtime", "-c", "import numpy, retrograd"]
            done = subprocess.run(command, check=True, env=environment(cache), capture_output=True, text=True)
            for own, name in re.findall(r"import time: +(\d+) \|[ \d]+\| +(retrograd\S*)", done.stderr):
                least[name] = min(int(own), least.get(name, int(own)))
    slowest = sorted(least, key=lambda name: -least[name])[:count]
    listed = ", ".join(f"`{name}` {least[name] / 1000:.1f}" for name in slowest)
    total = sum(least.values()) / 1000
    return f"{len(least)} modules of retrograd take {total:.1f} ms (`-X importtime`), the longest of them {listed}"


def required_sizes(package: str, seen: dict[str, int]) -> dict[str, int]:
    """Return the bytes of a package and of all that it requires, by package."""
    name = re.sub(r"[-_.]+", "-", package).lower()
    if name in seen or not versions([name]):
        return seen
    seen[name] = wheel_size() if name == "retrograd" else package_size(name)
    for line in [*(metadata.requires(name) or ()), *EXTRAS.get(name, ())]:
        match = REQUIREMENT.match(line)
        if match and marker_applies(match[2]):
            required_sizes(match[1], seen)
    return seen


def marker_applies(marker: str | None) -> bool:
    """Return whether a requirement applies to every installation on this machine."""
    if marker is None:
        return True
    from packaging.markers import Marker

    return Marker(marker).evaluate({"extra": ""})


def package_size(package: str) -> int:
    """Return the bytes of an installed package's files, without files compiled later."""
    files = metadata.files(package) or ()
    paths = [Path(str(f.locate())) for f in files if not str(f).endswith(".pyc")]
    return sum(path.stat().st_size for path in paths if path.exists())


def wheel_size() -> int:
    """Return the bytes of retrograd itself, as in a wheel."""
    files = [path for path in SOURCE.rglob("*") if path.is_file() and path.suffix not in BUILT]
    return sum(path.stat().st_size for path in files)


def sizes() -> tuple[Row, list[str]]:
    """Return the bytes of installations, and their composition."""
    found = {name: required_sizes(KNOWN[name].package, {}) for name in NAMES}
    notes = [
        f"{name} installs {', '.join(f'{package} {size / 2**20:.1f}' for package, size in parts.items())} MiB"
        for name, parts in found.items()
        if parts
    ]
    samples = {name: [float(sum(parts.values()))] for name, parts in found.items() if parts}
    return Row("installed, with dependencies", samples, {"PyTorch": BUDGET}), notes


def report(options: argparse.Namespace) -> list[Table]:
    """Return three tables of one row."""
    size, notes = sizes()
    return [
        Table("Import", "ms", [import_seconds(options.rounds)], threads=1),
        Table(
            "Processor time of import",
            "ms",
            [import_above_numpy(options.rounds)],
            threads=1,
            notes=[slowest_imports(options.rounds)],
        ),
        Table("Installation", "MiB", [size], notes=notes),
    ]


if __name__ == "__main__":
    sys.exit(main(parser(__doc__, 9), report))
