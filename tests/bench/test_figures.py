"""Benchmark figures: medians, ratios of rounds with their spread, verdicts, and their formatting."""

import json
import re
import subprocess

import pytest

from retrograd.bench import Row, Table, as_dict, as_markdown, as_text, report, spread
from retrograd.bench.report import as_table, number

SAMPLES = {"retrograd": [0.25, 0.5, 3.0], "PyTorch": [0.5, 0.5, 1.0]}


def table(budgets=None, **options):
    return Table("Steps", "s", [Row("a step", SAMPLES, budgets or {})], threads=2, **options)


def test_a_spread_is_the_median_between_the_quartiles():
    assert spread([5.0, 1.0, 4.0, 2.0, 3.0]) == (3.0, 2.0, 4.0)
    assert spread([7.0]) == (7.0, 7.0, 7.0)


def test_a_ratio_is_the_median_of_the_rounds_ratios_not_the_ratio_of_medians():
    row = Row("", {"retrograd": [1.0, 10.0, 100.0], "PyTorch": [1.0, 20.0, 25.0]})
    assert row.ratio("retrograd", "PyTorch") == spread([1.0, 0.5, 4.0])
    assert row.ratio("retrograd", "PyTorch").median == 1.0


def test_there_is_no_ratio_to_a_peer_that_needed_nothing():
    row = Row("a step", {"retrograd": [4096.0, 0.0], "PyTorch": [0.0, 4096.0]}, {"PyTorch": 1.0})
    assert row.ratio("retrograd", "PyTorch") is None


def test_without_figures_there_is_no_median_ratio_or_verdict():
    row = Row("", {"retrograd": [1.0], "JAX jit": []}, {"PyTorch": 0.5, "JAX jit": 0.5})
    made = Table("", "s", [row])
    assert row.median("JAX jit") is None
    assert row.ratio("retrograd", "JAX jit") is None
    assert [made.met(row, peer) for peer in row.budgets] == [None, None]
    assert made.subjects == ["retrograd"]
    assert made.all_met


@pytest.mark.parametrize(("budget", "met"), [(1.0, True), (0.99, False)])
def test_a_budget_is_for_the_median_ratio(budget, met):
    made = table({"PyTorch": budget})
    assert made.met(made.rows[0], "PyTorch") is met
    assert made.all_met is met


@pytest.mark.parametrize(("budget", "met"), [(0.5, True), (0.49, False)])
def test_a_budget_of_our_own_is_for_our_figure_in_the_table_s_unit(budget, met):
    made = table({"": budget})
    assert made.met(made.rows[0], "") is met


def test_results_that_differ_miss_their_budgets():
    assert not table(fine=False).all_met


def test_the_text_has_medians_ratio_with_spread_threads_budget_and_verdict():
    text = as_text(table({"PyTorch": 0.9}))
    head, line = text.splitlines()[1], text.splitlines()[3]
    assert text.startswith("Steps, 2 threads\n")
    assert head.split("  ")[0] == "s"
    assert line.split() == ["a", "step", "0.500", "0.500", "1.00", "(0.75-2.00)", "0.9", "MISSED"]


def test_markdown_has_the_same_cells_with_missed_budgets_in_bold():
    rows = as_markdown(table({"PyTorch": 0.9}, notes=["MLX is left out"])).splitlines()
    assert rows[0] == "**Steps, 2 threads**"
    assert rows[2] == "| s | retrograd | PyTorch | vs PyTorch | budget |"
    assert rows[4] == "| a step | 0.500 | 0.500 | 1.00 (0.75-2.00) | 0.9 **missed** |"
    assert rows[-1] == "MLX is left out"


def test_json_has_all_that_a_table_has():
    made = table({"PyTorch": 0.9}, notes=["a note"])
    found = json.loads(json.dumps(as_dict(made)))
    assert as_table(found) == made
    (row,) = found["rows"]
    assert row["medians"] == {"retrograd": 0.5, "PyTorch": 0.5}
    assert row["ratios"]["PyTorch"] == {"median": 1.0, "low": 0.75, "high": 2.0}
    assert row["met"] == {"PyTorch": False}


@pytest.mark.parametrize(
    ("value", "text"), [(0.0123, "0.0123"), (0.567, "0.567"), (5.678, "5.68"), (56.78, "56.8"), (5678.9, "5,679")]
)
def test_figures_have_the_digits_that_count(value, text):
    assert number(value) == text


def test_the_line_below_tables_has_the_commit_of_the_sources(tmp_path):
    def git(*arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", str(tmp_path), *identity, *arguments], check=True, capture_output=True)

    folder = tmp_path / "package" / "bench"
    folder.mkdir(parents=True)
    source = folder / "report.py"
    source.write_text("x = 1\n")
    assert report.commit_of(folder) == ""
    git("init")
    assert report.commit_of(folder) == ""  # not one of the repository's files
    git("add", ".")
    git("commit", "-m", "first")
    name = report.commit_of(folder)
    assert re.fullmatch(r"[0-9a-f]{7,}", name)
    source.write_text("x = 2\n")
    assert report.commit_of(folder) == f"{name}+"
    found = {**report.environment(), "commit": name}
    assert f"; commit {name}" in report.environment_line(found)
    assert "commit" not in report.environment_line({**found, "commit": ""})
