"""Check what ranks hold under a memory limit, by `tracemalloc`: `test_memory_limits.py` runs it, in every process.

Costs are given, so the schedules are the same in each run.  Writes to files take less time than they say.
"""

import threading
import tracemalloc

import retrograd as rg
from retrograd import nn
from retrograd.nn.functional import mse_loss
from retrograd.pipelining import AutoSchedule, Pipeline

RANKS, MICRO_BATCHES = 2, 8


class HeldMemory:
    """One computation at a time, with the most bytes of arrays and Python objects between any two of a rank."""

    def __init__(self):
        self.lock = threading.Lock()
        self.before = self.most = 0

    def __enter__(self):
        self.lock.acquire()

    def __exit__(self, *_):
        self.most = max(self.most, tracemalloc.get_traced_memory()[0] - self.before)
        self.lock.release()


def cost(action):
    """Return the time of an action, far more for a move than it takes."""
    return {"F": 1.0, "I": 1.0, "W": 1.0, "B": 2.0, "R": 1.0, "OFFLOAD": 3.0, "FETCH": 3.0}.get(action.kind.value, 0.05)


def step(pipeline, x, y, turn):
    """Run a step with one computation at a time."""
    pipeline._begin("costs", (x,), {}, y)
    pipeline._step(*pipeline._batches_and_targets((x,), y, {}), turn)


def held(model, x, limit=None, **options):
    """Return the schedule that was found, the most bytes that this rank holds in a step, and its rank."""
    settings = AutoSchedule(limit, cost, lambda action: 0.0, moves=cost, seconds=0.2, trials=0, **options)
    sizes = {"ranks": RANKS, "micro_batches": MICRO_BATCHES}
    pipeline = Pipeline(model, 2 * RANKS, schedule=settings, loss_fn=mse_loss, transport="mpi", **sizes)
    y = rg.zeros_like(x)
    step(pipeline, x, y, HeldMemory())  # gradients of parameters are there from now on
    tracemalloc.start()
    step(pipeline, x, y, HeldMemory())  # what it replaces in the measured step was allocated under the trace
    turn = HeldMemory()
    turn.before = tracemalloc.get_traced_memory()[0]
    step(pipeline, x, y, turn)
    tracemalloc.stop()
    return pipeline.found, turn.most, pipeline.rank


CASES = (  # the share of the memory without a limit, the options, and how a rank stays within it
    (0.3, {"recompute": False, "offload": False}, "neither"),
    (0.15, {"offload": False}, "recomputed"),
    (0.18, {"recompute": False}, "offloaded"),
)


def check(model, x, cases):
    """Check what ranks hold for a model without a limit, and in these cases."""
    found, most, rank = held(model, x)
    assert 0.85 * found.peaks[rank] <= most <= 1.15 * found.peaks[rank]
    unlimited = max(found.peaks)
    for share, options, expected in cases:
        limit = share * unlimited
        found, most, rank = held(model, x, limit, **options)
        way = "recomputed" if found.recomputed else "offloaded" if found.offloaded else "neither"
        planned = found.peaks[rank]
        assert way == expected
        assert planned <= limit
        assert most <= min(1.15 * planned, 1.02 * limit), (share, options, most / planned, most / limit)
        assert way == "offloaded" or most >= 0.85 * planned, (share, options, most / planned)


if __name__ == "__main__":
    rg.manual_seed(0)
    layers = [nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True) for _ in range(12)]
    check(nn.Sequential(*layers), rg.randn(8 * MICRO_BATCHES, 64, 64), CASES)
    parts = [nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64), nn.Tanh()) for _ in range(12)]
    check(nn.Sequential(*parts), rg.randn(512 * MICRO_BATCHES, 64), CASES[:2])
