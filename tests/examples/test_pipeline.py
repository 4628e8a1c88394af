"""The pipeline example trains on threads, resumes from its checkpoints, and can be planned."""

from pathlib import Path

import pytest

from ..example_scripts import imported

pytest.importorskip("sklearn", reason="the example reads scikit-learn's digits")

PATH = Path(__file__).parents[2] / "examples" / "pipeline" / "train.py"


@pytest.fixture(scope="module")
def example():
    return imported("pipeline/train")


def losses(text):
    return [line for line in text.splitlines() if line.startswith("step ")]


def test_a_resumed_run_prints_the_same_as_an_undisturbed_one_under_another_schedule_too(
    example, tmp_path, capsys, monkeypatch
):
    options = ["--checkpoints", str(tmp_path / "saved"), "--timeline", str(tmp_path / "page.html")]
    monkeypatch.setattr("sys.argv", ["train.py", "--steps", "1", *options])
    example.main()
    assert "test accuracy" in capsys.readouterr().out
    assert "A step under 1f1b" in (tmp_path / "page.html").read_text()

    example.train(2, "zb-h1", tmp_path / "saved")
    resumed = capsys.readouterr().out
    assert resumed.startswith("resuming after step 0\n")
    example.train(2)
    assert losses(resumed)[-1] == losses(capsys.readouterr().out)[-1]


def test_planned_models_are_the_trained_models(example):
    model, (x,), y, loss_fn = example.example()
    assert len(x) == len(y) == example.BATCH
    assert loss_fn(model(x), y).ndim == 0


@pytest.mark.parametrize("command", ["python", "retrograd run", "retrograd plan"])
def test_the_script_says_how_to_start_it(example, command):
    assert f"\n    {command} " in example.__doc__
