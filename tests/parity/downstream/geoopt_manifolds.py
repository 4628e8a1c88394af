"""geoopt: manifolds with their maps and distances, and Riemannian optimizers."""

import contextlib

import geoopt
import torch
from seeded import array


def answers():
    """Return points, tangents, distances, gradients and trained parameters."""
    torch.set_default_dtype(torch.float64)  # manifolds round their curvature to it
    found = {}

    def keep(name, value):
        found[name] = value.detach().numpy()

    manifolds = {
        "sphere": geoopt.Sphere(),
        "stiefel": geoopt.Stiefel(),
        "canonical": geoopt.CanonicalStiefel(),
        "euclidean stiefel exact": geoopt.EuclideanStiefelExact(),
        "poincare": geoopt.PoincareBall(),
        "lorentz": geoopt.Lorentz(),
        "spd": geoopt.SymmetricPositiveDefinite(),
        "spd log": geoopt.SymmetricPositiveDefinite("LEM"),
        "spherical projection": geoopt.SphereProjection(),
        "stereographic": geoopt.Stereographic(-0.5, learnable=True),
        "birkhoff": geoopt.BirkhoffPolytope(),
        "upper half": geoopt.UpperHalf(),
        "euclidean": geoopt.Euclidean(ndim=1),
    }
    for name, manifold in manifolds.items():
        manifold.double()
        raw = array(4, 3, 3, seed=1).double() * 0.2
        if name == "birkhoff":
            raw = raw.exp()
        if name == "upper half":
            raw = torch.complex(raw + raw.mT, raw @ raw.mT + torch.eye(3, dtype=torch.float64))
        x = manifold.projx(raw)
        keep(f"{name} projx", x)
        direction = array(4, 3, 3, seed=2).double() * 0.1
        if x.is_complex():
            direction = torch.complex(direction, direction.mT + direction)
        u = manifold.proju(x, direction)
        keep(f"{name} proju", u)
        keep(f"{name} egrad2rgrad", manifold.egrad2rgrad(x, direction))
        y = manifold.retr(x, u)
        keep(f"{name} retr", y)
        for method, arguments in {
            "expmap": (x, u),
            "logmap": (x, y),
            "dist": (x, y),
            "transp": (x, y, u),
        }.items():
            with contextlib.suppress(NotImplementedError):
                keep(f"{name} {method}", getattr(manifold, method)(*arguments))
        for kind in (geoopt.optim.RiemannianAdam, geoopt.optim.RiemannianSGD):
            if name == "upper half":
                continue
            point = geoopt.ManifoldParameter(x.detach().clone(), manifold=manifold)
            settings = {"momentum": 0.9} if kind is geoopt.optim.RiemannianSGD else {"amsgrad": True}
            optimizer = kind([point], lr=0.05, stabilize=2, **settings)
            for _ in range(3):
                optimizer.zero_grad()
                ((point - y.detach()) ** 2).sum().backward()
                optimizer.step()
            keep(f"{name} {kind.__name__}", point)
    ball = geoopt.PoincareBall().double()
    x = ball.projx(array(5, 4).double() * 0.3).requires_grad_()
    y = ball.projx(array(5, 4, seed=4).double() * 0.3)
    for name, value in {
        "mobius_add": ball.mobius_add(x, y),
        "mobius_scalar_mul": ball.mobius_scalar_mul(torch.tensor(0.6, dtype=torch.float64), x),
        "mobius_matvec": ball.mobius_matvec(array(4, 4, seed=5).double(), x),
        "geodesic": ball.geodesic(torch.tensor(0.3, dtype=torch.float64), x, y),
        "dist2plane": ball.dist2plane(x, y, array(5, 4, seed=6).double()),
        "weighted_midpoint": ball.weighted_midpoint(x),
        "gyration": ball.gyration(x, y, y),
    }.items():
        keep(name, value)
        keep(
            f"{name} gradient",
            torch.autograd.grad((value * torch.arange(value.numel()).reshape(value.shape)).sum(), x)[0],
        )
    product = geoopt.ProductManifold((geoopt.Sphere(), 3), (geoopt.Euclidean(ndim=1), 2))
    point = product.projx(array(4, 5).double())
    keep("product", product.expmap(point, product.proju(point, array(4, 5, seed=7).double())))
    return found
