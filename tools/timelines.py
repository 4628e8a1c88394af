"""Draw the pictures of docs/timelines.md: `python tools/timelines.py`. The page's needs Chromium and selenium.

The README's `timeline.png` is written by `retrograd demo`.
"""

import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import retrograd as rg
import retrograd.distributed as dist
from retrograd.autograd.profiler import record_function
from retrograd.pipelining import (
    Pipeline,
    Timeline,
    TimelineRecorder,
    make_schedule,
    merge_timelines,
    read_perfetto,
    simulate,
    write_html,
    write_svg,
)
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


def train(steps: int, width: int = 192, stages: int | None = None) -> Timeline:
    """Return the recorded steps of a small training run, after one step that is not recorded."""
    nn = rg.nn
    model = nn.Sequential(
        *[layer for _ in range(STAGES) for layer in (nn.Linear(width, width), nn.LayerNorm(width), nn.GELU())]
    )
    optimizer = rg.optim.SGD(model.parameters(), lr=0.1)
    x, y = rg.randn(256, width), rg.randn(256, width)
    pipeline = stages and Pipeline(model, stages, micro_batches=4, loss_fn=nn.functional.mse_loss)

    def run_step() -> None:
        if pipeline:
            with record_function("pipeline"):
                pipeline.step(x, target=y)
        else:
            with record_function("forward"):
                loss = nn.functional.mse_loss(model(x), y)
            with record_function("backward"):
                loss.backward()
        with record_function("optimizer"):
            optimizer.step()
            optimizer.zero_grad()

    run_step()
    with TimelineRecorder(pipeline or None, sample_every=0.005) as recorder:
        for _ in range(steps):
            run_step()
            recorder.step()
    return recorder.timeline()


def train_as_rank(folder: Path) -> None:
    """Record steps of a model that this rank trains together with others; write the timeline to the folder."""
    dist.init_process_group()
    layers = [layer for _ in range(6) for layer in (rg.nn.Linear(512, 512), rg.nn.ReLU())]
    model = rg.nn.parallel.DistributedDataParallel(rg.nn.Sequential(*layers), bucket_cap_mb=2)
    optimizer = rg.optim.SGD(model.parameters(), lr=0.1)
    x = rg.randn(256, 512)
    with TimelineRecorder(sample_every=None) as recorder:
        for _ in range(8):
            with record_function("forward"):
                loss = model(x).square().mean()
            with record_function("backward"):
                loss.backward()
            with record_function("optimizer"):
                optimizer.step()
                optimizer.zero_grad()
            recorder.step()
    recorder.timeline().to_perfetto(folder / f"{dist.get_rank()}.json")
    dist.destroy_process_group()


def train_ranks(ranks: int) -> Timeline:
    """Return the recorded steps of ranks over MPI, one thread each."""
    with tempfile.TemporaryDirectory() as folder:
        launch = ["-m", "retrograd", "run", "-n", str(ranks), "--transport", "mpi", __file__, folder]
        subprocess.run([sys.executable, *launch], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        files = [read_perfetto(Path(folder, f"{rank}.json")) for rank in range(ranks)]
    return merge_timelines([timeline for file in files for timeline in file.values()])


def save_screenshot(page: Path, picture: Path, script: str, height: int) -> None:
    """Save a screenshot of the page in a browser, after a script has run in it."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars", f"--window-size=1300,{height}"):
        options.add_argument(argument)
    options.binary_location = shutil.which("chromium") or ""
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        browser.get(page.as_uri())
        browser.execute_script(f"id('numbers').open = false; {script}; drawNow()")
        browser.save_screenshot(str(picture))
    finally:
        browser.quit()


def main() -> None:
    if sys.argv[1:]:
        return train_as_rank(Path(sys.argv[1]))
    write_svg(IMAGES / "schedules.svg", {name: step(name) for name in ("gpipe", "1f1b")}, memory=True)
    timelines = {"even stages": step("1f1b"), "uneven stages": step("1f1b", uneven=0.8)}
    measured = train(12, stages=STAGES)
    runs = {"width 192": train(8), "width 256": train(8, width=256)}
    step_5 = "const step = timelines[0].steps.all[5]; show(step.start, step.end)"
    part = "const { all } = timelines[0].steps; show(0, all[2].end); measure([all[1].start, all[1].end])"
    pages = [
        ("timeline_page.png", timelines, "1F1B, 4 stages, 8 microbatches", "pin(timelines[0].find('F2.3'))", 1060),
        ("timeline_run.png", {"": measured}, "Step 5 of a training run", step_5, 810),
        ("timeline_runs.png", runs, "Two training runs", part, 960),
        ("timeline_ranks.png", {"": train_ranks(2)}, "Step 5 of two ranks", step_5, 690),
    ]
    with tempfile.TemporaryDirectory() as folder:
        for picture, shown, title, script, height in pages:
            write_html(Path(folder, "page.html"), shown, title=title)
            save_screenshot(Path(folder, "page.html"), IMAGES / picture, script, height)


if __name__ == "__main__":
    sys.exit(main())
