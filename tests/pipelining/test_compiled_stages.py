"""Pipelines whose stages are compiled have the losses, gradients and states of eager stages, to the last bit."""

import warnings

import pytest

import retrograd as rg
from retrograd import nn
from retrograd.nn.functional import cross_entropy
from retrograd.pipelining import Pipeline, make_schedule, with_offload, with_recomputation
from retrograd.pipelining.schedules import SCHEDULES
from retrograd.pipelining.split.manual_stages import stages_of

from . import matrix

RANKS, MICRO_BATCHES = 2, 3


def train(schedule, compile, model=None, **options):
    """Return the bits of losses, gradients and states in steps of a pipeline, with a prediction between them."""
    model = model or matrix.model_for(schedule)
    options = {"ranks": RANKS, "micro_batches": MICRO_BATCHES, "loss_fn": cross_entropy, **options}
    pipeline = Pipeline(model, 2 * RANKS, schedule=schedule, compile=compile, transport="threads", **options)
    optimizer, (x, y), found = rg.optim.SGD(model.parameters(), lr=0.5), matrix.data(), []
    rg.manual_seed(5)
    for step in range(4):
        found.append(pipeline.step(x, target=y).numpy().tobytes())
        found += [None if p.grad is None else p.grad.numpy().tobytes() for p in model.parameters()]
        optimizer.step()
        optimizer.zero_grad()
        if step == 1:
            model.eval()
            found.append(pipeline.predict(x).numpy().tobytes())
            model.train()
    found += [value.numpy().tobytes() for value in model.state_dict().values()]
    return [*found, rg.rand(2).tolist()], pipeline


def programs(pipeline):
    """Return how many forward and backward programs each stage has."""
    compiled = [stage._compiled._compiled_call for stage in stages_of([pipeline.pipe])]
    return [(len(f.programs), sum(len(p.graph.programs) for p in f.programs if p.graph)) for f in compiled]


@pytest.mark.parametrize("schedule", sorted(SCHEDULES))
def test_every_schedule_has_the_bits_of_eager_stages(schedule):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, pipeline = train(schedule, True)
    assert found == train(schedule, False)[0]
    assert all(forward for forward, _ in programs(pipeline))


def test_forward_and_backward_passes_run_by_programs():
    _, pipeline = train("1f1b", True)
    assert all(forward and backward for forward, backward in programs(pipeline))


def test_random_numbers_and_states_of_buffers_are_those_of_eager_stages():
    def model():
        rg.manual_seed(0)
        layers = [nn.Embedding(7, 6), *[nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Dropout(0.5)] * 3, nn.Linear(6, 7)]
        return nn.Sequential(*layers)

    assert train("1f1b", True, model())[0] == train("1f1b", False, model())[0]


@pytest.mark.parametrize("reduce", [with_recomputation, with_offload])
@pytest.mark.filterwarnings("ignore:compile.*saved-tensor hooks")
def test_repeated_and_offloaded_forward_passes_have_the_same_bits(reduce):
    schedule = reduce(make_schedule("1f1b", 2 * RANKS, MICRO_BATCHES, ranks=RANKS), [0, 2])
    assert train(schedule, True)[0] == train(schedule, False)[0]


def test_replicas_have_the_same_bits():
    assert train("1f1b", True, replicas=2)[0] == train("1f1b", False, replicas=2)[0]


def test_given_modules_are_compiled_as_stages_and_stay_as_they_are():
    def train_modules(compile):
        rg.manual_seed(0)
        parts = [nn.Sequential(nn.Linear(3, 4), nn.Tanh()), nn.Sequential(nn.Linear(4, 2), nn.Tanh())]
        pipeline = Pipeline(parts, micro_batches=2, loss_fn=nn.functional.mse_loss, compile=compile)
        losses = [pipeline.step(rg.ones(4, 3), target=rg.ones(4, 2)).item() for _ in range(3)]
        return losses, [p.grad.tolist() for part in parts for p in part.parameters()], [vars(part) for part in parts]

    eager, compiled = train_modules(False), train_modules(True)
    assert eager[:2] == compiled[:2]
    assert [[*fields] for fields in eager[2]] == [[*fields] for fields in compiled[2]]


def test_parameters_that_stages_share_have_one_alias_in_all_steps():
    """Otherwise each step would compile the stages again."""
    _, pipeline = train("1f1b", True)
    assert programs(pipeline) == [(1, 1)] * 4
