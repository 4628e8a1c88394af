"""Ranks with fewer batches take part in all operations of the others, also in those of optimizers and users."""

import numpy as np
import pytest

import retrograd as rg
import retrograd.distributed as dist
from retrograd.distributed.algorithms.join import Join, Joinable, JoinHook
from retrograd.distributed.optim import ZeroRedundancyOptimizer as Zero
from retrograd.nn.parallel import DistributedDataParallel as Replicas


def values(seed, *shape):
    return rg.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def model():
    found = rg.nn.Sequential(rg.nn.Linear(4, 7), rg.nn.Tanh(), rg.nn.Linear(7, 2)).double()
    with rg.no_grad():
        for i, p in enumerate(found.parameters()):
            p.copy_(values(i, *p.shape))
    return found


BATCHES = [values(10 + i, 3, 4) for i in range(6)]
SHARES = [BATCHES[:3], BATCHES[3:4], BATCHES[4:]]


class Sums(Joinable, JoinHook):
    """Sums a number over the ranks in each iteration."""

    def __init__(self):
        super().__init__()
        self.found, self.last = [], None

    def add(self, number):
        total = rg.tensor(number)
        dist.all_reduce(total)
        self.found.append(total.item())

    def count(self):
        Join.notify_join_context(self)
        self.add(1)

    def join_hook(self, **kwargs):
        self.options = kwargs
        return self

    def main_hook(self):
        self.add(0)

    def post_hook(self, is_last_joiner):
        self.last = is_last_joiner

    @property
    def join_device(self):
        return rg.device("cpu")

    @property
    def join_process_group(self):
        return dist.group.WORLD


@pytest.mark.parametrize("by_all", [True, False])
@pytest.mark.parametrize("as_views", [True, False])
@pytest.mark.parametrize("kind", [rg.optim.Adam, rg.optim.Muon])
def test_divided_optimizers_train_with_uneven_batches_like_one_rank(by_all, as_views, kind):
    bias = kind is not rg.optim.Muon  # which takes matrices only

    def trained_model():
        found = model()
        if not bias:
            for layer in (found[0], found[2]):
                layer.bias = None
        return found

    def script():
        replica = Replicas(trained_model(), bucket_cap_mb=2e-4, gradient_as_bucket_view=as_views)
        optimizer = Zero(replica.parameters(), kind, lr=0.1)
        with Join([replica, optimizer], divide_by_initial_world_size=by_all):
            for x in SHARES[dist.get_rank()]:
                optimizer.zero_grad()
                (replica(x) ** 2).mean().backward()
                optimizer.step()
        return [p.detach().numpy().copy() for p in replica.parameters()]

    whole = trained_model()
    optimizer = kind(whole.parameters(), lr=0.1)
    for step in range(3):
        present = [share[step] for share in SHARES if step < len(share)]
        optimizer.zero_grad()
        (sum((whole(x) ** 2).mean() for x in present) / (3 if by_all else len(present))).backward()
        optimizer.step()
    for found in dist.run_threads(script, 3):
        for mine, p in zip(found, whole.parameters(), strict=True):
            np.testing.assert_allclose(mine, p.detach().numpy(), rtol=1e-10, atol=1e-12)


def test_objects_of_users_are_joined_with_models():
    def script():
        rank = dist.get_rank()
        replica, sums = Replicas(model()), Sums()
        with Join([sums, replica], divide_by_initial_world_size=False):
            for x in SHARES[rank]:
                sums.count()
                replica(x).sum().backward()
        sums.count()  # after it, nothing is joined
        return sums.found, sums.last, sums.options

    for rank, (found, last, options) in enumerate(dist.run_threads(script, 3)):
        assert found == [3, 2, 1, 3]
        assert last == (rank == 0)
        assert options == {"divide_by_initial_world_size": False}


def test_ranks_stop_together_if_one_may_not_end_early():
    def script():
        sums = Sums()

        def train():
            with Join([sums], throw_on_early_termination=True):
                for _ in SHARES[dist.get_rank()]:
                    sums.count()

        with pytest.raises(RuntimeError, match="join: rank 1 has no more batches"):
            train()
        return sums.found

    assert dist.run_threads(script, 3) == [[3], [3], [3]]


def test_a_model_averages_over_all_ranks_again_after_an_error_in_the_context():
    def script():
        replica = Replicas(rg.nn.Linear(1, 1))

        def train():
            with Join([replica], throw_on_early_termination=True, divide_by_initial_world_size=False):
                for _ in range(1 + dist.get_rank()):
                    replica(rg.ones(1, 1)).sum().backward()

        with pytest.raises(RuntimeError, match="no more batches"):
            train()
        replica.zero_grad()
        replica(rg.ones(1, 1)).sum().backward()
        return replica.module.bias.grad.item()

    assert dist.run_threads(script, 2) == [1.0, 1.0]


def test_what_cannot_be_joined_is_refused():
    def script():
        with pytest.raises(ValueError, match="at least one joinable"):
            Join([])
        with pytest.raises(TypeError, match="expected Joinable objects, got SGD"):
            Join([rg.optim.SGD([rg.ones(1, requires_grad=True)], lr=1.0)])
        with pytest.raises(NotImplementedError, match="shard_gradients"):
            Join([Zero([rg.ones(1, requires_grad=True)], rg.optim.SGD, shard_gradients=True, lr=1.0)])
        with pytest.raises(ValueError, match="multiple process groups"):
            Join([Sums(), Replicas(model(), process_group=dist.new_group([0]))])
        with pytest.raises(TypeError, match="abstract"):
            Joinable()

    dist.run_threads(script, 1)
