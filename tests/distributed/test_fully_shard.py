"""Models whose parameters are divided among ranks train like one model on the whole batch."""

import gc
import weakref

import numpy as np
import pytest

import retrograd as rg
import retrograd.distributed as dist
from retrograd.distributed.fsdp import full_state_dict, fully_shard, load_full_state_dict


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


@pytest.mark.parametrize("reshards", [True, False])
@pytest.mark.parametrize("ranks", [2, 4])
def test_losses_and_parameters_are_those_of_the_whole_batch(ranks, reshards):
    x, whole = values(9, 8, 4), model()
    expected = train(whole, x)

    def script():
        module = model()
        for layer in module:
            if isinstance(layer, rg.nn.Linear):
                fully_shard(layer, reshard_after_forward=reshards)
        fully_shard(module, reshard_after_forward=reshards)
        losses = train(module, x.chunk(ranks)[dist.get_rank()])
        return losses, {name: value.numpy().copy() for name, value in full_state_dict(module).items()}

    found = dist.run_threads(script, ranks)
    np.testing.assert_allclose(np.mean([losses for losses, _ in found], 0), expected, rtol=1e-12)
    for _, state in found:
        assert list(state) == list(whole.state_dict())
        for name, value in whole.state_dict().items():
            np.testing.assert_allclose(state[name], value.numpy(), rtol=1e-10, atol=1e-13)


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
        return [sum(v.numel() for v in each) for each in (parameters, [p.grad for p in parameters], states)]

    elements = sum(p.numel() for p in model().parameters())
    found = np.array(dist.run_threads(script, 2))
    np.testing.assert_array_equal(found.sum(0), [elements, elements, 2 * elements])
    assert found[0, 0] <= elements / 2 + 7 * 4  # at most a row more of each parameter


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
        return module.weight.shape

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
        with pytest.raises(ValueError, match="no parameters that are not divided already"):
            fully_shard(rg.nn.ReLU())
    finally:
        dist.destroy_process_group()
