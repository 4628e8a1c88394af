"""Models for replicas of a pipeline, and the results of the unsplit model.

As a script it checks a mesh of two replicas of two ranks in every process, and the first rank prints the differences:
`retrograd run -n 4 replica_cases.py`.
"""

import json
import traceback

import numpy as np

import retrograd as rg
import retrograd.distributed as dist
from retrograd import nn
from retrograd.nn.functional import cross_entropy, mse_loss
from retrograd.pipelining import Pipeline
from retrograd.pipelining.schedules import one_directional

REPLICAS = RANKS = 2


class Tied(nn.Module):
    """A model with dropout, a weight that two stages use, one that no stage uses, and a frozen one."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(7, 6)
        self.layers = nn.ModuleList([nn.Linear(6, 6) for _ in range(4)])
        self.unused = nn.Linear(2, 2)
        self.scale = nn.Parameter(rg.full((6,), 0.5), requires_grad=False)
        self.dropout = nn.Dropout(0.3)

    def forward(self, ids):
        h = start = self.embed(ids)
        for layer in self.layers:
            h = self.dropout(layer(h * self.scale).tanh())
        return (h + start) @ self.embed.weight.T


def make(kind=Tied):
    """Return the same model in every process."""
    rg.manual_seed(0)
    return kind().to(rg.float64)


def batch(rows=7):
    """Return the same batch in every process."""
    r = np.random.default_rng(1)
    return rg.tensor(r.integers(0, 7, rows)), rg.tensor(r.integers(0, 7, rows))


def run(step, model):
    """Return the losses of two steps, whose gradients are summed, and the gradients by name."""
    rg.manual_seed(3)
    losses = [step(*batch()).item() for _ in range(2)]
    return losses, {name: p.grad for name, p in model.named_parameters()}


def unsplit(model):
    """Return the same without a pipeline."""

    def step(x, y):
        loss = cross_entropy(model(x), y)
        loss.backward()
        return loss

    return run(step, model)


def assert_same(found, expected, names=None):
    """Check losses, and the gradients of these names, by default of all."""
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    assert found[1].keys() == expected[1].keys()
    for name in expected[1] if names is None else names:
        mine, wanted = found[1][name], expected[1][name]
        assert (mine is None) == (wanted is None), name
        if wanted is not None:
            np.testing.assert_allclose(mine.numpy(), wanted.numpy(), rtol=1e-12, atol=1e-12, err_msg=name)


def normed():
    """Return the same model with running means in every process."""
    rg.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.BatchNorm1d(6), nn.Linear(6, 2))


def first_share():
    """Return the examples of the first of two replicas that the running means are those of."""
    r = np.random.default_rng(4)
    return rg.tensor(r.normal(size=(8, 4)), dtype=rg.float32), rg.zeros(8, 2)


def check_mesh(schedule, deterministic):
    """Check the loss and the gradients of this process's stages."""
    expected, model = unsplit(make()), make()
    pipeline = Pipeline(
        model, 4, replicas=REPLICAS, schedule=schedule, micro_batches=5, loss_fn=cross_entropy,
        deterministic=deterministic,
    )  # fmt: skip
    found = run(lambda x, y: pipeline.step(x, target=y), model)
    replica, stage = dist.init_device_mesh("cpu", (REPLICAS, RANKS)).get_coordinate()
    assert pipeline.rank == replica * RANKS + stage
    names = [name for name, home in pipeline.homes().items() if home == stage]
    assert_same(found, expected, [name for name in names if name in found[1] and found[1][name] is not None])
    assert sum(found[1][name] is not None for name in names) > 1
    state = pipeline.state_dict()
    assert list(state) == list(model.state_dict())
    bits = pipeline.on_ranks(lambda rank: [found[1][name] for name in found[1]])
    for one, other in zip(bits[stage], bits[stage + RANKS], strict=True):
        assert (one is None) == (other is None)
        assert one is None or one.tolist() == other.tolist()


def check_buffers():
    """Check that the running means of all processes are those of the first replica."""
    (x, y), model, expected = first_share(), normed(), normed()
    for part in x[:4].chunk(2):
        expected(part)
    pipeline = Pipeline(model, 2, replicas=REPLICAS, micro_batches=4, loss_fn=mse_loss)
    pipeline.step(x, target=y)
    homes = pipeline.homes()
    for name, buffer in model.named_buffers():
        if homes[name] == pipeline.rank % RANKS:
            np.testing.assert_allclose(buffer.numpy(), dict(expected.named_buffers())[name].numpy(), rtol=1e-5)


def main():
    """Print the differences, by check."""
    dist.init_process_group()
    checks = {kind.name: lambda name=kind.name: check_mesh(name, False) for kind in one_directional()}
    checks["deterministic"] = lambda: check_mesh("zbv", True)
    checks["buffers"] = check_buffers
    found = {}
    for name, check in checks.items():
        try:
            check()
        except Exception:
            found[name] = traceback.format_exc()
    everything = [None] * dist.get_world_size()
    dist.all_gather_object(everything, found)
    if dist.get_rank() == 0:
        print("REPLICAS", json.dumps(everything))


if __name__ == "__main__":
    main()
