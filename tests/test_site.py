"""The site that `make docs` has built: its pages fit wide and narrow screens, and search finds PyTorch's names."""

import re
from pathlib import Path

import pytest
from tests.browser import chromium, needs_browser

SITE = Path(__file__).parents[1] / "build" / "site"
PAGES = sorted(SITE.rglob("*.html"))

selenium = pytest.importorskip("selenium", reason="needs selenium")
pytestmark = [
    needs_browser,
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="needs the site: make docs"),
]

FRAMES = """
    document.documentElement.className = "js";
    for (const table of document.querySelectorAll("article table:not([class])")) {
        const frames = ["md-typeset__scrollwrap", "md-typeset__table"].map((name) => {
            const frame = document.createElement("div");
            frame.className = name;
            return frame;
        });
        table.replaceWith(frames[0]);
        frames[0].append(frames[1]);
        frames[1].append(table);
    }
"""

# Pages and their parts that are wider than their boxes. Code and tables may scroll in a box of their own on a narrow
# screen only, and no line of code wraps; nothing ever makes the page itself wider than the screen.
TOO_WIDE = """
    const wide = (element) => element.scrollWidth > element.clientWidth + 1;
    const found = wide(document.documentElement) ? ["the page"] : [];
    for (const table of document.querySelectorAll("article table:not(.highlighttable)")) {
        const box = table.closest(".md-typeset__scrollwrap") ?? table.parentElement;
        const scrolls = getComputedStyle(box).overflowX !== "visible";
        if (wide(box) && !(arguments[0] && scrolls)) found.push("table: " + table.innerText.slice(0, 60));
    }
    for (const code of document.querySelectorAll("article pre > code")) {
        code.style.whiteSpace = "pre";
        const scrolls = getComputedStyle(code).overflowX !== "visible";
        if (wide(code) && !(arguments[0] && scrolls)) found.push("code: " + code.innerText.slice(0, 60));
    }
    // Anything else that the edge of the screen cuts off, such as a picture.
    const edge = document.documentElement.clientWidth + 1;
    const inBox = (element) => {
        for (let box = element.parentElement; box && box !== document.body; box = box.parentElement)
            if (getComputedStyle(box).overflowX !== "visible") return true;
        return false;
    };
    for (const element of document.querySelectorAll("body *")) {
        const { left, right, width, height } = element.getBoundingClientRect();
        if (width && height && left < edge && right > edge && !inBox(element))
            found.push(`${element.tagName} ${element.className}: ${Math.round(right)} of ${edge} pixels`);
    }
    return found.slice(0, 5);
"""

# The results of the search, which are in the shadow of an element.
FOUND = """
    const root = [...document.querySelectorAll("*")].map((element) => element.shadowRoot).find((shadow) => shadow);
    const found = [...(root?.querySelectorAll("a") ?? [])].map((link) => link.href);
"""


@pytest.fixture(scope="module")
def browser():
    with chromium() as driver:
        yield driver


def set_width(browser, width):
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def test_every_page_fits_a_wide_and_a_narrow_screen(browser):
    # Scripts would take most of the time; FRAMES does what they do to tables.
    browser.execute_cdp_cmd("Network.enable", {})
    browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*.js"]})
    found = {}
    for page in PAGES:
        browser.get(page.as_uri())
        browser.execute_script(FRAMES)
        for width, scrolling in ((1400, False), (400, True)):
            set_width(browser, width)
            # Sources of examples have long lines, which scroll on every screen.
            if wide := browser.execute_script(TOO_WIDE, scrolling, scrolling or "source" in page.parts):
                found[f"{page.relative_to(SITE)} at {width}"] = wide
    browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
    assert PAGES
    assert found == {}


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("torch.nn.Linear", "api/nn.html#rg.nn.Linear"),
        ("torch.optim.AdamW", "api/optim.html#rg.optim.AdamW"),
        ("scaled_dot_product_attention", "#rg.scaled_dot_product_attention"),
        ("einsum", "#rg.einsum"),
        ("torch.nn.functional.cross_entropy", "#rg.nn.functional.cross_entropy"),
        ("torch.utils.data.DataLoader", "#rg.utils.data.DataLoader"),
        ("torch.fft.rfft", "#rg.fft.rfft"),
        ("GradScaler", "#rg.GradScaler"),
        ("vmap", "#rg.vmap"),
        ("torch.compile", "compile.html"),
        ("register_full_backward_hook", "#rg.nn.Module.register_full_backward_hook"),
        ("torch.distributed.all_reduce", "#rg.distributed.all_reduce"),
        ("symbolic_trace", "#rg.fx.symbolic_trace"),
    ],
)
def test_the_search_finds_pytorchs_names_first(browser, name, entry):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.support.ui import WebDriverWait

    set_width(browser, 1400)
    browser.get((SITE / "index.html").as_uri())
    browser.execute_script("document.querySelector('.md-search__button').click()")
    WebDriverWait(browser, 60).until(lambda _: browser.execute_script(f"{FOUND} return root !== undefined"))
    ActionChains(browser).send_keys(name).perform()
    # Results change while the index is read and the name is typed; a wrong first result is a TimeoutException.
    WebDriverWait(browser, 60).until(
        lambda _: re.sub(r"\?h=[^#]*", "", browser.execute_script(f"{FOUND} return found[0]") or "").endswith(entry)
    )


def test_code_has_a_copy_button(browser):
    browser.get((SITE / "start.html").as_uri())
    blocks, buttons = browser.execute_script(
        """return ["article pre > code", "article .md-code__button[data-md-type=copy], article .md-clipboard"].map(
            (selector) => document.querySelectorAll(selector).length)"""
    )
    assert blocks == buttons > 0


def test_dark_mode_has_light_text_on_dark(browser):
    browser.get((SITE / "start.html").as_uri())
    colors = """
        document.body.style.setProperty("--md-transition", "none");
        const light = (text) => text.match(/[\\d.]+/g).slice(0, 3).reduce((sum, part) => sum + Number(part) / 765, 0);
        const of = (name) => getComputedStyle(document.body).getPropertyValue(name);
        const probe = document.body.appendChild(document.createElement("p"));
        return ["default-bg", "default-fg", "code-bg", "code-fg"].map((name) => {
            probe.style.color = of(`--md-${name}-color`);
            return light(getComputedStyle(probe).color);
        });
    """
    browser.execute_script("document.querySelector('label[for=__palette_1]').click()")
    page, text, code_page, code = browser.execute_script(colors)
    assert max(page, code_page) < 0.2
    assert min(text, code) > 0.6
