"""What training needs in memory: the peak of a step against PyTorch's, and whether memory stays flat.

    python benchmarks/memory.py [--rounds 3] [--json FILE] [--check]

Every sample is a fresh process on one thread; figures are medians over the rounds.  Linux only: a process's peak is
what its kernel says (VmHWM), set back right before the step.
"""

import argparse
import ctypes
import gc
import statistics
import sys
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

from common import Worker, cells, judged, main, parser, table, verdict

LAYERS, WIDTH, BATCH = 50, 512, 256
RATIO_BUDGET = 1.0
WARM_UP, BLOCKS, STEPS = 1_000, 3, 10_000  # steps before, and blocks of so many steps each
NOISE_KIB = 16  # by which resident memory may move without growing: a few pages
MIB = 1024
MALLOC_TRIM = ctypes.CDLL(None).malloc_trim

# --------------------------------------------------------------------------------------------- one process's memory


def status(field: str) -> int:
    """A field of the kernel's account of this process, such as VmRSS, in KiB."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field + ":"))


def give_back_free_memory() -> None:
    """Give the kernel what the allocator keeps."""
    MALLOC_TRIM(0)


def peak_during(step: Callable[[], object]) -> int:
    """By how many KiB a step's peak lies above what was resident before it."""
    gc.collect()
    give_back_free_memory()  # it would hide part of the peak
    before = status("VmRSS")
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak starts again from here
    step()
    return status("VmHWM") - before


# -------------------------------------------------------------------------------------------------------- subjects


def retrograd_modules() -> tuple[ModuleType, ModuleType]:
    """The library and its layers."""
    import retrograd
    from retrograd import nn

    return retrograd, nn


def torch_modules() -> tuple[ModuleType, ModuleType]:
    """The library and its layers, on one thread."""
    import torch

    torch.set_num_threads(1)
    return torch, torch.nn


SUBJECTS = {"retrograd": retrograd_modules, "PyTorch": torch_modules}


def perceptron(library: ModuleType, nn: ModuleType, layers: int) -> tuple[Any, Any]:
    """A model and a function that runs one forward and backward pass of it."""
    model = nn.Sequential(*[part for _ in range(layers) for part in (nn.Linear(WIDTH, WIDTH), nn.ReLU())])
    x = library.ones(BATCH, WIDTH)
    return model, lambda: (model(x) ** 2).mean().backward()


def first_step(model: Any, step: Callable[[], None]) -> Callable[[], None]:
    """No parameter has a gradient yet."""
    return step


def accumulating(model: Any, step: Callable[[], None]) -> Callable[[], None]:
    """Every parameter has a gradient, to which the step adds."""
    step()
    return step


def after_zero_grad(model: Any, step: Callable[[], None]) -> Callable[[], None]:
    """The gradients of a step before were set to None."""
    step()
    model.zero_grad(set_to_none=True)
    return step


PEAKS = {
    "first step": first_step,
    "step that adds to .grad": accumulating,
    "step after zero_grad()": after_zero_grad,
}


def peak(library: ModuleType, nn: ModuleType, row: str) -> int:
    """The peak of one step in KiB."""
    _, warm_up = perceptron(library, nn, 1)
    warm_up()  # the matrix products' own buffers, made once, are not what is measured
    model, step = perceptron(library, nn, LAYERS)
    return peak_during(PEAKS[row](model, step))


# ---------------------------------------------------------------------------------------------------- flat memory


def small_net(rg: ModuleType) -> tuple[list[Any], Callable[[], Any]]:
    """Parameters, and a loss that uses each of them in several operators."""
    w, b = rg.randn(4, 4, requires_grad=True), rg.zeros(4, requires_grad=True)
    x = rg.ones(3, 4)
    return [w, b], lambda: (((x @ w + b).tanh() @ w).softmax(-1) ** 2).sum()


def plain_step(rg: ModuleType) -> Callable[[], None]:
    """backward(), which adds to .grad."""
    _, loss = small_net(rg)
    return lambda: loss().backward()


def in_place_step(rg: ModuleType) -> Callable[[], None]:
    """backward(), and a step of gradient descent that writes to the parameters."""
    params, loss = small_net(rg)

    def step() -> None:
        loss().backward()
        with rg.no_grad():
            for p in params:
                p -= 0.01 * p.grad
                p.grad = None

    return step


def penalty_step(rg: ModuleType) -> Callable[[], None]:
    """grad(create_graph=True), then backward() through the gradients."""
    params, loss = small_net(rg)
    return lambda: sum((g * g).sum() for g in rg.autograd.grad(loss(), params, create_graph=True)).backward()


def stored_step(rg: ModuleType) -> Callable[[], None]:
    """backward(create_graph=True), whose .grad holds the graph until it is cleared."""
    params, loss = small_net(rg)
    warnings.filterwarnings("ignore", "Using backward.. with create_graph=True")  # the step clears .grad itself

    def step() -> None:
        loss().backward(create_graph=True)
        for p in params:
            p.grad = None

    return step


FLAT = {
    "backward()": plain_step,
    "backward() and an update in place": in_place_step,
    "grad(create_graph=True), its backward()": penalty_step,
    "backward(create_graph=True), .grad = None": stored_step,
}


def grown_during(steps: int, step: Callable[[], object]) -> int:
    """By how many KiB what is resident grows."""
    before = status("VmRSS")
    for _ in range(steps):
        step()
    return status("VmRSS") - before


def growth(rg: ModuleType, row: str) -> tuple[int, int]:
    """The least growth of a block of steps in KiB, and that of all in live objects, without the cycle collector.

    What leaks grows in every block. What grows in some is the allocator, which now and then takes a few pages more.
    """
    step = FLAT[row](rg)
    gc.disable()
    grown_during(WARM_UP, step)
    gc.collect()
    objects = len(gc.get_objects())
    give_back_free_memory()  # that of the list of all objects, in which a leak would grow unseen
    grown_during(WARM_UP, step)
    kib = min(grown_during(STEPS, step) for _ in range(BLOCKS))
    return kib, len(gc.get_objects()) - objects


# --------------------------------------------------------------------------------------------------------- report


def measured(subject: str, row: str) -> Any:
    """What a fresh process measures; None where the subject is missing."""
    process = Worker(__file__, subject, {})
    found = process.sample(row) if process.ready is True else None
    process.close()
    return found


def worker(subject: str) -> Callable[[str], Any]:
    """The function from a row's name to the peak of a step, or to how much memory grows."""
    library, nn = SUBJECTS[subject]()
    return lambda row: growth(library, row) if row in FLAT else peak(library, nn, row)


def peaks_table(rounds: int) -> tuple[str, dict, bool]:
    """The peaks in MiB, our share of PyTorch's, and whether the budget is met."""
    samples = {row: {s: [measured(s, row) for _ in range(rounds)] for s in SUBJECTS} for row in PEAKS}
    lines, found, fine = [], {}, True
    for row, by_subject in samples.items():
        medians = {s: statistics.median(got) / MIB for s, got in by_subject.items() if None not in got}
        found[row] = medians
        share, ok = judged(medians, RATIO_BUDGET)
        fine = fine and ok
        lines.append([row, *cells(map(medians.get, SUBJECTS), "{:.1f}"), *share])
    title = f"peak of a step, {LAYERS} layers, in MiB"
    return table([title, *SUBJECTS, "ratio", "budget", ""], lines), found, fine


def flat_table() -> tuple[str, dict, bool]:
    """The growth over many steps, and whether it is none."""
    found = {row: measured("retrograd", row) for row in FLAT}
    lines = [[row, f"{kib}", f"{objects}", "0"] for row, (kib, objects) in found.items()]
    fine = all(kib <= NOISE_KIB and objects <= 0 for kib, objects in found.values())
    title = f"growth in {BLOCKS} times {STEPS:,} steps, collector off"
    return table([title, "least KiB", "objects", "budget"], lines), found, fine


def report(options: argparse.Namespace) -> tuple[dict, bool]:
    """Measure and print: the figures, and whether every budget is met."""
    text, peaks, small = peaks_table(options.rounds)
    flat_text, grown, flat = flat_table()
    print(f"{text}\nat most PyTorch's: {verdict(small)}\n")
    print(f"{flat_text}\nno growth (of the blocks the least, up to {NOISE_KIB} KiB of noise): {verdict(flat)}")
    return {"peak MiB": peaks, "growth KiB, objects": grown}, small and flat


if __name__ == "__main__":
    options = parser(__doc__, 3, "the peaks in MiB and the growth in KiB and objects")
    sys.exit(main(options, report, worker))
