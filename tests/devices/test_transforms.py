"""Transforms, recurrent modules, checkpoints and loaders on the strict device."""

import io

import numpy as np
import pytest
from tests.devices.devices import STRICT, is_on_strict, to_strict

import retrograd as rg
from retrograd import fx, nn
from retrograd.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from retrograd.ops.layout import place
from retrograd.utils.checkpoint import checkpoint
from retrograd.utils.data import DataLoader, TensorDataset

RNG = np.random.default_rng(1)
ROWS = rg.from_numpy(RNG.normal(size=(4, 3)))
WEIGHT = rg.from_numpy(RNG.normal(size=(3, 3)))


def energy(x):
    return ((x @ x.new_ones(3, 3)).tanh() * x).sum()


def sequences():
    return rg.from_numpy(RNG.normal(size=(5, 2, 3)))


# Functions of tensors, and their arguments: each gives a tensor or a tuple of them.
TRANSFORMS = {
    "grad": (grad(energy), (ROWS[0],)),
    "grad of grad": (grad(lambda x: grad(energy)(x).square().sum()), (ROWS[0],)),
    "vmap of grad": (vmap(grad(energy)), (ROWS,)),
    "grad of vmap": (grad(lambda x: vmap(energy)(x).sum()), (ROWS,)),
    "jvp": (lambda x, t: jvp(energy, (x,), (t,)), (ROWS[0], ROWS[1])),
    "jvp of grad": (lambda x, t: jvp(grad(energy), (x,), (t,)), (ROWS[0], ROWS[1])),
    "vjp": (lambda x, g: vjp(lambda y: y.sin() * 2, x)[1](g)[0], (ROWS, ROWS)),
    "jacobians": (lambda x: (jacrev(rg.sin)(x), jacfwd(rg.sin)(x)), (ROWS[0],)),
    "hessian": (hessian(energy), (ROWS[0],)),
    "checkpoint": (lambda x: grad(lambda y: checkpoint(energy, y, use_reentrant=False))(x), (ROWS[0],)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_on_a_device_give_the_results_of_host_memory(name):
    transformed, args = TRANSFORMS[name]
    expected, found = transformed(*args), transformed(*to_strict(args))
    for on_device, e in zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]:
        assert is_on_strict(on_device)
        np.testing.assert_allclose(place(on_device, None).detach().numpy(), e.detach().numpy(), rtol=1e-9, atol=1e-12)


MODULES = {
    "lstm": (lambda: nn.LSTM(3, 4, bidirectional=True), (sequences(),)),
    "gru": (lambda: nn.GRU(3, 4), (sequences(),)),
    "attention": (lambda: nn.MultiheadAttention(4, 2, add_zero_attn=True), tuple(rg.rand(3, 2, 4) for _ in range(3))),
    "group norm": (lambda: nn.GroupNorm(2, 4), (rg.rand(2, 4, 5),)),
    "instance norm": (lambda: nn.InstanceNorm1d(4, affine=True), (rg.rand(2, 4, 5),)),
    "transposed convolution": (lambda: nn.ConvTranspose2d(2, 3, 3, stride=2), (rg.rand(1, 2, 4, 4),)),
    "embedding bag": (lambda: nn.EmbeddingBag(5, 3), (rg.tensor([[0, 4], [1, 1]]),)),
    "batch norm": (lambda: nn.BatchNorm1d(3), (ROWS.float(),)),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_on_a_device_give_the_results_and_gradients_of_host_memory(name):
    make, args = MODULES[name]
    found = []
    for where in ("cpu", "strict"):
        rg.manual_seed(0)
        model = make().to(where)
        model = model.double() if args[0].dtype == rg.float64 else model
        out = model(*[x.to(where) for x in args])
        out = out[0] if isinstance(out, tuple) else out
        out.square().sum().backward()
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        assert all(is_on_strict(g) == (where == "strict") for g in (out, *grads))
        found.append([x.detach().cpu().numpy() for x in (out, *grads)])
    for on_device, expected in zip(*found, strict=True):
        np.testing.assert_allclose(on_device, expected, rtol=1e-4, atol=1e-5)


def test_a_functional_call_on_a_device_maps_over_ensembles():
    models = [nn.Linear(3, 2).to("strict").double() for _ in range(2)]
    params = {
        name: rg.stack([dict(m.named_parameters())[name] for m in models]).detach() for name in ("weight", "bias")
    }
    x = to_strict(ROWS)
    out = vmap(lambda p: functional_call(models[0], p, (x,)))(params)
    assert is_on_strict(out)
    for i, model in enumerate(models):
        np.testing.assert_allclose(out[i].tolist(), model(x).tolist())


def test_a_traced_function_runs_on_the_device_of_its_arguments():
    traced = fx.symbolic_trace(lambda x: (x * 2).sin().sum())
    assert is_on_strict(traced(to_strict(ROWS)))
    assert traced(to_strict(ROWS)).item() == pytest.approx(traced(ROWS).item())


def test_parameters_that_are_saved_on_a_device_load_in_host_memory_and_go_back():
    model = nn.Linear(3, 2).to("strict")
    file = io.BytesIO()
    rg.save(model.state_dict(), file)
    file.seek(0)
    state = rg.load(file)
    assert not any(map(is_on_strict, state.values()))
    other = nn.Linear(3, 2).to("strict")
    other.load_state_dict(state)
    assert is_on_strict(other.weight)
    assert other.weight.tolist() == model.weight.tolist()


def test_batches_of_a_loader_move_to_the_device():
    for x, y in DataLoader(TensorDataset(ROWS, ROWS), batch_size=2):
        there = x.to("strict"), y.to(STRICT.device)
        assert all(map(is_on_strict, there))
        assert there[0].tolist() == x.tolist()


def test_modules_are_made_on_the_device_that_is_named():
    for model in (nn.Linear(3, 2, device="strict"), nn.BatchNorm1d(3, device="strict"), nn.PReLU(device="strict")):
        assert all(is_on_strict(t) for t in model.state_dict().values())


def test_half_precision_on_a_device_is_computed_in_single():
    x = to_strict(rg.full((4, 4), 300.0, dtype=rg.float16))
    assert rg.linalg.vector_norm(x).item() == 1200.0
    assert (x @ x / 1e4).dtype == rg.float16


def test_keys_of_lists_and_masks_read_and_write_on_a_device():
    x = to_strict(ROWS)
    assert is_on_strict(x[[0, 2]])
    assert x[[0, 2]].tolist() == ROWS[[0, 2]].tolist()
    assert x[x > 0].tolist() == ROWS[ROWS > 0].tolist()
    x[[1]] = 0.0
    assert x[1].tolist() == [0.0, 0.0, 0.0]


def test_generators_give_the_numbers_of_the_cpu():
    expected = rg.randn(3, generator=rg.Generator().manual_seed(5)).tolist()
    assert rg.randn(3, generator=rg.Generator("strict").manual_seed(5), device="strict").tolist() == expected
    assert rg.Generator("strict").device == "strict"
