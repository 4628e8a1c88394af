"""`retrograd top` shows what the ranks of a running job do, from the files that they write."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from tests.case_groups import group_cases

import retrograd as rg
import retrograd.distributed as dist
from retrograd import nn
from retrograd.cli import main, top
from retrograd.cli.jobs import Job, describe_job
from retrograd.cli.top import awaited_ranks, find_jobs, read_job
from retrograd.distributed.fsdp import fully_shard
from retrograd.pipelining import Pipeline, pipeline_trainer
from retrograd.pipelining.runtime.step_status import StepStatus
from retrograd.pipelining.transports import spmd
from retrograd.pipelining.transports.process_group import group_or_default
from retrograd.pipelining.transports.rank_messaging import Peers
from retrograd.pipelining.transports.status_file import (
    PREFIX,
    StatusFile,
    create_status_file,
    last_action,
    last_step,
)


@pytest.fixture
def job(tmp_path):
    """Return the folder of a job of three ranks, and their files."""
    folder = tmp_path / f"{PREFIX}a"
    folder.mkdir()
    describe_job(folder, Job(["train.py", "--epochs", "3"], ranks=3))
    files = [StatusFile(create_status_file(folder, rank)) for rank in range(3)]
    return folder, files


def page_of(folder, **options):
    console = Console(file=StringIO(), width=100)
    top.run(folder=folder.parent, console=console, **{"once": True, "interval": 1.0, **options})
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", console.file.getvalue())


def test_the_page_has_loss_throughput_and_who_waits_for_whom(job):
    folder, files = job
    files[0].write("F0.1")
    files[1].write("RECV_F1.0<0, waits for F1.0 from rank 0")
    files[2].write("RECV_F2.0<1, waits for F2.0 from rank 1")
    files[0].write_step(step=12, loss=0.25, examples=64, seconds=0.5, at=0.0)
    page = page_of(folder)
    assert "train.py --epochs 3   3 ranks, mpi" in page
    assert "step 12   loss 0.25   128 examples/s   0.5 s per step" in page
    assert "ranks 1-2 wait for rank 0: F0.1" in page
    rows = {line.split()[0]: line.split() for line in page.splitlines() if line[:1].isdigit()}
    assert rows["0"] == ["0", "F0.1", "0%", "12"]
    assert rows["2"] == ["2", "RECV_F2.0<1", "rank", "1", "100%"]


def test_ranks_that_have_written_nothing_are_starting(job):
    page = page_of(job[0])
    assert "no steps yet; only those of pipelines are counted" in page
    assert page.count("starts") == 3
    assert "wait for" not in page


LAUNCHER = """
from retrograd.cli.jobs import Job, describe_job
from retrograd.pipelining.transports.status_file import status_folder
with status_folder() as folder:
    describe_job(folder, Job(["train.py"], ranks=1))
    print(folder, flush=True)
    input()
"""


def test_a_job_whose_launcher_was_killed_is_not_shown(tmp_path):
    running = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    with running:
        folder = Path(running.stdout.readline().strip())
        assert find_jobs(tmp_path) == [folder]
        running.kill()
    assert folder.exists()
    assert find_jobs(tmp_path) == []


def test_the_view_follows_the_run_until_it_ends_and_counts_waits(job):
    folder, files = job
    pauses = []

    def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 1:
            files[1].write("B1.0, waits for B1.0 from rank 2")
            files[0].write_step(step=1, loss=1.5, examples=8, seconds=2.0, at=0.0)
        if len(pauses) == 3:
            shutil.rmtree(folder)

    page = page_of(folder, once=False, interval=0.25, pause=pause)
    assert pauses == [0.25] * 3
    assert "loss 1.5   4 examples/s" in page
    assert "rank 1 waits for rank 2: starts" in page
    assert page.rstrip().endswith("the run has ended")
    assert " 50% " in page  # rank 1 waits at two of the four looks


def test_ranks_that_wait_in_a_ring_wait_for_nobody_else():
    def ranks(*awaited):
        return [top.RankStatus(rank, "F", others, {}) for rank, others in enumerate(awaited)]

    assert awaited_ranks(ranks([1], [0])) == {}
    assert awaited_ranks(ranks([1], [], [1])) == {1: [0, 2]}
    assert awaited_ranks(ranks([1, 2], [2], [], [0])) == {2: [0, 1, 3]}
    assert awaited_ranks(ranks([5])) == {5: [0]}  # a rank on another host, of which nothing is known here


def test_the_latest_job_is_shown_and_without_one_there_is_an_error(job, tmp_path, capsys, monkeypatch):
    folder, _ = job
    later = tmp_path / f"{PREFIX}b"
    later.mkdir()
    describe_job(later, Job(["later.py"], ranks=1))
    os.utime(folder / "job.json", (1, 1))
    assert find_jobs(tmp_path) == [later, folder]
    shutil.rmtree(later)
    assert read_job(later) is None
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    assert main(["top", "--once"]) == 2
    assert "no `retrograd run` with --transport mpi or ray runs on this host" in capsys.readouterr().err


def test_a_step_writes_its_numbers_and_leaves_the_action(tmp_path):
    file = StatusFile(create_status_file(tmp_path, 0))
    times = iter([10.0, 12.0, 15.0])
    steps = StepStatus(lambda: next(times), file)
    file.write("F0.1")
    steps.add(rg.tensor(0.5), 8)
    steps.add(rg.tensor(0.25), 6)
    assert last_step(tmp_path, 0) == {"step": 2, "loss": 0.25, "examples": 6, "seconds": 3.0, "at": 15.0}
    assert last_action(tmp_path, 0) == "F0.1"
    assert last_step(tmp_path, 1) == {}
    StepStatus(lambda: 0.0).add(rg.tensor(0.0), 1)  # without a launcher


def test_steps_that_end_together_count_as_many(tmp_path, monkeypatch):
    file, times = StatusFile(create_status_file(tmp_path, 0)), iter([10.0, 16.0])
    monkeypatch.setattr(pipeline_trainer, "StepStatus", lambda: StepStatus(lambda: next(times), file))
    model = rg.nn.Sequential(rg.nn.Linear(2, 1), rg.nn.Tanh())
    pipeline = Pipeline(model, 2, micro_batches=2, loss_fn=rg.nn.functional.mse_loss)
    batches = [(rg.ones(4, 2), rg.ones(4, 1))] * 3
    results = pipeline.train_steps(batches, rg.optim.SGD(model.parameters(), lr=0.1))
    loss = results[-1].loss.item()
    assert last_step(tmp_path, 0) == {"step": 3, "loss": loss, "examples": 4, "seconds": 2.0, "at": 16.0}


OPERATIONS = {
    "all_reduce": lambda rank, group: dist.all_reduce(rg.ones(2), group=group),
    "reduce": lambda rank, group: dist.reduce(rg.ones(2), 0, group=group),
    "broadcast": lambda rank, group: dist.broadcast(rg.ones(2), 2, group=group),
    "all_gather": lambda rank, group: dist.all_gather([rg.ones(1) for _ in range(3)], rg.ones(1), group=group),
    "all_gather_into_tensor": lambda rank, group: dist.all_gather_into_tensor(rg.ones(3), rg.ones(1), group=group),
    "reduce_scatter_tensor": lambda rank, group: dist.reduce_scatter_tensor(rg.ones(1), rg.ones(3), group=group),
    "all_to_all_single": lambda rank, group: dist.all_to_all_single(rg.ones(3), rg.ones(3), group=group),
    "barrier": lambda rank, group: dist.barrier(group),
    "monitored_barrier": lambda rank, group: dist.monitored_barrier(group),
    "all_gather_object": lambda rank, group: dist.all_gather_object([0, 0, 0], rank, group=group),
    "broadcast_object_list": lambda rank, group: dist.broadcast_object_list([0], 2, group=group),
    "new_group": lambda rank, group: dist.new_group([0, 1, 2]),
    "async": lambda rank, group: dist.all_reduce(rg.ones(2), group=group, async_op=True).wait(),
    "recv": lambda rank, group: exchange_from_last(rank, group, dist.send, dist.recv, rg.ones(1)),
    "recv_object_list": lambda rank, group: exchange_from_last(
        rank, group, dist.send_object_list, dist.recv_object_list, [0]
    ),
}
MODELS = {"DDP": nn.parallel.DistributedDataParallel, "fully_shard": fully_shard}


def exchange_from_last(rank, group, send, receive, value):
    for other in (0, 1):
        if rank == 2:
            send(value, other, group=group)
        elif rank == other:
            receive(value, 2, group=group)


@group_cases
@pytest.mark.parametrize("name", [*OPERATIONS, *MODELS])
def test_ranks_that_wait_in_an_operation_are_shown_to_wait_for_the_rank_that_has_not_come(job, name):
    folder, files = job
    pages = []

    def script():
        rank = dist.get_rank()
        group_or_default(None).peers.status = files[rank]
        group = dist.new_group([0, 1, 2])
        model = MODELS[name](nn.Linear(3, 1)) if name in MODELS else None
        if rank == 2:
            deadline = time.monotonic() + 60
            while not pages and time.monotonic() < deadline:  # any load: the others cannot come further
                page = page_of(folder)  # between two waits of one operation, a rank waits for nobody
                if "ranks 0-1 wait for rank 2: after " in page:
                    pages.append(page)
            assert pages, page
        if model is None:
            OPERATIONS[name](rank, group)
        else:
            model(rg.ones(2, 3)).sum().backward()

    dist.run_threads(script, 3)
    assert pages


def test_a_rank_writes_the_message_it_waits_for_into_its_file_until_the_message_arrives(tmp_path):
    file, message = StatusFile(create_status_file(tmp_path, 0)), ("F", 1, 0, 0)
    texts = []

    class Channel:
        rank, size = 0, 2

        def poll(self):
            if last_action(tmp_path, 0) != "RECV_F1.0<0":  # short waits are not shown
                texts.append(last_action(tmp_path, 0))
                peers.mail[message] = spmd.pack(3)
            return []

        def moving(self):
            return False

    peers = Peers(Channel())
    peers.status = file
    link = spmd._ProcessLink(peers, 5.0)
    link.doing = "RECV_F1.0<0"
    assert link.receive(1, message) == 3
    assert texts == [f"RECV_F1.0<0, waits for {message} from rank 1"]
    assert last_action(tmp_path, 0) == "RECV_F1.0<0"


@pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="needs mpi4py")
@pytest.mark.skipif("RETROGRAD_PURE" in os.environ, reason="the compiled pass has run it")
def test_a_script_over_mpi_finds_itself_with_its_loss(tmp_path, capfd):
    script = tmp_path / "train.py"
    script.write_text(
        "import os, pathlib\nimport retrograd as rg\nfrom retrograd import nn\n"
        "from retrograd.cli.top import read_job\nfrom retrograd.pipelining import Pipeline\n"
        "rg.manual_seed(0)\nmodel = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))\n"
        "p = Pipeline(model, 2, micro_batches=2, loss_fn=nn.functional.mse_loss)\n"
        "loss = p.step(rg.ones(4, 2), target=rg.ones(4, 1)).item()\n"
        "job = read_job(pathlib.Path(os.environ['RETROGRAD_STATUS']).parent)\n"
        "own = job.ranks[p.rank].step\nprint(len(job.ranks), own['loss'] == loss, own['examples'])\n"
    )
    assert main(["run", "-n", "2", str(script)]) == 0
    assert capfd.readouterr().out == "2 True 4\n"
