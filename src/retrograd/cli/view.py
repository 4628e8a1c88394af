"""Show timelines in the browser: several files on one page, one below the other or rank by rank."""

import tempfile
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from retrograd.cli.errors import UsageError, existing_file
from retrograd.pipelining.timeline.chrome_trace import UNNAMED
from retrograd.pipelining.timeline.timeline import Timeline, write_html
from retrograd.pipelining.timeline.trace_reader import read_perfetto

PAGES = (".html", ".htm")


def view(files: Sequence[Path], output: Path | None, *, browse: bool) -> Path:
    """Write the page of the timelines of all files, and open it if `browse`; return its path."""
    if any(file.suffix in PAGES for file in files):
        if len(files) > 1 or output is not None:
            raise UsageError("a page is shown alone; to compare timelines, give the .json files of write_perfetto")
        page = existing_file(files[0])
    else:
        page = output or Path(tempfile.mkdtemp(prefix="retrograd-")) / "timeline.html"
        write_html(page, _named_timelines(files), title=" and ".join(file.stem for file in files))
    if browse:
        webbrowser.open(page.resolve().as_uri())
    return page


def _named_timelines(files: Sequence[Path]) -> dict[str, Timeline]:
    """Return the timelines of all files by name; of several files, the name begins with the file's."""
    named: dict[str, Timeline] = {}
    for file in files:
        try:
            found = read_perfetto(existing_file(file))
        except ValueError as error:
            raise UsageError(str(error)) from error
        for name, timeline in found.items():
            full = name if len(files) == 1 else file.stem if name == UNNAMED else f"{file.stem}: {name}"
            if full in named:
                raise UsageError(f"two timelines have the name {full!r}; rename a file")
            named[full] = timeline
    return named
