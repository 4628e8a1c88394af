"""The simulator reproduces the figures of the zero-bubble paper."""

import json
from pathlib import Path

import pytest

from retrograd.pipelining.planning.simulate import peak_activations, simulate_costs
from retrograd.pipelining.schedules import make_schedule
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
