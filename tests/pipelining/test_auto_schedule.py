"""`Pipeline(schedule="auto")`: the unsplit model's numbers, no slower than a named schedule, within the memory."""

import math
from dataclasses import replace

import pytest
from tests.pipelining.matrix import check_schedule

import retrograd as rg
from retrograd import nn
from retrograd.nn.functional import mse_loss
from retrograd.pipelining import AutoSchedule, Pipeline, TrivialLossWrapper, simulate_costs
from retrograd.pipelining.planning.auto_schedule import AutoSearch, _halved
from retrograd.pipelining.planning.schedule_search import search_schedule
from retrograd.pipelining.planning.simulate import unit_cost, zero_cost
from retrograd.pipelining.planning.stage_cost import TrialStep
from retrograd.pipelining.planning.stage_memory import measure_memory
from retrograd.pipelining.schedules import make_schedule, one_directional
from retrograd.pipelining.schedules.lowering import chain
from retrograd.pipelining.schedules.program import make_program
from retrograd.pipelining.split.manual_stages import ManualPipe
from retrograd.pipelining.transports.threads import Threads


def model_and_data(layers=8):
    rg.manual_seed(0)
    model = nn.Sequential(*[nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(layers)])
    return model, rg.randn(16, 8), rg.randn(16, 8)


def found_by(settings, ranks=2, **options):
    model, x, y = model_and_data()
    pipeline = Pipeline(model, 4, ranks=ranks, schedule=settings, micro_batches=8, loss_fn=mse_loss, **options)
    pipeline.step(x, target=y)
    return pipeline


@pytest.mark.parametrize("schedule", ["auto", AutoSchedule(memory_limit=1e6, seconds=0.1, rounds=1)])
def test_training_gives_the_numbers_of_the_unsplit_model(schedule):
    check_schedule("threads", schedule)


def test_the_schedule_is_no_slower_than_a_named_one_for_the_costs_given():
    def cost(action):
        return {"F": 1.0, "I": 1.5, "W": 0.5, "B": 2.0}.get(action.kind.value, 0.3) * (1 + (action.stage == 2))

    def overhead(action):
        return 0.1

    found = found_by(AutoSchedule(cost=cost, overhead=overhead, seconds=0.2, rounds=1)).found
    assert simulate_costs(found.schedule, chain(4), cost, overhead).span == pytest.approx(found.step, rel=1e-12)
    for name in (kind.name for kind in one_directional()):
        named = simulate_costs(make_schedule(name, 4, 8, ranks=2), chain(4), cost, overhead)
        assert found.step <= named.span * (1 + 1e-12)


def test_ranks_hold_no_more_than_the_limit_in_bytes():
    sizes = {"saved": dict.fromkeys(range(4), 100.0), "kept": dict.fromkeys(range(4), 130.0)}
    found = found_by(AutoSchedule(cost=unit_cost, overhead=unit_cost, memory_limit=420, seconds=0.2, **sizes)).found
    assert max(found.peaks) <= 420
    small = AutoSchedule(cost=unit_cost, overhead=unit_cost, memory_limit=199, seconds=0.1, **sizes)
    found = found_by(small).found
    assert found.recomputed
    assert max(found.peaks) <= 199
    with pytest.raises(ValueError, match=r"no schedule is within the memory limit of 199; .* save 260.0 bytes"):
        found_by(replace(small, recompute=False))


def test_the_schedule_with_the_quickest_trial_steps_is_kept(monkeypatch):
    runs = []

    def seconds(step, transport):
        runs.append(step.program)
        return {"1F1B": 3.0, "ZB-H2": 1.0}.get(names.get(str(step.program.actions)), 2.0) + len(runs) % 2

    programs = {name: make_program(make_schedule(name, 4, 8, ranks=2), 4, 8, chain(4)) for name in ("1F1B", "ZB-H2")}
    names = {str(program.actions): name for name, program in programs.items()}
    monkeypatch.setattr(TrialStep, "seconds", seconds)
    # Measured steps of a busy machine may be so long that there is no time for the schedule that is to be found.
    costs = (lambda action: 1e-3 * unit_cost(action)), zero_cost
    monkeypatch.setattr(AutoSearch, "_measured_seconds", lambda *_: costs)
    pipeline = found_by(AutoSchedule(seconds=2.0, rounds=1, memory_limit=1e6))
    found = pipeline.found
    assert found.origin == "ZB-H2"
    assert pipeline.program() == programs["ZB-H2"].actions
    assert max(found.peaks) <= 1e6
    assert set(found.measured) >= set(programs)
    tried = len(runs)
    again = found_by(AutoSchedule(seconds=1e-6, rounds=1))  # no time for trials
    assert (again.found.measured, len(runs)) == ({}, tried)


def test_trials_run_in_turns_and_drop_the_slower_half_after_each_round():
    calls = []

    def timer(number, *seconds):
        values = iter(seconds)
        return lambda: calls.append(number) or next(values)

    several = [timer(1, 2.0, 8.0), timer(2, 3.0, 3.0, 6.0, 6.0), timer(3, 9.0), timer(4, *[4.0] * 4)]
    assert list(_halved([timer(0, 5.0), *several], 4).items()) == [(4, 4.0), (2, 4.5), (1, 5.0), (0, 5.0), (3, 9.0)]
    assert calls == [0, 1, 2, 3, 4, 1, 2, 4, 2, 4, 2, 4]


def test_measuring_changes_no_gradient_buffer_or_generator():
    model, x, y = model_and_data()
    model.append(nn.BatchNorm1d(8))
    model.append(nn.Dropout(0.5))
    expected = {name: value.clone() for name, value in model.state_dict().items()}
    pipeline = Pipeline(
        model, 2, ranks=2, micro_batches=1, loss_fn=mse_loss, schedule=AutoSchedule(seconds=0.1, rounds=1)
    )
    rg.manual_seed(3)
    loss = pipeline.step(x, target=y)
    after = rg.rand(3)
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    model.load_state_dict(expected)
    model.zero_grad()
    rg.manual_seed(3)
    unsplit = mse_loss(model(x), y)
    unsplit.backward()
    rg.testing.assert_close(loss, unsplit.detach(), rtol=1e-5, atol=1e-6)
    rg.testing.assert_close(after, rg.rand(3))
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        rg.testing.assert_close(parameter.grad, gradient, rtol=1e-4, atol=1e-6)


def test_other_numbers_of_microbatches_keep_stages_on_their_ranks():
    pipeline = found_by(AutoSchedule(seconds=0.1, rounds=1))
    placement, homes = pipeline.found.placement, pipeline.homes()
    _, x, y = model_and_data()
    pipeline.step_microbatches([(x,), (x,), (x,)], target_mbs=[y, y, y])
    pipeline.predict(x[:3])
    assert pipeline.found.placement == placement
    assert pipeline.homes() == homes


def test_predictions_before_the_first_step_need_no_costs():
    model, x, _ = model_and_data()
    pipeline = Pipeline(model, 4, ranks=2, schedule="auto", micro_batches=8, loss_fn=mse_loss)
    rg.testing.assert_close(pipeline.predict(x), model(x).detach())
    assert pipeline.found is None


def test_two_stages_per_rank_are_the_default():
    model, x, y = model_and_data()
    pipeline = Pipeline(model, ranks=2, schedule=AutoSchedule(seconds=0.1, rounds=1), micro_batches=4, loss_fn=mse_loss)
    pipeline.step(x, target=y)
    assert len(pipeline.found.placement) == 4


def test_the_memory_of_stages_is_what_their_runs_refer_to():
    x = rg.ones(4, 16)
    modules = [nn.Linear(16, 16), nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.LayerNorm(16)), nn.Linear(16, 1)]
    pipe = ManualPipe(modules, (x,), {})
    sizes = measure_memory(pipe, pipe.named_inputs((x,), {}), lambda outputs: outputs["stage_2_0"].sum())
    row = 4 * 16 * 4  # bytes of a value
    # The model's own input is not counted; the backward pass starts from the output, and W needs its gradient.
    assert sizes[0] == (row, row, 0, row)
    assert row * 3 <= sizes[1].saved < row * 5  # the input and output, the result of tanh, and statistics
    assert sizes[1].outputs == row
    assert sizes[1].kept > row * 2  # the input and the gradient of the linear layer, and more for the norm
    assert sizes[2].saved == row + sizes[2].outputs == row + 4, "and the loss"


def test_memory_that_grows_at_the_input_half_is_within_the_limit():
    saved, kept = dict.fromkeys(range(4), 1.0), dict.fromkeys(range(4), 1.5)
    for limit in (1.5, 2.0, 4.25, math.inf):
        found = search_schedule(4, 8, unit_cost, saved=saved, kept=kept, memory_limit=limit, seconds=0.1)
        for actions in found.schedule:
            held = 0.0
            for action in actions:
                held += {"F": 1.0, "I": 0.5}.get(action.kind.value, 0.0)
                assert held <= limit
                held -= {"W": 1.5, "B": 1.0}.get(action.kind.value, 0.0)


def test_a_model_that_returns_its_loss_trains_too():
    model, x, y = model_and_data()
    wrapped = TrivialLossWrapper(model, mse_loss)
    settings = AutoSchedule(seconds=0.1, rounds=1)
    pipeline = Pipeline(wrapped, 2, ranks=2, schedule=settings, micro_batches=4)
    loss = pipeline.step(x, y)
    rg.testing.assert_close(loss, mse_loss(model(x), y).detach(), rtol=1e-5, atol=1e-6)
    assert set(pipeline.costs(x, y)) >= {("F", 0), ("F", 1)}


def test_a_list_of_modules_is_scheduled_too():
    model, x, y = model_and_data()
    modules = [nn.Sequential(*model[:2]), nn.Sequential(*model[2:])]
    settings = AutoSchedule(seconds=0.1, rounds=1)
    pipeline = Pipeline(modules, ranks=2, schedule=settings, micro_batches=4, loss_fn=mse_loss)
    loss = pipeline.step(x, target=y)
    rg.testing.assert_close(loss, mse_loss(model(x), y).detach(), rtol=1e-5, atol=1e-6)


def test_a_process_without_memory_for_all_stages_measures_nothing_and_keeps_their_placement():
    with rg.device("meta"):
        model = nn.Linear(2, 2)
    with pytest.raises(NotImplementedError, match="name a schedule, or pass"):
        AutoSearch(AutoSchedule(), Threads(), 2).measure(model, None, None, None, 1, None)
    sizes = dict.fromkeys(("saved", "kept", "inputs"), dict.fromkeys(range(4), 1.0))
    given = AutoSchedule(cost=unit_cost, overhead=unit_cost, placements=[[0, 1, 1, 0]], seconds=0.1, **sizes)
    search = AutoSearch(given, Threads(), 2)
    search.measure(model, None, None, None, 1, None)
    assert search.program(4, 4, chain(4), False).placement == [0, 0, 1, 1]
