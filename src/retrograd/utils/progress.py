"""Progress of long work: a live bar in a terminal or notebook, occasional lines elsewhere, or nothing."""

import math
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any, Generic, Protocol, TextIO, TypeVar, overload

from retrograd.foundation.describe_value import describe

T = TypeVar("T")

PERCENT_PER_LINE = 10
SECONDS_PER_BAR = 0.1


@overload
def progress(work: int, description: str, *, quiet: bool = ..., file: TextIO | None = ...) -> "Progress[int]": ...
@overload
def progress(work: Iterable[T], description: str, *, quiet: bool = ..., file: TextIO | None = ...) -> "Progress[T]": ...
def progress(
    work: Iterable[Any] | int, description: str, *, quiet: bool = False, file: TextIO | None = None
) -> "Progress[Any]":
    """Show progress on `file` (standard error).

    work: an iterable, or the number of steps, which `advance` then counts. In a terminal with rich
    installed (the extra `cli`), and below the cell of a notebook, a live bar is shown; otherwise a line for
    each tenth of the work, or, if the amount is unknown, at 1, 2, 4, 8, ... steps; with `quiet` nothing.

    Use it as a context manager or iterate over it; the display ends with the work. Raises
    ValueError for a negative number of steps.

    >>> with progress(2, "training", file=sys.stdout) as bar:
    ...     for loss in (0.5, 0.25):
    ...         bar.advance(loss=loss)
    training   50%  1/2  loss 0.5
    training  100%  2/2  loss 0.25
    >>> [x * x for x in progress([1, 2, 3], "squares", quiet=True)]
    [1, 4, 9]
    """
    steps = work if isinstance(work, int) else getattr(work, "__len__", lambda: None)()
    if steps is not None and steps < 0:
        raise ValueError(f"progress: the number of steps must be at least 0, got {steps}")
    items: Iterable[Any] = range(work) if isinstance(work, int) else work
    return Progress(items, _make_display(description, steps, quiet, file))


class Display(Protocol):
    """The interface of displays: called at the start, with the count after each step, and at the end."""

    def start(self) -> None: ...
    def show(self, done: int, fields: Mapping[str, Any]) -> None: ...
    def stop(self) -> None: ...


class Progress(Generic[T]):
    """Counts steps and updates a display."""

    def __init__(self, items: Iterable[T], display: Display) -> None:
        self.done = 0
        self._items = items
        self._display = display

    def advance(self, steps: int = 1, **fields: Any) -> None:
        """Count steps, and show fields with them: numbers with four digits, tensors as text without elements."""
        self.done += steps
        self._display.show(self.done, fields)

    def __enter__(self) -> "Progress[T]":
        self._display.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._display.stop()

    def __iter__(self) -> Iterator[T]:
        with self:
            for item in self._items:
                yield item
                self.advance()


def _make_display(description: str, steps: int | None, quiet: bool, chosen: TextIO | None) -> Display:
    if quiet:
        return _SilentDisplay()
    if chosen is None and _in_notebook():
        return _NotebookDisplay(description, steps)
    file = sys.stderr if chosen is None else chosen
    if file.isatty():
        try:
            return _RichDisplay(description, steps, file)
        except ModuleNotFoundError:
            pass
    return _LineDisplay(description, steps, file)


def _format_fields(fields: Mapping[str, Any]) -> str:
    return "  ".join(f"{name} {_format_value(value)}" for name, value in fields.items())


def _format_value(value: Any) -> str:
    """Return a number, also that of a tensor or array of one element, with four digits; other values as text."""
    if hasattr(value, "dtype"):
        value = value.item() if math.prod(value.shape) == 1 else describe(value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


class _SilentDisplay:
    def start(self) -> None:
        pass

    def show(self, done: int, fields: Mapping[str, Any]) -> None:
        pass

    def stop(self) -> None:
        pass


class _LineDisplay:
    """Prints a line whenever enough has been done since the last one; independent of time, so logs are
    reproducible."""

    def __init__(self, description: str, steps: int | None, file: TextIO) -> None:
        self.description = description
        self.steps = steps
        self.file = file
        self.next_line = 1

    def start(self) -> None:
        pass

    def show(self, done: int, fields: Mapping[str, Any]) -> None:
        if done >= self.next_line:
            self.next_line = self._next_step(done)
            parts = [self.description, *self._format_amount(done), _format_fields(fields)]
            print("  ".join(part for part in parts if part), file=self.file, flush=True)

    def stop(self) -> None:
        pass

    def _next_step(self, done: int) -> int:
        if not self.steps:
            return 2 * done
        lines = done * 100 // (self.steps * PERCENT_PER_LINE) + 1
        return -(-lines * PERCENT_PER_LINE * self.steps // 100)

    def _format_amount(self, done: int) -> list[str]:
        return [f"{done / self.steps:4.0%}", f"{done}/{self.steps}"] if self.steps else [str(done)]


def _in_notebook() -> bool:
    """Whether this runs in a cell of a notebook; a terminal's IPython has no kernel."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


class _NotebookDisplay:
    """A bar below the cell of a notebook, with a limited refresh rate."""

    def __init__(self, description: str, steps: int | None) -> None:
        from IPython import display

        self.make = display.HTML
        self.display = display.display
        self.lines = _LineDisplay(description, steps, sys.stderr)
        self.handle: Any = None
        self.last_state = (0, "")
        self.last_update = 0.0

    def start(self) -> None:
        self.handle = self.display(self._bar(), display_id=True)

    def show(self, done: int, fields: Mapping[str, Any]) -> None:
        self.last_state = done, _format_fields(fields)
        if self.handle is not None and time.monotonic() - self.last_update >= SECONDS_PER_BAR:
            self.last_update = time.monotonic()
            self.handle.update(self._bar())

    def stop(self) -> None:
        if self.handle is not None:
            self.handle.update(self._bar())

    def _bar(self) -> Any:
        done, fields = self.last_state
        share = f' value="{done}" max="{self.lines.steps}"' if self.lines.steps else ""
        text = "  ".join([*self.lines._format_amount(done), fields])
        return self.make(f"{escape(self.lines.description)} <progress{share}></progress> {escape(text)}")


class _RichDisplay:
    """A bar by rich."""

    def __init__(self, description: str, steps: int | None, file: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[text]}", style="cyan", markup=False),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        )
        self.bar = Progress(*columns, console=Console(file=file))
        self.task = self.bar.add_task(description, total=steps, text="")

    def start(self) -> None:
        self.bar.start()

    def show(self, done: int, fields: Mapping[str, Any]) -> None:
        self.bar.update(self.task, completed=done, text=_format_fields(fields))

    def stop(self) -> None:
        self.bar.stop()
