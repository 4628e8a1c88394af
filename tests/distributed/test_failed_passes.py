"""After a backward pass that has failed on all ranks, the next one exchanges gradients as if there had been none."""

import numpy as np
import pytest

import retrograd as rg
import retrograd.distributed as dist
from retrograd.distributed.fsdp import full_state_dict, fully_shard
from retrograd.distributed.optim import ZeroRedundancyOptimizer as Zero
from retrograd.nn.parallel import DistributedDataParallel as Replicas


class Failing(rg.autograd.Function):
    @staticmethod
    def forward(ctx, x, fails):
        ctx.fails = fails
        return x * 1

    @staticmethod
    def backward(ctx, g):
        if ctx.fails:
            raise ZeroDivisionError("provoked")
        return g, None


class Model(rg.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = rg.nn.Linear(3, 4).double(), rg.nn.Linear(4, 2).double()
        for number, p in enumerate(self.parameters()):
            p.data = rg.from_numpy(np.random.default_rng(number).standard_normal(p.shape))

    def forward(self, x, fails=False):
        return self.second(Failing.apply(self.first(x), fails))  # the second layer has its gradients by then


def divided(**options):
    def make(model):
        for layer in (model.first, model.second):
            fully_shard(layer, **options)
        return fully_shard(model, **options), rg.optim.SGD(model.parameters(), lr=0.1)

    return make


def replicated(**options):
    return lambda model: (Replicas(model, **options), rg.optim.SGD(model.parameters(), lr=0.1))


def without_state(model):
    return model, Zero(model.parameters(), rg.optim.SGD, shard_gradients=True, lr=0.1)


def train(model, forward, optimizer, x, fails):
    for _ in range(3):
        if fails:
            with pytest.raises(ZeroDivisionError, match="provoked"):
                forward(x, True).pow(2).mean().backward()
        optimizer.zero_grad()
        forward(x).pow(2).mean().backward()
        optimizer.step()
    return {name: p.numpy() for name, p in full_state_dict(model).items()}


@pytest.mark.parametrize(
    "make",
    [
        replicated(),
        replicated(bucket_cap_mb=1e-6),
        replicated(gradient_as_bucket_view=True),
        replicated(find_unused_parameters=True),
        replicated(static_graph=True),
        without_state,
        divided(),
        divided(reshard_after_forward=False),
    ],
    ids=["replicas", "small buckets", "views", "unused", "static", "ZeRO 2", "fully_shard", "fully_shard, kept"],
)
def test_the_pass_after_one_that_failed_exchanges_all_gradients(make):
    x = rg.from_numpy(np.random.default_rng(7).standard_normal((4, 3)))
    whole = Model()
    expected = train(whole, whole, rg.optim.SGD(whole.parameters(), lr=0.1), x, False)

    def script():
        model = Model()
        return train(model, *make(model), x.chunk(2)[dist.get_rank()], True)

    for found in dist.run_threads(script, 2):
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-12, err_msg=name)
