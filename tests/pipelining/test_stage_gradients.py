"""Gradients of a pipeline over processes are clipped, scaled and divided as those of the unsplit model."""

import gc

import numpy as np
import pytest

import retrograd as rg
import retrograd.distributed as dist
from retrograd import nn
from retrograd.distributed.optim import ZeroRedundancyOptimizer
from retrograd.nn.functional import cross_entropy
from retrograd.pipelining import Pipeline

LAYOUTS = [(1, 2), (2, 1), (2, 2), (1, 4), (4, 1)]  # replicas and ranks of each


class Tied(nn.Module):
    """The first and the last stage share a weight; one is frozen."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.blocks = nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 6), nn.Tanh())
        self.out = nn.Linear(6, 11, bias=False)
        self.out.weight = self.embedding.weight
        self.blocks[0].bias.requires_grad_(False)

    def forward(self, x):
        return self.out(self.blocks(self.embedding(x)))


def loss_of(outputs, targets):
    return cross_entropy(outputs.flatten(0, 1), targets.flatten())


def make():
    model, source = Tied().double(), np.random.default_rng(0)
    with rg.no_grad():
        for p in model.parameters():
            p.copy_(rg.from_numpy(source.standard_normal(p.shape)))
    return model


def batch(number):
    source = np.random.default_rng(number)
    return rg.from_numpy(source.integers(11, size=(8, 3))), rg.from_numpy(source.integers(11, size=(8, 3)))


def train(model, step, optimizer, between):
    """Return the results of a function between gradients and update in three steps, and the losses."""
    found = []
    for number in range(3):
        optimizer.zero_grad()
        loss = step(*batch(number))
        found.append((loss.item(), between(model, optimizer)))
        optimizer.step()
    return found


def unsplit(model):
    def step(x, y):
        loss = loss_of(model(x), y)
        loss.backward()
        return loss

    return step


def over_processes(layout, optimizer_of, between):
    """Return what `train` returns, and the parameters, on each rank."""
    replicas, ranks = layout

    def script():
        model = make()
        pipeline = Pipeline(model, ranks, ranks=ranks, replicas=replicas, micro_batches=4, loss_fn=loss_of)
        mesh = dist.init_device_mesh("cpu", (replicas, ranks))
        optimizer = optimizer_of(model.parameters(), mesh.get_group(0))
        found = train(model, lambda x, y: pipeline.step(x, target=y), optimizer, between)
        return found, {name: p.numpy().copy() for name, p in pipeline.state_dict().items()}

    return dist.run_threads(script, replicas * ranks)


def adam(params, group):
    return rg.optim.Adam(params, lr=0.05)


def zero_1(params, group):
    return ZeroRedundancyOptimizer(params, rg.optim.Adam, group, lr=0.05)


def zero_2(params, group):
    return ZeroRedundancyOptimizer(params, rg.optim.Adam, group, shard_gradients=True, lr=0.05)


@pytest.mark.parametrize("norm_type", [2.0, 1.0, float("inf")])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("optimizer_of", [adam, zero_1, zero_2])
def test_gradients_are_clipped_by_the_norm_over_all_stages(layout, optimizer_of, norm_type):
    def clip(model, optimizer):
        return nn.utils.clip_grad_norm_(model.parameters(), 0.5, norm_type).item()

    model = make()
    expected = train(model, unsplit(model), rg.optim.Adam(model.parameters(), lr=0.05), clip)
    for found, state in over_processes(layout, optimizer_of, clip):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        for name, value in model.state_dict().items():
            np.testing.assert_allclose(state[name], value.numpy(), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_ranks_skip_a_step_with_gradients_that_are_infinite_in_one_stage(layout):
    def script():
        model = make()
        pipeline = Pipeline(model, layout[1], ranks=layout[1], replicas=layout[0], micro_batches=4, loss_fn=loss_of)
        optimizer, scaler = rg.optim.SGD(model.parameters(), lr=0.1), rg.amp.GradScaler("cpu", init_scale=4.0)
        pipeline.step(*batch(0)[:1], target=batch(0)[1])
        last = model.blocks[2].bias
        if last.grad is not None:
            last.grad[0] = float("inf")
        before = [p.detach().clone() for p in model.parameters()]
        scaler.step(optimizer)
        scaler.update()
        return scaler.get_scale(), all(rg.equal(p, q) for p, q in zip(model.parameters(), before, strict=True))

    assert dist.run_threads(script, layout[0] * layout[1]) == [(2.0, True)] * (layout[0] * layout[1])


@pytest.mark.parametrize("optimizer_of", [zero_1, zero_2])
def test_an_optimizer_trains_with_a_pipeline_and_without(optimizer_of):
    def script():
        model = make()
        pipeline = Pipeline(model, 1, replicas=2, micro_batches=2, loss_fn=loss_of)
        optimizer = optimizer_of(model.parameters(), None)
        steps = [lambda x, y: pipeline.step(x, target=y), unsplit(model)]
        losses = []
        for number in range(4):
            optimizer.zero_grad()
            losses.append(steps[number % 2](*batch(0)).item())
            optimizer.step()
        return losses

    model = make()
    optimizer = rg.optim.Adam(model.parameters(), lr=0.05)
    expected = []
    for _ in range(4):
        optimizer.zero_grad()
        expected.append(unsplit(model)(*batch(0)).item())
        optimizer.step()
    for losses in dist.run_threads(script, 2):
        np.testing.assert_allclose(losses, expected, rtol=1e-12)


EXCHANGES = {
    "ZeRO 1": zero_1,
    "ZeRO 2": zero_2,
    "DDP": lambda params, group: nn.parallel.DistributedDataParallel(nn.ParameterList(params), process_group=group),
}


@pytest.mark.parametrize("call", ["step", "step_microbatches", "train_steps"])
@pytest.mark.parametrize("layout", [(1, 2), (2, 2)])
@pytest.mark.parametrize("exchange", EXCHANGES)
def test_an_exchange_among_ranks_with_other_stages_is_refused_before_anything_runs(exchange, layout, call):
    replicas, ranks = layout

    def script():
        model, (x, y) = make(), batch(0)
        pipeline = Pipeline(model, ranks, ranks=ranks, replicas=replicas, micro_batches=2, loss_fn=loss_of)
        made = EXCHANGES[exchange](model.parameters(), None)
        before = {name: value.clone() for name, value in model.state_dict().items()}
        calls = {
            "step": lambda: pipeline.step(x, target=y),
            "step_microbatches": lambda: pipeline.step_microbatches([(x,)], target_mbs=[y]),
            "train_steps": lambda: pipeline.train_steps([(x, y)], rg.optim.SGD(model.parameters(), lr=0.1)),
        }
        with pytest.raises(ValueError, match=r"^Pipeline: \w+ exchanges embedding.weight among the ranks") as refused:
            calls[call]()
        assert all(p.grad is None for p in model.parameters())
        assert all(rg.equal(value, before[name]) for name, value in model.state_dict().items())
        assert made is not None
        return str(refused.value)

    for rank, message in enumerate(dist.run_threads(script, replicas * ranks)):
        peers = list(range(rank % ranks, replicas * ranks, ranks))
        assert f"among the ranks {list(range(replicas * ranks))}, but" in message
        assert f"the stages of this rank are on {peers};" in message


def test_an_optimizer_that_is_gone_leaves_the_pipeline_alone():
    def script():
        model, (x, y) = make(), batch(0)
        pipeline = Pipeline(model, 2, micro_batches=2, loss_fn=loss_of)
        optimizer = zero_1(model.parameters(), None)
        with pytest.raises(ValueError, match="exchanges"):
            pipeline.step(x, target=y)
        del optimizer
        gc.collect()
        return pipeline.step(x, target=y).item()

    assert len(set(dist.run_threads(script, 2))) == 1
