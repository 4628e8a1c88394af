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

# What the scripts of the site, which do not run here, do to tables; and no line of code wraps.
PREPARE = """
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
    for (const code of document.querySelectorAll("article pre > code")) code.style.whiteSpace = "pre";
"""

# Pages and their parts that are wider than their boxes. Code and tables may scroll in a box of their own on a narrow
# screen only; nothing ever makes the page itself wider than the screen.
TOO_WIDE = """
    const wide = (element) => element.scrollWidth > element.clientWidth + 1;
    const found = wide(document.documentElement) ? ["the page"] : [];
    for (const table of document.querySelectorAll("article table:not(.highlighttable)")) {
        const box = table.closest(".md-typeset__scrollwrap") ?? table.parentElement;
        const scrolls = getComputedStyle(box).overflowX !== "visible";
        if (wide(box) && !(arguments[0] && scrolls)) found.push("table: " + table.innerText.slice(0, 60));
    }
    for (const code of document.querySelectorAll("article pre > code")) {
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

# A page loads in a frame outside the window, which takes a third of the time: it is laid out, and never painted.
VISIT = """
    const [page, prepare, tooWide, done] = arguments;
    const frame = document.createElement("iframe");
    frame.style = "position: absolute; top: 5000px; border: 0; width: 1400px; height: 900px";
    frame.onload = () => {
        const inFrame = frame.contentWindow;
        inFrame.Function(prepare)();
        const found = {};
        for (const [width, scrolls] of [[1400, false], [400, true]]) {
            frame.style.width = `${width}px`;
            const wide = inFrame.Function(tooWide)(scrolls);
            if (wide.length || inFrame.innerWidth !== width) found[width] = wide;
        }
        frame.remove();
        done(found);
    };
    frame.src = page;
    document.body.append(frame);
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


@pytest.fixture(scope="module")
def search():
    """Return a browser with the search of a page open: its index takes seconds to read, once.

    No other test may visit a page with it, as tests run in any order and the next one would find no search there.
    """
    from selenium.webdriver.support.ui import WebDriverWait

    metrics = {"width": 1400, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    with chromium() as driver:
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        driver.get((SITE / "index.html").as_uri())
        driver.execute_script("document.querySelector('.md-search__button').click()")
        WebDriverWait(driver, 60).until(lambda _: driver.execute_script(f"{FOUND} return root !== undefined"))
        yield driver


@pytest.fixture(scope="module")
def frames(tmp_path_factory):
    """Return a browser with an empty page, whose frames may be read though they are other files."""
    empty = tmp_path_factory.mktemp("frames") / "empty.html"
    empty.write_text("<!doctype html><title>frames</title><body></body>")
    with chromium("--allow-file-access-from-files") as driver:
        driver.get(empty.as_uri())
        driver.set_script_timeout(60)
        # Scripts would take most of the time; PREPARE does what they do to tables.
        driver.execute_cdp_cmd("Network.enable", {})
        driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*.js"]})
        yield driver


@pytest.mark.parametrize("folder", sorted({str(page.parent.relative_to(SITE)) for page in PAGES}))
def test_every_page_fits_a_wide_and_a_narrow_screen(frames, folder):
    found = {}
    for page in (SITE / folder).glob("*.html"):
        if wide := frames.execute_async_script(VISIT, page.as_uri(), PREPARE, TOO_WIDE):
            found[page.name] = wide
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
        ("register_buffer", "#rg.nn.Module.register_buffer"),
        ("save_for_backward", "#rg.autograd.function.FunctionCtx.save_for_backward"),
        ("make_fx", "#rg.fx.experimental.proxy_tensor.make_fx"),
        ("SummaryWriter", "#rg.utils.tensorboard.SummaryWriter"),
        ("torch.distributed.checkpoint.save", "#rg.distributed.checkpoint.save"),
        ("torch.distributed.pipelining.PipelineStage", "#rg.pipelining.PipelineStage"),
        ("minimize", "#rg.scipy.optimize.minimize"),
    ],
)
def test_the_search_finds_pytorchs_names_first(search, name, entry):
    from selenium.webdriver import ActionChains, Keys
    from selenium.webdriver.support.ui import WebDriverWait

    ActionChains(search).key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL).send_keys(name).perform()
    # Results change while the index is read and the name is typed; a wrong first result is a TimeoutException.
    WebDriverWait(search, 60).until(
        lambda _: re.sub(r"\?h=[^#]*", "", search.execute_script(f"{FOUND} return found[0]") or "").endswith(entry)
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
