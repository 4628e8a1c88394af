"""`scipy.integrate`: solutions of differential equations and integrals that are differentiable; the rest is SciPy's."""

from retrograd.scipy._mirror import fallback_members
from retrograd.scipy.integrate.boundary_value import solve_bvp
from retrograd.scipy.integrate.initial_value import odeint, solve_ivp
from retrograd.scipy.integrate.multiple import dblquad, fixed_quad, nquad, tplquad
from retrograd.scipy.integrate.quadrature import quad
from retrograd.scipy.integrate.samples import cumulative_simpson, cumulative_trapezoid, romb, simpson, trapezoid

__all__ = [
    "cumulative_simpson",
    "cumulative_trapezoid",
    "dblquad",
    "fixed_quad",
    "nquad",
    "odeint",
    "quad",
    "romb",
    "simpson",
    "solve_bvp",
    "solve_ivp",
    "tplquad",
    "trapezoid",
]

__getattr__, __dir__ = fallback_members("scipy.integrate")
