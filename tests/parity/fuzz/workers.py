"""Run random programs in a child process, so that the death of one program is a difference with its seed."""

import faulthandler
import multiprocessing
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

import torch

from .exempt import Key, used
from .explore import differences
from .generate import CORE, KINDS

PROGRAMS = 5000  # of one child: the memory of all that compiled lines and caches hold is freed after them


@dataclass
class Outcome:
    """What a program did: its differences as text with the reasons, its lines, and the exemptions used."""

    seed: int
    judged: list[tuple[str, str | None]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    used: Counter[Key] = field(default_factory=Counter)


def outcomes(seed: int, core: bool) -> Iterator[Outcome]:
    """Yield the outcome of each program from a seed on, without an end."""
    while True:
        for outcome in _of_child(seed, core):
            yield outcome
            seed = outcome.seed + 1


def _of_child(seed: int, core: bool) -> Iterator[Outcome]:
    """Yield the outcomes of one child's programs; if it dies, that of the program with which it died."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_run, args=(sender, seed, core), daemon=True)
    child.start()
    sender.close()
    end = seed + PROGRAMS
    try:
        while seed < end:
            outcome = receiver.recv()
            seed += 1
            yield outcome
    except EOFError:
        child.join()
        yield Outcome(seed, [(f"# the process died with exit code {child.exitcode}", None)])
    finally:
        child.kill()
        child.join()


def _run(sender: Connection, seed: int, core: bool) -> None:
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops the run
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    torch.set_num_threads(1)
    for current in range(seed, seed + PROGRAMS):
        outcome = Outcome(current)
        used.clear()
        for found, reason in differences(current, outcome.lines.extend, CORE if core else KINDS):
            outcome.judged.append((str(found), reason))
        outcome.used.update(used)
        sender.send(outcome)
