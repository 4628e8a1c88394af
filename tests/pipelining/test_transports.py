"""Every transport delivers each message to its receiver, and no rank waits forever."""

import gc
import importlib.util
import json
import os
import subprocess
import sys
import threading
import weakref
from unittest.mock import Mock

import pytest

import retrograd as rg
from retrograd.cli.mpi import mpiexec
from retrograd.pipelining import transports
from retrograd.pipelining.schedules.actions import Message
from retrograd.pipelining.transports import SIZE_VARIABLES, TIMEOUT_VARIABLE, TRANSPORT_VARIABLE, Threads, get_transport
from retrograd.pipelining.transports.failures import pack_failure, unpack_failure
from retrograd.pipelining.transports.serialization import pack, unpack

from ..rank_scripts import run_ranks
from . import conformance

SCRIPT = conformance.__file__
# Transports whose ranks are processes: their package, and the command that runs the script in them.
LAUNCHED = {"mpi": ("mpi4py", lambda: [mpiexec(), "-n", str(conformance.RANKS), sys.executable, SCRIPT, "mpi"])}


@pytest.mark.parametrize("check", conformance.CHECKS)
def test_over_threads(check):
    conformance.CHECKS[check](get_transport("threads"))


@pytest.mark.skipif("RETROGRAD_PURE" in os.environ, reason="the compiled pass has run it")
@pytest.mark.parametrize("transport", LAUNCHED)
def test_over_processes(transport):
    package, command = LAUNCHED[transport]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {package}")
    check_outcomes(subprocess.check_output(command(), env={**os.environ, "OMP_NUM_THREADS": "1"}, text=True))


@pytest.mark.skipif("RETROGRAD_PURE" in os.environ, reason="the compiled pass has run it")
def test_over_connections_of_processes_that_no_launcher_has_started(capfd):
    run_ranks(conformance.RANKS, SCRIPT, ["sockets"])
    check_outcomes(capfd.readouterr().out)


def check_outcomes(output):
    """Check that all ranks have run all checks without a failure."""
    by_rank = json.loads(output)
    failed = [(rank, text) for rank, found in enumerate(by_rank) for text in found.values() if text]
    assert failed == []
    assert all(found.keys() == conformance.CHECKS.keys() for found in by_rank)


def test_a_thread_that_hangs_is_named_and_left_alone_when_the_others_have_given_up():
    hangs, release = threading.Event(), threading.Event()

    def work(link):
        if link.rank == 0:
            link.doing = "F0.3"
            hangs.set()
            release.wait()
        hangs.wait()
        link.receive(0, Message("F", 0, 1, 3))

    try:
        with pytest.raises(TimeoutError, match=r"rank 1 has waited 0\.02 s") as caught:
            get_transport("threads", timeout=0.02).launch(2, work)  # any load: it begins when rank 0 hangs
    finally:
        release.set()
    assert "rank 0 still runs, in a thread that is not joined:\n  rank 0: F0.3" in caught.value.__notes__[0]


def test_a_timeout_that_is_no_time_is_refused():
    with pytest.raises(ValueError, match="timeout is 0"):
        get_transport("threads", timeout=0)


def test_the_launcher_s_choices_are_taken_where_none_are_made(monkeypatch):
    monkeypatch.setenv(TRANSPORT_VARIABLE, "pigeons")
    monkeypatch.setenv(TIMEOUT_VARIABLE, "2.5")
    with pytest.raises(ValueError, match="pigeons"):
        get_transport()
    assert isinstance(get_transport("threads"), Threads)
    assert get_transport("threads").timeout == 2.5
    assert get_transport("threads", timeout=40).timeout == 40


@pytest.mark.parametrize("size", SIZE_VARIABLES)
def test_processes_that_a_launcher_of_mpi_has_started_are_its_ranks(monkeypatch, size):
    for name in (TRANSPORT_VARIABLE, *SIZE_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    made = Mock()
    monkeypatch.setattr(transports, "_create", made)
    for name, value, kind in [(size, "1", "Threads"), (size, "2", "MPI"), (TRANSPORT_VARIABLE, "ray", "Ray")]:
        monkeypatch.setenv(name, value)
        get_transport()
        assert made.call_args.args == (kind, None)


def test_an_unknown_transport_is_refused_with_a_list():
    with pytest.raises(ValueError, match="threads"):
        get_transport("pigeons")


def test_mpi_without_its_package_raises_an_error_with_the_extra():
    program = (
        "import sys; sys.modules['mpi4py'] = None; from retrograd.pipelining.transports import get_transport\n"
        "try: get_transport('mpi')\nexcept ImportError as error: print(error)"
    )
    assert 'pip install "retrograd[mpi]"' in subprocess.check_output([sys.executable, "-c", program], text=True)


class Payload:
    """An object whose deletion can be observed."""


def test_after_a_failure_the_mailbox_is_empty():
    references = []

    def fails(link):
        payload = Payload()
        references.append(weakref.ref(payload))
        link.send(0, Message("F", 0, 1, 0), payload)
        raise KeyError

    with pytest.raises(KeyError):
        Threads().launch(1, fails)
    gc.collect()
    assert references[0]() is None


def test_a_header_has_no_numbers_of_tensors_and_a_buffer_is_their_own_memory():
    x = rg.arange(1000)
    header, buffers = pack({"x": x, "again": x})
    assert len(header) < 300
    assert [buffer.nbytes for buffer in buffers] == [8000]
    x[0] = 7
    got = unpack(header, buffers)
    assert got["x"] is got["again"]
    assert got["x"][0].item() == 7


def test_parameters_are_packed_as_tensors_and_registered_reducers_still_work():
    header, buffers = pack([rg.nn.Parameter(rg.ones(3)), 1j])
    (weight, number) = unpack(header, buffers)
    assert [buffer.nbytes for buffer in buffers] == [12]
    assert (weight.tolist(), weight.requires_grad, number) == ([1, 1, 1], True, 1j)


def test_a_tensor_inside_a_transform_can_not_be_packed():
    with pytest.raises(TypeError, match="inside a function transform"):
        rg.func.vmap(pack)(rg.ones(3))


def test_a_failure_and_its_causes_survive_the_way():
    failure = ValueError("shown")
    failure.__cause__ = LookupError("cause")
    failure.__cause__.__cause__ = type("Local", (Exception,), {})("repr of the cause")
    got = unpack_failure(pack_failure(failure), rank=2)
    assert repr(got) == "ValueError('shown')"
    assert repr(got.__cause__) == "LookupError('cause')"
    assert type(got.__cause__.__cause__) is RuntimeError
    assert "repr of the cause" in str(got.__cause__.__cause__)
    assert "on rank 2:" in got.__notes__[0]
