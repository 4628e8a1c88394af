"""Training on the strict device: the numbers of host memory, and no value moved within a step."""

import numpy as np
import pytest
from tests.devices import strict
from tests.devices.devices import STRICT, is_on_strict

import retrograd as rg
from retrograd import nn
from retrograd.nn import functional as F

STEPS = 3
RNG = np.random.default_rng(0)
ROWS, CLASSES = rg.from_numpy(RNG.normal(size=(8, 6)).astype("float32")), rg.from_numpy(RNG.integers(0, 3, 8))
IMAGES = rg.from_numpy(RNG.normal(size=(8, 1, 8, 8)).astype("float32"))
WORDS = rg.from_numpy(RNG.integers(0, 11, (4, 5)))


def perceptron():
    return nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 3))


def convolutions():
    first = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))
    return nn.Sequential(first, nn.Flatten(), nn.Linear(64, 3))


def transformer():
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    return nn.Sequential(nn.Embedding(11, 16), layer, nn.Linear(16, 11))


def classes_loss(model, x, target):
    return F.cross_entropy(model(x), target)


def words_loss(model, x, target):
    return F.cross_entropy(model(x).reshape(-1, 11), target.reshape(-1))


CASES = {
    "perceptron, SGD": (perceptron, (ROWS, CLASSES), classes_loss, lambda p: rg.optim.SGD(p, 0.1, momentum=0.9)),
    "perceptron, AdamW": (perceptron, (ROWS, CLASSES), classes_loss, lambda p: rg.optim.AdamW(p, 0.01)),
    "convolutions, Adam": (convolutions, (IMAGES, CLASSES), classes_loss, lambda p: rg.optim.Adam(p, 0.01)),
    "transformer, AdamW": (transformer, (WORDS, WORDS), words_loss, lambda p: rg.optim.AdamW(p, 0.01)),
}


def train(case: str, where: str) -> tuple[list[float], int]:
    """Return the losses of some steps on a device, and the number of transfers in the last step."""
    make, data, loss_of, optimizer_of = CASES[case]
    rg.manual_seed(0)
    model = make().to(where)
    data = [x.to(where) for x in data]
    optimizer, losses = optimizer_of(model.parameters()), []
    for _ in range(STEPS):
        with strict.counting() as moved:
            optimizer.zero_grad()
            loss = loss_of(model, *data)
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    return losses, sum(moved.values())


@pytest.mark.parametrize("case", CASES)
def test_a_step_on_a_device_gives_the_numbers_of_host_memory_and_moves_nothing(case):
    expected, _ = train(case, "cpu")
    losses, moved = train(case, STRICT.device)
    assert moved == 0
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    assert losses[-1] < losses[0]


def test_tensors_are_made_on_the_device_that_is_named():
    made = [rg.tensor([1.0], device="strict"), rg.zeros(2, device="strict"), rg.arange(3, device="strict")]
    made += [rg.rand(2, device="strict"), rg.zeros_like(made[0]), made[0].new_ones(3), rg.rand_like(made[0])]
    assert all(map(is_on_strict, made))
    assert {x.device for x in made} == {rg.device("strict")}
    assert [x.is_cpu for x in made[:2]] == [False, False]


def test_a_tensor_moves_to_a_device_and_back_with_its_gradient():
    x = rg.tensor([1.0, 2.0], requires_grad=True)
    there = x.to("strict")
    assert there.to("strict") is there
    assert not x.cpu().is_cuda
    (there * there).sum().cpu().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_operands_on_two_devices_are_refused_except_numbers():
    there = rg.ones(2, device="strict")
    with pytest.raises(RuntimeError, match=r"add: Expected all tensors to be on the same device.* strict and cpu"):
        there + rg.ones(2)
    assert (there * rg.tensor(3.0)).tolist() == [3.0, 3.0]


def test_an_array_of_a_device_is_no_numpy_array():
    there = rg.ones(2, device="strict")
    with pytest.raises(TypeError, match=r"can't convert strict device type tensor to numpy. Use Tensor\.cpu\(\)"):
        there.numpy()
    assert repr(there) == "tensor([1., 1.], device='strict')"


def test_a_write_moves_its_source_to_the_device():
    there = rg.zeros(2, device="strict")
    there.copy_(rg.ones(2))
    there[0] = 5.0
    there.add_(1)
    assert there.tolist() == [6.0, 2.0]


def test_a_module_moves_to_a_device_and_stays_the_same_object():
    model = convolutions()
    parameters = list(model.parameters())
    model.to("strict")
    assert all(a is b for a, b in zip(parameters, model.parameters(), strict=True))
    assert all(is_on_strict(t) for t in model.state_dict().values())
    assert not any(is_on_strict(t) for t in model.cpu().state_dict().values())


def test_the_default_device_is_where_tensors_are_made():
    rg.set_default_device("strict")
    try:
        assert rg.get_default_device() == "strict"
        assert is_on_strict(rg.ones(2))
        assert not is_on_strict(rg.ones(2, device="cpu"))
    finally:
        rg.set_default_device(None)
    assert not is_on_strict(rg.ones(2))
