"""Planning: measured layers, the split under a memory limit, the choice of a schedule, and the report."""

import itertools
import json
import math
from itertools import combinations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import retrograd as rg
from retrograd import nn
from retrograd.pipelining import (
    Pipeline,
    peak_activations,
    pipeline,
    planning,
    simulate,
    simulate_costs,
    with_offload,
    with_recomputation,
)
from retrograd.pipelining.microbatch import MicroBatch
from retrograd.pipelining.planning import choose, plan, search_schedule
from retrograd.pipelining.planning.balanced_split import Memory, NoFeasibleSplit, in_flight, split
from retrograd.pipelining.planning.link_cost import LinearCost, MessageCost, message_cost
from retrograd.pipelining.planning.memory_fit import StageBytes, fit_memory, peak_bytes
from retrograd.pipelining.planning.operator_cost import Operator, operators, preserve_state
from retrograd.pipelining.planning.report import Choice, choose_recommended
from retrograd.pipelining.planning.stage_cost import StageCosts, TrialStep, measure_stages
from retrograd.pipelining.planning.storage_cost import storage_cost
from retrograd.pipelining.schedules import SCHEDULES, make_schedule
from retrograd.pipelining.schedules.actions import Action, Kind
from retrograd.pipelining.schedules.lowering import chain, lower, validate
from retrograd.pipelining.schedules.program import make_program
from retrograd.pipelining.schedules.replicas import add_reductions, replicate
from retrograd.pipelining.split.pipe import split_as_traced
from retrograd.pipelining.transports import get_transport

from .test_same_numbers import check

FREE = {"latency": 0.0, "bandwidth": 1e12, "rounds": 1}


def mlp(layers=4, width=8):
    return nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.Tanh()) for _ in range(layers)])


def batch(width=8, examples=8):
    return (rg.randn(examples, width),), rg.randn(examples, width)


def planned(model=None, ranks=2, micro_batches=4, **options):
    args, target = batch()
    model = mlp() if model is None else model
    return plan(model, args, ranks, micro_batches, target=target, loss_fn=nn.functional.mse_loss, **FREE | options)


# -------------------------------------------------------------------------------------------------------- splitting

sizes = st.dictionaries(st.integers(0, 3), st.integers(1, 9), max_size=2)
some_operators = st.lists(
    st.builds(Operator, st.integers(0, 9), st.integers(0, 9), sizes, sizes, st.integers(0, 5), st.just(1)),
    min_size=1,
    max_size=7,
)


def summed(pipe, outputs):
    return rg.sum(pipe.restored_output(outputs))


def every_split(count, stages):
    return [[*ends, count - 1] for ends in combinations(range(count - 1), stages - 1)]


def pieces(ops, ends):
    starts = [0, *[end + 1 for end in ends[:-1]]]
    return [ops[start : end + 1] for start, end in zip(starts, ends, strict=True)]


def slowest(ops, ends):
    cuts = [0, *[ops[end].sent_bytes for end in ends[:-1]], 0]
    return max(
        sum(op.forward + op.backward for op in piece) + before + after
        for piece, before, after in zip(pieces(ops, ends), cuts, cuts[1:], strict=False)
    )


def most_bytes(ops, ends, held, copies):
    def union(piece, what):
        return sum({key: size for op in piece for key, size in getattr(op, what).items()}.values())

    return max(
        copies * union(piece, "parameters") + held[i] * union(piece, "saved")
        for i, piece in enumerate(pieces(ops, ends))
    )


def of_one_size(ops):
    """Give memory one size, whichever part uses it."""
    return [
        op._replace(saved=dict.fromkeys(op.saved, 3), parameters={key: key + 1 for key in op.parameters}) for op in ops
    ]


@settings(max_examples=30)
@given(st.data(), some_operators)
def test_no_other_split_within_the_limit_has_a_quicker_slowest_stage(data, ops):
    ops = of_one_size(ops)
    held = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=len(ops)))
    limit = data.draw(st.integers(0, 80))
    fitting = [e for e in every_split(len(ops), len(held)) if most_bytes(ops, e, held, 4) <= limit]
    assume(fitting)
    ends = split(ops, held, lambda size: size, 4, limit)
    assert most_bytes(ops, ends, held, 4) <= limit
    assert slowest(ops, ends) == min(slowest(ops, other) for other in fitting)


@settings(max_examples=30)
@given(st.data(), some_operators)
def test_the_smallest_limit_that_is_reported_fits_and_one_byte_less_does_not(data, ops):
    ops = of_one_size(ops)
    held = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=len(ops)))
    least = Memory(ops, 4).smallest_limit(held)
    assert least == min(most_bytes(ops, ends, held, 4) for ends in every_split(len(ops), len(held)))
    split(ops, held, lambda size: 0.0, 4, least)
    if least:
        with pytest.raises(NoFeasibleSplit) as told:
            split(ops, held, lambda size: 0.0, 4, least - 1)
        assert told.value.least == least


def test_no_stage_ends_between_an_operator_with_several_results_and_their_use():
    class Spectrum(nn.Module):
        def forward(self, x):
            values, vectors = rg.linalg.eigh(x)
            return values.sin() * vectors

    found = planned_operators(Spectrum(), (rg.eye(3),))
    assert found[0].nodes > 1
    assert sum(op.nodes for op in found) > len(found)


@pytest.mark.parametrize("name", SCHEDULES)
def test_micro_batches_in_flight_are_counted_until_their_weights_are_done(name):
    for actions in make_schedule(name, 4, 5):
        for stage, most in in_flight(actions).items():
            of_stage = [action.kind for action in actions if action.stage == stage]
            alive = [
                of_stage[: i + 1].count(Kind.F) - sum(map(of_stage[: i + 1].count, "BW")) for i in range(len(of_stage))
            ]
            assert most == max(alive)


# -------------------------------------------------------------------------------------------------------- measuring


def planned_operators(model, args):
    kept = []
    whole = pipeline(model, args, split_policy=lambda captured: kept.append(captured) or _one_stage(captured))
    assert whole.num_stages == 1
    with preserve_state(model):
        return operators(kept[0], args, {}, lambda made: made.sum(), 1)


def _one_stage(captured):
    return {node: 0 for node in captured.graph.nodes if node.op == "call_function"}


def test_bytes_are_those_of_parameters_and_of_saved_tensors():
    model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.Tanh(), nn.Linear(8, 2, bias=False))
    found = planned_operators(model, (rg.ones(3, 4),))
    assert sum(size for op in found for size in op.parameters.values()) == 4 * (4 * 8 + 8 * 2)
    # Linear saves its input: the first the model's own, which is not counted, the second what Tanh keeps too.
    assert Memory(found, 4).saved(0, len(found) - 1) == 4 * 3 * 8
    assert [op.sent_bytes for op in found if op.sent_bytes] == [4 * 3 * 8, 4 * 3 * 8]


@pytest.mark.parametrize("workers", [1, 2])
def test_every_stage_is_measured_forward_backward_and_in_halves(workers):
    model, (args, _) = mlp(), batch()
    pipe = pipeline(model, args, split_policy=planned(model, schedules=["1f1b"]).split_policy)
    with preserve_state(model):
        microbatch, transport = MicroBatch(args, {}, 1.0), get_transport("threads")
        (costs,) = measure_stages([pipe], microbatch, summed, transport, workers, 1, 2)
    assert set(costs.seconds) == {
        (kind, stage.stage_index) for kind in (Kind.F, Kind.B, Kind.I, Kind.W) for stage in pipe.stages
    }
    assert costs.cost(Action(Kind.R, 1, 0), MessageCost(LinearCost(0.0))) == costs.seconds[Kind.F, 1]
    assert all(seconds > 0 for seconds in costs.seconds.values())
    assert costs.sizes == {(way, *ends): 8 * 8 * 4 for way, ends in [("F", (0, 1)), ("B", (1, 0))]}


def test_a_whole_backward_pass_is_taken_to_be_no_slower_than_its_halves(monkeypatch):
    def run(step, transport):
        seconds = {"F": 1.0, "B": 5.0, "I": 1.5, "W": 2.0}
        return ((a, seconds[a.kind.value]) for row in step.program.actions for a in row if a.kind.is_compute)

    monkeypatch.setattr(TrialStep, "run", run)
    model, (args, _) = mlp(), batch()
    pipe = pipeline(model, args, split_policy=planned(model, schedules=["1f1b"]).split_policy)
    (costs,) = measure_stages([pipe], MicroBatch(args, {}, 1.0), summed, get_transport("threads"), 2, 1, 2)
    assert {costs.seconds[kind, 1] for kind in (Kind.F, Kind.B, Kind.I, Kind.W)} == {1.0, 3.5, 1.5, 2.0}


def test_planning_leaves_gradients_buffers_and_random_numbers_alone():
    class Average(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", rg.zeros(8))

        def forward(self, x):
            self.mean.add_(x.detach().mean(0))
            return x - self.mean

    model = nn.Sequential(nn.Linear(8, 8), Average(), nn.Dropout(0.5), nn.Linear(8, 8))
    model[0].weight.grad = before = rg.ones(8, 8)
    rg.manual_seed(3)
    expected = rg.rand(2)
    args, target = batch()
    rg.manual_seed(3)
    plan(model, args, 2, 2, target=target, loss_fn=nn.functional.mse_loss, **FREE)
    assert model[0].weight.grad is before
    assert (before == 1).all()
    assert model[3].weight.grad is None
    assert (model[1].mean == 0).all()
    assert (rg.rand(2) == expected).all()


def test_messages_cost_time_over_threads():
    cost = message_cost(get_transport("threads"))
    assert min(cost.sending.fixed, cost.receiving.fixed) > 0
    assert cost.seconds(1000) == sum(part.fixed + 1000 * part.per_byte for part in cost)


def test_a_plan_counts_the_overhead_and_the_latency_of_messages(monkeypatch):
    cost = MessageCost(LinearCost(100.0), LinearCost(1000.0, 1e9), LinearCost(10000.0))
    monkeypatch.setattr(planning, "message_cost", lambda transport: cost)

    def hops(**given):
        """Return the seconds of a step of one microbatch, with two messages of 256 bytes, in units of one message."""
        free = {"latency": None, "bandwidth": None, "rounds": 1, "schedules": ["1f1b"]}
        found = planned(micro_batches=1, **free | given)
        assert found.timeline.span == pytest.approx(found.recommended.step, rel=1e-12)
        sends = {round(event.end - event.start) for event in found.timeline.events if event.action.kind.is_send}
        assert sends == ({0} if len(given) == 2 else {1000 + 256 * 10**9})
        return int(found.recommended.step) // 2

    assert hops() == 11100 + 256 * 10**9
    assert hops(latency=5.0) == 11005 + 256 * 10**9
    assert hops(bandwidth=0.5) == 11100 + 512 + 256 * 10**9
    assert hops(latency=5.0, bandwidth=0.5) == 5 + 512


@pytest.mark.parametrize("variation", ["none", "computations", "sends", "arrivals"])
def test_a_planned_step_is_longer_if_computations_or_messages_vary(monkeypatch, variation):
    def measured(pipes, *rest):
        costs = measure_stages(pipes, *rest)[0]
        seconds = {key: 2.0 if key[0] is Kind.B else 1.0 for key in costs.seconds}
        samples = {key: [typical] * 8 for key, typical in seconds.items()}
        found = StageCosts(seconds, costs.sizes, samples)
        if variation == "computations":
            found = found._replace(samples={key: [*values, 4.0] for key, values in samples.items()})
        delays = {"sends": "send_delays", "arrivals": "wake_delays"}
        return [found._replace(**{delays[variation]: [0.0] * 8 + [3.0]}) if variation in delays else found]

    monkeypatch.setattr(choose, "measure_stages", measured)
    options = {"schedules": ["1f1b"], "micro_batches": 8, "latency": None, "bandwidth": None}
    found, again = planned(**options), planned(**options)
    assert found.timeline.span == pytest.approx(found.recommended.step)
    assert found.settings["variation"] == pytest.approx(again.settings["variation"], rel=1e-3)
    assert ("times as long as with their shortest times" in str(found)) == (variation != "none")
    if variation == "none":
        assert found.settings["variation"] == 1.0
    else:
        assert 1.1 < found.settings["variation"] < 3
        # Messages whose times are given do not vary.
        given = planned(**options | FREE)
        assert (given.settings["variation"] > 1) == (variation == "computations")


# --------------------------------------------------------------------------------------------------------- choosing


def choice(step, memory, fits=True, schedule="1F1B"):
    return Choice(schedule, (0, 1), step, 0.0, (0.0,), (memory,), fits)


def test_the_shortest_step_that_fits_is_recommended():
    choices = [choice(1.0, 9, fits=False), choice(2.0, 5), choice(3.0, 1)]
    assert choose_recommended(choices) is choices[1]


def test_of_steps_nearly_as_short_the_one_with_least_memory_is_recommended():
    choices = [choice(1.0, 9), choice(1.009, 5), choice(1.02, 1)]
    assert choose_recommended(choices) is choices[1]


def test_every_schedule_is_compared_and_the_recommended_is_the_simulated_best():
    found = planned()
    assert {c.schedule for c in found.choices} == {kind.name for kind in SCHEDULES.values()}
    assert found.recommended.step <= 1.01 * min(c.step for c in found.choices)
    assert found.timeline.span == pytest.approx(found.recommended.step)
    assert found.relative(next(c for c in found.choices if c.schedule == "1F1B")) == 1


def test_the_memory_limit_holds_for_every_rank_of_a_choice_that_fits():
    free = planned(schedules=["gpipe", "1f1b"])
    limit = min(max(c.memory) for c in free.choices)
    found = planned(schedules=["gpipe", "1f1b"], memory_limit=limit)
    assert all(max(c.memory) <= limit for c in found.choices if c.fits)
    assert found.recommended.fits


@pytest.mark.usefixtures("even_times")
def test_the_memory_of_a_searched_schedule_is_that_of_its_actions(monkeypatch):
    searches = []

    def search(*args, **options):
        searches.append((search_schedule(*args, **options), options["saved"]))
        return searches[-1][0]

    monkeypatch.setattr(choose, "search_schedule", search)
    found = planned(schedules=["1f1b", "auto"], search_seconds=0.2)
    (schedule, saved), choice = searches[0], next(c for c in found.choices if c.schedule == "auto")
    assert choice.activations == tuple(peak_activations(row, saved) for row in schedule.schedule)
    assert min(choice.activations) > 0
    for rank, (total, peak) in enumerate(zip(choice.memory, choice.activations, strict=True)):
        own = [stage for stage, home in zip(found.stages, choice.ranks, strict=True) if home == rank]
        assert total == peak + 4 * sum(stage.parameters for stage in own)


def test_where_nothing_fits_the_smallest_limit_is_reported_and_it_fits():
    with pytest.raises(
        ValueError, match=r"memory limit of 10 bytes; the smallest limit that would do is \d+ bytes"
    ) as told:
        planned(schedules=["1f1b"], memory_limit=10)
    least = int(str(told.value).split()[-2])
    assert max(planned(schedules=["1f1b"], memory_limit=least).recommended.memory) <= least


def test_fewer_cores_than_ranks_make_the_step_as_long_as_all_the_work_on_them():
    found = planned(cores=1, schedules=["1f1b"])
    work = 4 * sum(stage.forward + stage.backward for stage in found.stages)
    assert found.recommended.step == pytest.approx(max(work, found.recommended.step))
    assert found.recommended.step >= work * 0.999
    assert "Warning: 2 ranks share 1 cores" in str(found)
    assert "Warning" not in str(planned(schedules=["1f1b"]))


def test_a_schedule_that_needs_more_stages_than_there_are_operators_is_skipped_with_the_reason():
    found = planned(mlp(1), schedules=["1f1b", "interleaved1f1b"])
    assert [c.schedule for c in found.choices] == ["1F1B"]
    assert "Interleaved1F1B with 4 stages: a model of 2 operators can't make 4 stages" in str(found)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"ranks": 0}, "ranks must be an integer of at least 1, got 0"),
        ({"micro_batches": 2.5}, "micro_batches must be an integer of at least 1, got 2.5"),
        ({"micro_batches": 9}, "a batch of 8 examples can't make 9 microbatches"),
        ({"cores": -1}, "cores must be an integer of at least 1, got -1"),
        ({"rounds": 0}, "rounds must be an integer of at least 1, got 0"),
        ({"bandwidth": 0}, "bandwidth must be a number above 0, got 0"),
        ({"latency": -1.0}, "latency must be a number of at least 0, got -1.0"),
        ({"memory_limit": 0}, "memory_limit must be a number above 0, got 0"),
        ({"optimizer_copies": -1}, "optimizer_copies must be a number of at least 0, got -1"),
        ({"schedules": ["fastest"]}, "no schedule is called 'fastest'"),
        ({"ranks": 40}, "can't make 40 stages"),
        ({"replicas": [1, 3]}, "2 ranks cannot be divided among 3 replicas"),
        ({"replicas": [0]}, r"replicas must be numbers from 1 to the 4 microbatches, got \[0\]"),
        ({"replicas": []}, r"replicas must be numbers from 1 to the 4 microbatches, got \[\]"),
    ],
)
def test_mistakes_are_reported_with_the_value(options, told):
    with pytest.raises(ValueError, match=told):
        planned(**options)


# ----------------------------------------------------------------------------------------- replicas and offloading


def test_replicas_are_compared_and_share_the_microbatches():
    found = planned(ranks=4, micro_batches=5, schedules=["1f1b"], replicas=[1, 2])
    by_count = {choice.replicas: choice for choice in found.choices}
    assert {count: choice.stages for count, choice in by_count.items()} == {1: 4, 2: 2}
    assert found.recommended is by_count[found.replicas]
    kinds = [event.action.kind for event in found.timeline.events if event.rank == 0]
    assert kinds.count(Kind.F) == (3 if found.replicas == 2 else 5)
    assert found.timeline.span == pytest.approx(found.recommended.step)
    assert "replicas" in str(found)
    assert "replicas" not in str(planned(schedules=["1f1b"]))


def test_the_sum_of_gradients_takes_time_by_the_bytes_of_the_parameters():
    found = planned(ranks=2, schedules=["gpipe"], replicas=[2], latency=1000.0, bandwidth=1.0)
    size = sum(parameter.numel() * 4 for parameter in mlp().parameters())
    # Each replica sends half of the gradients, and then half of the sums.
    assert found.recommended.step == pytest.approx(2 * (1000 + size / 2), rel=1e-3)
    assert {event.action.kind for event in found.timeline.events} >= {Kind.REDUCE_GRAD, Kind.WAIT_GRAD}
    assert found.timeline.span == pytest.approx(found.recommended.step)


def test_slow_links_between_replicas_make_one_pipeline_the_best():
    model = nn.Sequential(*[nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(4)])
    args, target = (rg.randn(8, 8),), rg.randn(8, 8)
    options = {"target": target, "loss_fn": nn.functional.mse_loss, "rounds": 1, "schedules": ["1f1b"]}
    # Parameters are larger than the values between stages.
    found = plan(model, args, 2, 4, replicas=[1, 2], latency=0.0, bandwidth=100.0, **options)
    assert found.replicas == 1


@pytest.mark.parametrize("schedule", ["1f1b", "zb-h1", "interleaved1f1b"])
def test_a_summary_of_one_replica_is_the_timeline_of_all(schedule):
    compute = make_schedule(schedule, 4, 3, ranks=2)

    def cost(action):
        return {"F": 1.0, "B": 2.0, "I": 1.25, "W": 0.75, "REDUCE_GRAD": 2.5}.get(action.kind.value, 0.125)

    def overhead(action):
        return 0.25 if action.kind.is_reduction else 0.0

    summary = simulate_costs(add_reductions(compute), chain(4), cost, overhead)
    program = make_program(compute, 4, 3, dict.fromkeys(chain(4)))
    timeline = simulate(replicate([program] * 2, reduce_gradients=True).actions, chain(4), cost, overhead, replicas=2)
    assert summary.span == timeline.span
    with_sums = simulate_costs(compute, chain(4), cost, overhead)
    assert with_sums.span < summary.span


def test_the_options_of_a_plan_with_replicas_configure_a_pipeline():
    model, (args, target) = mlp(), batch()
    found = planned(model, ranks=4, schedules=["1f1b"], replicas=[2])
    assert (found.options["replicas"], found.options["ranks"]) == (2, 2)
    expected = nn.functional.mse_loss(model(*args), target)
    loss = Pipeline(model, **found.options, loss_fn=nn.functional.mse_loss).step(*args, target=target)
    rg.testing.assert_close(loss, expected.detach())


def deep(width=8, layers=8):
    """Return a model that saves much more than its parameters, for 512 examples."""
    return nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Tanh()) for _ in range(layers)])


@pytest.mark.usefixtures("even_times")
def test_under_a_memory_limit_stages_offload_where_no_schedule_fits(monkeypatch):
    monkeypatch.setattr("retrograd.pipelining.planning.storage_cost.storage_cost", lambda: LinearCost(1e-6, 1e-10))
    args, target = batch(examples=512)
    options = {"target": target, "loss_fn": nn.functional.mse_loss, "schedules": ["gpipe"], **FREE}
    free = plan(deep(), args, 2, 8, **options).recommended
    limit = max(free.memory) / 2
    model = deep()
    found = plan(model, args, 2, 8, memory_limit=limit, **options)
    best = found.recommended
    assert best.offloaded
    assert max(best.memory) <= limit
    assert [choice.fits for choice in found.choices] == [True, False]
    assert "GPipe, offload" in str(found)
    assert "The schedule alone exceeds the memory limit. So" in str(found)
    assert "Stages that offload their activations to a file: 0" in str(found)
    assert {event.action.kind for event in found.timeline.events} >= {Kind.OFFLOAD, Kind.FETCH}
    assert found.timeline.span == pytest.approx(best.step)
    json.dumps(found.to_dict())
    expected = nn.functional.mse_loss(model(*args), target).detach()
    loss = Pipeline(model, **found.options, loss_fn=nn.functional.mse_loss).step(*args, target=target)
    rg.testing.assert_close(loss, expected)


@pytest.mark.usefixtures("even_times")
def test_where_moves_take_long_stages_recompute_instead(monkeypatch):
    args, target = batch(examples=512)
    options = {"target": target, "loss_fn": nn.functional.mse_loss, "schedules": ["gpipe"], **FREE}
    limit = max(plan(deep(), args, 2, 8, **options).recommended.memory) / 2
    monkeypatch.setattr("retrograd.pipelining.planning.storage_cost.storage_cost", lambda: LinearCost(1000.0))
    found = plan(deep(), args, 2, 8, memory_limit=limit, **options)
    best = found.recommended
    assert (best.offloaded, bool(best.recomputed)) == ((), True)
    assert max(best.memory) <= limit
    assert "GPipe, recompute *" in str(found)
    assert best.step < 1000


@pytest.mark.parametrize("name", ["gpipe", "1f1b"])
def test_recomputation_and_offloading_together_are_no_slower_than_either_alone(name):
    schedule, together = make_schedule(name, 4, 8), 0
    for move, limit in itertools.product((0.2, 1.0, 1.5, 4.0), (2.0, 3.0, 3.5)):

        def cost(action, move=move):
            return {"F": 1.0, "R": 1.0, "B": 2.0}.get(action.kind.value, move if action.kind.is_move else 0.0)

        def seconds(found, cost=cost):
            return simulate_costs(found, chain(4), cost).span

        stages = StageBytes(dict.fromkeys(range(4), 1.0), dict.fromkeys(range(4), 0.1), cost)
        alone = [with_offload(schedule, range(count), ahead=1) for count in range(1, 5)]
        alone += [with_recomputation(schedule, range(count)) for count in range(1, 5)]
        fitting = [one for one in alone if max(peak_bytes(row, stages) for row in one) <= limit]
        found = fit_memory(schedule, [limit] * 4, stages, seconds)
        assert seconds(found) <= min(map(seconds, fitting), default=math.inf)
        assert max(peak_bytes(row, stages) for row in found) <= limit * (1 + 1e-9)
        validate(lower(found, chain(4)), chain(4))
        kinds = {action.kind for row in found for action in row}
        together += seconds(found) < min(map(seconds, fitting), default=math.inf) and {Kind.R, Kind.OFFLOAD} <= kinds
    assert together


def held_at_most(actions, stages, factor):
    """Return the most bytes that a rank holds if each move takes `factor` times its seconds, and messages no time."""
    now = free = written = held = peak = 0.0
    changes, fetched = [], {}  # when moves free and take memory
    for action in actions:
        run, size = action[1:3], stages.saved[action.stage]
        moved, seconds = size - stages.inputs[action.stage], stages.cost(action)
        if action.kind.is_move:
            now = max(now, written) if action.kind is Kind.OFFLOAD else now
            begin = max(now, free)
            free = begin + seconds * factor
            if action.kind is Kind.OFFLOAD:
                written = free
                changes.append((free, -moved))
            else:
                fetched[run] = free
                changes.append((begin, moved))
            continue
        if action.kind is Kind.B:
            now = max(now, fetched.get(run, 0.0))
        changes.append((now, {"F": size}.get(action.kind.value, 0.0)))
        now += seconds
        changes.append((now, {"B": -size}.get(action.kind.value, 0.0)))
    for _, change in sorted(changes):  # what is freed comes first
        held += change
        peak = max(peak, held)
    return peak


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "interleaved1f1b"])
def test_no_rank_holds_more_than_its_peak_if_writes_take_up_to_twice_as_long_as_measured(name):
    schedule = make_schedule(name, 4, 8, ranks=2)
    for seconds, ahead, factor in itertools.product((0.3, 1.0, 4.0), (0, 1), (0.5, 1.0, 2.0)):

        def cost(action, seconds=seconds):
            return {"F": 1.0, "B": 2.0}.get(action.kind.value, seconds)

        stages = StageBytes(dict.fromkeys(range(4), 1.0), dict.fromkeys(range(4), 0.25), cost)
        for row in with_offload(schedule, [0, 1, 3], ahead=ahead):
            assert held_at_most(row, stages, factor) <= peak_bytes(row, stages)


def test_microbatches_of_one_stage_may_be_kept_recomputed_or_offloaded():
    schedule = make_schedule("gpipe", 4, 3, ranks=2)
    mixed = with_recomputation(with_offload(schedule, [(0, 0), (1, 1), (2, 0)], ahead=1), [(0, 1), (2, 2), (3, 1)])
    check(mixed, 2, 2, 3)


def test_moving_to_storage_is_measured():
    cost = storage_cost()
    assert cost.fixed > 0
    assert cost.seconds(2**30) > cost.fixed


# ----------------------------------------------------------------------------------------------------- using a plan


def test_a_plan_applied_gives_the_gradients_of_the_unsplit_model():
    model, (args, target) = mlp(), batch()
    found = planned(model)
    nn.functional.mse_loss(model(*args), target).backward()
    expected = [parameter.grad for parameter in model.parameters()]
    model.zero_grad()
    pipe = pipeline(model, args, split_policy=found.split_policy)
    assert pipe.num_stages == found.recommended.stages
    nn.functional.mse_loss(pipe(*args)[0], target).backward()
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        rg.testing.assert_close(parameter.grad, gradient)


def test_a_plan_for_another_model_is_refused():
    with pytest.raises(ValueError, match="the plan is for a model of 8 operators; this one has 4, or others"):
        pipeline(mlp(2), batch()[0], split_policy=planned().split_policy)


def test_a_model_with_a_skip_connection_and_without_a_loss_is_planned():
    class Skip(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x):
            first = self.a(x)
            return self.b(first.tanh()).tanh() + first

    found = plan(Skip(), batch()[0], 2, 4, schedules=["1f1b"], **FREE)
    assert len(found.stages) == 2


def test_the_options_of_a_plan_configure_a_pipeline():
    found = planned(schedules=["interleaved1f1b"])
    assert found.options == {
        "stages": 4,
        "ranks": 2,
        "schedule": "Interleaved1F1B",
        "micro_batches": 4,
        "split_policy": found.split_policy,
    }


def test_a_plan_prints_every_schedule_and_stage():
    found = planned(schedules=["gpipe", "1f1b"])
    text = str(found)
    assert text.startswith("2 ranks, 4 microbatches")
    for name in ("GPipe", "1F1B"):
        assert any(line.startswith(name) for line in text.splitlines())
    assert f"* {found.reason}" in text
    assert repr(found).startswith("Plan(")


def test_a_plan_is_plain_data_too():
    found = planned(schedules=["gpipe", "1f1b"])
    data = json.loads(json.dumps(found.to_dict()))
    assert data["recommended"]["schedule"] == found.schedule
    assert data["split"] == list(found.split_policy.stages)
    assert len(data["choices"]) == 2


def with_skip(width=8):
    """Return a model whose stages save inputs, outputs, both, or neither, with a value that skips stages."""

    class Skip(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(6)])

        def forward(self, x):
            h = first = self.layers[0](x).tanh()
            for layer in self.layers[1:]:
                h = nn.functional.gelu(layer(h)).tanh()
            return h * first

    return Skip()


@pytest.mark.usefixtures("even_times")
@pytest.mark.parametrize("make", [deep, with_skip, lambda: nn.Sequential(*[nn.Linear(8, 8), nn.ReLU()] * 6)])
@pytest.mark.parametrize("stages", [2, 4])
def test_a_plan_moves_the_bytes_that_stages_offload(make, stages, monkeypatch):
    monkeypatch.setattr("retrograd.pipelining.planning.storage_cost.storage_cost", lambda: LinearCost(1e-6, 1e-10))
    seen = []

    def noting(schedule, limits, sizes, seconds):
        seen.append(sizes)
        return fit_memory(schedule, limits, sizes, seconds)

    monkeypatch.setattr("retrograd.pipelining.planning.choose.fit_memory", noting)
    (args, target), model = batch(examples=512), make()
    options = {"target": target, "loss_fn": nn.functional.mse_loss, "schedules": ["gpipe"], **FREE}
    limit = max(plan(model, args, stages, 8, **options).recommended.memory) * 0.7
    found = plan(model, args, stages, 8, memory_limit=limit, **options)
    first = tuple(x[:64] for x in args)  # a microbatch
    pipe = split_as_traced(model, first, {}, split_policy=found.options["split_policy"])
    values = dict(pipe.named_inputs(first, {}))
    for stage in pipe.stages:
        with stage.prepare_offload(0):
            values |= stage.forward(0, values)
            if stage.is_last:
                goal = target[:64]
                stage.attach(0, lambda outputs, goal=goal: nn.functional.mse_loss(*outputs.values(), goal), goal)
        stage.offload(0)
        sizes, number = seen[-1], stage.stage_index
        planned = sizes.saved[number] - sizes.inputs[number] - (sizes.outputs or {}).get(number, 0.0)
        assert stage._offloadable[0]._stored.nbytes == planned, number
        stage.clear_step()
