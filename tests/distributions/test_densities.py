"""Densities, moments and divergences agree with SciPy's, with sums and integrals, and with draws."""

import math
from typing import NamedTuple

import numpy as np
import pytest
import scipy.integrate
import scipy.stats as st

import retrograd as rg
from retrograd import distributions as D

from ..case_groups import group_cases
from .instances import CORRELATION, COVARIANCE, INSTANCES, WEIGHTS

pytestmark = pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")


def tensor(values):
    return rg.tensor(values, dtype="float64", requires_grad=True)


def built(name):
    return INSTANCES[name].build(D, tensor)


def number(t):
    return t.detach().numpy()


SCIPY = {
    "Bernoulli": lambda: st.bernoulli([0.3, 0.8]).logpmf,
    "Beta": lambda: st.beta([0.7, 3.0], [2.0, 1.5]).logpdf,
    "Binomial": lambda: st.binom(3, [0.3, 0.8]).logpmf,
    "Cauchy": lambda: st.cauchy([0.0, 1.0], [0.5, 2.0]).logpdf,
    "Chi2": lambda: st.chi2([1.5, 4.0]).logpdf,
    "Exponential": lambda: st.expon(scale=[2.0, 1 / 3.0]).logpdf,
    "FisherSnedecor": lambda: st.f([1.5, 4.0], [6.0, 3.0]).logpdf,
    "Gamma": lambda: st.gamma([0.5, 3.0], scale=[1 / 1.5, 1 / 0.7]).logpdf,
    "GeneralizedPareto": lambda: st.genpareto([0.2, 0.4], scale=[0.5, 2.0]).logpdf,
    "Geometric": lambda: st.geom([0.3, 0.8], loc=-1).logpmf,
    "Gumbel": lambda: st.gumbel_r([0.0, 1.0], [0.5, 2.0]).logpdf,
    "HalfCauchy": lambda: st.halfcauchy(scale=[0.5, 2.0]).logpdf,
    "HalfNormal": lambda: st.halfnorm(scale=[0.5, 2.0]).logpdf,
    "InverseGamma": lambda: st.invgamma([0.5, 3.0], scale=[1.5, 0.7]).logpdf,
    "Laplace": lambda: st.laplace([0.0, 1.0], [0.5, 2.0]).logpdf,
    "LogNormal": lambda: st.lognorm([0.5, 0.8], scale=np.exp([0.0, 1.0])).logpdf,
    "MultivariateNormal": lambda: st.multivariate_normal([0.1, 0.2, 0.3], COVARIANCE).logpdf,
    "NegativeBinomial": lambda: st.nbinom([2.0, 3.5], [0.7, 0.4]).logpmf,
    "Normal": lambda: st.norm([0.0, 1.0], [0.5, 2.0]).logpdf,
    "Pareto": lambda: st.pareto([2.5, 0.7], scale=[0.5, 1.0]).logpdf,
    "Poisson": lambda: st.poisson([0.5, 3.0]).logpmf,
    "StudentT": lambda: st.t([1.5, 4.0], 0.3, 2.0).logpdf,
    "Uniform": lambda: st.uniform([-2.0, -1.5], [5.0, 4.0]).logpdf,
    "VonMises": lambda: st.vonmises([0.5, 20.0], loc=[0.0, 1.0]).logpdf,
    "Weibull": lambda: st.weibull_min([1.5, 0.8], scale=[0.5, 2.0]).logpdf,
}


@group_cases
@pytest.mark.parametrize("name", SCIPY)
def test_log_probabilities_are_scipys(name):
    values = np.array(INSTANCES[name].values)
    ours = number(built(name).log_prob(rg.tensor(values)))
    np.testing.assert_allclose(ours, SCIPY[name]()(values), rtol=1e-12, atol=1e-13)


def test_log_probabilities_of_vectors_and_matrices_are_scipys():
    x = np.array([[1.0, 0.0, 3.0], [2.0, 2.0, 0.0]])
    expected = [st.multinomial(4, p).logpmf(v) for p, v in zip(WEIGHTS, x, strict=True)]
    np.testing.assert_allclose(number(built("Multinomial").log_prob(rg.tensor(x))), expected, rtol=1e-13)
    x = np.array([0.2, 0.5, 0.3])
    expected = st.dirichlet([0.5, 1.5, 2.0]).logpdf(x)
    assert math.isclose(D.Dirichlet(tensor([0.5, 1.5, 2.0])).log_prob(rg.tensor(x)).item(), expected, rel_tol=1e-13)
    expected = [st.wishart(df, COVARIANCE).logpdf(np.array(COVARIANCE) * 2) for df in (3.5, 5.0)]
    ours = built("Wishart").log_prob(rg.tensor(COVARIANCE, dtype="float64") * 2)
    np.testing.assert_allclose(number(ours), expected, rtol=1e-13)


def test_the_density_of_correlations_integrates_to_1():
    """For two dimensions, the density by the Cholesky factor's lower left element r is (1 - r^2)^(c - 1) / 2."""
    for concentration in (0.7, 1.0, 3.0):
        d = D.LKJCholesky(2, tensor(concentration))

        def density(r, d=d):
            return math.exp(d.log_prob(rg.tensor([[1.0, 0.0], [r, math.sqrt(1 - r * r)]], dtype="float64")).item())

        total, _ = scipy.integrate.quad(lambda t: density(math.sin(t)) * math.cos(t), -math.pi / 2, math.pi / 2)
        assert math.isclose(total, 1, rel_tol=1e-6)


# --------------------------------------------------------------------------------------- sums and integrals


class Line(NamedTuple):
    """A distribution of numbers, and the interval of its values."""

    distribution: D.Distribution
    low: float
    high: float


INF = math.inf
LINES = {
    "Beta": Line(D.Beta(tensor(2.5), tensor(1.7)), 0, 1),
    "ContinuousBernoulli": Line(D.ContinuousBernoulli(tensor(0.8)), 0, 1),
    "ContinuousBernoulli of a half": Line(D.ContinuousBernoulli(tensor(0.5002)), 0, 1),
    "Exponential": Line(D.Exponential(tensor(1.5)), 0, INF),
    "Gamma": Line(D.Gamma(tensor(2.5), tensor(1.5)), 0, INF),
    "Gumbel": Line(D.Gumbel(tensor(0.3), tensor(1.5)), -INF, INF),
    "Kumaraswamy": Line(D.Kumaraswamy(tensor(2.5), tensor(1.5)), 0, 1),
    "Laplace": Line(D.Laplace(tensor(0.3), tensor(0.7)), -INF, INF),
    "LogNormal": Line(D.LogNormal(tensor(0.3), tensor(0.4)), 0, INF),
    "Normal": Line(D.Normal(tensor(0.4), tensor(0.8)), -INF, INF),
    "Pareto": Line(D.Pareto(tensor(1.2), tensor(4.5)), 1.2, INF),
    "StudentT": Line(D.StudentT(tensor(7.5), tensor(0.3), tensor(0.8)), -INF, INF),
    "Uniform": Line(D.Uniform(tensor(0.2), tensor(0.9)), 0.2, 0.9),
    "wide Uniform": Line(D.Uniform(tensor(-2.0), tensor(3.0)), -2, 3),
    "Weibull": Line(D.Weibull(tensor(1.2), tensor(1.7)), 0, INF),
    "half-normal": Line(D.HalfNormal(tensor(1.3)), 0, INF),
    "mixture": Line(
        D.MixtureSameFamily(D.Categorical(tensor([0.3, 0.7])), D.Normal(tensor([0.0, 2.0]), 0.7)), -INF, INF
    ),
    "generalized Pareto": Line(D.GeneralizedPareto(tensor(0.0), tensor(1.3), tensor(-0.4)), 0, 1.3 / 0.4),
    "FisherSnedecor": Line(D.FisherSnedecor(tensor(5.0), tensor(11.0)), 0, INF),
    "InverseGamma": Line(D.InverseGamma(tensor(5.5), tensor(2.0)), 0, INF),
}


def mean_of(line, f):
    """Return the mean of f(x) by quadrature."""
    d = line.distribution

    def integrand(x):
        with rg.no_grad():
            return f(x) * math.exp(d.log_prob(rg.tensor(x, dtype="float64")).item())

    start = max(line.low, -40.0)  # below, the exponential function overflows in Gumbel's density
    middle = min(max(1.0, line.low + 1e-3), line.high - 1e-3) if line.low > -INF else 0.5
    options = {"limit": 200, "epsabs": 1e-11, "epsrel": 1e-10}
    left, right = (
        scipy.integrate.quad(integrand, *ends, **options)[0] for ends in ((start, middle), (middle, line.high))
    )
    return left + right


@pytest.mark.parametrize("name", LINES)
def test_densities_integrate_to_1_and_moments_and_entropies_are_integrals(name):
    line, d = LINES[name], LINES[name].distribution
    assert math.isclose(mean_of(line, lambda x: 1.0), 1, rel_tol=1e-7)
    mean = mean_of(line, lambda x: x)
    assert math.isclose(mean, d.mean.item(), rel_tol=1e-6)
    assert math.isclose(mean_of(line, lambda x: (x - mean) ** 2), d.variance.item(), rel_tol=1e-5)
    if name != "mixture" and name != "FisherSnedecor":

        def surprise(x):
            return -d.log_prob(rg.tensor(x, dtype="float64")).item()

        assert math.isclose(mean_of(line, surprise), d.entropy().item(), rel_tol=1e-6, abs_tol=1e-8)


FINITE = ["Bernoulli", "Binomial", "Categorical", "OneHotCategorical"]


@pytest.mark.parametrize("name", FINITE)
def test_probabilities_of_a_finite_support_sum_to_1_and_give_the_entropy(name):
    d = built(name)
    log_probs = d.log_prob(d.enumerate_support())
    assert rg.allclose(log_probs.exp().sum(0), rg.ones(d.batch_shape, dtype="float64"))
    assert rg.allclose(-(log_probs.exp() * log_probs).sum(0), d.entropy())


@pytest.mark.parametrize("p", LINES)
def test_divergences_are_integrals(p):
    line, found = LINES[p], 0
    for other in LINES.values():
        d, q = line.distribution, other.distribution
        try:
            divergence = D.kl_divergence(d, q).item()
        except NotImplementedError:
            continue
        found += 1
        if line.low < other.low or line.high > other.high:
            assert divergence == INF, (p, q)
            continue

        def log_ratio(x, d=d, q=q):
            x = rg.tensor(x, dtype="float64")
            return (d.log_prob(x) - q.log_prob(x)).item()

        assert math.isclose(mean_of(line, log_ratio), divergence, rel_tol=1e-5, abs_tol=1e-7), (p, q)
    assert found or p in ("StudentT", "mixture", "generalized Pareto", "FisherSnedecor", "Kumaraswamy")


def test_divergences_of_normal_vectors_do_not_depend_on_how_the_matrix_is_given():
    low_rank = D.LowRankMultivariateNormal(tensor([0.1, 0.2]), tensor([[1.0], [0.5]]), tensor([0.4, 1.0]))
    dense = D.MultivariateNormal(low_rank.loc, low_rank.covariance_matrix)
    other = D.MultivariateNormal(tensor([0.0, 1.0]), precision_matrix=tensor([[2.0, 0.3], [0.3, 1.0]]))
    for p, q in ((low_rank, dense), (dense, low_rank), (low_rank, low_rank)):
        assert abs(D.kl_divergence(p, q).item()) < 1e-12
    assert rg.allclose(D.kl_divergence(low_rank, other), D.kl_divergence(dense, other))
    assert rg.allclose(D.kl_divergence(other, low_rank), D.kl_divergence(other, dense))
    assert rg.allclose(low_rank.entropy(), dense.entropy())
    assert rg.allclose(low_rank.precision_matrix, dense.precision_matrix)
    assert rg.allclose(low_rank.scale_tril, dense.scale_tril)


# ---------------------------------------------------------------------------------------------------- draws

DRAWS = 20_000
NO_MOMENTS = ("Cauchy", "HalfCauchy", "LogisticNormal", "LKJCholesky", "RelaxedBernoulli", "RelaxedOneHotCategorical",
              "TransformedDistribution", "Categorical", "Categorical of logits", "VonMises")  # fmt: skip


@group_cases
@pytest.mark.parametrize("name", [name for name in INSTANCES if name not in NO_MOMENTS])
def test_draws_have_the_mean_and_variance(name):
    rg.manual_seed(5)
    d = built(name)
    draws, mean, variance = number(d.sample((DRAWS,))), number(d.mean), number(d.variance)
    usable = np.isfinite(mean) & np.isfinite(variance)
    errors = np.sqrt(np.where(usable, variance, 1) / DRAWS)
    assert (np.abs(draws.mean(0) - mean)[usable] <= 6 * errors[usable] + 1e-12).all()
    if name not in (
        "InverseGamma",
        "FisherSnedecor",
        "StudentT",
        "Pareto",
        "LogNormal",
        "GeneralizedPareto",
    ):  # heavy tails
        np.testing.assert_allclose(draws.var(0)[usable], variance[usable], rtol=0.25, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in INSTANCES if built(name).has_rsample])
def test_draws_satisfy_the_support(name):
    d = built(name)
    if name == "OneHotCategoricalStraightThrough":
        pytest.skip("its draws are one-hot up to rounding")
    assert d.support.check(d.rsample((7,))).all()


def test_angles_concentrate_around_their_mean_direction():
    rg.manual_seed(3)
    d = built("VonMises")
    draws = number(d.sample((DRAWS,)))
    vector = np.exp(1j * draws).mean(0)
    np.testing.assert_allclose(np.angle(vector), number(d.mean), atol=0.05)
    np.testing.assert_allclose(1 - np.abs(vector), number(d.variance), atol=0.02)


def test_draws_of_correlations_have_unit_rows_and_the_variance_of_the_paper():
    rg.manual_seed(3)
    draws = number(D.LKJCholesky(4, tensor(1.5)).sample((DRAWS,)))
    correlations = draws @ draws.swapaxes(-1, -2)
    np.testing.assert_allclose(correlations[:, range(4), range(4)], 1, rtol=1e-12)
    # Each correlation has the distribution of 2 b - 1, for beta values with both parameters concentration + 1.
    np.testing.assert_allclose(correlations[:, 2, 1].var(), 1 / (2 * 2.5 + 1), rtol=0.05)
    np.testing.assert_allclose(correlations[:, 3, 0].var(), 1 / (2 * 2.5 + 1), rtol=0.05)


IMPLICIT = {
    "Gamma": (lambda a, b: D.Gamma(a, b), (2.5, 1.5)),
    "Beta": (lambda a, b: D.Beta(a, b), (2.5, 1.5)),
    "Kumaraswamy": (lambda a, b: D.Kumaraswamy(a, b), (2.5, 1.5)),
    "Weibull": (lambda a, b: D.Weibull(a, b), (2.5, 1.5)),
    "Gumbel": (lambda a, b: D.Gumbel(a, b), (0.5, 1.5)),
    "LogNormal": (lambda a, b: D.LogNormal(a, b), (0.2, 0.5)),
    "InverseGamma": (lambda a, b: D.InverseGamma(a, b), (7.5, 1.5)),
    "FisherSnedecor": (lambda a, b: D.FisherSnedecor(a, b), (4.5, 12.5)),
}


@pytest.mark.parametrize(("make", "parameters"), IMPLICIT.values(), ids=IMPLICIT)
def test_gradients_of_draws_have_the_gradients_of_the_moments_as_their_mean(make, parameters):
    rg.manual_seed(1)
    a, b = map(tensor, parameters)
    d = make(a, b)
    found = rg.autograd.grad(d.rsample((4 * DRAWS,)).mean(), (a, b))
    expected = rg.autograd.grad(d.mean, (a, b), allow_unused=True, materialize_grads=True)
    np.testing.assert_allclose([g.item() for g in found], [g.item() for g in expected], rtol=0.05, atol=0.01)


def test_the_value_of_the_distribution_function_of_a_draw_does_not_change_with_the_parameters():
    a, b = tensor(2.5), tensor(1.5)
    d = D.Gamma(a, b)
    moved = rg.autograd.grad(d.cdf(d.rsample((50,))).sum(), (a, b))
    assert all(abs(g.item()) < 1e-9 for g in moved)


@pytest.mark.parametrize("name", [name for name, line in LINES.items()])
def test_the_inverse_of_the_distribution_function(name):
    d = LINES[name].distribution
    p = rg.tensor([0.01, 0.3, 0.5, 0.9], dtype="float64")
    try:
        x = d.icdf(p)
    except NotImplementedError:
        return
    assert rg.allclose(d.cdf(x), p)
    low, middle = LINES[name].low, x[1].item()
    density, _ = scipy.integrate.quad(
        lambda t: math.exp(d.log_prob(rg.tensor(t, dtype="float64")).item()), max(low, middle - 60), middle, limit=200
    )
    assert math.isclose(density, 0.3, rel_tol=1e-6)


def test_modes_are_maxima_of_the_density():
    for name in ("Kumaraswamy", "Weibull", "Gamma", "Beta", "LogNormal", "InverseGamma", "FisherSnedecor", "Pareto"):
        line = LINES[name]
        low, high = max(line.low, 1e-6), min(line.high - 1e-6, 30.0)
        grid = rg.linspace(low, high, 200_001, dtype="float64")
        best = grid[line.distribution.log_prob(grid).argmax()]
        assert math.isclose(best.item(), line.distribution.mode.item(), abs_tol=2e-4), name
    assert D.Beta(tensor(0.5), tensor(0.9)).mode.item() == 0  # the larger one of two infinite densities
    assert D.Dirichlet(tensor([0.5, 0.7, 0.1])).mode.tolist() == [0, 1, 0]
    assert D.Weibull(tensor(1.0), tensor(0.5)).mode.item() == 0


def test_correlation_instances_are_cholesky_factors():
    assert D.constraints.corr_cholesky.check(tensor(CORRELATION))
