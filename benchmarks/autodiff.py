"""Time autograd's tools: gradcheck, Function, anomaly mode and the profiler, in retrograd and PyTorch.

    python benchmarks/autodiff.py [--rounds 9] [--json FILE] [--check]

Two threads.  Anomaly mode and the profiler are measured with the tool off and on.  The second table contains the ratio
of the two, and the notes what the tool adds per operator or node.
"""

import argparse
import importlib
import statistics
import sys
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple

from retrograd.bench import Case, Row, Subject, Suite, Table, library, main, parser, run_suite

N = 100  # inputs and outputs of the function that is checked
CALLS = 200  # of Function.apply per sample
STEPS = 5  # of training per sample
THREADS = 2
CHAIN = 1000
QUIET = {"KINETO_LOG_LEVEL": "99"}  # or PyTorch's profiler writes a line each time

# Measured work, repetitions per sample, and the budget as a share of PyTorch's time.
PLAIN = {
    "gradcheck, tanh(W sin x), 100 to 100": ("gradcheck", 1, 0.5),
    "gradcheck, tanh(x) sin(x), 100 to 100": ("pointwise gradcheck", 1, 0.5),
    "gradcheck, fast mode, 100 to 100": ("fast gradcheck", 1, None),
    "gradgradcheck, tanh(x) sin(x), 100 to 100": ("gradgradcheck", 1, None),
    "y = Function.apply(x); y.backward(g)": ("function", CALLS, 0.5),
    "y = x * x; y.backward(g)": ("operator", CALLS, None),
    "Function.apply(x).sum().backward()": ("function and sum", CALLS, 0.5),
    "(x * x).sum().backward()": ("operators", CALLS, None),
}


class ToolCase(NamedTuple):
    """Something that is measured with a tool switched off and on."""

    what: str
    tool: str
    operations: int  # per sample
    ratio: float | None = None  # the budget of on / off
    extra: float | None = None  # the budget of the overhead, in microseconds per operation


SWITCHED = {
    "anomaly mode: MLP step, 3 x 256, batch 64": ToolCase("step", "anomaly", STEPS, ratio=1.3),
    "anomaly mode: chain on 4 elements, forward + backward": ToolCase("chain", "anomaly", 2 * CHAIN),
    "profiler: chain on 4 elements, forward": ToolCase("forward chain", "profiler", CHAIN, extra=3.0),
    "profiler: chain on 4 elements, forward + backward": ToolCase("chain", "profiler", 2 * CHAIN, extra=3.0),
}
AFTER = "chain, forward + backward, profiler off"  # in a process that profiled before, and in one that never did

# -------------------------------------------------------------------------------------------------- subjects


class Library(NamedTuple):
    """The functions of a library that the rows use."""

    m: Any
    gradcheck: Callable
    gradgradcheck: Callable
    tools: dict[str, Callable[[], AbstractContextManager]]


def tools_of(m: Any) -> Library:
    """Return the tools of retrograd or PyTorch."""
    autograd = m.autograd
    detect = getattr(autograd, "anomaly_mode", autograd).detect_anomaly
    tools = {"anomaly": detect, "profiler": importlib.import_module(f"{m.__name__}.autograd.profiler").profile}
    return Library(m, autograd.gradcheck, autograd.gradgradcheck, tools)


SUBJECTS = {
    "retrograd": Subject("retrograd"),
    "PyTorch": Subject("torch", QUIET),
    "unprofiled": Subject("retrograd"),
}


def checks(library: Library) -> dict[str, Callable[[], object]]:
    """Return the functions to be timed: gradient checks."""
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
    """Return a user-defined function."""

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


def repeated_function(m: Any, square: Callable) -> Callable[[], None]:
    """Return many forward and backward passes of a function."""
    x, g = m.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True), m.ones(4)

    def run() -> None:
        for _ in range(CALLS):
            square(x).backward(g)

    return run


def summed_function(m: Any, square: Callable) -> Callable[[], None]:
    """Return many passes of a function followed by a sum, whose own cost is included."""
    x = m.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)

    def run() -> None:
        for _ in range(CALLS):
            square(x).sum().backward()

    return run


def step(m: Any) -> Callable[[], None]:
    """Return training steps of a network with three layers."""
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
    """Return a chain of multiplications of four numbers."""
    w = m.tensor([1.0, 1.00001, 0.99999, 1.0], requires_grad=True)
    y = m.tensor([1.0, 1.00001, 0.99999, 1.0])
    for _ in range(CHAIN):
        w = w * y
    return w


def work(library: Library) -> dict[str, Callable[[], object]]:
    """Return all work to be timed."""
    m = library.m
    return {
        **checks(library),
        "function": repeated_function(m, function(m)),
        "operator": repeated_function(m, lambda x: x * x),
        "function and sum": summed_function(m, function(m)),
        "operators": summed_function(m, lambda x: x * x),
        "step": step(m),
        "forward chain": partial(forward_chain, m),
        "chain": lambda: forward_chain(m).sum().backward(),
    }


def cases(name: str, threads: int) -> Callable[[str], Case | None]:
    """Return a function from row, with " on" or " off" after switched ones, to case."""
    warnings.simplefilter("ignore")  # PyTorch's anomaly mode warns that it is slow
    subject = tools_of(library("retrograd" if name == "unprofiled" else name, threads))
    jobs = work(subject)

    def case(row: str) -> Case | None:
        if row == AFTER:
            return Case(jobs["chain"], operations=2 * CHAIN, once=True) if name != "PyTorch" else None
        if name == "unprofiled":
            return None
        if row in PLAIN:
            what, operations, _ = PLAIN[row]
            return Case(jobs[what], operations=operations, once=True)
        title, _, state = row.rpartition(" ")
        switched = SWITCHED[title]
        tool = subject.tools[switched.tool] if state == "on" else nullcontext
        return Case(jobs[switched.what], operations=switched.operations, once=True, around=tool)

    return case


# ------------------------------------------------------------------------------------------------- measuring


def compare_on_and_off(made: Table) -> Table:
    """Return each tool's rows on and off, by library; notes give the tool's overhead."""
    found = {row.name: row.samples for row in made.rows}
    rows, notes, fine = [], [], True
    for title, row in SWITCHED.items():
        for name in ("retrograd", "PyTorch"):
            off, on = (found.get(f"{title} {state}", {}).get(name) for state in ("off", "on"))
            if not off or not on:
                continue
            budgets = {"off": row.ratio} if row.ratio and name == "retrograd" else {}
            rows.append(Row(f"{title}: {name}", {"on": on, "off": off}, budgets))
            extra = statistics.median(a - b for a, b in zip(on, off, strict=True)) * 1e6
            least = f", limit {row.extra:g}" if row.extra and name == "retrograd" else ""
            notes.append(f"{title}: {name} adds {extra:.2f} us{least}")
            fine = fine and not (least and row.extra and extra > row.extra)
    return Table("Tools on and off, time per step, operator or node", "us", rows, "on", made.threads, "", notes, fine)


def report(options: argparse.Namespace) -> list[Table]:
    """Return both tables, and the cost of a profiler that is off again."""
    rows = {title: {"PyTorch": budget} if budget else {} for title, (_, _, budget) in PLAIN.items()}
    plain = run_suite(Suite("Autograd's tools", __file__, rows, SUBJECTS, cases, "us", THREADS), options)
    both = {f"{title} {state}": {} for title in SWITCHED for state in ("off", "on")}
    switched = run_suite(Suite("Tools", __file__, {**both, AFTER: {}}, SUBJECTS, cases, "us", THREADS), options)
    after = [row for row in switched.rows if row.name == AFTER]
    return [
        plain,
        compare_on_and_off(switched),
        Table("Profiler off, with and without earlier profiling", "us", after, threads=THREADS),
    ]


if __name__ == "__main__":
    sys.exit(main(parser(__doc__, 9), report, cases))
