"""What a training step takes on two ranks: over MPI, unsplit, and with torch.distributed.pipelining.

    python benchmarks/pipelines.py [--rounds 7] [--json FILE] [--check]

An encoder of 12 layers, 256 wide, a batch of 64 sequences of 64, 16 micro-batches, float32, one BLAS thread per
process.  All subjects run from the beginning, take turns in every round, and wait without using a core.  A figure is
the median over the rounds, a ratio the median of the rounds' ratios.  Before that, losses and gradients are compared.

Where other programs want the cores, two processes get more of them than one, and no ratio means anything.  So the
kernel is asked how long every process has waited for a core: a sample in which one has waited for more than 3 % of it
is taken again, up to 6 times, and the least disturbed one counts; the table says how disturbed that was.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import cells, library, main, parser, present, seconds, table, verdict

LAYERS, WIDTH, HEADS, LENGTH, BATCH, MICRO_BATCHES, RANKS = 12, 256, 8, 64, 64, 16, 2
BATCH_AT_ONCE, IN_PARTS = "unsplit, whole batch", "unsplit, micro-batches"
STAGES = {"1f1b": 2, "zb-h1": 2, "interleaved1f1b": 4}
ROWS = [BATCH_AT_ONCE, IN_PARTS, *STAGES]
UNSPLIT, OVER_MPI, TORCH, TORCH_RANKS = "retrograd, unsplit", "retrograd, MPI", "PyTorch, unsplit", "PyTorch, gloo"
FASTER_THAN_UNSPLIT, FASTER_THAN_PYTORCH = 1.7, 1.2
QUIET, TRIES = 0.03, 6
LAUNCHED = "PIPELINES_RANK"  # the rank of a process that a worker has started


# ------------------------------------------------------------------------------------------------------- the model


def encoder(nn: Any) -> Any:
    """The model, of a library's `nn`."""
    layers = [
        nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.0, "gelu", batch_first=True, norm_first=True)
        for _ in range(LAYERS)
    ]
    return nn.Sequential(*layers)


def numbered(tensor: Callable[[Any], Any], model: Any, no_grad: Callable[[], Any]) -> tuple[Any, Any]:
    """Give a model the weights that every subject has; the batch and its target."""
    import numpy as np

    drawn = np.random.default_rng(0)
    with no_grad():
        for name, parameter in model.named_parameters():
            size = tuple(parameter.shape)
            scale = 0.02 if parameter.ndim > 1 else 0.1
            values = scale * drawn.standard_normal(size) + ("norm" in name and name.endswith("weight"))
            parameter.copy_(tensor(values.astype("float32")))
    shape = (BATCH, LENGTH, WIDTH)
    return tuple(tensor(drawn.standard_normal(shape).astype("float32")) for _ in range(2))  # type: ignore[return-value]


def checked(model: Any, step: Callable[[], Any], every: Callable[[dict[str, float]], list[Any]]) -> dict[str, Any]:
    """The loss of a step, and what its gradients come to; `every` gathers a dict from all ranks."""
    loss = step()
    mine = {n: float((p.grad * p.grad).sum().detach()) for n, p in model.named_parameters() if p.grad is not None}
    norms = {name: norm for part in every(mine) for name, norm in part.items()}
    return {"loss": float(loss.detach()), "norms": norms}


def forgetful(model: Any, step: Callable[[], Any]) -> Callable[[], Any]:
    """A step that starts without gradients."""

    def run() -> Any:
        for parameter in model.parameters():
            parameter.grad = None
        return step()

    return run


# -------------------------------------------------------------------------------------------------------- workers


def unsplit(name: str) -> Callable[[str], Any]:
    """A whole model in one process."""
    lib = library("retrograd" if name == UNSPLIT else "PyTorch")
    model = encoder(lib.nn)
    x, y = numbered(lib.from_numpy, model, lib.no_grad)
    loss_fn = lib.nn.functional.mse_loss

    def whole() -> Any:
        loss = loss_fn(model(x), y)
        loss.backward()
        return loss

    def in_parts() -> Any:
        total = 0.0
        for a, b in zip(x.chunk(MICRO_BATCHES), y.chunk(MICRO_BATCHES), strict=True):
            loss = loss_fn(model(a), b) / MICRO_BATCHES
            loss.backward()
            total += loss.detach()
        return total

    rows = {BATCH_AT_ONCE: forgetful(model, whole), IN_PARTS: forgetful(model, in_parts)}
    return answers(model, rows, lambda found: [found], lambda: None)


def answers(
    model: Any, rows: dict[str, Callable[[], Any]], every: Callable[[Any], list[Any]], meet: Callable[[], Any]
) -> Callable[[str], Any]:
    """What a worker says to a row, or to `check ROW`: seconds and the share of them that it has waited for a core."""

    def sample(row: str) -> Any:
        asked = row.removeprefix("check ")
        if asked not in rows:
            return None
        if asked != row:
            return checked(model, rows[asked], every)
        meet()
        before = waited()
        taken = seconds(rows[row])
        return taken, (waited() - before) / taken

    return sample


def waited() -> float:
    """Seconds that this process has been ready to run, and had no core."""
    with open("/proc/self/schedstat") as file:
        return int(file.read().split()[1]) / 1e9


def over_mpi() -> Callable[[str], Any]:
    """A rank among those that mpiexec has started."""
    from mpi4py import MPI

    import retrograd as rg
    from retrograd.pipelining import Pipeline, SplitPoint

    comm = MPI.COMM_WORLD
    model = encoder(rg.nn)
    x, y = numbered(rg.from_numpy, model, rg.no_grad)

    def row_of(schedule: str) -> Callable[[], Any]:
        count = STAGES[schedule]
        pipe = Pipeline(
            model,
            count,
            schedule=schedule,
            micro_batches=MICRO_BATCHES,
            loss_fn=rg.nn.functional.mse_loss,
            split_spec={str(LAYERS * i // count): SplitPoint.BEGINNING for i in range(1, count)},
            transport="mpi",
        )
        return forgetful(model, lambda: pipe.step(x, target=y))

    return answers(model, {schedule: row_of(schedule) for schedule in STAGES}, comm.allgather, comm.Barrier)


def with_torch() -> Callable[[str], Any]:
    """A rank of torch.distributed.pipelining; they meet in a file."""
    torch = library("PyTorch")
    import torch.distributed as dist
    from torch.distributed import pipelining

    rank, place = int(os.environ[LAUNCHED]), os.environ["PIPELINES_MEETING"]
    dist.init_process_group("gloo", init_method=f"file://{place}", rank=rank, world_size=RANKS)
    model = encoder(torch.nn)
    x, y = numbered(torch.from_numpy, model, torch.no_grad)
    kinds = {
        "1f1b": pipelining.Schedule1F1B,
        "zb-h1": pipelining.ScheduleInterleavedZeroBubble,  # with one stage per rank
        "interleaved1f1b": pipelining.ScheduleInterleaved1F1B,
    }

    def row_of(schedule: str) -> Callable[[], Any]:
        count, device = STAGES[schedule], torch.device("cpu")
        each = LAYERS // count
        stages = [
            pipelining.PipelineStage(model[i * each : (i + 1) * each], i, count, device)
            for i in range(rank, count, RANKS)
        ]
        made = kinds[schedule](stages[0] if schedule == "1f1b" else stages, MICRO_BATCHES, torch.nn.functional.mse_loss)

        def step() -> Any:
            losses: list[Any] = []
            given = (x,) if rank == 0 else ()
            made.step(*given, **({"target": y, "losses": losses} if rank == RANKS - 1 else {}))
            return torch.stack(losses).mean() if losses else torch.tensor(0.0)

        return forgetful(model, step)

    def every(mine: Any) -> list[Any]:
        found: list[Any] = [None] * RANKS
        dist.all_gather_object(found, mine)
        return found

    return answers(model, {schedule: row_of(schedule) for schedule in STAGES}, every, dist.barrier)


# ----------------------------------------------------------------------------------------- groups of processes


def mpi_group() -> None:
    """Become mpiexec, whose ranks run this script; rank 0 has this process's input and output."""
    launcher = str(Path(sys.executable).with_name("mpiexec"))
    os.execv(launcher, [launcher, "-n", str(RANKS), sys.executable, __file__, "--worker", "MPI rank"])


def mpi_rank() -> None:
    """Rank 0 reads rows and passes them on; the others look for them now and then, without using the core."""
    from mpi4py import MPI

    comm, sample = MPI.COMM_WORLD, over_mpi()
    if comm.rank == 0:
        print("true", flush=True)
        for line in sys.stdin:
            for other in range(1, RANKS):
                comm.send(line.strip(), other)
            print(json.dumps(longest(comm.allgather(sample(line.strip())))), flush=True)
    while comm.rank:
        while not comm.Iprobe(0):
            time.sleep(0.002)
        row = comm.recv(source=0)
        if row is None:
            break
        comm.allgather(sample(row))
    for other in range(1, RANKS) if comm.rank == 0 else ():
        comm.send(None, other)


def torch_group() -> None:
    """Start the other ranks, pass rows on to them, and answer for all."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PIPELINES_MEETING"] = f"{folder}/meeting"
        others = [
            subprocess.Popen(
                [sys.executable, __file__, "--worker", "torch rank"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, LAUNCHED: str(rank)},
            )
            for rank in range(1, RANKS)
        ]
        os.environ[LAUNCHED] = "0"
        sample = with_torch()
        print("true", flush=True)
        for line in sys.stdin:
            for other in others:
                print(line.strip(), file=other.stdin, flush=True)
            mine = sample(line.strip())
            print(json.dumps(longest([mine, *[json.loads(other.stdout.readline()) for other in others]])), flush=True)
        for other in others:
            other.stdin.close()
            other.wait()


def torch_rank() -> None:
    """A rank that a worker has started."""
    sample = with_torch()
    for line in sys.stdin:
        print(json.dumps(sample(line.strip())), flush=True)


def longest(found: list[Any]) -> Any:
    """Of several ranks' samples the most of each; of their checks the one with the loss."""
    if any(one is None for one in found):
        return None
    if isinstance(found[0], dict):
        return max(found, key=lambda one: one["loss"])
    return [max(column) for column in zip(*found, strict=True)]


GROUPS = {OVER_MPI: mpi_group, "MPI rank": mpi_rank, TORCH_RANKS: torch_group, "torch rank": torch_rank}


# --------------------------------------------------------------------------------------------------------- report


def compare(workers: dict[str, Any]) -> None:
    """Raise unless all have the same loss and gradients."""
    expected = workers[UNSPLIT].sample(f"check {BATCH_AT_ONCE}")
    for row in ROWS:
        for name, worker in workers.items():
            found = worker.sample(f"check {row}")
            if found is None:
                continue
            assert abs(found["loss"] / expected["loss"] - 1) < 1e-4, (name, row, found["loss"], expected["loss"])
            for key, norm in expected["norms"].items():
                assert abs(found["norms"][key] - norm) < 2e-3 * norm + 1e-12, (name, row, key)
    print("losses and gradients agree")


def undisturbed(worker: Any, row: str) -> Any:
    """The sample that has waited least for a core, of as many as it takes."""
    best = None
    for _ in range(TRIES):
        taken = worker.sample(row)
        if taken is None or taken[1] <= QUIET:
            return taken
        best = min(taken, best or taken, key=lambda one: one[1])
    return best


def report(options: argparse.Namespace) -> tuple[object, bool]:
    """Start the subjects, and let them take turns."""
    times: dict[tuple[str, str], list[float]] = {}
    waits: dict[tuple[str, str], list[float]] = {}
    with present(__file__, {name: {} for name in (UNSPLIT, OVER_MPI, TORCH, TORCH_RANKS)}) as started:
        workers = {worker.name: worker for worker in started}
        compare(workers)
        for number in range(options.rounds):
            for row in ROWS if number % 2 else ROWS[::-1]:
                for name, worker in workers.items():
                    taken = undisturbed(worker, row)
                    if taken is not None:
                        times.setdefault((name, row), []).append(taken[0])
                        waits.setdefault((name, row), []).append(100 * taken[1])
    lines = [
        [*key[::-1], *cells([statistics.median(t), min(t), max(t)], "{:.3f}"), f"{statistics.median(waits[key]):.0f} %"]
        for key, t in times.items()
    ]
    print(table(["s per step", "", "median", "least", "most", "waited"], sorted(lines)), end="\n\n")
    fine, lines, figures = True, [], []
    for row in STAGES:
        for peer, budget in (
            ((UNSPLIT, BATCH_AT_ONCE), FASTER_THAN_UNSPLIT),
            ((UNSPLIT, IN_PARTS), FASTER_THAN_UNSPLIT),
            ((TORCH_RANKS, row), FASTER_THAN_PYTORCH),
        ):
            if peer in times and (OVER_MPI, row) in times:
                found = sorted(its / ours for its, ours in zip(times[peer], times[OVER_MPI, row], strict=True))
                ratio = statistics.median(found)
                fine = fine and ratio >= budget
                name = peer[0] if peer[1] == row else peer[1]
                figures.append({"schedule": row, "beside": name, "ratios": found, "ratio": ratio})
                spread = cells([ratio, found[0], found[-1], budget], "{:.2f}")
                lines.append([row, name, *spread, verdict(ratio >= budget)])
    print(table(["throughput over MPI", "beside", "ratio", "least", "most", "budget", ""], lines))
    return figures, fine


if __name__ == "__main__":
    arguments = parser(__doc__, rounds=7, figures="ratios of throughput")
    chosen = arguments.parse_args().worker
    if chosen in GROUPS:
        GROUPS[chosen]()
        sys.exit(0)
    sys.exit(main(arguments, report, unsplit))
