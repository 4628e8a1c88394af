"""Compare the step time predicted by `plan` with the measured one, over threads and over MPI.

    python benchmarks/planning.py [--rounds 5] [--json FILE] [--check]

Two ranks on two cores, 8 microbatches, one BLAS thread per rank: chains of linear layers and small transformers, whose
steps take some tens of milliseconds.  In every round, a model is planned and then run for ten steps, of which the
median is used.  The speed of a machine changes from one second to the next, so the plan and the steps are measured
right after each other.
"""

import argparse
import sys
from collections.abc import Callable
from statistics import median
from typing import Any

from ranks import RANKS, main_of_ranks, run_script

from retrograd.bench import Row, Table

MICRO_BATCHES, STEPS = 8, 10
SCHEDULES = ("1f1b", "gpipe", "zb-h1", "interleaved1f1b")
TRANSPORTS = ("threads", "mpi")
OFF = 0.15  # the budget: how far the plan may be off, either way
LENGTH, CLASSES, HEADS = 64, 64, 4


def chain(width: int, examples: int = 1024) -> tuple[Any, tuple, Any, Callable]:
    """Return eight linear layers: a model, its arguments, a target and the loss."""
    import retrograd as rg

    nn = rg.nn
    layers = [nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(8)]
    model = nn.Sequential(*layers, nn.Linear(width, 10))
    return model, (rg.randn(examples, width),), rg.randint(10, (examples,)), nn.functional.cross_entropy


def transformer(width: int, examples: int = 32) -> tuple[Any, tuple, Any, Callable]:
    """Return four encoder layers between an embedding and a classifier of every token."""
    import retrograd as rg

    nn = rg.nn
    layers = [
        nn.TransformerEncoderLayer(width, HEADS, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
        for _ in range(4)
    ]
    model = nn.Sequential(nn.Embedding(CLASSES, width), *layers, nn.Linear(width, CLASSES))

    def loss(made: Any, wanted: Any) -> Any:
        return nn.functional.cross_entropy(made.reshape(-1, CLASSES), wanted.reshape(-1))

    tokens, wanted = (rg.randint(CLASSES, (examples, LENGTH)) for _ in range(2))
    return model, (tokens,), wanted, loss


MODELS: dict[str, Callable[[], tuple[Any, tuple, Any, Callable]]] = {
    "chain, 256 wide": lambda: chain(256),
    "chain, 512 wide": lambda: chain(512),
    "transformer, 64 wide": lambda: transformer(64),
    "transformer, 128 wide": lambda: transformer(128),
}


def measure(transport: str, rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Return by row, for each round, the seconds of a step as planned and as measured."""
    found: dict[str, list[tuple[float, float]]] = {}
    for name, make in MODELS.items():
        example = make()
        for schedule in SCHEDULES:
            found[f"{name}, {schedule}"] = [step(transport, schedule, *example) for _ in range(rounds)]
    return found


def step(transport: str, schedule: str, model: Any, args: tuple, target: Any, loss_fn: Callable) -> tuple[float, float]:
    """Return the seconds of a step, as planned and as measured."""
    from retrograd.pipelining import Pipeline, plan

    told = {"loss_fn": loss_fn, "transport": transport}
    planned = plan(model, args, RANKS, MICRO_BATCHES, target=target, schedules=[schedule], **told)
    pipe = Pipeline(model, **planned.options, **told)
    spans = []
    for _ in range(STEPS + 1):
        pipe.step(*args, target=target)
        spans.append(pipe.timeline.span)
    return planned.timeline.span, median(spans[1:])  # the first one captures, and fetches memory


def report(options: argparse.Namespace) -> list[Table]:
    """Return a table of planned and measured times, and their ratio."""
    steps, errors = [], []
    for transport in TRANSPORTS:
        for name, rounds in run_script(__file__, transport, options.rounds).items():
            planned, taken = zip(*rounds, strict=True)
            row = Row(f"{transport}: {name}", {"planned": planned, "measured": taken})
            ratio = row.ratio("planned", "measured")
            steps.append(row)
            errors.append(Row(row.name, {"error": [abs(ratio.median - 1)] if ratio else []}, {"": OFF}))
    return [
        Table(f"Step on {RANKS} ranks, planned and measured", "ms", steps, ours="planned"),
        Table("Relative error of the plan", "", errors, ours="error"),
    ]


if __name__ == "__main__":
    sys.exit(main_of_ranks(__doc__, 5, lambda given: measure(given.worker, given.rounds), report))
