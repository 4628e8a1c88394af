"""Stages that keep only their inputs and repeat their forward pass: the same numbers, with less memory."""

import weakref
from dataclasses import replace

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.nn.functional import mse_loss
from retrograd.pipelining import (
    AutoSchedule,
    Pipeline,
    PipelineError,
    Timeline,
    make_schedule,
    peak_activations,
    plan,
    read_csv,
    search_schedule,
    simulate,
    simulate_costs,
    with_recomputation,
    write_csv,
)
from retrograd.pipelining.planning.link_cost import LinearCost
from retrograd.pipelining.planning.simulate import unit_cost, zero_cost
from retrograd.pipelining.planning.stage_memory import measure_memory
from retrograd.pipelining.schedules import SCHEDULES
from retrograd.pipelining.schedules.actions import Kind, format_schedule, parse_schedule
from retrograd.pipelining.schedules.lowering import chain, lower, validate
from retrograd.pipelining.split.manual_stages import ManualPipe

from .matrix import check_schedule
from .test_same_numbers import check
from .test_schedule_search import random_costs


@pytest.mark.parametrize("stages", [None, [0], [1, 3]], ids=["all", "first", "two"])
@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_training_gives_the_numbers_of_the_unsplit_model(name, stages):
    schedule = with_recomputation(make_schedule(name, 4, 3, ranks=2), stages)
    check(schedule, 2, 2, 3, steps=2, scale=8.0)


class Counting(nn.Module):
    """A layer that reads and writes a buffer, and returns its exponential, which backward needs."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.calls, self.fixed = nn.Buffer(rg.zeros(3)), nn.Buffer(rg.full((3,), 0.5))
        self.results = []

    def forward(self, x):
        self.calls += 1
        h = (self.linear(x) * self.calls.clone() * self.fixed).tanh()
        self.results.append(weakref.ref(h.value))
        return h * h

    def alive(self):
        return sum(result() is not None for result in self.results)


class Watch(nn.Module):
    """A layer that notes how many results of other layers are alive when it runs."""

    def __init__(self, watched):
        super().__init__()
        self.watched, self.alive = watched, []

    def forward(self, x):
        self.alive.append(sum(layer.alive() for layer in self.watched))
        return x * 1


def trained(schedule, captured):
    rg.manual_seed(0)
    layers = [Counting().to(rg.float64) for _ in range(2)]
    model = nn.Sequential(*layers) if captured else layers
    pipeline = Pipeline(model, 2, ranks=1, schedule=schedule, micro_batches=4, loss_fn=mse_loss)
    x = rg.randn(8, 3, dtype=rg.float64)
    losses = [pipeline.step(x, target=x * 0).item() for _ in range(2)]
    gradients = [parameter.grad.numpy() for layer in layers for parameter in layer.parameters()]
    return losses, gradients, [layer.calls.tolist() for layer in layers]


@pytest.mark.parametrize("captured", [True, False])
def test_buffers_are_as_in_the_forward_pass_and_are_written_to_once(captured):
    for name in ("gpipe", "zb-h1"):
        schedule = make_schedule(name, 2, 4, ranks=1)
        expected = trained(schedule, captured)
        found = trained(with_recomputation(schedule), captured)
        assert found[0] == expected[0]
        assert found[2] == expected[2]
        for grad, wanted in zip(found[1], expected[1], strict=True):
            np.testing.assert_array_equal(grad, wanted)


def test_activations_live_only_from_the_repetition_to_the_backward_pass():
    most = {}
    for stages in ((), (0,), (0, 1)):
        layers = [Counting(), Counting()]
        watch = Watch(layers)
        model = [layers[0], nn.Sequential(layers[1], watch)]
        schedule = with_recomputation(make_schedule("gpipe", 2, 4, ranks=1), stages)
        x = rg.randn(8, 3)
        Pipeline(model, schedule=schedule, ranks=1, micro_batches=4, loss_fn=mse_loss).step(x, target=x)
        assert not watch.watched[0].alive()
        most[stages] = max(watch.alive)
    # GPipe runs all forwards first: 4 of each stage, except that the last forward of a stage is still running.
    assert most == {(): 8, (0,): 4, (0, 1): 1}


def test_a_forward_pass_that_is_repeated_saves_nothing():
    layer = Counting()
    watch = Watch([layer])
    schedule = with_recomputation(make_schedule("gpipe", 1, 3))
    x = rg.randn(6, 3)
    Pipeline([nn.Sequential(layer, watch)], schedule=schedule, micro_batches=3, loss_fn=mse_loss).step(x, target=x)
    assert watch.alive[-6:] == [0, 0, 0, 1, 1, 1]  # the forwards, and their repetitions


class Overwriting(nn.Module):
    """A stage that writes to its input."""

    def forward(self, x):
        with rg.no_grad():
            x += 1
        return x * 1


def test_a_stage_that_overwrites_its_input_is_an_error():
    model = [nn.Linear(2, 2), Overwriting(), nn.Linear(2, 2)]
    model[0].requires_grad_(False)
    x = rg.ones(4, 2)
    schedule = with_recomputation(make_schedule("gpipe", 3, 2, ranks=1))
    pipeline = Pipeline(model, schedule=schedule, ranks=1, micro_batches=2, loss_fn=mse_loss)
    with pytest.raises(PipelineError, match=r"action R1\.0: .*modified by an inplace operation"):
        pipeline.step(x, target=x)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0: R0.0 F0.0 B0.0", r"rank 0, position 0, R0\.0: needs F0\.0 before it"),
        ("0: F0.0 B0.0 R0.0", r"rank 0, position 2, R0\.0: the backward pass that needs this has been done before"),
        ("0: F0.0 I0.0 R0.0 W0.0", r"rank 0, position 2, R0\.0: the backward pass"),
        ("0: F0.0 R0.0 R0.0 B0.0", r"rank 0, position 2, R0\.0: this has been done before"),
    ],
)
def test_a_repetition_in_an_impossible_place_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        validate(parse_schedule(text), [])


def test_a_repetition_is_before_the_gradient_is_received_and_moves_nothing():
    schedule = with_recomputation(make_schedule("zb-h1", 2, 1), [0])
    program = lower(schedule, chain(2))
    assert " ".join(format_schedule(program[:1]).split()) == "0: F0.0 SEND_F0.0>1 R0.0 RECV_B0.0<1 I0.0 W0.0"
    validate(program, chain(2), buffer=0)


def test_a_file_keeps_repetitions(tmp_path):
    schedule = with_recomputation(make_schedule("zb-h1", 2, 3))
    write_csv(schedule, tmp_path / "schedule.csv")
    assert read_csv(tmp_path / "schedule.csv") == schedule


def test_the_simulated_step_is_longer_by_the_repetitions_that_nothing_hides():
    for ranks, micro_batches in ((1, 3), (2, 2), (4, 8)):
        # GPipe with all stages repeated: the ranks run m forwards, and then R and B of each microbatch in turn; the
        # first R of a rank runs while it waits for its first gradient.
        schedule = with_recomputation(make_schedule("gpipe", ranks, micro_batches))
        timeline = simulate(schedule, chain(ranks), unit_cost)
        assert timeline.span == (micro_batches + ranks - 1) + 3 * micro_batches + 2 * (ranks - 1)
        summary = simulate_costs(schedule, chain(ranks), unit_cost)
        assert (summary.span, summary.busy) == (timeline.span, [4.0 * micro_batches] * ranks)


def test_a_stage_that_recomputes_holds_one_microbatch():
    schedule = make_schedule("1f1b", 4, 8)
    assert [peak_activations(actions) for actions in schedule] == [4, 3, 2, 1]
    schedule = with_recomputation(schedule, [0, 1])
    assert [peak_activations(actions) for actions in schedule] == [1, 1, 2, 1]
    timeline = simulate(schedule, chain(4), unit_cost)
    assert [most for most, _ in timeline.peak_memory()] == [1, 1, 2, 1]
    assert isinstance(timeline, Timeline)


def costs_with_recomputation(seed, stages):
    """Return a cost function of uneven stages, whose recomputation takes the time of the forward."""
    cost = random_costs(seed, stages)
    return lambda action: cost(action._replace(kind=Kind.F) if action.kind is Kind.R else action)


@pytest.mark.parametrize(("ranks", "limit"), [(4, 2.0), (4, 2.5), (2, 2.6), (2, 4.0)])
def test_a_search_lets_stages_recompute_where_that_is_faster_within_the_limit(ranks, limit):
    for seed in range(3):
        cost, edges = costs_with_recomputation(seed, 4), chain(4)
        sizes = dict.fromkeys(range(4), 0.25)
        plain = search_schedule(4, 8, cost, ranks=ranks, memory_limit=limit, seconds=0.2)
        found = search_schedule(4, 8, cost, ranks=ranks, memory_limit=limit, seconds=0.4, inputs=sizes)
        assert found.step <= plain.step * (1 + 1e-9)
        validate(lower(found.schedule, edges), edges)
        summary = simulate_costs(found.schedule, edges, cost)
        assert (summary.span, max(summary.end)) == (pytest.approx(found.step, rel=1e-12), summary.span)
        assert {a.stage for actions in found.schedule for a in actions if a.kind is Kind.R} == set(found.recomputed)
        assert max(found.peaks) <= limit * (1 + 1e-9)
        assert found.peaks == pytest.approx([held(actions, sizes, found.recomputed) for actions in found.schedule])
        assert found.bound <= found.step * (1 + 1e-9)
        assert found.named == plain.named


def slow_messages(action):
    return 4.0 if action.peer is not None else unit_cost(action)


def held(actions, inputs, recomputed):
    """Return the most that a rank holds: 1 for activations, `inputs` of stages that recompute."""
    now = most = 0.0
    for kind, stage, _, _ in actions:
        first = inputs[stage] if stage in recomputed else 1.0
        now += {Kind.F: first, Kind.R: 1.0 - first, Kind.B: -1.0, Kind.W: -1.0}.get(kind, 0.0)
        most = max(most, now)
    return most


def test_recomputation_makes_a_limit_possible_in_which_one_stage_has_room_for_one_microbatch():
    # With room for one microbatch, a rank would wait for each gradient before the next forward.
    plain = search_schedule(2, 8, slow_messages, memory_limit=1.5, seconds=0.2)
    found = search_schedule(2, 8, slow_messages, memory_limit=1.5, seconds=0.2, inputs={0: 0.05, 1: 0.05})
    assert found.recomputed == [0]
    assert found.step < 0.6 * plain.step
    assert not search_schedule(2, 8, slow_messages, seconds=0.2, inputs={0: 0.05, 1: 0.05}).recomputed


def test_auto_lets_stages_recompute_and_trains_as_the_unsplit_model():
    sizes = {name: dict.fromkeys(range(4), size) for name, size in (("saved", 1.0), ("kept", 1.0), ("inputs", 0.05))}
    settings = AutoSchedule(memory_limit=2.5, cost=slow_messages, overhead=zero_cost, seconds=0.3, **sizes)
    found = {}
    for recompute in (True, False):
        model = nn.Sequential(*[nn.Linear(3, 3) for _ in range(4)])
        pipeline = Pipeline(
            model,
            4,
            ranks=2,
            schedule=replace(settings, recompute=recompute),
            micro_batches=3,
            loss_fn=mse_loss,
        )
        x = rg.randn(6, 3)
        pipeline.step(x, target=x)
        found[recompute] = pipeline.found
        kinds = {action.kind for actions in pipeline.program() for action in actions}
        assert (Kind.R in kinds) == recompute == bool(pipeline.found.recomputed)
    assert found[True].step < found[False].step
    check_schedule("threads", settings)


def test_the_bytes_that_a_stage_keeps_which_recomputes_are_those_of_its_inputs():
    x = rg.ones(4, 16)
    pipe = ManualPipe([nn.Linear(16, 8), nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 2))], (x,), {})
    sizes = measure_memory(pipe, pipe.named_inputs((x,), {}), lambda outputs: outputs["stage_1_0"].sum())
    assert [size.inputs for size in sizes] == [0, 4 * 8 * 4]  # the model's own input is kept by the caller
    assert sizes[1].saved > 2 * sizes[1].inputs


@pytest.mark.usefixtures("even_times")
def test_a_plan_finds_schedules_within_limits_that_no_named_one_keeps(monkeypatch):
    monkeypatch.setattr(
        "retrograd.pipelining.planning.storage_cost.storage_cost", lambda: LinearCost(1000.0)
    )  # too slow to offload
    model = nn.Sequential(*[nn.Sequential(nn.Linear(16, 16), nn.Tanh()) for _ in range(8)])
    x = rg.randn(512, 16)
    common = {"ranks": 2, "micro_batches": 8, "rounds": 1, "latency": 5e-3, "bandwidth": 1e9, "search_seconds": 2.0}
    with pytest.raises(ValueError, match=r"smallest limit that would do is \d+ bytes") as told:
        plan(model, (x,), schedules=["gpipe"], memory_limit=1000, **common)
    limit = 0.4 * int(str(told.value).split()[-2])
    with pytest.raises(ValueError, match="no split over 2 ranks is within the memory limit"):
        plan(model, (x,), schedules=["gpipe"], memory_limit=limit, **common)
    found = plan(model, (x,), schedules=["gpipe", "auto"], memory_limit=limit, **common)
    assert found.recommended.schedule == "auto"
    assert max(found.recommended.memory) <= limit
    assert "Stages that recompute their forward passes: 0" in str(found)
    assert found.timeline.span == pytest.approx(found.recommended.step)
    Pipeline(model, **found.options, loss_fn=mse_loss).step(x, target=x)
