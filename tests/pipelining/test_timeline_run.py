"""Timelines of whole runs: recorded with their operators, within a limit, searched, cut, merged, and read back."""

import json
import re
import threading
import time

import pytest

import retrograd as rg
import retrograd.distributed as dist
from retrograd import nn
from retrograd.autograd.profiler import profile, record_function
from retrograd.pipelining import (
    Event,
    Pipeline,
    Sample,
    Span,
    Step,
    Timeline,
    TimelineRecorder,
    merge_timelines,
    read_perfetto,
    write_perfetto,
)
from retrograd.pipelining.schedules.actions import parse
from retrograd.pipelining.timeline.clocks import align_clocks
from retrograd.pipelining.timeline.machine import MachineSampler
from retrograd.pipelining.timeline.operator_spans import SpanRecorder
from retrograd.pipelining.timeline.page import by_line
from retrograd.pipelining.timeline.search import OPERATOR_NAMES
from retrograd.pipelining.timeline.timeline import PROGRAM

MESSAGES = [
    (0, "F0.0", 0, 1), (0, "SEND_F0.0>1", 1, 1), (0, "RECV_B0.0<1", 1, 5), (0, "B0.0", 5, 6),
    (1, "RECV_F1.0<0", 0, 2), (1, "F1.0", 2, 3), (1, "B1.0", 3, 4), (1, "SEND_B1.0>0", 4, 4),
]  # fmt: skip


def run(steps=2, **more):
    """Return a run of two ranks, six seconds a step, with an operator in each computation."""
    rows = [(rank, parse(text), 6.0 * k + a, 6.0 * k + b) for k in range(steps) for rank, text, a, b in MESSAGES]
    events = [Event(*one) for one in rows]
    spans = [Span(e.rank, "linear", "operator", e.start, e.end, 0, "2×3") for e in events if e.action.kind.is_compute]
    spans += [Span(PROGRAM, "train", "range", 6.0 * k, 6.0 * k + 6) for k in range(steps)]
    return Timeline(events, 2, spans=spans, steps=[Step(k, 6.0 * k, 6.0 * k + 6) for k in range(steps)], **more)


def trained_pipeline(schedule="1f1b"):
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    return Pipeline(model, 2, micro_batches=2, loss_fn=nn.functional.mse_loss, schedule=schedule)


BATCH, TARGET = rg.ones(4, 3), rg.zeros(4, 2)


# -------------------------------------------------------------------------------------------------------- recording


def test_a_plain_loop_is_recorded_with_steps_ranges_operators_and_nodes():
    weight = rg.ones(3, requires_grad=True)
    with TimelineRecorder(sample_every=None) as recorder:
        for _ in range(3):
            with record_function("forward"):
                loss = (weight * weight).sum()
            loss.backward()
            recorder.step()
    timeline = recorder.timeline()
    assert [step.number for step in timeline.steps] == [0, 1, 2]
    assert timeline.labels() == ["program"]
    for number in range(3):
        spans = timeline.step(number).spans
        names = [(span.name, span.kind, span.depth) for span in spans]
        assert names[:3] == [("forward", "range", 0), ("mul", "operator", 1), ("sum", "operator", 1)]
        assert ("MulBackward0", "backward", 0) in names
    assert timeline.find("mul step 1")[0].shapes == "3, 3"
    assert 0 < timeline.busy()[0] < 1


def test_the_search_finds_operators_by_the_functions_that_run_them():
    F = nn.functional
    images, rows, classes = rg.rand(2, 4, 8, 8), rg.rand(2, 8), rg.tensor([0, 1])
    calls = {
        "avg_pool2d": lambda: F.avg_pool2d(images, 2),
        "batch_norm": lambda: F.batch_norm(images, None, None, training=True),
        "bmm": lambda: rg.bmm(images[0], images[0]),
        "conv2d": lambda: F.conv2d(images, rg.rand(2, 4, 3, 3)),
        "conv_transpose1d": lambda: F.conv_transpose1d(images[0], rg.rand(8, 2, 3)),
        "cross_entropy": lambda: F.cross_entropy(rows, classes),
        "dropout": lambda: F.dropout(rows),
        "embedding": lambda: F.embedding(classes, rows),
        "group_norm": lambda: F.group_norm(images, 2),
        "instance_norm": lambda: F.instance_norm(images),
        "interpolate": lambda: F.interpolate(images, scale_factor=2),
        "layer_norm": lambda: F.layer_norm(rows, (8,)),
        "max_pool2d": lambda: F.max_pool2d(images, 2),
        "mm": lambda: rg.mm(rows, rows.T),
        "scaled_dot_product_attention": lambda: F.scaled_dot_product_attention(images, images, images),
    }
    assert {re.sub(r"[123]d$", "", name) for name in calls} == set(OPERATOR_NAMES)
    with TimelineRecorder(sample_every=None) as recorder:
        for call in calls.values():
            recorder.step()
            call()
    timeline = recorder.timeline()
    for number, name in enumerate(calls, 1):
        assert timeline.find(f"{name} step {number}"), name


def test_a_run_of_a_pipeline_has_the_actions_and_operators_of_every_rank_and_step():
    pipeline = trained_pipeline()
    with TimelineRecorder(pipeline, sample_every=None) as recorder:
        for _ in range(2):
            pipeline.step(BATCH, target=TARGET)
            recorder.step()
    pipeline.step(BATCH, target=TARGET)  # no more recorded
    timeline = recorder.timeline()
    actions = sorted(event.action for event in pipeline.timeline.events)
    for number in range(2):
        step = timeline.step(number)
        assert sorted(event.action for event in step.events) == actions
        for event in step.events:
            if event.action.kind.is_compute:
                inside = [
                    s for s in step.spans if s.rank == event.rank and event.start <= s.start <= s.end <= event.end
                ]
                assert inside, event
    assert {span.rank for span in timeline.spans} == {PROGRAM, 0, 1}
    assert pipeline.timeline.spans == ()


def test_operations_between_ranks_are_recorded_with_their_waits_and_what_runs_meanwhile():
    def script():
        layers = nn.Sequential(*[nn.Linear(8, 8) for _ in range(4)])
        model = nn.parallel.DistributedDataParallel(layers, bucket_cap_mb=1e-4)
        with TimelineRecorder(sample_every=None) as recorder:
            for _ in range(2):
                model(rg.ones(4, 8)).sum().backward()
                recorder.step()
        return recorder.timeline()

    merged, overlaps = merge_timelines(dist.run_threads(script, 2)), 0
    for rank in range(2):
        spans = merged.spans_by_rank()[rank]
        reductions = [s for s in spans if s.kind == "communication" and s.name == "the reduction of gradients"]
        assert len(reductions) >= 4
        overlaps += sum(r.start < s.start and s.end < r.end for r in reductions for s in spans if s.kind == "backward")
        assert any(s.kind == "wait" for s in spans)
    assert overlaps  # the rank that starts a reduction first sees its end after further nodes


def test_a_profile_has_a_row_for_waits_and_no_communications_that_others_overlap():
    def script():
        with profile() as prof:
            work = dist.all_reduce(rg.ones(3), async_op=True)
            rg.ones(3)
            work.wait()
        return [(event.name, event.kind, event.cpu_parent) for event in prof.events() if event.name == "all_reduce"]

    found = dist.run_threads(script, 2)
    assert ("all_reduce", "wait", None) in found[0] + found[1]
    assert {kind for events in found for _, kind, _ in events} == {"wait"}


@pytest.mark.parametrize("limit", [1, 7])
def test_operators_and_communications_of_one_step_are_no_more_than_the_limit(limit):
    def script():
        with SpanRecorder(rank=0, limit=limit) as recorder:
            for _ in range(10):
                x = rg.ones(3)
                dist.all_reduce(x)
        with SpanRecorder(rank=0, limit=1000) as roomy:
            dist.all_reduce(x)
        communicated = any(s.kind == "communication" for s in roomy.spans())
        return len(recorder.spans()), recorder.full, communicated, roomy.full

    assert dist.run_threads(script, 2) == [(limit, True, True, False)] * 2


def test_waits_and_communications_are_no_computation():
    spans = [
        Span(0, "all_reduce", "communication", 0, 10),
        Span(0, "matmul", "operator", 0, 4),
        Span(0, "all_reduce", "wait", 1, 2, 1),
        Span(0, "all_reduce", "wait", 6, 8),
    ]
    assert Timeline([], 1, spans=spans).busy() == [0.3]


def test_communications_that_overlap_are_drawn_on_lines_of_their_own():
    spans = [
        Span(0, "a", "communication", 0, 4),
        Span(0, "matmul", "operator", 1, 3),
        Span(0, "b", "communication", 2, 6),
        Span(0, "relu", "operator", 2, 3, 1),
        Span(0, "c", "communication", 4, 5),
    ]
    assert [(span.name, span.depth) for span in by_line(spans)] == [
        ("a", 0), ("matmul", 2), ("b", 1), ("relu", 3), ("c", 0)
    ]  # fmt: skip


def test_communications_that_overlap_are_read_back_as_they_were_written(tmp_path):
    spans = [
        Span(0, "a", "communication", 0, 4),
        Span(1, "b", "communication", 2, 6),
        Span(0, "c", "communication", 3, 5),
    ]
    Timeline([], 2, spans=spans).to_perfetto(tmp_path / "run.json")
    (found,) = read_perfetto(tmp_path / "run.json").values()
    assert [s._replace(start=round(s.start, 6), end=round(s.end, 6)) for s in found.spans] == spans


def test_operators_are_left_out_on_request():
    pipeline = trained_pipeline()
    with TimelineRecorder(pipeline, operators=False, sample_every=None) as recorder:
        pipeline.step(BATCH, target=TARGET)
        recorder.step()
    assert recorder.timeline().spans == ()
    assert len(recorder.timeline().events) == len(pipeline.timeline.events)


def test_what_follows_the_last_step_is_a_step_only_if_something_ran():
    for after, steps in [(lambda: None, 1), (lambda: rg.ones(2).sum(), 2)]:
        with TimelineRecorder(sample_every=None) as recorder:
            rg.ones(3).sum()
            recorder.step()
            after()
        assert len(recorder.timeline().steps) == steps


def test_steps_without_operators_are_steps():
    with TimelineRecorder(sample_every=None) as recorder:
        for _ in range(3):
            recorder.step()
    assert len(recorder.timeline().steps) == 3


@pytest.mark.parametrize("of_pipeline", [False, True])
def test_recording_stops_at_the_limit_with_a_note(of_pipeline):
    pipeline = trained_pipeline() if of_pipeline else None
    with TimelineRecorder(pipeline, limit=150, sample_every=None) as recorder:
        for _ in range(100):
            if pipeline is None:
                for _ in range(20):
                    rg.ones(3).sum()
            else:
                pipeline.step(BATCH, target=TARGET)
            recorder.step()
    timeline = recorder.timeline()
    assert len(timeline.events) + len(timeline.spans) == 150
    assert 1 < len(timeline.steps) < 10
    (note,) = timeline.notes
    assert (
        note
        == f"Recording stopped in step {timeline.steps[-1].number}: the limit of 150 actions and spans was reached."
    )


def test_a_step_without_end_stays_within_the_limit():
    with TimelineRecorder(limit=50, sample_every=None) as recorder:
        for _ in range(500):
            rg.ones(3).sum()
        assert len(recorder._program._profile.records()) == 50
    assert len(recorder.timeline().spans) == 50


def test_a_pipeline_is_recorded_once_at_a_time_and_a_limit_is_positive():
    pipeline = trained_pipeline()
    with TimelineRecorder(pipeline, sample_every=None), pytest.raises(RuntimeError, match="being recorded already"):
        TimelineRecorder(pipeline).__enter__()
    assert pipeline.recorder is None
    with pytest.raises(ValueError, match="limit must be at least 1, got 0"):
        TimelineRecorder(limit=0)


def test_losses_and_gradients_of_a_recorded_pipeline_are_the_same():
    results = []
    for record in (False, True):
        rg.manual_seed(0)
        pipeline = trained_pipeline()
        if record:
            with TimelineRecorder(pipeline):
                loss = pipeline.step(BATCH, target=TARGET)
        else:
            loss = pipeline.step(BATCH, target=TARGET)
        results.append([loss, *(p.grad for p in pipeline.model.parameters())])
    assert all(rg.equal(a, b) for a, b in zip(*results, strict=True))


def test_a_profile_around_a_pipeline_does_not_keep_it_from_running_in_stages():
    pipeline = trained_pipeline()
    with profile():
        pipeline.step(BATCH, target=TARGET)
    assert {event.rank for event in pipeline.timeline.events} == {0, 1}


def test_a_recorder_and_a_run_are_printed_by_their_numbers():
    assert repr(run()) == "Timeline(ranks=2, steps=2, actions=16, spans=10, seconds=12, bubble=67%)"
    with TimelineRecorder(sample_every=None) as recorder:
        recorder.step()
    assert repr(recorder) == "TimelineRecorder(steps=1, actions=0, spans=0, limit=200000)"


# ---------------------------------------------------------------------------------------------------------- machine


def machine(tmp_path, ticks):
    """Write the counters of two cores: busy and idle ticks of each."""
    proc = tmp_path / "proc"
    (proc / "self").mkdir(parents=True, exist_ok=True)
    cores = [f"cpu{core} {busy} 0 0 {idle} 0 0 0 0 99 99" for core, (busy, idle) in enumerate(ticks)]
    (proc / "stat").write_text("\n".join(["cpu 1 2 3 4", *cores, "intr 5"]))
    (proc / "self/statm").write_text("900 7 3 1 0 5 0")


def test_samples_are_shares_of_each_core_since_the_sample_before(tmp_path, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1}, raising=False)
    monkeypatch.setattr("retrograd.pipelining.timeline.machine.PAGE", 4096)
    sampler = MachineSampler(1.0, root=tmp_path)
    assert not sampler.available
    for ticks in ([(0, 0), (50, 50)], [(10, 30), (60, 50)], [(10, 30), (60, 60)]):
        machine(tmp_path, ticks)
        sampler.read()
    assert sampler.available
    assert [sample.cores for sample in sampler.samples] == [(0.25, 1.0), (0.0, 0.0)]
    assert sampler.samples[0].memory == 7 * 4096


def test_samples_become_rarer_instead_of_more(tmp_path, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0}, raising=False)
    sampler = MachineSampler(1.0, limit=8, root=tmp_path)
    for tick in range(30):
        machine(tmp_path, [(tick, 0)])
        sampler.read()
    assert len(sampler.samples) < 8
    assert sampler.every == 2.0**6
    assert sampler.samples == sorted(sampler.samples)


def test_the_thread_of_samples_ends_with_the_recording(tmp_path):
    with TimelineRecorder(sample_every=1e-3) as recorder:
        rg.ones(3).sum()
    assert not [thread for thread in threading.enumerate() if thread.name == "machine sampler"]
    if recorder._sampler.available:
        assert recorder.timeline().samples[0].memory > 2**20
    else:
        assert recorder.timeline().notes == ("The use of cores and memory is measured on Linux only.",)


# ----------------------------------------------------------------------------------------------- questions to a run


def test_a_part_of_the_time_is_measured_by_rank():
    part = run().clip(5.5, 8.5)
    assert part.span == 3.0
    assert part.busy() == pytest.approx([1.5 / 3, 0.5 / 3])  # B0.0 for 0.5, F0.0 for 1; F1.0 for 0.5
    assert [step.number for step in part.steps] == [0, 1]
    with pytest.raises(ValueError, match="the end, 1, must be after the start, 2"):
        run().clip(2, 1)


def test_a_step_is_a_timeline_with_its_own_bubble_and_critical_path():
    step = run().step(1)
    assert (step.start, step.span) == (6.0, 6.0)
    assert step.bubble() == pytest.approx(run(1).bubble())
    assert [str(event.action) for event in step.critical_path()] == ["F0.0", "F1.0", "B1.0", "B0.0"]
    with pytest.raises(KeyError, match="there is no step 5; recorded are 0 to 1"):
        run().step(5)


def test_the_critical_path_of_a_run_is_that_of_each_step():
    assert [str(event.action) for event in run(3).critical_path()] == ["F0.0", "F1.0", "B1.0", "B0.0"] * 3


def test_a_rank_without_actions_is_busy_while_operators_run():
    spans = [
        Span(0, "all", "range", 0.0, 10.0),
        Span(0, "MulBackward0", "backward", 1.0, 4.0, 1),
        Span(0, "mul", "operator", 2.0, 3.0, 2),
        Span(0, "sum", "operator", 6.0, 7.0, 1),
    ]
    assert Timeline([], 1, spans=spans).busy() == [0.4]


@pytest.mark.parametrize(("text", "found"), [
    ("F1.0", [("F1.0", 2.0), ("F1.0", 8.0)]),
    ("f1.0 step 1", [("F1.0", 8.0)]),
    ("backward stage 0", [("B0.0", 5.0), ("B0.0", 11.0)]),
    ("wait rank 1 step 0", [("RECV_F1.0<0", 0.0)]),
    ("lin rank 0 step 1", [("linear", 6.0), ("linear", 11.0)]),
    ("microbatch 0 send rank 1 step 0", [("SEND_B1.0>0", 4.0)]),
    ("train step 1", [("train", 6.0)]),
    ("nothing", []),
    ("", []),
])  # fmt: skip
def test_actions_and_operators_are_found_by_words(text, found):
    records = run().find(text)
    assert [(r.name if isinstance(r, Span) else str(r.action), r.start) for r in records] == found


# ------------------------------------------------------------------------------------------------- files and clocks


def test_a_run_is_read_back_as_it_was_written(tmp_path):
    samples = [Sample(1.0, (0.5, 1.0), 4096), Sample(2.0, (0.25, 0.0), 8192)]
    written = run(samples=samples, notes=["It ended early."], epoch=1000.0)
    write_perfetto(tmp_path / "run.json", {"": written, "other": run(1)})
    read = read_perfetto(tmp_path / "run.json")
    assert list(read) == ["timeline", "other"]
    found = read["timeline"]
    assert found.ranks == 2
    for name in ("events", "spans", "steps"):
        assert [r[:-2] for r in map(tuple, getattr(found, name))] == [
            r[:-2] for r in map(tuple, getattr(written, name))
        ]
    assert [(s.start, s.end, s.depth, s.shapes) for s in found.spans] == [
        (s.start, s.end, s.depth, s.shapes) for s in written.spans
    ]
    assert found.samples == tuple(samples)
    assert found.notes == ("It ended early.",)
    assert found.epoch == 1000.0
    assert found.busy() == pytest.approx(written.busy())


def test_operators_are_slices_inside_of_their_actions_for_perfetto(tmp_path):
    run().to_perfetto(tmp_path / "run.json")
    records = json.loads((tmp_path / "run.json").read_text())["traceEvents"]
    slices = [r for r in records if r["ph"] == "X"]
    assert [r["name"] for r in slices if r["tid"] == 2] == ["step 0", "step 1", "train", "train"]
    operators = [r for r in slices if r["name"] == "linear"]
    assert len(operators) == 8
    assert all(r["args"]["shapes"] == "2×3" for r in operators)


def test_files_of_several_processes_are_merged_by_their_clocks():
    def process(epoch, start):
        spans = [Span(0, "mul", "operator", start, start + 1)]
        return Timeline([], 1, spans=spans, steps=[Step(0, start, start + 2)], epoch=epoch)

    merged = merge_timelines([process(100.0, 5.0), process(200.0, -94.5)])
    assert [(span.rank, span.start) for span in merged.spans] == [(0, 5.0), (1, 5.5)]
    assert merged.steps == (Step(0, 5.0, 7.5),)
    assert merged.labels() == ["rank 0", "rank 1"]
    given = merge_timelines([process(100.0, 5.0), process(200.0, -94.5)], offsets=[0.0, 100.0])
    assert given.spans == merged.spans
    with pytest.raises(ValueError, match="got 2 timelines and 1 offsets"):
        merge_timelines([run(), run()], offsets=[0.0])


@pytest.mark.parametrize("shift", [0.0, 0.5, 100.0, -3.25])
def test_clocks_of_ranks_are_aligned_by_their_messages(shift):
    true = run(1)
    seen = [e._replace(start=e.start + shift * e.rank, end=e.end + shift * e.rank) for e in true.events]
    aligned = align_clocks(Timeline(seen, 2, spans=[Span(1, "mul", "operator", 2 + shift, 3 + shift)]))
    ends = {event.action: event.end for event in aligned.events}
    for name, sender in (("RECV_F1.0<0", "SEND_F0.0>1"), ("RECV_B0.0<1", "SEND_B1.0>0")):
        assert ends[parse(name)] >= ends[parse(sender)]
    (span,) = aligned.spans
    first = next(event for event in aligned.events if str(event.action) == "F1.0")
    assert (span.start, span.end) == (first.start, first.end)
    if abs(shift) <= 1:  # within what messages can tell: nothing is moved
        assert [event.start for event in aligned.events] == sorted(event.start for event in seen)


def test_the_clock_of_a_recording_is_that_of_the_system():
    with TimelineRecorder(sample_every=None) as recorder:
        rg.ones(3).sum()
    (span,) = recorder.timeline().find("sum")
    assert abs(recorder.timeline().epoch + span.start - time.time()) < 3600
