"""The search for schedules: as good as every named one, the optimum where that is known, within the memory limit."""

import itertools
import json
import math
import random
from pathlib import Path

import pytest
from tests.pipelining.exact_schedules import shortest_step

import retrograd as rg
from retrograd.pipelining import Pipeline
from retrograd.pipelining.planning import plan, search_schedule
from retrograd.pipelining.planning.list_scheduler import Policy, list_schedule
from retrograd.pipelining.planning.schedule_problem import make_problem, run, run_filled
from retrograd.pipelining.planning.simulate import peak_activations, simulate_costs, unit_cost
from retrograd.pipelining.schedules import make_schedule, one_directional
from retrograd.pipelining.schedules.actions import format_schedule
from retrograd.pipelining.schedules.lowering import chain, lower, validate

PUBLISHED = json.loads((Path(__file__).parent / "data" / "zero_bubble.json").read_text())["rows"]


def random_costs(seed, stages):
    """Return a cost function with uneven stages and messages that take time."""
    draw = random.Random(seed)
    seconds = {(kind, stage): draw.uniform(0.5, 1.5) for kind in "FIW" for stage in range(stages)}
    seconds |= {("B", stage): 0.9 * (seconds["I", stage] + seconds["W", stage]) for stage in range(stages)}
    latency = draw.choice([0.0, 0.1, 0.5])
    return lambda action: seconds[action.kind.value, action.stage] if action.kind.is_compute else latency


@pytest.mark.parametrize(
    ("stages", "ranks", "limit"), [(4, 4, 4), (4, 4, 7), (8, 4, 6), (8, 4, 8), (6, 2, 4), (4, 4, None)]
)
def test_the_schedule_is_valid_and_as_good_as_every_named_one_within_the_limit(stages, ranks, limit):
    for seed in range(3):
        cost = random_costs(seed, stages)
        found = search_schedule(stages, 8, cost, ranks=ranks, memory_limit=limit, seconds=0.1)
        validate(lower(found.schedule, chain(stages)), chain(stages))
        assert simulate_costs(found.schedule, chain(stages), cost).span == pytest.approx(found.step, rel=1e-12)
        assert [peak_activations(actions) for actions in found.schedule] == found.peaks
        assert max(found.peaks) <= (limit or math.inf)
        assert found.bound <= found.step * (1 + 1e-9)
        for name in (kind.name for kind in one_directional()):
            named = make_schedule(name, stages, 8, ranks=ranks)
            fits = max(map(peak_activations, named)) <= (limit or math.inf)
            assert math.isfinite(found.named[name]) == fits
            if fits:
                assert found.step <= simulate_costs(named, chain(stages), cost).span * (1 + 1e-12)


@pytest.mark.parametrize(
    ("placement", "micro_batches", "limit"), [([0, 1], 3, 2), ([0, 1], 3, 3), ([0, 1, 2], 2, 2), ([0, 1, 1, 0], 2, 3)]
)
def test_small_pipelines_get_the_optimum_of_integer_programming(placement, micro_batches, limit):
    draw = random.Random(len(placement) + limit)
    stages, ranks = len(placement), max(placement) + 1
    for _ in range(2):
        seconds = {kind: draw.choice([0.5, 1.0, 1.5, 2.0]) for kind in "FIW"}
        latency = draw.choice([0.0, 0.25, 0.5])
        cost = {**seconds, "B": seconds["I"] + seconds["W"], "SEND_F": latency, "SEND_B": latency}
        least = shortest_step(stages, micro_batches, seconds, latency, placement=placement, limit=limit)
        found = search_schedule(
            stages,
            micro_batches,
            lambda action, cost=cost: cost[action.kind.value],
            ranks=ranks,
            placements=[placement],
            memory_limit=limit,
            seconds=0.5,
        )
        assert found.step == pytest.approx(least, rel=1e-6)  # which is the solver's tolerance
        assert 0 < found.bound <= least * (1 + 1e-6)


def test_whole_backward_passes_and_halves_are_mixed_where_whole_ones_are_quicker(monkeypatch):
    def cost(action):
        return {"F": 1.0, "I": 1.0, "W": 1.0, "B": 1.7}.get(action.kind.value, 0.1)

    arguments = {"ranks": 2, "memory_limit": 4, "seconds": 0.5}
    found = search_schedule(4, 8, cost, **arguments)
    validate(lower(found.schedule, chain(4)), chain(4))
    assert simulate_costs(found.schedule, chain(4), cost).span == pytest.approx(found.step, rel=1e-12)
    assert {action.kind.value for actions in found.schedule for action in actions} == {"F", "B", "I", "W"}
    monkeypatch.setattr("retrograd.pipelining.planning.schedule_search.JOIN_SHARE", 0.0)
    assert found.step < search_schedule(4, 8, cost, **arguments).step


def test_the_alternatives_are_the_different_named_schedules_the_best_of_each_kind_first():
    found = search_schedule(4, 8, random_costs(1, 4), ranks=2, memory_limit=8, seconds=0.1)
    kinds = [{action.kind.value for actions in one.schedule for action in actions} for one in found.alternatives]
    assert min(found.named.values()) == found.alternatives[0].step
    groups = [(*one.placement, "I" in own) for one, own in zip(found.alternatives, kinds, strict=True)]
    first = len(set(groups))
    assert len(groups) > first > 3
    assert len(set(groups[:first])) == first
    for best, group in zip(found.alternatives[:first], groups, strict=False):
        others = [one.step for one, own in zip(found.alternatives, groups, strict=True) if own == group]
        assert best.step == others[0]
        assert others == sorted(others)
    within = {name for name, value in found.named.items() if value < math.inf}
    assert within >= {one.origin for one in found.alternatives}
    ours = [found.schedule, *(one.schedule for one in found.alternatives)]
    assert all(make_schedule(name, 4, 8, ranks=2) in ours for name in within)
    assert all(ours.count(schedule) == 1 for schedule in ours)
    assert all(max(one.peaks) <= 8 for one in found.alternatives)


def test_twice_the_memory_of_1f1b_leaves_almost_no_bubble():
    row = PUBLISHED[0]
    seconds = {"F": row["F_ms"], "I": row["B_ms"], "W": row["W_ms"], "B": row["B_ms"] + row["W_ms"]}

    def cost(action):
        return seconds[action.kind.value] if action.kind.is_compute else row["comm_ms"]

    kept = dict.fromkeys(range(8), 0.4)
    found = search_schedule(8, 64, cost, kept=kept, memory_limit=16, objective="slowest", seconds=1)
    bubble = 1 - 64 * (seconds["F"] + seconds["B"]) / found.slowest
    assert bubble < 0.003 < row["bubble_zb_h2"]


def test_a_whole_backward_pass_does_not_overtake_a_weight_half_of_its_stage():
    ones = {0: 1.0}
    problem = make_problem([0], 2, [], unit_cost, ones, ones, [math.inf])
    forward, inputs, weights, backward = range(4)
    assert run(problem, [[forward, forward, inputs, weights, backward]]).step == 6
    assert run(problem, [[forward, forward, inputs, backward, weights]]) is None
    assert run(problem, [[forward, forward, inputs, weights]]) is None  # a microbatch is missing
    filled, times = run_filled(problem, [[forward, forward, inputs, backward]], 1.0)
    assert (filled, times.step) == ([[forward, forward, inputs, weights, backward]], 6)


def test_the_result_depends_on_the_seed_alone():
    arguments = (4, 6, random_costs(5, 4))
    one, same, other = (search_schedule(*arguments, seconds=0.05, seed=seed) for seed in (1, 1, 2))
    assert one == same
    assert one.schedule != other.schedule


def test_the_shortest_search_on_the_slowest_machine_finds_the_best_named_schedule_or_a_better_one(monkeypatch):
    monkeypatch.setattr("time.perf_counter", itertools.count(step=1000).__next__)  # each look takes long
    for seed, limit in itertools.product(range(3), (4, 5, 7, None)):
        found = search_schedule(4, 8, random_costs(seed, 4), memory_limit=limit, seconds=1e-9)
        assert found.step <= min(found.named.values()) < math.inf
        assert found == search_schedule(4, 8, random_costs(seed, 4), memory_limit=limit, seconds=1e-9)
    # No named schedule is within these limits.
    limited = search_schedule(4, 8, random_costs(0, 4), memory_limit=[1, 1, 2, 1], seconds=1e-9)
    assert min(limited.named.values()) == math.inf > limited.step


def test_list_schedules_finish_under_any_policy_with_the_least_memory():
    for placement, seed in itertools.product(([0, 1, 2, 2, 1, 0], [0, 1, 2] * 3, [0, 1, 1, 0, 0, 1, 1, 0]), range(6)):
        stages, draw = len(placement), random.Random(seed)
        saved = {stage: draw.uniform(0.5, 2) for stage in range(stages)}
        kept = {stage: draw.random() * saved[stage] for stage in range(stages)}
        limits = [sum(saved[s] for s in range(stages) if placement[s] == rank) for rank in range(max(placement) + 1)]
        problem = make_problem(placement, 5, chain(stages), random_costs(seed, stages), saved, kept, limits)
        policy = Policy(draw.uniform(1, 4), draw.random(), draw.random(), draw.random(), seed % 2 == 0, seed % 3 == 0)
        orders = list_schedule(problem, policy)
        assert run(problem, orders) is not None
        validate(lower(problem.actions(orders), chain(stages)), chain(stages))
        assert all(problem.peak(order) <= limit * (1 + 1e-6) for order, limit in zip(orders, limits, strict=True))


def listed(placement, micro_batches, policy, *, latency=0.0, limit=math.inf):
    """Return the text of a list schedule in which every computation takes 1 and a message `latency`."""

    def cost(action):
        return unit_cost(action) if action.kind.is_compute else latency

    stages = len(placement)
    ones, limits = dict.fromkeys(range(stages), 1.0), [limit] * (max(placement) + 1)
    problem = make_problem(placement, micro_batches, chain(stages), cost, ones, ones, limits)
    return format_schedule(problem.actions(list_schedule(problem, policy)))


def test_a_list_schedule_prefers_input_halves_then_forwards_of_the_preferred_stage_then_weight_halves():
    assert listed([0, 0], 2, Policy()) == "0: F0.0 F1.0 I1.0 I0.0 F0.1 F1.1 I1.1 I0.1 W0.0 W0.1 W1.0 W1.1"
    earliest = Policy(latest_first=False)
    assert listed([0, 0], 2, earliest) == "0: F0.0 F0.1 F1.0 I1.0 I0.0 F1.1 I1.1 I0.1 W0.0 W0.1 W1.0 W1.1"
    whole = Policy(split=False)
    assert listed([0, 0], 2, whole) == "0: F0.0 F1.0 B1.0 B0.0 F0.1 F1.1 B1.1 B0.1"


@pytest.mark.parametrize(
    ("policy", "first"),
    [
        # At 3, rank 0 has run three forwards, and its first gradient arrives at 4.5.
        (Policy(forward_patience=1.5), "F0.0 F0.1 F0.2 F0.3 I0.0"),
        (Policy(forward_patience=1.6), "F0.0 F0.1 F0.2 I0.0 W0.0"),
        # With two microbatches in flight, it has no forward to run at 5.5, and the next gradient arrives at 6.5.
        (Policy(ahead=2.0, weight_patience=1.0), "F0.0 F0.1 I0.0 W0.0 I0.1"),
        (Policy(ahead=2.0, weight_patience=1.1), "F0.0 F0.1 I0.0 I0.1 W0.0"),
        # If rank 1 may hold only one, that gradient arrives at 7.5.
        (Policy(ahead=1.0, slope=1.0), "F0.0 F0.1 I0.0 W0.0 F0.2"),
    ],
)
def test_a_list_schedule_waits_for_a_gradient_as_its_policy_says(policy, first):
    rank = listed([0, 1], 4, policy, latency=0.75).splitlines()[0]
    assert " ".join(rank.split()[1:6]) == first


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match=r"no schedule is within the memory limit of 1.*2.0 bytes for one microbatch"):
        search_schedule(4, 2, unit_cost, ranks=2, memory_limit=1, seconds=0.01)
    with pytest.raises(ValueError, match="objective must be 'step' or 'slowest', got 'time'"):
        search_schedule(2, 2, unit_cost, objective="time")
    with pytest.raises(ValueError, match=r"memory_limit must be one number above 0, or 2, got \[1, 2, 3\]"):
        search_schedule(2, 2, unit_cost, memory_limit=[1, 2, 3])
    with pytest.raises(ValueError, match="seconds must be above 0, got 0"):
        search_schedule(2, 2, unit_cost, seconds=0)
    with pytest.raises(ValueError, match="5 stages cannot be spread evenly over 2 ranks"):
        search_schedule(5, 2, unit_cost, ranks=2)
    with pytest.raises(ValueError, match=r"the cost of \S+ is -1.0"):
        search_schedule(2, 2, lambda action: -1.0)


@pytest.mark.parametrize("name", ["zbv", "dualpipev", "v-half", "v-min"])
@pytest.mark.parametrize("per_rank", [3, 4, 5])
def test_named_schedules_with_several_stages_per_rank_finish(name, per_rank):
    for ranks, micro_batches in itertools.product((2, 3, 4, 8), (1, 5, 16)):
        schedule = make_schedule(name, ranks * per_rank, micro_batches, ranks=ranks)
        validate(lower(schedule, chain(ranks * per_rank)), chain(ranks * per_rank))


def test_training_under_a_found_schedule_gives_the_numbers_of_the_unsplit_model():
    rg.manual_seed(0)
    model = rg.nn.Sequential(*[rg.nn.Sequential(rg.nn.Linear(6, 6), rg.nn.Tanh()) for _ in range(4)]).double()
    x, y = rg.randn(8, 6, dtype=rg.float64), rg.randn(8, 6, dtype=rg.float64)
    loss_fn = rg.nn.functional.mse_loss
    loss = loss_fn(model(x), y)
    expected = rg.autograd.grad(loss, list(model.parameters()))
    found = search_schedule(4, 4, random_costs(1, 4), ranks=2, memory_limit=6, seconds=0.1)
    pipeline = Pipeline(model, stages=4, ranks=2, schedule=found.schedule, micro_batches=4, loss_fn=loss_fn)
    assert pipeline.step(x, target=y).item() == pytest.approx(loss.item(), rel=1e-12)
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        rg.testing.assert_close(parameter.grad, gradient, rtol=1e-12, atol=1e-14)


def test_a_plan_with_auto_is_as_good_as_the_others_and_applies():
    rg.manual_seed(0)
    model = rg.nn.Sequential(*[rg.nn.Linear(16, 16) for _ in range(4)])
    x = rg.randn(8, 16)
    found = plan(
        model,
        (x,),
        2,
        4,
        schedules=["1f1b", "zb-h1", "auto"],
        rounds=1,
        latency=1e-4,
        bandwidth=1e9,
        search_seconds=0.2,
    )
    steps = {choice.schedule: choice.step for choice in found.choices}
    assert steps["auto"] <= min(steps.values()) * (1 + 1e-9)
    assert "auto" in str(found)
    found.to_dict()
    Pipeline(model, **found.options, loss_fn=lambda out, target: out.sum()).step(x, target=x)
    with pytest.raises(ValueError, match="search_seconds must be a number above 0"):
        plan(model, (x,), 2, 4, schedules=["auto"], search_seconds=0)
