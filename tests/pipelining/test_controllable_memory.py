"""V-Half and V-Min have the activations and the bubble of their paper."""

import importlib
import re
from itertools import product

import pytest

from retrograd.pipelining.planning.simulate import peak_activations, simulate_costs, unit_cost
from retrograd.pipelining.schedules import get_schedule, make_schedule, stream_schedule
from retrograd.pipelining.schedules.actions import Kind
from retrograd.pipelining.schedules.lowering import chain, lower, validate
from retrograd.pipelining.schedules.squeeze import squeeze

HELD = {"v-half": lambda p: (p + 2) // 2, "v-min": lambda p: (p + 4) // 3}  # microbatches


def idle_slots(name, p):
    """Return the idle slots that the docstrings document, for F = I = W = 1 and enough microbatches."""
    return 6 * ((p + 1) // 2) - 7 if name == "v-half" else 4 * p - (7, 5, 9)[p % 3]


def measured(name, p, m):
    """Return the microbatches that a rank holds, of two stages each, and the summary of the simulation."""
    schedule = make_schedule(name, 2 * p, m)
    return max(map(peak_activations, schedule)) / 2, simulate_costs(schedule, chain(2 * p), unit_cost)


def test_rates_and_memory_are_those_of_the_paper_if_all_computations_take_equally_long():
    # 8 ranks and 32 microbatches, F = I = W, messages take no time. 1F1B holds the activations of 8 microbatches.
    rates = {}
    for name in HELD:
        held, summary = measured(name, 8, 32)
        rates[name] = (held, round(summary.bubble_rate, 4))
    assert rates == {"v-half": (5, 0.0813), "v-min": (4, 0.1070)}
    one = simulate_costs(make_schedule("1f1b", 8, 32), chain(8), unit_cost)
    assert round(one.bubble_rate, 4) == 0.1795


@pytest.mark.parametrize("name", HELD)
def test_idle_time_and_memory_follow_the_formulas_for_any_number_of_ranks(name):
    for p in range(3, 11):
        m = p + 1
        held, summary = measured(name, p, m)
        assert held == HELD[name](p), p
        spans = [end - start for start, end in zip(summary.start, summary.end, strict=True)]
        assert max(spans) - 6 * m == idle_slots(name, p), p


@pytest.mark.parametrize("name", HELD)
def test_the_memory_holds_for_any_number_of_micro_batches(name):
    for p, m in product((1, 2, 5, 6, 17, 24), (1, 2, 7)):
        held, _ = measured(name, p, m)
        assert held <= min(HELD[name](p), m), (p, m)


def test_names_are_those_of_the_paper_however_they_are_written():
    assert get_schedule("vhalf").name == get_schedule("V_Half").name == "V-Half"
    assert get_schedule("V min").name == get_schedule("v-min").name == "V-Min"


def squeezed(text, micro_batches, *, interval, limit, lookahead=1):
    """Return the actions of each rank; text: the steps of a microbatch on each rank with their slots."""
    found = re.findall(r"(\w)(\d):(\d)", text)
    slots = {(Kind(kind), int(stage)): int(slot) for kind, stage, slot in found}
    rank_stages = [[stage] for stage in sorted({stage for _, stage in slots})]
    return [list(row) for row in squeeze(slots, rank_stages, interval, micro_batches, limit=limit, lookahead=lookahead)]


# F0.0 F0.1 F0.2 I0.0 I0.1 I0.2, and F1.0 I1.0 F1.1 I1.1 F1.2 I1.2
BLOCK = "F0:0 I0:6 F1:0 I1:1"


def test_squeezing_puts_weight_halves_where_a_rank_waits_or_needs_their_memory():
    for limit in (3, 4):
        schedule = squeezed(BLOCK, 3, interval=2, limit=limit)
        validate(lower(schedule, chain(2)), chain(2))
        assert max(map(peak_activations, schedule)) <= limit
    tight = squeezed("F0:0 I0:1", 3, interval=2, limit=2)
    assert " ".join(map(str, tight[0])) == "F0.0 I0.0 F0.1 I0.1 W0.0 F0.2 I0.2 W0.1 W0.2"


def test_squeezing_lets_a_later_action_pass_one_that_waits_but_not_over_the_memory():
    # F1.1 needs F0.1, which needs the memory of I0.0, which needs I1.0, which comes after F1.1.
    block = "F0:0 I0:1 F1:0 I1:4"
    with pytest.raises(ValueError, match="the order cannot run with 1 activations per rank"):
        squeezed(block, 2, interval=2, limit=1)
    loose = squeezed(block, 2, interval=2, limit=1, lookahead=2)
    validate(lower(loose, chain(2)), chain(2))
    assert [str(action) for action in loose[1]] == ["F1.0", "I1.0", "W1.0", "F1.1", "I1.1", "W1.1"]


def test_an_order_that_needs_more_memory_is_refused():
    for micro_batches in (3, 300):
        with pytest.raises(ValueError, match="the order cannot run with 2 activations per rank"):
            squeezed(BLOCK, micro_batches, interval=2, limit=2)


@pytest.mark.parametrize("name", ["v-half", "v-min", "zbv"])
@pytest.mark.parametrize("per_rank", [2, 3])
def test_orders_with_a_repeated_cycle_are_those_that_are_computed_to_the_end(name, per_rank, monkeypatch):
    sizes = [(p, m) for p in (1, 2, 3, 6) for m in (1, 3, 8, 24, 41)]
    shortened = [make_schedule(name, per_rank * p, m, ranks=p) for p, m in sizes]

    def find_nothing(ranks, done, spare):
        return module._Cycle(done[-1], [0] * len(ranks), [0] * len(ranks))

    module = importlib.import_module("retrograd.pipelining.schedules.squeeze")
    monkeypatch.setattr(module, "_find_cycle", find_nothing)
    assert shortened == [make_schedule(name, per_rank * p, m, ranks=p) for p, m in sizes]


@pytest.mark.parametrize("name", HELD)
def test_an_order_is_computed_for_few_microbatches_however_many_there_are(name, monkeypatch):
    slots = []
    module = importlib.import_module("retrograd.pipelining.schedules.squeeze")
    run_slot = module._run_slot
    monkeypatch.setattr(module, "_run_slot", lambda *state: slots.append(1) or run_slot(*state))
    counts = []
    for m in (100, 10_000):
        slots.clear()
        stream_schedule(name, 16, m)
        counts.append(len(slots))
    assert counts[0] == counts[1] < 6 * 40
