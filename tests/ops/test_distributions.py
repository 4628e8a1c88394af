"""Samples from distributions: moments, gradients, refused parameters, in-place forms."""

import numpy as np
import pytest
import scipy.special
import scipy.stats

import retrograd as rg
from retrograd.testing import assert_close

N = 20_000


def full(value, n=N):
    return rg.full((n,), value, dtype=rg.float64)


def generator():
    return rg.Generator(3)


# A sample of N values and the distribution that they should follow.
CONTINUOUS = {
    "standard_gamma": (lambda g: rg.standard_gamma(full(2.5), generator=g), scipy.stats.gamma(2.5)),
    "standard_gamma, small": (lambda g: rg.standard_gamma(full(0.2), generator=g), scipy.stats.gamma(0.2)),
    "sample_beta": (lambda g: rg.sample_beta(full(0.6), full(2.0), generator=g), scipy.stats.beta(0.6, 2.0)),
    "sample_chi2": (lambda g: rg.sample_chi2(full(3.0), generator=g), scipy.stats.chi2(3)),
    "sample_student_t": (lambda g: rg.sample_student_t(full(4.0), generator=g), scipy.stats.t(4)),
    "sample_dirichlet": (
        lambda g: rg.sample_dirichlet(rg.tensor([0.5, 1.0, 2.0]).double().expand(N, 3), generator=g)[:, 1],
        scipy.stats.beta(1.0, 2.5),
    ),
    "normal": (lambda g: rg.normal(full(1.0), full(2.0), generator=g), scipy.stats.norm(1, 2)),
    "uniform_": (lambda g: full(0.0).uniform_(-1.0, 2.0, generator=g), scipy.stats.uniform(-1, 3)),
    "normal_": (lambda g: full(0.0).normal_(1.0, 2.0, generator=g), scipy.stats.norm(1, 2)),
    "log_normal_": (lambda g: full(0.0).log_normal_(0.5, 0.3, generator=g), scipy.stats.lognorm(0.3, 0, np.exp(0.5))),
    "exponential_": (lambda g: full(0.0).exponential_(2.0, generator=g), scipy.stats.expon(0, 0.5)),
    "cauchy_": (lambda g: full(0.0).cauchy_(1.0, 2.0, generator=g), scipy.stats.cauchy(1, 2)),
}
DISCRETE = {
    "poisson": (lambda g: rg.poisson(full(2.5), generator=g), scipy.stats.poisson(2.5)),
    "binomial": (lambda g: rg.binomial(full(9.0), full(0.3), generator=g), scipy.stats.binom(9, 0.3)),
    "geometric_": (lambda g: full(0.0).geometric_(0.4, generator=g), scipy.stats.geom(0.4)),
    "random_": (lambda g: full(0.0).random_(2, 9, generator=g), scipy.stats.randint(2, 9)),
    "bernoulli_": (lambda g: full(0.0).bernoulli_(0.3, generator=g), scipy.stats.bernoulli(0.3)),
    "multinomial": (
        lambda g: rg.multinomial(rg.tensor([1.0, 4.0, 0.0, 5.0]), N, replacement=True, generator=g),
        scipy.stats.rv_discrete(values=([0, 1, 3], [0.1, 0.4, 0.5])),
    ),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_numbers_follow_their_distribution(name):
    draw, law = CONTINUOUS[name]
    assert scipy.stats.kstest(draw(generator()).numpy(), law.cdf).pvalue > 1e-3


@pytest.mark.parametrize("name", DISCRETE)
def test_counts_follow_their_distribution(name):
    draw, law = DISCRETE[name]
    values, counts = np.unique(draw(generator()).numpy(), return_counts=True)
    expected = law.pmf(values) * N
    often = expected > 10
    assert often.any()
    assert (np.abs(counts - expected)[often] < 5 * np.sqrt(expected[often])).all()
    assert expected.sum() > 0.99 * N


@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_the_same_generator_gives_the_same_numbers(name):
    draw, _ = {**CONTINUOUS, **DISCRETE}[name]
    assert draw(generator()).tolist() == draw(generator()).tolist() != draw(rg.Generator(4)).tolist()


# ---------------------------------------------------------------------------------------------- gradients


@pytest.mark.parametrize("alpha", [0.05, 0.7, 1.0, 3.0, 30.0, 1000.0])
def test_a_gamma_draw_moves_so_that_its_quantile_stays(alpha):
    a = rg.full((200,), alpha, dtype=rg.float64, requires_grad=True)
    x = rg.standard_gamma(a, generator=generator())
    x.sum().backward()
    place, step = scipy.special.gammainc(alpha, x.detach().numpy()), 1e-4 * alpha
    good = (place > 1e-4) & (place < 1 - 1e-4)  # where SciPy's inverse is exact enough for differences
    moved = [scipy.special.gammaincinv(alpha + k * step, place) for k in (1, -1, 2, -2)]
    expected = (8 * (moved[0] - moved[1]) - (moved[2] - moved[3])) / (12 * step)
    assert good.sum() > 100
    assert_close(a.grad.numpy()[good], expected[good], rtol=1e-6, atol=1e-9)


EXPECTATIONS = {  # the derivative of the mean of a draw by the parameter
    "gamma": (lambda p: rg.standard_gamma(p, generator=generator()), 2.5, 1.0),
    "beta": (lambda p: rg.sample_beta(p, full(2.0), generator=generator()), 1.5, 2.0 / 3.5**2),
    "chi2": (lambda p: rg.sample_chi2(p, generator=generator()), 3.0, 1.0),
    "log of gamma": (lambda p: rg.standard_gamma(p, generator=generator()).log(), 0.8, scipy.special.polygamma(1, 0.8)),
    "square of student's t": (lambda p: rg.sample_student_t(p, generator=generator()) ** 2, 12.0, -2 / 10.0**2),
}


@pytest.mark.parametrize("name", EXPECTATIONS)
def test_the_gradient_of_an_expectation_is_right_on_average(name):
    draw, value, expected = EXPECTATIONS[name]
    p = full(value).requires_grad_()
    draw(p).sum().backward()
    error = float(p.grad.std()) / N**0.5
    assert abs(float(p.grad.mean()) - expected) < 5 * error


def test_dirichlet_draws_sum_to_one_also_where_the_concentration_is_tiny():
    c = rg.full((100, 4), 1e-3, dtype=rg.float64, requires_grad=True)
    x = rg.sample_dirichlet(c)
    assert_close(x.sum(-1), np.ones(100), rtol=1e-12, atol=0.0)
    assert (x.amax(-1) > 0.99).double().mean() > 0.9
    (x * rg.arange(4.0)).sum().backward()
    assert rg.isfinite(c.grad).all()


@pytest.mark.parametrize("order", [1, 2])
def test_the_gamma_slope_differentiates_again(order):
    a, x = (rg.tensor(v, dtype=rg.float64, requires_grad=True) for v in ([0.4, 2.0, 9.0], [0.3, 2.5, 8.0]))
    assert rg.autograd.gradcheck(lambda a, x: rg.core.registry["gamma_cdf_derivative"](a, x, order), (a, x), atol=1e-6)


def test_gamma_draws_are_never_zero_in_any_precision():
    for dtype in (rg.float16, rg.float32, rg.float64):
        assert rg.standard_gamma(rg.full((50,), 1e-3, dtype=dtype)).min() > 0


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: rg.normal(x, 1.0),
        lambda x: rg.normal(0.0, x),
        lambda x: rg.bernoulli(x),
        lambda x: rg.poisson(x),
    ],
)
def test_gradients_of_draws_that_are_not_reparameterized_are_zero(draw):
    x = rg.full((3,), 0.5, requires_grad=True)
    (found,) = rg.autograd.grad(draw(x).sum(), x)
    assert found.tolist() == [0.0] * 3


@pytest.mark.parametrize("draw", [lambda x: rg.multinomial(x, 1), lambda x: rg.binomial(x, x)])
def test_no_gradient_flows_through_counts_and_indices(draw):
    assert not draw(rg.full((3,), 0.5, requires_grad=True)).requires_grad


# ------------------------------------------------------------------------------------------- multinomial


def test_indices_drawn_without_replacement_differ_and_are_in_the_order_of_drawing():
    x = rg.multinomial(rg.tensor([1.0, 2.0, 3.0, 0.0]).expand(N, 4), 3, generator=generator())
    assert x.shape == (N, 3)
    assert (x.sort(-1)[0] == rg.arange(3)).all()
    first = np.bincount(x[:, 0].numpy(), minlength=3) / N
    assert_close(first, np.array([1, 2, 3]) / 6, rtol=0.0, atol=0.02)
    second = np.bincount(x[:, 1].numpy()[x[:, 0].numpy() == 2], minlength=3) / (x[:, 0] == 2).sum().item()
    assert_close(second, np.array([1 / 3, 2 / 3, 0.0]), rtol=0.0, atol=0.02)


def test_indices_without_weight_are_never_drawn():
    weights = rg.tensor([0.0, 1.0, 0.0, 1.0, 0.0])
    assert set(rg.multinomial(weights, 500, replacement=True).tolist()) == {1, 3}
    assert set(rg.multinomial(weights, 2).tolist()) == {1, 3}
    with pytest.raises(RuntimeError, match="too few weights"):
        rg.multinomial(weights, 3)


# --------------------------------------------------------------------------------------------- in place


def test_draws_in_place_return_the_tensor_and_keep_its_dtype():
    for dtype in (rg.float16, rg.float32, rg.float64):
        x = rg.zeros(4, dtype=dtype)
        for name in ("uniform_", "normal_", "log_normal_", "exponential_", "cauchy_", "bernoulli_", "random_"):
            assert getattr(x, name)() is x
            assert x.dtype == dtype
    z = rg.zeros(2000, dtype=rg.complex64)
    assert abs(float(z.normal_().abs().square().mean()) - 1) < 0.1
    assert float(z.uniform_().imag.amin()) >= 0


def test_draws_in_place_count_as_writes_and_end_the_history():
    x = rg.ones(3, requires_grad=True)
    y = x * 2
    y.uniform_()
    assert y.sum().requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [0.0] * 3
    with pytest.raises(RuntimeError, match="leaf"):
        x.normal_()


def test_integers_are_drawn_from_all_that_the_dtype_holds():
    assert rg.zeros(4000, dtype=rg.uint8).random_().unique().numel() > 250
    assert set(rg.zeros(50, dtype=rg.bool).random_().tolist()) == {True, False}
    assert rg.zeros(4000, dtype=rg.float16).random_().amax() <= 2048
    assert set(rg.zeros(50, dtype=rg.int64).random_(to=2).tolist()) == {0, 1}
    assert set(rg.zeros(90, dtype=rg.int64).random_(-1, 2).tolist()) == {-1, 0, 1}


def test_coins_take_a_probability_for_each():
    x = rg.zeros(2, 3)
    assert x.bernoulli_(rg.tensor([0.0, 1.0, 0.0])).tolist() == [[0.0, 1.0, 0.0]] * 2
    assert rg.arange(3).bernoulli_(1.0).tolist() == [1, 1, 1]
    assert rg.bernoulli(rg.arange(3), 1.0).dtype == rg.int64


def test_half_precision_is_never_rounded_up_to_one():
    assert float(rg.rand(100_000, dtype=rg.float16).amax()) < 1
