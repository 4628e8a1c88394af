"""Training on the strict device: the numbers of host memory, and no value moved within a step."""

import io
from typing import Any

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


class Recurrent(nn.Module):
    """An LSTM over rows of numbers, and classes from its last state."""

    def __init__(self):
        super().__init__()
        self.cells, self.head = nn.LSTM(8, 5, num_layers=2, batch_first=True), nn.Linear(5, 3)

    def forward(self, x):
        return self.head(self.cells(x.squeeze(1))[0][:, -1])


class Decoder(nn.Module):
    """A GPT of one block."""

    def __init__(self, dropout=0.0):
        super().__init__()
        self.words, self.places, self.norm = nn.Embedding(11, 16), nn.Embedding(5, 16), nn.LayerNorm(16)
        self.block = nn.TransformerEncoderLayer(16, 2, 32, dropout, F.gelu, batch_first=True, norm_first=True)

    def forward(self, x):
        size = x.shape[1]
        mask = rg.full((size, size), -float("inf"), device=x.device).triu(1)
        states = self.words(x) + self.places(rg.arange(size, device=x.device))
        return self.norm(self.block(states, src_mask=mask, is_causal=True)) @ self.words.weight.mT


CASES = {
    "perceptron, SGD": (perceptron, (ROWS, CLASSES), classes_loss, lambda p: rg.optim.SGD(p, 0.1, momentum=0.9)),
    "perceptron, AdamW": (perceptron, (ROWS, CLASSES), classes_loss, lambda p: rg.optim.AdamW(p, 0.01)),
    "convolutions, Adam": (convolutions, (IMAGES, CLASSES), classes_loss, lambda p: rg.optim.Adam(p, 0.01)),
    "transformer, AdamW": (transformer, (WORDS, WORDS), words_loss, lambda p: rg.optim.AdamW(p, 0.01)),
    "recurrent, SGD": (Recurrent, (IMAGES, CLASSES), classes_loss, lambda p: rg.optim.SGD(p, 0.1)),
    "decoder, Adam": (Decoder, (WORDS, WORDS), words_loss, lambda p: rg.optim.Adam(p, 0.01, amsgrad=True)),
}


def train(case: str, where: str, clipped: bool = False, scaler: Any = None) -> tuple[list[float], int]:
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
            (loss if scaler is None else scaler.scale(loss)).backward()
            if scaler is not None:
                scaler.unscale_(optimizer)
            if clipped:
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            if scaler is None:
                optimizer.step()
            else:
                scaler.step(optimizer)
                scaler.update()
        losses.append(loss.item())
    return losses, sum(moved.values())


@pytest.mark.parametrize("case", CASES)
def test_a_step_on_a_device_gives_the_numbers_of_host_memory_and_moves_nothing(case):
    expected, _ = train(case, "cpu")
    losses, moved = train(case, STRICT.device)
    assert moved == 0
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("case", CASES)
def test_clipping_reads_nothing_from_a_device_and_a_scaler_one_flag(case):
    expected, _ = train(case, "cpu", True, rg.amp.GradScaler("cpu"))
    losses, moved = train(case, STRICT.device, True, rg.amp.GradScaler("strict"))
    assert moved == 1
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    assert train(case, STRICT.device, True)[1] == 0


def test_a_scaler_on_a_device_skips_a_step_with_infinite_gradients():
    weight, scaler = nn.Parameter(rg.ones(2, device="strict")), rg.amp.GradScaler("strict", init_scale=4.0)
    optimizer = rg.optim.SGD([weight], 0.1)
    scaler.scale((weight * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [1.0, 1.0]
    assert scaler.get_scale() == 2.0


# Transfers per step of the optimizers that decide by values.
READING = {"Adafactor": 2, "Muon": 1}


OPTIMIZERS = [
    n for n in dir(rg.optim) if isinstance(kind := getattr(rg.optim, n), type) and issubclass(kind, rg.optim.Optimizer)
]


@pytest.mark.parametrize("name", sorted({*OPTIMIZERS} - {"LBFGS", "Optimizer", "SparseAdam"}))
def test_states_of_optimizers_are_on_the_device_also_after_loading(name):
    found = []
    for where in ("cpu", "strict"):
        weight = nn.Parameter(rg.arange(6.0).reshape(2, 3).to(where) / 7)

        def step(optimizer, weight=weight):
            optimizer.zero_grad()
            (weight * weight).sum().backward()
            with strict.counting() as moved:
                optimizer.step()
            return sum(moved.values())

        first, second = (getattr(rg.optim, name)([weight], lr=0.1) for _ in range(2))
        step(first)
        moved = step(first)
        file = io.BytesIO()
        rg.save(first.state_dict(), file)
        file.seek(0)
        second.load_state_dict(rg.load(file))
        step(second)
        if where == "strict":
            assert moved == READING.get(name, 0)
            assert all(is_on_strict(x) for x in second.state[weight].values() if isinstance(x, rg.Tensor) and x.ndim)
        found.append(weight.detach().cpu().numpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-6)


def test_a_file_is_loaded_to_the_device_that_is_named():
    file = io.BytesIO()
    rg.save({"weight": rg.ones(2, device="strict"), "epoch": 3}, file)
    file.seek(0)
    loaded = rg.load(file, map_location="strict")
    assert is_on_strict(loaded["weight"])
    assert loaded["epoch"] == 3


@pytest.mark.parametrize("dtype", [rg.float16, rg.bfloat16])
def test_autocast_casts_operands_on_its_device_only(dtype):
    x, weight = rg.ones(2, 3), rg.ones(3, 2, requires_grad=True)
    there, its = x.to("strict"), weight.detach().to("strict").requires_grad_()
    with rg.autocast("strict", dtype=dtype):
        assert (x @ weight).dtype == rg.float32
        out = there @ its
    assert out.dtype == dtype
    out.float().square().sum().backward()
    assert its.grad.dtype == rg.float32
    assert its.grad.tolist() == [[12.0, 12.0]] * 3
    with rg.autocast("cpu", dtype=dtype):
        assert (there @ its).dtype == rg.float32


def test_half_precision_on_the_device_has_the_numbers_of_host_memory():
    x = rg.linspace(-3, 3, 12).reshape(3, 4)
    functions = [rg.exp, lambda x: F.softmax(x, -1), lambda x: x @ x.mT, lambda x: F.layer_norm(x, (4,)), F.gelu]
    for dtype in (rg.float16, rg.bfloat16):
        for function in functions:
            found = []
            for where in ("cpu", "strict"):
                leaf = x.to(where, dtype).requires_grad_()
                out = function(leaf)
                out.float().square().sum().backward()
                assert out.dtype == leaf.grad.dtype == dtype
                found.append([t.detach().cpu().float().numpy() for t in (out, leaf.grad)])
            for on_device, expected in zip(*found, strict=True):
                np.testing.assert_allclose(on_device, expected, rtol=1e-2, atol=1e-2)


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
