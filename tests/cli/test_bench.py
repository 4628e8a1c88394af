"""`retrograd bench` measures, with or without peers."""

import json

import pytest

from retrograd.bench import short
from retrograd.cli import main


def test_the_command_measures_a_case_and_says_that_no_peer_is_there(tmp_path, capsys):
    file = tmp_path / "figures.json"
    assert main(["bench", "--rounds", "2", "--only", "multiplications of 4", "--json", str(file)]) == 0
    told = capsys.readouterr().out
    assert "multiplications of 4 elements" in told
    found = json.loads(file.read_text())
    (row,) = found["tables"][0]["rows"]
    assert len(row["samples"]["retrograd"]) == 2
    if "torch" not in found["versions"]:
        assert "PyTorch is left out: torch is not installed" in told
        assert "PyTorch is not installed" in told


@pytest.mark.parametrize("row", short.CASES)
def test_every_case_runs_and_has_results_to_compare(row):
    case = short.cases("retrograd", 1)(row)
    assert case.check()
    case.call()


def test_a_bad_number_of_rounds_is_named(capsys):
    assert main(["bench", "--rounds", "0"]) == 2
    assert "--rounds is '0'" in capsys.readouterr().err
