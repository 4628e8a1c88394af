"""Compare a step under `schedule="auto"` with steps under the named schedules, over threads and over MPI.

    python benchmarks/auto_schedule.py [--rounds 9] [--json FILE] [--check]

A transformer of 12 encoder layers, 64 wide, as four stages on two ranks and on four, 8 microbatches, one BLAS thread a
rank.  All schedules take turns in every round.  Named ones that are the same for the stages and ranks are timed once.
"""

import argparse
import itertools
import sys
from typing import Any

from ranks import main_of_ranks, run_script

from retrograd.bench import Row, Table

LAYERS, WIDTH, HEADS, LENGTH, EXAMPLES = 12, 64, 4, 64, 32
STAGES, MICRO_BATCHES = 4, 8
TRANSPORTS, RANKS = ("threads", "mpi"), (2, 4)
SLOWER = 1.03  # the budget of auto, relative to the named schedule whose steps are shortest


def measure(worker: str, rounds: int) -> dict[str, list[float]]:
    """Return by schedule the seconds of a step over a transport and a number of ranks, for each round."""
    import retrograd as rg
    from retrograd.pipelining import Pipeline, make_schedule
    from retrograd.pipelining.schedules import one_directional

    transport, ranks = worker.split()[0], int(worker.split()[1])
    nn = rg.nn
    layers = [
        nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.0, "gelu", batch_first=True, norm_first=True)
        for _ in range(LAYERS)
    ]
    model = nn.Sequential(*layers)
    x, y = (rg.randn(EXAMPLES, LENGTH, WIDTH) for _ in range(2))
    names = [kind.name for kind in one_directional()]
    different = {str(make_schedule(name, STAGES, MICRO_BATCHES, ranks=ranks)): name for name in names}
    options: dict[str, Any] = {"ranks": ranks, "micro_batches": MICRO_BATCHES, "transport": transport}
    pipelines = {
        name: Pipeline(model, STAGES, schedule=name, loss_fn=nn.functional.mse_loss, **options)
        for name in ["auto", *different.values()]
    }
    found: dict[str, list[float]] = {name: [] for name in pipelines}
    for number in range(rounds + 2):
        for name, pipeline in pipelines.items():
            model.zero_grad()
            pipeline.step(x, target=y)
            assert pipeline.timeline is not None, "each step records one"
            if number > 1:  # the first ones capture, search, and fetch memory
                found[name].append(pipeline.timeline.span)
    return found


def report(options: argparse.Namespace) -> list[Table]:
    """Return a table of the steps under auto and under each named schedule, the shortest first."""
    tables = []
    for ranks, transport in itertools.product(RANKS, TRANSPORTS):
        found = run_script(__file__, f"{transport} {ranks}", options.rounds, ranks)
        auto = found.pop("auto")
        named = sorted(found, key=lambda name: sum(found[name]))
        rows = [Row(name, {"auto": auto, "named": found[name]}, {"named": SLOWER}) for name in named]
        tables.append(Table(f"Step on {ranks} ranks over {transport}, auto and named", "ms", rows, ours="auto"))
    return tables


if __name__ == "__main__":
    sys.exit(main_of_ranks(__doc__, 9, lambda given: measure(given.worker, given.rounds), report))
