"""autograd-gamma: derivatives of the incomplete gamma and beta functions and their inverses, some to second order."""

import autograd.numpy as np
import autograd_gamma

from autograd import elementwise_grad, grad, hessian

A, X, U = np.array([0.3, 1.0, 2.5, 10.0]), np.array([0.5, 1.5, 2.0, 9.0]), np.array([0.1, 0.3, 0.6, 0.9])
OF_TWO = {"gammainc": X, "gammaincc": X, "gammaincln": X, "gammainccln": X, "gammaincinv": U, "gammainccinv": U}
OF_THREE = ("betainc", "betaincln", "betaincinv")


def answers():
    found = {}
    for name, points in OF_TWO.items():
        function = getattr(autograd_gamma, name)
        for k in (0, 1):
            found[f"{name} {k}"] = elementwise_grad(function, k)(A, points)
            found[f"{name} {k} of a sum"] = grad(lambda a, x, f=function: np.sum(f(a, x)), k)(2.0, points)
    for name in ("gammainc", "gammaincc", "gammaincln", "gammainccln"):
        function = getattr(autograd_gamma, name)
        found[f"{name} twice"] = hessian(lambda both, f=function: f(both[0], both[1]))(np.array([2.0, 1.5]))
    for name in OF_THREE:
        for k in range(3):
            found[f"{name} {k}"] = elementwise_grad(getattr(autograd_gamma, name), k)(A, X, U)
    return found
