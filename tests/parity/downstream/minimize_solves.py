"""pytorch-minimize: minima with and without bounds and constraints, least squares, and its optimizers."""

import numpy as np
import torch
from torchmin import Minimizer, ScipyMinimizer, least_squares, minimize, minimize_constr

METHODS = ["bfgs", "l-bfgs", "cg", "newton-cg", "newton-exact", "trust-ncg"]


def rosen(x):
    """Return Rosenbrock's function."""
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def answers():
    """Return minima, values and counts of iterations."""
    found = {}
    start = torch.tensor([1.3, 0.7, 0.8, 1.9, 1.2], dtype=torch.float64)

    def keep(name, result, *more):
        for key in ("x", "nit", *more):
            if key in result:
                found[f"{name} {key}"] = np.asarray(torch.as_tensor(result[key]).detach())

    for method in METHODS:
        keep(method, minimize(rosen, start, method=method, max_iter=100 if method == "cg" else None))
    near = torch.full_like(start, 1.1)  # where the Hessian is positive definite
    keep("dogleg", minimize(rosen, near, method="dogleg"))
    keep("limited", minimize(rosen, start, method="bfgs", options={"line_search": "none", "lr": 1e-3}, max_iter=9))
    bounds = (torch.full_like(start, -1.0), torch.full_like(start, 0.9))
    keep("bounds", minimize_constr(rosen, start, bounds=bounds, max_iter=30))
    keep("ball", minimize_constr(rosen, start, constr={"fun": lambda x: x.square().sum(), "ub": 1.0}, max_iter=30))
    times = torch.linspace(0, 3, 12, dtype=torch.float64)
    data = 2.0 * torch.exp(-0.7 * times) + 0.1 * torch.sin(5 * times)
    for method in ("trf",):
        for solver in ("exact", "lsmr"):
            result = least_squares(
                lambda p: p[0] * torch.exp(-p[1] * times) - data,
                torch.ones(2, dtype=torch.float64),
                method=method,
                tr_solver=solver,
            )
            keep(f"least_squares {method} {solver}", result, "jac" if solver == "exact" else "cost")
    for name, kind, settings in (
        ("Minimizer", Minimizer, {"method": "bfgs", "max_iter": 20}),
        ("ScipyMinimizer", ScipyMinimizer, {"method": "L-BFGS-B"}),
        ("ScipyMinimizer hessian", ScipyMinimizer, {"method": "trust-constr"}),
    ):
        x = torch.nn.Parameter(start.clone())
        optimizer = kind([x], **settings)

        def closure(x=x, optimizer=optimizer):
            optimizer.zero_grad()
            return rosen(x)

        found[f"{name} loss"] = np.asarray(torch.as_tensor(optimizer.step(closure)).detach())
        found[f"{name} x"] = x.detach().numpy()
    return found
