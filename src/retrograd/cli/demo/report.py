"""Print and save the results of the demo."""

import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from retrograd.cli.demo.figure import draw
from retrograd.cli.demo.measure import LARGEST_DIFFERENCE, DemoResults, as_json
from retrograd.cli.demo.training import Trainer
from retrograd.interop.atomic_write import atomic_replace
from retrograd.kernels.processors import available_processors
from retrograd.pipelining import write_html, write_perfetto, write_png

FILES = {
    "loss.png": "loss and accuracy",
    "timeline.html": "the pipeline's timeline, to look into",
    "timeline.png": "the same as a picture",
    "timeline.json": "the same for ui.perfetto.dev",
    "checkpoint.safetensors": "the state from which --resume continues",
    "metrics.json": "all numbers",
}


def write(folder: Path, trainer: Trainer, measured: DemoResults) -> None:
    """Write pictures, timelines and numbers into the folder."""
    timelines = {"planned, a core per stage": measured.planned, f"measured, {_cores()}": measured.measured}
    pipeline = trainer.pipeline
    title = f"{pipeline.schedule}, {len(measured.stages)} stages, {pipeline.micro_batches} microbatches"
    draw(folder / "loss.png", trainer)
    write_html(folder / "timeline.html", timelines, title=title)
    write_png(folder / "timeline.png", timelines, title=title)
    write_perfetto(folder / "timeline.json", timelines)
    with atomic_replace(folder / "metrics.json") as unfinished:
        unfinished.write_text(json.dumps(as_json(trainer, measured), indent=2) + "\n")


def _cores() -> str:
    count = available_processors()
    return f"{count} core{'s' if count > 1 else ''}"


def show(console: Console, folder: Path, measured: DemoResults) -> None:
    """Print the table of stages and the results."""
    console.print(_table(measured))
    _show_bubble(console, measured)
    _show_results(console, measured)
    console.print(f"\nIn {folder}:")
    for name, about in FILES.items():
        console.print(f"  {name:<24}{about}")


def _table(measured: DemoResults) -> Table:
    table = Table(title="The pipeline's stages", title_justify="left", title_style="bold")
    for column, justify in {"stage": "right", "holds": "left", "parameters": "right", "busy": "right"}.items():
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    for index, stage in enumerate(measured.stages):
        table.add_row(str(index), stage.holds, f"{stage.parameters:,}", f"{stage.busy:.0%}")
    return table


def _show_bubble(console: Console, measured: DemoResults) -> None:
    theory = measured.measured.ideal_bubble()
    parts = [f"{measured.measured.bubble():.1%} measured", f"{measured.planned.bubble():.1%} planned"]
    parts += [] if theory is None else [f"{theory:.1%} in theory, (p - 1) / (m + p - 1)"]
    console.print(f"Bubble, the share of time in which stages wait: {', '.join(parts)}")
    stages, cores = len(measured.stages), available_processors()
    if cores < stages:
        console.print(f"  (the {stages} stages share {cores} cores, so waiting for a core counts as busy)", style="dim")


def _show_results(console: Console, measured: DemoResults) -> None:
    examples, seconds = measured.training
    if examples:
        console.print(f"Trained in {seconds:.1f} s, {examples / seconds:,.0f} examples/s, tests included")
    console.print(f"Test accuracy: {measured.accuracy:.1%}", style="bold")
    verdict = "" if measured.sound else ": too much"
    console.print(
        f"Largest difference between pipelined and unsplit gradients: {measured.gradient_difference:.1e} of the "
        f"largest gradient (at most {LARGEST_DIFFERENCE:.0e}){verdict}"
    )
