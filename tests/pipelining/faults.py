"""Provoke each kind of fault many times in training runs over MPI and Ray, and print the outcomes.

python -m tests.pipelining.faults [--count 20] [FAULT]...
"""

import argparse
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from retrograd.cli.mpi import BROKEN
from retrograd.cli.ray import DEFAULT_ENVIRONMENT
from retrograd.pipelining.transports.mpi import LOST

from . import fault_script, recovery_script
from .recovery import COMMAND, MARK, RANKS, Kill, Trial, undisturbed
from .two_hosts import ON_FIRST, NoHostsError, launcher_variables, plug, two_hosts, unplug

TIMEOUT = 8.0  # seconds for a rank to wait in the trials with lost processes: the first step captures the model
LIMIT = 30.0  # seconds after which all ranks must have raised the error of a fault
# What all ranks raise after a fault that is no lost process: the class, and a part of the text.
RAISED = {
    "exception": ("PipelineError", "ZeroDivisionError: provoked"),
    "nan": ("PipelineError", "has nan"),
    "shape": ("RankMismatchError", "argument 0: float32[32, 16] on rank 0; float32[28, 16] on rank 1"),
    "seed": ("RankMismatchError", "generator state: "),
    "call": ("RankMismatchError", "call: Pipeline.step on rank 0; Pipeline.predict on rank 1"),
    "disk": ("OSError", "No space left on device"),
    "tmpfs": ("OSError", "No space left on device"),
}


def run_script(folder, *arguments, mark=""):
    """Return the ended process of `retrograd run` with the script of faults."""
    return subprocess.run(
        [*COMMAND, "run", "-n", str(RANKS), "-m", fault_script.__name__, str(folder), *map(str, arguments)],
        env={**os.environ, "OMP_NUM_THREADS": "1", MARK: mark},
        cwd=Path(__file__).parents[2],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def provoke_caught(fault, count, folder):
    """Provoke faults that a script catches, in one run; return a line with the outcomes."""
    ended = run_script(folder, fault, count)
    assert ended.returncode == 0, ended.stderr
    by_rank = json.loads(ended.stdout)
    expected = undisturbed(fault_script.PERIOD * count + 5)
    name, text = RAISED[fault]
    for found in by_rank:
        assert found["losses"] == expected
        assert len(found["errors"]) == count
        assert all(raised == name and text in said for raised, said in found["errors"]), found["errors"]
        assert found["seconds"] < LIMIT
    assert by_rank[0]["repeated"] <= count * fault_script.EVERY
    return f"{by_rank[0]['repeated']} steps repeated, at most {max(f['seconds'] for f in by_rank):.1f} s to the error"


def provoke_tmpfs(fault, count, folder):
    """Fill a small file system before each save that must fail."""
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], capture_output=True, check=False)
    if done.returncode:
        return f"not tried: {done.stderr.decode().strip()}"
    try:
        return provoke_caught(fault, count, folder)
    finally:
        subprocess.run(["umount", folder], check=True)


def provoke_ends(fault, count, folder):
    """Let the script of one rank end early, in a launch for each time."""
    slowest = 0.0
    for _ in range(count):
        start, mark = time.monotonic(), uuid.uuid4().hex
        ended = run_script(folder, "ends", mark=mark)
        slowest = max(slowest, time.monotonic() - start)
        assert ended.returncode == 1, ended.stderr
        assert "the script of rank 1 is over, while rank 0 is in a step that needs it" in ended.stderr
        assert processes_of(mark) == []
    return f"exit code 1, at most {slowest:.1f} s from the launch to its end, no process left"


def processes_of(mark):
    """Return the processes with a mark in their environment."""
    trial = Trial.__new__(Trial)
    trial.mark = mark
    return trial.left()


def describe(trial, count, start):
    """Check a trial with restarts, and return a line with its outcomes."""
    trial.check(undisturbed(trial.steps))
    assert len(trial.lives()) == 1 + count, "a fault has hit nobody"
    return (
        f"{len(trial.lives()) - 1} restarts, {trial.repeated()} of {trial.steps} steps repeated, all losses equal, no "
        f"process left, {(time.monotonic() - start) / count:.1f} s for each with its restart"
    )


def provoke_signals(number):
    """Return a function that sends a signal to a rank in mid-step, in one trial with a restart after each."""

    def provoke(fault, count, folder):
        steps = 4 * count
        kills = [Kill(step, step % RANKS, 0.002 * (step % 5), number) for step in range(2, steps - 1, 4)]
        trial = Trial(folder, "mpi", steps, 1, kills, timeout=TIMEOUT)
        start = time.monotonic()
        assert trial.run() == 0, trial.said
        return describe(trial, count, start)

    return provoke


class CableTrial(Trial):
    """A rank on each of two hosts; the cable between them is pulled instead of a signal."""

    def prepare(self, addresses):
        """Write the host file; return this trial."""
        (self.folder / "hosts").write_text("".join(f"{address}:1\n" for address in addresses))
        self.variables = launcher_variables(self.folder)
        return self

    def command(self):
        """Return the command line of a start, without restarts: the cable is plugged in before each."""
        options = ["--hostfile", str(self.folder / "hosts"), "--timeout", str(TIMEOUT)]
        script = [recovery_script.__file__, str(self.folder), str(self.steps), str(self.every)]
        return [*ON_FIRST, *COMMAND, "run", "-n", str(RANKS), *options, *script]

    def strike(self, process, due):
        """Pull the cable."""
        unplug()

    def starts_again(self, code):
        """Plug the cable in; return whether a start has ended by the loss of a rank."""
        if code not in (LOST, BROKEN):
            return False
        assert self.left() == []
        plug()
        return True


def provoke_cable(fault, count, folder):
    """Pull the cable between two hosts in mid-step."""
    steps, start = 4 * count, time.monotonic()
    try:
        with two_hosts() as addresses:
            trial = CableTrial(folder, "mpi", steps, 1, [Kill(step) for step in range(2, steps - 1, 4)])
            assert trial.prepare(addresses).run() == 0, trial.said
            return describe(trial, count, start)
    except NoHostsError as error:
        return f"not tried: {error}"


class NodeTrial(Trial):
    """A rank on each of two nodes of a Ray cluster; the node without the head is removed instead of a signal."""

    @contextmanager
    def cluster(self):
        """Run the two nodes, whose processes are those of the trial, while entered."""
        from ray.cluster_utils import Cluster

        node = {"num_cpus": 1, "object_store_memory": 100 << 20, "node_ip_address": "127.0.0.1"}
        self.node = {**node, "include_log_monitor": False}
        head = {**self.node, "include_dashboard": False, "no_monitor": True}
        own = {**DEFAULT_ENVIRONMENT, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", MARK: self.mark}
        with patch.dict(os.environ, own):
            self.nodes = Cluster(initialize_head=True, head_node_args=head)
            try:
                self.second = self.nodes.add_node(**self.node)
                self.options = ["--address", self.nodes.address]
                yield
            finally:
                self.nodes.shutdown()

    def strike(self, process, due):
        """Remove the node, and add another one.

        All its processes end at once, as without power; otherwise its rank would run for a second without its node.
        """
        node = self.second.all_processes["raylet"][0].process.pid
        for killed in [node, *map(int, Path(f"/proc/{node}/task/{node}/children").read_text().split())]:
            os.kill(killed, signal.SIGKILL)
        self.nodes.remove_node(self.second, allow_graceful=False)
        self.second = self.nodes.add_node(**self.node)


def provoke_node(fault, count, folder):
    """Remove a node of a Ray cluster in mid-step."""
    if importlib.util.find_spec("ray") is None:
        return "not tried: needs ray"
    steps, start = 4 * count, time.monotonic()
    trial = NodeTrial(folder, "ray", steps, 1, [Kill(step) for step in range(2, steps - 1, 4)])
    with trial.cluster():
        assert trial.run() == 0, trial.said
    return describe(trial, count, start)


FAULTS = {
    **dict.fromkeys(RAISED, provoke_caught),
    "tmpfs": provoke_tmpfs,
    "ends": provoke_ends,
    "SIGKILL": provoke_signals(signal.SIGKILL),
    "SIGSTOP": provoke_signals(signal.SIGSTOP),
    "cable": provoke_cable,
    "node": provoke_node,
}


def main():
    """Provoke the faults that the arguments name, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("faults", nargs="*", metavar="FAULT", help=f"one of {', '.join(FAULTS)}")
    parser.add_argument("--count", type=int, default=20)
    options = parser.parse_args()
    for fault in options.faults or FAULTS:
        with tempfile.TemporaryDirectory() as folder:
            line = FAULTS[fault](fault, options.count, folder)
        print(f"{fault:9} {options.count} times: {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
