"""Run ranks as actors of a Ray cluster."""

import importlib.util
import os
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from retrograd.cli.errors import UsageError, needs_extra
from retrograd.cli.jobs import CapacityError, Job, RunResult, describe_job
from retrograd.cli.processes import record_signals
from retrograd.core.blocks import generator_block
from retrograd.kernels.processors import available_processors
from retrograd.pipelining.transports.mpi import LOST
from retrograd.pipelining.transports.ray_worker import STDERR, STDOUT, THREADS, Script, Worker
from retrograd.pipelining.transports.status_file import (
    STATUS_VARIABLE,
    create_status_file,
    last_action,
    status_folder,
)

GRACE = 10.0  # seconds for the other ranks to end by themselves, once one has failed or there was a signal
CONNECT_TIMEOUT = 10.0  # seconds for the head of a cluster to accept a connection
HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])  # and a frame of no settings
SETTINGS_FRAME = b"\x04"  # the type of a frame, its byte 3
START_TIMEOUT = 60.0  # seconds for Ray to place and start the ranks
RELEASE_TIMEOUT = 5.0  # seconds for Ray to notice that an earlier run's cores are free again
POLL_INTERVAL = 0.5  # seconds between two checks for a signal
STATUS_TIMEOUT = 1.0  # seconds for a rank to report its current activity
# Defaults for Ray, unless set by the user: no usage statistics, and no log messages in the script's output that this
# launcher reports in its own lines.
DEFAULT_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS_SKIP_REGEX": "^A worker died or was killed while executing a task by an unexpected system error",
}


def run_ray(job: Job) -> RunResult:
    """Start an actor per rank on the cluster, let them run the script, and wait until all have ended.

    The cluster is that of `job.address` or RAY_ADDRESS, otherwise a local one, which ends with this process.
    """
    ray = _connected(job)
    with _workers(ray, job.ranks or 0, job.spread) as workers, status_folder() as folder:
        describe_job(folder, job)
        return _JobRun(ray, job, workers, folder).wait()


def ray_capacity(job: Job) -> int:
    """Return how many cores the cluster has, which is started if there is none."""
    return int(_connected(job).cluster_resources().get("CPU", 0))


def _connected(job: Job) -> Any:
    if importlib.util.find_spec("ray") is None:
        needs_extra("--transport ray", "ray", "ray")
    if job.ranks is None:
        raise UsageError("--transport ray needs -n, the number of ranks")
    return _connect(job.address, job.ranks)


def _connect(address: str | None, ranks: int) -> Any:
    """Return Ray, connected to a cluster; replaces an earlier connection."""
    os.environ.update(DEFAULT_ENVIRONMENT | os.environ)
    address = address or os.environ.get("RAY_ADDRESS")
    if address is not None:
        _check_address(address)
    import ray

    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if ray.is_initialized():
        return ray
    if address is None:
        local: dict[str, Any] = {"num_cpus": max(ranks, available_processors()), "include_dashboard": False}
        try:
            ray.init(address="local", _node_ip_address="127.0.0.1", **local, **quiet)
        except Exception as error:  # Ray raises this class itself if a busy machine takes too long
            raise UsageError(f"Ray could not be started on this machine: {error}  Try again.") from error
        return ray
    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, ValueError) as error:
        raise UsageError(f"there is no Ray cluster at '{address}': {error}") from error
    return ray


def _check_address(address: str) -> None:
    """Raise a UsageError unless a gRPC server listens at the address; Ray itself tries to connect for many minutes.

    A server of HTTP/2, which gRPC uses, answers the preface by a frame of its settings: RFC 9113, section 3.4.
    """
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if address in ("auto", "local"):
        return
    try:
        with socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT) as connection:
            connection.sendall(HTTP2_PREFACE)
            if os.environ.get("RAY_USE_TLS", "0") != "1" and connection.recv(9)[3:4] != SETTINGS_FRAME:
                raise ConnectionError("another server listens there")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"there is no Ray cluster at '{address}' ({error}); start one by `ray start --head` and pass the HOST:PORT "
            f"that it prints, or leave out --address and RAY_ADDRESS to start Ray for this run"
        ) from error


@generator_block
def _workers(ray: Any, ranks: int, spread: bool) -> Iterator[list[Any]]:
    """Create an actor per rank, each with its own core, while entered."""
    cores = int(ray.cluster_resources().get("CPU", 0))
    if cores < ranks:
        raise CapacityError(f"{ranks} ranks need {ranks} cores, and the Ray cluster has {cores}")
    workers: list[Any] = []
    with _reserve_cores(ray, ranks, spread) as group:
        try:
            workers += [_create_worker(ray, group, rank, ranks) for rank in range(ranks)]
            yield workers
        finally:
            for worker in workers:
                ray.kill(worker)


@generator_block
def _reserve_cores(ray: Any, ranks: int, spread: bool) -> Iterator[Any]:
    """Reserve a core per rank, all at once, while entered: on few nodes, or spread over all.

    Ray's SPREAD uses its own estimate of free cores, which is too low for seconds after an earlier run, and falls back
    to one node. So if one node per rank is possible, that is requested first.
    """
    nodes = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
    strategies = {"SPREAD": START_TIMEOUT} if spread else {"PACK": START_TIMEOUT}
    if spread and ranks <= len(nodes):
        strategies = {"STRICT_SPREAD": RELEASE_TIMEOUT, **strategies}
    for strategy, timeout in strategies.items():
        group = ray.util.placement_group([{"CPU": 1}] * ranks, strategy=strategy)
        try:
            if group.wait(timeout):
                yield group
                return
        finally:
            ray.util.remove_placement_group(group)
    raise CapacityError(f"the Ray cluster has had no {ranks} free cores for {START_TIMEOUT:g} s")


def _create_worker(ray: Any, group: Any, rank: int, ranks: int) -> Any:
    scheduling = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(group, rank)
    actor = ray.remote(num_cpus=1, max_concurrency=THREADS, scheduling_strategy=scheduling)(Worker)
    return actor.remote(rank, ranks)


class _JobRun:
    """One run of the script on all ranks.

    running, printing: the called rank, by the reference to the call's future result.
    """

    def __init__(self, ray: Any, job: Job, workers: list[Any], folder: Path) -> None:
        self.ray, self.job, self.workers, self.folder = ray, job, workers, folder
        self.codes: list[int] = []  # of failed ranks, in order of failure
        self.lost: list[int] = []
        self.deadline: float | None = None
        self.killed: set[int] = set()
        self.processes = self._find_processes()
        ray.get([worker.open.remote(self._shown_streams(rank)) for rank, worker in enumerate(workers)])
        self.printing = {worker.output.remote(): rank for rank, worker in enumerate(workers)}
        self.running = {worker.run.remote(self._script(rank), workers): rank for rank, worker in enumerate(workers)}

    def _find_processes(self) -> list[tuple[int, str]]:
        """Return the process and host of every rank, once all have started."""
        try:
            processes: list[tuple[int, str]] = self.ray.get(
                [it.location.remote() for it in self.workers], timeout=START_TIMEOUT
            )
        except self.ray.exceptions.RayError as error:
            raise UsageError(f"Ray could not start the ranks: {error}") from error
        return processes

    def wait(self) -> RunResult:
        """Wait for all ranks; once one has failed or is gone, the others have the grace period."""
        with record_signals() as received:
            while self.running or self.printing:
                if (received or self.job.can_grow()) and self.deadline is None:
                    self._call_running("interrupt")
                    self._shorten_grace()
                if len(received) > 1 or (self.deadline is not None and time.monotonic() > self.deadline):
                    self._kill()
                self._handle_results()
        if received:
            return RunResult(128 + received[0], stopped=True)
        return RunResult(LOST, lost=True) if self.lost else RunResult((self.codes or [0])[0])

    def _shown_streams(self, rank: int) -> list[int]:
        return [STDOUT, STDERR] if self.job.everything or rank == 0 else [STDERR]

    def _script(self, rank: int) -> Script:
        """Return the script of a rank, with the variables that PyTorch's launcher sets."""
        hosts = [host for _, host in self.processes]
        own = hosts[rank]
        local = {"LOCAL_RANK": hosts[:rank].count(own), "LOCAL_WORLD_SIZE": hosts.count(own)}
        numbers = {"RANK": rank, "WORLD_SIZE": len(hosts), **local}
        variables = {**self.job.environment, **{name: str(number) for name, number in numbers.items()}}
        variables[STATUS_VARIABLE] = str(create_status_file(self.folder, rank))
        return Script(self.job.command, self.job.module, os.getcwd(), variables)

    def _handle_results(self) -> None:
        """Process what has arrived within a moment: output, and ends of scripts."""
        for call in self.ray.wait([*self.printing, *self.running], timeout=POLL_INTERVAL)[0]:
            if call in self.running:
                self._handle_exit(self.running.pop(call), call)
            else:
                self._print_output(self.printing.pop(call), call)

    def _print_output(self, rank: int, call: Any) -> None:
        try:
            chunks = self.ray.get(call)
        except self.ray.exceptions.RayError:  # the process is gone; the call of `run` reports that
            return
        for descriptor, data in chunks or ():
            _write(descriptor, self._prefix_lines(rank, data))
        if chunks is not None and (chunks or rank in self.running.values()):
            self.printing[self.workers[rank].output.remote()] = rank

    def _prefix_lines(self, rank: int, data: bytes) -> bytes:
        """Print output, with the rank before every line if all ranks print."""
        if not self.job.everything:
            return data
        return b"".join(b"[%d] %s" % (rank, line) for line in data.splitlines(keepends=True))

    def _handle_exit(self, rank: int, call: Any) -> None:
        try:
            code = self.ray.get(call)
        except self.ray.exceptions.RayError:
            process, host = self.processes[rank]
            last = last_action(self.folder, rank)
            action = f"; last action: {last}" if last else ""
            _print_message(
                f"rank {rank} (process {process} on {host}{action}) is gone; --restarts runs the script again after "
                f"such a loss"
            )
            self.lost.append(rank)
            self._call_running("mark_lost", rank)
            code = LOST
        if code:
            self.codes.append(code)
            self._shorten_grace()

    def _call_running(self, what: str, *args: Any) -> None:
        """Call a method of every rank that still runs."""
        for rank in self.running.values():
            getattr(self.workers[rank], what).remote(*args)

    def _shorten_grace(self) -> None:
        self.deadline = self.deadline or time.monotonic() + GRACE

    def _kill(self) -> None:
        """End the ranks that do not end by themselves."""
        self.deadline = time.monotonic() + GRACE
        for rank in set(self.running.values()) - self.killed:
            _print_message(f"rank {rank} does not end by itself, and is killed; it is at: {self._status(rank)}")
            self.ray.kill(self.workers[rank])
            self.killed.add(rank)

    def _status(self, rank: int) -> str:
        try:
            return str(self.ray.get(self.workers[rank].doing.remote(), timeout=STATUS_TIMEOUT))
        except self.ray.exceptions.RayError:
            return "no answer"


def _write(descriptor: int, data: bytes) -> None:
    stream = sys.stdout if descriptor == STDOUT else sys.stderr
    stream.flush()
    stream.buffer.write(data)
    stream.buffer.flush()


def _print_message(text: str) -> None:
    print(f"retrograd: {text}", file=sys.stderr)
