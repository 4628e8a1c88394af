"""Schedules in two directions have the order, bubble and memory of their papers, and refuse what cannot work."""

import copy

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.nn.functional import mse_loss
from retrograd.pipelining import (
    Checkpoints,
    Pipeline,
    PipelineError,
    PipelineStage,
    get_schedule_class,
    plan,
    simulate_costs,
)
from retrograd.pipelining.planning.simulate import consecutive_steps, peak_activations, simulate
from retrograd.pipelining.planning.sweep import sweep
from retrograd.pipelining.schedules import make_schedule, one_directional, stage_directions
from retrograd.pipelining.schedules.actions import Kind, format_schedule, parse_schedule
from retrograd.pipelining.schedules.lowering import chain, lower, validate
from retrograd.pipelining.schedules.tables import read_csv, write_csv

from .rank_threads import run_ranks

NAMES = ["chimera", "dualpipe"]
RANKS = (2, 4, 6, 8)


def idle(name, ranks, micro_batches, f, i, w):
    """Return the idle seconds of the rank that takes longest from its first to its last computation."""
    seconds = {Kind.F: f, Kind.I: i, Kind.W: w, Kind.B: i + w}
    schedule = make_schedule(name, ranks, micro_batches)
    summary = simulate_costs(schedule, chain(ranks), lambda action: seconds.get(action.kind, 0.0))
    return max(e - s for s, e in zip(summary.start, summary.end, strict=True)) - max(summary.busy)


def test_chimera_is_the_figure_of_its_paper():
    text = format_schedule(make_schedule("chimera", 4, 4))
    assert [" ".join(line.split()) for line in text.splitlines()] == [
        "0: F0.0 F0.2 F3.1 B3.1 F3.3 B3.3 B0.0 B0.2",
        "1: F1.0 F2.1 F1.2 F2.3 B2.1 B1.0 B2.3 B1.2",
        "2: F1.1 F2.0 F1.3 F2.2 B2.0 B1.1 B2.2 B1.3",
        "3: F0.1 F0.3 F3.0 B3.0 F3.2 B3.2 B0.1 B0.3",
    ]


def test_chimera_is_idle_for_two_slots_less_than_it_has_ranks():
    for p in RANKS:
        for k in (1, 2, 3, 5):
            assert idle("chimera", p, k * p, 1.0, 0.5, 0.5) == p - 2
            for b in (2.0, 3.0):
                assert idle("chimera", p, k * p, 1.0, b - 1.0, 1.0) == (p - 2) * (b + (k - 1) * (b - 1.0))


@pytest.mark.parametrize(("f", "i", "w"), [(1.0, 1.0, 1.0), (4.0, 4.0, 3.0), (3.0, 4.0, 2.0)])
def test_dual_pipe_is_idle_for_no_longer_than_its_description_says(f, i, w):
    for p in RANKS:
        for m in (2 * p, 2 * p + 2, 4 * p):
            assert idle("dualpipe", p, m, f, i, w) <= (p / 2 - 1) * ((f + i + w) + (i + w) - 3 * w)


def test_ranks_hold_the_activations_of_the_papers():
    for p in RANKS:
        peaks = [peak_activations(row) for row in make_schedule("chimera", p, 3 * p)]
        assert (min(peaks), max(peaks), peaks[0]) == (p // 2 + 1, p, p // 2 + 1)
        assert [peak_activations(row) for row in make_schedule("dualpipe", p, 2 * p)] == [p + 1] * p


@pytest.mark.parametrize("name", NAMES)
def test_the_two_ends_run_mirror_images_of_each_other(name):
    for p in RANKS:
        rows = make_schedule(name, p, 2 * p)
        for rank, row in enumerate(rows):
            mirrored = [action._replace(micro_batch=action.micro_batch ^ 1) for action in row]
            if name == "chimera":  # where both directions could go on, the first one does, in both
                assert sorted(mirrored) == sorted(rows[-1 - rank])
            else:
                assert mirrored == rows[-1 - rank]


@pytest.mark.parametrize("name", NAMES)
def test_every_stage_has_the_rank_at_each_end_and_a_microbatch_stays_in_its_direction(name):
    directions = stage_directions(name, 8, 4)
    assert [directions.ranks(stage) for stage in (0, 2, 4, 6)] == [[0, 3], [1, 2], [2, 1], [3, 0]]
    for rank, row in enumerate(make_schedule(name, 8, 7, ranks=4)):
        assert {directions.rank(action.stage, action.micro_batch) for action in row} == {rank}
        assert {action.stage for action in row} == set(directions.stages(rank))


@pytest.mark.parametrize("name", NAMES)
def test_the_events_of_a_simulation_add_up_to_its_summary_and_steps_follow_each_other(name):
    schedule = make_schedule(name, 4, 5)

    def cost(action):
        return {"F": 1.0, "B": 2.0, "I": 1.0, "W": 1.0}.get(action.kind.value, 0.25) + 0.1 * action.stage

    summary, timeline = simulate_costs(schedule, chain(4), cost), simulate(schedule, chain(4), cost)
    assert summary.span == pytest.approx(timeline.span)
    two = consecutive_steps(schedule, 2)
    validate(lower(two, chain(4)), chain(4))
    assert simulate_costs(two, chain(4), cost).busy == pytest.approx([2 * busy for busy in summary.busy])


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("0: F0.0 B0.0 F0.1\n1: B0.1", r"rank 1, position 0, B0\.1: rank 0 computes stage 0 too"),
        ("0: F0.0 B0.0\n1: F0.1", r"rank 1 never runs B0\.1"),
        ("0: F0.0 B0.0 F0.2 B0.2\n1: F0.1 B0.1 F0.4 B0.4", r"rank 1, position 2, F0\.4: rank 0 computes stage 0 too"),
    ],
)
def test_a_microbatch_in_the_wrong_direction_is_refused(text, wrong):
    with pytest.raises(ValueError, match=wrong):
        validate(lower(parse_schedule(text), ()), ())


def test_a_send_to_the_rank_of_the_other_direction_is_refused():
    program = lower(make_schedule("chimera", 4, 4), chain(4))
    moved = next(action for action in program[0] if action.kind is Kind.SEND_F)
    program[3].insert(1, program[0].pop(program[0].index(moved)))
    with pytest.raises(ValueError, match=r"rank 3, position 1, SEND_F0\.0>1: stage 0 is on rank 0"):
        validate(program, chain(4))


@pytest.mark.parametrize("name", NAMES)
def test_other_numbers_of_ranks_and_replicas_are_refused_before_anything_runs(name):
    for options in ({"ranks": 3}, {"stages": 3}, {"stages": 6, "ranks": 3}):
        with pytest.raises(ValueError, match="over an even number of ranks, got 3"):
            Pipeline(nn.Linear(2, 2), schedule=name, **options)
    with pytest.raises(ValueError, match="no replicas; got 2"):
        Pipeline(nn.Linear(2, 2), schedule=name, replicas=2, micro_batches=4)
    given = make_schedule(name, 2, 2)
    pipeline = Pipeline([nn.Linear(2, 2)] * 2, schedule=given, replicas=2, micro_batches=4, loss_fn=mse_loss)
    with pytest.raises(ValueError, match="no replicas"):
        pipeline.step(rg.ones(4, 2), target=rg.ones(4, 2))


def layers(*more):
    """Return the same stages each time, in double precision."""
    rg.manual_seed(0)
    return [nn.Sequential(nn.Linear(3, 3), *more, nn.Tanh()).to(rg.float64) for _ in range(4)]


def batch(rows=8):
    r = np.random.default_rng(1)
    return rg.tensor(r.normal(size=(rows, 3))), rg.tensor(r.normal(size=(rows, 3)))


@pytest.mark.parametrize("name", NAMES)
def test_a_model_that_writes_to_buffers_is_refused_and_keeps_them(name):
    stages, (x, y) = layers(nn.BatchNorm1d(3)), batch()
    pipeline = Pipeline(stages, schedule=name, micro_batches=2, loss_fn=mse_loss)
    pipeline.model.eval()
    pipeline.step(x, target=y)
    pipeline.model.train()
    pipeline.materialize(x)  # calls the modules, to find their values
    buffers = {key: value.numpy().tobytes() for key, value in pipeline.model.named_buffers()}
    with pytest.raises(PipelineError, match=r"writes to the buffer 'running_mean'; in two directions"):
        pipeline.step(x, target=y)
    assert {key: value.numpy().tobytes() for key, value in pipeline.model.named_buffers()} == buffers


@pytest.mark.parametrize("name", NAMES)
def test_a_file_in_two_directions_trains_as_the_unsplit_model(name, tmp_path):
    write_csv(make_schedule(name, 4, 4), tmp_path / "two.csv")
    assert read_csv(tmp_path / "two.csv") == make_schedule(name, 4, 4)
    stages, (x, y) = layers(), batch()
    expected = nn.Sequential(*copy.deepcopy(stages))
    mse_loss(expected(x), y).backward()
    Pipeline(stages, schedule=tmp_path / "two.csv", micro_batches=4, loss_fn=mse_loss).step(x, target=y)
    for stage, wanted in zip(stages, expected, strict=True):
        rg.testing.assert_close(stage[0].weight.grad, wanted[0].weight.grad, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_the_microbatches_of_a_step_may_be_of_any_number(name):
    stages, (x, y) = layers(), batch(6)
    expected = nn.Sequential(*copy.deepcopy(stages))
    pipeline = Pipeline(stages, schedule=name, micro_batches=4, loss_fn=mse_loss)
    for sizes in ([6], [1, 5], [2, 2, 2]):
        pipeline.step_microbatches([(part,) for part in x.split(sizes)], target_mbs=y.split(sizes))
        mse_loss(expected(x), y).backward()
    for stage, wanted in zip(stages, expected, strict=True):
        rg.testing.assert_close(stage[0].bias.grad, wanted[0].bias.grad, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_several_steps_at_once_have_the_bits_of_single_steps(name):
    x, y = batch()
    states = []
    for validate_norm in ("before", "after"):
        stages = layers()
        pipeline = Pipeline(stages, schedule=name, micro_batches=4, loss_fn=mse_loss)
        optimizer = rg.optim.AdamW(pipeline.model.parameters(), lr=0.1)
        pipeline.train_steps([(x, y)] * 4, optimizer, max_norm=0.5, validate=validate_norm)
        states.append([value.numpy().tobytes() for value in pipeline.state_dict().values()])
    assert states[0] == states[1]


@pytest.mark.parametrize("name", NAMES)
def test_a_checkpoint_has_every_parameter_once_and_another_schedule_restores_it(name, tmp_path):
    stages, (x, y) = layers(), batch()
    pipeline = Pipeline(stages, schedule=name, micro_batches=4, loss_fn=mse_loss)
    optimizer = rg.optim.AdamW(pipeline.model.parameters(), lr=0.1)
    pipeline.step(x, target=y)
    optimizer.step()
    assert pipeline.homes() == {f"{n}.0.{key}": n for n in range(4) for key in ("weight", "bias")}
    Checkpoints(tmp_path).save(1, pipeline, optimizer)
    other = Pipeline(layers(), schedule="1f1b", micro_batches=2, loss_fn=mse_loss)
    Checkpoints(tmp_path).restore(other, rg.optim.AdamW(other.model.parameters(), lr=0.1))
    for key, value in other.state_dict().items():
        assert value.numpy().tobytes() == pipeline.state_dict()[key].numpy().tobytes(), key


@pytest.mark.parametrize("name", ["Chimera", "DualPipe"])
def test_schedule_classes_give_both_ends_their_losses_and_all_ranks_the_sums_of_gradients(name):
    stages, (x, y) = layers(), batch()
    expected = nn.Sequential(*copy.deepcopy(stages))
    losses = [mse_loss(expected(a), b) for a, b in zip(x.chunk(4), y.chunk(4), strict=True)]
    (sum(losses[1:], start=losses[0]) / 4).backward()
    directions = stage_directions(name, 4, 4)

    def script(rank, group):
        own = [copy.deepcopy(stages[index]) for index in directions.stages(rank)]
        parts = [
            PipelineStage(part, index, 4, rg.device("cpu"), group=group)
            for index, part in zip(directions.stages(rank), own, strict=True)
        ]
        schedule, found = get_schedule_class(name)(parts, 4, loss_fn=mse_loss), []
        at_an_end = rank in (0, 3)
        out = schedule.step(*[x] * at_an_end, **({"target": y, "losses": found} if at_an_end else {}))
        gradients = {stage.stage_index: stage.submod[0].weight.grad for stage in parts}
        return [loss.item() for loss in found], out, gradients

    results = run_ranks(4, script)
    assert results[3][0] == pytest.approx([losses[0].item(), losses[2].item()], rel=1e-12)
    assert results[0][0] == pytest.approx([losses[1].item(), losses[3].item()], rel=1e-12)
    rg.testing.assert_close(results[3][1], expected(rg.cat([x[:2], x[4:6]])), rtol=1e-12, atol=1e-14)
    assert results[1][1] is None
    for _, _, gradients in results:
        for index, gradient in gradients.items():
            rg.testing.assert_close(gradient, expected[index][0].weight.grad, rtol=1e-12, atol=1e-14)


def test_a_class_refuses_the_stages_of_one_direction():
    def script(rank, group):
        part = PipelineStage(nn.Linear(2, 2), rank, 2, rg.device("cpu"), group=group)
        with pytest.raises(ValueError, match=rf"rank {rank} of 2 runs the stages \[0, 1\] of 2, but was given"):
            get_schedule_class("Chimera")([part], 2, loss_fn=mse_loss)

    run_ranks(2, script)


def test_a_plan_counts_the_parameters_of_both_copies():
    rg.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(4)])
    x, y = rg.randn(4, 64), rg.randn(4, 64)
    found = plan(model, (x,), target=y, loss_fn=mse_loss, ranks=2, micro_batches=4, schedules=["1f1b", *NAMES])
    memory = {choice.schedule: min(choice.memory) - max(choice.activations) for choice in found.choices}
    parameters = sum(p.numel() * 4 for p in model.parameters())
    for kind in ("Chimera", "DualPipe"):
        assert memory[kind] >= memory["1F1B"] + parameters / 2


def test_a_sweep_lists_them_for_even_numbers_of_ranks():
    assert {row.schedule for row in sweep([3], [1], [6])} == {
        kind.name for kind in one_directional() if kind.per_rank == 1
    }
    row = next(row for row in sweep([4], [1], [4]) if row.schedule == "Chimera")
    assert row.memory == 4
    assert row.step == 12 + 2 * 2
