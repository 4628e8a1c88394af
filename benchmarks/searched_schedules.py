"""Compare schedules that `search_schedule` finds with the named ones, and with those of the zero-bubble paper.

    python benchmarks/searched_schedules.py [--sets 200] [--seconds 10] [--json FILE] [--check]

Nothing is timed: the figures are simulated, and do not depend on the machine.  With --check, steps that differ from the
published ones by more than 1 % are an error, unless they are shorter.
"""

import argparse
import json
import math
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from retrograd.bench import Row, Table, main, parser
from retrograd.pipelining.planning.schedule_search import FoundSchedule, search_schedule
from retrograd.pipelining.planning.simulate import peak_activations, simulate_costs, unit_cost
from retrograd.pipelining.schedules import get_schedule, make_schedule
from retrograd.pipelining.schedules.actions import Action, Kind
from retrograd.pipelining.schedules.lowering import chain

PUBLISHED = Path(__file__).parents[1] / "tests" / "pipelining" / "data" / "zero_bubble.json"
# Bubble rate and microbatches in memory: the authors' formulas for the zero-bubble schedules, and V-Half and V-Min.
EQUAL_TIMES = {
    "1f1b": (7 / 39, 8),
    "zb-h1": (7 / 103, 8),
    "zb-h2": (0.0, 15),
    "zbv": (0.0, 8),
    "v-half": (0.0813, 5),
    "v-min": (0.1070, 4),
}


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


def named_rates() -> Iterator[Row]:
    """Yield the bubble rates of the named schedules that the paper compares."""
    for row in json.loads(PUBLISHED.read_text())["rows"]:
        of_kind = {"F": row["F_ms"], "I": row["B_ms"], "W": row["W_ms"], "B": row["B_ms"] + row["W_ms"]}
        ranks, micro_batches = row["stages"], row["micro_batches"]
        for name in ("1f1b", "zb-h1", "zb-h2"):
            summary = simulate_costs(
                make_schedule(name, ranks, micro_batches),
                chain(ranks),
                lambda action, known=of_kind, message=row["comm_ms"]: known.get(action.kind.value, message),
            )
            title = f"{row['model']}, p = {ranks}, m = {micro_batches}, {name}"
            rate = row["bubble_" + name.replace("-", "_")]
            yield Row(title, {"retrograd": [summary.bubble_rate], "published": [rate]})


def equal_times() -> Iterator[Row]:
    """Yield the busy share of the slowest rank for F = I = W, free messages, p = 8 and m = 32."""
    for name, (rate, held) in EQUAL_TIMES.items():
        per_rank = get_schedule(name).per_rank
        schedule = make_schedule(name, 8 * per_rank, 32, ranks=8)
        summary = simulate_costs(schedule, chain(8 * per_rank), unit_cost)
        own = max(map(peak_activations, schedule)) / per_rank
        title = f"{name}, {own:g} microbatches, published {held}"
        yield Row(title, {"retrograd": [1 - summary.bubble_rate], "published": [1 - rate]})


def within_one_percent(busy: Iterable[tuple[float, float]]) -> bool:
    """Return whether steps are at most 1 % longer than the published ones, by both busy shares."""
    return all(published / own <= 1.01 for own, published in busy)


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
    named = Table("Bubble rates of named schedules", "", list(named_rates()))
    equal = Table("Busy share of the slowest rank for F = I = W, p = 8, m = 32", "", list(equal_times()))
    for table, peer in ((rates, "paper's scheduler"), (named, "published")):
        table.fine = within_one_percent(
            (1 - row.samples["retrograd"][0], 1 - row.samples[peer][0]) for row in table.rows
        )
    equal.fine = within_one_percent((row.samples["retrograd"][0], row.samples["published"][0]) for row in equal.rows)
    return [
        rates,
        named,
        equal,
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
