"""Sets of values: the supports of distributions, and the values that their parameters may have.

`c.check(value)` returns a boolean tensor that has one element for each event, the last `c.event_dim` dimensions of the
value: whether that event belongs to the set.  The names and their arguments are those of torch.distributions.
"""

from collections.abc import Callable, Sequence
from typing import Any

from retrograd.backend.type_info import finfo
from retrograd.core import Tensor
from retrograd.core.tensor import unwrap_all
from retrograd.ops.create import full
from retrograd.ops.decompose import linalg_cholesky_ex
from retrograd.ops.eigen import linalg_eigvalsh
from retrograd.ops.floats import isclose
from retrograd.ops.join import cat as concatenate
from retrograd.ops.join import stack as stack_tensors

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property",
    "greater_than", "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval",
    "is_dependent", "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative",
    "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite",
    "real", "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip

TOLERANCE = 1e-6  # of sums that should be 1, and of symmetry


def all_valid(checked: Tensor) -> bool:
    """Return whether all elements are True, for all examples of a vmap; under a trace those of its example inputs."""
    found = unwrap_all(checked).all()
    return bool(found.item() if hasattr(found, "item") else found)  # an array on a device is no condition


class Constraint:
    """A set of events; `is_discrete` says whether it is countable, `event_dim` the number of dimensions of an event."""

    is_discrete = False
    event_dim = 0

    def check(self, value: Tensor) -> Tensor:
        """Return for each event of a tensor whether it belongs to this set."""
        raise NotImplementedError(f"{type(self).__name__}: check is not defined")

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value}" for name, value in vars(self).items() if name[0] != "_")
        return f"{type(self).__name__.lstrip('_')}({settings})"


# ---------------------------------------------------------------------------------------- of other parameters


class _Dependent(Constraint):
    """A set that depends on other values, such as the parameters of a distribution."""

    def __init__(self, *, is_discrete: bool = False, event_dim: int = 0) -> None:
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, *, is_discrete: bool | None = None, event_dim: int | None = None) -> "_Dependent":
        """Return a dependent constraint with other attributes."""
        return _Dependent(
            is_discrete=self.is_discrete if is_discrete is None else is_discrete,
            event_dim=self.event_dim if event_dim is None else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("a dependent constraint can only be checked for an instance, such as a distribution")

    def __repr__(self) -> str:
        return "Dependent()"


def is_dependent(constraint: Any) -> bool:
    """Return whether a constraint depends on an instance, so that `check` is not defined for the class."""
    return isinstance(constraint, _Dependent)


class dependent_property(property, _Dependent):
    """A property of instances that is a constraint, and a dependent constraint of their class.

    >>> from retrograd.distributions import Uniform, constraints
    >>> constraints.is_dependent(Uniform.support), Uniform(0.0, 2.0).support
    (True, Interval(lower_bound=0.0, upper_bound=2.0))
    """

    def __init__(
        self, fn: Callable[[Any], Any] | None = None, *, is_discrete: bool = False, event_dim: int = 0
    ) -> None:
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Callable[[Any], Any]) -> "dependent_property":  # type: ignore[override]
        """Return the property of a function: `@dependent_property(event_dim=1)` is a decorator."""
        return dependent_property(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


# -------------------------------------------------------------------------------------------------- numbers


class _Real(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return value == value  # NaN is not real


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _Bounded(Constraint):
    """Numbers between bounds; a bound is a number, or a tensor that broadcasts with the values."""

    def __init__(self, lower_bound: Any = None, upper_bound: Any = None) -> None:
        if lower_bound is not None:
            self.lower_bound = lower_bound
        if upper_bound is not None:
            self.upper_bound = upper_bound


class _GreaterThan(_Bounded):
    def __init__(self, lower_bound: Any) -> None:
        super().__init__(lower_bound)

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value


class _GreaterThanEq(_Bounded):
    def __init__(self, lower_bound: Any) -> None:
        super().__init__(lower_bound)

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class _LessThan(_Bounded):
    def __init__(self, upper_bound: Any) -> None:
        super().__init__(upper_bound=upper_bound)

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(_Bounded):
    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        super().__init__(lower_bound, upper_bound)

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Bounded):
    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        super().__init__(lower_bound, upper_bound)

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _IntegerInterval(_Interval):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & super().check(value)


class _IntegerGreaterThan(_GreaterThanEq):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & super().check(value)


# -------------------------------------------------------------------------------------------------- vectors


class _Simplex(Constraint):
    """Vectors of non-negative numbers with sum 1."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < TOLERANCE)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return boolean.check(value).all(-1) & (value.sum(-1) == 1)


class _Multinomial(Constraint):
    """Vectors of counts with a sum of at most `upper_bound`; a distribution's own check is of the exact sum."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


# -------------------------------------------------------------------------------------------------- matrices


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(Constraint):
    """Lower triangular matrices with a positive diagonal."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return lower_triangular.check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(Constraint):
    """Cholesky factors of correlation matrices: lower triangular, with rows of length 1."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        tolerance = finfo(value.dtype).eps * value.shape[-1] * 10  # room for the rounding of sums
        lengths = (value * value).sum(-1).sqrt()
        return ((lengths - 1).abs() <= tolerance).all(-1) & lower_cholesky.check(value)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        square_shape = value.shape[-2] == value.shape[-1]
        return full(value.shape[:-2], square_shape)


class _Symmetric(_Square):
    def check(self, value: Tensor) -> Tensor:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return isclose(value, value.mT, atol=TOLERANCE).flatten(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        return symmetric & (linalg_eigvalsh(value) >= 0).all(-1) if value.shape[-2] == value.shape[-1] else symmetric


class _PositiveDefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        return symmetric & (linalg_cholesky_ex(value)[1] == 0) if value.shape[-2] == value.shape[-1] else symmetric


# -------------------------------------------------------------------------------------------------- composed


class _IndependentConstraint(Constraint):
    """The events of a constraint, joined along further dimensions: all of them must belong to it."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        valid = self.base_constraint.check(value)
        if valid.ndim < self.reinterpreted_batch_ndims:
            raise ValueError(f"expected at least {self.event_dim} dimensions, got {value.ndim} in shape {value.shape}")
        return valid.flatten(-self.reinterpreted_batch_ndims).all(-1) if self.reinterpreted_batch_ndims else valid

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The values in the support of the components of a mixture, which have one more dimension on the left of events."""

    def __init__(self, base_constraint: Constraint) -> None:
        if not isinstance(base_constraint, Constraint):
            raise TypeError(f"expected a constraint, got {type(base_constraint).__name__}")
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        for_each_component = value.unsqueeze(-1 - self.event_dim)
        return self.base_constraint.check(for_each_component).all(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class _Cat(Constraint):
    """Parts of a tensor along a dimension, each in its own set; `lengths` are the sizes of the parts, by default 1."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise ValueError(f"cat: {len(self.cseq)} constraints, but {len(self.lengths)} lengths")

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return max(c.event_dim for c in self.cseq)

    def check(self, value: Tensor) -> Tensor:
        checked, start = [], 0
        for constraint, length in zip(self.cseq, self.lengths, strict=True):
            checked.append(constraint.check(value.narrow(self.dim, start, length)))
            start += length
        return concatenate(checked, self.dim)


class _Stack(Constraint):
    """Slices of a tensor along a dimension, each in its own set."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Tensor) -> Tensor:
        slices = [value.select(self.dim, i) for i in range(value.shape[self.dim])]
        return stack_tensors([c.check(v) for c, v in zip(self.cseq, slices, strict=True)], self.dim)


# --------------------------------------------------------------------------------------------- public names

dependent = _Dependent()
boolean, one_hot, real, simplex = _Boolean(), _OneHot(), _Real(), _Simplex()
square, symmetric = _Square(), _Symmetric()
positive_semidefinite, positive_definite = _PositiveSemidefinite(), _PositiveDefinite()
lower_triangular, lower_cholesky, corr_cholesky = _LowerTriangular(), _LowerCholesky(), _CorrCholesky()
greater_than, greater_than_eq, less_than = _GreaterThan, _GreaterThanEq, _LessThan
interval, half_open_interval, integer_interval = _Interval, _HalfOpenInterval, _IntegerInterval
multinomial, independent, cat, stack = _Multinomial, _IndependentConstraint, _Cat, _Stack
nonnegative, positive = _GreaterThanEq(0.0), _GreaterThan(0.0)
nonnegative_integer, positive_integer = _IntegerGreaterThan(0), _IntegerGreaterThan(1)
unit_interval, real_vector = _Interval(0.0, 1.0), _IndependentConstraint(real, 1)
