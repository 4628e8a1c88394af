"""Implicit differentiation: solutions that any solver finds, with the derivatives of the equations that they solve."""

from retrograd.implicit.solvers import Constrained, argmin, constrained, fixed_point, root

__all__ = ["Constrained", "argmin", "constrained", "fixed_point", "root"]
