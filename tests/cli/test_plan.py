"""`retrograd plan`: its output, the files it writes, and errors."""

import json

import pytest

from retrograd.cli import main

MODULE = """
import argparse
import retrograd as rg
from retrograd import nn

def example():
    model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(4)])
    return model, rg.ones(8, 4), rg.ones(8, 4), nn.functional.mse_loss

def nothing():
    return None

def broken():
    raise KeyError("weights")

argparse.ArgumentParser().parse_args()  # as a script that is also run by itself
"""


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "planned.py"
    path.write_text(MODULE)
    return path


def plan(target, *options):
    return main(["plan", str(target), "-n", "2", "--micro-batches", "4", "--schedule", "1f1b", *options])


def test_a_plan_is_printed_and_written(module, capsys, tmp_path):
    page, data = tmp_path / "plan.html", tmp_path / "plan.json"
    assert plan(f"{module}:example", "--memory-limit", "1MiB", "--html", str(page), "--json", str(data)) == 0
    told = capsys.readouterr().out
    assert "1F1B *" in told
    assert "1F1B with 2 stages has the shortest step." in told
    assert json.loads(data.read_text())["recommended"]["stages"] == 2
    assert page.read_text().lstrip().lower().startswith("<!doctype html>")


def test_where_nothing_fits_the_code_is_1_and_the_smallest_limit_is_printed(module, capsys):
    assert plan(f"{module}:example", "--memory-limit", "10") == 1
    assert "the smallest limit that would do" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("target", "options", "told"),
    [
        ("{}:nothing", [], "returned NoneType; it must return (model, example_args)"),
        ("{}:broken", [], "fails: KeyError: 'weights'"),
        ("{}:missing", [], "has no function 'missing'"),
        ("train", [], "it must be like train.py:example or package.module:example"),
        ("no_such.py:example", [], "there is no file 'no_such.py'"),
        ("no_such_package:example", [], "no_such_package can't be imported"),
        ("{}:example", ["--memory-limit", "2 pounds"], "it must be a size above 0, like 2GiB"),
    ],
)
def test_a_mistake_is_one_line_and_the_code_is_2(module, capsys, target, options, told):
    assert plan(target.format(module), *options) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1


def test_a_script_that_ends_while_it_is_imported_is_named(tmp_path, capsys):
    path = tmp_path / "ends.py"
    path.write_text("raise SystemExit(3)")
    assert plan(f"{path}:example") == 2
    assert "ends.py can't be imported: SystemExit: 3" in capsys.readouterr().err
