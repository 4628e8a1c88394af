"""Tables and scores whose rows or classes are divided among ranks are never gathered to find some of them."""

import numpy as np
import pytest

import retrograd as rg
import retrograd.distributed as dist
from retrograd import nn
from retrograd.distributed import collectives
from retrograd.distributed.tensor import Partial, Replicate, Shard, distribute_tensor
from retrograd.distributed.tensor.parallel import loss_parallel

F = nn.functional
LOSSES = {
    "cross entropy": lambda x, target: F.cross_entropy(x, target),
    "an ignored class": lambda x, target: F.cross_entropy(x, target, ignore_index=2),
    "each loss": lambda x, target: F.cross_entropy(x, target, reduction="none"),
    "smooth labels": lambda x, target: F.cross_entropy(x, target, label_smoothing=0.1),
    "weights": lambda x, target: F.cross_entropy(x, target, x.detach()[0].exp()),
    "probabilities": lambda x, target: F.cross_entropy(x, x.detach().sigmoid()),
    "log-probabilities": lambda x, target: F.nll_loss(x.log_softmax(1), target),
    "softmax": lambda x, target: x.softmax(1),
    "log of a sum": lambda x, target: x.logsumexp(1),
    "log of a sum of all": lambda x, target: x.logsumexp((0, 1), keepdim=True),
    "product": lambda x, target: (x / 4).prod(1),
}
LOOKUPS = {
    "rows": lambda table, ids: F.embedding(ids, table),
    "a row for padding": lambda table, ids: F.embedding(ids, table, padding_idx=1),
    "gradients by frequency": lambda table, ids: F.embedding(ids, table, scale_grad_by_freq=True),
}
CASES = {**LOSSES, **LOOKUPS}
SIZES = [(6, 7), (5, 4), (4, 3)]  # on 4 ranks, some have fewer indices, or none


def values(*shape):
    return rg.from_numpy(3 * np.random.default_rng(0).standard_normal(shape))


def indices(count, size):
    return rg.from_numpy(np.random.default_rng(1).integers(0, size, count))


def arguments(name, rows, columns):
    """Return a table or scores, and indices of rows or classes."""
    return values(rows, columns), indices(rows, columns if name in LOSSES else rows)


def result_and_gradient(call, x, index):
    x = x.detach().requires_grad_()
    out = call(x, index)
    return out, rg.autograd.grad(out.square().sum(), x)[0]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_are_those_of_one_rank(name, size):
    call, (whole, index) = CASES[name], arguments(name, *size)
    expected = result_and_gradient(call, whole, index)

    def script():
        mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
        for kind in (Shard(0), Shard(1)):
            for kind_of_index in (Replicate(), Shard(0)):
                x = distribute_tensor(whole, mesh, [kind])
                found = result_and_gradient(call, x, distribute_tensor(index, mesh, [kind_of_index]))
                message = f"{kind} {kind_of_index}"
                for part, e in zip(found, expected, strict=True):
                    part = part.full_tensor().detach()
                    np.testing.assert_allclose(part, e.detach(), rtol=1e-12, atol=1e-12, err_msg=message)

    for ranks in (2, 3, 4):
        dist.run_threads(script, ranks)


@pytest.mark.parametrize("name", ["cross entropy", "weights", "rows"])
def test_batches_and_classes_are_divided_over_a_mesh_of_two_dimensions(name):
    call, (whole, index) = CASES[name], arguments(name, 6, 7)
    expected = result_and_gradient(call, whole, index)

    def script():
        mesh = dist.init_device_mesh("cpu", (2, 2))
        for kinds in ((Shard(0), Shard(1)), (Shard(1), Shard(0)), (Shard(0), Shard(0)), (Partial(), Shard(1))):
            x = distribute_tensor(whole, mesh, kinds)
            found = result_and_gradient(call, x, distribute_tensor(index, mesh, [Shard(0), Replicate()]))
            for part, e in zip(found, expected, strict=True):
                np.testing.assert_allclose(part.full_tensor().detach(), e.detach(), rtol=1e-12, atol=1e-12)

    dist.run_threads(script, 4)


def tensors_in(given):
    """Return the tensors that are one argument of a collective operation."""
    return [x for x in (given if isinstance(given, list) else [given]) if isinstance(x, rg.Tensor)]


COLLECTIVES = ["all_gather_into_tensor", "all_reduce", "all_to_all", "reduce_scatter_tensor"]


def largest_message(monkeypatch, script, ranks):
    """Return the largest number of bytes that a rank gives to, or gets from, a collective operation in a script."""
    sizes = [0]

    def count_bytes_of(collective):
        def run(first, second, *args):
            sizes.extend(sum(x.nbytes for x in tensors_in(given)) for given in (first, second))
            return collective(first, second, *args)

        return run

    for name in COLLECTIVES:
        monkeypatch.setattr(collectives, name, count_bytes_of(getattr(collectives, name)))
    dist.run_threads(script, ranks)
    monkeypatch.undo()
    return max(sizes)


@pytest.mark.parametrize("kind", [Shard(0), Shard(1)])
@pytest.mark.parametrize("name", [name for name in LOSSES if name != "weights"])
def test_no_collective_is_larger_than_a_number_for_each_row_and_rank(name, kind, monkeypatch):
    whole, index = arguments(name, 8, 1000)

    def script():
        mesh = dist.init_device_mesh("cpu", (4,))
        x = distribute_tensor(whole, mesh, [kind], src_data_rank=None)
        target = distribute_tensor(index, mesh, [Replicate()], src_data_rank=None)
        with loss_parallel():
            loss = LOSSES[name](x.requires_grad_(), target).sum()
            loss.backward()
        assert x.grad.placements == (kind,)

    of_each_rank = 8 * 8 * 4  # bytes
    assert largest_message(monkeypatch, script, 4) <= of_each_rank


@pytest.mark.parametrize(("kind", "most"), [(Shard(0), 6 * 8 * 8), (Shard(1), 0)])
def test_the_only_collective_of_a_lookup_is_as_large_as_the_rows_that_it_finds(kind, most, monkeypatch):
    whole, ids = values(1000, 8), indices(6, 1000)

    def script():
        mesh = dist.init_device_mesh("cpu", (4,))
        table = distribute_tensor(whole, mesh, [kind], src_data_rank=None).requires_grad_()
        rows = F.embedding(distribute_tensor(ids, mesh, [Replicate()], src_data_rank=None), table)
        rows = rows.redistribute(placements=[Replicate() if most else kind])
        rows.to_local().square().sum().backward()
        assert table.grad.placements == (kind,)

    assert largest_message(monkeypatch, script, 4) == most


def test_scores_far_from_zero_lose_no_digits():
    whole = (values(6, 7) + 1e4).to(rg.float32)
    index = indices(6, 7)
    expected = result_and_gradient(F.cross_entropy, whole, index)

    def script():
        mesh = dist.init_device_mesh("cpu", (2,))
        x = distribute_tensor(whole, mesh, [Shard(1)])
        found = result_and_gradient(F.cross_entropy, x, distribute_tensor(index, mesh, [Replicate()]))
        for part, e in zip(found, expected, strict=True):
            np.testing.assert_allclose(part.full_tensor().detach(), e.detach(), rtol=1e-6, atol=1e-7)

    dist.run_threads(script, 2)


def test_indices_of_32_bits_find_rows_of_all_ranks():
    whole, ids = values(300, 2), rg.tensor([0, 127, 128, 255])

    def script():
        mesh = dist.init_device_mesh("cpu", (4,))
        found = F.embedding(distribute_tensor(ids.to(rg.int32), mesh), distribute_tensor(whole, mesh, [Shard(0)]))
        return rg.equal(found.full_tensor(), whole[ids])

    assert dist.run_threads(script, 4) == [True] * 4


@pytest.mark.parametrize("index", [-1, 7, 8, 1000])
@pytest.mark.parametrize("name", ["cross entropy", "log-probabilities", "rows"])
def test_an_index_out_of_range_is_refused(name, index):
    whole = values(4, 7) if name in LOSSES else values(7, 4)

    def script():
        mesh = dist.init_device_mesh("cpu", (2,))
        x = distribute_tensor(whole, mesh, [Shard(1 if name in LOSSES else 0)])
        CASES[name](x, distribute_tensor(rg.tensor([0, 1, 2, index]), mesh))

    with pytest.raises(IndexError, match=f"{index} is out of bounds"):
        dist.run_threads(script, 2)
