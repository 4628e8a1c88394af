"""`scipy.stats`: the distributions with tensor support, each a module of functions; the rest is SciPy's own."""

from retrograd.scipy._mirror import fallback_members
from retrograd.scipy.stats import beta, chi2, dirichlet, gamma, multivariate_normal, norm, poisson, t

__all__ = ["beta", "chi2", "dirichlet", "gamma", "multivariate_normal", "norm", "poisson", "t"]

__getattr__, __dir__ = fallback_members("scipy.stats")
