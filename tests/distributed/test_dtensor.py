"""A tensor says which part of a whole one it is; what has its shape follows."""

import copy
import pickle

import numpy as np
import pytest

import retrograd as rg
import retrograd.distributed as dist
from retrograd.distributed import tensor
from retrograd.distributed.fsdp import fully_shard
from retrograd.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor


def values(seed, *shape):
    return rg.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def mesh():
    return dist.init_device_mesh("cpu", (dist.get_world_size(),))


@pytest.mark.parametrize("shape", [(7, 3), (2, 5), (4,), (1,), (), (0, 3), (3, 0)])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_the_whole_tensor_is_that_of_the_first_rank_whatever_its_shape(ranks, shape):
    whole = values(0, *shape)

    kinds = [Replicate(), *[Shard(dim) for dim in range(-1, max(len(shape), 1))]]

    def script():
        own = whole + dist.get_rank()
        made = [distribute_tensor(own, mesh(), [kind]) for kind in kinds]
        assert rg.equal(made[0].to_local(), whole)
        assert made[1].placements == (Shard(max(len(shape) - 1, 0)),)
        for part in made:
            assert part.is_contiguous()
            for kind in kinds:
                moved = part.redistribute(placements=[kind])
                assert rg.equal(moved.to_local(), distribute_tensor(whole, mesh(), [kind]).to_local())
                assert moved.data_ptr() != part.data_ptr()
        return [part.to_local().numel() for part in made], [part.full_tensor().numpy() for part in made]

    found = dist.run_threads(script, ranks)
    for number in range(1, len(kinds)):
        assert sum(counts[number] for counts, _ in found) == whole.numel()
    for _, each in found:
        for full in each:
            np.testing.assert_array_equal(full, whole.numpy())


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_parts_that_ranks_have_already_are_parts_of_the_whole_tensor(dim):
    whole = values(0, 5, 4)

    def script():
        kinds = [Shard(dim)]
        local = distribute_tensor(whole, mesh(), kinds).to_local()
        for options in ({}, {"shape": (5, 4)}):
            part = DTensor.from_local(local, mesh(), kinds, **options)
            assert part.data_ptr() == local.data_ptr()
            assert rg.equal(part.full_tensor(), whole)
        copies = DTensor.from_local(whole + dist.get_rank(), run_check=True)
        assert rg.equal(copies.to_local(), whole)
        assert copies.placements[0].is_replicate()
        assert part.placements[0].is_shard()
        assert part.placements[0].is_shard(dim % 2)
        assert not part.placements[0].is_shard((dim + 1) % 2)
        assert not part.placements[0].is_partial()
        with pytest.raises(ValueError, match=f"from_local: rank {dist.get_rank()} has a part of shape"):
            DTensor.from_local(local, mesh(), kinds, shape=(9, 9))

    dist.run_threads(script, 3)


def test_a_rank_makes_its_part_of_a_new_tensor():
    def script():
        for name, value in (("zeros", 0), ("ones", 1), ("empty", 0)):
            part = getattr(tensor, name)(5, 4, dtype=rg.float64, placements=[Shard(1)], requires_grad=True)
            assert rg.equal(part.full_tensor(), rg.full((5, 4), value, dtype=rg.float64))
            assert part.requires_grad
            assert part.is_contiguous()
        assert tensor.full((2, 3), 7, placements=[Shard(0)]).full_tensor().tolist() == [[7] * 3] * 2
        assert tensor.full([], 7).full_tensor().item() == 7
        for name in ("rand", "randn"):
            found.append((name, getattr(tensor, name)((3, 2), placements=[Shard(0)]).full_tensor().tolist()))

    found = []
    dist.run_threads(script, 3)
    assert len(found) == 6
    for name, whole in found:
        assert np.shape(whole) == (3, 2)
        assert found.count((name, whole)) == 3


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_parts_are_those_of_chunk(ranks):
    whole = values(0, 4, 6, 5)

    def script():
        for dim in range(3):
            part = distribute_tensor(whole, mesh(), [Shard(dim)]).to_local()
            chunks = whole.chunk(ranks, dim)
            rank = dist.get_rank()
            assert rg.equal(part, chunks[rank]) if rank < len(chunks) else part.shape[dim] == 0

    dist.run_threads(script, ranks)


def test_a_parameter_of_a_part_is_a_part_and_so_are_its_copies():
    def script():
        p = rg.nn.Parameter(distribute_tensor(values(0, 5, 2), mesh(), [Shard(0)]))
        assert isinstance(p, DTensor)
        assert isinstance(p, rg.nn.Parameter)
        assert p.requires_grad
        copied = copy.deepcopy(p)
        assert isinstance(copied, rg.nn.Parameter)
        assert copied.data_ptr() != p.data_ptr()
        assert rg.equal(copied.full_tensor(), p.full_tensor())
        assert type(p * 2) is type(p.detach()) is DTensor
        assert type(p.to_local()) is rg.Tensor
        assert type(pickle.loads(pickle.dumps(p.as_part(p)))) is rg.Tensor
        (p.to_local() ** 2).sum().backward()
        return rg.equal(p.grad, 2 * p) and p.shape == (5, 2)

    assert dist.run_threads(script, 2) == [True, True]


def test_a_deep_copy_keeps_whether_it_requires_grad_and_its_gradient():
    def script():
        x = distribute_tensor(values(0, 5, 2), mesh(), [Shard(0)]).requires_grad_()
        (x * x).sum().backward()
        copied = copy.deepcopy(x)
        assert copied.requires_grad
        assert isinstance(copied.grad, DTensor)
        assert copied.grad.data_ptr() != x.grad.data_ptr()
        assert rg.equal(copied.grad, x.grad)
        assert not copy.deepcopy(x.detach()).requires_grad

    dist.run_threads(script, 2)


def test_a_hook_gets_its_part_of_the_gradient_of_the_whole_tensor():
    def script():
        x = distribute_tensor(values(0, 5, 2), mesh(), [Shard(0)]).requires_grad_()
        sums = []

        def double(grad):
            sums.append(grad.sum().item())
            return 2 * grad

        x.register_hook(double)
        (3 * x).sum().backward()
        assert sums == [30.0]
        return x.grad.full_tensor().tolist()

    assert dist.run_threads(script, 2) == [[[6.0, 6.0]] * 5] * 2


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (2, 0, 1)])
def test_strides_are_those_of_the_whole_tensor(order):
    whole = values(0, 4, 6, 5).permute(order)

    def script():
        for dim in range(3):
            part = DTensor.from_local(whole.chunk(2, dim)[dist.get_rank()], mesh(), [Shard(dim)])
            assert part.stride() == whole.stride()
            assert part.stride(1) == whole.stride(1)
        expanded = DTensor.from_local(rg.ones(3, 1).expand(3, 4), mesh(), [Shard(0)])
        assert expanded.stride() == (1, 0)

    dist.run_threads(script, 2)


def test_a_new_tensor_of_the_same_shape_is_divided_as_its_model():
    def script():
        model = distribute_tensor(values(0, 5, 2), mesh(), [Shard(0)])
        for made in (model.new_zeros(5, 2), model.new_empty_strided((5, 2), (2, 1), requires_grad=True)):
            assert made.placements == model.placements
            assert made.to_local().shape == model.to_local().shape
        assert model.new_ones(3).placements == (Replicate(),)
        made.sum().backward()
        assert isinstance(made.grad, DTensor)

    dist.run_threads(script, 2)


def test_a_tensor_without_memory_is_a_model_of_one_with_memory():
    def script():
        model = distribute_tensor(rg.empty(5, 2, device="meta"), mesh(), [Shard(0)])
        made = rg.zeros_like(model, device="cpu")
        assert model.is_meta
        assert not made.is_meta
        return made.full_tensor().tolist()

    assert dist.run_threads(script, 2) == [[[0.0, 0.0]] * 5] * 2


def test_the_mesh_of_a_block_is_the_default():
    def script():
        rows = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
        with rows:
            with rows["b"] as inner:
                assert distribute_tensor(values(0, 4), placements=[Shard(0)]).device_mesh is inner
            part = DTensor.from_local(values(0, 2), placements=[Shard(0), Replicate()])
            assert part.device_mesh is rows
            assert part.shape == (4,)
        return distribute_tensor(values(0, 4)).device_mesh.shape

    assert dist.run_threads(script, 4) == [(4,)] * 4


def test_placements_print_as_their_kind():
    assert [str(p) for p in (Shard(1), Replicate(), Partial("avg"))] == ["S(1)", "R", "P(avg)"]
    assert repr((Shard(1), Replicate(), Partial())) == "(Shard(dim=1), Replicate(), Partial(sum))"


def test_tensors_that_share_memory_with_a_part_are_parts():
    def script():
        model = fully_shard(rg.nn.Linear(4, 6))
        state = model.state_dict()
        assert isinstance(state["weight"], DTensor)
        assert state["weight"].data_ptr() == model.weight.data_ptr()
        assert model.weight.detach().data_ptr() == model.weight.data_ptr()
        assert isinstance(model.weight.detach(), DTensor)
        assert isinstance(model.state_dict(keep_vars=True)["weight"], rg.nn.Parameter)

    dist.run_threads(script, 2)


INITIAL = {
    "uniform_": (-1.0, 2.0), "normal_": (1.0, 3.0), "trunc_normal_": (0.0, 1.0, -0.5, 0.5), "xavier_uniform_": (),
    "xavier_normal_": (), "kaiming_uniform_": (), "kaiming_normal_": (0, "fan_out"), "orthogonal_": (),
    "sparse_": (0.3,), "eye_": (),
}  # fmt: skip


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("name", INITIAL)
def test_initial_values_of_parts_are_those_of_the_whole_tensor(name, dim):
    def fill(x):
        randomness = {} if name == "eye_" else {"generator": rg.Generator().manual_seed(4)}
        return getattr(rg.nn.init, name)(x, *INITIAL[name], **randomness)

    expected = fill(rg.empty(7, 5))

    def script():
        part = rg.nn.Parameter(distribute_tensor(rg.zeros(7, 5), mesh(), [Shard(dim)]))
        assert fill(part) is part
        return part.full_tensor().detach().numpy()

    for found in dist.run_threads(script, 3):
        np.testing.assert_array_equal(found, expected.numpy())


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.0, float("inf")])
def test_gradients_are_clipped_by_the_norm_of_the_whole_ones(norm_type, by_columns):
    def clipped(module):
        for p, g in zip(module.parameters(), grads, strict=True):
            p.grad = p.part_of(g) if isinstance(p, DTensor) else g.clone()
        total = rg.nn.utils.clip_grad_norm_(module.parameters(), 0.5, norm_type)
        return total.item(), list(module.parameters())

    def model():
        return rg.nn.Sequential(rg.nn.Linear(4, 1), rg.nn.Linear(1, 5)).double()

    grads = [values(i, *p.shape) for i, p in enumerate(model().parameters())]
    expected, whole = clipped(model())

    def script():
        module = model()
        last = lambda p: Shard(p.ndim - 1)  # noqa: E731
        fully_shard(module, ignored_params=[module[1].bias], shard_placement_fn=last if by_columns else None)
        total, parts = clipped(module)
        for p, q in zip(parts, whole, strict=True):
            own = p.grad.full_tensor() if isinstance(p, DTensor) else p.grad
            np.testing.assert_allclose(own.numpy(), q.grad.numpy(), rtol=1e-12)
        return total

    assert dist.run_threads(script, 3) == pytest.approx([expected] * 3, rel=1e-12)


def test_what_is_not_divided_so_is_refused():
    dist.init_process_group()
    try:
        for dim in (1, -2):
            with pytest.raises(ValueError, match=rf"Shard\(dim={dim}\) needs that dimension, and the tensor has shape"):
                distribute_tensor(rg.zeros(2), mesh(), [Shard(dim)])
        two = dist.init_device_mesh("cpu", (1, 1))
        with pytest.raises(ValueError, match=r"redistribute: the tensor is on .*, and cannot be moved to"):
            distribute_tensor(rg.zeros(2), mesh(), [Shard(0)]).redistribute(two)
        with pytest.raises(ValueError, match=r"Partial: reduce_op must be one of .*, got 'mean'"):
            Partial("mean")
        with pytest.raises(NotImplementedError, match="a checkpoint takes values, and not terms of them"):
            _ = distribute_tensor(rg.zeros(2, 2), two, [Shard(0), Partial()]).local_slice
        with pytest.raises(ValueError, match="expected a placement for each of 1 dimensions"):
            distribute_tensor(rg.zeros(2), mesh(), [Shard(0), Replicate()])
        with pytest.raises(ValueError, match=r"expected a whole tensor of shape \(2,\), got \(3,\)"):
            distribute_tensor(rg.zeros(2), mesh(), [Shard(0)]).part_of(rg.zeros(3))
    finally:
        dist.destroy_process_group()
