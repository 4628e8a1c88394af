"""Stages that keep only their inputs and repeat their forward pass: the same numbers, with less memory."""

import weakref

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.nn.functional import mse_loss
from retrograd.pipelining import (
    Pipeline,
    PipelineError,
    Timeline,
    make_schedule,
    peak_activations,
    read_csv,
    simulate,
    simulate_costs,
    with_recomputation,
    write_csv,
)
from retrograd.pipelining.planning.simulate import unit_cost
from retrograd.pipelining.schedules import SCHEDULES
from retrograd.pipelining.schedules.actions import format_schedule, parse_schedule
from retrograd.pipelining.schedules.lowering import chain, lower, validate

from .test_same_numbers import check


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
        self.results.append(weakref.ref(h))
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
