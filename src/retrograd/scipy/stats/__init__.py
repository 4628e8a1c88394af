"""`scipy.stats`: the distributions that take tensors, each a module of functions; everything else is SciPy's own."""

from retrograd.scipy._mirror import rest_of
from retrograd.scipy.stats import beta, chi2, dirichlet, gamma, multivariate_normal, norm, poisson, t

__all__ = ["beta", "chi2", "dirichlet", "gamma", "multivariate_normal", "norm", "poisson", "t"]

__getattr__, __dir__ = rest_of("scipy.stats")
