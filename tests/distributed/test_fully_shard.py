"""Models whose parameters are divided among ranks train like one model on the whole batch."""

import copy
import gc
import weakref

import numpy as np
import pytest

import retrograd as rg
import retrograd.distributed as dist
from retrograd.distributed import checkpoint, fsdp
from retrograd.distributed.fsdp import (
    FSDPModule,
    MixedPrecisionPolicy,
    full_state_dict,
    fully_shard,
    load_full_state_dict,
    register_fsdp_forward_method,
)
from retrograd.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from retrograd.distributed.tensor.parallel import ColwiseParallel, parallelize_module


def values(seed, *shape):
    return rg.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def fill(module):
    for i, p in enumerate(module.parameters()):
        p.data = values(i, *p.shape) / 3
    return module


def model():
    return fill(
        rg.nn.Sequential(
            rg.nn.Linear(4, 7), rg.nn.Tanh(), rg.nn.LayerNorm(7), rg.nn.Linear(7, 5), rg.nn.ReLU(), rg.nn.Linear(5, 1)
        ).double()
    )


def train(module, batch, count=3):
    optimizer, losses = rg.optim.AdamW(module.parameters(), lr=0.05), []
    for _ in range(count):
        optimizer.zero_grad()
        loss = (module(batch) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


DIMENSIONS = {
    "first": None,
    "last": lambda p: Shard(-1),
    "largest": lambda p: Shard(max(range(p.ndim), key=lambda dim: p.shape[dim])),
    "second of some": lambda p: Shard(1) if p.ndim == 2 and p.shape[0] > 4 else None,
}


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("reshards", [True, False])
@pytest.mark.parametrize("ranks", [2, 4])
def test_losses_and_parameters_are_those_of_the_whole_batch(ranks, reshards, dimension):
    x, whole = values(9, 8, 4), model()
    expected = train(whole, x)

    def script():
        module = model()
        for layer in module:
            if isinstance(layer, rg.nn.Linear):
                fully_shard(layer, reshard_after_forward=reshards, shard_placement_fn=DIMENSIONS[dimension])
        fully_shard(module, reshard_after_forward=reshards, shard_placement_fn=DIMENSIONS[dimension])
        losses = train(module, x.chunk(ranks)[dist.get_rank()])
        return losses, {name: value.numpy().copy() for name, value in full_state_dict(module).items()}

    found = dist.run_threads(script, ranks)
    np.testing.assert_allclose(np.mean([losses for losses, _ in found], 0), expected, rtol=1e-12)
    for _, state in found:
        assert list(state) == list(whole.state_dict())
        for name, value in whole.state_dict().items():
            np.testing.assert_allclose(state[name], value.numpy(), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("shape", [(2, 2), (4, 1), (1, 4), (2, 3)])
def test_a_mesh_of_two_dimensions_has_copies_along_the_first_and_parts_along_the_second(tmp_path, shape, dim):
    ranks = shape[0] * shape[1]
    x, whole = values(9, 12, 4), model()
    expected = train(whole, x)

    def script():
        mesh = dist.init_device_mesh("cpu", shape, mesh_dim_names=("replicate", "shard"))
        module = model()
        if dist.get_rank():
            for p in module.parameters():
                p.data = p.data * 3  # all begin with the values of rank 0
        for layer in module:
            if isinstance(layer, rg.nn.Linear):
                fully_shard(layer, mesh=mesh, shard_placement_fn=lambda p: Shard(dim) if p.ndim > dim else None)
        fully_shard(module, mesh=mesh)
        losses = train(module, x.chunk(ranks)[dist.get_rank()])
        weight = module[0].weight
        checkpoint.save(module.state_dict(), checkpoint_id=tmp_path)
        known = weight.placements == (Replicate(), Shard(dim)) and weight.device_mesh == mesh
        return (
            losses,
            known,
            weight.to_local().shape,
            {name: x.numpy().copy() for name, x in full_state_dict(module).items()},
        )

    found = dist.run_threads(script, ranks)
    np.testing.assert_allclose(np.mean([losses for losses, *_ in found], 0), expected, rtol=1e-12)
    state = {name: rg.zeros_like(value) for name, value in whole.state_dict().items()}
    checkpoint.load(state, checkpoint_id=tmp_path)
    for number, (_, known, rows, full) in enumerate(found):
        assert known
        parts = whole[0].weight.chunk(shape[1], dim)
        assert rows == (parts[number % shape[1]].shape if number % shape[1] < len(parts) else (7, 0))
        for name, value in whole.state_dict().items():
            np.testing.assert_allclose(full[name], value.numpy(), rtol=1e-10, atol=1e-13)
            np.testing.assert_array_equal(full[name], state[name].numpy())


def test_a_transformer_with_shared_weights_gives_the_numbers_of_one_model():
    class Tied(rg.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = rg.nn.Embedding(11, 8)
            layer = rg.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
            self.layers = rg.nn.ModuleList([layer])
            self.head = rg.nn.Linear(8, 11, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, x):
            h = self.embed(x)
            for layer in self.layers:
                h = layer(h)
            return self.head(h)

    tokens = rg.from_numpy(np.random.default_rng(1).integers(0, 11, (4, 6)))
    whole = fill(Tied().double())
    expected = train(whole, tokens)

    def script():
        module = fill(Tied().double())
        for layer in module.layers:
            fully_shard(layer)
        fully_shard(module)
        return train(module, tokens.chunk(2)[dist.get_rank()])

    np.testing.assert_allclose(np.mean(dist.run_threads(script, 2), 0), expected, rtol=1e-10)


def test_a_rank_has_its_part_of_parameters_gradients_and_states():
    def script():
        module = model()
        fully_shard(module)
        optimizer = rg.optim.Adam(module.parameters())
        module(values(9, 2, 4)).sum().backward()
        optimizer.step()
        states = [v for s in optimizer.state.values() for v in s.values() if isinstance(v, rg.Tensor) and v.ndim]
        parameters = list(module.parameters())
        assert all(isinstance(v, DTensor) for v in states)
        tensors = parameters, [p.grad for p in parameters], states
        return [sum(v.to_local().numel() for v in each) for each in tensors]

    elements = sum(p.numel() for p in model().parameters())
    found = np.array(dist.run_threads(script, 2))
    np.testing.assert_array_equal(found.sum(0), [elements, elements, 2 * elements])
    assert found[0, 0] <= elements / 2 + 7 * 4  # at most a row more of each parameter


def test_the_gradient_of_a_part_is_the_same_part_of_the_whole_gradient(tmp_path):
    batch = values(0, 6, 4)

    def script():
        whole, module = model(), model()
        fully_shard(module[3], shard_placement_fn=lambda p: Shard(p.ndim - 1))
        fully_shard(module)
        for _ in range(2):  # gradients add up
            for each in (whole, module):
                (each(batch) ** 2).mean().backward()
            for p, q in zip(module.parameters(), whole.parameters(), strict=True):
                grad = p.grad
                assert isinstance(grad, DTensor)
                assert p.grad is grad
                assert (grad.placements, grad.device_mesh) == (p.placements, p.device_mesh)
                np.testing.assert_allclose(grad.full_tensor().numpy(), q.grad.numpy(), rtol=1e-12, atol=1e-14)
                replica = grad.redistribute(placements=[Replicate()]).to_local()
                np.testing.assert_array_equal(replica.numpy(), grad.full_tensor().numpy())
        gradients = {name: p.grad for name, p in module.named_parameters()}
        checkpoint.save(gradients, checkpoint_id=tmp_path)  # as whole tensors
        bias = module[5].bias
        bias.grad = rg.ones_like(bias)
        assert isinstance(bias.grad, DTensor)
        bias.grad.mul_(3)
        assert bias.grad.full_tensor().tolist() == [3.0]
        del bias.grad
        assert bias.grad is None

    for ranks in (1, 2, 3):
        dist.run_threads(script, ranks)
    found = rg.zeros(7, 4, dtype=rg.float64)
    checkpoint.load({"0.weight": found}, checkpoint_id=tmp_path)
    assert found.any()


def test_all_ranks_skip_a_step_with_gradients_that_are_infinite_on_one():
    def script():
        module = fully_shard(model())
        optimizer, scaler = rg.optim.SGD(module.parameters(), lr=0.1), rg.amp.GradScaler("cpu", init_scale=8.0)
        scaler.scale(module(values(9, 2, 4)).sum()).backward()
        before = [p.detach().clone() for p in module.parameters()]
        if dist.get_rank() == 1:
            next(module.parameters()).grad.to_local()[0] = rg.inf
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == 4.0
        return all((p == old).all() for p, old in zip(module.parameters(), before, strict=True))

    assert dist.run_threads(script, 2) == [True, True]


def test_whole_parameters_are_freed_after_forward_and_gathered_again_in_backward():
    def script():
        module, whole = rg.nn.Sequential(rg.nn.Linear(4, 6), rg.nn.Linear(6, 2)), []
        for layer in module:
            fully_shard(layer)
        blocks = [layer.__dict__["_sharded_block"] for layer in module]
        for block in blocks:
            leave = block.leave
            # References to the arrays themselves, which views and graphs would keep.
            block.leave = lambda block=block, leave=leave: (
                whole.extend(weakref.ref(_owner(x.value)) for x in block._whole),
                leave(),
            )
        loss = module(rg.ones(3, 4, requires_grad=True)).sum()
        gc.collect()
        alive = [reference() for reference in whole]
        counts = [block.gathers for block in blocks]
        loss.backward()
        return len(alive), [x for x in alive if x is not None], counts, [b.gathers for b in blocks], blocks[0]._whole

    for created, alive, forward, both, left in dist.run_threads(script, 2):
        assert (created, alive, forward, both, left) == (4, [], [1, 1], [2, 2], None)


def _owner(array):
    """Return the array that has the memory of another one."""
    while array.base is not None:
        array = array.base
    return array


def test_an_error_in_forward_leaves_the_shards_in_place():
    def script():
        module = fully_shard(rg.nn.Linear(4, 6))
        with pytest.raises(RuntimeError):
            module(rg.ones(3, 5))
        return module.weight.to_local().shape

    assert dist.run_threads(script, 2) == [(3, 4), (3, 4)]


def test_whole_states_are_loaded_into_the_parts():
    source = model().state_dict()

    def script():
        module = fully_shard(rg.nn.Sequential(*[type(m)(*_sizes(m)) for m in model()]).double())
        load_full_state_dict(module, source)
        return {name: value.numpy().copy() for name, value in full_state_dict(module).items()}

    def _sizes(m):
        if isinstance(m, rg.nn.Linear):
            return m.in_features, m.out_features
        return (7,) if isinstance(m, rg.nn.LayerNorm) else ()

    for found in dist.run_threads(script, 3):
        for name, value in source.items():
            np.testing.assert_array_equal(found[name], value.numpy())


def test_a_module_without_parameters_is_refused():
    dist.init_process_group()
    try:
        with pytest.raises(ValueError, match="has no parameters"):
            fully_shard(rg.nn.ReLU())
    finally:
        dist.destroy_process_group()


def test_a_model_whose_parameters_are_all_divided_already_is_a_block_too():
    def script():
        module = rg.nn.Sequential(rg.nn.Linear(4, 6), rg.nn.Linear(6, 2))
        for layer in module:
            fully_shard(layer)
        fully_shard(module).set_requires_gradient_sync(True)
        module(rg.ones(3, 4)).sum().backward()
        return module[1].bias.grad.to_local().tolist()

    assert dist.run_threads(script, 2) == [[3.0], [3.0]]


def test_a_parameter_that_modules_share_is_not_divided_twice():
    def script():
        module = rg.nn.ModuleDict({"embed": rg.nn.Embedding(6, 4), "head": rg.nn.Linear(4, 6, bias=False)})
        module["head"].weight = module["embed"].weight
        fully_shard(module["embed"])
        with pytest.raises(ValueError, match="weight of Linear is shared with a module that was divided before"):
            fully_shard(module)
        return True

    assert dist.run_threads(script, 2) == [True, True]


@pytest.mark.parametrize("reshards", [True, False])
def test_parts_that_have_changed_are_gathered_again(reshards):
    def script():
        module = fully_shard(rg.nn.Linear(2, 2, bias=False), reshard_after_forward=reshards)
        found = []
        for value in (3.0, 4.0, 5.0):
            load_full_state_dict(module, {"weight": rg.full((2, 2), value)})
            with rg.no_grad():
                found.append(module(rg.ones(1, 2))[0, 0].item())
        return found

    assert dist.run_threads(script, 2) == [[6.0, 8.0, 10.0]] * 2


def test_parts_that_are_assigned_train_in_place_of_the_earlier_ones():
    source = model().state_dict()

    def script():
        module = fully_shard(rg.nn.Sequential(*[copy.deepcopy(m) for m in model()]))
        before = list(module.parameters())
        state = module.state_dict()
        parts = {name: distribute_tensor(source[name], x.device_mesh, x.placements) for name, x in state.items()}
        module.load_state_dict(parts, assign=True)
        assert all(p is not q and isinstance(p, DTensor) for p, q in zip(module.parameters(), before, strict=True))
        losses = train(module, values(9, 4, 4).chunk(2)[dist.get_rank()])
        module.load_state_dict({name: rg.nn.Parameter(x.full_tensor()) for name, x in parts.items()}, assign=True)
        with pytest.raises(RuntimeError, match="weight of Linear was replaced by a tensor that is not this"):
            module(values(9, 4, 4))
        return losses

    np.testing.assert_allclose(np.mean(dist.run_threads(script, 2), 0), train(model(), values(9, 4, 4)), rtol=1e-12)


@pytest.mark.parametrize("sums_in", [None, "float32"])
def test_a_block_computes_and_sums_gradients_in_the_dtypes_of_its_policy(sums_in):
    x, half = values(9, 8, 4).float(), rg.bfloat16
    seen = []

    class Noting(rg.nn.Linear):
        def forward(self, x):
            seen.append((x.dtype, self.weight.dtype))
            return super().forward(x)

    def expected():
        total = None
        for part in x.chunk(2):
            module = fill(rg.nn.Linear(4, 6)).to(half)
            module(part.to(half)).sum().backward()
            mean = module.weight.grad.to(rg.float32 if sums_in else half) / 2
            total = mean if total is None else total + mean
        return total.float()

    def script():
        module = fill(Noting(4, 6)).float()
        policy = MixedPrecisionPolicy(half, sums_in and getattr(rg, sums_in), output_dtype=rg.float64)
        fully_shard(module, mp_policy=policy)
        out = module(x.chunk(2)[dist.get_rank()])
        out.sum().backward()
        assert (out.dtype, module.weight.dtype, module.weight.grad.dtype) == (rg.float64, rg.float32, rg.float32)
        rg.optim.SGD(module.parameters(), lr=0.1).step()
        return module.weight.as_part(module.weight.grad).full_tensor().numpy()

    for found in dist.run_threads(script, 2):
        np.testing.assert_array_equal(found, expected().numpy())
    assert seen == [(half, half)] * 2


def test_gradients_of_passes_without_an_exchange_are_added_to_the_next_one():
    x, whole = values(9, 8, 4), model()
    (whole(x) ** 2).sum().backward()

    def script():
        module = model()
        fully_shard([m for m in module if isinstance(m, rg.nn.Linear)])
        fully_shard(module, reshard_after_forward=2)
        module.set_gradient_divide_factor(1.0)
        for block in (module[0], module[3], module[5]):
            block.set_gradient_divide_factor(1.0)
        mine = x.chunk(2)[dist.get_rank()]
        for number, part in enumerate(mine.chunk(2)):
            module.set_requires_gradient_sync(number == 1)
            (module(part) ** 2).sum().backward()
            assert (module[0].weight.grad is None) == (number == 0)
        return [p.as_part(p.grad).full_tensor().numpy() for p in module.parameters()]

    for found in dist.run_threads(script, 2):
        for mine, p in zip(found, whole.parameters(), strict=True):
            np.testing.assert_allclose(mine, p.grad.numpy(), rtol=1e-10, atol=1e-12)


def test_a_divided_module_has_pytorchs_methods():
    class Twice(rg.nn.Linear):
        def twice(self, x):
            return self.forward(x) * 2

    def script():
        module = fully_shard(Twice(4, 6))
        assert isinstance(module, FSDPModule)
        assert isinstance(module, Twice)
        assert type(module).__name__ == "FSDPTwice"
        part = module.weight
        module.unshard(async_op=True).wait()
        assert module.weight.shape == (6, 4)
        assert rg.equal(module.weight, part.full_tensor())
        assert module(rg.ones(2, 4)).shape == (2, 6)
        assert module.weight is part
        module.unshard()
        module.reshard()
        assert module.weight is part
        module.set_reshard_after_forward(False)
        module.set_modules_to_forward_prefetch([module])
        module.set_modules_to_backward_prefetch([module])
        register_fsdp_forward_method(module, "twice")
        x = rg.ones(2, 4)
        return rg.equal(module.twice(x), 2 * module(x))

    assert dist.run_threads(script, 2) == [True, True]


def test_other_divisions_are_refused_with_the_way_out():
    dist.init_process_group()
    try:
        with pytest.raises(ValueError, match="expects a 1D or 2D DeviceMesh but got"):
            fully_shard(rg.nn.Linear(2, 2), mesh=dist.init_device_mesh("cpu", (1, 1, 1)))
        for other in (Replicate(), Shard(1), 1):
            module = rg.nn.Linear(2, 2)
            with pytest.raises(
                ValueError, match=r"for a parameter of shape \(2,.*; expected None or Shard\(dim\) with"
            ):
                fully_shard(module, shard_placement_fn=lambda p, other=other: other)
            assert not isinstance(module.weight, DTensor)
        with pytest.raises(NotImplementedError, match="dp_mesh_dims is not supported; pass a mesh with"):
            fully_shard(rg.nn.Linear(2, 2), dp_mesh_dims=0)
    finally:
        dist.destroy_process_group()
    with pytest.raises(AttributeError, match=r"by fully_shard\(layer\) for each layer"):
        _ = fsdp.FullyShardedDataParallel
    with pytest.raises(AttributeError, match=r"ShardingStrategy.*reshard_after_forward"):
        _ = fsdp.ShardingStrategy


def test_parameters_that_tensor_parallelism_has_divided_stay_so_if_they_are_ignored():
    def script():
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))
        model = rg.nn.Sequential(rg.nn.Linear(4, 6), rg.nn.Linear(6, 2))
        parallelize_module(model, mesh["tensor"], {"0": ColwiseParallel(use_local_output=False)})
        before = dict(model.named_parameters())
        fully_shard(model, mesh=mesh["data"], ignored_params=list(model[0].parameters()))
        assert model[0].weight is before["0.weight"]
        return model[1].weight.to_local().shape

    assert dist.run_threads(script, 4) == [(1, 6)] * 4


def test_parts_of_blocks_inside_or_assigned_since_are_not_divided_again():
    def script():
        model = rg.nn.Sequential(rg.nn.Linear(4, 6), rg.nn.Linear(6, 2))
        fully_shard(model[0])
        model[0].load_state_dict({name: p.clone() for name, p in model[0].state_dict().items()}, assign=True)
        fully_shard(model)
        return [p.to_local().shape for p in model.parameters()]

    assert dist.run_threads(script, 2) == [[(3, 4), (3,), (1, 6), (1,)]] * 2
