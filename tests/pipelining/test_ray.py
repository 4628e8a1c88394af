"""The Ray transport without a cluster; `test_ray_cluster.py` covers the rest."""

import importlib.util
import os
import sys
from types import SimpleNamespace

import pytest

from retrograd.cli import main
from retrograd.pipelining.transports import get_transport, ray_worker
from retrograd.pipelining.transports.rank_messaging import Peers
from retrograd.pipelining.transports.ray import Mailbox
from retrograd.pipelining.transports.ray_worker import Script, Worker

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs ray")


@pytest.fixture
def worker(monkeypatch):
    """Return rank 0 of two, in this process; `sent` has what it sends to the other one."""
    monkeypatch.setattr(ray_worker, "join", lambda peers: None)
    made = Worker(0, 2)
    made.sent = []
    return made


def actor(calls):
    """A stand-in for Ray's handle of an actor."""
    remote = SimpleNamespace(remote=lambda *args: calls.append(args))
    return SimpleNamespace(deliver=SimpleNamespace(options=lambda **_: remote))


@pytest.fixture
def execute(worker, tmp_path, monkeypatch):
    """Run a script's text as rank 0, without redirecting its output; return its exit code."""
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(os, "environ", {**os.environ})
    monkeypatch.setattr(worker, "_redirect", lambda: None)
    monkeypatch.chdir(tmp_path)

    def run(text):
        (tmp_path / "script.py").write_text(text)
        script = Script([str(tmp_path / "script.py"), "-x"], False, str(tmp_path), {"GIVEN": "so"})
        return worker.run(script, [actor([]), actor(worker.sent)])

    return run


def test_letters_are_handed_over_in_the_order_of_sending_and_their_buffers_are_the_receiver_s():
    mailbox = Mailbox(0, 3)
    frozen = memoryview(b"frozen")
    for rank, number in ((1, 1), (2, 0), (1, 2)):
        mailbox.take(rank, number, b"%d" % number, [frozen])
    assert [letter[:2] for letter in mailbox.poll()] == [(2, b"0")]
    assert mailbox.moving()
    mailbox.take(1, 0, b"0", [frozen])
    letters = mailbox.poll()
    assert [letter[:2] for letter in letters] == [(1, b"0"), (1, b"1"), (1, b"2")]
    assert not mailbox.moving()
    letters[0][2][0][0] = 0
    assert bytes(letters[1][2][0]) == b"frozen"
    assert mailbox.poll() == []


def test_letters_are_numbered_by_receiver():
    calls = []
    mailbox = Mailbox(1, 3)
    mailbox.others = [lambda *args, to=to: calls.append((to, *args[:3])) for to in range(3)]
    for rank in (0, 2, 0):
        mailbox.send(rank, b"", [])
    assert calls == [(0, 1, 0, b""), (2, 1, 0, b""), (0, 1, 1, b"")]


def test_a_packet_that_an_interruption_stops_leaves_its_number_to_the_next_one():
    calls = []

    def interrupted(*args):
        if not calls:
            calls.append("interrupted")
            raise KeyboardInterrupt
        calls.append(args[:3])

    mailbox = Mailbox(1, 2)
    mailbox.others = [interrupted, interrupted]
    with pytest.raises(KeyboardInterrupt):
        mailbox.send(0, b"", [])
    mailbox.send(0, b"", [])
    assert calls == ["interrupted", (1, 0, b"")]


def test_an_interruption_and_the_sending_of_a_packet_exclude_each_other(worker, monkeypatch):
    mailbox, held = worker._mailbox, []
    monkeypatch.setattr(
        ray_worker.ctypes.pythonapi,
        "PyThreadState_SetAsyncExc",
        lambda thread, kind: held.append(mailbox.sending.locked()),
    )
    mailbox.others = [lambda *args: held.append(mailbox.sending.locked())]
    mailbox.send(0, b"", [])
    worker.interrupt()
    assert held == [True, True]
    assert not mailbox.sending.locked()


def test_a_lost_rank_counts_as_gone():
    peers = Peers(Mailbox(0, 3))
    peers.channel.take_loss(2)
    peers.poll()
    assert (peers.over, peers.gone) == (True, [2])


def test_a_script_runs_as_main_with_its_arguments_folder_and_variables(execute, worker, capfd, tmp_path):
    assert execute("import os, sys\nprint(__name__, sys.argv[1:], os.environ['GIVEN'], os.getcwd())") == 0
    assert capfd.readouterr().out == f"__main__ ['-x'] so {tmp_path}\n"


def test_the_other_ranks_are_notified_when_a_script_is_over_however_it_ends(execute, worker):
    execute("1 / 0")
    ((rank, number, header, buffers),) = worker.sent
    assert (rank, number, buffers) == (0, 0, [])
    peers = Peers(Mailbox(1, 2))
    peers.channel.take(rank, number, header, buffers)
    peers.poll()
    assert peers.left == {0: (0, "ZeroDivisionError: division by zero\n")}
    assert worker.doing() == "its script is over"


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("raise SystemExit", 0, ""),
        ("raise SystemExit(7)", 7, ""),
        ("raise SystemExit('enough')", 1, "enough\n"),
        ("raise KeyboardInterrupt", 130, "KeyboardInterrupt\n"),
        ("raise KeyError('mine')", 1, "KeyError: 'mine'\n"),
    ],
)
def test_an_exit_code_is_that_of_python(execute, text, code, said, capfd):
    assert execute(text) == code
    err = capfd.readouterr().err
    assert err.endswith(said)
    assert "runpy" not in err


def test_output_is_handed_over_until_there_is_no_more(worker, capfd):
    worker.open([1])
    os.write(worker._writing[1], b"one\n")
    assert worker.output() == [(1, b"one\n")]
    os.close(worker._writing[1])
    assert worker.output() is None


@needs_ray
def test_a_process_that_ray_has_not_started_raises_how_to_start():
    with pytest.raises(RuntimeError, match="retrograd run -n RANKS --transport ray SCRIPT"):
        get_transport("ray")


def test_a_missing_package_is_an_error_that_names_the_extra(monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"retrograd\[ray\]"):
        get_transport("ray")
    assert main(["run", "-n", "2", "--transport", "ray", __file__]) == 2
    assert "retrograd[ray]" in capsys.readouterr().err


@needs_ray
def test_the_number_of_ranks_must_be_given(capsys):
    assert main(["run", "--transport", "ray", __file__]) == 2
    assert "--transport ray needs -n" in capsys.readouterr().err
