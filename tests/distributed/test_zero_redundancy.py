"""An optimizer whose state is divided among ranks gives the numbers of one on one rank, with a share of its memory."""

import numpy as np
import pytest

import retrograd as rg
import retrograd.distributed as dist
from retrograd.distributed.optim import ZeroRedundancyOptimizer as Zero
from retrograd.nn.parallel import DistributedDataParallel as Replicas

OPTIMIZERS = [
    name
    for name in sorted(dir(rg.optim))
    if isinstance(getattr(rg.optim, name), type)
    and issubclass(getattr(rg.optim, name), rg.optim.Optimizer)
    and name not in ("Optimizer", "LBFGS", "SparseAdam")
]


def values(seed, *shape):
    return rg.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def model():
    made = rg.nn.Sequential(rg.nn.Linear(4, 7, bias=False), rg.nn.Tanh(), rg.nn.Linear(7, 3, bias=False)).double()
    for i, p in enumerate(made.parameters()):
        p.data = values(i, *p.shape)
    return made


def steps(forward, optimizer, batch, count=3):
    for _ in range(count):
        optimizer.zero_grad()
        (forward(batch) ** 2).mean().backward()
        optimizer.step()


def parameters(module):
    return [p.detach().numpy().copy() for p in module.parameters()]


@pytest.mark.parametrize("shards_gradients", [False, True], ids=["ZeRO 1", "ZeRO 2"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_each_optimizer_gives_the_parameters_of_one_rank(name, shards_gradients):
    kind, x = getattr(rg.optim, name), values(9, 6, 4)
    whole = model()
    steps(whole, kind(whole.parameters()), x)

    def script():
        share, module = x.chunk(3)[dist.get_rank()], model()
        forward = module if shards_gradients else Replicas(module)
        steps(forward, Zero(module.parameters(), kind, shard_gradients=shards_gradients), share)
        return parameters(module)

    for found in dist.run_threads(script, 3):
        for mine, expected in zip(found, parameters(whole), strict=True):
            np.testing.assert_allclose(mine, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_rank_has_its_share_of_adams_state_and_of_the_gradients(ranks):
    def script():
        module = rg.nn.Sequential(rg.nn.Linear(30, 31), rg.nn.Linear(31, 7))
        optimizer = Zero(module.parameters(), rg.optim.Adam, shard_gradients=True)
        module(rg.ones(2, 30)).sum().backward()
        assert all(p.grad is None for p in module.parameters())
        gradients = sum(piece.tensor.grad.nbytes for piece in optimizer._pieces)
        optimizer.step()
        tensors = [v for s in optimizer.optim.state.values() for v in s.values() if isinstance(v, rg.Tensor)]
        return gradients, sum(v.nbytes for v in tensors if v.ndim)

    elements = 30 * 31 + 31 + 31 * 7 + 7
    found = dist.run_threads(script, ranks)
    share = -(-elements // ranks)
    assert sum(state for _, state in found) == 2 * 4 * elements
    assert all(gradients <= 4 * share for gradients, _ in found)
    assert all(state <= 2 * 4 * share for _, state in found)


def test_a_state_is_loaded_into_any_number_of_ranks():
    x = values(9, 8, 4)
    whole = model()
    optimizer = rg.optim.Adam(whole.parameters(), lr=0.02)
    steps(whole, optimizer, x)
    saved, before = optimizer.state_dict(), parameters(whole)
    saved = {"state": {n: dict(s) for n, s in saved["state"].items()}, "param_groups": saved["param_groups"]}
    saved["state"] = {
        n: {k: v.clone() if isinstance(v, rg.Tensor) else v for k, v in s.items()} for n, s in saved["state"].items()
    }
    steps(whole, optimizer, x)
    expected = optimizer.state_dict()

    def script():
        module = model()
        for p, value in zip(module.parameters(), before, strict=True):
            p.data = rg.from_numpy(value.copy())
        sharded = Zero(module.parameters(), rg.optim.Adam, lr=0.5)
        sharded.load_state_dict(saved)
        assert sharded.param_groups[0]["lr"] == 0.02
        steps(Replicas(module), sharded, x.chunk(2)[dist.get_rank()])
        sharded.consolidate_state_dict(to=1)
        if dist.get_rank() == 0:
            with pytest.raises(RuntimeError, match="has not been consolidated on this rank"):
                sharded.state_dict()
            return sharded.full_state_dict()
        sharded.full_state_dict()
        return sharded.state_dict()

    for found in dist.run_threads(script, 2):
        assert [group["lr"] for group in found["param_groups"]] == [0.02]
        for number, state in expected["state"].items():
            assert set(found["state"][number]) == set(state)
            for key, value in state.items():
                np.testing.assert_allclose(np.asarray(found["state"][number][key]), np.asarray(value), rtol=1e-10)


def test_schedulers_and_groups_change_the_settings_of_the_shares():
    x = values(9, 4, 4)

    def train(module, forward, make, batch):
        first, second = module.parameters()
        optimizer = make([{"params": [first], "lr": 0.1}, {"params": [second]}])
        scheduler = rg.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
        for _ in range(3):
            steps(forward, optimizer, batch, 1)
            scheduler.step()
        return parameters(module)

    whole = model()
    expected = train(whole, whole, lambda groups: rg.optim.SGD(groups, lr=0.01, momentum=0.9), x)

    def script():
        module = model()
        make = lambda groups: Zero(groups, rg.optim.SGD, lr=0.01, momentum=0.9)  # noqa: E731
        return train(module, Replicas(module), make, x.chunk(2)[dist.get_rank()])

    for found in dist.run_threads(script, 2):
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-10)


def test_an_optimizer_with_one_state_for_all_parameters_is_refused():
    dist.init_process_group()
    try:
        with pytest.raises(NotImplementedError, match="LBFGS has one state for all parameters"):
            Zero(model().parameters(), rg.optim.LBFGS)
        with pytest.raises(NotImplementedError, match="overlap_with_ddp"):
            Zero(model().parameters(), rg.optim.Adam, overlap_with_ddp=True)
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize("norm_type", [1.0, 2.0, float("inf")])
@pytest.mark.parametrize("ranks", [2, 5])  # of five ranks, one has no elements of the second group
def test_divided_gradients_are_clipped_by_the_norm_of_the_whole_ones(ranks, norm_type):
    def clipped(module, make, x):
        first, second = module.parameters()
        optimizer = make([{"params": [first]}, {"params": [second], "lr": 0.2}])
        (module(x) ** 2).mean().backward()
        total = rg.nn.utils.clip_grad_norm_(module.parameters(), 0.01, norm_type)
        rg.nn.utils.clip_grad_value_(module.parameters(), 0.001)
        optimizer.step()
        return total.item(), parameters(module)

    x = values(9, 10, 4)
    norm, expected = clipped(model(), lambda groups: rg.optim.SGD(groups, lr=0.1), x)

    def script():
        make = lambda groups: Zero(groups, rg.optim.SGD, shard_gradients=True, lr=0.1)  # noqa: E731
        return clipped(model(), make, x.chunk(ranks)[dist.get_rank()])

    for total, found in dist.run_threads(script, ranks):
        assert total == pytest.approx(norm, rel=1e-12)
        for mine, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-12)


@pytest.mark.parametrize("shards_gradients", [False, True], ids=["ZeRO 1", "ZeRO 2"])
def test_scaled_losses_give_the_step_of_others_and_all_ranks_skip_one_that_is_infinite(shards_gradients):
    x, whole = values(9, 6, 4), model()
    steps(whole, rg.optim.SGD(whole.parameters(), lr=0.1), x, 1)

    def script():
        module = model()
        forward = module if shards_gradients else Replicas(module)
        optimizer = Zero(module.parameters(), rg.optim.SGD, shard_gradients=shards_gradients, lr=0.1)
        scaler, scales = rg.amp.GradScaler("cpu", init_scale=8.0), []
        for factor in (float("inf") if dist.get_rank() == 1 else 1.0, 1.0):
            optimizer.zero_grad()
            scaler.scale((forward(x.chunk(3)[dist.get_rank()]) ** 2).mean() * factor).backward()
            scaler.step(optimizer)
            scaler.update()
            scales.append(scaler.get_scale())
        return scales, parameters(module)

    for scales, found in dist.run_threads(script, 3):
        assert scales == [4.0, 4.0]
        for mine, expected in zip(found, parameters(whole), strict=True):
            np.testing.assert_allclose(mine, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"state": {}, "param_groups": []}, "different number of parameter groups"),
        ({"state": {}, "param_groups": [{"params": [0]}]}, "doesn't match the size"),
        ({"state": {7: {}}, "param_groups": [{"params": [0, 1]}]}, r"states of parameters \[7\]"),
        ({"state": {0: {"exp_avg": rg.ones(3)}}, "param_groups": [{"params": [0, 1]}]}, r"must have shape \(7, 4\)"),
    ],
)
def test_states_that_do_not_fit_are_refused_as_on_one_rank(state, words):
    def script():
        module = model()
        optimizer = Zero(module.parameters(), rg.optim.Adam)
        for each in (rg.optim.Adam(module.parameters()), optimizer):
            with pytest.raises(ValueError, match=words):
                each.load_state_dict(state)
        return len(optimizer.optim.state)

    assert dist.run_threads(script, 2) == [0, 0]
