"""Replicas with averaged gradients train like one model on the whole batch."""

import numpy as np
import pytest

import retrograd as rg
import retrograd.distributed as dist
from retrograd.nn.parallel import DistributedDataParallel as Replicas
from retrograd.pipelining.transports import RankMismatchError
from retrograd.utils.data import DistributedSampler
from retrograd.utils.data.distributed import DistributedSampler as SamplerOfModule

from ..pipelining.rank_threads import run_ranks


def values(seed, *shape):
    return rg.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def model(seed, *more):
    made = rg.nn.Sequential(rg.nn.Linear(4, 6), rg.nn.Tanh(), rg.nn.Linear(6, 2), *more).double()
    for i, p in enumerate(made.parameters()):
        p.data = values(100 * seed + i, *p.shape)
    return made


def gradients(module):
    return [None if p.grad is None else p.grad.numpy().copy() for p in module.parameters()]


def of_whole_batch(x):
    whole = model(0)
    (whole(x) ** 2).mean().backward()
    return gradients(whole)


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("cap", [None, 1e-4], ids=["one bucket", "a bucket for each parameter"])
def test_gradients_are_those_of_the_whole_batch_on_every_rank(ranks, cap):
    x = values(7, 12, 4)

    def script(rank, group):
        replica = Replicas(model(rank), process_group=group, bucket_cap_mb=cap)
        (replica(x.chunk(ranks)[rank]) ** 2).mean().backward()
        return gradients(replica)

    for found in run_ranks(ranks, script):
        for mine, expected in zip(found, of_whole_batch(x), strict=True):
            np.testing.assert_allclose(mine, expected, rtol=1e-12, atol=1e-14)


def test_all_replicas_begin_with_the_parameters_of_rank_0_and_have_pytorchs_names():
    def script(rank, group):
        return Replicas(model(rank), process_group=group).state_dict()

    first, second = run_ranks(2, script)
    assert list(first) == ["module.0.weight", "module.0.bias", "module.2.weight", "module.2.bias"]
    for name, value in first.items():
        assert rg.equal(value, second[name])
        assert rg.equal(value, model(0).state_dict()[name.removeprefix("module.")])


def test_without_init_sync_each_replica_keeps_its_parameters():
    def script(rank, group):
        return Replicas(model(rank), process_group=group, init_sync=False).module[0].weight.detach()

    first, second = run_ranks(2, script)
    assert rg.equal(first, model(0)[0].weight)
    assert rg.equal(second, model(1)[0].weight)


@pytest.mark.parametrize("broadcast", [True, False])
def test_buffers_of_rank_0_are_those_of_all_ranks_before_each_call(broadcast):
    def script(rank, group):
        norm, before = rg.nn.BatchNorm1d(2).double(), []
        norm.register_forward_pre_hook(lambda norm, _: before.append(norm.running_mean.clone()))
        replica = Replicas(model(0, norm), process_group=group, broadcast_buffers=broadcast)
        for step in range(2):
            replica(values(10 * step + rank, 5, 4)).sum().backward()
        return before[1]

    first, second = run_ranks(2, script)
    assert rg.equal(first, second) is broadcast


def test_no_sync_keeps_gradients_on_their_rank_until_the_next_pass_averages_the_sums():
    x = values(7, 8, 4)

    def script(rank, group):
        replica = Replicas(model(0), process_group=group)
        first, second = x.chunk(2)[rank].chunk(2)
        with replica.no_sync():
            (replica(first) ** 2).mean().backward()
        alone = gradients(replica)
        (replica(second) ** 2).mean().backward()
        return alone, gradients(replica)

    (alone, both), (other_alone, other_both) = run_ranks(2, script)
    assert not np.allclose(alone[0], other_alone[0])
    for mine, other, expected in zip(both, other_both, of_whole_batch(x), strict=True):
        np.testing.assert_array_equal(mine, other)
        np.testing.assert_allclose(mine, 2 * expected, rtol=1e-12, atol=1e-14)


class Branches(rg.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = (rg.nn.Linear(1, 1, bias=False).double() for _ in range(3))

    def forward(self, x, use):
        return getattr(self, use)(x)


def test_a_parameter_without_gradient_is_an_error_on_every_rank():
    messages = []

    def script(rank, group):
        replica = Replicas(Branches(), process_group=group)
        out = replica(rg.ones(1, 1, dtype=rg.float64), "first")
        if rank == 0:
            out = out + replica.module.second(out) + replica.module.third(out)
        with pytest.raises(RuntimeError, match="Expected to have finished reduction: rank 1 has no gradient of") as e:
            out.sum().backward()
        messages.append(str(e.value))

    run_ranks(2, script)
    assert len(messages) == 2
    assert "no gradient of second.weight, third.weight; use these" in messages[0]


def test_with_find_unused_parameters_they_count_as_zero_and_those_that_nobody_used_keep_their_gradient():
    def script(rank, group):
        replica = Replicas(Branches(), process_group=group, find_unused_parameters=True)
        replica(rg.full((1, 1), 4.0, dtype=rg.float64), "first" if rank == 0 else "second").sum().backward()
        return gradients(replica)

    for first, second, third in run_ranks(2, script):
        assert (first.item(), second.item(), third) == (2.0, 2.0, None)


def test_replicas_of_different_models_are_refused_on_every_rank():
    def script(rank, group):
        with pytest.raises(RankMismatchError, match=r"  parameter 0: weight: float32\[2, 2\], .* on rank 0;"):
            Replicas(rg.nn.Linear(2, 2 + rank), process_group=group)
        return True

    assert run_ranks(2, script) == [True, True]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"device_ids": [0]}, ValueError, "device_ids and output_device must be None"),
        ({"mixed_precision": object()}, NotImplementedError, "mixed_precision is not supported"),
        ({}, ValueError, "Default process group has not been initialized"),
    ],
)
def test_what_a_replica_cannot_do_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        Replicas(model(0), **options)


def test_a_module_that_cannot_learn_is_refused():
    dist.init_process_group()
    try:
        with pytest.raises(RuntimeError, match="not needed when a module doesn't have any parameters"):
            Replicas(rg.nn.ReLU())
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize("options", [{}, {"gradient_as_bucket_view": True}, {"static_graph": True}], ids=str)
@pytest.mark.parametrize("ranks", [2, 4])
def test_training_steps_follow_those_of_one_model_on_the_whole_batch(ranks, options):
    x = values(7, 16, 4)

    def train(module, forward, batch):
        optimizer, losses = rg.optim.Adam(module.parameters(), lr=0.05), []
        for step in range(4):
            optimizer.zero_grad(set_to_none=step % 2 == 0)
            loss = (forward(batch) ** 2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, [p.detach().numpy().copy() for p in module.parameters()]

    def script(rank, group):
        replica = Replicas(model(rank), process_group=group, bucket_cap_mb=2e-4, **options)
        return train(replica, replica, x.chunk(ranks)[rank])

    whole = model(0)
    losses, expected = train(whole, whole, x)
    found = run_ranks(ranks, script)
    np.testing.assert_allclose(np.mean([mine for mine, _ in found], 0), losses, rtol=1e-12)
    for _, parameters in found:
        for mine, theirs in zip(parameters, expected, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-14)


def test_buckets_are_reduced_while_the_backward_pass_continues():
    def script(rank, group):
        replica, started = Replicas(model(0), process_group=group, bucket_cap_mb=1e-5), []
        first = replica.module[0].weight
        first.register_hook(lambda g: started.append(replica._gradients._started))
        replica(values(rank, 3, 4)).sum().backward()
        return started

    assert run_ranks(2, script) == [[2], [2]]  # those of the last layer, before the first layer has its gradient


def test_gradients_as_views_of_buckets_have_no_memory_of_their_own():
    def script(rank, group):
        replica = Replicas(model(0), process_group=group, gradient_as_bucket_view=True)
        pointers = []
        for _ in range(2):
            replica.zero_grad()
            replica(values(rank, 3, 4)).sum().backward()
            pointers.append([p.grad.data_ptr() for p in replica.parameters()])
        return pointers

    for first, second in run_ranks(2, script):
        assert first == second
        assert max(first) - min(first) < 8 * 44  # one vector of 44 numbers


def test_a_static_graph_keeps_the_parameters_that_nobody_uses_without_gradient():
    def script(rank, group):
        replica = Replicas(Branches(), process_group=group, static_graph=True)
        for _ in range(3):
            replica.zero_grad()
            out = replica(rg.full((1, 1), 4.0, dtype=rg.float64), "first" if rank == 0 else "second")
            out.sum().backward()
        return gradients(replica)

    for first, second, third in run_ranks(2, script):
        assert (first.item(), second.item(), third) == (2.0, 2.0, None)


@pytest.mark.parametrize("by_all", [True, False])
def test_ranks_with_fewer_batches_take_part_in_the_steps_of_the_others(by_all):
    batches = [values(10 + i, 3, 4) for i in range(5)]
    shares = [batches[:3], batches[3:4], batches[4:]]

    def script(rank, group):
        replica = Replicas(model(rank, rg.nn.BatchNorm1d(2)), process_group=group, bucket_cap_mb=2e-4)
        optimizer = rg.optim.SGD(replica.parameters(), lr=0.1)
        with replica.join(divide_by_initial_world_size=by_all):
            for x in shares[rank]:
                optimizer.zero_grad()
                (replica(x) ** 2).mean().backward()
                optimizer.step()
        return [p.detach().numpy().copy() for p in replica.parameters()]

    whole = model(0, rg.nn.BatchNorm1d(2))
    optimizer = rg.optim.SGD(whole.parameters(), lr=0.1)
    for step in range(3):
        present = [share[step] for share in shares if step < len(share)]
        optimizer.zero_grad()
        (sum((whole(x) ** 2).mean() for x in present) / (3 if by_all else len(present))).backward()
        optimizer.step()
    for found in run_ranks(3, script):
        for mine, p in zip(found, whole.parameters(), strict=True):
            np.testing.assert_allclose(mine, p.detach().numpy(), rtol=1e-12, atol=1e-14)


def test_ranks_stop_together_if_one_may_not_end_early():
    def script(rank, group):
        replica, steps = Replicas(model(0), process_group=group), []

        def train():
            with replica.join(throw_on_early_termination=True):
                for _ in range(1 + 2 * rank):
                    replica(values(rank, 3, 4)).sum().backward()
                    steps.append(1)

        with pytest.raises(RuntimeError, match="join: rank 0 has no more batches"):
            train()
        return len(steps)

    assert run_ranks(2, script) == [1, 1]


def test_batch_norm_over_all_ranks_is_that_of_the_whole_batch():
    x, weights = values(3, 12, 5, 2), values(4, 12, 5, 2)

    def run(norm, batch, weight):
        batch = batch.clone().requires_grad_()
        out = norm(batch)
        (out * weight).sum().backward()
        return out, batch.grad, norm.running_mean, norm.running_var, norm.weight.grad, norm.bias.grad

    def script(rank, group):
        norm = rg.nn.SyncBatchNorm.convert_sync_batchnorm(rg.nn.BatchNorm1d(5).double(), group)
        mine = slice(0, 7) if rank == 0 else slice(7, 12)
        return [y.detach().numpy() for y in run(norm, x[mine], weights[mine])]

    expected = [y.detach().numpy() for y in run(rg.nn.BatchNorm1d(5).double(), x, weights)]
    first, second = run_ranks(2, script)
    for i, whole in enumerate(expected):
        if i < 2:
            found = [np.concatenate([first[i], second[i]])]
        elif i < 4:
            found = [first[i], second[i]]
        else:
            found = [first[i] + second[i]]
        for values_found in found:
            np.testing.assert_allclose(values_found, whole, rtol=1e-11, atol=1e-12)


# ------------------------------------------------------------------------------------------------- collectives


@pytest.mark.parametrize("op", list(dist.ReduceOp)[:5])
@pytest.mark.parametrize("shape", [(), (5,), (2, 3)])
def test_all_reduce_combines_the_tensors_of_all_ranks(op, shape):
    def script(rank, group):
        x = values(rank, *shape)
        dist.all_reduce(x, op, group=group)
        return x.numpy()

    stacked = np.stack([values(rank, *shape).numpy() for rank in range(3)])
    expected = {"SUM": np.sum, "AVG": np.mean, "PRODUCT": np.prod, "MIN": np.min, "MAX": np.max}[op.name](stacked, 0)
    found = run_ranks(3, script)
    for mine in found:
        np.testing.assert_allclose(mine, expected, rtol=1e-14)
        np.testing.assert_array_equal(mine, found[0])


def test_broadcast_and_gathering_give_each_rank_the_values_of_others():
    def script(rank, group):
        x = rg.full((2,), float(rank))
        everything, objects, listed = [rg.zeros(2) for _ in range(3)], [None] * 3, [rank, "text"]
        dist.all_gather(everything, x, group=group)
        dist.all_gather_object(objects, {"rank": rank}, group=group)
        dist.broadcast(x, src=2, group=group)
        dist.broadcast_object_list(listed, src=1, group=group)
        return x.tolist(), [y.tolist() for y in everything], objects, listed

    for found in run_ranks(3, script):
        assert found == (
            [2.0, 2.0],
            [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]],
            [{"rank": 0}, {"rank": 1}, {"rank": 2}],
            [1, "text"],
        )


def test_tensors_that_differ_between_ranks_are_refused_on_every_rank():
    def script(rank, group):
        with pytest.raises(
            RuntimeError,
            match=r"the ranks differ in all_reduce, .*\n  tensor: float32\[2\] on rank 0; float32\[3\] on rank 1",
        ):
            dist.all_reduce(rg.zeros(2 + rank), group=group)
        return True

    assert run_ranks(2, script) == [True, True]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: dist.all_reduce(rg.ones(1), "sum"), TypeError, "expected one of ReduceOp.SUM"),
        (lambda: dist.all_reduce([1.0]), TypeError, "expected a Tensor, got list"),
        (lambda: dist.broadcast(rg.ones(1), src=1), ValueError, "there is no rank 1; ranks are 0 to 0"),
        (lambda: dist.all_gather([], rg.ones(1)), ValueError, "the list has 0 tensors for 1 ranks"),
    ],
)
def test_calls_that_mean_nothing_are_refused(call, error, words):
    dist.init_process_group()
    try:
        with pytest.raises(error, match=words):
            call()
    finally:
        dist.destroy_process_group()


# --------------------------------------------------------------------------------------------------- the sampler


def test_a_sampler_takes_the_rank_and_their_number_from_the_process_group():
    assert SamplerOfModule is DistributedSampler
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        DistributedSampler(range(3))
    dist.init_process_group()
    try:
        assert list(DistributedSampler(range(3), shuffle=False)) == [0, 1, 2]
    finally:
        dist.destroy_process_group()


def test_ranks_that_call_other_collectives_all_end_with_an_error_that_names_them():
    def script(rank, group):
        with pytest.raises(RankMismatchError, match=r"call: barrier on ranks 0, 2; all_reduce on rank 1"):
            dist.all_reduce(rg.zeros(2), group=group) if rank == 1 else dist.barrier(group)
        dist.barrier(group)
        return True

    assert run_ranks(3, script) == [True] * 3
