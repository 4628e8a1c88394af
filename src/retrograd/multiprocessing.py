"""The names of `torch.multiprocessing`: those of Python's `multiprocessing`.

Tensors are sent as copies, except those of `Tensor.share_memory_`, of which all processes have the same memory.

`spawn` starts the ranks of a script: `rg.distributed.init_process_group` connects them.
"""

import multiprocessing
import multiprocessing.connection
import pickle
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from multiprocessing import *  # noqa: F403
from pathlib import Path
from typing import Any

from retrograd.foundation.suggestions import suggest_in_module


def get_sharing_strategy() -> str:
    """Return "file_descriptor", PyTorch's default: shared tensors are sent by descriptors of files."""
    return "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Accept "file_descriptor" or "file_system", and change nothing; ValueError for others."""
    if new_strategy not in get_all_sharing_strategies():
        raise ValueError(f"set_sharing_strategy: expected 'file_descriptor' or 'file_system', got {new_strategy!r}")


def get_all_sharing_strategies() -> set[str]:
    """Return the strategies that `set_sharing_strategy` accepts."""
    return {"file_descriptor", "file_system"}


class ProcessException(Exception):  # noqa: N818  # PyTorch's name
    """A process has failed: `error_index` is its index, `error_pid` its id."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid


class ProcessRaisedException(ProcessException):
    """The function of a process has raised an exception; the message has its traceback."""


class ProcessExitedException(ProcessException):
    """A process has ended with an exit code that is not 0, or by a signal."""

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code


def _run(fn: Callable, i: int, args: tuple, error_file: str) -> None:
    """Run a function as the process `i`, and write the traceback of its exception to a file."""
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        Path(error_file).write_bytes(pickle.dumps(traceback.format_exc()))
        sys.exit(1)


class ProcessContext:
    """Processes that `start_processes` has started."""

    def __init__(self, processes: list[Any], folder: Any) -> None:
        self.processes, self._folder = processes, folder
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Return the ids of the processes."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until a process ends, at most `timeout` seconds; return whether all have ended.

        If one has failed, the others are terminated, and killed after `grace_period` seconds (30 by default), and a
        ProcessRaisedException or ProcessExitedException is raised.
        """
        ready = multiprocessing.connection.wait(list(self.sentinels), timeout) if self.sentinels else []
        ended = [self.sentinels.pop(sentinel) for sentinel in ready]
        for i in ended:
            self.processes[i].join()
        failed = next((i for i in ended if self.processes[i].exitcode), None)
        if failed is not None:
            self._terminate(30 if grace_period is None else grace_period)
            files = [file for i in range(len(self.processes)) if (file := Path(self._folder.name, str(i))).exists()]
            # An error ends the other ranks with errors of their own, so the first one is the cause.
            self._raise(int(min(files, key=lambda file: file.stat().st_mtime_ns).name) if files else failed)
        return not self.sentinels

    def _terminate(self, grace_period: float) -> None:
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        end = time.monotonic() + grace_period
        for process in self.processes:
            process.join(max(0, end - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()

    def _raise(self, i: int) -> None:
        process, file = self.processes[i], Path(self._folder.name, str(i))
        if file.exists():
            text = pickle.loads(file.read_bytes())
            raise ProcessRaisedException(
                f"\n\n-- Process {i} terminated with the following error:\n{text}", i, process.pid
            )
        words = f"exit code {process.exitcode}" if process.exitcode > 0 else f"signal {-process.exitcode}"
        raise ProcessExitedException(
            f"process {i} terminated with {words}", i, process.pid, process.exitcode
        )  # fmt: skip


SpawnContext = ProcessContext


def start_processes(
    fn: Callable,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run `fn(i, *args)` in the processes i = 0, ..., nprocs - 1, and wait for them unless `join` is False."""
    context: Any = multiprocessing.get_context(start_method)
    folder = tempfile.TemporaryDirectory(prefix="errors-")
    files = [str(Path(folder.name, str(i))) for i in range(nprocs)]
    processes = [context.Process(target=_run, args=(fn, i, args, f), daemon=daemon) for i, f in enumerate(files)]
    for process in processes:
        process.start()
    started = ProcessContext(processes, folder)
    while join and not started.join():
        pass
    return None if join else started


def spawn(
    fn: Callable,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run `fn(i, *args)` in new processes; the function must be one of a module, as Python's `spawn` demands."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)


suggest_in_module(globals())
