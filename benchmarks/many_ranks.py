"""Measure the state that four ranks divide over MPI, and simulate the steps of up to 4,096 ranks.

    python benchmarks/many_ranks.py [--rounds 5] [--json FILE] [--check]

Memory is what the system counts as the process's own (the anonymous memory of /proc/self/smaps_rollup), from before the
model is made until after two steps, in new processes for each way that keep no freed memory.  Another 25 MiB, one
bucket, are shared memory for the sums of `DistributedDataParallel`.  The formula counts parameters, gradients and
Adam's two averages, each divided by the ranks if it is divided.  `async_save` and the copy use new memory, too.  Bytes
read are those that the system counts for the process while it loads; headers and the manifest are among them.

The simulated ranks have the measured computations of this machine, and pairs of them the measured connection of two of
its processes: a sum over r ranks takes 2 log2(r) messages and 2 (r - 1) / r of the bytes (R. Rabenseifner,
"Optimization of Collective Reduction Operations", 2004).
"""

import argparse
import itertools
import math
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

from ranks import main_of_ranks, run_script

from retrograd.bench import Row, Table

RANKS, WIDTH, LAYERS = 4, 2048, 4
SIZE = 4 * WIDTH * WIDTH * LAYERS  # bytes of the parameters
# By how many ranks parameters, gradients and averages are divided.
WAYS = {
    "DistributedDataParallel": (1, 1, 1),
    "ZeroRedundancyOptimizer": (1, 1, RANKS),
    "ZeroRedundancyOptimizer, shard_gradients": (1, RANKS, RANKS),
    "fully_shard": (RANKS, RANKS, RANKS),
}
FREE_AT_ONCE = {"RETROGRAD_KEEP_MEMORY": "0", "MALLOC_MMAP_THRESHOLD_": str(1 << 20)}
CHECKPOINT = 2 << 30  # bytes
STAGES, MICRO_BATCHES = 8, 32
SIMULATED = (8, 64, 512, 4096)  # ranks
OF_ONE = 2 / 1.8  # the maximum time of a step, by that of one replica


def own_bytes() -> int:
    """Return the bytes of memory that only this process has."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Anonymous:"))


def bytes_read() -> int:
    """Return the bytes that this process has read so far."""
    return int(Path("/proc/self/io").read_text().split()[1])


def shared_folder() -> str:
    """Return an empty folder that all ranks know."""
    import retrograd.distributed as dist

    made = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(made)
    return str(made[0])


def trained(way: str, width: int) -> Any:
    """Return a model and its optimizer after two steps."""
    import retrograd as rg
    from retrograd import nn
    from retrograd.distributed.fsdp import fully_shard
    from retrograd.distributed.optim import ZeroRedundancyOptimizer

    model: Any = nn.Sequential(*[nn.Linear(width, width, bias=False) for _ in range(LAYERS)])
    if way == "fully_shard":
        for layer in model:
            fully_shard(layer)
        fully_shard(model)
    elif not way.endswith("shard_gradients"):
        model = nn.parallel.DistributedDataParallel(model)
    if way.startswith("ZeroRedundancyOptimizer"):
        divided = way.endswith("shard_gradients")
        optimizer: Any = ZeroRedundancyOptimizer(model.parameters(), rg.optim.Adam, shard_gradients=divided)
    else:
        optimizer = rg.optim.Adam(model.parameters())
    for _ in range(2):
        model(rg.ones(1, width)).sum().backward()
        optimizer.step()
    return model, optimizer


def memory_of_training(way: str) -> int:
    """Return the bytes by which a model and its optimizer let this process grow."""
    trained(way, 16)  # loads modules, and connects the ranks
    before = own_bytes()
    kept = trained(way, WIDTH)
    grown = own_bytes() - before
    del kept
    return grown


def seconds_of_saves(rounds: int) -> list[tuple[float, float]]:
    """Return the seconds of `async_save` until it returns, and of a copy of the same state."""
    import retrograd as rg
    import retrograd.distributed as dist
    import retrograd.distributed.checkpoint as dcp

    # Each rank has its own names: of what all have, a rank copies its share only.
    state = {f"layer{i} of rank {dist.get_rank()}": rg.ones(WIDTH, WIDTH) for i in range(2 * LAYERS)}
    folder = shared_folder()
    found = []
    for _ in range(rounds + 1):
        dist.barrier()
        start = time.perf_counter()
        saving = dcp.async_save(state, checkpoint_id=folder)
        held = time.perf_counter() - start
        saving.result()
        dist.barrier()
        start = time.perf_counter()
        copied = {name: x.clone() for name, x in state.items()}
        found.append((held, time.perf_counter() - start))
        del copied
    return found[1:]


def read_of_restores() -> list[tuple[int, float]]:
    """Return the bytes that this rank reads to restore its part of a checkpoint, and the seconds, for two divisions."""
    import retrograd as rg
    import retrograd.distributed as dist
    import retrograd.distributed.checkpoint as dcp
    from retrograd.distributed.tensor import Shard, distribute_tensor

    mesh, width = dist.init_device_mesh("cpu", (RANKS,)), 4096
    names = [f"layer{i}" for i in range(CHECKPOINT // (4 * width * width))]
    folder, whole = shared_folder(), rg.rand(width, width)
    dcp.save({name: distribute_tensor(whole, mesh, [Shard(0)]) for name in names}, checkpoint_id=folder)
    found = []
    for dim in (0, 1):
        state = {name: distribute_tensor(rg.zeros(width, width), mesh, [Shard(dim)]) for name in names}
        dist.barrier()
        before, start = bytes_read(), time.perf_counter()
        dcp.load(state, checkpoint_id=folder)
        found.append((bytes_read() - before, time.perf_counter() - start))
        expected = distribute_tensor(whole, mesh, [Shard(dim)]).to_local()
        assert all(rg.equal(x.to_local(), expected) for x in state.values())
    return found


def costs(rounds: int) -> dict[str, float]:
    """Return the seconds of a layer's passes over a microbatch, of a sum without data, and of one of a byte."""
    import retrograd as rg
    import retrograd.distributed as dist
    from retrograd import nn

    layer, x, empty, data = (
        nn.Linear(WIDTH, WIDTH),
        rg.randn(128, WIDTH, requires_grad=True),
        rg.ones(1),
        rg.ones(1 << 22),
    )
    pair = dist.new_group([0, 1])
    if dist.get_rank() > 1:
        return {}

    def passes() -> dict[str, float]:
        times = [time.perf_counter()]

        def note() -> None:
            times.append(time.perf_counter())

        dist.barrier(group=pair)
        times[0] = time.perf_counter()
        y = layer(x).sum()
        note()
        y.backward()
        note()
        dist.all_reduce(empty, group=pair)
        note()
        dist.all_reduce(data, group=pair)
        note()
        return dict(zip(("F", "B", "message", "sum"), [b - a for a, b in itertools.pairwise(times)], strict=True))

    found = [passes() for _ in range(rounds + 3)][3:]
    return {name: statistics.median(each[name] for each in found) for name in found[0]}


def measure(what: str, rounds: int) -> Any:
    """Return what one of the scripts of `report` measures, by rank."""
    import retrograd.distributed as dist

    dist.init_process_group("mpi")
    kind, _, way = what.partition(" ")
    mine = {
        "memory": lambda: memory_of_training(way),
        "saves": lambda: seconds_of_saves(5 * rounds),
        "restores": read_of_restores,
        "costs": lambda: costs(rounds),
    }[kind]()
    found: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(found, mine)
    dist.destroy_process_group()
    return found


def simulated_steps(measured: dict[str, float]) -> list[Row]:
    """Return rows of the simulated seconds of a step with sums of gradients, and without."""
    from retrograd.pipelining.planning.simulate import simulate_costs
    from retrograd.pipelining.schedules import make_schedule
    from retrograd.pipelining.schedules.actions import Action, Kind
    from retrograd.pipelining.schedules.lowering import chain
    from retrograd.pipelining.schedules.replicas import add_reductions

    size, rows = 4 * WIDTH * WIDTH, []
    of_byte = (measured["sum"] - measured["message"]) / (1 << 24)

    def seconds(stages: int, ranks: int, replicas: int) -> float:
        schedule = make_schedule(
            "gpipe" if ranks == 1 else "1f1b", stages, MICRO_BATCHES // stages * ranks, ranks=ranks
        )
        reducing = 2 * math.log2(replicas) * measured["message"] / 2 + 2 * (replicas - 1) / replicas * size * of_byte

        def cost(action: Action) -> float:
            if action.kind.is_compute:
                return measured[action.kind.value]
            if action.kind is Kind.REDUCE_GRAD:
                return reducing
            return measured["message"]

        return simulate_costs(add_reductions(schedule) if replicas > 1 else schedule, chain(stages), cost).span

    for world in SIMULATED:
        for ranks in (1, STAGES):
            if world > ranks:
                name = f"{world:,} replicas" if ranks == 1 else f"{world // ranks:,} replicas of {ranks} stages"
                taken = {"retrograd": seconds(STAGES, ranks, world // ranks), "one replica": seconds(STAGES, ranks, 1)}
                rows.append(Row(name, {who: [each] for who, each in taken.items()}, {"one replica": OF_ONE}))
    return rows


def report(options: argparse.Namespace) -> list[Table]:
    """Start the processes, which measure."""

    def run(what: str) -> Any:
        return run_script(__file__, f"mpi {what}", options.rounds, RANKS)

    def run_without_cache(what: str) -> Any:
        with mock.patch.dict(os.environ, FREE_AT_ONCE):
            return run(what)

    memory = []
    for way, (parameters, gradients, averages) in WAYS.items():
        formula = SIZE / parameters + SIZE / gradients + 2 * SIZE / averages
        found = [max(run_without_cache(f"memory {way}")) for _ in range(options.rounds)]
        memory.append(Row(way, {"retrograd": found, "formula": [formula] * len(found)}, {"formula": 1.05}))
    held = [max(each) for each in zip(*run_without_cache("saves"), strict=True)]
    saves = Row(
        f"{8 * WIDTH * WIDTH * LAYERS >> 20} MiB on each rank",
        {"retrograd": [call for call, _ in held], "copy": [copy for _, copy in held]},
        {"copy": 1.5},
    )
    restores = [
        Row(
            f"divided by {dim}",
            {"retrograd": [float(read) for read, _ in ranks], "own part": [CHECKPOINT / RANKS] * RANKS},
            {"own part": 1.01},
        )
        for dim, ranks in zip(("rows, as saved", "columns"), zip(*run("restores"), strict=True), strict=True)
    ]
    measured = run("costs")[0]
    return [
        Table(f"Memory of each of {RANKS} ranks after a step of Adam", "MiB", memory, threads=1),
        Table("Time until `async_save` returns", "ms", [saves], threads=1),
        Table(
            f"Bytes that a rank reads to restore {CHECKPOINT >> 30} GiB on {RANKS} ranks", "MiB", restores, threads=1
        ),
        Table("Simulated steps", "ms", simulated_steps(measured), threads=1),
    ]


if __name__ == "__main__":
    sys.exit(main_of_ranks(__doc__, 5, lambda given: measure(given.worker.partition(" ")[2], given.rounds), report))
