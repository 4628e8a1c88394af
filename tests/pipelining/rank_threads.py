"""Ranks that are threads of one process, each of which runs the same function, as the processes of a script do."""

import threading
from contextvars import copy_context

from retrograd.pipelining.transports.process_group import ProcessGroup
from retrograd.pipelining.transports.threads import Threads


class Shared:
    """A transport for threads that are one rank each: the first one launches the work of all."""

    timeout = 60.0

    def __init__(self, ranks):
        self.barrier = threading.Barrier(ranks, timeout=60)
        self.works = [None] * ranks
        self.outcome = None

    def launch(self, rank, work):
        self.works[rank] = work
        if self.barrier.wait() == 0:
            try:
                threads = Threads(self.timeout)
                self.outcome = threads.launch(len(self.works), lambda link: self.works[link.rank](link)), None
            except BaseException as error:
                self.outcome = None, error
        self.barrier.wait()
        results, error = self.outcome
        self.barrier.wait()
        if error is not None:
            raise error
        return results


class OfRank:
    """One thread's end of the transport."""

    def __init__(self, shared, rank):
        self.shared, self.world, self.local = shared, len(shared.works), [rank]

    def launch(self, ranks, work):
        assert ranks == self.world
        return self.shared.launch(self.local[0], work)


def run_ranks(ranks, script):
    """Return what `script(rank, group)` returns on every rank; the first error is raised."""
    shared, results, errors = Shared(ranks), [None] * ranks, []

    def run(rank):
        try:
            results[rank] = script(rank, ProcessGroup(OfRank(shared, rank)))
        except BaseException as error:
            errors.append(error)
            shared.barrier.abort()

    threads = [threading.Thread(target=copy_context().run, args=(run, rank)) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results
