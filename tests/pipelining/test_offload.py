"""Stages that move activations to a file and back: the same numbers, with less memory in between."""

import threading
from dataclasses import replace

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.nn.functional import mse_loss
from retrograd.pipelining import (
    Pipeline,
    PipelineError,
    PipelineScheduleMulti,
    PipelineStage,
    make_schedule,
    peak_activations,
    read_csv,
    search_schedule,
    simulate,
    simulate_costs,
    with_offload,
    with_recomputation,
    write_csv,
)
from retrograd.pipelining.planning.memory_fit import StageBytes, peak_bytes
from retrograd.pipelining.runtime.offload import OffloadableRun
from retrograd.pipelining.schedules import SCHEDULES
from retrograd.pipelining.schedules.actions import Kind, parse_schedule
from retrograd.pipelining.schedules.lowering import chain, lower, validate

from .matrix import check_schedule, offload_settings
from .test_recomputation import Counting, Watch
from .test_same_numbers import check


@pytest.mark.parametrize("stages", [None, [1, 3]], ids=["all", "two"])
@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_training_gives_the_numbers_of_the_unsplit_model(name, stages):
    schedule = with_offload(make_schedule(name, 4, 3, ranks=2), stages)
    check(schedule, 2, 2, 3, steps=2, scale=8.0)


def test_some_stages_may_offload_while_others_recompute():
    schedule = with_recomputation(with_offload(make_schedule("zb-h1", 4, 3, ranks=2), [0, 2]), [1, 3])
    check(schedule, 2, 2, 3)


def test_activations_are_in_memory_only_around_their_computations():
    most = {}
    for offloading in (True, False):
        layers = [Counting(), Counting()]
        watch = Watch(layers)
        schedule = make_schedule("gpipe", 2, 4, ranks=1)
        schedule = with_offload(schedule) if offloading else schedule
        x = rg.randn(8, 3)
        model = [layers[0], nn.Sequential(layers[1], watch)]
        Pipeline(model, schedule=schedule, ranks=1, micro_batches=4, loss_fn=mse_loss).step(x, target=x)
        most[offloading] = max(watch.alive)
    assert most[False] == 8
    assert most[True] <= 2  # of the forward that is running, and of the one that is being written


LAYOUTS = {
    "rows": lambda a: a * 1,
    "columns": lambda a: (a * 1).T,
    "reversed": lambda a: (a * 1)[::-1, 1::2],
    "expanded": lambda a: np.broadcast_to((a * 1)[:, :1], a.shape),
    "empty": lambda a: a[:0] * 1,
    "one number": lambda a: a[0, 0] * np.ones((), a.dtype),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8])
def test_arrays_of_any_layout_come_back(layout, dtype):
    array = layout(np.arange(24).reshape(4, 6).astype(dtype))
    array = np.asarray(array)
    run, x = OffloadableRun(), rg.from_numpy(array)
    saved = [run._pack(x), run._pack(x[:1] if array.ndim else x)]
    strides, expected = array.strides, array.copy()
    run.offload([])
    assert [one.tensor for one in saved] == [None, None]
    del array, x
    run.fetch()
    assert saved[0].tensor.value.strides == strides
    np.testing.assert_array_equal(saved[0].tensor.value, expected)
    np.testing.assert_array_equal(saved[1].tensor.value, expected[:1] if expected.ndim else expected)
    assert saved[0].tensor.dtype == dtype


def test_memory_is_written_once_and_not_where_others_use_it():
    run, a, b = OffloadableRun(), rg.ones(100), rg.ones(10)
    saved = [run._pack(x) for x in (a, a[5:], b)]
    run.offload([b[:1]])
    assert run._stored.nbytes == 400
    assert [one.tensor is None for one in saved] == [True, True, False]
    run.fetch()
    assert saved[1].tensor.value.base is saved[0].tensor.value.base


def test_parameters_inputs_and_outputs_stay_in_memory():
    for module, size in ((nn.Linear(3, 3), 0), (nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 3)), 2 * 5 * 4)):
        stage = PipelineStage(module, 0, 1, "cpu")
        with stage.prepare_offload(0):
            stage.forward(0, stage.model_inputs((rg.ones(2, 3),), {}))
        stage.offload(0)
        assert stage._offloadable[0]._stored.nbytes == size
        stage.clear_step()  # closes the file, which would be a warning otherwise


@pytest.mark.parametrize("interface", ["Pipeline", "PipelineScheduleMulti"])
def test_targets_that_a_loss_saves_stay_in_memory(interface, monkeypatch, tmp_path):
    kept, offload = [], OffloadableRun.offload

    def note(self, others):
        others = list(others)
        kept.append(any(isinstance(other, rg.Tensor) and rg.equal(other, target) for other in others))
        offload(self, others)

    monkeypatch.setattr(OffloadableRun, "offload", note)
    order, model = with_offload(make_schedule("gpipe", 2, 2, ranks=1)), [nn.Linear(3, 3), nn.Tanh()]
    x, target = rg.randn(4, 3), rg.randn(1, 3).expand(2, 3).clone()
    if interface == "Pipeline":
        Pipeline(model, schedule=order, ranks=1, micro_batches=2, loss_fn=mse_loss).step(x, target=target.repeat(2, 1))
    else:
        write_csv(order, tmp_path / "order.csv")
        schedule = PipelineScheduleMulti(
            [PipelineStage(part, i, 2, "cpu") for i, part in enumerate(model)], 2, mse_loss
        )
        schedule._load_csv(tmp_path / "order.csv")
        schedule.step(x, target=target.repeat(2, 1))
    assert kept == 2 * [False, True]  # stages 0 and 1 of each microbatch


def test_bfloat16_comes_back():
    run, x = OffloadableRun(), rg.ones(3, dtype=rg.bfloat16)
    saved = run._pack(x)
    run.offload([])
    run.fetch()
    assert saved.tensor.dtype == rg.bfloat16
    assert saved.tensor.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0: F0.0 OFFLOAD0.0 B0.0", r"rank 0, position 2, B0\.0: needs FETCH0\.0 before it"),
        ("0: F0.0 OFFLOAD0.0 I0.0 FETCH0.0 W0.0", r"rank 0, position 2, I0\.0: needs FETCH0\.0"),
        ("0: F0.0 FETCH0.0 B0.0", r"rank 0, position 1, FETCH0\.0: needs OFFLOAD0\.0"),
        ("0: OFFLOAD0.0 F0.0 B0.0", r"rank 0, position 0, OFFLOAD0\.0: needs F0\.0"),
        ("0: F0.0 B0.0 OFFLOAD0.0", r"rank 0, position 2, OFFLOAD0\.0: the backward pass that needs this"),
        ("0: F0.0 OFFLOAD0.0 R0.0 B0.0", r"rank 0, position 2, R0\.0: a forward pass that is repeated has no"),
        ("0: F0.0 R0.0 OFFLOAD0.0 B0.0", r"rank 0, position 2, OFFLOAD0\.0: a forward pass that is repeated has no"),
    ],
)
def test_a_move_in_an_impossible_place_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        validate(parse_schedule(text), [])


def test_a_file_keeps_moves(tmp_path):
    schedule = with_offload(make_schedule("zb-h1", 2, 3))
    write_csv(schedule, tmp_path / "schedule.csv")
    assert read_csv(tmp_path / "schedule.csv") == schedule
    validate(lower(schedule, chain(2)), chain(2), buffer=1)


def moving_cost(action):
    return 0.25 if action.kind.is_move else float(action.kind.is_compute)


@pytest.mark.parametrize(
    ("ahead", "span"),
    [
        (0, 4 + 4 + 0.5 + 3 * 0.25),  # every fetch is waited for, the first one also for the last write
        (1, 4 + 4),
    ],
)
def test_moves_run_in_the_background_and_are_no_computation(ahead, span):
    schedule = with_offload(make_schedule("gpipe", 1, 4), ahead=ahead)
    timeline, summary = simulate(schedule, [], moving_cost), simulate_costs(schedule, [], moving_cost)
    assert timeline.span == summary.span == span
    assert summary.busy == [8.0]
    assert summary.bubble == timeline.bubble() == pytest.approx(1 - 8 / span)
    assert {event.action.kind for event in timeline.events} == {Kind.F, Kind.B, Kind.OFFLOAD, Kind.FETCH}


def test_activations_in_memory_are_counted_without_those_that_are_stored():
    counts = [peak_activations(*with_offload(make_schedule("gpipe", 1, 4), ahead=ahead)) for ahead in (0, 1, 2)]
    assert counts == [1, 2, 3]
    timeline = simulate(with_offload(make_schedule("gpipe", 1, 4)), [], moving_cost)
    assert timeline.peak_memory() == [(1, None)]


def test_moves_that_take_longer_than_the_computations_determine_the_step():
    def cost(action):
        return 2.0 if action.kind.is_move else 1.0

    schedule = with_offload(make_schedule("gpipe", 1, 4), ahead=1)
    # Four writes and four reads one after the other, from the end of the first forward to the last backward.
    assert simulate_costs(schedule, [], cost).span == 1 + 8 * 2 + 1


def test_a_microbatch_whose_backward_follows_at_once_stays_in_memory():
    assert with_offload(make_schedule("1f1b", 1, 2)) == make_schedule("1f1b", 1, 2)
    row = with_offload(make_schedule("1f1b", 2, 4), ahead=1)[0]  # F0 F1 B0 F2 B1 F3 B2 B3 without moves
    assert [action.micro_batch for action in row if action.kind is Kind.OFFLOAD] == [1, 2]
    with pytest.raises(ValueError, match="ahead must be an integer of at least 0, got -1"):
        with_offload([], ahead=-1)


def test_a_failure_of_a_move_is_raised_where_it_is_waited_for(monkeypatch):
    def fail(self, others):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(OffloadableRun, "offload", fail)
    x = rg.randn(8, 3)
    schedule = with_offload(make_schedule("gpipe", 2, 4, ranks=1))
    pipeline = Pipeline([nn.Linear(3, 3), nn.Tanh()], schedule=schedule, ranks=1, micro_batches=4, loss_fn=mse_loss)
    with pytest.raises(PipelineError, match=r"rank 0, stage \d, microbatch \d, action .*No space left on device"):
        pipeline.step(x, target=x)


def test_a_rank_computes_while_activations_are_written(monkeypatch):
    # The write of the first microbatch waits until the second one runs forward.
    second, offload = threading.Event(), OffloadableRun.offload

    def wait(self, others):
        assert second.wait(60), "no forward pass runs while this one is written"
        offload(self, others)

    class Signal(nn.Linear):
        def forward(self, x):
            Signal.count += 1
            if Signal.count == 3:  # the first one is for the shapes
                second.set()
            return super().forward(x)

    Signal.count = 0
    monkeypatch.setattr(OffloadableRun, "offload", wait)
    x = rg.randn(8, 3)
    schedule = with_offload(make_schedule("gpipe", 1, 4))
    pipeline = Pipeline([Signal(3, 3)], schedule=schedule, ranks=1, micro_batches=4, loss_fn=mse_loss)
    pipeline.step(x, target=x)
    assert second.is_set()


def test_a_search_offloads_where_that_is_quicker_and_never_lengthens_the_step():
    def cost(action):
        return {"F": 1.0, "I": 1.0, "W": 1.0, "B": 2.0}.get(action.kind.value, 0.05)

    inputs = dict.fromkeys(range(4), 0.1)
    arguments = {"ranks": 2, "memory_limit": 3, "inputs": inputs, "seconds": 0.3}
    plain = search_schedule(4, 8, cost, **arguments)
    for seconds, offloads in ((0.3, True), (1000.0, False)):

        def with_moves(action, seconds=seconds):
            return seconds if action.kind.is_move else cost(action)

        found = search_schedule(4, 8, cost, moves=with_moves, **arguments)
        validate(lower(found.schedule, chain(4)), chain(4))
        assert (found.step < plain.step) == bool(found.offloaded) == offloads
        assert simulate_costs(found.schedule, chain(4), with_moves).span == pytest.approx(found.step, rel=1e-12)
        assert found.bound <= found.step
        stages = StageBytes(dict.fromkeys(range(4), 1.0), inputs, with_moves)
        assert [peak_bytes(row, stages) for row in found.schedule] == found.peaks
        assert max(found.peaks) <= 3
        moved = {action.stage for row in found.schedule for action in row if action.kind is Kind.OFFLOAD}
        assert moved == set(found.offloaded)
        assert not search_schedule(
            4, 8, cost, moves=with_moves, ranks=2, inputs=inputs, seconds=0.1
        ).offloaded  # no limit


def test_moves_that_take_no_time_make_a_limit_cost_little():
    def cost(action):
        return {"F": 1.0, "B": 2.0, "I": 1.0, "W": 1.0}.get(action.kind.value, 0.0)

    arguments = {"ranks": 1, "seconds": 0.2}
    nothing = dict.fromkeys(range(2), 0.0)
    found = search_schedule(2, 6, cost, memory_limit=2, inputs=nothing, moves=lambda action: 0.0, **arguments)
    assert found.step == search_schedule(2, 6, cost, **arguments).step == 36


def test_auto_offloads_within_a_limit_and_trains_as_the_unsplit_model():
    settings = offload_settings(4)
    model = nn.Sequential(*[nn.Linear(3, 3) for _ in range(4)])
    pipeline = Pipeline(model, 4, ranks=2, schedule=settings, micro_batches=8, loss_fn=mse_loss)
    x = rg.randn(8, 3)
    pipeline.step(x, target=x)
    assert pipeline.found.offloaded
    assert Kind.FETCH in {action.kind for actions in pipeline.program() for action in actions}
    without = Pipeline(model, 4, ranks=2, schedule=replace(settings, offload=False), micro_batches=8, loss_fn=mse_loss)
    without.step(x, target=x)
    assert not without.found.offloaded
    assert pipeline.found.step < without.found.step
    check_schedule("threads", settings)


def transfer_share(hidden, length, flops=220e12, bandwidth=15e9):
    """Return the time to move a transformer layer's activations out and back, relative to its computation.

    k = T_o / T_c = 10 / (3 (6 h + s)) x flops / bandwidth: X. Wan et al., "PipeOffload" (2025). It follows from
    12 b s h (6 h + s) operations of a layer's forward and backward pass and 20 b s h bytes to move in each direction.
    """
    return 10 / (3 * (6 * hidden + length)) * flops / bandwidth


@pytest.mark.parametrize("ranks", [4, 8, 16])
@pytest.mark.parametrize(("hidden", "length"), [(8192, 4096), (8192, 16384), (4096, 32768), (4096, 4096)])
def test_layers_whose_moves_take_no_longer_than_their_computation_offload_all_activations_for_free(
    ranks, hidden, length
):
    share = transfer_share(hidden, length)

    def cost(action):
        return {"F": 1.0, "B": 2.0}.get(action.kind.value, 1.5 * share if action.kind.is_move else 0.0)

    plain = make_schedule("interleaved1f1b", 2 * ranks, 4 * ranks, ranks=ranks)
    moved = with_offload(plain, ahead=2)
    longer = simulate_costs(moved, chain(2 * ranks), cost).span / simulate_costs(plain, chain(2 * ranks), cost).span
    assert (share <= 1) == (longer <= 1.02)
    if share > 1:
        assert longer == pytest.approx(share, rel=0.1)  # the moves determine the step
    stages = StageBytes(dict.fromkeys(range(2 * ranks), 1.0), dict.fromkeys(range(2 * ranks), 0.0), cost)
    assert max(peak_bytes(row, stages) for row in moved) == 3  # for any number of ranks
    assert max(map(peak_activations, plain)) == 3 * ranks - 1


@pytest.mark.parametrize("ranks", [4, 8, 16])
def test_offloading_the_first_stage_of_each_rank_halves_the_memory_of_interleaved_1f1b(ranks):
    # Figure 2 of the paper. With its uniform repetition, which no schedule here has, it would be a quarter.
    plain = make_schedule("interleaved1f1b", 2 * ranks, 4 * ranks, ranks=ranks)
    moved = with_offload(plain, range(ranks), ahead=1)
    assert max(map(peak_activations, moved)) == ranks + 2
    assert (ranks + 2) / max(map(peak_activations, plain)) <= 0.55
