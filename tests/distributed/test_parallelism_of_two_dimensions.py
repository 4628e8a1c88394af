"""Models that tensor parallelism and `fully_shard` divide over two dimensions of a mesh train like whole ones."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import retrograd as rg
import retrograd.distributed as dist
from retrograd import nn
from retrograd.distributed.fsdp import full_state_dict, fully_shard, load_full_state_dict
from retrograd.distributed.tensor import Partial, Replicate, Shard, distribute_tensor
from retrograd.distributed.tensor.division import Division
from retrograd.distributed.tensor.parallel import ColwiseParallel, parallelize_module
from retrograd.distributed.tensor.placements import StridedShard
from retrograd.distributed.tensor.redistribution import redistributed

from .two_dimensions_script import IDS, TARGETS, Model, divided, model, train, whole_values

MESHES = {
    "dp x tp": ((2, 2), ("dp", "tp")),
    "tp x dp": ((2, 2), ("tp", "dp")),
    "3 x 2": ((3, 2), ("dp", "tp")),  # rows that cannot be divided by the number of ranks
    "hybrid": ((2, 2, 2), ("replicate", "dp", "tp")),
}


@pytest.mark.parametrize(("kind", "plan"), [*((kind, "tutorial") for kind in MESHES), ("dp x tp", "linear layers")])
def test_losses_norms_states_and_parameters_are_those_of_the_whole_model(kind, plan):
    shape, names = MESHES[kind]
    whole, batches = model(), 3 if shape[0] == 3 else 4 // (2 if len(shape) == 2 else 1)
    ids, targets = IDS[:batches], TARGETS[:batches]
    expected, expected_norms, optimizer = train(whole, ids, targets)
    moments = {name: optimizer.state[p]["exp_avg"] for name, p in whole.named_parameters()}

    def script():
        mesh = dist.init_device_mesh("cpu", shape, mesh_dim_names=names)
        module = model()
        if any(mesh.get_coordinate()):  # the values of the first rank count
            for p in module.parameters():
                if plan == "tutorial":
                    p.data = p.data * 2
        divided(module, mesh, plan)
        place, count = 0, 1
        for name in names:
            if name != "tp":
                place, count = place * mesh[name].size() + mesh.get_local_rank(name), count * mesh[name].size()
        losses, norms, optimizer = train(module, ids.chunk(count)[place], targets.chunk(count)[place])
        parameters = dict(module.named_parameters())
        states = whole_values((name, optimizer.state[p]["exp_avg"]) for name, p in parameters.items())
        return place, losses, norms, states, whole_values(full_state_dict(module).items())

    found = dist.run_threads(script, int(np.prod(shape)))
    by_place = {place: losses for place, losses, *_ in found}
    np.testing.assert_allclose(np.mean(list(by_place.values()), 0), expected, rtol=1e-12)
    for _, _, norms, states, parameters in found:
        np.testing.assert_allclose(norms, expected_norms, rtol=1e-12)
        for name, p in whole.named_parameters():
            np.testing.assert_allclose(states[name], moments[name], rtol=1e-10, atol=1e-12, err_msg=name)
            np.testing.assert_allclose(parameters[name], p.detach(), rtol=1e-7, atol=1e-10, err_msg=name)


def test_parts_have_pytorchs_placements_over_both_dimensions():
    """Tensor parallelism divides first, then `fully_shard` the part: PyTorch has _StridedShard for that, too."""

    def script(names):
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=names)
        layer = divided(model(), mesh).layers[0]
        w1, w2, norm = layer.feed_forward.w1.weight, layer.feed_forward.w2.weight, layer.attention_norm.weight
        assert all(p.device_mesh == mesh for p in (w1, w2, norm))
        rows = w1.division.bounds[0]
        return w1.placements, w2.placements, norm.placements, rows, w1.to_local().shape

    for rank, found in enumerate(dist.run_threads(script, 4, ("dp", "tp"))):
        low = 6 * (rank % 2) + 3 * (rank // 2)
        strided = (StridedShard(0, split_factor=2), Shard(0))
        assert found == (strided, (Shard(0), Shard(1)), (Shard(0), Replicate()), (low, low + 3), (3, 8))
    for rank, found in enumerate(dist.run_threads(script, 4, ("tp", "dp"))):
        nested = (Shard(0), Shard(0))
        assert found == (nested, (Shard(1), Shard(0)), (Replicate(), Shard(0)), (3 * rank, 3 * rank + 3), (3, 8))


@pytest.mark.parametrize("reshards", [True, False])
def test_the_module_has_its_tensor_parallel_part_while_the_block_is_gathered(reshards):
    def script():
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        module = divided(model(), mesh, reshard_after_forward=reshards)
        block, seen = module.layers[1], []
        module.layers[1].feed_forward.register_forward_pre_hook(lambda m, args: seen.append(m.w1.weight))
        block.unshard()
        seen.append(block.feed_forward.w1.weight)
        block.reshard()
        module(IDS).sum().backward()
        assert block.feed_forward.w1.weight.placements == (StridedShard(0, split_factor=2), Shard(0))
        return [(x.device_mesh == mesh["tp"], x.placements, x.shape, x.to_local().shape) for x in seen]

    assert dist.run_threads(script, 4) == [[(True, (Shard(0),), (12, 8), (6, 8))] * 2] * 4


def test_whole_states_are_written_into_parts_of_parts_and_models_on_meta_get_memory():
    state = model().state_dict()

    def script():
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        module = divided(Model().double().to("meta"), mesh).to_empty(device="cpu")
        load_full_state_dict(module, state)
        return whole_values(full_state_dict(module).items())

    for found in dist.run_threads(script, 4):
        for name, x in state.items():
            np.testing.assert_array_equal(found[name], x.numpy(), err_msg=name)


def test_gradients_of_passes_without_an_exchange_are_those_of_all_batches():
    whole = model()
    nn.functional.cross_entropy(whole(IDS).flatten(0, 1), TARGETS.flatten(), reduction="sum").backward()

    def script():
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        module, place = divided(model(), mesh), mesh.get_local_rank("dp")
        for last, (ids, targets) in enumerate(zip(IDS.chunk(4)[place::2], TARGETS.chunk(4)[place::2], strict=True)):
            module.set_requires_gradient_sync(bool(last))
            nn.functional.cross_entropy(module(ids).flatten(0, 1), targets.flatten(), reduction="sum").backward()
        return whole_values((name, p.grad) for name, p in module.named_parameters())

    for found in dist.run_threads(script, 4):
        for name, p in whole.named_parameters():
            np.testing.assert_allclose(2 * found[name], p.grad, rtol=1e-12, atol=1e-12, err_msg=name)


def test_meshes_that_are_not_parts_of_one_are_refused_and_change_nothing():
    def script():
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        other = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "other"))
        for wrong in (mesh["tp"], other["dp"], None):
            module = nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 2))
            parallelize_module(module, mesh["tp"], {"1": ColwiseParallel()})
            before = dict(module.named_parameters())
            with pytest.raises(ValueError, match=r"the DP and TP mesh to have the same parent mesh.*mesh\['dp'\]"):
                fully_shard(module, mesh=wrong)
            assert all(p is before[name] for name, p in module.named_parameters())
        module = nn.Linear(4, 6)
        module.weight = nn.Parameter(distribute_tensor(module.weight, mesh["tp"], [Partial()]))
        with pytest.raises(ValueError, match="is a sum over ranks"):
            fully_shard(module, mesh=mesh["dp"])

    dist.run_threads(script, 4)


MESH_SHAPES = [(4,), (2, 2), (3, 2), (2, 1, 2), (2, 2, 2)]


@st.composite
def divisions(draw, shape, ndim):
    """Return random placements of a tensor; a `StridedShard` has a `Shard` of its dimension after it."""
    found = []
    for _ in range(ndim):
        placement = draw(st.sampled_from([Replicate(), *(Shard(dim) for dim in range(max(len(shape), 1)))]))
        if placement in found[::-1] and draw(st.booleans()):
            index = len(found) - 1 - found[::-1].index(placement)
            if isinstance(placement, Shard):
                found[index] = StridedShard(placement.dim, split_factor=2)
        found.append(placement)
    return tuple(found)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_a_redistribution_between_random_divisions_gives_the_parts_of_the_second(data):
    mesh_shape = data.draw(st.sampled_from(MESH_SHAPES))
    shape = tuple(data.draw(st.lists(st.integers(0, 7), max_size=3)))
    kinds = [data.draw(divisions(shape, len(mesh_shape))) for _ in range(4)]
    whole = rg.arange(int(np.prod(shape))).reshape(shape)

    def script():
        mesh = dist.init_device_mesh("cpu", mesh_shape)
        for source, target in itertools.pairwise(kinds):
            old, new = (Division(shape, mesh, kind) for kind in (source, target))
            found = redistributed(old.taken(whole).clone(), old, target)
            assert found.shape == new.local_shape, (source, target)
            assert rg.equal(found, new.taken(whole)), (source, target)

    dist.run_threads(script, int(np.prod(mesh_shape)))
