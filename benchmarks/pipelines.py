"""Time a training step on two ranks: over MPI, unsplit, and with torch.distributed.pipelining.

    python benchmarks/pipelines.py [--rounds 7] [--json FILE] [--check]

An encoder of 12 layers, 256 wide, a batch of 64 sequences of 64, 16 microbatches, float32, one BLAS thread per
process.  All subjects are started at the beginning, take turns in every round, and wait without using a core.  Losses
and gradients are compared first.  Budgets limit the ratio to the time of one process, and to PyTorch's on two.

If other programs use the cores, two processes get more of them than one, and the ratio is meaningless.  The operating
system reports how long every process has waited for a core.  A sample in which one has waited for more than 3 % is
repeated, up to 6 times, and the least disturbed one is used; the notes report how disturbed it was.
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
from functools import partial
from typing import Any

from retrograd.bench import Row, Table, Worker, library, main, parser, present, seconds, subjects
from retrograd.bench.workers import BARE_SCRIPT

LAYERS, WIDTH, HEADS, LENGTH, BATCH, MICRO_BATCHES, RANKS = 12, 256, 8, 64, 64, 16, 2
BATCH_AT_ONCE, IN_PARTS = "one process", "one process, microbatches"
STAGES = {"1f1b": 2, "zb-h1": 2, "interleaved1f1b": 4}
ROWS = [BATCH_AT_ONCE, IN_PARTS, *STAGES]
UNSPLIT, OVER_MPI, TORCH, TORCH_RANKS = "retrograd", "retrograd, MPI", "PyTorch", "PyTorch, gloo"
OF_UNSPLIT, OF_PYTORCH = 1 / 1.7, 1 / 1.2
QUIET, TRIES = 0.03, 6
LAUNCHED = "PIPELINES_RANK"  # the rank of a process that a worker has started


# ------------------------------------------------------------------------------------------------------- the model


def encoder(nn: Any) -> Any:
    """Return the model, built from a library's `nn`."""
    layers = [
        nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.0, "gelu", batch_first=True, norm_first=True)
        for _ in range(LAYERS)
    ]
    return nn.Sequential(*layers)


def set_weights(tensor: Callable[[Any], Any], model: Any, no_grad: Callable[[], Any]) -> tuple[Any, Any]:
    """Set the weights that every subject uses; return the batch and its target."""
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


def check_step(model: Any, step: Callable[[], Any], every: Callable[[dict[str, float]], list[Any]]) -> dict[str, Any]:
    """Return the loss of a step, and a summary of its gradients; `every` gathers a dict from all ranks."""
    loss = step()
    mine = {n: float((p.grad * p.grad).sum().detach()) for n, p in model.named_parameters() if p.grad is not None}
    norms = {name: norm for part in every(mine) for name, norm in part.items()}
    return {"loss": float(loss.detach()), "norms": norms}


def without_gradients(model: Any, step: Callable[[], Any]) -> Callable[[], Any]:
    """Return a step that starts without gradients."""

    def run() -> Any:
        for parameter in model.parameters():
            parameter.grad = None
        return step()

    return run


# -------------------------------------------------------------------------------------------------------- workers


def unsplit(name: str) -> Callable[[str], Any]:
    """Run a whole model in one process."""
    lib = library("retrograd" if name == UNSPLIT else "PyTorch", 1)
    model = encoder(lib.nn)
    x, y = set_weights(lib.from_numpy, model, lib.no_grad)
    loss_fn = lib.nn.functional.mse_loss

    def whole_step() -> Any:
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

    rows = {BATCH_AT_ONCE: without_gradients(model, whole_step), IN_PARTS: without_gradients(model, in_parts)}
    return serve(model, rows, lambda found: [found], lambda: None)


def serve(
    model: Any, rows: dict[str, Callable[[], Any]], every: Callable[[Any], list[Any]], meet: Callable[[], Any]
) -> Callable[[tuple[str, str]], Any]:
    """Answer for a worker: to "check" the values that must agree, else seconds and the share of waiting for a core."""

    def sample(request: tuple[str, str]) -> Any:
        what, row = request
        if row not in rows:
            return None
        if what == "check":
            return check_step(model, rows[row], every)
        meet()
        before = waiting_seconds()
        taken = seconds(rows[row])
        return taken, (waiting_seconds() - before) / taken

    return sample


def waiting_seconds() -> float:
    """Return the seconds that this process was ready to run, but had no core."""
    with open("/proc/self/schedstat") as file:
        return int(file.read().split()[1]) / 1e9


def over_mpi() -> Callable[[str], Any]:
    """Run one of the ranks that mpiexec has started."""
    from mpi4py import MPI

    import retrograd as rg
    from retrograd.pipelining import Pipeline, SplitPoint

    comm = MPI.COMM_WORLD
    model = encoder(rg.nn)
    x, y = set_weights(rg.from_numpy, model, rg.no_grad)

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
        return without_gradients(model, lambda: pipe.step(x, target=y))

    return serve(model, {schedule: row_of(schedule) for schedule in STAGES}, comm.allgather, comm.Barrier)


def with_torch() -> Callable[[str], Any]:
    """Run a rank of torch.distributed.pipelining; the ranks connect through a file."""
    torch = library("PyTorch", 1)
    import torch.distributed as dist
    from torch.distributed import pipelining

    rank, place = int(os.environ[LAUNCHED]), os.environ["PIPELINES_MEETING"]
    dist.init_process_group("gloo", init_method=f"file://{place}", rank=rank, world_size=RANKS)
    model = encoder(torch.nn)
    x, y = set_weights(torch.from_numpy, model, torch.no_grad)
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

        return without_gradients(model, step)

    def every(mine: Any) -> list[Any]:
        found: list[Any] = [None] * RANKS
        dist.all_gather_object(found, mine)
        return found

    return serve(model, {schedule: row_of(schedule) for schedule in STAGES}, every, dist.barrier)


# ----------------------------------------------------------------------------------------- groups of processes


def mpi_group() -> None:
    """Become mpiexec, whose ranks run this script; rank 0 has this process's input and output."""
    from retrograd.cli.mpi import mpiexec  # imported late: a peer's process must not import it

    launcher = mpiexec()
    os.execv(launcher, [launcher, "-n", str(RANKS), sys.executable, __file__, "--worker", "MPI rank"])


def mpi_rank() -> None:
    """Let rank 0 read rows and pass them on; the others poll for them, without using the core."""
    from mpi4py import MPI

    comm, sample = MPI.COMM_WORLD, over_mpi()
    if comm.rank == 0:
        print("true", flush=True)
        for line in sys.stdin:
            for other in range(1, RANKS):
                comm.send(parse_request(line), other)
            print_answer(slowest_rank(comm.allgather(sample(parse_request(line)))))
    while comm.rank:
        while not comm.Iprobe(0):
            time.sleep(0.002)
        request = comm.recv(source=0)
        if request is None:
            break
        comm.allgather(sample(request))
    for other in range(1, RANKS) if comm.rank == 0 else ():
        comm.send(None, other)


def torch_group() -> None:
    """Start the other ranks, pass rows on to them, and answer for all."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PIPELINES_MEETING"] = f"{folder}/meeting"
        others = [
            subprocess.Popen(
                [sys.executable, str(BARE_SCRIPT), __file__, "--worker", "torch rank"],
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
            mine = sample(parse_request(line))
            print_answer(slowest_rank([mine, *[json.loads(other.stdout.readline())["value"] for other in others]]))
        for other in others:
            other.stdin.close()
            other.wait()


def torch_rank() -> None:
    """Run a rank that a worker has started."""
    sample = with_torch()
    for line in sys.stdin:
        print_answer(sample(parse_request(line)))


def unsplit_worker(name: str) -> None:
    """Run a model in one process."""
    sample = unsplit(name)
    print("true", flush=True)
    for line in sys.stdin:
        print_answer(sample(parse_request(line)))


def parse_request(line: str) -> tuple[str, str]:
    """Return a request's job and row."""
    what, row = json.loads(line)
    return what, row


def print_answer(value: Any) -> None:
    """Print the answer."""
    print(json.dumps({"value": value}), flush=True)


def slowest_rank(found: list[Any]) -> Any:
    """Return the maximum of several ranks' samples; of their checks the one with the loss."""
    if any(one is None for one in found):
        return None
    if isinstance(found[0], dict):
        return max(found, key=lambda one: one["loss"])
    return [max(column) for column in zip(*found, strict=True)]


GROUPS = {
    OVER_MPI: mpi_group,
    "MPI rank": mpi_rank,
    TORCH_RANKS: torch_group,
    "torch rank": torch_rank,
    UNSPLIT: partial(unsplit_worker, UNSPLIT),
    TORCH: partial(unsplit_worker, TORCH),
}
SUBJECTS = subjects(UNSPLIT, OVER_MPI, TORCH, TORCH_RANKS)


# --------------------------------------------------------------------------------------------------------- report


def compare(workers: dict[str, Any]) -> None:
    """Raise unless all have the same loss and gradients."""
    expected = workers[UNSPLIT].ask("check", BATCH_AT_ONCE)
    for row in ROWS:
        for name, worker in workers.items():
            found = worker.ask("check", row)
            if found is None:
                continue
            assert abs(found["loss"] / expected["loss"] - 1) < 1e-4, (name, row, found["loss"], expected["loss"])
            for key, norm in expected["norms"].items():
                assert abs(found["norms"][key] - norm) < 2e-3 * norm + 1e-12, (name, row, key)
    print("losses and gradients agree")


def least_disturbed_sample(worker: Any, row: str) -> Any:
    """Return the sample that has waited least for a core, of as many as it takes."""
    best = None
    for _ in range(TRIES):
        taken = worker.ask("sample", row)
        if taken is None or taken[1] <= QUIET:
            return taken
        best = min(taken, best or taken, key=lambda one: one[1])
    return best


def report(options: argparse.Namespace) -> list[Table]:
    """Start the subjects, and let them take turns."""
    with present(__file__, SUBJECTS, 1) as (started, notes):
        workers = {worker.name: worker for worker in started}
        compare(workers)
        times, waits = measure_in_turn(workers, options.rounds)
    for (name, row), waited_for in sorted(waits.items()):
        notes.append(f"{name}, {row}: waited for a core {statistics.median(waited_for):.0f} % of the time")
    rows = []
    for row in STAGES:
        samples = {OVER_MPI: times.get((OVER_MPI, row), []), TORCH_RANKS: times.get((TORCH_RANKS, row), [])}
        samples |= {
            f"{name}, {how}": times.get((name, how), [])
            for name in (UNSPLIT, TORCH)
            for how in (BATCH_AT_ONCE, IN_PARTS)
        }
        budgets = {f"{UNSPLIT}, {how}": OF_UNSPLIT for how in (BATCH_AT_ONCE, IN_PARTS)} | {TORCH_RANKS: OF_PYTORCH}
        rows.append(Row(row, samples, budgets))
    return [Table(f"Training step on {RANKS} ranks", "s", rows, OVER_MPI, 1, notes=notes)]


def measure_in_turn(workers: dict[str, Worker], rounds: int) -> tuple[dict, dict]:
    """Return seconds, and the shares of waiting in percent, by subject and row."""
    times: dict[tuple[str, str], list[float]] = {}
    waits: dict[tuple[str, str], list[float]] = {}
    for number in range(rounds):
        for row in ROWS if number % 2 else ROWS[::-1]:
            for name, worker in workers.items():
                taken = least_disturbed_sample(worker, row)
                if taken is not None:
                    times.setdefault((name, row), []).append(taken[0])
                    waits.setdefault((name, row), []).append(100 * taken[1])
    return times, waits


if __name__ == "__main__":
    arguments = parser(__doc__, rounds=5)
    chosen = arguments.parse_args().worker
    if chosen in GROUPS:
        GROUPS[chosen]()
        sys.exit(0)
    sys.exit(main(arguments, report))
