"""Timelines: times add up, and page, picture and trace show all events and load nothing from elsewhere."""

import html.parser
import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from functools import partial
from itertools import pairwise

import pytest

from retrograd.pipelining.planning.simulate import simulate
from retrograd.pipelining.schedules import make_schedule
from retrograd.pipelining.schedules.actions import Action, Kind, format_schedule, parse, parse_schedule
from retrograd.pipelining.schedules.lowering import chain
from retrograd.pipelining.timeline.timeline import Event, Timeline, write_html, write_perfetto, write_png, write_svg


def simulated(stages=2, micro_batches=3, name="1f1b", forward=1e-3, backward=2e-3):
    cost = {Kind.F: forward, Kind.B: backward}
    return simulate(make_schedule(name, stages, micro_batches), chain(stages), lambda a: cost.get(a.kind, 0.0))


def delayed(timeline, seconds):
    events = [event._replace(start=event.start + seconds, end=event.end + seconds) for event in timeline.events]
    return Timeline(events, timeline.ranks)


class PageParser(html.parser.HTMLParser):
    """Collects the tags, the attributes and each script's text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.scripts = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, text):
        if self.tags and self.tags[-1] == "script" and self.scripts:
            self.scripts[-1] += text


def page_of(tmp_path, timelines, **options):
    write_html(tmp_path / "page.html", timelines, **options)
    return (tmp_path / "page.html").read_text(encoding="utf-8")


def data_of(page):
    return json.loads(PageParser(page).scripts[0])


def test_span_busy_and_bubble_add_up():
    events = [
        Event(0, parse("F0.0"), 10.0, 11.0),
        Event(0, parse("RECV_B0.0<1"), 11.0, 13.0),
        Event(1, parse("I1.0"), 12.0, 13.0),
        Event(1, parse("W1.0"), 13.0, 14.0),
    ]
    timeline = Timeline(events, ranks=2)
    assert (timeline.start, timeline.span) == (10.0, 4.0)
    assert timeline.busy() == [0.25, 0.5]
    assert timeline.bubble() == 1 - 3.0 / (2 * 4.0)


def test_a_rank_that_does_nothing_counts_as_idle():
    assert Timeline([Event(0, parse("F0.0"), 0.0, 1.0)], ranks=4).bubble() == 0.75


def test_an_empty_timeline_has_no_span_and_no_bubble():
    empty = Timeline([], ranks=2)
    assert (empty.span, empty.busy(), empty.bubble(), empty.ideal_bubble()) == (0.0, [0.0, 0.0], 0.0, None)


def test_events_are_kept_in_order_of_their_start():
    events = simulated().events
    assert Timeline(reversed(events), 2).events[0].start == 0
    assert all(first.start <= second.start for first, second in pairwise(Timeline(reversed(events), 2).events))


@pytest.mark.parametrize(("event", "wrong"), [
    (Event(0, parse("F0.0"), 2.0, 1.0), "ends at 1.0, before its start at 2.0"),
    (Event(0, parse("F0.0"), float("nan"), 1.0), "before its start"),
    (Event(2, parse("F0.0"), 0.0, 1.0), "there are 2 ranks"),
    (Event(-1, parse("F0.0"), 0.0, 1.0), "there are 2 ranks"),
])  # fmt: skip
def test_an_impossible_event_is_refused(event, wrong):
    with pytest.raises(ValueError, match=wrong):
        Timeline([event], ranks=2)


def test_theory_is_reported_only_where_it_holds():
    assert simulated(4, 8).ideal_bubble() == 3 / 11
    halves = [Event(0, parse("F0.0"), 0, 1), Event(0, parse("I0.0"), 1, 2), Event(0, parse("W0.0"), 2, 3)]
    assert Timeline(halves, 1).ideal_bubble() is None
    assert Timeline([Event(0, parse("F0.0"), 0, 1)], 1).ideal_bubble() is None
    two = [Event(0, parse(text), at, at + 1) for at, text in enumerate(["F0.0", "F1.0", "B1.0", "B0.0"])]
    assert Timeline(two, 1).ideal_bubble() is None


def test_a_rank_is_called_by_its_stage_or_by_its_stages():
    assert simulated(2).labels() == ["stage 0", "stage 1"]
    several = [Event(0, parse("F0.0"), 0, 1), Event(0, parse("F2.0"), 1, 2), Event(1, parse("F1.0"), 0, 1)]
    assert Timeline(several, 3).labels() == ["rank 0: stages 0, 2", "stage 1", "rank 2"]


def decoded(shown):
    """Yield the events in a page's data: rank, kind, stage, microbatch, peer, start and end in seconds."""
    for rank, numbers in enumerate(shown["lanes"]):
        now = 0
        for kind, stage, micro_batch, peer, gap, length in zip(*[iter(numbers)] * 6, strict=True):
            start, now = now + gap, now + gap + length
            action = Action(list(Kind)[kind], stage, micro_batch, None if peer < 0 else peer)
            yield rank, action, start * shown["tick"], now * shown["tick"]


def test_the_page_holds_every_event_of_every_timeline_from_its_own_beginning(tmp_path):
    planned, measured = simulated(2, 3), delayed(simulated(2, 3, backward=3e-3), 100.0)
    data = data_of(page_of(tmp_path, {"planned": planned, "measured": measured}))
    assert [timeline["name"] for timeline in data["timelines"]] == ["planned", "measured"]
    for shown, timeline in zip(data["timelines"], [planned, measured], strict=True):
        wanted = [event for lane in timeline.by_rank() for event in lane]
        found = list(decoded(shown))
        assert [(rank, action) for rank, action, _, _ in found] == [event[:2] for event in wanted]
        near = partial(pytest.approx, abs=1e-9 * timeline.span)
        assert [start for _, _, start, _ in found] == near([event.start - timeline.start for event in wanted])
        assert [end for _, _, _, end in found] == near([event.end - timeline.start for event in wanted])
        assert shown["busy"] == timeline.busy()
        assert (shown["bubble"], shown["ideal"], shown["span"]) == (timeline.bubble(), 0.25, timeline.span)


def test_the_page_needs_nothing_from_elsewhere(tmp_path):
    page = page_of(tmp_path, {"": simulated()})
    parsed = PageParser(page)
    assert not {"src", "href", "srcset", "action"} & {name for name, _ in parsed.attributes}
    assert not {"link", "img", "iframe", "object", "embed", "base"} & set(parsed.tags)
    assert "default-src 'none'" in page
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\(|fetch\(|XMLHttpRequest|import\(", page)


def test_the_page_follows_the_reader_s_light_or_dark_mode_and_screen(tmp_path):
    page = page_of(tmp_path, {"": simulated()})
    assert "color-scheme: light dark" in page
    assert "@media print" in page
    assert 'name="viewport"' in page


def test_hostile_names_and_titles_stay_text(tmp_path):
    hostile = '</script><script>alert("&@@DATA@@@@TITLE@@")</script><!--'
    page = page_of(tmp_path, {hostile: simulated()}, title=hostile)
    harmless = page_of(tmp_path, {"name": simulated()}, title="title")
    assert PageParser(page).tags == PageParser(harmless).tags
    assert data_of(page)["timelines"][0]["name"] == hostile
    assert "&lt;/script&gt;" in page
    assert "innerHTML" not in page


def test_the_trace_opens_in_perfetto_with_a_slice_per_event_in_microseconds(tmp_path):
    planned, measured = simulated(2, 3), delayed(simulated(2, 2), 50.0)
    write_perfetto(tmp_path / "trace.json", {"planned": planned, "measured": measured})
    trace = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))
    names = {(r["pid"], r["tid"]): r["args"]["name"] for r in trace["traceEvents"] if r["name"] == "thread_name"}
    assert names == {(0, 0): "stage 0", (0, 1): "stage 1", (1, 0): "stage 0", (1, 1): "stage 1"}
    assert [r["args"]["name"] for r in trace["traceEvents"] if r["name"] == "process_name"] == [
        "planned",
        "measured",
    ]
    slices = [record for record in trace["traceEvents"] if record["ph"] == "X"]
    assert len(slices) == len(planned.events) + len(measured.events)
    backward = next(record for record in slices if record["name"] == "B1.0" and record["pid"] == 0)
    assert (backward["tid"], backward["cat"]) == (1, "B")
    assert (backward["ts"], backward["dur"]) == pytest.approx((2000.0, 2000.0))
    assert backward["args"] == {"stage": 1, "micro_batch": 0}
    assert min(record["ts"] for record in slices if record["pid"] == 1) == 0.0


def test_slices_of_one_thread_never_overlap_since_perfetto_would_drop_them(tmp_path):
    simulated(4, 8).to_perfetto(tmp_path / "trace.json")
    slices = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
    for thread in range(4):
        spans = [(r["ts"], r["ts"] + r["dur"]) for r in slices if r["ph"] == "X" and r["tid"] == thread]
        assert all(end <= start + 1e-6 for (_, end), (start, _) in pairwise(spans))


def trace_of(tmp_path, timeline):
    timeline.to_perfetto(tmp_path / "trace.json")
    return json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))["traceEvents"]


def test_the_trace_has_an_arrow_from_each_message_s_maker_to_its_user(tmp_path):
    records = trace_of(tmp_path, simulated(3, 2))
    slices = [record for record in records if record["ph"] == "X" and len(record["cat"]) == 1]

    def around(arrow):
        within = [r for r in slices if r["tid"] == arrow["tid"] and r["ts"] <= arrow["ts"] < r["ts"] + r["dur"]]
        return within[0]["name"]

    ends = {phase: {r["id"]: around(r) for r in records if r["ph"] == phase} for phase in "sf"}
    pairs = {(ends["s"][number], ends["f"][number]) for number in ends["s"]}
    forward = {(f"F{stage}.{m}", f"F{stage + 1}.{m}") for stage in range(2) for m in range(2)}
    assert pairs == forward | {(f"B{stage + 1}.{m}", f"B{stage}.{m}") for stage in range(2) for m in range(2)}
    assert len(ends["s"]) == len(ends["f"]) == len(pairs)


def test_the_trace_counts_the_activations_that_each_rank_keeps(tmp_path):
    sized = Timeline(simulated(2, 3).events, 2, [100, 7])
    counters = [record for record in trace_of(tmp_path, sized) if record["ph"] == "C"]
    most = {}
    for record in counters:
        (value,) = record["args"].values()
        most[record["name"]] = max(value, most.get(record["name"], 0))
    told = {f"stage {stage}: activations": count for stage, count in enumerate([2, 1])}
    assert most == told | {"stage 0: activations, bytes": 200, "stage 1: activations, bytes": 7}


@pytest.mark.parametrize(("actions", "steps"), [
    ("F0.0 F0.1 B0.0 B0.1", [(0, 1), (1, 2), (3, 1), (4, 0)]),
    ("F0.0 I0.0 F0.1 W0.0 I0.1 W0.1", [(0, 1), (2, 2), (4, 1), (6, 0)]),
    ("F0.0 F2.0 B2.0 B0.0", [(0, 1), (1, 2), (3, 1), (4, 0)]),
    ("F0.0 F0.1", []),
])  # fmt: skip
def test_activations_live_from_the_forward_s_start_to_the_end_of_who_needs_them_last(actions, steps):
    timeline = Timeline([Event(0, parse(text), at, at + 1) for at, text in enumerate(actions.split())], 1)
    assert [kept[:2] for kept in timeline.memory()[0]] == steps
    assert timeline.peak_memory() == [(max((count for _, count in steps), default=0), None)]


def test_bytes_count_by_stage_and_a_stage_without_them_is_refused():
    actions = map(parse, ["F0.0", "F0.1", "F2.0", "B2.0", "B0.0", "B0.1"])
    events = [Event(0, action, at, at + 1) for at, action in enumerate(actions)]
    assert Timeline(events, 1, {0: 10, 2: 5.5}).peak_memory() == [(3, 25.5)]
    with pytest.raises(ValueError, match=r"activation_bytes says nothing of stage 2, only of \[0, 1\]"):
        Timeline(events, 1, [10, 10])


def test_the_critical_path_of_equal_stages_fills_the_step_without_a_gap():
    for timeline in (simulated(4, 8), simulated(3, 2, "gpipe")):
        path = timeline.critical_path()
        assert sum(event.end - event.start for event in path) == pytest.approx(timeline.span)
        assert all(before.end == after.start for before, after in pairwise(path))


def test_the_critical_path_leads_through_the_slow_rank_but_not_to_a_message_that_was_there():
    told = [
        (0, "F0.0", 0, 1), (0, "SEND_F0.0>1", 1, 1.1), (0, "F0.1", 1.1, 2), (0, "SEND_F0.1>1", 2, 2.1),
        (1, "RECV_F1.0<0", 0, 1.2), (1, "F1.0", 1.2, 9), (1, "RECV_F1.1<0", 9, 9.1), (1, "F1.1", 9.1, 10),
    ]  # fmt: skip
    timeline = Timeline([Event(rank, parse(text), start, end) for rank, text, start, end in told], 2)
    assert [str(event.action) for event in timeline.critical_path()] == ["F0.0", "F1.0", "F1.1"]
    assert Timeline([], 1).critical_path() == []


def svg_texts(path):
    return [text for element in ElementTree.parse(path).iter() if (text := (element.text or "").strip())]


def test_the_picture_shows_stages_micro_batches_bubbles_and_title(tmp_path):
    pytest.importorskip("matplotlib")
    write_svg(tmp_path / "two.svg", {"planned": simulated(2, 3), "measured": simulated(2, 3)}, title="A <title> & more")
    texts = svg_texts(tmp_path / "two.svg")
    assert "A <title> & more" in texts
    for name in ("planned", "measured"):
        assert f"{name}  ·  bubble 25.0%  ·  12 ms" in texts
    assert texts.count("stage 1") == 2
    assert {"forward", "backward", "idle", "time in ms"} <= set(texts)
    per_number = 2 * 2 * 2  # two timelines, two stages, forward and backward
    assert texts.count("2") >= per_number


def test_the_picture_has_a_box_per_computation_in_the_colour_of_its_kind(tmp_path):
    pytest.importorskip("matplotlib")
    simulated(3, 4).to_svg(tmp_path / "one.svg")
    drawing = (tmp_path / "one.svg").read_text(encoding="utf-8")
    for colour in ("#2f6fde", "#0c8f82"):
        assert drawing.count(f"fill: {colour}") == 3 * 4 + 1  # and its square in the legend


def test_the_picture_shows_the_idle_time_of_each_rank_and_optionally_its_activations(tmp_path):
    pytest.importorskip("matplotlib")
    for memory in (False, True):
        write_svg(tmp_path / "one.svg", {"$a$": simulated(2, 3)}, memory=memory)
        texts = svg_texts(tmp_path / "one.svg")
        assert texts.count("25% idle") == 2
        assert ("activations kept" in texts) == memory
        assert any(text.startswith("$a$  ·") for text in texts)


def test_a_picture_of_the_same_timeline_is_the_same_file(tmp_path):
    pytest.importorskip("matplotlib")
    for name in ("a.svg", "b.svg"):
        simulated().to_svg(tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_the_png_is_a_png_and_higher_with_two_timelines(tmp_path):
    pytest.importorskip("matplotlib")
    simulated(4, 8).to_png(tmp_path / "one.png")
    write_png(tmp_path / "two.png", {"planned": simulated(4, 8), "measured": simulated(4, 8)}, title="1F1B")
    size = [(tmp_path / name).read_bytes()[:24] for name in ("one.png", "two.png")]
    assert all(head.startswith(b"\x89PNG\r\n") for head in size)
    (wide, high), (wide_two, high_two) = ((int.from_bytes(h[16:20]), int.from_bytes(h[20:24])) for h in size)
    assert wide == wide_two
    assert high_two > 1.5 * high


@pytest.mark.parametrize("ending", ["png", "svg", "html", "json"])
def test_timelines_of_any_size_can_be_drawn(tmp_path, ending):
    if ending in ("png", "svg"):
        pytest.importorskip("matplotlib")
    write = {"png": write_png, "svg": write_svg, "html": write_html, "json": write_perfetto}[ending]
    instant = Timeline([Event(0, parse("F0.0"), 5.0, 5.0)], 1)
    for timelines in ({"": Timeline([], 1)}, {"": instant}, {}, {"a": simulated(1, 1), "b": simulated(24, 2)}):
        write(tmp_path / f"any.{ending}", timelines)
        assert (tmp_path / f"any.{ending}").stat().st_size > 0


def test_a_picture_without_matplotlib_raises_an_error_with_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "retrograd\[viz\]"'):
        simulated().to_png(tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()
    simulated().to_html(tmp_path / "page.html")


def test_executed_orders_can_be_printed_and_parsed_as_a_schedule():
    timeline = simulated(2, 3)
    ran = [[event.action for event in timeline.events if event.rank == rank] for rank in range(2)]
    assert parse_schedule(format_schedule(ran)) == ran
