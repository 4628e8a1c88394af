"""Benchmark tables are drawn as pictures."""

import pytest

from retrograd.bench import Row, Table
from retrograd.bench.plots import draw

pytest.importorskip("matplotlib")
SAMPLES = {"retrograd": [1e-3, 2e-3], "PyTorch": [2e-3, 2e-3]}


def test_ratios_and_curves_become_one_picture(tmp_path):
    bars = Table("Steps", "ms", [Row("a step", SAMPLES, {"PyTorch": 0.9}), Row("alone", {"retrograd": [1.0]})])
    curve = Table("Sizes", "ms", [Row(str(n), SAMPLES, at=float(n)) for n in (1, 10, 100)], axis="numbers")
    draw([bars, curve], tmp_path / "picture.svg")
    text = (tmp_path / "picture.svg").read_text()
    assert text.startswith("<?xml")
    assert "date" not in text


def test_the_same_figures_give_the_same_file(tmp_path):
    table = Table("Steps", "ms", [Row("a step", SAMPLES)])
    for name in ("a.svg", "b.svg"):
        draw([table], tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
