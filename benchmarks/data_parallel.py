"""Time a training step of two replicas over MPI, next to one process, and to PyTorch's DDP over gloo.

    python benchmarks/data_parallel.py [--rounds 7] [--json FILE] [--check]

The figures are seconds per batch: a step of two replicas trains two batches.  The same two processes, with one thread
each, run all subjects in turn, and compare their losses first.  A process that has nothing to do sleeps.

"no reduction" is both processes at once without exchanging gradients: what the machine costs, whose memory they share.
If other programs use the cores, two processes get more of them than one, and the ratio to one process is meaningless.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from ranks import main_of_ranks, run_script

from retrograd.bench import Row, Table

OF_ONE, OF_PYTORCH = 1 / 1.8, 1 / 1.2
MODELS = ("MLP 4 x 1024, batch 256", "transformer 4 x 128, batch 16 x 64")
Step = Callable[[], float]


def model(lib: Any, name: str) -> tuple[Any, tuple[int, ...]]:
    """Return a model and the shape of its input."""
    nn = lib.nn
    if name == MODELS[0]:
        layers = [each for _ in range(4) for each in (nn.Linear(1024, 1024), nn.ReLU())]
        return nn.Sequential(*layers), (256, 1024)
    blocks = [nn.TransformerEncoderLayer(128, 4, 512, 0.0, batch_first=True) for _ in range(4)]
    return nn.Sequential(*blocks), (16, 64, 128)


def step_of(lib: Any, name: str, rank: int, wrap: Callable[[Any], Any]) -> Step:
    """Return a function that trains one step and returns the loss before it."""
    import numpy as np

    found, shape = model(lib, name)
    drawn = np.random.default_rng(0)
    with lib.no_grad():
        for p in found.parameters():
            p.copy_(lib.from_numpy((drawn.standard_normal(tuple(p.shape)) * 0.03).astype("f")))
    x = lib.from_numpy(np.random.default_rng(1 + rank).standard_normal(shape).astype("f"))
    replica = wrap(found)
    optimizer = lib.optim.SGD(found.parameters(), lr=1e-3)

    def step() -> float:
        optimizer.zero_grad()
        loss = (replica(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


def wait_for_others(comm: Any) -> None:
    """Wait for the other process without using a core."""
    request = comm.Ibarrier()
    while not request.Test():
        time.sleep(1e-3)


def measure(rounds: int) -> list[dict[str, list[float]]]:
    """Return the seconds per batch by model, subject and round."""
    import torch
    from mpi4py import MPI

    import retrograd as rg
    import retrograd.distributed as dist

    comm, rank = MPI.COMM_WORLD, MPI.COMM_WORLD.rank
    torch.set_num_threads(1)
    rendezvous = comm.bcast(os.path.join(tempfile.mkdtemp(), "store") if rank == 0 else None)
    torch.distributed.init_process_group("gloo", f"file://{rendezvous}", rank=rank, world_size=2)
    dist.init_process_group("mpi")
    found = []
    for name in MODELS:
        steps = {
            "one process": step_of(rg, name, rank, lambda module: module),
            "no reduction": step_of(rg, name, rank, lambda module: module),
            "retrograd": step_of(rg, name, rank, rg.nn.parallel.DistributedDataParallel),
            "PyTorch, gloo": step_of(torch, name, rank, torch.nn.parallel.DistributedDataParallel),
        }
        losses = {subject: [step() for _ in range(3)] for subject, step in steps.items()}
        for mine, peer in zip(losses["retrograd"], losses["PyTorch, gloo"], strict=True):
            assert abs(mine - peer) < 1e-4 * abs(peer), losses
        taken: dict[str, list[float]] = {subject: [] for subject in steps}
        for _ in range(rounds):
            for subject, step in steps.items():
                wait_for_others(comm)
                start = time.perf_counter()
                if subject != "one process" or rank == 0:
                    step()
                    step()
                taken[subject].append((time.perf_counter() - start) / (2 if subject == "one process" else 4))
        found.append(taken)
    wait_for_others(comm)
    dist.destroy_process_group()
    torch.distributed.destroy_process_group()
    return found


def report(options: argparse.Namespace) -> list[Table]:
    """Start the two processes, which measure."""
    found = run_script(__file__, "mpi", options.rounds)
    budgets = {"one process": OF_ONE, "PyTorch, gloo": OF_PYTORCH}
    rows = [Row(name, taken, budgets) for name, taken in zip(MODELS, found, strict=True)]
    return [Table("A training step per batch, two replicas", "ms", rows, threads=1)]


if __name__ == "__main__":
    sys.exit(main_of_ranks(__doc__, 7, lambda given: measure(given.rounds), report))
