"""What autograd's tools cost: gradcheck, Function, anomaly mode and the profiler, in retrograd and PyTorch.

    python benchmarks/autodiff.py [--rounds 15] [--threads 2] [--json FILE] [--check]

Subjects take turns in one run, each with as many threads; figures are medians.
"""

import argparse
import gc
import sys
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple

from common import ONE_THREAD, cells, interleaved, judged, main, parser, present, seconds, table, verdict

N = 100  # inputs and outputs of the function that is checked
CALLS = 200  # of Function.apply per sample
STEPS = 5  # of training per sample
CHAIN = 1000
QUIET = {"KINETO_LOG_LEVEL": "99"}  # or PyTorch's profiler writes a line each time

# What is measured, how often per sample, and the share of PyTorch's time that it may take.
PLAIN = {
    "gradcheck, tanh(W sin x), 100 to 100": ("gradcheck", 1, 0.5),
    "gradcheck, tanh(x) sin(x), 100 to 100": ("pointwise gradcheck", 1, 0.5),
    "gradcheck, fast mode, 100 to 100": ("fast gradcheck", 1, None),
    "gradgradcheck, tanh(x) sin(x), 100 to 100": ("gradgradcheck", 1, None),
    "y = Function.apply(x); y.backward(g)": ("function", CALLS, 0.5),
    "y = x * x; y.backward(g)": ("operator", CALLS, None),
    "Function.apply(x).sum().backward()": ("function and sum", CALLS, None),
    "(x * x).sum().backward()": ("operators", CALLS, None),
}


class Switched(NamedTuple):
    """Something that is measured with a tool off and on."""

    what: str
    tool: str
    operations: int  # per sample
    ratio: float | None = None  # the budget of on / off
    extra: float | None = None  # the budget of what is added, in microseconds per operation


SWITCHED = {
    "anomaly mode: MLP step, 3 x 256, batch 64": Switched("step", "anomaly", STEPS, ratio=1.3),
    "anomaly mode: chain of 4 numbers, forward + backward": Switched("chain", "anomaly", 2 * CHAIN),
    "profiler: chain of 4 numbers, forward": Switched("forward chain", "profiler", CHAIN, extra=3.0),
    "profiler: chain of 4 numbers, forward + backward": Switched("chain", "profiler", 2 * CHAIN, extra=3.0),
}
AFTER = "chain, forward + backward, profiler off"  # in a process that profiled before, and in one that never did

# -------------------------------------------------------------------------------------------------- subjects


class Library(NamedTuple):
    """What the rows use of a library."""

    m: Any
    gradcheck: Callable
    gradgradcheck: Callable
    tools: dict[str, Callable[[], AbstractContextManager]]


def retrograd() -> Library:
    """Ours."""
    import retrograd as rg
    from retrograd.autograd import anomaly_mode, gradcheck, gradgradcheck, profiler

    tools = {"anomaly": anomaly_mode.detect_anomaly, "profiler": profiler.profile}
    return Library(rg, gradcheck, gradgradcheck, tools)


def torch() -> Library:
    """PyTorch; the environment says how many threads it has."""
    import torch as pytorch

    tools = {"anomaly": pytorch.autograd.detect_anomaly, "profiler": pytorch.autograd.profiler.profile}
    return Library(pytorch, pytorch.autograd.gradcheck, pytorch.autograd.gradgradcheck, tools)


SUBJECTS: dict[str, Callable[[], Library]] = {"retrograd": retrograd, "PyTorch": torch, "unprofiled": retrograd}


def checks(library: Library) -> dict[str, Callable[[], object]]:
    """The functions to be timed: gradient checks."""
    m = library.m
    m.manual_seed(0)
    w = m.randn(N, N, dtype=m.float64) / 10
    x = m.randn(N, dtype=m.float64).requires_grad_()

    def dense(x: Any) -> Any:
        return m.tanh(w @ m.sin(x))

    def pointwise(x: Any) -> Any:
        return m.tanh(x) * m.sin(x)

    return {
        "gradcheck": partial(library.gradcheck, dense, (x,)),
        "pointwise gradcheck": partial(library.gradcheck, pointwise, (x,)),
        "fast gradcheck": partial(library.gradcheck, dense, (x,), fast_mode=True),
        "gradgradcheck": partial(library.gradgradcheck, pointwise, (x,)),
    }


def function(m: Any) -> Callable:
    """A user's function."""

    class Square(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    return Square.apply


def repeated(m: Any, square: Callable) -> Callable[[], None]:
    """Many times a function, forward and backward."""
    x, g = m.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True), m.ones(4)

    def run() -> None:
        for _ in range(CALLS):
            square(x).backward(g)

    return run


def summed(m: Any, square: Callable) -> Callable[[], None]:
    """The same with a sum behind it, whose own cost counts too."""
    x = m.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)

    def run() -> None:
        for _ in range(CALLS):
            square(x).sum().backward()

    return run


def step(m: Any) -> Callable[[], None]:
    """Training steps of a network with three layers."""
    nn = m.nn
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256))
    optimizer = m.optim.SGD(model.parameters(), lr=1e-3)
    x, y = m.randn(64, 256), m.randn(64, 256)

    def run() -> None:
        for _ in range(STEPS):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()

    return run


def forward_chain(m: Any) -> Any:
    """Multiplications of four numbers, each of the result of the one before."""
    w = m.tensor([1.0, 1.00001, 0.99999, 1.0], requires_grad=True)
    y = m.tensor([1.0, 1.00001, 0.99999, 1.0])
    for _ in range(CHAIN):
        w = w * y
    return w


def work(library: Library) -> dict[str, Callable[[], object]]:
    """Everything to be timed."""
    m = library.m
    return {
        **checks(library),
        "function": repeated(m, function(m)),
        "operator": repeated(m, lambda x: x * x),
        "function and sum": summed(m, function(m)),
        "operators": summed(m, lambda x: x * x),
        "step": step(m),
        "forward chain": partial(forward_chain, m),
        "chain": lambda: forward_chain(m).sum().backward(),
    }


def worker(name: str) -> Callable[[str], float | None]:
    """The function from a row's name, with ' on' or ' off' after those that are switched, to seconds per operation."""
    warnings.simplefilter("ignore")  # PyTorch's anomaly mode warns that it is slow
    library = SUBJECTS[name]()
    jobs = work(library)

    def sample(row: str) -> float | None:
        gc.collect()
        if row == AFTER:
            return seconds(jobs["chain"]) / (2 * CHAIN) if name != "PyTorch" else None
        if name == "unprofiled":
            return None
        if row in PLAIN:
            what, operations, _ = PLAIN[row]
            return seconds(jobs[what]) / operations
        title, _, state = row.rpartition(" ")
        switched = SWITCHED[title]
        with library.tools[switched.tool]() if state == "on" else nullcontext():
            jobs[switched.what]()  # threads awake, memory warm
            return seconds(jobs[switched.what]) / switched.operations

    return sample


# ------------------------------------------------------------------------------------------------- measuring


def plain_table(medians: dict, names: list[str]) -> tuple[str, bool]:
    """Microseconds, our share of PyTorch's, and whether the budgets are met."""
    lines, fine = [], True
    for title, (_, _, budget) in PLAIN.items():
        found = medians[title]
        us = [found[name] * 1e6 if name in found else None for name in names]
        share, ok = judged(found, budget)
        fine = fine and ok
        lines.append([title, *cells(us, "{:.1f}"), *share])
    return table(["us", *names, "ratio", "budget", ""], lines), fine


def switched_table(medians: dict, names: list[str]) -> tuple[str, bool]:
    """Microseconds per operation off and on, their ratio and their difference; the budgets are ours."""
    lines, fine = [], True
    for title, row in SWITCHED.items():
        for name in names:
            off, on = (medians[f"{title} {state}"].get(name) for state in ("off", "on"))
            if off is None or on is None:
                continue
            ratio, extra = on / off, (on - off) * 1e6
            ok = (row.ratio is None or ratio <= row.ratio) and (row.extra is None or extra <= row.extra)
            budget = f"on/off {row.ratio}" if row.ratio else f"+{row.extra} us" if row.extra else ""
            ours = name == "retrograd" and budget != ""
            fine = fine and (ok or not ours)
            figures = [*cells([off * 1e6, on * 1e6], "{:.1f}"), *cells([ratio, extra], "{:.2f}")]
            lines.append([f"{title}: {name}", *figures, *([budget, verdict(ok)] if ours else ["", ""])])
    return table(["us per step, operator or node", "off", "on", "on/off", "extra", "budget", ""], lines), fine


def report(options: argparse.Namespace) -> tuple[dict, bool]:
    """Run everything: the figures, and whether every budget is met."""
    environment = QUIET | dict.fromkeys(ONE_THREAD, str(options.threads))
    rows = [*PLAIN, *(f"{title} {state}" for title in SWITCHED for state in ("off", "on")), AFTER]
    with present(__file__, dict.fromkeys(SUBJECTS, environment)) as workers:
        medians = interleaved(workers, rows, options.rounds)
    names = [w.name for w in workers if w.name != "unprofiled"]
    plain, within = plain_table(medians, names)
    switched, light = switched_table(medians, names)
    print(f"{plain}\n\n{switched}\n")
    if {"retrograd", "unprofiled"} <= set(medians[AFTER]):
        after, never = (medians[AFTER][name] * 1e6 for name in ("retrograd", "unprofiled"))
        print(f"{AFTER}: {after:.3f} us per operator or node after profiling, {never:.3f} where it never was on")
    return {"seconds": medians}, within and light


if __name__ == "__main__":
    options = parser(__doc__, 15)
    options.add_argument("--threads", type=int, default=2)
    sys.exit(main(options, report, worker))
