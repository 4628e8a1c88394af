"""`retrograd top`: what the ranks of a running `retrograd run` on this host do, live."""

import json
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from retrograd.cli.errors import UsageError
from retrograd.pipelining.transports.fingerprint import format_ranks
from retrograd.pipelining.transports.status_file import (
    JOB,
    PREFIX,
    Wait,
    has_ended,
    last_action,
    last_step,
    read_wait,
)


class RankStatus(NamedTuple):
    """The status of a rank: its action, the ranks that it waits for, and the numbers of its last step."""

    rank: int
    action: str
    awaited: tuple[int, ...]
    step: dict[str, float]


class JobStatus(NamedTuple):
    """The status of a job: its command, when it was started, and its ranks on this host."""

    command: str
    transport: str
    started: float
    ranks: list[RankStatus]


def find_jobs(folder: Path | None = None) -> list[Path]:
    """Return the folders of the jobs of this host, the latest one first."""
    found = (folder or Path(tempfile.gettempdir())).glob(f"{PREFIX}*/{JOB}")
    latest_first = sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)
    return [path.parent for path in latest_first if not has_ended(path.parent)]


def read_job(folder: Path) -> JobStatus | None:
    """Return the status of a job; None if it has ended."""
    try:
        job = json.loads((folder / JOB).read_text())
        return JobStatus(job["command"], job["transport"], job["started"], _read_ranks(folder, job["ranks"]))
    except FileNotFoundError:
        return None


def _read_ranks(folder: Path, count: int) -> list[RankStatus]:
    texts = {rank: last_action(folder, rank) for rank in range(count) if (folder / str(rank)).exists()}
    found = []
    for rank in range(count):
        text = texts.get(rank, "")
        wait = read_wait(text)
        awaited = () if wait is None else _awaited(wait, text, texts)
        found.append(RankStatus(rank, text if wait is None else wait.action, awaited, last_step(folder, rank)))
    return found


def _awaited(wait: Wait, text: str, texts: Mapping[int, str]) -> tuple[int, ...]:
    """Return the ranks that a wait is for; in an operation of several ranks, those that do not wait in it too."""
    if not wait.together:
        return tuple(wait.ranks)
    others = [rank for rank in wait.ranks if texts.get(rank) != text]
    return tuple([rank for rank in others if rank in texts] or others)  # of other hosts, nothing is known


def awaited_ranks(ranks: Iterable[RankStatus]) -> dict[int, list[int]]:
    """Map each rank that others wait for, and that itself waits for none, to those, also over further ranks.

    >>> status = [RankStatus(0, "F", (), {}), RankStatus(1, "F", (0,), {}), RankStatus(2, "F", (1,), {})]
    >>> awaited_ranks(status)
    {0: [1, 2]}
    """
    waits = {status.rank: status.awaited for status in ranks}
    found: dict[int, list[int]] = {}
    for rank, awaited in waits.items():
        reached, new = {rank}, list(awaited)
        while new:
            following = new.pop()
            if following not in reached:
                reached.add(following)
                new += waits.get(following, ())
        for last in sorted(reached - {rank}):
            if not waits.get(last):
                found.setdefault(last, []).append(rank)
    return found


class View:
    """Makes the page from one status of a job after the other.

    It counts at how many looks each rank was waiting.
    """

    def __init__(self) -> None:
        self._looks = 0
        self._waits: dict[int, int] = {}

    def page(self, job: JobStatus, now: float) -> Group:
        """Return the page at a time, in seconds since 1970."""
        self._looks += 1
        for status in job.ranks:
            self._waits[status.rank] = self._waits.get(status.rank, 0) + bool(status.awaited)
        title = f"{job.command}   {len(job.ranks)} ranks, {job.transport}, {_duration(now - job.started)}"
        lines = [title, self._training_line(job, now), *self._waiting_lines(job)]
        return Group(*[Text(line) for line in lines], self._table(job))

    def _training_line(self, job: JobStatus, now: float) -> str:
        steps = [status.step for status in job.ranks if status.step]
        if not steps:
            return "no steps yet; only those of pipelines are counted"
        last = max(steps, key=lambda step: step["step"])
        rate = last["examples"] / max(last["seconds"], 1e-9)
        return (
            f"step {last['step']:.0f}   loss {last['loss']:.4g}   {rate:,.0f} examples/s   "
            f"{last['seconds']:.3g} s per step, the last one {_duration(now - last['at'])} ago"
        )

    def _waiting_lines(self, job: JobStatus) -> list[str]:
        doing = {status.rank: status.action or "starts" for status in job.ranks}
        found = awaited_ranks(job.ranks)
        return [
            f"{format_ranks(ranks)} wait{'' if len(ranks) > 1 else 's'} for rank {rank}: {doing.get(rank, 'unknown')}"
            for rank, ranks in found.items()
        ]

    def _table(self, job: JobStatus) -> Table:
        table = Table("rank", "action", "waits for", "waits", "step", box=None, pad_edge=False)
        for status in job.ranks:
            awaited = format_ranks(status.awaited) if status.awaited else ""
            share = f"{self._waits[status.rank] / self._looks:.0%}"
            step = f"{status.step['step']:.0f}" if status.step else ""
            table.add_row(str(status.rank), status.action or "starts", awaited, share, step)
        return table


def _duration(seconds: float) -> str:
    """Return a duration in hours, minutes and seconds.

    >>> _duration(3.2), _duration(75), _duration(3700)
    ('3 s', '1 min 15 s', '1 h 1 min')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def run(
    once: bool,
    interval: float,
    *,
    folder: Path | None = None,
    console: Any = None,
    pause: Callable[[float], None] = time.sleep,
) -> int:
    """Show the latest job until it ends, or once; return the exit code, 0.

    folder: where the folders of jobs are.  pause: waits for some seconds.

    Raises UsageError if no job runs on this host.
    """
    jobs = find_jobs(folder)
    job = read_job(jobs[0]) if jobs else None
    if job is None:
        raise UsageError("no `retrograd run` with --transport mpi or ray runs on this host")
    console, view = console or Console(), View()
    if once:
        console.print(view.page(job, time.time()))
        return 0
    with Live(view.page(job, time.time()), console=console, auto_refresh=False) as live:
        while (job := read_job(jobs[0])) is not None:
            live.update(view.page(job, time.time()), refresh=True)
            pause(interval)
    console.print("the run has ended")
    return 0
