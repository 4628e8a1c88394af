"""Brownian paths and methods for stochastic equations: distribution, repeatability, orders, gradients, refusals."""

import itertools

import numpy as np
import pytest

import retrograd as rg
from retrograd import ode
from retrograd.autograd import gradcheck, gradgradcheck
from retrograd.func import vmap

MU, SIGMA = 0.5, 0.8
PATHS = 2000


# -------------------------------------------------------------------------------------------------------- paths


def test_a_path_has_the_same_values_in_any_order_of_calls():
    times = np.random.default_rng(0).random(40)
    first, second = (ode.BrownianPath(0.0, 1.0, (3,), seed=5) for _ in range(2))
    forwards = {t: first(t) for t in times}
    for t in times[::-1]:
        assert (second(t) == forwards[t]).all()
        assert (first(t) == forwards[t]).all()
    assert (ode.BrownianPath(0.0, 1.0, (3,), seed=6)(0.3) != first(0.3)).all()
    assert (first(0.0) == 0).all()


def test_increments_of_a_path_are_independent_and_have_the_variance_of_their_time():
    path = ode.BrownianPath(1.0, 3.0, (40_000,), seed=1)
    times = [1.0, 1.3, 1.5, 2.2, 3.0]
    increments = rg.stack([path.increment(a, b) for a, b in itertools.pairwise(times)]).numpy()
    np.testing.assert_allclose(increments.var(1), np.diff(times), rtol=0.03)
    np.testing.assert_allclose(np.corrcoef(increments), np.eye(4), atol=0.02)
    np.testing.assert_allclose((increments**4).mean(1) / increments.var(1) ** 2, 3, rtol=0.08)  # as normal ones


def test_a_path_is_that_of_its_seed_outside_of_the_cache_and_under_vmap(monkeypatch):
    path = ode.BrownianPath(0.0, 1.0, seed=2)
    expected = [path(k / 100) for k in range(101)]
    monkeypatch.setattr(ode.brownian, "CACHED", 5)
    small = ode.BrownianPath(0.0, 1.0, seed=2)
    assert [small(k / 100) for k in range(101)] == expected
    found = vmap(lambda x: x + path(0.37))(rg.zeros(3, dtype=rg.float64))
    assert (found == path(0.37)).all()


def test_refusals_of_paths_have_a_reason():
    with pytest.raises(ValueError, match=r"ode\.BrownianPath: t1 must be above t0, got 1\.0 and 1\.0"):
        ode.BrownianPath(1.0, 1.0)
    with pytest.raises(ValueError, match=r"ode\.BrownianPath: the time 2\.0 is outside of the path, 0\.0 to 1\.0"):
        ode.BrownianPath(0.0, 1.0)(2.0)


# ------------------------------------------------------------------------------------------------------ methods


def geometric(method, steps, path, stratonovich=False):
    """Return the end of dy = mu y dt + sigma y dW with y = 1 at first."""
    drift = MU - SIGMA**2 / 2 if stratonovich else MU
    y0 = rg.ones(path.shape, dtype=rg.float64)
    return getattr(ode, method)(lambda t, y: drift * y, lambda t, y: SIGMA * y, y0, [0.0, 1.0], path, steps=steps)[-1]


@pytest.mark.parametrize(("method", "low", "high"), [
    ("euler_maruyama", 0.35, 0.7), ("milstein", 0.85, 1.2), ("reversible_heun", 0.45, 1.3),
])  # fmt: skip
def test_a_method_has_its_strong_order_compared_with_the_exact_solution(method, low, high):
    path = ode.BrownianPath(0.0, 1.0, (PATHS,), seed=3)
    exact = (MU - SIGMA**2 / 2 + SIGMA * path(1.0)).exp()
    steps = (16, 64, 256)
    errors = [(geometric(method, n, path, method == "reversible_heun") - exact).abs().mean().item() for n in steps]
    order = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert low < -order < high
    assert errors[-1] < 0.05


def test_euler_and_maruyamas_weak_order_is_one():
    path = ode.BrownianPath(0.0, 1.0, (PATHS,), seed=4)
    exact = (MU - SIGMA**2 / 2 + SIGMA * path(1.0)).exp()
    errors = []
    for steps in (2, 4, 8):  # on the same path, whose sampling error cancels in the difference with the martingale
        mean = (1 + MU / steps) ** steps  # of the method, in expectation
        errors.append(abs(mean - np.exp(MU)))
        found = geometric("euler_maruyama", steps, path)
        assert abs((found - exact).mean().item() - (mean - np.exp(MU))) < 5 * (found - exact).std().item() / PATHS**0.5
    assert 0.8 < np.log2(errors[0] / errors[2]) / 2 < 1.2


@pytest.mark.parametrize("method", ["euler_maruyama", "milstein", "reversible_heun"])
def test_gradients_along_a_path_are_right_to_second_order(method):
    path = ode.BrownianPath(0.0, 1.0, (2,), seed=7)

    def end(y0, p):
        return getattr(ode, method)(
            lambda t, y, p: -p[0] * y + t, lambda t, y, p: p[1] * rg.sin(y), y0, [0.0, 0.4, 1.0], path, (p,), steps=3
        )

    given = [rg.tensor(x, dtype=rg.float64, requires_grad=True) for x in ([1.0, 0.5], [0.7, 0.3])]
    assert gradcheck(end, given, check_forward_ad=True)
    assert gradgradcheck(end, given)
    batch = rg.stack([given[0].detach(), 2 * given[0].detach()])
    found = vmap(lambda y0: end(y0, given[1].detach()))(batch)
    np.testing.assert_allclose(found[1].numpy(), end(batch[1], given[1]).detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize("method", ["euler_maruyama", "reversible_heun"])
def test_a_matrix_mixes_the_elements_of_the_noise(method):
    path, mix = ode.BrownianPath(0.0, 1.0, (3,), seed=8), rg.randn(2, 3, dtype=rg.float64)
    y = getattr(ode, method)(lambda t, y: 0 * y, lambda t, y: mix, np.zeros(2), [0.0, 1.0], path, steps=4)
    np.testing.assert_allclose(y[-1].numpy(), (mix @ path(1.0)).numpy(), atol=1e-12)


def test_refusals_name_the_method():
    path = ode.BrownianPath(0.0, 1.0, (2,))
    zero = lambda t, y: 0 * y  # noqa: E731
    for call, error, match in (
        (lambda: ode.euler_maruyama(lambda t, y: y.sum(), zero, np.ones(2), [0.0, 1.0], path), ValueError,
         r"ode\.euler_maruyama: drift must return the shape of y, \(2,\), got \(\)"),
        (lambda: ode.milstein(zero, lambda t, y: rg.ones(2, 2), np.ones(2), [0.0, 1.0], path), ValueError,
         r"ode\.milstein: diffusion must return the shape of y"),
        (lambda: ode.euler_maruyama(zero, zero, np.ones(3), [0.0, 1.0], path), ValueError, r"path of shape \(2,\)"),
        (lambda: ode.reversible_heun(zero, zero, [1, 2], [0.0, 1.0], path), TypeError, r"must be real and floating"),
        (lambda: ode.euler_maruyama(zero, zero, np.ones(2), 1.0, path), ValueError, r"t must be a vector of times"),
    ):  # fmt: skip
        with pytest.raises(error, match=match):
            call()
