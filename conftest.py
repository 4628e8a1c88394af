"""For all tests: the package is imported before pytest looks for doctests, which would else import its parts twice."""

import ctypes
import functools
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestItem, DoctestModule
from _pytest.terminal import TerminalReporter

import retrograd.cuda
import retrograd.nested
import retrograd.ops
import retrograd.sparse
from retrograd.library import sanitize

ROOT = Path(__file__).parent
MEMORY = 4  # GiB for each process of tests
CRASHES = ROOT / "build" / "crash_stack.so"  # made by `make test` from tools/crash_stack.c

# The folders and files whose tests `make test` runs a second time, on the plain Python core, because they can find a
# difference between the builds (docs/decisions/0040-plain-pass.md). `make coverage` runs all tests on the plain core.
PLAIN_PASS = (
    "src/retrograd/autograd/",
    "src/retrograd/core/",
    "src/retrograd/func/",
    "src/retrograd/levels/",
    "src/retrograd/library/",
    "tests/autograd/",
    "tests/core/",
    "tests/func/",
    "tests/interop/test_numpy_protocol.py",
    "tests/library/",
    "tests/ops/test_calls.py",
    "tests/ops/test_inplace",
    "tests/ops/test_laws.py",
    "tests/ops/test_mutate.py",
    "tests/ops/test_storages.py",
)
# The files whose tests `make integration` runs and `make test` leaves out: whole programs, in processes of their own
# (docs/decisions/0048-integration-tests.md).
INTEGRATION = (
    "tests/bench/",
    "tests/cli/",
    "tests/distributed/test_collectives.py",
    "tests/distributed/test_shared_training.py",
    "tests/distributed/test_spawned_ranks.py",
    "tests/distributed/test_state_dict.py",
    "tests/distributed/test_stores.py",
    "tests/distributed/test_two_dimensions_over_mpi.py",
    "tests/examples/",
    "tests/hips/test_install.py",
    "tests/kernels/test_build.py",
    "tests/pipelining/test_agreement.py",
    "tests/pipelining/test_hosts.py",
    "tests/pipelining/test_memory_limits.py",
    "tests/pipelining/test_meta_models.py",
    "tests/pipelining/test_over_processes.py",
    "tests/pipelining/test_recovery.py",
    "tests/pipelining/test_replicas.py",
    "tests/pipelining/test_timeline_page.py",
    "tests/pipelining/test_transports.py",
    "tests/pipelining/test_uncaught_errors.py",
    "tests/test_crash_report.py",
    "tests/test_failing.py",
    "tests/test_import.py",
    "tests/test_module_aliases.py",
    "tests/test_one_place.py",
    "tests/test_packaging.py",
    "tests/test_site.py",
    "tests/test_stubs.py",
    "tests/test_torch_alias.py",
    "tests/test_types.py",
)
NO_DEVICE = "needs a GPU, and CuPy to use it"
# What each pass gives to `-m`.
PLAIN_EXPRESSION = "not once"
INTEGRATION_EXPRESSION = "integration"
UNIT_EXPRESSION = "not integration"


def pytest_configure() -> None:
    """Limit the memory of this process and of those that it starts: who asks for more fails with MemoryError, by name.

    Without a limit the system kills the process that has most, without a word.  RETROGRAD_TEST_MEMORY sets another one;
    0 is none, which sanitizers need.
    """
    limit = int(os.environ.get("RETROGRAD_TEST_MEMORY", MEMORY)) << 30
    if limit and sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))


class CrashReport:
    """Write the running test's name and the native stack when the process crashes."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        """Install the handlers after those of faulthandler, which they call; the output is not captured here."""
        self.library.write_stack_on_crash(os.dup(2))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Name the test that begins."""
        self.library.set_running_test(os.fsencode(nodeid))


def pytest_addoption(pluginmanager: pytest.PytestPluginManager) -> None:
    """Report crashes where the library for it is built."""
    if CRASHES.exists():
        pluginmanager.register(CrashReport(ctypes.CDLL(str(CRASHES))))


def is_listed(path: Path, entries: tuple[str, ...]) -> bool:
    """Whether one of the entries, folders and beginnings of files, names a file."""
    return os.path.relpath(path, ROOT).replace(os.sep, "/").startswith(entries)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file whose tests the pass would leave out: importing all of them takes 14 s of CPU."""
    if collection_path.suffix != ".py":
        return None
    if config.option.markexpr == PLAIN_EXPRESSION:
        return not is_listed(collection_path, PLAIN_PASS) or None
    if config.option.markexpr == INTEGRATION_EXPRESSION:
        return not is_listed(collection_path, INTEGRATION) or None
    return (config.option.markexpr == UNIT_EXPRESSION and is_listed(collection_path, INTEGRATION)) or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that a pass leaves out, before `-m` selects, and sort those that were collected backwards.

    One process alone keeps the order of the command line.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(
            key=lambda item: (item.path.is_relative_to(ROOT / "src"), item.path.parts, isinstance(item, DoctestItem))
        )
    once, listed = pytest.mark.once("the plain core cannot change what it finds"), functools.cache(is_listed)
    for item in items:
        if not listed(item.path, PLAIN_PASS):
            item.add_marker(once)
        if listed(item.path, INTEGRATION):
            item.add_marker(pytest.mark.integration)
    on_device = [item for item in items if item.get_closest_marker("device") is not None]
    if on_device and not retrograd.cuda.is_available():
        for item in on_device:
            item.add_marker(pytest.mark.skip(reason=NO_DEVICE))


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Say how many tests need a GPU that is not there."""
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if NO_DEVICE in str(report.longrepr)]
    if skipped:
        terminalreporter.write_line(f"{len(skipped)} tests need a GPU and CuPy, and were skipped: see make device")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Count a plain pass without tests as passed: `make test ARGS=...` may select none that belongs to it."""
    if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and session.config.option.markexpr == PLAIN_EXPRESSION:
        session.exitstatus = pytest.ExitCode.OK


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect no garbage while tests are collected: nearly all objects stay, and the collector looks at all of them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


class Backwards(pytest.Dir):
    """A folder whose files and folders are collected from the last to the first."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Return the collectors of its files and folders."""
        return reversed([*super().collect()])


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Let every second process collect the tests backwards.

    If two begin at the same file, both compile all files. So each finds the bytecode of the other for half of them.
    """
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    is_package = (path / "__init__.py").exists()
    return Backwards.from_parent(parent, path=path) if number % 2 and not is_package else None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Iterator[list]:
    """Search no module for doctests that has none: the search looks at each member of each module."""
    collectors = yield
    if file_path.suffix == ".py" and b">>> " not in file_path.read_bytes():
        return [c for c in collectors if not isinstance(c, DoctestModule)]
    return collectors


def freeze() -> None:
    """Let the garbage collector skip all that there is: tests and modules stay, and cost it half a second each time."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop() -> Iterator[None]:
    """Freeze the tests and modules before the first test."""
    freeze()
    try:
        return (yield)
    finally:
        gc.unfreeze()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[object]:
    """Freeze what the tests of a file have imported, too."""
    found = yield
    if nextitem is not None and nextitem.path != item.path:
        freeze()
    return found


@pytest.fixture(scope="session", autouse=True)
def honest() -> Iterator[None]:
    """Kernels of users' operators get read-only inputs, and may not return their memory, in every test."""
    with sanitize():
        yield
