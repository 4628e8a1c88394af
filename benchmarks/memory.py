"""Measure the memory of training: peaks of steps next to PyTorch's, and growth over many steps.

    python benchmarks/memory.py [--rounds 3] [--json FILE] [--check]

Every sample is a fresh process; the steps of steps.py use two threads, the others one.  Linux only: the peak of a
process is the kernel's VmHWM, which is reset right before the step.
"""

import argparse
import ctypes
import gc
import sys
import warnings
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import numpy as np
from steps_data import STEPS
from steps_torch import case as step_of

from retrograd import kernels
from retrograd.bench import Case, Row, Table, Worker, library, main, parser, subjects

LAYERS, WIDTH, BATCH = 50, 512, 256
RATIO_BUDGET = 1.0
WARM_UP, BLOCKS, STEPS_OF_BLOCK = 1_000, 3, 10_000  # warm-up steps, and blocks of this many steps
NOISE_KIB = 16  # by which resident memory may move without growing: a few pages
KIB = 1024
MALLOC_TRIM = ctypes.CDLL(None).malloc_trim

# --------------------------------------------------------------------------------------------- one process's memory


def status(field: str) -> int:
    """Return a field of the kernel's status of this process, such as VmRSS, in KiB."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field + ":"))


def give_back_free_memory() -> None:
    """Release free memory to the operating system: that in retrograd's cache of arrays, then the C library's.

    PyTorch keeps none of its own on the CPU. In its processes, retrograd's cache is empty.
    """
    kernels.set_cache_limit(kernels.set_cache_limit(0))
    MALLOC_TRIM(0)


def peak_during(step: Callable[[], object]) -> int:
    """Return by how many KiB a step's peak exceeds the memory resident before it."""
    gc.collect()
    give_back_free_memory()  # it would hide part of the peak
    before = status("VmRSS")
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak starts again from here
    step()
    return status("VmHWM") - before


# -------------------------------------------------------------------------------------------------------- subjects


SUBJECTS = subjects("retrograd", "PyTorch")


def perceptron(m: ModuleType, layers: int) -> tuple[Any, Any]:
    """Return a model and a function that runs one forward and backward pass of it."""
    nn = m.nn
    model = nn.Sequential(*[part for _ in range(layers) for part in (nn.Linear(WIDTH, WIDTH), nn.ReLU())])
    x = m.ones(BATCH, WIDTH)
    return model, lambda: (model(x) ** 2).mean().backward()


def first_step(model: Any, step: Callable[[], None]) -> Callable[[], None]:
    """Prepare a first step: no parameter has a gradient yet."""
    return step


def accumulating(model: Any, step: Callable[[], None]) -> Callable[[], None]:
    """Prepare an accumulating step: every parameter has a gradient, to which the step adds."""
    step()
    return step


def after_zero_grad(model: Any, step: Callable[[], None]) -> Callable[[], None]:
    """Prepare a step after the gradients of the last one were set to None."""
    step()
    model.zero_grad(set_to_none=True)
    return step


PEAKS = {
    "first step": first_step,
    "step that accumulates into .grad": accumulating,
    "step after zero_grad()": after_zero_grad,
}


def peak(m: ModuleType, row: str) -> int:
    """Return the peak of one step in KiB."""
    if row in STEPS:
        step = step_of(m, row).call
        step()  # moments of Adam, and buffers of matrix products, are there from now on
        return peak_during(step)
    _, warm_up = perceptron(m, 1)
    warm_up()  # the buffers of the matrix products, allocated once, are not measured
    model, step = perceptron(m, LAYERS)
    return peak_during(PEAKS[row](model, step))


# ---------------------------------------------------------------------------------------------------- flat memory


def small_net(rg: ModuleType) -> tuple[list[Any], Callable[[], Any]]:
    """Return parameters, and a loss that uses each of them in several operators."""
    w, b = rg.randn(4, 4, requires_grad=True), rg.zeros(4, requires_grad=True)
    x = rg.ones(3, 4)
    return [w, b], lambda: (((x @ w + b).tanh() @ w).softmax(-1) ** 2).sum()


def plain_step(rg: ModuleType) -> Callable[[], None]:
    """Run backward(), which adds to .grad."""
    _, loss = small_net(rg)
    return lambda: loss().backward()


def in_place_step(rg: ModuleType) -> Callable[[], None]:
    """Run backward(), and a step of gradient descent that writes to the parameters."""
    params, loss = small_net(rg)

    def step() -> None:
        loss().backward()
        with rg.no_grad():
            for p in params:
                p -= 0.01 * p.grad
                p.grad = None

    return step


def penalty_step(rg: ModuleType) -> Callable[[], None]:
    """Run grad(create_graph=True), then backward() through the gradients."""
    params, loss = small_net(rg)
    return lambda: sum((g * g).sum() for g in rg.autograd.grad(loss(), params, create_graph=True)).backward()


def stored_step(rg: ModuleType) -> Callable[[], None]:
    """Run backward(create_graph=True), whose .grad holds the graph until it is cleared."""
    params, loss = small_net(rg)
    warnings.filterwarnings("ignore", "Using backward.. with create_graph=True")  # the step clears .grad itself

    def step() -> None:
        loss().backward(create_graph=True)
        for p in params:
            p.grad = None

    return step


FLAT = {
    "backward()": plain_step,
    "backward(), in-place update": in_place_step,
    "grad(create_graph=True), backward() through it": penalty_step,
    "backward(create_graph=True), .grad = None": stored_step,
}


def growth_during(steps: int, step: Callable[[], object]) -> int:
    """Return by how many KiB the resident memory grows."""
    before = status("VmRSS")
    for _ in range(steps):
        step()
    return status("VmRSS") - before


def growth(rg: ModuleType, row: str) -> tuple[int, int]:
    """Return the least growth of a block of steps in KiB, and of all live objects, without the cycle collector.

    A leak grows in every block. Growth in only some blocks is the allocator, which occasionally takes a few pages.
    """
    step = FLAT[row](rg)
    gc.disable()
    growth_during(WARM_UP, step)
    gc.collect()
    objects = len(gc.get_objects())
    give_back_free_memory()  # that of the list of all objects, in which a leak would grow unseen
    growth_during(WARM_UP, step)
    kib = min(growth_during(STEPS_OF_BLOCK, step) for _ in range(BLOCKS))
    return kib, len(gc.get_objects()) - objects


# --------------------------------------------------------------------------------------------------------- report


def measure_in_process(subject: str, row: str, threads: int) -> Any:
    """Return the measurement of a fresh process; None if the subject is missing."""
    process = Worker(__file__, subject, SUBJECTS[subject], threads)
    found = process.ask("check", row)[0]["values"] if process.ready is True else None
    process.close()
    return found


def cases(name: str, threads: int) -> Callable[[str], Case]:
    """Return a function from row to a case whose result is the peak of a step, or the growth of memory."""
    m = library(name, threads)

    def case(row: str) -> Case:
        return Case(lambda: None, lambda: [np.array(growth(m, row) if row in FLAT else [peak(m, row)])])

    return case


def peaks(rows: Iterable[str], title: str, options: argparse.Namespace, threads: int) -> Table:
    """Return the peaks of steps, in bytes."""
    made = []
    for row in (row for row in rows if options.only in row):
        samples: dict[str, list[float]] = {name: [] for name in SUBJECTS if name not in options.without}
        for name, taken in [(name, taken) for _ in range(options.rounds) for name, taken in samples.items()]:
            found = measure_in_process(name, row, threads)
            taken += [found[0] * KIB] if found else []
        made.append(Row(row, samples, {"PyTorch": RATIO_BUDGET}))
    return Table(title, "MiB", made, threads=threads)


def growth_table(options: argparse.Namespace) -> Table:
    """Return the growth over many steps, and whether it is zero."""
    rows, notes, fine = [], [], True
    for row in (row for row in FLAT if options.only in row):
        kib, objects = measure_in_process("retrograd", row, 1)
        rows.append(Row(row, {"retrograd": [kib * KIB]}, {"": NOISE_KIB}))
        notes.append(f"{row}: {objects:.0f} additional live objects")
        fine = fine and objects <= 0
    title = f"Growth in {STEPS_OF_BLOCK:,} steps without the cycle collector, minimum of {BLOCKS} runs"
    return Table(title, "KiB", rows, threads=1, notes=notes, fine=fine)


def report(options: argparse.Namespace) -> list[Table]:
    """Return the peaks of the steps of steps.py and of a deep network, and growth."""
    steps = peaks(
        [row for row in STEPS if "chain" not in row],
        "Peak memory of a step, above the resident memory before it",
        options,
        2,
    )
    deep = peaks(PEAKS, f"Peak memory of a step of {LAYERS} layers", options, 1)
    return [steps, deep, growth_table(options)]


if __name__ == "__main__":
    sys.exit(main(parser(__doc__, 3), report, cases))
