"""Ranks on a Ray cluster of two nodes: `make cluster` runs these, as the cluster takes seconds to start."""

import json
import os
import select
import signal

import pytest

from retrograd.cli import main
from retrograd.cli import ray as launcher
from retrograd.pipelining.transports.ray_worker import Worker

from . import conformance

WANTED = "RETROGRAD_CLUSTER"
pytestmark = [
    pytest.mark.skipif(WANTED not in os.environ, reason="needs a cluster: make cluster"),
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning"),  # Ray's own
]
STORE = 100 << 20  # bytes of a node's object store
HEAD = """
import os, signal, sys, time
from pathlib import Path
from retrograd.pipelining.schedules.actions import Message
from retrograd.pipelining.transports import get_transport
transport = get_transport()
rank, folder = transport.local[0], Path(sys.argv[1])
(folder / f"process{rank}-{os.getpid()}").touch()
def wait_for(name):
    while not (folder / name).exists():
        time.sleep(0.01)
"""


def ends(process):
    """Return whether a process ends soon, as Ray takes time to end the processes it stops."""
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], 60)[0])
    finally:
        os.close(handle)


@pytest.fixture(scope="module")
def cluster():
    """Start two nodes of two cores on this machine, which only this machine can reach."""
    os.environ.update(
        launcher.DEFAULT_ENVIRONMENT, RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0"
    )  # the latter keeps it to this machine
    import ray
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 2, "object_store_memory": STORE, "node_ip_address": "127.0.0.1", "include_log_monitor": False}
    nodes = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False, "no_monitor": True})
    try:
        nodes.add_node(**node)
        nodes.wait_for_nodes()
        ray.init(address=nodes.address, log_to_driver=False, logging_level="ERROR")
        yield ray
    finally:
        ray.shutdown()
        nodes.shutdown()


@pytest.fixture
def run(cluster, tmp_path):
    """Run a script's text on ranks of the cluster; return the exit code.  None of their processes remains alive."""

    def start(ranks, text, *options):
        path = tmp_path / "script.py"
        path.write_text(HEAD + text)
        return main(["run", "-n", str(ranks), "--transport", "ray", *options, str(path), str(tmp_path)])

    yield start
    processes = [int(file.name.partition("-")[2]) for file in tmp_path.glob("process*")]
    assert processes
    assert all(map(ends, processes))


def test_ray_conforms_to_the_transport_tests(cluster, capfd):
    ranks = str(conformance.RANKS)
    assert main(["run", "-n", ranks, "--transport", "ray", "--spread", conformance.__file__, "ray"]) == 0
    by_rank = json.loads(capfd.readouterr().out)
    assert [rank.keys() for rank in by_rank] == [conformance.CHECKS.keys()] * conformance.RANKS
    assert {name: trace for rank in by_rank for name, trace in rank.items() if trace} == {}


def test_spread_ranks_are_on_all_nodes_and_all_output_is_shown_by_rank(run, capfd):
    text = "import ray\nprint(ray.get_runtime_context().get_node_id())\nos.system('echo child')\nsys.exit(3 * rank)"
    assert run(2, text, "--spread", "--output", "all") == 3
    lines = sorted(capfd.readouterr().out.split("\n"))
    assert [line[:4] for line in lines if line] == ["[0] "] * 2 + ["[1] "] * 2
    assert len({line[4:] for line in lines if line}) == 3


def test_ranks_have_the_variables_that_pytorchs_launcher_sets(run, capfd):
    text = "print(*[os.environ[name] for name in ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE')])\n"
    text += "import retrograd as rg\nrg.distributed.init_process_group(rank=rank, world_size=2)\n"
    assert run(2, text, "--output", "all") == 0
    assert sorted(capfd.readouterr().out.split("\n"))[1:] == ["[0] 0 2 0 2", "[1] 1 2 1 2"]


def test_ranks_are_spread_over_the_free_nodes(cluster, monkeypatch):
    monkeypatch.setattr(launcher, "RELEASE_TIMEOUT", 0.1)
    place = cluster.util.scheduling_strategies.NodeAffinitySchedulingStrategy(cluster.nodes()[0]["NodeID"], soft=False)
    other = cluster.remote(num_cpus=2, scheduling_strategy=place)(Worker).remote(0, 1)
    cluster.get(other.location.remote())
    try:
        with launcher._workers(cluster, 2, spread=True) as workers:
            assert len(cluster.get([worker.location.remote() for worker in workers])) == 2
    finally:
        cluster.kill(other)


def test_after_the_loss_of_a_rank_the_script_continues_from_its_checkpoint(run, capfd):
    text = """
done = folder / "done"
def step(number):
    def work(link):
        if rank == 1 and number == 2 and not (folder / "lost").exists():
            (folder / "lost").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if rank == 0:
            return link.receive(1, Message("F", 1, 0, number))
        link.send(0, Message("F", 1, 0, number), number * 10)
    return transport.launch(2, work)[0]
for number in range(int(done.read_text()) if done.exists() else 0, 4):
    print("step", step(number))
    if rank == 0:
        done.write_text(str(number + 1))
"""
    assert run(2, text, "--restarts", "2") == 0
    out, err = capfd.readouterr()
    assert out.splitlines() == ["step 0", "step 10", "step 20", "step 30"]
    assert "retrograd: rank 1 (process " in err
    assert "PeerLost" in err
    assert err.count("a rank was lost") == 1


def test_a_rank_that_hangs_is_reported_with_its_action_and_killed(run, capfd, monkeypatch):
    monkeypatch.setattr(launcher, "GRACE", 0.1)
    monkeypatch.setattr(launcher, "STATUS_TIMEOUT", 60)
    text = """
def work(link):
    link.doing = f"plays {rank}"
    if rank == 1:
        (folder / "hangs").touch()
        wait_for("godot")
    wait_for("hangs")
    link.receive(1, Message("F", 1, 0, 5))
transport.launch(2, work)
"""
    assert run(2, text, "--timeout", "0.2") == 75  # any load: it begins when rank 1 hangs
    err = capfd.readouterr().err
    assert "TimeoutError: rank 0 has waited 0.2 s for F1>0.5 from rank 1" in err
    assert "rank 1 does not end by itself, and is killed; it is at: plays 1" in err


def test_ctrl_c_reaches_the_scripts(run, capfd):
    text = f"""
try:
    if rank == 0:
        (folder / "listens").touch()
    else:
        wait_for("listens")
        os.kill({os.getpid()}, signal.SIGINT)
    transport.launch(2, lambda link: link.receive(1 - rank, Message("F", 1, 0, 5)))
except KeyboardInterrupt:
    print("saved")
"""
    assert run(2, text, "--output", "all") == 128 + signal.SIGINT
    assert sorted(capfd.readouterr().out.splitlines()) == ["[0] saved", "[1] saved"]


def test_more_ranks_than_cores_are_refused(cluster, capsys):
    assert main(["run", "-n", "5", "--transport", "ray", __file__]) == 2
    assert "5 ranks need 5 cores, and the Ray cluster has 4" in capsys.readouterr().err
