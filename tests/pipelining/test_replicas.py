"""Replicas of a pipeline train as the unsplit model does on the whole batch."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn
from retrograd.nn.functional import cross_entropy, mse_loss
from retrograd.optim import AdamW
from retrograd.pipelining import Pipeline, PipelineError, make_schedule, with_recomputation
from retrograd.pipelining.checkpoint import Checkpoints
from retrograd.pipelining.schedules import one_directional
from retrograd.pipelining.transports.failures import causes
from retrograd.pipelining.transports.interface import PeerLost

from . import replica_cases as cases
from .rank_threads import run_ranks

NAMES = sorted(kind.name for kind in one_directional())


def make_pipeline(model, **options):
    defaults = {"ranks": 2, "replicas": 2, "micro_batches": 5, "loss_fn": cross_entropy, "transport": "threads"}
    return Pipeline(model, 4, **(defaults | options))


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("replicas", [2, 3])
@pytest.mark.parametrize("schedule", NAMES)
def test_loss_and_gradients_are_those_of_the_whole_batch(schedule, replicas, deterministic):
    expected, model = cases.unsplit(cases.make()), cases.make()
    pipeline = make_pipeline(model, schedule=schedule, replicas=replicas, deterministic=deterministic)
    cases.assert_same(cases.run(lambda x, y: pipeline.step(x, target=y), model), expected)
    assert len(pipeline.timeline.by_rank()) == 2 * replicas


@pytest.mark.skipif("RETROGRAD_PURE" in os.environ, reason="the compiled pass has run it")
def test_over_mpi_every_process_has_the_gradients_of_the_whole_batch():
    pytest.importorskip("mpi4py")
    command = [sys.executable, "-m", "retrograd", "run", "-n", "4", cases.__file__]
    output = subprocess.check_output(command, text=True, timeout=300)
    assert json.loads(output.rpartition("REPLICAS")[2]) == [{}] * 4


def test_deterministic_replicas_have_the_bits_of_one_process():
    gradients = []
    for replicas in (1, 2):
        model = cases.make()
        pipeline = make_pipeline(model, replicas=replicas, deterministic=True)
        gradients.append(cases.run(lambda x, y, pipeline=pipeline: pipeline.step(x, target=y), model))
    (losses, one), (others, two) = gradients
    assert losses == others
    assert {name: g is None or g.tolist() for name, g in one.items()} == {
        name: g is None or g.tolist() for name, g in two.items()
    }


def test_a_searched_schedule_is_that_of_each_replica_and_gives_the_same_numbers():
    expected, model = cases.unsplit(cases.make()), cases.make()
    pipeline = make_pipeline(model, schedule="auto")
    cases.assert_same(cases.run(lambda x, y: pipeline.step(x, target=y), model), expected)
    assert pipeline.found is not None
    assert len(pipeline.program()) == 4


@pytest.mark.parametrize(("saved", "resumed"), [((2, 2), (1, 4)), ((1, 1), (2, 2)), ((3, 1), (2, 2))])
def test_a_checkpoint_of_replicas_is_resumed_by_any_other_number_of_replicas_and_ranks(tmp_path, saved, resumed):
    def train(replicas, ranks, steps):
        model = cases.make()
        pipeline = make_pipeline(model, replicas=replicas, ranks=ranks, deterministic=True)
        optimizer = AdamW(model.parameters(), lr=0.05)
        restored = Checkpoints(tmp_path).restore(pipeline, optimizer)
        losses = []
        for step in range(restored.step + 1 if restored else 0, steps):
            rg.manual_seed(step)
            losses.append(pipeline.step(*cases.batch()[:1], target=cases.batch()[1]).item())
            optimizer.step()
            optimizer.zero_grad()
        return losses, pipeline, optimizer

    losses, pipeline, optimizer = train(*saved, 2)
    Checkpoints(tmp_path).save(1, pipeline, optimizer)
    more, _, _ = train(*resumed, 4)
    model = cases.make()
    optimizer, undisturbed = AdamW(model.parameters(), lr=0.05), []
    for step in range(4):
        rg.manual_seed(step)
        x, y = cases.batch()
        loss = cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        undisturbed.append(loss.item())
    np.testing.assert_allclose(losses + more, undisturbed, rtol=1e-12)


def constant_layers(count):
    """Return layers with the same numbers on all ranks, whose threads share the default generator."""
    layers = [nn.Linear(3, 3) for _ in range(count)]
    for number, p in enumerate(q for layer in layers for q in layer.parameters()):
        nn.init.constant_(p, 0.1 * number)
    return layers


@pytest.mark.parametrize("leaver", range(4))
def test_where_the_script_of_a_replica_s_rank_ends_all_others_end_with_its_loss(leaver):
    def script(rank, group):
        pipeline = Pipeline(constant_layers(2), replicas=2, micro_batches=4, loss_fn=mse_loss)
        x = rg.ones(8, 3)
        pipeline.step(x, target=x)
        if rank == leaver:
            return "left"
        with pytest.raises(PipelineError, match=f"the script of rank {leaver} is over") as raised:
            pipeline.step(x, target=x)
        assert any(isinstance(cause, PeerLost) for cause in causes(raised.value))
        return "lost it"

    assert sorted(run_ranks(4, script)) == ["left", "lost it", "lost it", "lost it"]


def test_a_failure_of_one_replica_ends_the_step_on_all_and_the_next_step_is_clean_on_processes():
    def script(rank, group):
        stages = constant_layers(2)
        pipeline = Pipeline(stages, replicas=2, micro_batches=4, loss_fn=mse_loss)
        x = rg.ones(8, 3)
        first = pipeline.step(x, target=x).item()
        if rank == 3:
            stages[1].register_forward_hook(lambda *_: 1 / 0)
        with pytest.raises(PipelineError, match="rank 3, stage 1"):
            pipeline.step(x, target=x)
        stages[1]._forward_hooks.clear()
        return first == pipeline.step(x, target=x).item()

    assert run_ranks(4, script) == [True] * 4


def test_a_given_schedule_is_that_of_each_replica():
    expected, model = cases.unsplit(cases.make()), cases.make()
    schedule = with_recomputation(make_schedule("1f1b", 4, 2, ranks=2), stages=range(4))
    pipeline = make_pipeline(model, schedule=schedule, micro_batches=4)
    cases.assert_same(cases.run(lambda x, y: pipeline.step(x, target=y), model), expected)


def test_a_list_of_modules_has_replicas_in_its_current_mode():
    layers = [nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)), nn.Linear(4, 2)]
    model, (x, y) = nn.Sequential(*layers), cases.first_share()
    pipeline = Pipeline(layers, replicas=2, micro_batches=2, loss_fn=mse_loss, transport="threads")
    pipeline.step(x, target=y)
    mean = layers[0][1].running_mean.clone()
    model.eval()
    assert np.allclose(pipeline.predict(x).numpy(), model(x).detach().numpy(), atol=1e-6)
    assert rg.equal(layers[0][1].running_mean, mean)


def test_buffers_are_those_of_the_first_replica():
    (x, y), model, expected = cases.first_share(), cases.normed(), cases.normed()
    for part in x[:4].chunk(2):
        expected(part)
    pipeline = Pipeline(model, 2, replicas=2, micro_batches=4, loss_fn=mse_loss, transport="threads")
    pipeline.step(x, target=y)
    for mine, wanted in zip(model.buffers(), expected.buffers(), strict=True):
        np.testing.assert_allclose(mine.numpy(), wanted.numpy(), rtol=1e-5)


def test_all_replicas_share_predictions_and_microbatches_that_do_not_fill_them():
    model = cases.make().eval()
    pipeline = make_pipeline(model, replicas=3, micro_batches=3)
    for rows in (1, 2, 7):
        x, _ = cases.batch(rows)
        np.testing.assert_allclose(pipeline.predict(x).numpy(), model(x).detach().numpy(), rtol=1e-12)
    x, y = cases.batch(7)
    loss = pipeline.step_microbatches([(x,)], target_mbs=[y])  # two replicas have none
    found = [None if p.grad is None else p.grad.tolist() for p in model.parameters()]
    model.zero_grad()
    expected = cross_entropy(model(x), y)
    expected.backward()
    np.testing.assert_allclose(loss.item(), expected.item(), rtol=1e-12)
    for mine, p in zip(found, model.parameters(), strict=True):
        assert (mine is None) == (p.grad is None)
        assert mine is None or np.allclose(mine, p.grad.numpy(), rtol=1e-12, atol=1e-14)


def test_an_error_on_a_replica_names_its_rank_and_the_next_step_is_clean():
    class Fuse(nn.Module):
        def forward(self, x):
            if x.max() > 90:
                raise KeyError("blown")
            return x

    modules = [nn.Linear(2, 2), Fuse()]
    with rg.no_grad():
        modules[0].weight.copy_(rg.eye(2))
    pipeline = Pipeline(modules, replicas=2, micro_batches=2, loss_fn=mse_loss, transport="threads")
    x = rg.tensor([[1.0, 1.0], [100.0, 1.0]])
    with pytest.raises(PipelineError, match=r"rank 3, stage 1, microbatch 1, action F1.1: KeyError: 'blown'"):
        pipeline.step(x, target=x)
    assert modules[0].weight.grad is None
    assert pipeline.step(x[:1].expand(2, 2), target=x).item() > 0


def test_numbers_of_replicas_that_cannot_be_are_refused():
    for wrong in (0, 1.5, -1):
        with pytest.raises(ValueError, match="replicas must be an integer of at least 1"):
            make_pipeline(cases.make(), replicas=wrong)
    with pytest.raises(ValueError, match="6 replicas need 6 microbatches or more, got 5"):
        make_pipeline(cases.make(), replicas=6)


def test_a_planned_step_of_replicas_ends_as_that_of_one_replica_does():
    pipeline = make_pipeline(cases.make(), micro_batches=4)
    x, y = cases.batch(8)
    costs = pipeline.costs(x, target=y)
    planned = pipeline.planned(costs)
    alone = make_pipeline(cases.make(), replicas=1, micro_batches=2)
    alone.step(x, target=y)
    assert planned.ranks == 4
    assert planned.span == pytest.approx(alone.planned(costs).span, rel=1e-12)
