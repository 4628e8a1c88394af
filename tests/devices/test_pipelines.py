"""Pipelines with a stage per device: two strict devices in one process, whose arrays are of different types."""

import copy
from collections.abc import Iterator

import numpy as np
import pytest
from tests.devices import strict
from tests.devices.devices import STRICT, is_on_strict, load_again
from tests.pipelining.rank_threads import run_ranks

import retrograd as rg
from retrograd import nn
from retrograd.backend.devices import forget_device, register_device
from retrograd.backend.library_device import LibraryDevice
from retrograd.core.tensor import unwrap_all
from retrograd.nn.functional import mse_loss
from retrograd.pipelining import PipelineStage, get_schedule_class, pipe_split, pipeline
from retrograd.pipelining.transports.serialization import pack, unpack

other = load_again("strict_other")
DEVICES = ("strict", "other")
RNG = np.random.default_rng(3)
X, Y = (rg.from_numpy(RNG.normal(size=(8, 6))) for _ in range(2))


@pytest.fixture(scope="module", autouse=True)
def other_device() -> Iterator[None]:
    made = register_device(LibraryDevice("other", other.library, special=other.special))
    yield
    forget_device(made)


class Blocks(nn.Module):
    def __init__(self, count):
        super().__init__()
        rg.manual_seed(0)
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(6, 6), nn.Tanh()) for _ in range(count)]).double()

    def forward(self, x):
        for number, block in enumerate(self.blocks):
            if number:
                pipe_split()
            x = block(x)
        return x


def is_on(x, where):
    return type(unwrap_all(x)) is {"strict": strict, "other": other}[where].ndarray


def by_hand(model, index, count, where, group):
    return PipelineStage(model.blocks[index].to(where), index, count, where, group=group)


def captured(stages):
    def make(model, index, count, where, group):
        stages[index].to(where)
        return pipeline(copy.deepcopy(model), (rg.ones(2, 6, dtype=rg.float64),)).build_stage(index, where, group)

    return make


@pytest.mark.parametrize("name", ["GPipe", "1F1B"])
def test_stages_on_two_devices_train_as_the_unsplit_model_in_host_memory(name):
    model = Blocks(2)
    parts = copy.deepcopy(model)

    def script(rank, group):
        stage = by_hand(parts, rank, 2, DEVICES[rank], group)
        schedule, losses = get_schedule_class(name)(stage, 4, loss_fn=mse_loss), []
        out = schedule.step(*[X] * (rank == 0), **({"target": Y.to("other"), "losses": losses} if rank else {}))
        return (losses, out)

    (_, (losses, out)) = run_ranks(2, script)
    expected = rg.stack([mse_loss(a, b) for a, b in zip(model(X).chunk(4), Y.chunk(4), strict=True)])
    expected.mean().backward()
    assert is_on(out, "other")
    np.testing.assert_allclose(out.detach().cpu().numpy(), model(X).detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose([loss.item() for loss in losses], expected.tolist(), rtol=1e-12)
    for where, found, wanted in zip(DEVICES, parts.blocks, model.blocks, strict=True):
        for p, q in zip(found.parameters(), wanted.parameters(), strict=True):
            assert is_on(p.grad, where)
            np.testing.assert_allclose(p.grad.cpu().numpy(), q.grad.numpy(), rtol=1e-10)


def test_stages_of_one_rank_may_be_on_different_devices():
    model = Blocks(4)
    parts = copy.deepcopy(model)
    stages = [by_hand(parts, i, 4, DEVICES[i % 2], None) for i in range(4)]
    get_schedule_class("Interleaved1F1B")(stages, 2, loss_fn=mse_loss).step(X, target=Y.to("other"))
    rg.stack([mse_loss(a, b) for a, b in zip(model(X).chunk(2), Y.chunk(2), strict=True)]).mean().backward()
    for index, (found, wanted) in enumerate(zip(parts.blocks, model.blocks, strict=True)):
        for p, q in zip(found.parameters(), wanted.parameters(), strict=True):
            assert is_on(p.grad, DEVICES[index % 2])
            np.testing.assert_allclose(p.grad.cpu().numpy(), q.grad.numpy(), rtol=1e-10)


def test_a_captured_stage_makes_its_tensors_on_its_device():
    class Making(nn.Module):
        def forward(self, x):
            x = x + rg.ones(3, dtype=x.dtype)
            pipe_split()
            return x * rg.full((3,), 2.0, dtype=x.dtype)

    pipe = pipeline(Making(), (rg.ones(3),))
    stages = [pipe.build_stage(i, where) for i, where in enumerate(DEVICES)]
    values = {"x": rg.ones(3)}
    for index, stage in enumerate(stages):
        values = {name: m.value for name, m in stage.forward(0, values).items()}
        assert all(is_on(x, DEVICES[index]) for x in values.values())
    assert [x.tolist() for x in values.values()] == [[4.0, 4.0, 4.0]]


def test_messages_between_processes_go_through_host_memory():
    x = rg.arange(6.0, device=STRICT.device).reshape(2, 3).mT.requires_grad_()
    with strict.counting() as moved:
        header, buffers = pack({"x": x, "step": 3})
    assert moved == {"to host": 1, "from host": 0}
    found = unpack(header, buffers)
    assert found["step"] == 3
    assert found["x"].tolist() == x.tolist()
    assert found["x"].requires_grad
    assert not is_on_strict(found["x"])
