"""Draw the pictures of docs/timelines.md: `python tools/timelines.py`. The page's needs Chromium and selenium.

The README's `timeline.png` is written by `retrograd demo`.
"""

import random
import shutil
import sys
import tempfile
from pathlib import Path

from retrograd.pipelining import Timeline, make_schedule, simulate, write_html, write_svg
from retrograd.pipelining.schedules.actions import Kind
from retrograd.pipelining.schedules.lowering import chain

IMAGES = Path(__file__).parents[1] / "docs/images"
STAGES, MICRO_BATCHES, MEGABYTE = 4, 8, 1 << 20


def step(schedule: str, uneven: float = 0.0) -> Timeline:
    """Return a step whose backwards take twice the time of forwards, each longer by up to `uneven` times itself."""
    chance, seconds = random.Random(0), {Kind.F: 1e-3, Kind.B: 2e-3}
    program = make_schedule(schedule, STAGES, MICRO_BATCHES)
    made = simulate(program, chain(STAGES), lambda a: seconds.get(a.kind, 1e-4) * (1 + uneven * chance.random()))
    return Timeline(made.events, made.ranks, [3 * MEGABYTE] * STAGES)


def save_screenshot(page: Path, picture: Path) -> None:
    """Save a screenshot of the page in a browser, with one action pinned."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars", "--window-size=1300,1090"):
        options.add_argument(argument)
    options.binary_location = shutil.which("chromium") or ""
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        browser.get(page.as_uri())
        browser.execute_script("pin(timelines[0].find('F2.3')); drawNow()")
        browser.save_screenshot(str(picture))
    finally:
        browser.quit()


def main() -> None:
    write_svg(IMAGES / "schedules.svg", {name: step(name) for name in ("gpipe", "1f1b")}, memory=True)
    timelines = {"even stages": step("1f1b"), "uneven stages": step("1f1b", uneven=0.8)}
    with tempfile.TemporaryDirectory() as folder:
        write_html(Path(folder, "page.html"), timelines, title="1F1B, 4 stages, 8 micro-batches")
        save_screenshot(Path(folder, "page.html"), IMAGES / "timeline_page.png")


if __name__ == "__main__":
    sys.exit(main())
