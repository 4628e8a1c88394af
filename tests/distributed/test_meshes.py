"""Any mesh resumes the checkpoint of any other: stages, replicas, divided states and parameters, one process."""

import random
from typing import NamedTuple

import numpy as np
import pytest

import retrograd as rg
import retrograd.distributed as dist
import retrograd.distributed.checkpoint as checkpoint
from retrograd import nn
from retrograd.distributed.fsdp import full_state_dict, fully_shard
from retrograd.distributed.optim import ZeroRedundancyOptimizer
from retrograd.distributed.tensor import Shard
from retrograd.nn.functional import mse_loss
from retrograd.nn.parallel import DistributedDataParallel
from retrograd.pipelining import Pipeline


class Net(nn.Module):
    """A model with a weight used at both ends, one that nothing uses, a frozen one and a buffer."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 5, bias=False)
        self.layers = nn.ModuleList([nn.Linear(5, 5) for _ in range(4)])
        self.unused = nn.Linear(2, 3)
        self.scale = nn.Parameter(rg.tensor(0.5))
        self.layers[1].bias.requires_grad_(False)
        self.register_buffer("offset", rg.full((5,), 0.25))

    def forward(self, x):
        h = self.first(x) + self.offset
        for layer in self.layers:
            h = layer(h).tanh() * self.scale
        return h @ self.first.weight


def net(seed):
    rg.random.default_generator.manual_seed(seed)
    made = Net().double()
    for number, p in enumerate(made.parameters()):
        p.data = rg.from_numpy(np.random.default_rng([seed, number]).standard_normal(p.shape))
    return made


def batch(step):
    r = np.random.default_rng([7, step])
    return rg.from_numpy(r.standard_normal((8, 6))), rg.from_numpy(r.standard_normal((8, 6)))


class Mesh(NamedTuple):
    """A division of the work: its kind, the ranks, and for pipelines the replicas and the schedule."""

    kind: str
    ranks: int = 1
    replicas: int = 1
    schedule: str = "1f1b"


class Training:
    """The model over a mesh, on one of its ranks."""

    def __init__(self, mesh, seed):
        self.model = net(seed)
        self.parallel = self.model
        kinds = {"process": self.on_one_process, "zero1": self.zero1, "zero2": self.zero2, "fully": self.fully}
        kinds["columns"] = lambda: self.fully(lambda p: Shard(p.ndim - 1) if p.ndim else None)
        self.optimizer = kinds.get(mesh.kind, lambda: self.pipeline(mesh))()

    def on_one_process(self):
        return rg.optim.AdamW(self.model.parameters(), lr=0.02, betas=(0.8, 0.9))

    def zero1(self):
        self.parallel = DistributedDataParallel(self.model, find_unused_parameters=True)
        return ZeroRedundancyOptimizer(self.model.parameters(), rg.optim.AdamW, lr=0.02, betas=(0.8, 0.9))

    def zero2(self):
        parameters = self.model.parameters()
        return ZeroRedundancyOptimizer(parameters, rg.optim.AdamW, shard_gradients=True, lr=0.02, betas=(0.8, 0.9))

    def fully(self, placement=None):
        for layer in self.model.layers:
            fully_shard(layer, shard_placement_fn=placement)
        fully_shard(self.model, ignored_params=self.model.unused.parameters(), shard_placement_fn=placement)
        return self.on_one_process()

    def pipeline(self, mesh):
        options = {"replicas": mesh.replicas, "micro_batches": 4, "loss_fn": mse_loss, "schedule": mesh.schedule}
        if mesh.kind == "threads":
            options |= {"transport": "threads", "ranks": mesh.ranks // mesh.replicas}
        self.parallel = Pipeline(self.model, 4, **options)
        return self.on_one_process()

    def step(self, number):
        x, y = batch(number)
        if isinstance(self.parallel, Pipeline):
            loss = self.parallel.step(x, target=y)
        else:
            loss = mse_loss(self.parallel(x), y)
            loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()

    def state(self):
        if isinstance(self.parallel, Pipeline):
            return self.parallel.state_dict()
        return full_state_dict(self.model)


def run(mesh, script):
    """Run a script on the ranks of a mesh; those of threads are in one process."""
    return dist.run_threads(script, 1 if mesh.kind in ("process", "threads") else mesh.ranks)


def save_after_two_steps(mesh, folder):
    def script():
        training = Training(mesh, 0)
        losses = [training.step(0), training.step(1)]
        state = checkpoint.training_state(training.parallel, training.optimizer)
        checkpoint.save({"step": 1, **state}, checkpoint_id=folder)
        return losses

    return run(mesh, script)


def resume_two_steps(mesh, folder):
    def script():
        training = Training(mesh, 5)
        state = {"step": 0}
        checkpoint.load(state, checkpoint_id=folder)
        checkpoint.load_training_state(training.parallel, training.optimizer, checkpoint_id=folder)
        losses = [training.step(number) for number in (2, 3)]
        return state["step"], losses, {name: x.detach().numpy().copy() for name, x in training.state().items()}

    return run(mesh, script)


@pytest.fixture(scope="module")
def expected():
    training = Training(Mesh("process"), 0)
    losses = [training.step(number) for number in range(4)]
    return losses, {name: x.detach().numpy().copy() for name, x in training.state().items()}


MESHES = [
    Mesh("process"), Mesh("zero1", 3), Mesh("zero2", 2), Mesh("fully", 4), Mesh("pipeline", 2),
    Mesh("columns", 3),
    Mesh("pipeline", 4, 2, "zbh1"), Mesh("pipeline", 4, 4), Mesh("threads", 4, 2, "interleaved1f1b"),
]  # fmt: skip
PAIRS = [(a, b) for a in MESHES for b in MESHES]


@pytest.mark.parametrize(("saved_by", "resumed_by"), random.Random(0).sample(PAIRS, 32), ids=str)
def test_any_mesh_resumes_what_any_other_has_saved(tmp_path, expected, saved_by, resumed_by):
    losses, state = expected
    for found in save_after_two_steps(saved_by, tmp_path):
        np.testing.assert_allclose(found, losses[:2], rtol=1e-10)
    for step, found, resumed in resume_two_steps(resumed_by, tmp_path):
        assert step == 1
        np.testing.assert_allclose(found, losses[2:], rtol=1e-10)
        assert resumed.keys() == state.keys()
        for name, value in state.items():
            np.testing.assert_allclose(resumed[name], value, rtol=1e-9, atol=1e-12, err_msg=name)


def test_each_element_of_the_optimizer_s_state_is_saved_once_whatever_the_mesh(tmp_path):
    sizes = []
    for number, mesh in enumerate(MESHES):
        save_after_two_steps(mesh, tmp_path / str(number))
        files = (tmp_path / str(number)).glob("*.safetensors")
        sizes.append(sum(x.numel() for path in files for x in rg.interop.safetensors.load_file(path).values()))
    assert len({*sizes[:1], *sizes[4:]}) == 1  # one process, pipelines
    whole = sum(p.numel() for p in net(0).parameters())
    assert all(size <= sizes[0] + 3 * whole for size in sizes)


def test_other_groups_of_the_optimizer_are_refused_before_anything_changes(tmp_path):
    save_after_two_steps(Mesh("process"), tmp_path)
    model = net(3)
    before = model.first.weight.tolist()
    optimizer = rg.optim.AdamW(model.layers.parameters())
    with pytest.raises(ValueError, match=r"group 0 of the optimizer has other parameters: first\.weight, scale"):
        checkpoint.load_training_state(model, optimizer, checkpoint_id=tmp_path)
    assert model.first.weight.tolist() == before
    with pytest.raises(ValueError, match="parameters that the model lacks"):
        checkpoint.training_state(model, rg.optim.SGD(net(0).parameters(), lr=1.0))
    with pytest.raises(TypeError, match="expected a Module or a Pipeline, got int"):
        checkpoint.training_state(3)


def test_states_that_cannot_be_divided_are_refused():
    model = nn.Linear(2, 2)
    optimizer = rg.optim.LBFGS(model.parameters())

    def closure():
        optimizer.zero_grad()
        loss = (model(rg.ones(1, 2)) ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    with pytest.raises(TypeError, match="in the optimizer's state, which cannot be divided"):
        checkpoint.training_state(model, optimizer)
