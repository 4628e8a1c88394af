"""Ranks that are threads of one process, each of which runs the same script with its group."""

from retrograd.pipelining.transports.process_group import ProcessGroup
from retrograd.pipelining.transports.thread_ranks import outcomes_of_threads


def outcomes_of_ranks(ranks, script):
    """Return what `script(rank, group)` returns or raises on every rank."""
    return outcomes_of_threads(ranks, lambda transport: script(transport.local[0], ProcessGroup(transport)), 60.0)


def run_ranks(ranks, script):
    """Return what `script(rank, group)` returns on every rank; the first error is raised."""
    outcomes = outcomes_of_ranks(ranks, script)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return outcomes
