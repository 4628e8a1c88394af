"""Distributions with parameters for tests: name -> how to build one from a library and its `tensor`, and values of it.

`tensor` makes a tensor of float64.  The parity tests build the same ones with PyTorch.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

Build = Callable[[Any, Callable[..., Any]], Any]


class Instance(NamedTuple):
    """How to build a distribution from the module `distributions` and `tensor`, and values in its support."""

    build: Build
    values: Any


POSITIVE, REAL, UNIT = [[0.3, 1.7], [2.9, 0.01]], [[-1.3, 0.4], [2.2, 0.0]], [[0.2, 0.9], [0.55, 0.01]]
COUNTS, VECTOR = [[0.0, 3.0], [1.0, 2.0]], [[0.3, -1.2, 0.8], [1.0, 0.5, -0.5]]
SIMPLEX, ONE_HOT = [[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]], [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
PROBS, WEIGHTS = [0.3, 0.8], [[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]]
CORRELATION = [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.28, 0.96]]
COVARIANCE = [[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 1.5]]
FACTOR = [[1.2, 0.0, 0.0], [0.3, 0.9, 0.0], [-0.4, 0.2, 1.1]]

INSTANCES = {
    "Bernoulli": Instance(lambda d, t: d.Bernoulli(t(PROBS)), [[0.0, 1.0], [1.0, 1.0]]),
    "Bernoulli of logits": Instance(lambda d, t: d.Bernoulli(logits=t([-1.5, 0.7])), [[0.0, 1.0], [1.0, 1.0]]),
    "Beta": Instance(lambda d, t: d.Beta(t([0.7, 3.0]), t([2.0, 1.5])), UNIT),
    "Beta below 1": Instance(lambda d, t: d.Beta(t([0.7, 0.5]), t([0.2, 0.9])), UNIT),
    "Binomial": Instance(lambda d, t: d.Binomial(3, t(PROBS)), COUNTS),
    "Binomial of logits": Instance(lambda d, t: d.Binomial(t([3.0, 3.0]), logits=t([-1.5, 0.7])), COUNTS),
    "Categorical": Instance(lambda d, t: d.Categorical(t(WEIGHTS)), [[0.0, 1.0], [2.0, 2.0]]),
    "Categorical of logits": Instance(lambda d, t: d.Categorical(logits=t(WEIGHTS)), [[0.0, 1.0], [2.0, 2.0]]),
    "Cauchy": Instance(lambda d, t: d.Cauchy(t([0.0, 1.0]), t([0.5, 2.0])), REAL),
    "Chi2": Instance(lambda d, t: d.Chi2(t([1.5, 4.0])), POSITIVE),
    "ContinuousBernoulli": Instance(lambda d, t: d.ContinuousBernoulli(t([0.3, 0.5])), UNIT),
    "Dirichlet": Instance(lambda d, t: d.Dirichlet(t([[0.5, 1.5, 2.0], [3.0, 1.0, 0.2]])), SIMPLEX),
    "Dirichlet below 1": Instance(lambda d, t: d.Dirichlet(t([0.5, 0.7, 0.1])), SIMPLEX),
    "Exponential": Instance(lambda d, t: d.Exponential(t([0.5, 3.0])), POSITIVE),
    "FisherSnedecor": Instance(lambda d, t: d.FisherSnedecor(t([1.5, 4.0]), t([6.0, 3.0])), POSITIVE),
    "Gamma": Instance(lambda d, t: d.Gamma(t([0.5, 3.0]), t([1.5, 0.7])), POSITIVE),
    "GeneralizedPareto": Instance(lambda d, t: d.GeneralizedPareto(t(0.0), t([0.5, 2.0]), t([0.2, 0.4])), POSITIVE),
    "Geometric": Instance(lambda d, t: d.Geometric(t(PROBS)), COUNTS),
    "Geometric of logits": Instance(lambda d, t: d.Geometric(logits=t([-1.5, 0.7])), COUNTS),
    "Gumbel": Instance(lambda d, t: d.Gumbel(t([0.0, 1.0]), t([0.5, 2.0])), REAL),
    "HalfCauchy": Instance(lambda d, t: d.HalfCauchy(t([0.5, 2.0])), POSITIVE),
    "HalfNormal": Instance(lambda d, t: d.HalfNormal(t([0.5, 2.0])), POSITIVE),
    "Independent": Instance(lambda d, t: d.Independent(d.Normal(t([0.0, 1.0]), t([0.5, 2.0])), 1), REAL),
    "InverseGamma": Instance(lambda d, t: d.InverseGamma(t([0.5, 3.0]), t([1.5, 0.7])), POSITIVE),
    "Kumaraswamy": Instance(lambda d, t: d.Kumaraswamy(t([1.5, 3.0]), t([2.0, 1.2])), UNIT),
    "LKJCholesky": Instance(lambda d, t: d.LKJCholesky(3, t([0.7, 2.0])), CORRELATION),
    "Laplace": Instance(lambda d, t: d.Laplace(t([0.0, 1.0]), t([0.5, 2.0])), REAL),
    "LogNormal": Instance(lambda d, t: d.LogNormal(t([0.0, 1.0]), t([0.5, 0.8])), POSITIVE),
    "LogisticNormal": Instance(lambda d, t: d.LogisticNormal(t([[0.0, 1.0]]), t([[0.5, 0.8]])), SIMPLEX),
    "LowRankMultivariateNormal": Instance(
        lambda d, t: d.LowRankMultivariateNormal(t([0.1, 0.2, 0.3]), t([[1.0], [0.5], [-0.3]]), t([0.4, 1.0, 2.0])),
        VECTOR,
    ),
    "MixtureSameFamily": Instance(
        lambda d, t: d.MixtureSameFamily(d.Categorical(t(PROBS)), d.Normal(t([-1.0, 1.0]), t([0.5, 2.0]))), REAL
    ),
    "mixture of vectors": Instance(
        lambda d, t: d.MixtureSameFamily(
            d.Categorical(t(PROBS)), d.Independent(d.Normal(t([VECTOR[0], VECTOR[1]]), t(0.7)), 1)
        ),
        VECTOR,
    ),
    "Multinomial": Instance(lambda d, t: d.Multinomial(4, t(WEIGHTS)), [[1.0, 0.0, 3.0], [2.0, 2.0, 0.0]]),
    "MultivariateNormal": Instance(lambda d, t: d.MultivariateNormal(t([0.1, 0.2, 0.3]), t(COVARIANCE)), VECTOR),
    "MultivariateNormal of a precision": Instance(
        lambda d, t: d.MultivariateNormal(t([0.1, 0.2, 0.3]), precision_matrix=t(COVARIANCE)), VECTOR
    ),
    "MultivariateNormal of a factor": Instance(
        lambda d, t: d.MultivariateNormal(t([0.1, 0.2, 0.3]), scale_tril=t([FACTOR, FACTOR])), VECTOR
    ),
    "NegativeBinomial": Instance(lambda d, t: d.NegativeBinomial(t([2.0, 3.5]), t([0.3, 0.6])), COUNTS),
    "Normal": Instance(lambda d, t: d.Normal(t([0.0, 1.0]), t([0.5, 2.0])), REAL),
    "Normal of numbers": Instance(lambda d, t: d.Normal(t(0.5), 2.0), REAL),
    "OneHotCategorical": Instance(lambda d, t: d.OneHotCategorical(t(WEIGHTS)), ONE_HOT),
    "OneHotCategoricalStraightThrough": Instance(
        lambda d, t: d.OneHotCategoricalStraightThrough(logits=t(WEIGHTS)), ONE_HOT
    ),
    "Pareto": Instance(lambda d, t: d.Pareto(t([0.5, 1.0]), t([2.5, 0.7])), [[0.6, 1.7], [2.9, 1.01]]),
    "Poisson": Instance(lambda d, t: d.Poisson(t([0.5, 3.0])), COUNTS),
    "RelaxedBernoulli": Instance(lambda d, t: d.RelaxedBernoulli(t(0.7), t(PROBS)), UNIT),
    "RelaxedOneHotCategorical": Instance(lambda d, t: d.RelaxedOneHotCategorical(t(0.7), t(WEIGHTS)), SIMPLEX),
    "StudentT": Instance(lambda d, t: d.StudentT(t([1.5, 4.0]), t(0.3), t(2.0)), REAL),
    "TransformedDistribution": Instance(
        lambda d, t: d.TransformedDistribution(
            d.Normal(t([0.0, 1.0]), t([0.5, 2.0])), [d.TanhTransform(), d.AffineTransform(t(0.5), t(-0.5))]
        ),
        UNIT,
    ),
    "Uniform": Instance(lambda d, t: d.Uniform(t([-2.0, -1.5]), t([3.0, 2.5])), REAL),
    "VonMises": Instance(lambda d, t: d.VonMises(t([0.0, 1.0]), t([0.5, 20.0])), REAL),
    "Weibull": Instance(lambda d, t: d.Weibull(t([0.5, 2.0]), t([1.5, 0.8])), POSITIVE),
    "Wishart": Instance(lambda d, t: d.Wishart(t([3.5, 5.0]), t(COVARIANCE)), COVARIANCE),
}
