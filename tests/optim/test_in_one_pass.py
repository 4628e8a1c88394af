"""Optimizer step kernels agree with the formulas, write to the same memory, and run only where permitted."""

import pytest

import retrograd as rg
from retrograd import nn, optim
from retrograd.ops import fused_update
from retrograd.ops.fused_update import overwrite

SETTINGS = [
    (optim.SGD, {}),
    (optim.SGD, {"weight_decay": 0.1, "maximize": True}),
    (optim.SGD, {"momentum": 0.9}),
    (optim.SGD, {"momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01}),
    (optim.SGD, {"momentum": 0.9, "nesterov": True, "maximize": True}),
    (optim.Adam, {}),
    (optim.Adam, {"weight_decay": 0.1, "maximize": True}),
    (optim.Adam, {"amsgrad": True, "betas": (0.5, 0.3)}),
    (optim.AdamW, {}),
    (optim.AdamW, {"amsgrad": True, "maximize": True, "weight_decay": 0.3}),
]


def trained(make, settings, dtype, steps=7):
    """Return a parameter and its optimizer after some steps with gradients of all magnitudes and signs."""
    source = rg.Generator().manual_seed(0)
    p = nn.Parameter(rg.randn(5, 40, generator=source).to(dtype))
    optimizer = make([p], lr=0.1, **settings)
    for k in range(steps):
        p.grad = (rg.randn(5, 40, generator=source) * 10.0 ** (k - 3)).to(dtype)
        optimizer.step()
    return p, optimizer


def without_kernels(monkeypatch):
    monkeypatch.setattr(fused_update, "overwrite", lambda *args: False)


@pytest.mark.parametrize("dtype", [rg.float32, rg.float64])
@pytest.mark.parametrize(("make", "settings"), SETTINGS)
def test_a_kernel_writes_what_the_formula_does(make, settings, dtype, monkeypatch):
    p, optimizer = trained(make, settings, dtype)
    without_kernels(monkeypatch)
    q, other = trained(make, settings, dtype)
    mine, its = {"p": p, **optimizer.state[p]}, {"p": q, **other.state[q]}
    assert list(mine) == list(its)
    few = 16 * rg.finfo(dtype).eps
    for name in mine.keys() - {"step"}:
        largest = its[name].abs().max().item()  # of what sums were made of
        rg.testing.assert_close(mine[name], its[name], rtol=few, atol=few * largest)


@pytest.mark.parametrize(("make", "settings"), SETTINGS)
def test_a_step_keeps_the_memory_of_the_parameter_and_of_its_state(make, settings):
    p, optimizer = trained(make, settings, rg.float32, steps=1)
    kept = [p, *[t for t in optimizer.state[p].values() if isinstance(t, rg.Tensor)]]
    before = [t.data_ptr() for t in kept]
    assert len(set(before)) == len(kept)
    versions = [t._version for t in kept]
    optimizer.step()
    assert [t.data_ptr() for t in (p, *optimizer.state[p].values()) if isinstance(t, rg.Tensor)] == before
    assert all(t._version > old for t, old in zip(kept, versions, strict=True))


@pytest.mark.parametrize("settings", [settings for make, settings in SETTINGS if make is optim.SGD])
def test_other_numbers_take_the_formula(settings):
    p, _ = trained(optim.SGD, settings, rg.float16, steps=3)
    q, _ = trained(optim.SGD, settings, rg.float32, steps=3)
    assert p.dtype == rg.float16
    rg.testing.assert_close(p.float(), q, rtol=2e-2, atol=2e-2)


def test_arrays_of_several_dtypes_or_shapes_are_no_matter_of_kernels():
    p = rg.tensor([1.0, 2.0])
    for grad in (rg.ones(2, dtype=rg.float64), rg.ones(1), rg.tensor(1.0)):
        assert not overwrite("descent", [p], [grad], (1, 0, 0.5))
    assert p.tolist() == [1.0, 2.0]


def test_a_parameter_that_is_a_view_of_others_is_written_in_place():
    whole = rg.zeros(4, 3)
    p = nn.Parameter(whole.t()[:, ::2])
    p.grad = rg.ones(3, 2)
    optim.Adam([p], lr=0.5).step()
    assert whole[::2].tolist() == [[pytest.approx(-0.5)] * 3] * 2
    assert whole[1::2].tolist() == [[0.0] * 3] * 2


def test_a_recorded_write_is_no_matter_of_kernels():
    p = rg.tensor([1.0], requires_grad=True) * 1
    assert not overwrite("descent", [p], [rg.tensor([1.0])], (1, 0, 0.5))
    with rg.no_grad():
        assert overwrite("descent", [p], [rg.tensor([1.0])], (1, 0, 0.5))
    assert p.tolist() == [0.5]


def test_a_step_inside_a_transform_is_that_of_its_tensors():
    def stepped(x):
        p = nn.Parameter(x.detach())
        p.grad = x
        optim.SGD([p], lr=0.5).step()
        return p

    assert rg.vmap(stepped)(rg.tensor([2.0, 4.0])).tolist() == [1.0, 2.0]


def test_memory_that_can_not_be_written_is_refused_before_anything_has_changed():
    p, m = rg.tensor([1.0, 1.0]), rg.tensor([1.0]).expand(2)
    with rg.no_grad(), pytest.raises(RuntimeError, match="momentum: this tensor's memory is read-only"):
        overwrite("momentum", [p, m], [rg.ones(2)], (1, 0, 0.9, 1, 0, 0.5))
    assert p.tolist() == [1.0, 1.0]
