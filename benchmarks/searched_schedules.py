"""Compare schedules that `search_schedule` finds with the named ones, and with those of the zero-bubble paper.

    python benchmarks/searched_schedules.py [--sets 200] [--seconds 10] [--json FILE] [--check]

Nothing is timed: the figures are simulated, and do not depend on the machine.
"""

import argparse
import math
import random
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

from retrograd.bench import Row, Table, main, parser
from retrograd.pipelining.planning.schedule_search import FoundSchedule, search_schedule
from retrograd.pipelining.schedules.actions import Action, Kind


class Model(NamedTuple):
    """A transformer of the paper: its name, ranks, microbatches, milliseconds of F, I, W and a message, and sizes.

    published: the bubble rate with twice 1F1B's memory, of ZB-H2 and of the paper's own scheduler.
    """

    name: str
    ranks: int
    micro_batches: int
    milliseconds: tuple[float, float, float, float]
    heads: int
    hidden: int
    published: tuple[float, float]

    @property
    def weight_share(self) -> float:
        """Return the share of the activations that I leaves for W (table 1 of the paper; sequences of 1,024)."""
        return 32 / (34 + 5 * self.heads * 1024 / self.hidden)


# Qi, Wan, Huang, Lin, "Zero Bubble Pipeline Parallelism" (2024), tables 3, 5 and 9.
MODELS = [
    Model("1.5B", 8, 32, (18.522, 18.086, 9.337, 0.601), 24, 2304, (0.0837, 0.0039)),
    Model("6.2B", 8, 64, (29.718, 29.444, 19.927, 0.527), 32, 4096, (0.0294, 0.0010)),
    Model("28.3B", 32, 256, (10.419, 10.207, 7.715, 0.408), 48, 6144, (0.0257, 0.0018)),
]


def published(seconds: float) -> Iterator[Row]:
    """Yield the bubble rates of the paper's models."""
    for model in MODELS:
        ranks, micro_batches, (forward, inputs, weights, message) = model.ranks, model.micro_batches, model.milliseconds
        of_kind = {"F": forward, "I": inputs, "W": weights, "B": inputs + weights}
        found = search_schedule(
            ranks,
            micro_batches,
            lambda action, of_kind=of_kind, message=message: of_kind.get(action.kind.value, message),
            kept=dict.fromkeys(range(ranks), model.weight_share),
            memory_limit=2 * ranks,
            objective="slowest",
            seconds=seconds * ranks / 8,
        )
        rate = 1 - micro_batches * (forward + inputs + weights) / found.slowest
        zb_h2, own = model.published
        yield Row(
            f"{model.name}, p = {ranks}, m = {micro_batches}",
            {"retrograd": [rate], "paper's scheduler": [own], "ZB-H2": [zb_h2]},
        )


def random_case(draw: random.Random) -> tuple[int, int, int, Callable[[Action], float], float]:
    """Return stages, ranks, microbatches, a cost function, and a memory limit."""
    ranks, per_rank = draw.choice([(2, 1), (4, 1), (8, 1), (4, 2), (4, 2), (2, 3)])
    stages, micro_batches = ranks * per_rank, draw.choice([4, 8, 12, 16])
    uneven, message = draw.choice([0.0, 0.2, 0.5]), draw.choice([0.0, 0.05, 0.2, 0.5])
    of_kind = {"F": 1.0, "I": draw.uniform(0.8, 1.3), "W": draw.uniform(0.4, 1.0)}
    seconds = {
        (kind, stage): mean * draw.uniform(1 - uneven, 1 + uneven)
        for kind, mean in of_kind.items()
        for stage in range(stages)
    }
    seconds |= {("B", stage): seconds["I", stage] + seconds["W", stage] for stage in range(stages)}

    def cost(action: Action) -> float:
        return seconds[action.kind.value, action.stage] if action.kind.is_compute else message

    return stages, ranks, micro_batches, cost, per_rank * draw.choice([ranks, 1.5 * ranks, 2 * ranks])


def hard_case(draw: random.Random) -> tuple[int, int, int, Callable[[Action], float], float]:
    """Return the same for uneven stages, slow links and little memory, on four ranks or eight, two stages on each."""
    ranks, uneven, message = draw.choice([4, 8]), draw.uniform(0.2, 0.5), draw.uniform(0.1, 0.5)
    micro_batches, limit = draw.choice([1, 2]) * ranks, 2 * ranks * draw.uniform(0.5, 1.0)
    of_kind = {"F": 1.0, "I": draw.uniform(0.8, 1.3), "W": draw.uniform(0.4, 1.0)}
    scale = {(kind, stage): draw.uniform(1 - uneven, 1 + uneven) for kind in of_kind for stage in range(2 * ranks)}

    def cost(action: Action) -> float:
        if not action.kind.is_compute:
            return message
        parts = "IW" if action.kind is Kind.B else action.kind.value
        return sum(of_kind[part] * scale[part, action.stage] for part in parts)

    return 2 * ranks, ranks, micro_batches, cost, limit


Case = Callable[[random.Random], tuple[int, int, int, Callable[[Action], float], float]]


def random_sets(case: Case, count: int, seconds: float) -> list[tuple[FoundSchedule, float]]:
    """Return what a search finds for random costs, and the best named schedule's step."""
    draw = random.Random(0)
    results = []
    for _ in range(count):
        stages, ranks, micro_batches, cost, limit = case(draw)
        found = search_schedule(stages, micro_batches, cost, ranks=ranks, memory_limit=limit, seconds=seconds)
        results.append((found, min(found.named.values())))
    return results


def report(options: argparse.Namespace) -> list[Table]:
    """Return tables of bubble rates and of steps."""
    rates = Table("Bubble rates with twice the memory of 1F1B", "", list(published(options.seconds)))
    return [
        rates,
        compare_steps("Steps for random costs, memory limits and placements", random_case, options),
        compare_steps("Steps for uneven stages, slow links and little memory", hard_case, options),
    ]


def compare_steps(title: str, case: Case, options: argparse.Namespace) -> Table:
    """Return a table of the found steps and the best named schedules', with the cases that each wins."""
    results = random_sets(case, options.sets, options.seconds / 10)
    found = [(one, named) for one, named in results if math.isfinite(named)]
    steps = {"retrograd": [one.step for one, _ in found], "best named schedule": [named for _, named in found]}
    shorter = sum(one.step < named * (1 - 1e-9) for one, named in found)
    longer = sum(one.step > named * (1 + 1e-9) for one, named in found)
    optimal = sum(named <= one.bound * (1 + 1e-9) for one, named in found)
    notes = [
        f"shorter than every named schedule in {shorter} of {len(found)} cases, longer in {longer}; in {optimal} a "
        f"named schedule reaches the lower bound, so that none is shorter",
        f"{len(results) - len(found)} more cases in which no named schedule is within the memory limit",
    ]
    table = Table(title, "", [Row("step", steps)], notes=notes)
    table.fine = not longer
    return table


if __name__ == "__main__":
    arguments = parser(__doc__, 1)
    arguments.add_argument("--sets", type=int, default=200)
    arguments.add_argument("--seconds", type=float, default=10.0, help="of a search, as in `search_schedule`")
    sys.exit(main(arguments, report))
