"""Checkpoints: training resumes exactly, in any layout, and incomplete checkpoints are never read."""

import json
import math
import os
import shutil
import tracemalloc
import warnings
from itertools import chain

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.export import StorageError
from retrograd.nn.functional import mse_loss
from retrograd.optim import SGD, Adam, AdamW
from retrograd.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, StepLR
from retrograd.pipelining import Pipeline
from retrograd.pipelining.checkpoint import Checkpoints, Restored
from retrograd.pipelining.checkpoint import checkpoint as saving
from retrograd.pipelining.checkpoint import manifest as parts


class Tied(nn.Module):
    """A model with an embedding used at both ends, dropout, and a buffer that changes."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(7, 6)
        self.first, self.drop, self.last = nn.Linear(6, 6), nn.Dropout(0.3), nn.Linear(6, 6)
        self.out = nn.Linear(6, 7, bias=False)
        self.out.weight = self.embed.weight
        self.register_buffer("seen", rg.zeros(()))

    def forward(self, ids):
        self.seen.add_(1)
        return self.out(self.last(self.first(self.drop(self.embed(ids))).tanh()).relu())


def batch(step):
    """Return the data of a step: a function of its number."""
    source = rg.Generator().manual_seed(1000 + step)
    return rg.randint(7, (6,), generator=source), rg.randn(6, 7, generator=source)


class Run:
    """A training run, from the seed on."""

    def __init__(self, stages, seed=0, ranks=None):
        rg.manual_seed(seed)
        self.model = Tied()
        self.pipeline = Pipeline(self.model, stages, ranks=ranks, micro_batches=2, loss_fn=mse_loss, deterministic=True)
        self.optimizer = AdamW(self.model.parameters(), lr=0.05)
        self.scheduler = StepLR(self.optimizer, step_size=2, gamma=0.5)

    @property
    def everything(self):
        return self.pipeline, self.optimizer, self.scheduler

    def train(self, steps):
        """Return the losses of steps, exactly."""
        losses = []
        for step in steps:
            x, target = batch(step)
            losses.append(self.pipeline.step(x, target=target).item().hex())
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.scheduler.step()
        return losses


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Return a folder with the checkpoints of steps 0 and 1 of a linear model."""
    folder = tmp_path_factory.mktemp("two")
    rg.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = SGD(model.parameters(), lr=0.1, momentum=0.9)
    checkpoints = Checkpoints(folder)
    for step in range(2):
        model(rg.ones(1, 3)).sum().backward()
        optimizer.step()
        checkpoints.save(step, model, optimizer, extra=step)
    return folder


@pytest.fixture
def folder(two, tmp_path):
    """Return the same, to be damaged."""
    return shutil.copytree(two, tmp_path / "checkpoints")


# ------------------------------------------------------------------------------------------------ going on


def test_losses_after_a_restore_are_those_of_the_undisturbed_run_on_any_number_of_stages(tmp_path):
    undisturbed = Run(1).train(range(6))
    for stages, first in ((2, 0), (3, 2), (1, 4)):
        run, checkpoints = Run(stages, seed=stages), Checkpoints(tmp_path)
        if first == 0:
            run = Run(stages)
        restored = checkpoints.restore(*run.everything)
        assert restored == (Restored(first - 1, None) if first else None)
        assert run.train([first, first + 1]) == undisturbed[first : first + 2]
        checkpoints.save(first + 1, *run.everything)
    assert checkpoints.steps() == [3, 5]


def test_a_plain_model_restores_the_checkpoint_of_a_pipeline_and_vice_versa(tmp_path):
    run, model = Run(3), Tied()
    run.train(range(2))
    Checkpoints(tmp_path / "a").save(1, *run.everything)
    optimizer = AdamW(model.parameters())
    Checkpoints(tmp_path / "a").restore(model, optimizer)
    Checkpoints(tmp_path / "b").save(1, model, optimizer)
    other = Run(2, seed=9)
    Checkpoints(tmp_path / "b").restore(other.pipeline, other.optimizer)
    state, expected = other.model.state_dict(), run.model.state_dict()
    assert list(state) == list(expected)
    assert all((state[name] == expected[name]).all() for name in state)
    assert other.optimizer.state_dict()["param_groups"] == run.optimizer.state_dict()["param_groups"]


def test_a_shared_tensor_is_stored_once_and_each_rank_writes_its_own_tensors(tmp_path):
    run = Run(3, ranks=3)
    run.train(range(1))
    Checkpoints(tmp_path).save(0, *run.everything)
    manifest = parts.read_manifest(tmp_path / "step-00000000")
    stored = [[name for name, _ in part["tensors"] if name.startswith("model/")] for part in manifest["parts"]]
    assert [bool(names) for names in stored] == [True, True, False]  # the last stage has the shared weight alone
    assert sorted(chain(*stored)) == sorted(f"model/{n}" for n in run.model.state_dict() if n != "out.weight")
    assert manifest["names"]["out.weight"] == "embed.weight"
    states = [name for part in manifest["parts"] for name, key, _ in part["states"] if key == "exp_avg"]
    assert sorted(states) == sorted(name for name, _ in run.model.named_parameters())


def test_extra_settings_and_states_come_back_as_they_were(tmp_path):
    model = nn.Linear(2, 1, dtype=rg.float64)
    model.register_buffer("count", rg.tensor([1, 2**40]))
    model.register_buffer("phase", rg.tensor([1 + 2j, -0.5j]))
    weight, bias = model.weight, model.bias
    optimizer = Adam([{"params": [weight], "lr": 0.3}, {"params": [bias], "betas": (0.5, 0.75)}])
    scheduler = LambdaLR(optimizer, lambda steps: np.float64(0.5) ** steps)
    model(rg.ones(1, 2, dtype=rg.float64)).sum().backward()
    optimizer.step()
    scheduler.step()
    extra = {"epoch": 3, "place": (1, [None, b"x"]), 5: math.inf, "mean": np.float32(0.5)}
    Checkpoints(tmp_path).save(7, model, optimizer, scheduler, extra)
    expected = optimizer.state_dict()

    other = nn.Linear(2, 1, dtype=rg.float64)
    other.register_buffer("count", rg.tensor([0, 0]))
    other.register_buffer("phase", rg.tensor([0j, 0j]))
    fresh = Adam([{"params": [other.weight]}, {"params": [other.bias]}])
    schedule = LambdaLR(fresh, lambda steps: 0.5**steps)
    assert Checkpoints(tmp_path).restore(other, fresh, schedule) == Restored(7, extra)
    state = fresh.state_dict()
    assert state["param_groups"] == expected["param_groups"]
    assert schedule.state_dict() == scheduler.state_dict()
    for number, entries in expected["state"].items():
        assert state["state"][number]["step"] == entries["step"] == 1
        assert (state["state"][number]["exp_avg"] == entries["exp_avg"]).all()
    assert (other.count == model.count).all()
    assert (other.phase == model.phase).all()


class History(SGD):
    """An optimizer that stores the gradients, in lists within a dict."""

    def update(self, param, grad, state, group):
        state.setdefault("history", {"gradients": [], "sum": (grad,)})["gradients"].append(grad)


def test_tensors_may_be_deep_in_an_optimizers_state(tmp_path):
    model, other = nn.Linear(2, 1), nn.Linear(2, 1)
    optimizer, fresh = History(model.parameters()), History(other.parameters())
    for factor in (1.0, 2.0):
        (model(rg.ones(1, 2)).sum() * factor).backward()
        optimizer.step()
        optimizer.zero_grad()
    Checkpoints(tmp_path).save(0, model, optimizer)
    Checkpoints(tmp_path).restore(other, fresh)
    history = fresh.state[other.weight]["history"]
    assert [g.tolist() for g in history["gradients"]] == [[[1.0, 1.0]], [[2.0, 2.0]]]
    assert history["sum"][0].tolist() == [[1.0, 1.0]]


def test_random_numbers_continue_where_they_were(tmp_path):
    model = nn.Linear(1, 1)
    rg.randn(3)
    Checkpoints(tmp_path).save(0, model)
    expected = rg.rand(5)
    rg.manual_seed(77)
    Checkpoints(tmp_path).restore(model)
    assert (rg.rand(5) == expected).all()


def test_the_parameters_of_a_group_may_come_in_another_order(folder):
    model = nn.Linear(3, 2)
    optimizer = SGD([model.bias, model.weight], lr=1.0)
    Checkpoints(folder).restore(model, optimizer)
    assert optimizer.param_groups[0]["momentum"] == 0.9
    assert optimizer.state[model.weight]["momentum_buffer"].shape == (2, 3)


# -------------------------------------------------------------------------------------------- which there are


def test_without_a_checkpoint_there_is_nothing_to_restore(tmp_path):
    checkpoints = Checkpoints(tmp_path / "none")
    assert checkpoints.restore(nn.Linear(1, 1)) is None
    assert checkpoints.steps() == []
    assert checkpoints.latest() is None
    with pytest.raises(FileNotFoundError, match="no checkpoint of step 3"):
        checkpoints.restore(nn.Linear(1, 1), step=3)


@pytest.mark.parametrize(("keep", "left"), [(1, [4]), (3, [2, 3, 4]), (None, [0, 1, 2, 3, 4])])
def test_the_last_ones_are_preserved(tmp_path, keep, left):
    checkpoints, model = Checkpoints(tmp_path, keep), nn.Linear(1, 1)
    for step in range(5):
        checkpoints.save(step, model)
    assert checkpoints.steps() == left
    assert checkpoints.latest() == 4
    assert len(os.listdir(tmp_path)) == len(left)


def test_a_run_that_restored_nothing_does_not_write_over_another(folder):
    model = nn.Linear(3, 2)
    for step in (0, 1):
        with pytest.raises(FileExistsError, match="has checkpoints of step"):
            Checkpoints(folder).save(step, model)
    checkpoints = Checkpoints(folder)
    checkpoints.save(2, model)
    with pytest.raises(FileExistsError, match="of step 2, which step 2 would not follow"):
        checkpoints.save(2, model)
    assert checkpoints.steps() == [1, 2]


def test_later_checkpoints_are_deleted_once_an_earlier_one_is_restored_and_another_saved(folder):
    checkpoints, model = Checkpoints(folder), nn.Linear(3, 2)
    checkpoints.save(5, model)
    assert checkpoints.restore(model, step=1) == Restored(1, 1)
    assert checkpoints.steps() == [1, 5]
    checkpoints.save(2, model)
    assert checkpoints.steps() == [1, 2]


@pytest.mark.parametrize("step", [2, 5])
def test_checkpoints_that_another_job_saves_meanwhile_are_not_deleted(folder, step, monkeypatch):
    checkpoints, model = Checkpoints(folder), nn.Linear(3, 2)
    checkpoints.restore(model)

    def save_of_another_job(*args):
        monkeypatch.undo()
        Checkpoints(folder).save(5, model, extra="of another job")
        return parts.write_manifest(*args)

    monkeypatch.setattr(saving, "write_manifest", save_of_another_job)
    if step == 5:
        with pytest.raises(OSError, match="5"):
            checkpoints.save(5, model)
    else:
        checkpoints.save(2, model)
    assert checkpoints.restore(model, step=5) == Restored(5, "of another job")
    with pytest.raises(FileExistsError, match="of step 5, which step 3 would not follow"):
        Checkpoints(folder).save(3, model)


def test_a_job_that_has_saved_does_not_delete_later_checkpoints_of_another(folder):
    checkpoints, model = Checkpoints(folder), nn.Linear(3, 2)
    checkpoints.save(2, model)
    Checkpoints(folder).save(5, model)
    with pytest.raises(FileExistsError, match="of step 5, which step 3 would not follow"):
        checkpoints.save(3, model)
    checkpoints.restore(model, step=2)
    checkpoints.save(3, model)
    Checkpoints(folder).save(7, model)
    with pytest.raises(FileExistsError, match="of step 7, which step 4 would not follow"):
        checkpoints.save(4, model)
    assert checkpoints.steps() == [3, 7]  # and not those before, as `keep` is 2


# ---------------------------------------------------------------------------------------------------- damage


def flip(path, place=-3):
    data = bytearray(path.read_bytes())
    data[place] ^= 4
    path.write_bytes(data)


def change_a_number(path):
    path.write_text(path.read_text().replace("0.9", "0.8"))


TENSORS, MANIFEST = "rank-0.safetensors", "manifest.json"
DAMAGES = {
    "a flipped bit": (TENSORS, flip, "not what was written"),
    "a flipped bit in the header": (TENSORS, lambda path: flip(path, 9), "not what was written"),
    "a short file": (TENSORS, lambda path: os.truncate(path, 100), "it has 100 bytes, not "),
    "no tensors": (TENSORS, os.remove, "there is no such file"),
    "another manifest": (MANIFEST, change_a_number, "not what was written"),
    "a short manifest": (MANIFEST, lambda path: os.truncate(path, 200), "damaged or no JSON"),
    "an empty manifest": (MANIFEST, lambda path: os.truncate(path, 0), "damaged or no JSON"),
    "no manifest": (MANIFEST, os.remove, "there is no such file"),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_for_a_damaged_checkpoint_the_one_before_is_restored(folder, kind):
    name, damage, problem = DAMAGES[kind]
    damage(folder / "step-00000001" / name)
    model = nn.Linear(3, 2)
    optimizer, checkpoints = SGD(model.parameters(), lr=1.0), Checkpoints(folder)
    with pytest.warns(RuntimeWarning, match=f"step-00000001 is damaged: {name}: .*{problem}.*the one before") as caught:
        assert checkpoints.restore(model, optimizer) == Restored(0, 0)
    assert caught[0].filename == __file__
    assert optimizer.param_groups[0]["momentum"] == 0.9
    checkpoints.save(1, model, optimizer, extra="new")
    assert Checkpoints(folder).restore(model) == Restored(1, "new")


def test_where_all_are_damaged_training_does_not_restart(folder):
    for step in (0, 1):
        flip(folder / f"step-0000000{step}" / TENSORS)
    with pytest.raises(StorageError, match=r"step-00000001 is damaged.*step-00000000 is damaged"):
        Checkpoints(folder).restore(nn.Linear(3, 2))
    with pytest.raises(StorageError, match="step-00000001 is damaged"):
        Checkpoints(folder).restore(nn.Linear(3, 2), step=1)


def rewritten(folder, **changes):
    """Write a manifest with changed content and a correct checksum."""
    path = folder / "step-00000001" / MANIFEST
    body = json.loads(path.read_text())
    del body["sha256"]
    for name, change in changes.items():
        body[name] = change(body[name])
    path.write_text(json.dumps({**body, "sha256": parts._content_checksum(body)}))


def test_a_checkpoint_of_a_later_release_is_no_damaged_one(folder):
    rewritten(folder, version=lambda version: version + 1)
    with pytest.raises(StorageError, match="version 2 of the format; this release reads up to 1"):
        Checkpoints(folder).restore(nn.Linear(3, 2))


@pytest.mark.parametrize(
    "changes",
    [
        {"parts": lambda rows: [{**rows[0], "file": "../step-00000000/rank-0.safetensors"}]},
        {"parts": lambda rows: [{**rows[0], "file": "/etc/passwd"}]},
        {"parts": lambda rows: []},
        {"parts": lambda rows: "none"},
        {"names": lambda names: []},
        {"step": lambda step: "1"},
    ],
)
def test_a_manifest_of_another_kind_is_refused(folder, changes):
    rewritten(folder, **changes)
    with pytest.raises(StorageError, match="manifest"):
        Checkpoints(folder).restore(nn.Linear(3, 2), step=1)


@pytest.mark.parametrize(
    "changes",
    [
        {"names": lambda names: {**names, "weight": "other"}},
        {"names": lambda names: {**names, "weight": 3}},
        {"groups": lambda groups: [{**groups[0], "params": [3]}]},
        {"groups": lambda groups: [{**groups[0], "settings": {"tuple": []}}]},
        {"groups": lambda groups: [3]},
        {"extra": lambda extra: {"code": "x"}},
        {"parts": lambda rows: [{**rows[0], "rng": {"dict": []}}]},
        {"parts": lambda rows: [{**rows[0], "tensors": rows[0]["tensors"][1:]}]},
        {"parts": lambda rows: [{**rows[0], "tensors": [3]}]},
        {"parts": lambda rows: [{**rows[0], "states": [["weight", "momentum_buffer", {"tensor": "x"}]]}]},
        {"parts": lambda rows: [{**rows[0], "states": [["weight"]]}]},
    ],
)
def test_content_that_save_never_writes_is_refused_and_changes_nothing(folder, changes):
    rewritten(folder, **changes)
    model = nn.Linear(3, 2)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(StorageError):
        Checkpoints(folder).restore(model, SGD(model.parameters()), step=1)
    assert all((tensor == before[name]).all() for name, tensor in model.state_dict().items())


class Killed(BaseException):
    """Raised in place of the death of the process."""


STEPS_TO_DISK = [(os, "fsync"), (os, "replace"), (os, "mkdir"), (os, "unlink"), (os, "rmdir"), (shutil, "rmtree")]


def saved_until_killed(folder, survived, monkeypatch):
    """Save step 2 until that many calls that change the disk were made; return whether it completed."""
    count = 0
    model = nn.Linear(3, 2)
    checkpoints = Checkpoints(folder)
    checkpoints.restore(model)

    def killing(call):
        def instead(*args, **kwargs):
            nonlocal count
            count += 1
            if count > survived:
                raise Killed
            return call(*args, **kwargs)

        return instead

    with monkeypatch.context() as patched:
        for module, name in STEPS_TO_DISK:
            patched.setattr(module, name, killing(getattr(module, name)))
        try:
            checkpoints.save(2, model, extra=2)
        except Killed:
            return False
    return True


def test_a_save_killed_at_any_point_leaves_complete_checkpoints(two, tmp_path, monkeypatch):
    whole = set()
    for survived in range(100):
        folder = shutil.copytree(two, tmp_path / str(survived))
        done = saved_until_killed(folder, survived, monkeypatch)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            checkpoints, model = Checkpoints(folder), nn.Linear(3, 2)
            restored = checkpoints.restore(model)
        assert restored in (Restored(1, 1), Restored(2, 2))
        assert all(Checkpoints(folder).restore(nn.Linear(3, 2), step=step) for step in checkpoints.steps())
        whole.add(restored.step)
        checkpoints.save(3, model)
        assert sorted(os.listdir(folder)) == [f"step-0000000{restored.step}", "step-00000003"]
        if done:
            break
    assert done
    assert survived > 6
    assert whole == {1, 2}


def test_a_save_removes_the_folder_of_a_killed_save_and_not_that_of_one_that_runs(tmp_path, monkeypatch):
    killed = tmp_path / ".step-00000009.0123abcd.tmp"
    write_part = saving.write_part

    def while_another_job_saves(folder, *arguments):
        monkeypatch.setattr(saving, "write_part", write_part)
        killed.mkdir()
        Checkpoints(tmp_path).save(1, nn.Linear(3, 2))
        assert not killed.exists()
        return write_part(folder, *arguments)

    monkeypatch.setattr(saving, "write_part", while_another_job_saves)
    Checkpoints(tmp_path).save(2, nn.Linear(3, 2), extra=2)
    assert sorted(os.listdir(tmp_path)) == ["step-00000001", "step-00000002"]
    assert Checkpoints(tmp_path).restore(nn.Linear(3, 2)) == Restored(2, 2)


# ------------------------------------------------------------------------------------------------- differences


def wider(model, optimizer):
    return nn.Linear(4, 2), None, None


def renamed(model, optimizer):
    return nn.Sequential(model), None, None


def other_parameters(model, optimizer):
    return model, SGD([model.weight], momentum=0.9), None


def more_groups(model, optimizer):
    return model, SGD([{"params": [model.weight]}, {"params": [model.bias]}]), None


def another_optimizer(model, optimizer):
    return model, AdamW(model.parameters()), None


def a_scheduler(model, optimizer):
    return model, optimizer, StepLR(optimizer, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (wider, r"weight has the shape \(2, 4\), in the checkpoint \(2, 3\)"),
        (renamed, r"that the checkpoint lacks: 0.weight, 0.bias\n.*that only the checkpoint has: weight, bias"),
        (other_parameters, "group 0 of the optimizer: parameters that only the checkpoint has: bias"),
        (more_groups, "the optimizer has 2 groups of parameters, in the checkpoint 1"),
        (another_optimizer, "the checkpoint has no settings betas, eps, amsgrad"),
        (a_scheduler, "it was saved without a scheduler"),
    ],
)
def test_states_that_do_not_fit_are_listed_and_nothing_changes(folder, change, message):
    model = nn.Linear(3, 2)
    model, optimizer, scheduler = change(model, SGD(model.parameters(), lr=0.25))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state, rng = optimizer and optimizer.state_dict(), str(rg.get_rng_state())
    with pytest.raises(ValueError, match=message):
        Checkpoints(folder).restore(model, optimizer, scheduler)
    assert all((tensor == before[name]).all() for name, tensor in model.state_dict().items())
    assert (optimizer and optimizer.state_dict()) == state
    assert str(rg.get_rng_state()) == rng


def test_a_schedule_of_another_kind_does_not_fit(tmp_path):
    model = nn.Linear(1, 1)
    optimizer = SGD(model.parameters(), lr=0.1)
    Checkpoints(tmp_path).save(0, model, optimizer, StepLR(optimizer, 2))
    with pytest.raises(ValueError, match="scheduler's state that only the checkpoint has: step_size, gamma"):
        Checkpoints(tmp_path).restore(model, optimizer, CosineAnnealingLR(optimizer, 5))


def test_settings_out_of_range_do_not_fit(folder):
    rewritten(folder, groups=lambda groups: json.loads(json.dumps(groups).replace("0.9", "-0.9")))
    model = nn.Linear(3, 2)
    with pytest.raises(ValueError, match=r"group 0 of the optimizer: .*momentum must be at least 0, got -0\.9"):
        Checkpoints(folder).restore(model, SGD(model.parameters()))


def test_an_optimizer_needs_one_in_the_checkpoint(tmp_path):
    model = nn.Linear(1, 1)
    Checkpoints(tmp_path).save(0, model)
    with pytest.raises(ValueError, match="it was saved without an optimizer"):
        Checkpoints(tmp_path).restore(model, SGD(model.parameters()))


@pytest.mark.parametrize(
    ("extra", "message"), [(object(), "extra: .*of type object can't be stored"), ({"x": {1}}, "extra: .*set")]
)
def test_objects_that_can_not_be_stored_are_refused_before_anything_is_written(tmp_path, extra, message):
    with pytest.raises(StorageError, match=message):
        Checkpoints(tmp_path / "new").save(0, nn.Linear(1, 1), extra=extra)
    assert not (tmp_path / "new").exists()


def test_an_optimizer_of_another_model_is_refused(tmp_path):
    with pytest.raises(ValueError, match="parameters that the model lacks"):
        Checkpoints(tmp_path).save(0, nn.Linear(1, 1), SGD(nn.Linear(1, 1).parameters()))


@pytest.mark.parametrize("step", [-1, 1.0, True, "1"])
def test_steps_are_numbers_from_0_on(tmp_path, step):
    with pytest.raises(ValueError, match="step must be an integer of at least 0"):
        Checkpoints(tmp_path).save(step, nn.Linear(1, 1))


@pytest.mark.parametrize("keep", [0, -1, 1.5])
def test_at_least_one_is_preserved(tmp_path, keep):
    with pytest.raises(ValueError, match="keep must be an integer of at least 1, or None"):
        Checkpoints(tmp_path, keep)


def test_only_models_and_pipelines_have_checkpoints(tmp_path):
    with pytest.raises(TypeError, match="expected a Pipeline or a Module, got dict"):
        Checkpoints(tmp_path).save(0, {})


def test_a_part_that_rank_0_does_not_see_is_an_error(tmp_path):
    part = {"file": "rank-1.safetensors", "bytes": 5}
    with pytest.raises(FileNotFoundError, match=r"rank-1.safetensors, .* all ranks must share"):
        parts.write_manifest(tmp_path, 0, [part], {})


def test_restore_holds_the_state_of_one_parameter_twice_and_the_others_once(tmp_path):
    model = nn.Sequential(*[nn.Linear(128, 128) for _ in range(8)])
    optimizer = rg.optim.AdamW(model.parameters())
    model(rg.ones(1, 128)).sum().backward()
    optimizer.step()
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(0, model, optimizer)
    checkpoints.restore(model, optimizer)  # imports what reading needs
    optimizer.state.clear()
    tracemalloc.start()
    try:
        checkpoints.restore(model, optimizer)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    parameters = sum(x.nbytes for x in model.parameters())
    assert 3 * parameters < peak < 4 * parameters  # values and two moments are read; with all copies, it would be 5
