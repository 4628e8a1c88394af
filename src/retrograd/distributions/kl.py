"""Kullback-Leibler divergences.

The divergence of p from q is minus the entropy of p minus the mean of log q under p.  Pairs of different families use
that form, so one function for each q takes the moments of every p that it needs.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any, cast

from retrograd.autograd import grad
from retrograd.core import Tensor
from retrograd.distributions.bernoulli import Bernoulli
from retrograd.distributions.beta import Beta
from retrograd.distributions.binomial import Binomial
from retrograd.distributions.categorical import Categorical
from retrograd.distributions.cauchy import Cauchy
from retrograd.distributions.continuous_bernoulli import ContinuousBernoulli
from retrograd.distributions.dirichlet import Dirichlet
from retrograd.distributions.distribution import Distribution
from retrograd.distributions.exp_family import ExponentialFamily
from retrograd.distributions.exponential import Exponential
from retrograd.distributions.gamma import Gamma
from retrograd.distributions.geometric import Geometric
from retrograd.distributions.gumbel import Gumbel
from retrograd.distributions.half_normal import HalfNormal
from retrograd.distributions.independent import Independent
from retrograd.distributions.laplace import Laplace
from retrograd.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from retrograd.distributions.multivariate_normal import MultivariateNormal, batch_mahalanobis, log_det_factor
from retrograd.distributions.normal import Normal
from retrograd.distributions.one_hot_categorical import OneHotCategorical
from retrograd.distributions.pareto import Pareto
from retrograd.distributions.poisson import Poisson
from retrograd.distributions.transformed_distribution import TransformedDistribution
from retrograd.distributions.uniform import Uniform
from retrograd.distributions.utils import euler_constant, sum_rightmost
from retrograd.foundation.source_location import warn_user
from retrograd.nn.functional import softplus
from retrograd.ops.gamma import betaln, digamma, lgamma
from retrograd.ops.join import cat
from retrograd.ops.masked import where
from retrograd.ops.solve import linalg_solve_triangular
from retrograd.ops.special import ndtr, xlogy

__all__ = ["kl_divergence", "register_kl"]

Rule = Callable[[Any, Any], Tensor]
_rules: dict[tuple[type, type], Rule] = {}
_found: dict[tuple[type, type], Rule | None] = {}  # of the pairs that were asked for


def register_kl(type_p: type, type_q: type) -> Callable[[Rule], Rule]:
    """Return a decorator that registers a function of two distributions for their divergence.

    The function also serves subclasses.  For a pair with several, that of the closest classes is used; a RuntimeWarning
    says so if two are equally close.

    Raises TypeError for what is no class. It may be a base class of distributions that is none itself.
    """
    for kind in (type_p, type_q):
        if not isinstance(kind, type):
            raise TypeError(f"Expected a Distribution subclass, but got {kind}")

    def decorator(fun: Rule) -> Rule:
        _rules[type_p, type_q] = fun
        _found.clear()
        return fun

    return decorator


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return the Kullback-Leibler divergence of p from q, the mean of log(p / q) under p, of shape `batch_shape`.

    Raises NotImplementedError for pairs without a formula.

    >>> from retrograd.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(1.0, 1.0), Normal(0.0, 1.0))
    tensor(0.5000)
    """
    pair = type(p), type(q)
    if pair not in _found:
        _found[pair] = _closest(*pair)
    rule = _found[pair]
    if rule is None:
        names = f"p type {pair[0].__name__} and q type {pair[1].__name__}"
        raise NotImplementedError(f"No KL(p || q) is implemented for {names}")
    return rule(p, q)


def _closest(type_p: type, type_q: type) -> Rule | None:
    """Return the rule whose classes come first among the base classes, those of p before those of q."""
    first, second = type_p.__mro__, type_q.__mro__
    by_p = next((_rules[pair] for pair in itertools.product(first, second) if pair in _rules), None)
    by_q = next((_rules[a, b] for b, a in itertools.product(second, first) if (a, b) in _rules), None)
    if by_p is not by_q:
        warn_user(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl for this pair",
            RuntimeWarning,
        )
    return by_p


# ------------------------------------------------------------------------------------------------ one family


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    of_one = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    of_zero = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    of_one = where(p.probs == 0, 0.0, where(q.probs == 0, math.inf, of_one))
    of_zero = where(p.probs == 1, 0.0, where(q.probs == 1, math.inf, of_zero))
    return of_one + of_zero


@register_kl(Beta, Beta)
def _beta(p: Beta, q: Beta) -> Tensor:
    a, b, total = p.concentration1, p.concentration0, p.concentration1 + p.concentration0
    more_a, more_b = a - q.concentration1, b - q.concentration0
    ratio = betaln(q.concentration1, q.concentration0) - betaln(a, b)
    return ratio + more_a * digamma(a) + more_b * digamma(b) - (more_a + more_b) * digamma(total)


@register_kl(Binomial, Binomial)
def _binomial(p: Binomial, q: Binomial) -> Tensor:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    log_ratios = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return where(p.total_count > q.total_count, math.inf, p.total_count * log_ratios)


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    terms = where(p.probs == 0, 0.0, where(q.probs == 0, math.inf, terms))
    return terms.sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    # F. Chyzak and F. Nielsen, A closed-form formula for the Kullback-Leibler divergence between Cauchy distributions.
    squares = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return squares.log() - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    return -p.entropy() - _mean_log_continuous_bernoulli(p.mean, q)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    log_ratio = lgamma(total) - lgamma(b.sum(-1)) - (lgamma(a) - lgamma(b)).sum(-1)
    return log_ratio + ((a - b) * (digamma(a) - digamma(total).unsqueeze(-1))).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """Return the Bregman divergence of the log-normalizers."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using Bregman "
            "divergences"
        )
    of_p = [parameter.detach().requires_grad_() for parameter in p._natural_params]
    log_normalizer = p._log_normalizer(*of_p)
    slopes = cast(tuple[Tensor, ...], grad(log_normalizer.sum(), of_p, create_graph=True))
    result = q._log_normalizer(*q._natural_params) - log_normalizer
    for mine, theirs, slope in zip(of_p, q._natural_params, slopes, strict=True):
        term = (theirs - mine) * slope
        result = result - sum_rightmost(term, term.ndim - result.ndim)
    return result


@register_kl(Gamma, Gamma)
def _gamma(p: Gamma, q: Gamma) -> Tensor:
    a, b, rate = p.concentration, q.concentration, p.rate
    log_ratio = b * (rate / q.rate).log() + lgamma(b) - lgamma(a)
    return log_ratio + (a - b) * digamma(a) + (q.rate - rate) * (a / rate)


@register_kl(Geometric, Geometric)
def _geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("the distributions have different numbers of reinterpreted dimensions")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(Laplace, Laplace)
def _laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * (-distance / p.scale).exp() - 1


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).square()
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    formula = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return where(p.scale < q.scale, math.inf, formula)


@register_kl(Poisson, Poisson)
def _poisson(p: Poisson, q: Poisson) -> Tensor:
    return xlogy(p.rate, p.rate) - xlogy(p.rate, q.rate) - (p.rate - q.rate)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("the distributions are of different transforms")
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), len(p.event_shape) - len(p.base_dist.event_shape))


@register_kl(Uniform, Uniform)
def _uniform(p: Uniform, q: Uniform) -> Tensor:
    formula = ((q.high - q.low) / (p.high - p.low)).log()
    return where((q.low > p.low) | (q.high < p.high), math.inf, formula)


# ------------------------------------------------------------------------------------------ multivariate normals


def _root(p: Any) -> Tensor:
    """Return a matrix R such that R R^T is the covariance matrix."""
    if isinstance(p, MultivariateNormal):
        return p.scale_tril
    return cat([p.cov_factor, p.cov_diag.sqrt().diag_embed()], -1)


def _multivariate_normals(p: Any, q: Any) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with different event shapes cannot be computed"
        )
    root, difference = _root(p), q.loc - p.loc
    if isinstance(q, MultivariateNormal):
        log_det = 2 * log_det_factor(q.scale_tril)
        trace = linalg_solve_triangular(q.scale_tril, root, upper=False).square().sum((-2, -1))
        squares = batch_mahalanobis(q.scale_tril, difference)
    else:
        factor, diagonal = q._capacitance_tril(), q.cov_diag.unsqueeze(-1)
        log_det = q._log_det(factor)
        reduced = linalg_solve_triangular(factor, (q.cov_factor / diagonal).mT @ root, upper=False)
        trace = (root.square() / diagonal).sum((-2, -1)) - reduced.square().sum((-2, -1))
        squares = q._mahalanobis(difference, factor)
    own = 2 * log_det_factor(p.scale_tril) if isinstance(p, MultivariateNormal) else p._log_det(p._capacitance_tril())
    return 0.5 * (log_det - own + trace + squares - p.event_shape[0])


for _p, _q in itertools.product((MultivariateNormal, LowRankMultivariateNormal), repeat=2):
    register_kl(_p, _q)(_multivariate_normals)


# --------------------------------------------------------------------------------------------- different families


def _mean_log_continuous_bernoulli(mean: Tensor, q: ContinuousBernoulli) -> Tensor:
    """Return the mean of log q(x) for values with a mean."""
    return mean * q.logits + (-q.probs).log1p() + q._log_normalization()


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return -p.entropy() - (xlogy(p.probs, q.rate) - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def _to_continuous_bernoulli(p: Any, q: ContinuousBernoulli) -> Tensor:
    return -p.entropy() - _mean_log_continuous_bernoulli(p.mean, q)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> Tensor:
    return where((p.low < 0) | (p.high > 1), math.inf, _to_continuous_bernoulli(p, q))


def _to_normal(p: Any, q: Normal) -> Tensor:
    standard = (p.variance + (p.mean - q.loc).square()) / q.scale.square()
    return -p.entropy() + 0.5 * math.log(2 * math.pi) + q.scale.log() + 0.5 * standard


for _p in (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform):
    register_kl(_p, Normal)(_to_normal)


def _to_exponential(p: Any, q: Exponential) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


for _p in (Beta, ContinuousBernoulli, Gamma, Pareto):  # the Bregman divergence is of one family only
    register_kl(_p, Exponential)(_to_exponential)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Uniform, q: Exponential) -> Tensor:
    return where(p.low < 0, math.inf, _to_exponential(p, q))


def _to_uniform(p: Any, q: Uniform) -> Tensor:
    """Return the divergence of a distribution on the interval from 0 to 1."""
    return where((q.high < 1) | (q.low > 0), math.inf, -p.entropy() + (q.high - q.low).log())


for _p in (Beta, ContinuousBernoulli):
    register_kl(_p, Uniform)(_to_uniform)


def _to_gamma(p: Any, q: Gamma, mean_log: Tensor) -> Tensor:
    """Return the divergence of a distribution with a mean of the logarithm from a gamma distribution."""
    a, rate = q.concentration, q.rate
    return -p.entropy() - (a * rate.log() - lgamma(a) + (a - 1) * mean_log - rate * p.mean)


@register_kl(Beta, Gamma)
def _beta_gamma(p: Beta, q: Gamma) -> Tensor:
    return _to_gamma(p, q, digamma(p.concentration1) - digamma(p.concentration1 + p.concentration0))


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Exponential, q: Gamma) -> Tensor:
    return _to_gamma(p, q, -euler_constant - p.rate.log())


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Pareto, q: Gamma) -> Tensor:
    return _to_gamma(p, q, p.scale.log() + p.alpha.reciprocal())


def _mean_log(low: Tensor, high: Tensor) -> Tensor:
    """Return the mean of log x over an interval of non-negative numbers."""
    return (xlogy(high, high) - xlogy(low, low)) / (high - low) - 1


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Uniform, q: Gamma) -> Tensor:
    low = p.low.clamp(min=0)
    return where(p.low < 0, math.inf, _to_gamma(p, q, _mean_log(low, where(p.low < 0, low + 1, p.high))))


@register_kl(Uniform, Beta)
def _uniform_beta(p: Uniform, q: Beta) -> Tensor:
    outside = (p.low < 0) | (p.high > 1)
    low, high = where(outside, 0.25, p.low), where(outside, 0.75, p.high)
    a, b = q.concentration1, q.concentration0
    mean_log_q = (a - 1) * _mean_log(low, high) + (b - 1) * _mean_log(1 - high, 1 - low) - betaln(a, b)
    return where(outside, math.inf, -p.entropy() - mean_log_q)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    outside = p.low < q.scale
    low, high = where(outside, 1.0, p.low), where(outside, 2.0, p.high)
    mean_log_q = q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * _mean_log(low, high)
    return where(outside, math.inf, -p.entropy() - mean_log_q)


def _to_gumbel(p: Any, q: Gumbel, mean_exp: Tensor) -> Tensor:
    """Return the divergence from a Gumbel distribution; `mean_exp` is the mean of exp((q.loc - x) / q.scale)."""
    return -p.entropy() + q.scale.log() + (p.mean - q.loc) / q.scale + mean_exp


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    return _to_gumbel(p, q, ((q.loc - p.loc) / q.scale + lgamma(1 + p.scale / q.scale)).exp())


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Exponential, q: Gumbel) -> Tensor:
    product = p.rate * q.scale
    return _to_gumbel(p, q, (q.loc / q.scale).exp() * product / (product + 1))


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Gamma, q: Gumbel) -> Tensor:
    shrink = -p.concentration * (p.rate * q.scale).reciprocal().log1p()
    return _to_gumbel(p, q, (q.loc / q.scale + shrink).exp())


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Normal, q: Gumbel) -> Tensor:
    return _to_gumbel(p, q, ((q.loc - p.loc) / q.scale + 0.5 * (p.scale / q.scale).square()).exp())


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Uniform, q: Gumbel) -> Tensor:
    low, high = ((q.loc - bound) / q.scale for bound in (p.low, p.high))
    return _to_gumbel(p, q, q.scale * (low.exp() - high.exp()) / (p.high - p.low))


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    standard = (p.loc - q.loc) / p.scale
    density = (-0.5 * standard.square()).exp() / math.sqrt(2 * math.pi)
    mean_distance = p.scale * (2 * density + standard * (2 * ndtr(standard) - 1))
    return -p.entropy() + (2 * q.scale).log() + mean_distance / q.scale


def _infinite(p: Any, q: Any) -> Tensor:
    """Return infinity: p has values outside of the support of q."""
    return _first_parameter(p) * 0 + math.inf + 0 * _first_parameter(q)


def _first_parameter(d: Distribution) -> Tensor:
    return next(iter(d._given_parameters().values()))


_BEYOND: dict[type, tuple[type, ...]] = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}
for _p, _others in _BEYOND.items():
    for _q in _others:
        register_kl(_p, _q)(_infinite)
