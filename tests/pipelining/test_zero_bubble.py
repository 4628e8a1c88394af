"""The simulator reproduces the figures of the zero-bubble paper."""

import json
from pathlib import Path

import pytest

from retrograd.pipelining.planning import search_schedule
from retrograd.pipelining.planning.simulate import peak_activations, simulate_costs, unit_cost
from retrograd.pipelining.schedules import get_schedule, make_schedule
from retrograd.pipelining.schedules.lowering import chain

PUBLISHED = json.loads((Path(__file__).parent / "data" / "zero_bubble.json").read_text())["rows"]
NAMES = {"1f1b": "bubble_1f1b", "zb-h1": "bubble_zb_h1", "zb-h2": "bubble_zb_h2"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: f"{row['model']}-{row['stages']}-{row['micro_batches']}")
def test_the_bubble_rate_is_the_published_one_to_all_printed_digits(row, name):
    stages, micro_batches = row["stages"], row["micro_batches"]
    seconds = {"F": row["F_ms"], "I": row["B_ms"], "W": row["W_ms"], "B": row["B_ms"] + row["W_ms"]}

    def cost(action):
        return seconds[action.kind.value] if action.kind.is_compute else row["comm_ms"]

    summary = simulate_costs(make_schedule(name, stages, micro_batches), chain(stages), cost)
    assert round(summary.bubble_rate, 4) == row[NAMES[name]]


def test_the_peak_activations_are_the_published_ones():
    for row in PUBLISHED:
        p, m = row["stages"], row["micro_batches"]
        peaks = {name: [peak_activations(actions) for actions in make_schedule(name, p, m)] for name in NAMES}
        assert peaks == {"1f1b": [*range(p, 0, -1)], "zb-h1": [p] * p, "zb-h2": [2 * p - 1] * p}


# The paper's own scheduler with the memory of 2 p microbatches: ranks, microbatches, milliseconds of F, I, W and a
# message, the share of the activations that W needs (table 1), and the bubble rate (table 5).
ZB_2P = [
    (8, 32, (18.522, 18.086, 9.337, 0.601), 32 / (34 + 5 * 24 * 1024 / 2304), 0.0039),
    (8, 64, (29.718, 29.444, 19.927, 0.527), 32 / (34 + 5 * 32 * 1024 / 4096), 0.0010),
]


@pytest.mark.parametrize(("p", "m", "milliseconds", "weight_share", "rate"), ZB_2P)
def test_a_searched_step_is_within_one_percent_of_zb_2p(p, m, milliseconds, weight_share, rate):
    forward, inputs, weights, message = milliseconds
    seconds = {"F": forward, "I": inputs, "W": weights, "B": inputs + weights}
    found = search_schedule(
        p,
        m,
        lambda action: seconds.get(action.kind.value, message),
        kept=dict.fromkeys(range(p), weight_share),
        memory_limit=2 * p,
        objective="slowest",
        seconds=2.0,
    )
    assert found.slowest == pytest.approx(m * (forward + inputs + weights) / (1 - rate), rel=0.01)
    assert max(found.peaks) <= 2 * p


# By the authors' tables for F = I = W (sail-sg/zero-bubble-pipeline-parallelism, README, and the papers' Hugging Face
# spaces): idle slots, and microbatches whose activations a rank holds.
EQUAL_TIMES = {
    "1f1b": (lambda p: 3 * (p - 1), lambda p: p),
    "zb-h1": (lambda p: p - 1, lambda p: p),
    "zb-h2": (lambda p: 0, lambda p: 2 * p - 1),
    "zbv": (lambda p: 0, lambda p: p),
}


@pytest.mark.parametrize("name", EQUAL_TIMES)
@pytest.mark.parametrize(("p", "m"), [(4, 8), (8, 32), (16, 64)])
def test_bubble_and_memory_for_equal_times_are_the_published_ones(name, p, m):
    idle, held = EQUAL_TIMES[name]
    per_rank = get_schedule(name).per_rank
    schedule = make_schedule(name, per_rank * p, m, ranks=p)
    summary = simulate_costs(schedule, chain(per_rank * p), lambda action: unit_cost(action) / per_rank)
    assert summary.bubble_rate == pytest.approx(idle(p) / (3 * m + idle(p)), abs=1e-12)
    assert max(map(peak_activations, schedule)) == per_rank * held(p)


@pytest.mark.parametrize(
    ("name", "idle", "held"), [("v-half", 1.5, lambda p: (p + 2) // 2), ("v-min", 2.0, lambda p: (p + 4) // 3)]
)
def test_v_schedules_tend_to_the_published_bubble_with_the_published_memory(name, idle, held):
    # The published bubbles are about p / 2 m and 2 p / 3 m of the work, which is 3 m.
    for p in (32, 64):
        schedule = make_schedule(name, 2 * p, 2 * p)
        summary = simulate_costs(schedule, chain(2 * p), lambda action: unit_cost(action) / 2)
        slots = max(end - start for start, end in zip(summary.start, summary.end, strict=True)) - 3 * 2 * p
        assert slots == pytest.approx(idle * p, abs=5)
        assert max(map(peak_activations, schedule)) == 2 * held(p)
