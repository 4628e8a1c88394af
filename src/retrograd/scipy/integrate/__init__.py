"""`scipy.integrate`: solutions of differential equations and integrals that are differentiable; the rest is SciPy's."""

from retrograd.scipy._mirror import fallback_members
from retrograd.scipy.integrate.initial_value import odeint, solve_ivp
from retrograd.scipy.integrate.quadrature import cumulative_trapezoid, quad, simpson

__all__ = ["cumulative_trapezoid", "odeint", "quad", "simpson", "solve_ivp"]

__getattr__, __dir__ = fallback_members("scipy.integrate")
