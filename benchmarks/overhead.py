"""What one operation on a small array costs: retrograd (compiled and pure), PyTorch, HIPS autograd, NumPy.

    python benchmarks/overhead.py [--rounds 31] [--json FILE] [--check]

Everything runs on one thread and is measured in one run, subjects taking turns; figures are medians.
"""

import argparse
import gc
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from common import ONE_THREAD, cells, interleaved, judged, main, parser, present, seconds, table, verdict

VALUES = [1.0, 1.00001, 0.99999, 1.0]  # whose millionth powers are numbers still
CHAIN = 1000
LONG, LONGER = 100_000, 1_000_000


class Row(NamedTuple):
    """What is measured: the operands, what is recorded, and the share of PyTorch's time that it may take."""

    what: str  # "forward" or "backward" (forward and backward)
    dtype: str = "float32"
    recorded: str = "w"  # which of w and y require gradients
    scalar: bool = False  # whether y is a Python number
    operations: int = CHAIN
    budget: float | None = None


ROWS = {
    "float32 forward, nothing recorded": Row("forward", recorded="", budget=0.40),
    "float32 forward, recorded": Row("forward", budget=0.55),
    "float32 forward + backward": Row("backward", budget=0.40),
    "float32 forward + backward, y too": Row("backward", recorded="wy"),
    "float64 forward, nothing recorded": Row("forward", "float64", "", budget=0.40),
    "float64 forward, recorded": Row("forward", "float64", budget=0.55),
    "float64 forward + backward": Row("backward", "float64", budget=0.40),
    "scalar forward, nothing recorded": Row("forward", recorded="", scalar=True, budget=0.40),
    "scalar forward, recorded": Row("forward", scalar=True, budget=0.55),
    "scalar forward + backward": Row("backward", scalar=True, budget=0.40),
    "one product, nothing recorded": Row("single", recorded="", budget=0.40),
    "one product, recorded": Row("single", budget=0.55),
}
LONG_ROWS = {f"chain of {n:,}": Row("backward only", operations=n) for n in (LONG, LONGER)}
IMPORT_BUDGET_MS = 60.0

# -------------------------------------------------------------------------------------------------- subjects


def chain(w: Any, y: Any, n: int) -> Any:
    """n multiplications, each of the result of the one before."""
    for _ in range(n):
        w = w * y
    return w


def repeated(w: Any, y: Any, n: int) -> Any:
    """n times the same multiplication."""
    for _ in range(n):
        w * y


def eager(tensor: Callable[[str, bool], Any], row: Row) -> float:
    """One sample of a library with tensors and `backward()`."""
    w = tensor(row.dtype, "w" in row.recorded)
    y = 1.00001 if row.scalar else tensor(row.dtype, "y" in row.recorded)
    if row.what == "backward":
        return seconds(lambda: chain(w, y, row.operations).sum().backward())
    if row.what == "backward only":
        return seconds(chain(w, y, row.operations).sum().backward)
    return seconds(partial(repeated if row.what == "single" else chain, w, y, row.operations))


def build_of_core() -> str:
    """Which build of retrograd this process has imported."""
    return "pure" if sys.modules["retrograd.core.op"].__file__.endswith(".py") else "compiled"


def retrograd() -> Callable[[Row], float]:
    """The build that the environment asks for."""
    import retrograd as rg

    wanted = "pure" if os.environ["RETROGRAD_PURE"] else "compiled"
    if build_of_core() != wanted:
        raise ImportError(f"a {wanted} build")
    return partial(eager, lambda dtype, grad: rg.tensor(VALUES, dtype=dtype, requires_grad=grad))


def torch() -> Callable[[Row], float]:
    """PyTorch's eager mode, on one thread."""
    import torch as pytorch

    pytorch.set_num_threads(1)
    return partial(eager, lambda dtype, grad: pytorch.tensor(VALUES, dtype=getattr(pytorch, dtype), requires_grad=grad))


def numpy() -> Callable[[Row], float | None]:
    """The floor: arrays alone, which record nothing."""
    import numpy as np

    def sample(row: Row) -> float | None:
        return None if row.recorded else eager(lambda dtype, grad: np.array(VALUES, dtype), row)

    return sample


def hips() -> Callable[[Row], float | None]:
    """HIPS autograd, which records inside `make_vjp`; without it, its functions are wrappers of NumPy's."""
    import autograd.numpy as anp
    from autograd.core import make_vjp
    from autograd.numpy.numpy_boxes import ArrayBox  # noqa: F401 (arrays are differentiable once it is imported)

    def sample(row: Row) -> float | None:
        if row.recorded != "w" or row.what in ("single", "backward only"):
            return None
        w = anp.array(VALUES, row.dtype)
        y = 1.00001 if row.scalar else anp.array(VALUES, row.dtype)

        def run() -> None:
            vjp, _ = make_vjp(lambda w: anp.sum(chain(w, y, row.operations)), w)
            if row.what == "backward":
                vjp(anp.ones((), row.dtype))

        return seconds(run)

    return sample


SUBJECTS: dict[str, tuple[Callable, dict[str, str]]] = {
    "retrograd": (retrograd, {"RETROGRAD_PURE": ""}),
    "pure": (retrograd, {"RETROGRAD_PURE": "1"}),
    "PyTorch": (torch, {}),
    "HIPS": (hips, {}),
    "NumPy": (numpy, {}),
}


def worker(name: str) -> Callable[[str], float | None]:
    """The function from a row's name to seconds per operation."""
    subject = SUBJECTS[name][0]()
    rows = {**ROWS, **LONG_ROWS}

    def sample(title: str) -> float | None:
        row = rows[title]
        gc.collect()
        taken = subject(row)
        return None if taken is None else taken / row.operations

    return sample


# -------------------------------------------------------------------------------------------------- measuring


def import_time(rounds: int) -> dict[str, float]:
    """Milliseconds that fresh processes take to import NumPy, and retrograd, which imports it too.

    Bytecode is cached, as it is after an installation, whatever the environment says; the first round fills it.
    """
    code = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
    times: dict[str, list[float]] = {"numpy": [], "retrograd": []}
    with TemporaryDirectory() as cache:
        environment = {**os.environ, **ONE_THREAD, "PYTHONPYCACHEPREFIX": cache, "PYTHONDONTWRITEBYTECODE": ""}
        for _ in range(rounds + 1):
            for module, taken in times.items():
                command = [sys.executable, "-c", code.format(module)]
                run = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
                taken.append(float(run.stdout.split()[-1]) * 1e3)
    return {module: statistics.median(taken[1:]) for module, taken in times.items()}


def overhead_table(medians: dict, names: list[str]) -> tuple[str, bool]:
    """Microseconds per operation, our share of PyTorch's, and whether all budgets are met."""
    lines, fine = [], True
    for title, row in ROWS.items():
        found = medians[title]
        us = [found[name] * 1e6 if name in found else None for name in names]
        share, ok = judged(found, row.budget)
        fine = fine and ok
        lines.append([title, *cells(us, "{:.2f}"), *share])
    return table(["us per operation", *names, "ratio", "budget", ""], lines), fine


def growth(medians: dict, names: list[str]) -> tuple[str, bool]:
    """The time per operation of a backward pass, over chains of two lengths."""
    short, long = (medians[title] for title in LONG_ROWS)
    lines = [
        [name, f"{short[name] * 1e6:.2f}", f"{long[name] * 1e6:.2f}", f"{long[name] / short[name]:.2f}"]
        for name in names
        if name in long
    ]
    fine = all(long[name] <= 1.5 * short[name] for name in names if name in ("retrograd", "pure"))
    return table(["backward alone, us per operation", *LONG_ROWS, "growth"], lines), fine


def report(options: argparse.Namespace) -> tuple[dict, bool]:
    """Run everything: the figures, and whether every budget is met."""
    with present(__file__, {name: environment for name, (_, environment) in SUBJECTS.items()}) as workers:
        names = [w.name for w in workers]
        medians = interleaved(workers, ROWS, options.rounds)
        medians |= interleaved([w for w in workers if w.name in ("retrograd", "pure", "PyTorch")], LONG_ROWS, 3)
    text, within = overhead_table(medians, names)
    lengths, linear = growth(medians, names)
    imports = import_time(15)
    above = imports["retrograd"] - imports["numpy"]
    quick = above <= IMPORT_BUDGET_MS
    print(f"{text}\n\n{lengths}\nno faster than linearly: {verdict(linear)}\n")
    print(f"import retrograd: {above:.0f} ms above import numpy ({imports['numpy']:.0f} ms), ", end="")
    print(f"budget {IMPORT_BUDGET_MS:.0f} ms: {verdict(quick)}")
    return {"seconds per operation": medians, "import ms": imports}, within and linear and quick


if __name__ == "__main__":
    options = parser(__doc__, 31, "the medians, in seconds per operation")
    sys.exit(main(options, report, worker))
