"""`retrograd run --elastic`: the number of ranks follows the hosts and the losses; losses of training do not change."""

import importlib.util
import os
import sys

import pytest
from tests.cli import elastic_script
from tests.pipelining.faults import NodeTrial
from tests.pipelining.recovery import COMMAND, Kill, Trial, undisturbed

from retrograd.cli import main
from retrograd.cli.elastic import LOOK_INTERVAL, Members, Range, run_elastic
from retrograd.cli.jobs import CapacityError, Job, RunResult
from retrograd.cli.mpi import mpi_capacity

JOB = Job(["train.py"])
LOSS, DONE = RunResult(137, lost=True), RunResult(0)


class Launcher:
    """A launcher that runs nothing: it ends as it is set to, and looks at the capacity meanwhile."""

    def __init__(self, *ends):
        self.ends, self.ranks = list(ends), []

    def __call__(self, job):
        self.ranks.append(job.ranks)
        end = self.ends.pop(0)
        if end == "grows":
            assert job.can_grow()
            return RunResult(143)
        if isinstance(end, Exception):
            raise end
        return end


def run(allowed, launcher, rooms, restarts=None):
    rooms = list(rooms)

    def capacity(job):
        return rooms.pop(0) if len(rooms) > 1 else rooms[0]

    return run_elastic(JOB, Range.parse(allowed), launcher, capacity, restarts)


@pytest.mark.parametrize(
    ("allowed", "ends", "rooms", "ranks"),
    [
        ("1:4", [DONE], [9], [4]),
        ("1:4", [DONE], [3], [3]),
        ("1:4", [LOSS, LOSS, DONE], [4], [4, 3, 2]),
        ("2:8:2", [LOSS, LOSS, DONE], [8], [8, 6, 4]),
        ("1:4", [LOSS, DONE], [4, 2], [4, 2]),  # two hosts were lost
        ("1:4", [LOSS, DONE], [3, 4], [3, 4]),  # another one is there already
        ("1:4", [LOSS, "grows", DONE], [3, 3, 4, 4], [3, 2, 4]),
        ("1:4", [CapacityError("no cores"), DONE], [4], [4, 3]),
    ],
)
def test_a_loss_costs_ranks_and_room_gives_them_back(allowed, ends, rooms, ranks, capsys):
    launcher = Launcher(*ends)
    assert run(allowed, launcher, rooms) == 0
    assert launcher.ranks == ranks
    assert capsys.readouterr().err.count("the script starts again") == len(ranks) - 1


def test_a_failure_of_the_script_a_signal_and_too_many_losses_end_the_run():
    assert run("1:4", Launcher(RunResult(3)), [4]) == 3
    assert run("1:4", Launcher(RunResult(130, stopped=True)), [4]) == 130
    assert run("1:4", Launcher(LOSS, LOSS), [4], restarts=1) == 137
    with pytest.raises(CapacityError, match="needs 2 ranks at least"):
        run("2:4", Launcher(LOSS, LOSS, LOSS, DONE), [4])
    with pytest.raises(CapacityError):
        run("2:4", Launcher(), [1])


def test_the_capacity_is_read_every_two_seconds():
    now, looks = [0.0], []

    def capacity():
        looks.append(now[0])
        return 2 if now[0] < 3 * LOOK_INTERVAL else 4

    members = Members(Range(1, 4), capacity, lambda: now[0])
    assert members.begin() == 2
    grown = []
    for number in range(30):
        now[0] = number / 4 * LOOK_INTERVAL
        grown.append(members.can_grow())
    assert grown.index(True) == 12
    assert all(grown[12:])
    assert looks == [0.0, 0.0, LOOK_INTERVAL, 2 * LOOK_INTERVAL, 3 * LOOK_INTERVAL]


def test_slots_of_a_host_file_are_its_capacity(tmp_path):
    hosts = tmp_path / "hosts"
    hosts.write_text("node1:4\n# node3\nnode2  # one\n\n")
    assert mpi_capacity(JOB._replace(hosts=hosts)) == 5
    assert mpi_capacity(JOB._replace(ranks=3)) == 3


@pytest.mark.parametrize("text", ["3", "0:2", "3:2", "1:2:0", "a:b", "1:2:3:4"])
def test_other_ranges_are_refused(text, capsys):
    assert main(["run", "--elastic", text, sys.executable]) == 2
    assert f"--elastic is '{text}'" in capsys.readouterr().err


def test_elastic_says_the_number_of_ranks(tmp_path, capsys):
    script = tmp_path / "train.py"
    script.write_text("")
    for options in (["-n", "2"], ["--transport", "threads"]):
        assert main(["run", "--elastic", "1:2", *options, str(script)]) == 2
        assert "says the number of ranks instead of -n" in capsys.readouterr().err


class ElasticTrial(Trial):
    """A rank is killed; after the second event a slot is added to the host file."""

    def command(self):
        """Return the command line, on one host with two slots."""
        (self.folder / "hosts").write_text("localhost:2\n")
        script = ["-m", elastic_script.__name__, str(self.folder), str(self.steps), str(self.every)]
        return [*COMMAND, "run", "--elastic", "1:2", "--hostfile", str(self.folder / "hosts"), *script]

    def strike(self, process, due):
        """Kill the process, or add the slot."""
        if due.signal is None:
            with (self.folder / "hosts").open("a") as hosts:
                hosts.write("localhost:1\n")
        else:
            super().strike(process, due)


class ElasticNodeTrial(NodeTrial):
    """A rank on a node of a Ray cluster is killed; after the second event a node is added."""

    def command(self):
        """Return the command line, on a cluster of two nodes of a core each."""
        script = ["-m", elastic_script.__name__, str(self.folder), str(self.steps), str(self.every)]
        return [*COMMAND, "run", "--elastic", "1:2", "--transport", "ray", *self.options, *script]

    def strike(self, process, due):
        """Kill the process, or add the node."""
        if due.signal is None:
            self.nodes.add_node(**self.node)
        else:
            Trial.strike(self, process, due)


STEPS = 40
EVENTS = Kill(4, rank=1), Kill(20, signal=None)


def check_elastic(trial):
    """Check that one rank has continued alone, then two, and all losses are those of an undisturbed run."""
    trial.check(undisturbed(STEPS))
    lives = trial.lives()
    assert len(lives) == 3, trial.said
    first = {note.process for note in lives[1]}
    assert len(first) == 1  # alone
    assert {note.rank for note in trial.notes if note.what == "state"} == {0, 1}  # two ranks at the end
    assert "the script starts again with 1 rank\n" in trial.said
    assert "there is room for more ranks; the script starts again with 2 ranks\n" in trial.said


@pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="needs mpi4py")
@pytest.mark.skipif("RETROGRAD_PURE" in os.environ, reason="the compiled pass has run it")
def test_over_mpi_ranks_leave_and_join_and_all_losses_are_those_of_an_undisturbed_run(tmp_path):
    trial = ElasticTrial(tmp_path, "mpi", STEPS, 2, EVENTS)
    assert trial.run() == 0, trial.said
    check_elastic(trial)


@pytest.mark.skipif("RETROGRAD_CLUSTER" not in os.environ, reason="needs a cluster: make cluster")
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning")  # Ray's own
def test_over_ray_ranks_leave_and_join_and_all_losses_are_those_of_an_undisturbed_run(tmp_path):
    trial = ElasticNodeTrial(tmp_path, "ray", STEPS, 2, EVENTS)
    with trial.cluster():
        assert trial.run() == 0, trial.said
    check_elastic(trial)
