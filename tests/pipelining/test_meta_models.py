"""Models on the device "meta": each rank gets memory for its own part, with the values of one and the same model."""

import json
import os
import subprocess
import sys

import pytest

import retrograd as rg
import retrograd.distributed as dist
import retrograd.distributed.checkpoint as checkpoint
from retrograd import nn
from retrograd.distributed.checkpoint import layout
from retrograd.distributed.fsdp import fully_shard
from retrograd.nn.functional import mse_loss
from retrograd.nn.utils import materialize
from retrograd.pipelining import Pipeline

from . import meta_script
from .meta_script import Model, on_meta


def seeded_parts(choose):
    """Return the model's values after `materialize` of the parameters that are chosen, those on "meta" as None."""
    rg.manual_seed(0)
    model = on_meta()
    materialize(model, choose(model))
    return {name: x.tolist() if x.device == "cpu" else None for name, x in model.state_dict().items()}


@pytest.mark.skipif("RETROGRAD_PURE" in os.environ, reason="the compiled pass has run it")
def test_over_mpi_a_model_in_parts_trains_and_resumes_as_the_whole_one_and_each_rank_reads_its_part(tmp_path):
    pytest.importorskip("mpi4py")
    command = [sys.executable, "-m", "retrograd", "run", "-n", "4", meta_script.__file__, tmp_path]
    assert json.loads(subprocess.check_output(command, text=True, timeout=300)) == [[]] * 4


def test_values_do_not_depend_on_which_parameters_have_memory():
    whole = seeded_parts(lambda model: None)
    assert None not in whole.values()
    assert whole["out.weight"] == whole["embed.weight"]
    for part in (lambda m: m.out.parameters(), lambda m: m.layers[3:].parameters(), lambda m: [m.layers[0].bias]):
        found = seeded_parts(part)
        assert any(value is None for value in found.values())
        assert {name: whole[name] for name, value in found.items() if value is not None} == {
            name: value for name, value in found.items() if value is not None
        }


def test_modules_without_reset_parameters_need_init_and_nothing_changes_before():
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = nn.Parameter(rg.ones(3))

        def forward(self, x):
            return x * self.factor

    with rg.device("meta"):
        model = nn.Sequential(nn.Linear(3, 3), Scale())
    with pytest.raises(ValueError, match=r"materialize: Scale have no reset_parameters\(\); pass init="):
        materialize(model)
    assert model[0].weight.device == "meta"
    pipeline = Pipeline(model, 2, loss_fn=mse_loss)
    pipeline.materialize(rg.empty(4, 3), init=lambda part: [nn.init.constant_(p, 2.0) for p in part.parameters(False)])
    assert pipeline.predict(rg.ones(4, 3)).tolist() == [[16.0] * 3] * 4


def test_parameters_with_values_keep_them():
    with rg.device("meta"):
        model = nn.Linear(3, 2)
    model.weight = nn.Parameter(rg.full((2, 3), 7.0))
    materialize(model)
    assert model.weight.tolist() == [[7.0] * 3] * 2
    assert model.bias.device == "cpu"


def test_a_tensor_that_forward_makes_from_values_is_refused():
    class Shift(nn.Linear):
        def forward(self, x):
            return super().forward(x) + rg.tensor([1.0, 2.0, 3.0])

    with rg.device("meta"):
        model = nn.Sequential(nn.Linear(3, 3), Shift(3, 3))
    with pytest.raises(RuntimeError, match=r"makes a tensor of given values, of shape \(3,\)"):
        Pipeline(model, 2, loss_fn=mse_loss).materialize(rg.empty(4, 3))


def test_stages_that_are_given_as_modules_may_be_on_meta():
    with rg.device("meta"):
        stages = [nn.Linear(3, 4), nn.Sequential(nn.Tanh(), nn.Linear(4, 2))]
    pipeline = Pipeline(stages, micro_batches=2, loss_fn=mse_loss)
    pipeline.materialize(rg.empty(4, 3, device="meta"))
    pipeline.step(rg.ones(4, 3), target=rg.zeros(4, 2))
    assert stages[0].weight.grad.shape == (4, 3)


def blocks(seed=0):
    rg.manual_seed(seed)
    with rg.device("meta"):
        return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 4))


def test_a_model_that_is_divided_on_meta_reads_its_part_of_a_checkpoint_only(tmp_path, monkeypatch):
    whole = blocks()
    materialize(whole)
    checkpoint.save({"model": whole.state_dict()}, checkpoint_id=tmp_path)
    read, load_ranges = [], layout.load_ranges

    def counting(path, name, ranges):
        found = load_ranges(path, name, ranges)
        read.extend(x.nbytes for x in found)
        return found

    monkeypatch.setattr(layout, "load_ranges", counting)

    def script():
        model = fully_shard(blocks())
        with pytest.raises(ValueError, match=r"0\.weight is on 'meta' and has no memory"):
            checkpoint.load({"model": model.state_dict()}, checkpoint_id=tmp_path)
        model.to_empty(device="cpu")
        checkpoint.load({"model": model.state_dict()}, checkpoint_id=tmp_path)
        model.eval()
        return model(rg.ones(2, 6)).tolist(), sum(p.to_local().nbytes for p in model.parameters())

    outcomes = dist.run_threads(script, 4)
    parameters = sum(p.nbytes for p in whole.parameters())
    buffers = sum(b.nbytes for b in whole.buffers())
    whole.eval()
    for found, _ in outcomes:
        assert rg.allclose(rg.tensor(found), whole(rg.ones(2, 6)))
    assert sum(own for _, own in outcomes) == parameters
    assert sum(read) == parameters + 4 * buffers  # all ranks have the buffers


def test_a_block_that_gets_values_just_before_it_is_divided_has_those_of_the_whole_model():
    def script():
        model = blocks()
        for part in model:
            rg.nn.utils.materialize(part, init=lambda own: [nn.init.constant_(p, 0.5) for p in own.parameters(False)])
            fully_shard(part)
        return sum(p.to_local().nbytes for p in model.parameters()), model[2].weight.to_local().shape

    outcomes = dist.run_threads(script, 2)
    assert [shape for _, shape in outcomes] == [(2, 8)] * 2
    assert sum(own for own, _ in outcomes) == sum(p.nbytes for p in blocks().parameters())


def test_a_model_without_memory_has_no_parameters_in_the_fingerprint():
    assert Model().embed.weight.device == "cpu"
    rg.manual_seed(0)
    pipeline = Pipeline(on_meta(), 2, micro_batches=2, loss_fn=nn.functional.cross_entropy)
    pipeline.materialize(rg.zeros(4, dtype=rg.int64))
    x = rg.tensor([1, 2, 3, 4])
    assert pipeline.step(x, target=x).item() > 0
