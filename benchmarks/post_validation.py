"""Compare training steps whose checks follow the optimizer's step with steps that wait for the checks.

    python benchmarks/post_validation.py [--rounds 5] [--json FILE] [--check]

The first table is simulated, with the times of the zero-bubble paper: the bubble rate of a step among many, without a
barrier between the steps and with one.  The second table is measured: a step of `Pipeline.train_steps`, and of a loop
of `step`, a check of the gradients' norm over all ranks, and a step of the optimizer, on two ranks.
"""

import argparse
import sys
import time
from typing import Any

from ranks import RANKS, main_of_ranks, run_script
from searched_schedules import MODELS

from retrograd.bench import Row, Table
from retrograd.pipelining.planning.simulate import consecutive_steps, simulate_costs
from retrograd.pipelining.schedules import make_schedule
from retrograd.pipelining.schedules.lowering import chain

TRANSPORTS, SCHEDULES = ("threads", "mpi"), ("1f1b", "zb-h1", "zb-h2")
WAYS = ("after", "before", "loop")  # of `validate`, or steps one by one
MICRO_BATCHES, STEPS, WIDTH, EXAMPLES = 4, 10, 256, 512


def simulated() -> list[Row]:
    """Return the bubble rates of the paper's models."""
    rows = []
    for model in MODELS:
        forward, inputs, weights, message = model.milliseconds
        of_kind = {"F": forward, "I": inputs, "W": weights, "B": inputs + weights, "SEND_F": message, "SEND_B": message}
        work = model.micro_batches * (forward + inputs + weights)
        for name in SCHEDULES:
            schedule = make_schedule(name, model.ranks, model.micro_batches)
            one, two = (
                simulate_costs(
                    consecutive_steps(schedule, count), chain(model.ranks), lambda a, known=of_kind: known[a.kind.value]
                ).span
                for count in (1, 2)
            )
            title = f"{model.name}, p = {model.ranks}, m = {model.micro_batches}, {name}"
            rows.append(Row(title, {"no barrier": [1 - work / (two - one)], "barrier": [1 - work / one]}))
    return rows


def measure(transport: str, rounds: int) -> dict[str, list[list[float]]]:
    """Return by schedule the seconds of a step, for each round: checked afterwards, checked before, and in a loop."""
    import retrograd as rg
    from retrograd import nn
    from retrograd.pipelining import Pipeline

    found: dict[str, list[list[float]]] = {}
    for name in SCHEDULES:
        layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(8)]
        model = nn.Sequential(*layers, nn.Linear(WIDTH, 10))
        optimizer = rg.optim.AdamW(model.parameters(), lr=1e-3)
        options = {"schedule": name, "micro_batches": MICRO_BATCHES, "transport": transport, "ranks": RANKS}
        pipeline = Pipeline(model, RANKS, loss_fn=nn.functional.cross_entropy, **options)  # type: ignore[arg-type]
        batch = rg.randn(EXAMPLES, WIDTH), rg.randint(10, (EXAMPLES,))
        samples: list[list[float]] = [[] for _ in WAYS]
        for number in range(rounds + 1):
            for way, times in zip(WAYS, samples, strict=True):
                start = time.perf_counter()
                train(way, pipeline, optimizer, batch)
                if number:  # the first one captures
                    times.append((time.perf_counter() - start) / STEPS)
        found[name] = samples
    return found


def train(way: str, pipeline: Any, optimizer: Any, batch: tuple[Any, Any]) -> None:
    """Take some steps."""
    if way != "loop":
        pipeline.train_steps([batch] * STEPS, optimizer, max_norm=1e3, validate=way)
        return
    for _ in range(STEPS):
        single_step(pipeline, optimizer, batch)


def single_step(pipeline: Any, optimizer: Any, batch: tuple[Any, Any]) -> None:
    """Take a step, with a check of the gradients' norm over all ranks."""
    optimizer.zero_grad()
    pipeline.step(batch[0], target=batch[1])
    homes, named = pipeline.homes(), dict(pipeline.model.named_parameters())

    def squares(rank: int) -> float:
        own = [p.grad for name, p in named.items() if homes[name] == rank and p.grad is not None]
        return sum(float((gradient**2).sum()) for gradient in own)

    if sum(pipeline.on_ranks(squares)) < 1e6:
        optimizer.step()


def report(options: argparse.Namespace) -> list[Table]:
    """Return a table of simulated bubble rates, and one of measured steps."""
    rows = []
    for transport in TRANSPORTS:
        for name, (after, before, loop) in run_script(__file__, transport, options.rounds).items():
            rows.append(
                Row(f"{transport}: {name}", {"checks follow": after, "checks first": before, "loop of step()": loop})
            )
    return [
        Table("Bubble rates, simulated", "", simulated(), ours="no barrier"),
        Table(f"A training step on {RANKS} ranks", "ms", rows, ours="checks follow"),
    ]


if __name__ == "__main__":
    sys.exit(main_of_ranks(__doc__, 5, lambda given: measure(given.worker, given.rounds), report))
