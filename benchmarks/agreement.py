"""Measure what the comparison of the ranks costs: the fingerprint of a training step over two MPI processes.

    python benchmarks/agreement.py [--rounds 41] [--json FILE] [--check]

Each sample is the time that the processor spends on one step of rank 0, with the functions of the fingerprint and
without them: descriptions and checksums of the arguments, the generator's state, the packet to the next rank, and the
comparison.  Both numbers come from the same step, so other programs on the machine disturb them little.
"""

import argparse
import functools
import sys
import time
from collections.abc import Callable
from typing import Any

from ranks import main_of_ranks, run_script

from retrograd.bench import Row, Table

WARM_UP = 3  # steps: the first one captures the model
WITHOUT = "without fingerprint"
BUDGET = 1.01


class Stopwatch:
    """Adds up the seconds of the processor in some functions, those inside of one another once."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._running = False

    def attach(self, owner: type, name: str) -> None:
        """Measure a method of a class."""
        method = getattr(owner, name)

        @functools.wraps(method)
        def measured(*args: Any, **kwargs: Any) -> Any:
            if self._running:
                return method(*args, **kwargs)
            self._running, start = True, time.thread_time()
            try:
                return method(*args, **kwargs)
            finally:
                self.seconds += time.thread_time() - start
                self._running = False

        setattr(owner, name, measured)


def demo_step() -> Callable[[], Any]:
    """Return a step of `retrograd demo`."""
    import retrograd as rg
    from retrograd.cli.demo.model import DigitReader, split_spec
    from retrograd.pipelining import Pipeline

    x, y = rg.rand(360, 8, 8), rg.randint(10, (360,))
    loss = rg.nn.functional.cross_entropy
    pipeline = Pipeline(DigitReader(), 2, micro_batches=4, loss_fn=loss, split_spec=split_spec(2))
    return lambda: pipeline.step(x, target=y)


def mlp_step(width: int, batch: int) -> Callable[[], Any]:
    """Return a step of four linear layers, with dropout."""
    import retrograd as rg
    from retrograd import nn
    from retrograd.pipelining import Pipeline

    layers = [part for _ in range(4) for part in (nn.Linear(width, width), nn.GELU(), nn.Dropout(0.1))]
    x, y = rg.randn(batch, width), rg.randn(batch, width)
    pipeline = Pipeline(nn.Sequential(*layers), 2, micro_batches=4, loss_fn=nn.functional.mse_loss)
    return lambda: pipeline.step(x, target=y)


STEPS: dict[str, tuple[Callable[[], Callable[[], Any]], float | None]] = {
    "demo, batch of 360": (demo_step, BUDGET),
    "4 layers of 1024, batch of 256": (functools.partial(mlp_step, 1024, 256), BUDGET),
    "4 layers of 64, batch of 32": (functools.partial(mlp_step, 64, 32), None),
}


def measure(rounds: int) -> list[list[tuple[float, float]]]:
    """Return the seconds of each step with and without its fingerprint."""
    import retrograd as rg
    from retrograd.pipelining.runtime.agreement import Agreement
    from retrograd.pipelining.transports.rank_messaging import Peers

    stopwatch = Stopwatch()
    for owner, name in (
        (Agreement, "begin"),
        (Agreement, "of_run"),
        (Peers, "begin"),
        (Peers, "_handle_hello"),
        (Peers, "announce"),
    ):
        stopwatch.attach(owner, name)
    found = []
    for make_step, _ in STEPS.values():
        rg.manual_seed(0)
        step, samples = make_step(), []
        for _ in range(WARM_UP + rounds):
            start, stopwatch.seconds = time.thread_time(), 0.0
            step()
            total = time.thread_time() - start
            samples.append((total, total - stopwatch.seconds))
        found.append(samples[WARM_UP:])
    return found


def report(options: argparse.Namespace) -> list[Table]:
    """Start the two processes, which measure."""
    found = run_script(__file__, "mpi", options.rounds)
    rows = [
        Row(
            name,
            {"retrograd": [total for total, _ in samples], WITHOUT: [rest for _, rest in samples]},
            {WITHOUT: budget} if budget else {},
        )
        for (name, (_, budget)), samples in zip(STEPS.items(), found, strict=True)
    ]
    return [Table("Fingerprint of a step", "ms", rows, threads=1)]


if __name__ == "__main__":
    sys.exit(main_of_ranks(__doc__, 41, lambda given: measure(given.rounds), report))
