"""Autocast: which operators compute in which dtype, and what that does to gradients, transforms and other blocks."""

import warnings

import numpy as np
import pytest

import retrograd as rg
import retrograd.nn.functional as F
from retrograd import nn
from retrograd.utils.checkpoint import checkpoint


@pytest.fixture
def x():
    return rg.tensor(np.random.default_rng(0).standard_normal((4, 4)), dtype=rg.float32)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x @ x,
        lambda x: F.linear(x, x, x[0]),
        lambda x: rg.einsum("ij,jk->ik", x, x),
        lambda x: F.conv1d(x[None], x[:, :, None]),
        lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]),
    ],
)
@pytest.mark.parametrize("dtype", [rg.bfloat16, rg.float16])
def test_products_compute_in_the_lower_dtype(function, dtype, x):
    with rg.autocast("cpu", dtype=dtype):
        found = function(x)
    assert found.dtype == dtype
    expected = function(x.to(dtype))
    assert expected.dtype == dtype
    assert rg.equal(found, expected)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.mse_loss(x, x * 2),
        lambda x: F.cross_entropy(x, rg.tensor([0, 1, 2, 3])),
        lambda x: rg.linalg.svdvals(x),
        lambda x: x.prod(),
        lambda x: rg.cdist(x, x * 2),
        lambda x: rg.fft.rfft(x).abs(),
    ],
)
def test_losses_and_decompositions_compute_in_float32(function, x):
    low = x.bfloat16()
    with rg.autocast("cpu"):
        found = function(low)
    assert found.dtype == rg.float32
    assert rg.equal(found, function(low.float()))


@pytest.mark.parametrize("function", [rg.exp, rg.sum, lambda x: x.softmax(1), lambda x: F.layer_norm(x, (4,)), rg.neg])
def test_other_operators_take_their_operands_as_they_are(function, x):
    with rg.autocast("cpu"):
        assert function(x).dtype == rg.float32
        assert function(x.bfloat16()).dtype == rg.bfloat16


def test_float64_and_integers_are_not_cast(x):
    with rg.autocast("cpu"):
        assert (x.double() @ x.double()).dtype == rg.float64
        assert (rg.arange(3) @ rg.arange(3)).dtype == rg.int64


def test_gradients_have_the_dtype_of_the_parameters(x):
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    with rg.autocast("cpu", dtype=rg.bfloat16):
        out = model(x)
        loss = F.cross_entropy(out, rg.tensor([0, 1, 0, 1]))
    assert (out.dtype, loss.dtype) == (rg.bfloat16, rg.float32)
    loss.backward()
    assert {p.grad.dtype for p in model.parameters()} == {rg.float32}
    exact = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    F.cross_entropy(model(x), rg.tensor([0, 1, 0, 1])).backward()
    for rounded, p in zip(exact, model.parameters(), strict=True):
        rg.testing.assert_close(rounded, p.grad, rtol=0.05, atol=0.02)
        assert not rg.equal(rounded, p.grad)


def test_a_disabled_block_suspends_the_blocks_around_it(x):
    with rg.autocast("cpu"):
        with rg.autocast("cpu", enabled=False):
            assert (x @ x).dtype == rg.float32
            assert not rg.is_autocast_enabled("cpu")
        assert (x @ x).dtype == rg.bfloat16
    assert (x @ x).dtype == rg.float32


def test_the_innermost_block_decides_on_the_dtype(x):
    with rg.autocast("cpu", dtype=rg.bfloat16), rg.autocast("cpu", dtype=rg.float16):
        assert (x @ x).dtype == rg.float16
        assert rg.get_autocast_dtype("cpu") == rg.float16
        with rg.autocast("cpu", dtype=rg.bfloat16):
            assert F.mse_loss(x @ x, x).dtype == rg.float32


def test_autocast_decorates_functions_and_the_same_block_is_entered_twice(x):
    block = rg.amp.autocast(device_type="cpu", dtype=rg.bfloat16)

    @block
    def product(x):
        with block:
            return x @ x

    assert product(x).dtype == rg.bfloat16
    assert product.__name__ == "product"
    assert not rg.is_autocast_enabled("cpu")


def test_the_cast_of_a_parameter_is_made_once_until_it_is_written(x):
    w = rg.ones(4, 4, requires_grad=True)
    with rg.autocast("cpu"):
        first = x @ w
        with rg.no_grad():
            w.mul_(3.0)
        second = x @ w
        third = x @ w
    assert rg.equal(second, third)
    assert not rg.equal(first, second)
    casts = [y.grad_fn.next_functions[1][0] for y in (second, third)]
    assert casts[0] is casts[1]
    with rg.autocast("cpu", cache_enabled=False):
        assert (x @ w).grad_fn.next_functions[1][0] is not (x @ w).grad_fn.next_functions[1][0]


def test_a_cast_made_without_recording_is_not_used_when_recording(x):
    w = rg.ones(4, 4, requires_grad=True)
    with rg.autocast("cpu"):
        with rg.no_grad():
            assert not (x @ w).requires_grad
        assert (x @ w).requires_grad


def test_transforms_compose_with_autocast_around_and_inside(x):
    def loss(w):
        return F.mse_loss(x @ w, rg.zeros(4, 4))

    def inside(w):
        with rg.autocast("cpu"):
            return loss(w)

    w = rg.ones(4, 4)
    leaf = rg.ones(4, 4, requires_grad=True)
    inside(leaf).backward()
    assert rg.equal(rg.func.grad(inside)(w), leaf.grad)
    with rg.autocast("cpu"):
        found = rg.vmap(lambda row: row @ w)(x)
    assert found.dtype == rg.bfloat16
    assert rg.vmap(inside)(rg.stack([w, w])).dtype == rg.float32
    assert rg.equal(rg.vmap(inside)(rg.stack([w, 2 * w])), rg.stack([inside(w), inside(2 * w)]))


def test_a_checkpoint_recomputes_under_the_same_autocast(x):
    w = rg.tensor(np.random.default_rng(1).standard_normal((4, 4)), dtype=rg.float32, requires_grad=True)
    grads = []
    for use in (False, True):
        w.grad = None
        with rg.autocast("cpu"):
            y = checkpoint(lambda w: (x @ w).tanh(), w, use_reentrant=False) if use else (x @ w).tanh()
        y.float().pow(2).sum().backward()
        grads.append(w.grad)
    assert rg.equal(*grads)


def test_in_place_writes_and_views_work_under_autocast(x):
    base = rg.zeros(4, 4)
    with rg.autocast("cpu"):
        base[0].add_(x[0])
        base[1:] += (x @ x)[1:]
    assert rg.equal(base[0], x[0])
    assert rg.equal(base[1:], (x.bfloat16() @ x.bfloat16())[1:].float())


def test_nested_tensors_are_cast_too(x):
    rows = rg.nested.nested_tensor([x[:2], x[:3]], layout=rg.jagged)
    with rg.autocast("cpu"):
        assert F.linear(rows, x).dtype == rg.bfloat16


def test_a_device_that_is_not_there_disables_the_block_with_a_warning(x):
    with pytest.warns(UserWarning, match="no device 'cuda'"):
        block = rg.autocast("cuda")
    with rg.autocast("cpu"), block:
        assert (x @ x).dtype == rg.bfloat16
    with block:
        assert (x @ x).dtype == rg.float32
    with pytest.warns(UserWarning, match="bfloat16 and float16"):
        rg.autocast("cpu", dtype=rg.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rg.autocast("cuda", enabled=False)


def test_unknown_devices_are_refused():
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'tpu9'"):
        rg.autocast("tpu9")
    with pytest.raises(ValueError, match="of type `str`"):
        rg.autocast(rg.float32)


def test_the_default_dtype_is_used_by_blocks_that_are_given_none(x):
    rg.set_autocast_dtype("cpu", rg.float16)
    try:
        with rg.autocast("cpu"):
            assert (x @ x).dtype == rg.float16
    finally:
        rg.set_autocast_dtype("cpu", rg.bfloat16)
    with pytest.raises(TypeError, match="expected a dtype, got str"):
        rg.set_autocast_dtype("cpu", "bfloat16")


def test_custom_functions_choose_their_dtype():
    kinds = []

    class Scale(rg.autograd.Function):
        @staticmethod
        @rg.amp.custom_fwd(device_type="cpu", cast_inputs=rg.float32)
        def forward(ctx, x):
            kinds.append((x.dtype, rg.is_autocast_enabled("cpu")))
            return x * 2

        @staticmethod
        @rg.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            kinds.append((grad.dtype, rg.is_autocast_enabled("cpu")))
            return grad * 2

    x = rg.ones(3).bfloat16().requires_grad_()
    with rg.autocast("cpu"):
        Scale.apply(x).sum().backward()
    assert kinds == [(rg.float32, False), (rg.float32, False)]
    assert x.grad.dtype == rg.bfloat16
