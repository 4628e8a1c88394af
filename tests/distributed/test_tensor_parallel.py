"""A model whose layers are divided among ranks trains like the whole one."""

import numpy as np
import pytest

import retrograd as rg
import retrograd.distributed as dist
from retrograd import nn
from retrograd.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_module, distribute_tensor
from retrograd.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)


def values(seed, *shape):
    return rg.from_numpy(np.random.default_rng(seed).standard_normal(shape))


class Block(nn.Module):
    """A block of a transformer, whose heads are divided."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.wq, self.wk, self.wv = (nn.Linear(8, 8, bias=False) for _ in range(3))
        self.wo = nn.Linear(8, 8)
        self.norm2 = nn.LayerNorm(8)
        self.w1, self.w2 = nn.Linear(8, 12), nn.Linear(12, 8)

    def forward(self, x):
        y = self.norm(x)
        heads = [w(y).unflatten(-1, (-1, 2)).transpose(1, 2) for w in (self.wq, self.wk, self.wv)]
        y = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.wo(y.transpose(1, 2).flatten(2))
        return x + self.w2(nn.functional.silu(self.w1(self.norm2(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 8)
        self.layers = nn.ModuleList([Block(), Block()])
        self.norm = nn.LayerNorm(8)
        self.output = nn.Linear(8, 10)

    def forward(self, ids):
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x))


def model():
    found = Model().double()
    for i, p in enumerate(found.parameters()):
        p.data = values(i, *p.shape) / 3
    return found


IDS, TARGETS = (rg.from_numpy(np.random.default_rng(seed).integers(0, 10, (2, 4))) for seed in (0, 1))
ATTENTION = {f"layers.*.{name}": ColwiseParallel() for name in ("wq", "wk", "wv", "w1")}
PLANS = {
    "by layers": {
        "embedding": RowwiseParallel(input_layouts=Replicate()),
        **ATTENTION,
        "layers.*.wo": RowwiseParallel(),
        "layers.*.w2": RowwiseParallel(),
        "output": ColwiseParallel(output_layouts=Replicate()),
    },
    "sequence": {
        "embedding": ColwiseParallel(output_layouts=Shard(1), use_local_output=False),
        "layers.*.norm": SequenceParallel(),
        "layers.*.norm2": SequenceParallel(),
        **ATTENTION,
        "layers.*.wo": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
        "layers.*.w2": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
        "norm": SequenceParallel(),
        "output": ColwiseParallel(input_layouts=Shard(1), use_local_output=False),
    },
}


def train(module, steps=3):
    optimizer, losses = rg.optim.AdamW(module.parameters(), lr=0.05), []
    for _ in range(steps):
        optimizer.zero_grad()
        scores, targets = module(IDS), TARGETS
        if isinstance(scores, DTensor):
            targets = distribute_tensor(targets, scores.device_mesh, [Replicate()])
        with loss_parallel():
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), targets.flatten())
            loss.backward()
        nn.utils.clip_grad_norm_(module.parameters(), 0.5)
        optimizer.step()
        losses.append(loss.item())
    return losses, optimizer


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("plan", PLANS)
def test_losses_and_parameters_are_those_of_the_whole_model(plan, ranks):
    whole = model()
    expected, _ = train(whole)

    def script():
        mesh = dist.init_device_mesh("cpu", (ranks,), mesh_dim_names=("tp",))
        module = model()
        if dist.get_rank() and plan == "sequence":  # which divides all parameters, so the values of rank 0 count
            for p in module.parameters():
                p.data = p.data * 2
        parallelize_module(module, mesh["tp"], PLANS[plan])
        assert module.layers[0].w1.weight.placements == (Shard(0),)
        assert module.layers[0].w2.weight.placements == (Shard(1),)
        losses, optimizer = train(module)
        moments = optimizer.state[module.layers[1].w2.weight]["exp_avg"]
        assert isinstance(moments, DTensor)
        assert moments.placements == (Shard(1),)
        return losses, {name: p.full_tensor() if isinstance(p, DTensor) else p for name, p in module.named_parameters()}

    for losses, parameters in dist.run_threads(script, ranks):
        np.testing.assert_allclose(losses, expected, rtol=1e-10)
        for name, p in whole.named_parameters():
            np.testing.assert_allclose(parameters[name].detach(), p.detach(), rtol=1e-7, atol=1e-10, err_msg=name)


def test_arguments_and_results_get_their_placements():
    class Pair(nn.Module):
        def forward(self, x, y, *, scale):
            seen.append((type(x), x.shape, y, scale.shape))
            return x.sum(0), y

    def script():
        mesh = dist.init_device_mesh("cpu", (2,))
        inputs = {
            "input_layouts": (Replicate(), None),
            "desired_input_layouts": (Shard(0), None),
            "input_kwarg_layouts": {"scale": Shard(0)},
            "desired_input_kwarg_layouts": {"scale": Replicate()},
        }
        outputs = {"output_layouts": (Partial(), None), "desired_output_layouts": (Replicate(), None)}
        module = parallelize_module(Pair(), mesh, PrepareModuleInput(**inputs, use_local_output=True))
        module = parallelize_module(module, mesh, PrepareModuleOutput(**outputs))
        both = parallelize_module(Pair(), mesh, PrepareModuleInputOutput(**inputs, use_local_input=True, **outputs))
        found = [each(rg.ones(4, 3), "kept", scale=rg.ones(2))[0].tolist() for each in (module, both)]
        assert found == [[4.0] * 3] * 2
        one = parallelize_module(
            nn.Identity(), mesh, PrepareModuleOutput(output_layouts=Shard(0), desired_output_layouts=Replicate())
        )
        return one(rg.ones(2)).shape

    seen = []
    assert dist.run_threads(script, 2) == [(4,)] * 2
    assert seen == [(rg.Tensor, (2, 3), "kept", (4,))] * 4


def test_a_module_is_divided_by_functions():
    def script():
        mesh = dist.init_device_mesh("cpu", (2,))

        def partition(name, module, mesh):
            if name == "0":
                whole = distribute_tensor(module.weight, mesh, [Shard(0)])
                module.register_parameter("weight", nn.Parameter(whole))

        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
        distribute_module(
            model,
            mesh,
            partition,
            lambda module, args, mesh: (distribute_tensor(args[0], mesh, [Replicate()]),),
            lambda module, output, mesh: output.full_tensor(),
        )
        assert model[0].weight.placements == (Shard(0),)
        assert model[0].bias.placements == model[1].running_mean.placements == (Replicate(),)
        model.eval()
        return model(rg.ones(2, 3)).shape

    assert dist.run_threads(script, 2) == [(2, 4)] * 2


def test_what_is_not_divided_in_parallel_is_refused():
    dist.init_process_group()
    try:
        with pytest.raises(NotImplementedError, match=r"ColwiseParallel currently only support nn\.Linear and nn\."):
            parallelize_module(nn.ReLU(), None, ColwiseParallel())
        with pytest.raises(ValueError, match="expected a mesh of one dimension, such as mesh"):
            parallelize_module(nn.Linear(2, 2), dist.init_device_mesh("cpu", (1, 1)), ColwiseParallel())
        with pytest.warns(UserWarning, match="no module has the name 'w9'"):
            parallelize_module(nn.Linear(2, 2), None, {"w9": ColwiseParallel()})
        with pytest.warns(UserWarning, match="no parallelize_plan is given"):
            parallelize_module(nn.Linear(2, 2))
        with pytest.raises(ValueError, match="the layouts and the desired layouts differ in length"):
            PrepareModuleInput(input_layouts=Replicate(), desired_input_layouts=(Shard(0), None))
        with pytest.raises(ValueError, match="input_kwarg_layouts has"):
            PrepareModuleInput(input_kwarg_layouts={"x": Replicate()})
        wrong = PrepareModuleOutput(output_layouts=(None, None), desired_output_layouts=(None, None))
        with pytest.raises(ValueError, match="there are 1 values, and layouts for 2"):
            parallelize_module(nn.Identity(), None, wrong)(rg.ones(1))
    finally:
        dist.destroy_process_group()


def test_a_style_of_the_user_divides_a_module():
    class Named(ParallelStyle):
        def _apply(self, module, device_mesh):
            module.divided_by = self.src_data_rank, device_mesh.size()
            return module

    def script():
        model = parallelize_module(nn.Sequential(nn.Linear(2, 2)), parallelize_plan={"0": Named()}, src_data_rank=1)
        return model[0].divided_by

    assert dist.run_threads(script, 2) == [(1, 2)] * 2
