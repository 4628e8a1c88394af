"""Stages that move activations to a file and back: the same numbers, with less memory in between."""

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.nn.functional import mse_loss
from retrograd.pipelining import (
    Pipeline,
    PipelineStage,
    make_schedule,
    peak_activations,
    read_csv,
    simulate,
    simulate_costs,
    with_offload,
    with_recomputation,
    write_csv,
)
from retrograd.pipelining.runtime.offload import OffloadableRun
from retrograd.pipelining.schedules import SCHEDULES
from retrograd.pipelining.schedules.actions import Kind, parse_schedule
from retrograd.pipelining.schedules.lowering import chain, lower, validate

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
    assert most == {False: 8, True: 1}  # of the forward that is running


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


def test_moves_take_time_but_are_no_computation():
    def cost(action):
        return 0.25 if action.kind.is_move else float(action.kind.is_compute)

    schedule = with_offload(make_schedule("gpipe", 1, 4))
    timeline, summary = simulate(schedule, [], cost), simulate_costs(schedule, [], cost)
    assert timeline.span == summary.span == 4 * (1 + 1 + 0.25 + 0.25)
    assert summary.busy == [8.0]
    assert summary.bubble == timeline.bubble() == pytest.approx(0.2)
    assert [peak_activations(actions) for actions in schedule] == [1]
    assert timeline.peak_memory() == [(1, None)]
    assert {event.action.kind for event in timeline.events} == {Kind.F, Kind.B, Kind.OFFLOAD, Kind.FETCH}
