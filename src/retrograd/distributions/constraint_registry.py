"""Transforms from unconstrained numbers to the values that satisfy a constraint.

`biject_to(constraint)` returns a bijection, with a Jacobian determinant, for Hamiltonian Monte Carlo and variational
inference.  `transform_to(constraint)` returns a transform that may have more parameters than needed, for optimizers.
"""

from collections.abc import Callable
from typing import Any

from retrograd.distributions import constraints, transforms
from retrograd.distributions.transforms import Transform

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Functions that make a transform for a constraint, by the class of the constraint.

    >>> from retrograd.distributions import biject_to, constraints
    >>> biject_to(constraints.positive)
    ExpTransform()
    """

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], Transform]] = {}

    def register(self, constraint: Any, factory: Callable[[Any], Transform] | None = None) -> Any:
        """Register a function for a class of constraints, or for that of an instance; also a decorator."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, constraints.Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: constraints.Constraint) -> Transform:
        """Return a transform whose codomain is the constraint; NotImplementedError if none is registered."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _register(constraint: Any, *registries: ConstraintRegistry) -> Callable[[Any], Any]:
    """Return a decorator that registers a function in registries, by default in both."""

    def decorator(factory: Any) -> Any:
        for registry in registries or (biject_to, transform_to):
            registry.register(constraint, factory)
        return factory

    return decorator


@_register(constraints.real)
def _real(constraint: Any) -> Transform:
    return transforms.identity_transform


def _of_independent(registry: ConstraintRegistry) -> Callable[[Any], Transform]:
    def factory(constraint: Any) -> Transform:
        base = registry(constraint.base_constraint)
        return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)

    return factory


@_register(constraints.greater_than)
@_register(constraints.greater_than_eq)
def _above(constraint: Any) -> Transform:
    if isinstance(constraint.lower_bound, (int, float)) and constraint.lower_bound == 0:
        return transforms.ExpTransform()
    exp, shift = transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)
    return transforms.ComposeTransform([exp, shift])


@_register(constraints.less_than)
def _below(constraint: Any) -> Transform:
    mirror = transforms.AffineTransform(constraint.upper_bound, -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), mirror])


@_register(constraints.interval)
@_register(constraints.half_open_interval)
def _between(constraint: Any) -> Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    scale = transforms.AffineTransform(low, high - low)
    return transforms.ComposeTransform([transforms.SigmoidTransform(), scale])


@_register(constraints.simplex, biject_to)
def _bijection_to_simplex(constraint: Any) -> Transform:
    return transforms.StickBreakingTransform()


@_register(constraints.simplex, transform_to)
def _transform_to_simplex(constraint: Any) -> Transform:
    return transforms.SoftmaxTransform()


@_register(constraints.lower_cholesky, transform_to)
def _lower_cholesky(constraint: Any) -> Transform:
    return transforms.LowerCholeskyTransform()


@_register(constraints.positive_definite, transform_to)
@_register(constraints.positive_semidefinite, transform_to)
def _positive_definite(constraint: Any) -> Transform:
    return transforms.PositiveDefiniteTransform()


@_register(constraints.corr_cholesky)
def _corr_cholesky(constraint: Any) -> Transform:
    return transforms.CorrCholeskyTransform()


def _of_parts(registry: ConstraintRegistry) -> tuple[Callable[[Any], Transform], Callable[[Any], Transform]]:
    """Return the functions for `constraints.cat` and `constraints.stack`."""

    def of_cat(constraint: Any) -> Transform:
        parts = [registry(c) for c in constraint.cseq]
        return transforms.CatTransform(parts, constraint.dim, constraint.lengths)

    def of_stack(constraint: Any) -> Transform:
        return transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)

    return of_cat, of_stack


for _each in (biject_to, transform_to):
    _each.register(constraints.independent, _of_independent(_each))
    for _kind, _factory in zip((constraints.cat, constraints.stack), _of_parts(_each), strict=True):
        _each.register(_kind, _factory)
