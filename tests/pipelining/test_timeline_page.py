"""The timelines' page in a browser: zoom, tooltips, pins and switches work by mouse and keys, without an error."""

import pytest
from tests.browser import chromium, needs_browser

from retrograd.pipelining.schedules.actions import parse
from retrograd.pipelining.timeline.timeline import Event, Timeline, write_html

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
    for told in ("B0.0 backward", "rank 0, stage 0", "4 s to 6 s", "2 micro-batches, 4 KiB"):
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
    for text, count in [("f1.1", 2), ("backward stage 0", 4), ("rank 1 micro-batch 0", 6), ("wait", 6), ("F9.9", 0)]:
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
