"""The profiler of steps: schedules, what is recorded, and where results go."""

import gzip
import json

import pytest

import retrograd as rg
from retrograd.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule


def names(prof):
    return [event.name for event in prof.events()]


def train(prof, steps, x):
    for _ in range(steps):
        with record_function("forward"):
            loss = (x * x).sum()
        loss.backward()
        prof.step()


def test_without_a_schedule_the_whole_block_is_recorded():
    ready = []
    with profile(activities=[ProfilerActivity.CPU], on_trace_ready=lambda p: ready.append(names(p))) as prof:
        train(prof, 2, rg.ones(3, requires_grad=True))
        assert ready == []
    assert ready == [names(prof)]
    assert names(prof).count("forward") == 2
    assert names(prof).count("MulBackward0") == 2
    assert not any(name.startswith("ProfilerStep") for name in names(prof))


@pytest.mark.parametrize(
    ("plan", "steps", "recorded"),
    [
        ({"wait": 1, "warmup": 1, "active": 2}, 9, [[2, 3], [6, 7]]),
        ({"wait": 1, "warmup": 1, "active": 2}, 7, [[2, 3], [6, 7]]),
        ({"wait": 1, "warmup": 1, "active": 2, "repeat": 1}, 9, [[2, 3]]),
        ({"wait": 0, "warmup": 0, "active": 1}, 2, [[0], [1], [2]]),
        ({"wait": 2, "warmup": 0, "active": 1, "skip_first": 1, "skip_first_wait": 1}, 5, [[1], [4]]),
        ({"wait": 5, "warmup": 0, "active": 1}, 2, []),
    ],
)
def test_a_schedule_records_its_steps_and_gives_each_cycle_to_the_handler(plan, steps, recorded):
    ready = []

    def handle(prof):
        ready.append([int(name.partition("#")[2]) for name in names(prof) if name.startswith("ProfilerStep#")])

    with profile(schedule=schedule(**plan), on_trace_ready=handle) as prof:
        train(prof, steps, rg.ones(3, requires_grad=True))
    assert ready == recorded
    assert prof.step_num == steps
    if not recorded:
        with pytest.raises(RuntimeError, match="no step was recorded"):
            prof.events()


def test_each_cycle_has_only_its_own_events():
    with profile(schedule=schedule(wait=1, warmup=0, active=1)) as prof:
        train(prof, 4, rg.ones(3, requires_grad=True))
    assert names(prof).count("forward") == 1
    assert prof.events()[0].name == "ProfilerStep#3"


def test_the_order_of_rows_is_that_of_the_column():
    with profile(record_shapes=True, profile_memory=True) as prof:
        train(prof, 1, rg.ones(30, requires_grad=True))
    first = max(prof.key_averages(), key=lambda row: row.cpu_memory_usage)
    text = prof.key_averages().table(sort_by="cpu_memory_usage", row_limit=1)
    assert "CPU Mem" in text
    assert first.key in text
    assert any([30] in (row.input_shapes or ()) for row in prof.key_averages(group_by_input_shape=True))


@pytest.mark.parametrize("use_gzip", [False, True])
def test_the_handler_for_tensorboard_writes_each_trace_to_a_file_of_its_own(tmp_path, use_gzip):
    handler = rg.profiler.tensorboard_trace_handler(tmp_path / "log", "worker0", use_gzip)
    with profile(schedule=schedule(wait=0, warmup=0, active=1, repeat=2), on_trace_ready=handler) as prof:
        prof.add_metadata("run", "first")
        prof.add_metadata_json("sizes", "[1, 2]")
        train(prof, 3, rg.ones(3, requires_grad=True))
    files = sorted((tmp_path / "log").iterdir())
    assert [path.name.partition(".")[0] for path in files] == ["worker0", "worker0"]
    read = gzip.open if use_gzip else open
    for number, path in enumerate(files):
        assert path.name.endswith(".pt.trace.json.gz" if use_gzip else ".pt.trace.json")
        with read(path, "rt") as file:
            trace = json.load(file)
        assert trace["metadata"] == {"run": "first", "sizes": [1, 2]}
        assert f"ProfilerStep#{number}" in [record["name"] for record in trace["traceEvents"]]


def test_stacks_are_written_with_their_times(tmp_path):
    with profile(with_stack=True) as prof:
        rg.ones(300, 300) @ rg.ones(300, 300)
    prof.export_stacks(tmp_path / "stacks")
    frames, _, microseconds = (tmp_path / "stacks").read_text().splitlines()[-1].rpartition(" ")
    assert "test_profiler.py" in frames
    assert int(microseconds) > 0
    with pytest.raises(ValueError, match="self_cpu_time_total"):
        prof.export_stacks(tmp_path / "stacks", "self_cuda_time_total")


def test_start_and_stop_do_what_the_block_does():
    prof = profile()
    prof.start()
    rg.ones(2).sum()
    prof.stop()
    assert "sum" in names(prof)
    before = len(names(prof))
    rg.ones(2).sum()
    assert len(names(prof)) == before


def test_an_exception_ends_the_record():
    with pytest.raises(ZeroDivisionError), profile() as prof:
        1 / 0  # noqa: B018
    rg.ones(2).exp()
    assert "exp" not in names(prof)


def test_other_activities_are_not_measured():
    with pytest.warns(UserWarning, match="CUDA activity is not available"):
        prof = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
    assert prof.activities == {ProfilerActivity.CPU, ProfilerActivity.CUDA}
    with pytest.raises(TypeError, match="expected activities such as"):
        profile(activities=["cpu"])


@pytest.mark.parametrize("wrong", [{"wait": -1}, {"active": 0}, {"repeat": -1}])
def test_a_schedule_that_means_nothing_is_refused(wrong):
    with pytest.raises(ValueError, match="Invalid profiler schedule arguments"):
        schedule(**{"wait": 1, "warmup": 1, "active": 1, **wrong})


def test_the_actions_are_those_of_a_step():
    assert [action.name for action in ProfilerAction] == ["NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"]
