"""Subjects in separate processes, which run one row at a time.

A worker first writes a line of JSON: `true`, or the reason why its subject is missing.  Then it reads requests, `[what,
row]` with what "check", "sample" or "fastest", and answers each with `{"value": ...}`, null where the row does not
apply, or with `{"error": ...}`.
"""

import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from retrograd.bench.subjects import OURS, Subject, thread_limits

MIN_SECONDS = 0.02  # a sample repeats its call until it takes about this long
BURSTS = 20  # a sample of a minimum is that of this many shorter ones
DIGEST_VALUES = 1000  # number of elements compared one by one; the others are compared by their sums
BARE_SCRIPT = Path(__file__).with_name("bare.py")


class Case(NamedTuple):
    """A subject's case for a row: the timed call, and the results that must agree with ours."""

    call: Callable[[], object]
    check: Callable[[], Sequence[Any]] | None = None  # NumPy arrays or numbers; runs before the first call
    operations: int = 1  # in one call; a sample is the time of one
    once: bool = False  # whether a sample is a single call
    around: Callable[[], AbstractContextManager[object]] = nullcontext  # of a sample, not timed


Cases = Callable[[str], Case | None]


def seconds(function: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


# ------------------------------------------------------------------------------------------ in a worker's process


def serve(make: Callable[[], Cases]) -> None:
    """Run a worker's main loop around the function from row to case; `make` raises ImportError if unavailable."""
    out, sys.stdout = sys.stdout, sys.stderr  # keep a library's output out of the answers
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C is reported by the requesting process, without a traceback
    try:
        cases = Sampler(make())
    except ImportError as error:
        print(json.dumps(f"{error.name or error} is not installed"), file=out, flush=True)
        return
    print("true", file=out, flush=True)
    for line in sys.stdin:
        print(json.dumps(_respond(cases, *json.loads(line))), file=out, flush=True)


def _respond(cases: "Sampler", what: str, row: str) -> dict[str, Any]:
    try:
        return {"value": getattr(cases, what)(row)}
    except Exception as error:  # anything that a library does not support
        first = (str(error).strip().splitlines() or [""])[0][:150]
        return {"error": f"{type(error).__name__}: {first}"}


class Sampler:
    """A subject's cases, each created on first use."""

    def __init__(self, cases: Cases) -> None:
        self._cases = cases
        self._created: dict[str, Case | None] = {}
        self._times: dict[str, int] = {}

    def check(self, row: str) -> list[dict[str, Any]] | None:
        """Return the digest of a row's results; None if the row does not apply."""
        case = self._case(row)
        return None if case is None else [digest(x) for x in (case.check() if case.check else ())]

    def sample(self, row: str) -> float | None:
        """Return seconds per operation."""
        case = self._case(row)
        if case is None:
            return None
        with case.around():
            return self._timed(row, case, 1)

    def fastest(self, row: str) -> float | None:
        """Return the least seconds per operation of several short samples: other programs disturb only some of them."""
        case = self._case(row)
        if case is None:
            return None
        with case.around():
            return self._timed(row, case, BURSTS)

    def _timed(self, row: str, case: Case, bursts: int) -> float:
        if row not in self._times and not case.once:
            case.call()  # one-time set-up happens here
        case.call()  # the memory state that other rows left may cost more than the call
        if row not in self._times:
            self._times[row] = 1 if case.once else max(1, round(MIN_SECONDS / seconds(case.call)))
        gc.collect()
        times = -(-self._times[row] // bursts)
        taken = [seconds(lambda: _repeated(case.call, times)) for _ in range(-(-self._times[row] // times))]
        return min(taken) / (times * case.operations)

    def _case(self, row: str) -> Case | None:
        if row not in self._created:
            self._created[row] = self._cases(row)
        return self._created[row]


def _repeated(call: Callable[[], object], times: int) -> None:
    """Drop every result before the next call, so that large ones reuse the same memory."""
    for _ in range(times):
        call()


def digest(array: Any) -> dict[str, Any]:
    """Return the digest of an array or a number: its shape, sums, and a thousand of its values.

    >>> digest(2.0)
    {'shape': [], 'sums': [2.0, 4.0], 'values': [2.0]}
    """
    if isinstance(array, int | float):
        return {"shape": [], "sums": [float(array), float(array) ** 2], "values": [float(array)]}
    flat = array.astype("float64").ravel()
    step = max(1, flat.size // DIGEST_VALUES) | 1  # odd, so that the samples are not all in one column
    return {
        "shape": list(array.shape),
        "sums": [float(flat.sum()), float((flat * flat).sum())],
        "values": flat[::step].tolist(),
    }


def difference(ours: dict[str, Any], its: dict[str, Any]) -> float:
    """Return the distance of two digests, relative to our largest value; infinite for other shapes.

    >>> difference(digest(2.0), digest(2.5))
    0.25
    """
    if ours["shape"] != its["shape"]:
        return float("inf")
    scale = max(map(abs, ours["values"]), default=0.0) or 1.0
    distances = [abs(a - b) / scale for a, b in zip(ours["values"], its["values"], strict=True)]
    norms = [d["sums"][1] ** 0.5 for d in (ours, its)]
    found = [*distances, abs(norms[0] - norms[1]) / (norms[0] or 1.0)]
    return float("inf") if any(x != x for x in found) else max(found)


# ------------------------------------------------------------------------------------------- in the requesting process


class RowError(Exception):
    """The failure of a worker."""


class Worker:
    """A subject in its own process."""

    def __init__(self, script: str, name: str, subject: Subject, threads: int) -> None:
        self.name = name
        bare = [] if subject.package in (OURS, "") else [str(BARE_SCRIPT)]
        self._process = subprocess.Popen(
            [sys.executable, *bare, script, "--worker", name, "--threads", str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **thread_limits(threads), **subject.environment},
        )
        self.ready = self._line()

    def ask(self, what: str, row: str) -> Any:
        """Return the answer to a request; RowError with the reason if there is none."""
        self.request(what, row)
        answer = self._line()
        if "error" in answer:
            raise RowError(answer["error"])
        return answer["value"]

    def request(self, what: str, row: str) -> None:
        """Begin something whose answer nobody awaits; `kill` ends it."""
        assert self._process.stdin
        print(json.dumps([what, row]), file=self._process.stdin, flush=True)

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()
        self.close()

    def close(self) -> None:
        """End the process."""
        for stream in (self._process.stdin, self._process.stdout):
            assert stream
            stream.close()
        self._process.wait()

    def _line(self) -> Any:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            self.close()
            raise RuntimeError(f"the worker {self.name!r} ended early, with status {self._process.returncode}")
        return json.loads(line)


@contextmanager
def present(script: str, subjects: Mapping[str, Subject], threads: int) -> Iterator[tuple[list[Worker], list[str]]]:
    """Return the workers of those subjects that are installed, and a note for each of the others."""
    started = [Worker(script, name, subject, threads) for name, subject in subjects.items()]
    try:
        missing = [f"{w.name} is left out: {w.ready}" for w in started if w.ready is not True]
        yield [w for w in started if w.ready is True], missing
    finally:
        for w in started:
            w.close()
