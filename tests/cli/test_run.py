"""`retrograd run` starts a script on many ranks, forwards their output, and leaves no process behind."""

import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from retrograd.cli import main
from retrograd.cli import ray as ray_launcher
from retrograd.cli.jobs import Job, RunResult, shared_cores
from retrograd.cli.mpi import BROKEN, RANK_PROCESS, classify_end, command
from retrograd.cli.mpi_banner import RULE, TITLE, BannerFilter
from retrograd.cli.processes import record_signals
from retrograd.cli.rank_output import ExitReport, RankOutput
from retrograd.cli.run import LAUNCHERS
from retrograd.pipelining.transports.mpi import ENDS_OTHERS, LOST

needs_mpi = pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="needs mpi4py")
ONCE = pytest.mark.skipif("RETROGRAD_PURE" in os.environ, reason="the compiled pass has run it")
SCRIPT = """
import os, select, signal, sys
from pathlib import Path
rank, what = os.environ.get("PMI_RANK", "-"), sys.argv[1]
"""


def ends(process, patience=60):
    """Return whether the process with that number has ended or ends soon."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        try:
            with open(f"/proc/{process}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        os.sched_yield()
    return False


@pytest.fixture
def script(tmp_path):
    """Write a script that reads its rank and its first argument, by default the folder."""

    def make(text):
        path = tmp_path / "script.py"
        path.write_text(SCRIPT + text)
        return str(path)

    return make


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-n", "0", "x.py"], "--ranks is '0'"),
        (["-n", "two", "x.py"], "--ranks is 'two'"),
        (["-n", "2", "--transport", "pigeons", "x.py"], "--transport is 'pigeons'; it must be one of mpi"),
        (["-n", "2", "--timeout", "never", "x.py"], "--timeout is 'never'"),
        (["-n", "2", "--timeout", "0", "x.py"], "--timeout is '0'"),
        (["-n", "2", "--restarts", "-1", "x.py"], "--restarts is '-1'"),
        (["-n", "2", "--output", "none", "x.py"], "--output is 'none'; it must be first or all"),
        (["-n", "2", "nowhere.py"], "there is no script 'nowhere.py'"),
        ([__file__], "--transport mpi needs -n"),
        (["-n", "2", "--hostfile", "nowhere", __file__], "--hostfile is 'nowhere'"),
        (["-n", "2", __file__.removesuffix(".py")], f"Did you mean '{__file__}'?"),
        (["-n", "2", str(Path(__file__).parent)], "is a folder; expected a script"),
        (["-n", "2", "python3", "x.py", "-v"], "leave out 'python3': retrograd run -n 2 x.py -v"),
        (["mpiexec", "-n", "2", "x.py"], "starts the ranks itself; leave out 'mpiexec': retrograd run -n 2 x.py"),
        (["2", "x.py"], "for 2 ranks: retrograd run -n 2 x.py"),
        ([__file__, "-n", "2"], "-n belongs before the script"),
        (["-n", "2", "-m", __file__], "-m expects the name of a module"),
        (["-n", "2", "-m", "nowhere.train"], "there is no module 'nowhere'"),
        (["--standalone", "--nproc_per_node", "2", "x.py"], "--standalone is no option of retrograd run: without"),
        (["--master_port=7", "-n", "2", "x.py"], "--master_port is no option of retrograd run"),
        (["--nproc_per_node", "auto", "x.py"], "--nproc-per-node is 'auto'"),
        (["--nproc-per-node", "2", "--address", "a:1", "x.py"], "use -n, the number of all ranks"),
        (["-n", "2", "--transport", "thread", "x.py"], "Did you mean 'threads'?"),
        (["-j", "2", "x.py"], "see retrograd run --help"),
    ],
)
def test_a_mistake_in_the_arguments_is_one_line(arguments, said, capsys):
    assert main(["run", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


@pytest.mark.parametrize("option", [["-np", "3"], ["-n3"], ["--nproc_per_node=3"], ["--nproc-per-node", "3"]])
def test_the_number_of_ranks_has_the_names_of_mpiexec_and_torchrun(option, monkeypatch):
    started = []
    monkeypatch.setitem(LAUNCHERS, "mpi", lambda job: started.append(job) or RunResult(0))
    assert main(["run", *option, __file__, "-x"]) == 0
    assert [(job.ranks, job.command) for job in started] == [(3, [__file__, "-x"])]


def test_the_cores_are_shared_unless_the_user_has_shared_them(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8))
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "5")
    assert shared_cores(3) == {"OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    assert shared_cores(100)["OMP_NUM_THREADS"] == "1"


def test_over_threads_the_script_runs_in_this_process(script, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(os, "environ", {**os.environ})
    path = script("print(sys.argv[1:], os.environ['RETROGRAD_TRANSPORT'], os.environ['RETROGRAD_TIMEOUT'], __name__)")
    assert main(["run", "--transport", "threads", "--timeout", "30", path, "-n", "7"]) == 0
    assert capsys.readouterr().out == "['-n', '7'] threads 30 __main__\n"


def test_over_threads_the_exit_code_is_the_script_s(script, monkeypatch):
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(os, "environ", {**os.environ})
    with pytest.raises(SystemExit) as caught:
        main(["run", "--transport", "threads", script("sys.exit(3)"), "x"])
    assert caught.value.code == 3


@needs_mpi
def test_mpiexec_gets_the_ranks_and_hosts(tmp_path):
    hosts = tmp_path / "hosts"
    line = command(Job(["train", "-x"], module=True, ranks=4, hosts=hosts))
    assert line[1:5] == ["-n", "4", "-f", str(hosts)]
    assert line[-4:] == [sys.executable, "-m", "train", "-x"]


@ONCE
@needs_mpi
def test_the_first_rank_s_output_is_shown_and_everybody_s_errors(script, capfd):
    path = script("print('out', rank, what, os.environ['RETROGRAD_TRANSPORT']); sys.stderr.write(f'err {rank}\\n')")
    assert main(["run", "-n", "2", path, "hello"]) == 0
    out, err = capfd.readouterr()
    assert out == "out 0 hello mpi\n"
    assert sorted(err.splitlines()) == ["err 0", "err 1"]


@ONCE
@needs_mpi
def test_all_output_is_shown_by_rank_and_the_exit_code_is_the_script_s(script, capfd):
    path = script("print('out', rank, __name__, what); sys.exit(3)")
    assert main(["run", "-n", "2", "--output", "all", path, "x"]) == 3
    assert sorted(capfd.readouterr().out.splitlines()) == [f"[{rank}] out {rank} __main__ x" for rank in "01"]


@ONCE
@needs_mpi
def test_ranks_have_the_variables_that_pytorchs_launcher_sets(script, capfd):
    names = "'RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE'"
    path = script(f"print(*[os.environ[name] for name in ({names})])")
    assert main(["run", "-n", "2", "--output", "all", path, "x"]) == 0
    assert sorted(capfd.readouterr().out.splitlines()) == ["[0] 0 2 0 2", "[1] 1 2 1 2"]


@ONCE
@needs_mpi
@pytest.mark.parametrize("code", [6, 9, 11])
def test_an_exit_code_that_is_a_signal_s_number_is_the_script_s_own(script, code, capfd):
    assert main(["run", "-n", "2", "--restarts", "1", script(f"print('out'); sys.exit({code})"), "x"]) == code
    assert capfd.readouterr() == ("out\n", "")


@ONCE
@needs_mpi
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_killed_rank_is_named_on_standard_error_and_nothing_on_standard_output(script, number, capfd):
    text = f"if rank == '1': os.kill(os.getpid(), {int(number)})\nsignal.pause()"
    assert main(["run", "-n", "2", script(text), "x"]) == 128 + number
    out, err = capfd.readouterr()
    assert out == ""
    line, ending = err.splitlines()
    assert re.fullmatch(rf"retrograd: rank 1 \(process \d+ on \S+\) was killed by {number.name}", line)
    assert f"signal {int(number)} ({number.name}) has ended a rank" in ending


@ONCE
@needs_mpi
def test_the_last_action_of_a_killed_rank_is_named(tmp_path, capfd):
    path = tmp_path / "killed.py"
    path.write_text(
        "import os, signal\nfrom retrograd.pipelining.transports import get_transport\n"
        "def work(link):\n"
        "    link.doing = 'F(1, 3)'\n"
        "    if link.rank == 1:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    signal.pause()\n"
        "get_transport().launch(2, work)\n"
    )
    assert main(["run", "-n", "2", str(path)]) == 128 + signal.SIGKILL
    assert re.search(r"rank 1 \(process \d+ on \S+; last action: F\(1, 3\)\) was killed", capfd.readouterr().err)


@ONCE
def test_a_rank_on_a_host_without_the_launcher_s_folder_reports_its_last_action(tmp_path):
    code = (
        "import os, signal; from retrograd.pipelining.transports.status_file import open_status_file\n"
        "open_status_file().write('F(1, 3)'); os.kill(os.getpid(), signal.SIGTERM)"
    )
    variables = os.environ | {"RETROGRAD_STATUS": str(tmp_path / "elsewhere"), "PMI_RANK": "2", "PMI_SIZE": "3"}
    line = [sys.executable, "-S", str(RANK_PROCESS), "first", sys.executable, "-c", code]
    ended = subprocess.run(line, env=variables, capture_output=True, text=True)
    assert ended.returncode == -signal.SIGTERM
    assert re.fullmatch(
        r"retrograd: rank 2 \(process \d+ on \S+; last action: F\(1, 3\)\) was killed by SIGTERM\n", ended.stderr
    )


@ONCE
@needs_mpi
@pytest.mark.parametrize("code", [75, 255])
def test_codes_of_lost_ranks_may_be_a_script_s_own(script, code, capfd):
    assert main(["run", "-n", "2", "--restarts", "1", script(f"sys.exit({code})"), "x"]) == code
    assert "restart" not in capfd.readouterr().err


@ONCE
@needs_mpi
@pytest.mark.parametrize("code", [3, 6, 9, 11, 75, 255])
def test_a_rank_that_leaves_at_once_within_a_computation_over_mpi_has_its_own_exit_code(tmp_path, code, capfd):
    path = tmp_path / "leaves.py"
    path.write_text(
        "import os\nimport retrograd as rg\nimport retrograd.distributed as dist\n"
        "dist.init_process_group('mpi')\ndist.all_reduce(rg.ones(3))\n"
        f"if dist.get_rank() == 1: os._exit({code})\n"
        "dist.barrier()\n"
    )
    assert main(["run", "-n", "2", "--restarts", "1", str(path)]) == code
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("hosts", [False, True])
def test_every_exit_code_of_a_script_is_its_own(hosts):
    for code in range(1, 256):
        assert classify_end(code, [ExitReport(1, code, "F1.0")], None, hosts=hosts) == RunResult(code, lost=False)
    assert classify_end(0, [], None, hosts=hosts) == RunResult(0, lost=False)


@pytest.mark.parametrize("hosts", [False, True])
def test_a_code_that_no_rank_reports_is_a_loss_only_if_mpiexec_may_have_lost_a_host(hosts):
    lost = [code for code in range(256) if classify_end(code, [], None, hosts=hosts).lost]
    assert lost == ([LOST, BROKEN] if hosts else [])


def test_signals_and_ranks_that_end_the_others_are_losses():
    assert classify_end(LOST, [], None, own_end=True) == RunResult(LOST, lost=True)
    assert classify_end(LOST, [ExitReport(1, LOST, ENDS_OTHERS)], None, hosts=True) == RunResult(LOST, lost=True)
    assert classify_end(9, [ExitReport(0, 1)], signal.SIGKILL) == RunResult(137, lost=True)
    assert classify_end(2, [], signal.SIGINT) == RunResult(130, lost=False)
    assert classify_end(-signal.SIGTERM, [], None) == RunResult(143, lost=False, stopped=True)


@ONCE
@needs_mpi
@pytest.mark.parametrize("output", ["first", "all"])
def test_the_exit_code_is_that_of_the_first_rank_that_fails(script, tmp_path, output, capfd):
    text = (
        "ended = Path(what, 'ended')\n"
        "if rank == '0':\n"
        "    print('out', flush=True); ended.touch(); os._exit(3)\n"
        "while not ended.exists(): os.sched_yield()\n"
    )
    assert main(["run", "-n", "2", "--output", output, script(text), str(tmp_path)]) == 3
    assert capfd.readouterr().out == ("[0] out\n" if output == "all" else "out\n")


@pytest.mark.parametrize("by_line", [False, True])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_reports_of_exit_codes_are_removed_from_the_output(size, by_line):
    prefix = b"[1] " if by_line else b""
    report = prefix + b"\x1etoken\t1\t75\tF1.0\x1f"
    data = b"[0] 50 %\n" + report + b"[0] \x1etok \x1f mine\n" + report + b"end"
    output = RankOutput("token", by_line)
    shown = b"".join(output.feed(data[i : i + size]) for i in range(0, len(data), size)) + output.finish()
    assert shown == b"[0] 50 %\n[0] \x1etok \x1f mine\nend"
    assert output.exits == [ExitReport(1, 75, "F1.0")] * 2


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_only_the_banner_of_mpiexec_is_removed_from_the_output(size):
    mine = b"\n\n" + RULE + b"\nmy table\n" + RULE + b"\n" + RULE + b"\n\nlast"
    banner = b"\n" + RULE + b"\n" + TITLE + b"\n=   PID 1\n" + RULE + b"\n"
    banner += b"YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\nPlease see the FAQ page for more\n"
    output, data = BannerFilter(), b"loss 1\n" + banner + mine
    shown = b"".join(output.feed(data[i : i + size]) for i in range(0, len(data), size)) + output.finish()
    assert shown == b"loss 1\n" + mine
    assert output.signal == signal.SIGKILL


def test_a_line_without_an_end_is_shown_at_once():
    assert BannerFilter().feed(b"50 %") == b"50 %"


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs ray")
def test_an_address_without_a_ray_cluster_is_one_line_that_says_what_to_do(capsys):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # nothing listens
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        assert main(["run", "-n", "2", "--transport", "ray", "--address", address, __file__]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"there is no Ray cluster at '{address}'" in line
    assert "ray start --head" in line


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs ray")
@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b""])
def test_an_address_of_another_server_is_one_line_that_says_what_to_do(answer, capsys):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"

        def serve():
            with server.accept()[0] as connection:
                connection.recv(100)
                connection.sendall(answer)

        serving = threading.Thread(target=serve)
        serving.start()
        assert main(["run", "-n", "2", "--transport", "ray", "--address", address, __file__]) == 2
        serving.join()
    (line,) = capsys.readouterr().err.splitlines()
    assert f"there is no Ray cluster at '{address}' (another server listens there)" in line


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs ray")
def test_a_ray_that_does_not_start_is_one_line(capsys, monkeypatch):
    def init(**options):
        raise Exception("The current node timed out during startup.")

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr("ray.init", init)
    assert main(["run", "-n", "2", "--transport", "ray", __file__]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "Ray could not be started on this machine: The current node timed out" in line


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs ray")
def test_an_address_of_a_silent_server_is_given_up(capsys, monkeypatch):
    monkeypatch.setattr(ray_launcher, "CONNECT_TIMEOUT", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert main(["run", "-n", "2", "--transport", "ray", "--address", address, __file__]) == 2
    assert f"there is no Ray cluster at '{address}' (timed out)" in capsys.readouterr().err


@ONCE
@needs_mpi
@pytest.mark.parametrize("output", ["first", "all"])
def test_a_module_is_found_in_the_present_folder(script, output, capfd, monkeypatch):
    monkeypatch.chdir(Path(script("print('out', what, __name__)")).parent)
    assert main(["run", "-n", "1", "--output", output, "-m", "script", "-m"]) == 0
    assert "out -m __main__\n" in capfd.readouterr().out


@ONCE
@needs_mpi
def test_after_the_loss_of_a_rank_the_script_is_run_again(script, tmp_path, capfd):
    path = script(
        "before = Path(what) / 'before'\n"
        "if rank == '1' and not before.exists():\n"
        "    before.write_text(''); os.kill(os.getpid(), signal.SIGKILL)\n"
        "if rank == '0' and not before.exists():\n"
        "    Path(what, 'waits').write_text(str(os.getpid())); signal.pause()\n"
        "print('done')"
    )
    assert main(["run", "-n", "2", "--restarts", "3", path, str(tmp_path)]) == 0
    out, err = capfd.readouterr()
    assert out.endswith("done\n")
    assert err.count("a rank was lost (exit code 137); restart 1 of 3") == 1
    assert "restart 2" not in err
    waited = tmp_path / "waits"
    assert not waited.exists() or ends(waited.read_text())


@ONCE
@needs_mpi
def test_a_failure_of_the_script_is_no_reason_to_run_it_again(script, capfd):
    assert main(["run", "-n", "2", "--restarts", "3", script("raise KeyError('mine')"), "x"]) == 1
    assert "restart" not in capfd.readouterr().err


@ONCE
@needs_mpi
def test_a_signal_ends_all_ranks(script, tmp_path, capfd):
    path = script(
        "Path(what, rank).write_text(str(os.getpid()))\n"
        f"if rank == '1': os.kill({os.getpid()}, signal.SIGINT)\n"
        "signal.pause()"
    )
    assert main(["run", "-n", "2", path, str(tmp_path)]) == 130
    assert all(ends(file.read_text()) for file in tmp_path.glob("[01]"))


@ONCE
@needs_mpi
@pytest.mark.parametrize(
    ("number", "send"), [(signal.SIGINT, os.kill), (signal.SIGTERM, os.kill), (signal.SIGINT, os.killpg)]
)
@pytest.mark.parametrize("output", ["first", "all"])
def test_a_signal_interrupts_every_rank_once_and_every_rank_saves_its_state(script, tmp_path, number, send, output):
    text = (
        "folder = Path(what)\n"
        "if rank == '1':\n"
        "    while not os.path.lexists(folder / 'ready0'): os.sched_yield()\n"
        "    first = os.pidfd_open(int(os.readlink(folder / 'ready0')))\n"
        "try:\n"
        "    os.symlink(str(os.getppid()), folder / f'ready{rank}')\n"
        "    while True: os.sched_yield()\n"
        "except KeyboardInterrupt:\n"
        "    if rank == '1': select.select([first], [], [])  # the other rank has ended\n"
        "    (folder / f'saved{rank}').touch()\n"
        "    raise\n"
    )
    line = [sys.executable, "-m", "retrograd", "run", "-n", "2", "--output", output, script(text), str(tmp_path)]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while not all(os.path.lexists(tmp_path / f"ready{rank}") for rank in "01"):
        assert process.poll() is None
        os.sched_yield()
    send(process.pid, number)
    out, err = process.communicate()
    assert process.returncode == 128 + number, err
    assert all((tmp_path / f"saved{rank}").exists() for rank in "01"), err
    assert out == ""
    assert "another exception" not in err


@ONCE
@pytest.mark.parametrize("disposition", [signal.SIG_DFL, signal.SIG_IGN], ids=["foreground", "background job"])
def test_an_interrupted_rank_ends_by_an_exit_code_upon_which_mpiexec_does_not_kill_the_others(disposition):
    code = "print('ready', flush=True)\nwhile True: pass"
    line = [sys.executable, "-S", str(RANK_PROCESS), "first", sys.executable, "-c", code]
    before = signal.signal(signal.SIGINT, disposition)  # which the process inherits
    try:
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, process_group=0)
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        assert process.stdout.readline() == b"ready\n"
        os.killpg(process.pid, signal.SIGINT)
    assert process.returncode == 130


def test_signals_within_a_second_are_one_request():
    before, times = signal.getsignal(signal.SIGTERM), iter([5.0, 5.5, 8.0])
    with record_signals(lambda: next(times)) as received:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGTERM):
            signal.raise_signal(number)
    assert received == [signal.SIGINT, signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_lines_of_mpiexec_at_an_interruption_are_removed_from_the_output(size):
    lines = (
        b"[mpiexec@host] Sending Ctrl-C to processes as requested\n[mpiexec@host] Press Ctrl-C again to force abort\n"
    )
    data = b"loss 1\n" + lines + b"[mpiexec@host] mine\nlast"
    output = BannerFilter()
    shown = b"".join(output.feed(data[i : i + size]) for i in range(0, len(data), size)) + output.finish()
    assert shown == b"loss 1\n[mpiexec@host] mine\nlast"


@ONCE
@needs_mpi
def test_a_rank_that_hangs_is_ended_with_the_others_and_named(tmp_path, capfd):
    path = tmp_path / "hangs.py"
    path.write_text(
        "import os, signal\nfrom pathlib import Path\nfrom retrograd.pipelining.transports import get_transport\n"
        "from retrograd.pipelining.schedules.actions import Message\n"
        f"folder = Path({str(tmp_path)!r})\n"
        "def work(link):\n"
        "    (folder / str(link.rank)).write_text(str(os.getpid()))\n"
        "    if link.rank == 1:\n"
        "        (folder / 'hangs').touch()\n"
        "        signal.pause()\n"
        "    while not (folder / 'hangs').exists():\n"
        "        os.sched_yield()\n"
        "    link.doing = 'plays RECV_F0.5<1'\n"
        "    link.receive(1, Message('F', 1, 0, 5))\n"
        "get_transport().launch(2, work)\n"
    )
    assert main(["run", "-n", "2", "--timeout", "0.1", str(path)]) == 75  # any load: it begins when rank 1 hangs
    err = capfd.readouterr().err
    assert "TimeoutError: rank 0 has waited 0.1 s for F1>0.5 from rank 1" in err
    assert "rank 0: plays RECV_F0.5<1, waits for F1>0.5 from rank 1" in err
    assert "rank 1: no answer" in err
    assert all(ends((tmp_path / rank).read_text()) for rank in "01")
