"""pymanopt: minima on manifolds by its autograd backend, with gradients and Hessian products."""

import autograd.numpy as np
import pymanopt
from pymanopt import manifolds, optimizers

r = np.random.default_rng(0)
A, C = r.normal(size=(8, 8)), r.normal(size=(8, 6))
A = A + A.T
B = r.normal(size=(4, 4))
B = B @ B.T + np.eye(4)
H = r.normal(size=(4, 4)) + 1j * r.normal(size=(4, 4))
H = H + H.conj().T
Q = np.linalg.qr(r.normal(size=(8, 8)))[0]
ANGLES = np.exp(1j * r.normal(size=4))
DESCENT, CONJUGATE, TRUST = (
    (optimizers.SteepestDescent, 20),
    (optimizers.ConjugateGradient, 15),
    (optimizers.TrustRegions, 12),
)


def rayleigh(x):
    return -x @ A @ x


def brockett(x):
    return -np.trace(x.T @ A @ x @ np.diag(np.array([3.0, 2.0, 1.0])))


def likelihood(x):
    return np.trace(np.linalg.solve(x, B)) + np.linalg.slogdet(x)[1]


def hermitian(x):
    return -np.real(np.conj(x) @ H @ x)


def completion(u, s, vt):
    return np.sum((u @ np.diag(s) @ vt - C) ** 2)


def regression(x, b):
    return np.sum((x @ b - C[:, 0]) ** 2)


def problems():
    """Yield names, manifolds, functions, initial points and methods."""
    frame = [Q[:, :3], np.ones(3)]
    product = manifolds.Product([manifolds.Stiefel(8, 3), manifolds.Euclidean(3)])
    yield "sphere", manifolds.Sphere(8), rayleigh, Q[0], (DESCENT, CONJUGATE, TRUST)
    yield "Stiefel", manifolds.Stiefel(8, 3), brockett, Q[:, :3], (DESCENT, CONJUGATE, TRUST)
    yield "Grassmann", manifolds.Grassmann(8, 2), lambda x: -np.trace(x.T @ A @ x), Q[:, :2], (DESCENT, TRUST)
    yield "positive definite", manifolds.SymmetricPositiveDefinite(4), likelihood, np.eye(4), (DESCENT, TRUST)
    yield "complex circle", manifolds.ComplexCircle(4), hermitian, ANGLES, (DESCENT, TRUST)
    yield "product", product, regression, frame, (DESCENT, TRUST)
    fixed = manifolds.FixedRankEmbedded(8, 6, 2)
    start = (Q[:, :2].copy(), np.array([2.0, 1.0]), np.eye(6)[:2])
    yield "fixed rank", fixed, completion, type(fixed.random_point())(*start), (DESCENT,)


def answers():
    found = {}
    for name, manifold, function, start, methods in problems():
        for method, steps in methods:
            problem = pymanopt.Problem(manifold, pymanopt.function.autograd(manifold)(function))
            result = method(verbosity=0, max_iterations=steps).run(problem, initial_point=start)
            found[f"{name} {method.__name__} cost"] = result.cost
            parts = result.point if isinstance(result.point, (list, tuple)) else [result.point]
            found.update({f"{name} {method.__name__} {k}": part for k, part in enumerate(parts)})
    return found
