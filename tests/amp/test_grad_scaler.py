"""GradScaler: scaled losses, skipped steps, and the scale that follows from them."""

import pytest

import retrograd as rg
from retrograd.amp import GradScaler


@pytest.fixture
def w():
    return rg.tensor([1.0, 2.0], requires_grad=True)


def test_a_step_uses_unscaled_gradients(w):
    optimizer = rg.optim.SGD([w], lr=0.1)
    scaler = GradScaler("cpu", init_scale=8.0)
    scaler.scale((w**2).sum()).backward()
    assert w.grad.tolist() == [16.0, 32.0]
    scaler.step(optimizer)
    scaler.update()
    rg.testing.assert_close(w.detach(), rg.tensor([0.8, 1.6]))


def test_gradients_can_be_clipped_after_unscale(w):
    optimizer = rg.optim.SGD([w], lr=1.0)
    scaler = GradScaler("cpu")
    scaler.scale((w * rg.tensor([3.0, 4.0])).sum()).backward()
    scaler.unscale_(optimizer)
    assert float(rg.nn.utils.clip_grad_norm_([w], 1.0)) == 5.0
    scaler.step(optimizer)
    rg.testing.assert_close(w.detach(), rg.tensor([1.0 - 0.6, 2.0 - 0.8]))


@pytest.mark.parametrize("bad", [float("inf"), float("nan")])
def test_a_step_with_infinite_or_nan_gradients_is_skipped_and_the_scale_shrinks(w, bad):
    optimizer = rg.optim.SGD([w], lr=0.1)
    scaler = GradScaler("cpu", init_scale=8.0)
    scaler.scale((w * bad).sum()).backward()
    assert scaler.step(optimizer) is None
    scaler.update()
    assert w.tolist() == [1.0, 2.0]
    assert scaler.get_scale() == 4.0


def test_the_scale_grows_after_an_interval_of_steps(w):
    optimizer = rg.optim.SGD([w], lr=0.1)
    scaler = GradScaler("cpu", init_scale=8.0, growth_interval=2, growth_factor=4.0)
    scales = []
    for _ in range(4):
        scaler.scale(w.sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    assert scales == [8.0, 32.0, 32.0, 128.0]


def test_the_state_continues_in_another_scaler(w):
    optimizer = rg.optim.SGD([w], lr=0.1)
    scaler = GradScaler("cpu", init_scale=8.0, growth_interval=2)
    scaler.scale(w.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    other = GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict()
    assert scaler.state_dict()["_growth_tracker"] == 1
    with pytest.raises(RuntimeError, match="source state dict is empty"):
        other.load_state_dict(GradScaler("cpu", enabled=False).state_dict())


def test_a_disabled_scaler_changes_nothing(w):
    optimizer = rg.optim.SGD([w], lr=0.1)
    scaler = GradScaler(enabled=False)
    loss = w.sum()
    assert scaler.scale(loss) is loss
    loss.backward()
    scaler.unscale_(optimizer)
    assert scaler.step(optimizer, lambda: 3.0) == 3.0
    scaler.update()
    assert (scaler.get_scale(), scaler.state_dict(), scaler.is_enabled()) == (1.0, {}, False)
    with pytest.warns(UserWarning, match="no device 'cuda'"):
        assert not GradScaler().is_enabled()


def test_calls_in_the_wrong_order_are_refused(w):
    optimizer = rg.optim.SGD([w], lr=0.1)
    scaler = GradScaler("cpu")
    with pytest.raises(RuntimeError, match="No inf checks"):
        scaler.update()
    scaler.scale(w.sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"after step\(\)"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="Closure use"):
        scaler.step(optimizer, lambda: 1.0)


def test_float16_gradients_are_refused_before_any_is_scaled(w):
    half = rg.ones(2, dtype=rg.float16, requires_grad=True)
    optimizer = rg.optim.SGD([w, half], lr=0.1)
    scaler = GradScaler("cpu", init_scale=2.0)
    scaler.scale(w.sum() + half.sum()).backward()
    with pytest.raises(ValueError, match="FP16 gradients"):
        scaler.unscale_(optimizer)
    assert w.grad.tolist() == [2.0, 2.0]


def test_several_losses_are_scaled_at_once(w):
    scaler = GradScaler("cpu", init_scale=2.0)
    assert [x.tolist() for x in scaler.scale([w.detach(), w.detach() * 2])] == [[2.0, 4.0], [4.0, 8.0]]
    with pytest.raises(ValueError, match="Tensor or an iterable"):
        scaler.scale(3)


@pytest.mark.parametrize("settings", [{"growth_factor": 1.0}, {"backoff_factor": 1.0}, {"backoff_factor": 0.0}])
def test_factors_that_do_not_grow_or_shrink_the_scale_are_refused(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        GradScaler("cpu", **settings)
