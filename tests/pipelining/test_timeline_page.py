"""The timelines' page in a browser: zoom, tooltips, pins and switches work by mouse and keys, without an error."""

import pytest
from tests.browser import chromium, needs_browser

from retrograd.pipelining.schedules.actions import parse
from retrograd.pipelining.timeline.timeline import PROGRAM, Event, Sample, Span, Step, Timeline, write_html

HOSTILE = '<img src=x onerror="throw 1">'

selenium = pytest.importorskip("selenium", reason="needs selenium")
pytestmark = needs_browser


def step(slower=1.0):
    told = [
        (0, "F0.0", 0, 1), (0, "SEND_F0.0>1", 1, 1), (0, "F0.1", 1, 2), (0, "SEND_F0.1>1", 2, 2),
        (0, "RECV_B0.0<1", 2, 4), (0, "B0.0", 4, 6), (0, "RECV_B0.1<1", 6, 7), (0, "B0.1", 7, 9),
        (1, "RECV_F1.0<0", 0, 1), (1, "F1.0", 1, 2), (1, "B1.0", 2, 4), (1, "SEND_B1.0>0", 4, 4),
        (1, "F1.1", 4, 5), (1, "B1.1", 5, 7), (1, "SEND_B1.1>0", 7, 7),
    ]  # fmt: skip
    events = [Event(rank, parse(text), start * slower, end * slower) for rank, text, start, end in told]
    return Timeline(events, 2, [2048, 1024])


@pytest.fixture(scope="module")
def browser():
    with chromium() as driver:
        yield driver


class Page:
    """A page in a browser, with its mouse and keys."""

    def __init__(self, browser, path):
        self.browser = browser
        browser.get(path.as_uri())

    def run(self, script, *arguments):
        return self.browser.execute_script(f"if (queued) drawNow(); {script}", *arguments)

    def mouse(self):
        from selenium.webdriver import ActionChains

        return ActionChains(self.browser, duration=20)

    def place(self, name, timeline=0):
        """Return the position of the middle of an action in the window."""
        return self.run(
            """const event = timelines[arguments[1]].find(arguments[0]);
            const chart = charts.find(chart => chart.rowOf(event) !== undefined);
            const box = chart.over.getBoundingClientRect(), x = chart.x((event.start + event.end) / 2);
            return [box.left + x, box.top + chart.middle(event)].map(Math.round);""",
            name, timeline,
        )  # fmt: skip

    def move_to(self, name, timeline=0):
        x, y = self.place(name, timeline)
        mouse = self.mouse()
        mouse.w3c_actions.pointer_action.move_to_location(x, y)
        return mouse

    def wheel(self, name, pixels):
        from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

        x, y = self.place(name)
        self.mouse().scroll_from_origin(ScrollOrigin.from_viewport(x, y), 0, pixels).perform()

    def click(self, name):
        self.browser.find_element("id", name).click()

    def keys(self, *keys):
        self.mouse().send_keys(*keys).perform()

    def text(self, name):
        return self.browser.find_element("id", name).text

    def view(self):
        return self.run("return [view.from, view.to]")

    def errors(self):
        return [entry for entry in self.browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


@pytest.fixture
def page(browser, tmp_path):
    write_html(tmp_path / "step.html", {"planned": step(), HOSTILE: step(1.5)}, title=HOSTILE)
    page = Page(browser, tmp_path / "step.html")
    yield page
    assert page.errors() == []


def test_the_wheel_buttons_and_drags_zoom_and_move_all_charts_at_once(page):
    whole = page.view()
    assert whole == [0, 13.5]
    page.wheel("F1.1", -300)
    near = page.view()
    assert near[1] - near[0] < 0.7 * 13.5
    assert near[0] < 4.5 < near[1]
    page.move_to("F1.1").click_and_hold().move_by_offset(-100, 0).release().perform()
    moved = page.view()
    assert moved[0] > near[0]
    assert moved[1] - moved[0] == pytest.approx(near[1] - near[0])
    page.click("in")
    assert page.view()[1] - page.view()[0] == pytest.approx((near[1] - near[0]) / 1.6)
    page.click("fit")
    assert page.view() == whole
    axis = page.browser.find_element("id", "axis")
    page.mouse().move_to_element(axis).click_and_hold().move_by_offset(100, 0).release().perform()
    assert page.view()[1] - page.view()[0] < 0.2 * 13.5
    assert page.run("return state.pinned") is None


def test_an_action_shows_its_details_when_pointed_at_and_stays_when_clicked(page):
    from selenium.webdriver.common.keys import Keys

    page.move_to("B0.0").perform()
    for told in ("B0.0 backward", "rank 0, stage 0", "4 s to 6 s", "2 microbatches, 4 KiB"):
        assert told in page.text("tip")
    page.move_to("B0.0").click().perform()
    page.move_to("F1.1").perform()
    assert "F1.1 forward" in page.text("tip")
    assert "B0.0 backward" in page.text("pinned")
    assert f"{HOSTILE}\n3 s (here 0.667 ×), starts 2 s later" in page.text("pinned")
    page.keys(Keys.ESCAPE)
    assert page.text("pinned") == page.text("tip") == ""


def test_timelines_are_shown_and_hidden_and_compared_rank_by_rank(page):
    assert page.run("return charts.map(chart => chart.rows.length)") == [2, 2]
    page.click("paired")
    assert page.run("return charts.map(chart => chart.rows.map(([t, rank]) => t.name + rank))") == [
        ["planned0", f"{HOSTILE}0", "planned1", f"{HOSTILE}1"],
    ]
    assert page.place("F1.0")[1] < page.place("F1.0", 1)[1]
    page.click("paired")
    page.browser.find_elements("css selector", "#shown button")[0].click()
    assert page.run("return charts.map(chart => chart.rows[0][0].name)") == [HOSTILE]
    for name in ("memory", "critical", "theme"):
        page.click(name)
    assert "5 computations" not in page.text("charts")
    assert "critical path 6 computations, 100.0 % of the time" in page.text("charts")


def test_keys_walk_from_action_to_action_and_pin(page):
    from selenium.webdriver.common.keys import Keys

    page.run("charts[0].over.focus()")
    page.keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert "F0.1" in page.text("tip")
    page.keys(Keys.ARROW_DOWN, Keys.ENTER)
    assert "F1.0 forward" in page.text("pinned")
    page.keys(Keys.END)
    assert "B1.1" in page.text("tip")
    page.keys("+")
    assert page.view()[1] - page.view()[0] == pytest.approx(13.5 / 1.6)
    page.keys("0")
    assert page.view() == [0, 13.5]


def test_both_themes_draw_and_the_page_prints(page):
    def ground():
        return page.run("return [getComputedStyle(document.body).backgroundColor, paint.card]")

    first = ground()
    page.click("theme")
    assert all(a != b for a, b in zip(first, ground(), strict=True))
    assert len(page.browser.print_page()) > 10_000


def test_actions_are_found_by_name_kind_and_number_and_visited_in_order(page):
    from selenium.webdriver.common.keys import Keys

    box = page.browser.find_element("id", "search")
    for text, count in [("f1.1", 2), ("backward stage 0", 4), ("rank 1 microbatch 0", 6), ("wait", 6), ("F9.9", 0)]:
        box.clear()
        box.send_keys(text)
        assert page.text("found") == (str(count) if count else "none")
    box.clear()
    box.send_keys("backward stage 0", Keys.ENTER)
    assert page.text("found") == "1 of 4"
    assert "B0.0 backward" in page.text("pinned")
    page.run("show(0, 1)")
    box.send_keys(Keys.ENTER)
    assert page.text("found") == "2 of 4"
    from_, to = page.view()
    assert from_ <= 6 < to
    box.send_keys(Keys.SHIFT, Keys.ENTER)
    assert page.text("found") == "1 of 4"
    page.browser.find_elements("css selector", "#shown button")[0].click()
    assert page.text("found") == "2"


def test_a_part_of_the_time_is_measured_by_rank_and_kind(page):
    page.click("measure")
    page.move_to("F1.0").click_and_hold().move_by_offset(100, 0).release().perform()
    assert page.view() == [0, 13.5]
    from_, to = page.run("return state.measured")
    assert from_ == pytest.approx(1.5, abs=0.1)
    assert to > 2
    assert "planned: busy" in page.text("measured")
    page.run("measure([2, 6])")
    assert page.run("return measureRange(timelines[0], 2, 6).busy") == [2, 4]  # B0.0; B1.0, F1.1 and half of B1.1
    told = page.browser.find_element("id", "measured").get_attribute("textContent")
    for text in ("4 s", "2 s to 6 s", "planned: busy75.0 %", "stage 050.0 %", "backward3, in all 5 s"):
        assert text in told
    page.click("measure")
    assert page.text("measured") == ""


# ------------------------------------------------------------------------------------------------------ whole runs


def run(steps=3, slower=1.0):
    """Return a run of `step`, ten seconds a step, with two operators in each computation, and samples."""
    events = [
        event._replace(start=event.start * slower + 10 * k, end=event.end * slower + 10 * k)
        for k in range(steps)
        for event in step().events
    ]
    spans = [Span(PROGRAM, "train", "range", 10.0 * k, 10.0 * k + 9) for k in range(steps)]
    for event in events:
        if event.action.kind.is_compute:
            middle = (event.start + event.end) / 2
            spans.append(Span(event.rank, "linear", "operator", event.start, middle, 0, "64×256, 256"))
            spans.append(Span(event.rank, "NormBackward0", "backward", middle, event.end))
            spans.append(Span(event.rank, HOSTILE, "operator", middle, event.end, 1))
    samples = [Sample(0.5 + k, (0.25, 0.75), 2**20 * (k + 1)) for k in range(10 * steps)]
    notes = [f"It ended early: {HOSTILE}"]
    return Timeline(events, 2, spans=spans, steps=[Step(k, 10.0 * k, 10.0 * k + 9) for k in range(steps)],
                    samples=samples, notes=notes)  # fmt: skip


def plain(steps=3):
    """Return a run of a plain loop."""
    spans = [
        Span(0, name, "operator", 10.0 * k + at, 10.0 * k + at + 2)
        for k in range(steps)
        for at, name in ((0, "mul"), (4, "sum"))
    ]
    return Timeline([], 1, spans=spans, steps=[Step(k, 10.0 * k, 10.0 * k + 9) for k in range(steps)])


@pytest.fixture
def run_page(browser, tmp_path):
    write_html(tmp_path / "run.html", {"before": run(), "after": run(slower=0.9), "plain": plain()})
    page = Page(browser, tmp_path / "run.html")
    yield page
    assert page.errors() == []


def span_place(page, rank, name, count, timeline=0):
    """Return the position in the window of the k-th span of a name on a rank."""
    return page.run(
        """const [rank, name, count, number] = arguments, timeline = timelines[number], spans = timeline.spansOf(rank);
        const index = [...Array(spans.length).keys()].filter(i => timeline.texts[spans.name[i]] === name)[count];
        const event = timeline.spanEvent(rank, index), chart = charts.find(chart => chart.rowOf(event) !== undefined);
        const box = chart.over.getBoundingClientRect();
        return [box.left + chart.x((event.start + event.end) / 2), box.top + chart.middle(event)].map(Math.round);""",
        rank, name, count, timeline,
    )  # fmt: skip


def point_at(page, place):
    mouse = page.mouse()
    mouse.w3c_actions.pointer_action.move_to_location(*place)
    return mouse


def test_an_operator_inside_of_an_action_shows_its_name_shapes_and_time(run_page):
    run_page.run("show(10, 20)")
    point_at(run_page, span_place(run_page, 0, "linear", 4)).perform()  # F0.0 of step 1
    for text in ("linear operator", "before, stage 0, step 1", "64×256, 256", "10 s to 10.5 s"):
        assert text in run_page.text("tip")
    point_at(run_page, span_place(run_page, 0, HOSTILE, 4)).click().perform()
    assert f"{HOSTILE} operator" in run_page.text("pinned")
    assert "after\n450 ms (here 1.11 ×), starts 50 ms earlier" in run_page.text("pinned")
    assert "plain\nnot there" in run_page.text("pinned")
    run_page.click("operators")
    assert run_page.run("return charts[0].boxes.map(box => box.depth)") == [0, 0, 0]


def test_an_action_is_compared_and_followed_within_its_step(run_page):
    run_page.run("pin(timelines[0].find('B1.0', 2))")
    shown = run_page.text("pinned")
    assert "before, rank 1, stage 1, step 2" in shown
    assert "after\n1.8 s (here 1.11 ×), starts 200 ms earlier" in shown
    followed = run_page.run("return timelines[0].of(state.pinned).map(event => [event.name, event.step])")
    assert {step for _, step in followed} == {2}
    assert len(followed) == len([event for event in step().events if event.action.micro_batch == 0])


def test_a_click_on_a_step_and_the_brackets_show_steps(run_page):
    place = run_page.run(
        """const box = charts[0].over.getBoundingClientRect();
        return [Math.round(box.left + charts[0].x(14)), Math.round(box.top + 10)]"""
    )
    point_at(run_page, place).click().perform()
    assert run_page.view() == [10, 19]
    run_page.keys("]")
    assert run_page.view() == [20, 29]
    run_page.keys("[", "[", "[")
    assert run_page.view() == [0, 9]
    run_page.keys("0")
    assert run_page.view() == [0, 29]


def test_operators_are_found_by_a_part_of_their_name_and_the_step(run_page):
    from selenium.webdriver.common.keys import Keys

    box = run_page.browser.find_element("id", "search")
    for text, count in [
        ("linear", 48),
        ("lin step 1", 16),
        ("normback rank 1 step 2", 8),
        ("train", 6),
        ("mul", 3),
        ("f0.0 step 1", 2),
    ]:
        box.clear()
        box.send_keys(text)
        assert run_page.text("found") == str(count), text
    box.send_keys(Keys.ENTER, Keys.ENTER)
    assert run_page.text("found") == "2 of 2"
    assert "F0.0 forward" in run_page.text("pinned")


def test_a_range_counts_operators_and_the_busy_share_of_a_plain_loop(run_page):
    found = run_page.run(
        """const plain = measureRange(timelines[2], 1, 5), names = [...measureRange(timelines[0], 10, 12).names];
        return [plain.busy, [...plain.names].map(([name, { count, seconds }]) => [name, count, seconds]), names]"""
    )
    assert found[0] == [2]
    assert found[1] == [["mul", 1, 1], ["sum", 1, 1]]
    assert [(name, sums["count"]) for name, sums in found[2]] == [("linear", 3), (HOSTILE, 3)]
    run_page.run("measure([10, 12])")
    shown = run_page.browser.find_element("id", "measured").get_attribute("textContent")
    assert "linear3, in all 1.5 s" in shown


def test_the_use_of_cores_and_memory_is_read_under_the_ranks(run_page):
    assert run_page.run("return charts.map(chart => chart.constructor.name)") == [
        "ChartWithOverlay", "MachineChart", "ChartWithOverlay", "MachineChart", "ChartWithOverlay",
    ]  # fmt: skip
    assert run_page.run("return charts[1].over.getAttribute('aria-label')") == (
        "cores busy 50.0 % on average, memory up to 30 MiB"
    )
    written = run_page.run(
        """const pen = charts[1].over.getContext("2d"), written = [], write = pen.fillText;
        pen.fillText = function (text, ...at) { written.push(text); write.call(pen, text, ...at); };
        state.time = 4.2; redraw(false); drawNow(); return written"""
    )
    assert written == ["50 % busy, 5 MiB"]
    run_page.click("machine")
    assert run_page.run("return charts.length") == 3


def test_notes_of_a_recording_are_shown_as_text(run_page):
    notes = run_page.browser.find_elements("css selector", ".note")
    assert [note.text for note in notes] == [f"It ended early: {HOSTILE}"] * 2


def test_keys_walk_over_the_operators_of_a_plain_loop(run_page):
    from selenium.webdriver.common.keys import Keys

    for button in run_page.browser.find_elements("css selector", "#shown button")[:2]:
        button.click()
    run_page.run("charts[0].over.focus()")
    run_page.keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert "sum operator" in run_page.text("tip")
    run_page.click("paired")
    assert run_page.run("return charts[0].rows.length") == 1


def test_runs_are_compared_rank_by_rank_below_the_steps_of_each(run_page):
    run_page.click("paired")
    assert run_page.run("return charts[0].rows.map(([timeline, rank]) => timeline.name + ' ' + rank)") == [
        "before -1", "after -1", "before 0", "after 0", "plain 0", "before 1", "after 1",
    ]  # fmt: skip
    assert run_page.run("return charts[0].heads.map(timeline => timeline.name)") == ["before", "after", "plain"]


def test_a_page_of_200_000_boxes_draws_a_bounded_number_of_them(browser, tmp_path):
    lengths = [1e-6 * (1 + k % 7) for k in range(200_000)]
    spans, now = [], 0.0
    for k, length in enumerate(lengths):
        spans.append(Span(0, f"op{k % 50}", "operator", now, now + length))
        now += 2 * length
    steps = [Step(k, now * k / 1000, now * (k + 1) / 1000) for k in range(1000)]
    write_html(tmp_path / "large.html", {"": Timeline([], 1, spans=spans, steps=steps)})
    page = Page(browser, tmp_path / "large.html")
    count = """const pen = charts[0].canvas.getContext("2d"), fill = pen.fillRect; let drawn = 0;
        pen.fillRect = function (...box) { drawn++; fill.apply(pen, box); };
        redraw(); drawNow(); pen.fillRect = fill; return drawn"""
    assert 500 < page.run(count) < 10_000
    page.run("id('search').value = 'op7'; search()")
    assert page.text("found") == "4000"
    frames = """const pen = charts[0].over.getContext("2d"), frame = pen.stroke; let drawn = 0;
        pen.stroke = function () { drawn++; frame.call(pen); };
        redraw(false); drawNow(); pen.stroke = frame; return drawn"""
    assert 100 < page.run(frames) < 2000
    page.run("show(timelines[0].spans[0].start[100], timelines[0].spans[0].end[120])")
    assert page.run(count) < 60
    assert page.errors() == []
