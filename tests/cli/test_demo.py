"""`retrograd demo` writes the announced files, stops on request, and resumes with the same results."""

import json
import shutil
import signal
import sys
from importlib import import_module

import pytest

import retrograd as rg
from retrograd.cli import main
from retrograd.cli.demo import model
from retrograd.cli.demo.data import Digits, batches, batches_per_epoch, load_digits
from retrograd.cli.demo.report import FILES
from retrograd.cli.demo.training import BATCH, Trainer
from retrograd.interop.safetensors import load_file, save_file

STEPS = batches_per_epoch(1437, BATCH)


def demo(folder, *options):
    return main(["demo", "--quiet", "--epochs", "1", "--output", str(folder), *options])


@pytest.fixture(scope="module")
def full_run(tmp_path_factory):
    """Return the folder of an uninterrupted run."""
    folder = tmp_path_factory.mktemp("demo")
    assert demo(folder) == 0
    return folder


def take_few_digits(patch):
    """Train on a tenth of the digits, in as many steps, and draw no pictures, which take as long."""
    digits = load_digits()
    few = Digits(digits.train_x[:144], digits.train_y[:144], digits.test_x[:36], digits.test_y[:36])
    patch.setattr(import_module("retrograd.cli.demo.run"), "load_digits", lambda: few)
    patch.setattr(import_module("retrograd.cli.demo.training"), "BATCH", BATCH // 10)
    for name in ("draw", "write_png"):
        patch.setattr(import_module("retrograd.cli.demo.report"), name, lambda path, *_, **options: path.touch())


@pytest.fixture
def few_digits(monkeypatch):
    """Make runs of the test short."""
    take_few_digits(monkeypatch)


@pytest.fixture(scope="module")
def short_run(tmp_path_factory):
    """Return the folder of an uninterrupted run on few digits."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        take_few_digits(patch)
        assert demo(folder) == 0
    return folder


def metrics(folder):
    return json.loads((folder / "metrics.json").read_text())


def interrupt(monkeypatch, at, times=1, number=signal.SIGINT):
    """Send Ctrl-C as often as given while the step `at` runs, or send another signal."""
    step = Trainer.step

    def interrupted(trainer):
        for _ in range(times if trainer.done == at else 0):
            signal.raise_signal(number)
        return step(trainer)

    monkeypatch.setattr(Trainer, "step", interrupted)


def test_a_run_leaves_all_files(full_run):
    assert {path.name for path in full_run.iterdir()} == set(FILES)
    assert (full_run / "loss.png").read_bytes().startswith(b"\x89PNG")
    assert (full_run / "timeline.png").read_bytes().startswith(b"\x89PNG")
    assert "<html" in (full_run / "timeline.html").read_text()
    assert json.loads((full_run / "timeline.json").read_text())["traceEvents"]


def test_the_pipeline_s_gradients_are_those_of_the_unsplit_model(full_run):
    assert 0 < metrics(full_run)["gradient_difference"] <= 1e-5


def test_the_model_learns(full_run):
    losses = metrics(full_run)["losses"]
    assert len(losses) == STEPS
    assert losses[-1] < losses[0]


def test_every_parameter_belongs_to_one_stage(full_run):
    stages = metrics(full_run)["stages"]
    assert len(stages) == 4
    assert sum(stage["parameters"] for stage in stages) == sum(p.numel() for p in model.DigitReader().parameters())
    assert metrics(full_run)["bubble"]["theory"] == pytest.approx(3 / 11)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_after_the_step_and_a_resumed_run_ends_like_an_uninterrupted_one(
    number, code, short_run, few_digits, tmp_path, monkeypatch, capsys
):
    handlers = [signal.getsignal(known) for known in (signal.SIGINT, signal.SIGTERM)]
    with monkeypatch.context() as patch:
        interrupt(patch, at=2, number=number)
        assert demo(tmp_path) == code
    assert [signal.getsignal(known) for known in (signal.SIGINT, signal.SIGTERM)] == handlers
    assert f"Stopped after step 3; --resume continues from {tmp_path}/checkpoint.safetensors" in capsys.readouterr().out
    assert main(["demo", "--quiet", "--output", str(tmp_path), "--resume"]) == 0
    assert metrics(tmp_path)["losses"] == metrics(short_run)["losses"]
    ours, theirs = (load_file(folder / "checkpoint.safetensors") for folder in (tmp_path, short_run))
    assert {name: x.tolist() for name, x in ours.items()} == {name: x.tolist() for name, x in theirs.items()}


def test_a_second_ctrl_c_stops_within_the_step_and_leaves_the_old_checkpoint(full_run, tmp_path, monkeypatch, capsys):
    before = (full_run / "checkpoint.safetensors").read_bytes()
    (tmp_path / "checkpoint.safetensors").write_bytes(before)
    handler = signal.getsignal(signal.SIGINT)
    interrupt(monkeypatch, at=1, times=2)
    assert demo(tmp_path) == 130
    assert "nothing was saved" in capsys.readouterr().out
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == before
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.parametrize("name", ["checkpoint.safetensors", "metrics.json"])
def test_failed_writes_are_reported_in_one_line_and_leave_no_torn_file(name, short_run, few_digits, tmp_path, capsys):
    shutil.copytree(short_run, tmp_path, dirs_exist_ok=True)
    (tmp_path / name).unlink()
    (tmp_path / name / "full").mkdir(parents=True)  # which no file takes the place of
    assert demo(tmp_path, *(["--resume"] if name == "metrics.json" else [])) == 2
    error = capsys.readouterr().err
    assert f"--output: can't write {tmp_path / name}: " in error
    assert len(error.splitlines()) == 1
    assert {path.name for path in tmp_path.iterdir()} == set(FILES)


def test_a_finished_run_resumes_with_other_stages_and_more_epochs(short_run, few_digits, tmp_path, capsys):
    (tmp_path / "checkpoint.safetensors").write_bytes((short_run / "checkpoint.safetensors").read_bytes())
    options = ("--resume", "--stages", "2", "--schedule", "gpipe", "--micro-batches", "3")
    assert main(["demo", "--quiet", "--output", str(tmp_path), *options]) == 0
    assert "All 1 epochs are done; --epochs 2 would continue" in capsys.readouterr().out
    assert metrics(tmp_path)["losses"] == metrics(short_run)["losses"]
    assert main(["demo", "--quiet", "--output", str(tmp_path), *options, "--epochs", "2"]) == 0
    assert metrics(tmp_path)["losses"][:STEPS] == metrics(short_run)["losses"]
    assert len(metrics(tmp_path)["losses"]) == 2 * STEPS
    assert demo(tmp_path, "--resume") == 2
    assert "--epochs 1: the checkpoint has 2 epochs behind it" in capsys.readouterr().err


def no_checkpoint(path):
    pass


def torn(path):
    path.write_bytes(b"\x10\0\0\0\0\0\0\0{")


def foreign(path):
    save_file({"x": rg.ones(1)}, path)


def of_another_model(path):
    state = {"format": "retrograd demo 1", "seed": 0, "epochs": 1, "losses": [], "accuracies": []}
    save_file({"model.x": rg.ones(1)}, path, {"state": json.dumps(state | {"optimizer": {}, "random": {}})})


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (no_checkpoint, "there is no checkpoint"),
        (torn, "damaged"),
        (foreign, "is no checkpoint of this demo"),
        (of_another_model, "does not fit"),
    ],
)
def test_invalid_checkpoints_are_reported_in_one_line_and_left_unchanged(make, said, tmp_path, capsys):
    make(tmp_path / "checkpoint.safetensors")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert demo(tmp_path, "--resume") == 2
    error = capsys.readouterr().err
    assert said in error
    assert "checkpoint.safetensors" in error
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_another_seed_than_the_checkpoint_s_is_refused(full_run, capsys):
    assert demo(full_run, "--resume", "--seed", "5") == 2
    assert "--seed 5: the checkpoint was made with seed 0" in capsys.readouterr().err


def test_an_output_that_is_a_file_is_refused(tmp_path, capsys):
    (tmp_path / "out").write_text("mine")
    assert demo(tmp_path / "out") == 2
    assert "--output: can't make the folder" in capsys.readouterr().err
    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.parametrize(("module", "package"), [("sklearn.datasets", "scikit-learn"), ("matplotlib", "matplotlib")])
def test_without_its_extra_the_demo_says_what_to_install(module, package, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, module, None)
    assert demo(tmp_path / "out") == 2
    assert capsys.readouterr().err == f'retrograd: the demo needs {package}: pip install "retrograd[demo]"\n'
    assert not (tmp_path / "out").exists()


def test_wrong_gradients_are_not_passed_over(few_digits, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(Trainer, "gradient_difference", lambda trainer, step: 1e-3)
    assert demo(tmp_path) == 1
    assert "1.0e-03 of the largest gradient (at most 1e-05): too much" in capsys.readouterr().out


@pytest.mark.parametrize("stages", range(1, model.MOST_STAGES + 1))
def test_the_model_can_be_cut_into_any_number_of_stages_up_to_the_most(stages):
    spec = model.split_spec(stages)
    assert len(spec) == stages - 1
    assert set(spec) <= set(model.CUTS)


def test_an_epoch_has_every_example_once_and_another_epoch_another_order():
    first, second = ([i for part in batches(1437, 240, 0, epoch) for i in part.tolist()] for epoch in (0, 1))
    assert sorted(first) == sorted(second) == list(range(1437))
    assert first != second


def test_no_scan_is_in_both_parts_and_a_fifth_of_every_digit_is_in_the_test():
    digits = load_digits()
    train, test = ({str(scan) for scan in part.tolist()} for part in (digits.train_x, digits.test_x))
    assert (len(train), len(test)) == (1437, 360)
    assert not train & test
    train_y, test_y = digits.train_y.tolist(), digits.test_y.tolist()
    for digit in range(10):
        assert abs(test_y.count(digit) - 0.2 * (train_y + test_y).count(digit)) <= 1


def test_a_compiled_step_trains_the_whole_model_to_the_bits_of_the_eager_one(tmp_path, monkeypatch):
    take_few_digits(monkeypatch)
    losses = []
    for compile in (rg.compile, lambda step: step):
        monkeypatch.setattr(rg, "compile", compile)
        folder = tmp_path / str(len(losses))
        assert demo(folder, "--compile") == 0
        losses.append(json.loads((folder / "metrics.json").read_text())["losses"])
    assert losses[0] == losses[1]
    assert losses[0][-1] < losses[0][0]
