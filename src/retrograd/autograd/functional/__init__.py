"""Derivatives of a function at a point: products with its Jacobian and Hessian, and these matrices."""

from retrograd.autograd.functional.products import hessian, hvp, jacobian, jvp, vhp, vjp

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
