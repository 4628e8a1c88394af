"""`retrograd sweep`: its table, its plot, and errors."""

import pytest

from retrograd.cli import main
from retrograd.pipelining.planning.sweep import RankCosts, pareto_front, sweep
from retrograd.pipelining.schedules import SCHEDULES

SMALL = ["sweep", "-n", "4", "--micro-batches", "8", "--seconds", "0.1"]


def test_the_table_has_every_schedule_and_the_searched_ones(capsys):
    assert main([*SMALL, "--limits", "3,4", "--times", "1,1.2,0.8,0.1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].strip() == "4 ranks, 8 microbatches"
    names = [line.split()[0] for line in lines[2:]]
    assert sorted(set(names)) == sorted({kind.name for kind in SCHEDULES.values()} | {"auto"})
    assert names.count("auto") == 4  # one and two stages per rank, two limits


def test_the_plot_is_written(tmp_path, capsys):
    assert main([*SMALL, "--plot", str(tmp_path / "front.svg")]) == 0
    assert (tmp_path / "front.svg").read_text().startswith("<?xml")
    assert main([*SMALL, "--plot", str(tmp_path / "front.txt")]) == 2
    assert "its name must end in .png or .svg or .pdf" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-n", "0,4"], "--ranks is '0,4'; it must be integers of at least 1"),
        (["--times", "1,1,1"], "--times is '1,1,1'; it must be 4 numbers of at least 0"),
        (["--limits", "4,0.5"], "--limits has 0.5; a rank holds the activations of at least 1 microbatch"),
        (["--limits", "x"], "--limits is 'x'; it must be numbers of at least 0"),
        (["--seconds", "0"], "--seconds is '0'; it must be a number of seconds above 0"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message, capsys):
    assert main(["sweep", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_searched_schedules_are_as_good_as_named_ones_within_the_memory():
    rows = sweep([4], [2], [8], limits=[3, 0.5], costs=RankCosts(1.0, 1.3, 0.6, 0.2), seconds=0.2)
    (found,) = [row for row in rows if row.schedule == "auto"]
    assert found.memory <= 3
    assert found.step <= min(row.step for row in rows if row.memory <= 3) * (1 + 1e-9)


def test_no_schedule_on_the_front_is_worse_than_another():
    rows = sweep([4, 8], [1, 2], [16])
    for one in pareto_front(rows):
        others = [row for row in rows if row.copies == 1]
        assert not any(row.memory <= one.memory and row.bubble < one.bubble * (1 - 1e-9) for row in others)
        assert one.copies == 1
