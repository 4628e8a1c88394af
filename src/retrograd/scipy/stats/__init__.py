"""`scipy.stats`: distributions, densities and summaries with tensor support; the rest is SciPy's own."""

from retrograd.scipy._mirror import fallback_members
from retrograd.scipy.stats import beta, chi2, dirichlet, gamma, multivariate_normal, norm, poisson, t
from retrograd.scipy.stats.discrete import bernoulli, binom, geom, nbinom
from retrograd.scipy.stats.families import (
    cauchy,
    chi,
    expon,
    f,
    gennorm,
    gumbel_l,
    gumbel_r,
    halfcauchy,
    halfnorm,
    invgamma,
    invgauss,
    laplace,
    logistic,
    lognorm,
    maxwell,
    pareto,
    rayleigh,
    skewnorm,
    truncnorm,
    uniform,
    vonmises,
    weibull_min,
)
from retrograd.scipy.stats.formulas import DISTRIBUTIONS
from retrograd.scipy.stats.kernel_density import gaussian_kde
from retrograd.scipy.stats.summaries import (
    entropy,
    gmean,
    hmean,
    kurtosis,
    moment,
    pmean,
    sem,
    skew,
    variation,
    zscore,
)

__all__ = [
    "bernoulli", "beta", "binom", "cauchy", "chi", "chi2", "dirichlet", "entropy", "expon", "f", "gamma",
    "gaussian_kde", "gennorm", "geom", "gmean", "gumbel_l", "gumbel_r", "halfcauchy", "halfnorm", "hmean", "invgamma",
    "invgauss", "kurtosis", "laplace", "logistic", "lognorm", "maxwell", "moment", "multivariate_normal", "nbinom",
    "norm", "pareto", "pmean", "poisson", "rayleigh", "sem", "skew", "skewnorm", "t", "truncnorm", "uniform",
    "variation", "vonmises", "weibull_min", "zscore",
]  # fmt: skip

globals().update(DISTRIBUTIONS)

__getattr__, __dir__ = fallback_members("scipy.stats")
