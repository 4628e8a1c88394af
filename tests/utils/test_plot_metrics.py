"""Metrics are plotted as curves."""

import pytest

from retrograd.utils.plot_metrics import plot_curves, smooth_values


@pytest.mark.parametrize("form", ["png", "svg"])
def test_curves_are_pictures_that_are_the_same_each_time(form, tmp_path):
    curves = {"train $x$": [3.0, 2.0, float("nan"), 1.0], "test": {1: 2.5, 3: 1.5}, "one": [1.0]}
    pictures = []
    for name in "ab":
        plot_curves(tmp_path / f"{name}.{form}", curves, title="a run", log=True, smooth=0.5)
        pictures.append((tmp_path / f"{name}.{form}").read_bytes())
    assert pictures[0] == pictures[1]
    assert pictures[0].startswith(b"\x89PNG" if form == "png" else b"<?xml")


def test_a_logarithmic_axis_is_labelled_by_numbers(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        plot_curves(tmp_path / "a.svg", {"train": [1.0, 0.01]}, log=True)
    picture = (tmp_path / "a.svg").read_text()
    assert ">0.1</text>" in picture
    assert "$" not in picture


def test_smooth_curves_are_means_that_forget():
    assert smooth_values([1.0, 2.0, 4.0], 0.0) == [1, 2, 4]
    assert smooth_values([1.0, 2.0, float("inf"), 4.0], 0.5) == [1, 2.5 / 1.5, float("inf"), (4 + 1 + 0.25) / 1.75]


@pytest.mark.parametrize(
    ("name", "curves", "options", "told"),
    [
        ("a.gif", {"a": [1]}, {}, r"must end in \.png"),
        ("a.png", {}, {}, "with points"),
        ("a.png", {"a": []}, {}, r"none for \['a'\]"),
        ("a.png", {"a": [1]}, {"smooth": 1}, "smooth must be"),
    ],
)
def test_unsupported_figures_are_refused(name, curves, options, told, tmp_path):
    with pytest.raises(ValueError, match=told):
        plot_curves(tmp_path / name, curves, **options)
    assert list(tmp_path.iterdir()) == []
