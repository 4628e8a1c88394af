"""The base class of distributions."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from retrograd.autograd import no_grad
from retrograd.core import Tensor
from retrograd.distributions.constraints import Constraint, all_valid, dependent, is_dependent
from retrograd.distributions.utils import lazy_property
from retrograd.foundation.describe_value import describe
from retrograd.foundation.suggestions import suggests_keywords

__all__ = ["Distribution"]


@suggests_keywords
class Distribution:
    """A probability distribution of events, or a batch of them.

    `batch_shape` is the shape of the parameters, one distribution for each element; `event_shape` that of one draw.
    Draws have shape `sample_shape + batch_shape + event_shape`.  `validate_args` checks the parameters, and the values
    given to methods; the default is True unless Python runs with -O, and `set_default_validate_args` changes it.

    A subclass declares `arg_constraints`: name of a parameter -> its constraint, whose `event_dim` says how many of its
    dimensions belong to one distribution; the parameters are attributes of these names.  A subclass whose other
    attributes depend on the batch shape overrides `expand`.
    """

    has_rsample = False
    has_enumerate_support = False
    arg_constraints: ClassVar[Mapping[str, Constraint]] = {}
    support: Any = dependent
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions check their arguments unless told otherwise; ValueError if not a bool."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: expected True or False, got {describe(value)}")
        Distribution._validate_args = value

    def __init__(
        self, batch_shape: tuple[int, ...] = (), event_shape: tuple[int, ...] = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape, self._event_shape = tuple(batch_shape), tuple(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _check_parameters(self) -> None:
        for name, value in self._given_parameters().items():
            constraint = self.arg_constraints[name]
            if not is_dependent(constraint) and not all_valid(constraint.check(value)):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    def _given_parameters(self) -> dict[str, Tensor]:
        """Return the parameters by name, without those that are computed from others on first use."""
        lazy = (name for name in self.arg_constraints if isinstance(getattr(type(self), name, None), lazy_property))
        unused = {name for name in lazy if name not in vars(self)}
        return {name: getattr(self, name) for name in self.arg_constraints if name not in unused}

    def expand(self, batch_shape: tuple[int, ...], _instance: Any = None) -> Self:
        """Return this distribution with parameters expanded to another batch shape; they share their memory.

        `_instance` is an uninitialized instance of a subclass to fill in, for subclasses that override this method.
        """
        new = type(self).__new__(type(self)) if _instance is None else _instance
        batch_shape = tuple(batch_shape)
        parameters = self._all_constraints()
        for name, value in vars(self).items():
            if name in parameters:
                own = value.shape[value.ndim - parameters[name].event_dim :]
                value = value.expand(batch_shape + own)
            vars(new)[name] = value
        new._batch_shape = batch_shape
        return new

    def _get_checked_instance(self, cls: Any, _instance: Any = None) -> Any:
        """Return what an `expand` of class `cls` fills in: `_instance`, or a new one that no `__init__` has set up.

        PyTorch's name, for subclasses. Raises NotImplementedError for a subclass with another `__init__`: `expand` does
        not know its attributes.
        """
        if _instance is None and type(self).__init__ is not cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also "
                f"define a custom .expand() method."
            )
        return type(self).__new__(type(self)) if _instance is None else _instance

    def _all_constraints(self) -> dict[str, Constraint]:
        """Return the constraints of the parameters, also of those of base classes."""
        declared = [vars(base).get("arg_constraints", {}) for base in type(self).__mro__]
        inherited = {name: c for table in declared if isinstance(table, Mapping) for name, c in table.items()}
        return inherited | dict(self.arg_constraints)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of one draw of one distribution."""
        return self._event_shape

    # ------------------------------------------------------------------------------------------------ moments

    @property
    def mean(self) -> Tensor:
        """The expectation, of shape `batch_shape + event_shape`."""
        raise NotImplementedError(f"{type(self).__name__}: mean is not defined")

    @property
    def mode(self) -> Tensor:
        """The value of the largest probability or density."""
        raise NotImplementedError(f"{type(self).__name__}: mode is not defined")

    @property
    def variance(self) -> Tensor:
        """The variance, of each element of an event."""
        raise NotImplementedError(f"{type(self).__name__}: variance is not defined")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation, of each element of an event."""
        return self.variance.sqrt()

    # ------------------------------------------------------------------------------------------------ draws

    def sample(self, sample_shape: tuple[int, ...] = ()) -> Tensor:
        """Return draws without gradients, of shape `sample_shape + batch_shape + event_shape`."""
        with no_grad():
            return self.rsample(sample_shape).detach()

    def rsample(self, sample_shape: tuple[int, ...] = ()) -> Tensor:
        """Return draws that are differentiable functions of the parameters, or raise NotImplementedError."""
        raise NotImplementedError(f"{type(self).__name__}: draws have no derivative by the parameters; use sample()")

    def sample_n(self, n: int) -> Tensor:
        """Return n draws: `sample((n,))`."""
        return self.sample((n,))

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all values of a finite support along a new first dimension; `expand`: for each distribution."""
        raise NotImplementedError(f"{type(self).__name__}: the support has no finite enumeration")

    def _extended_shape(self, sample_shape: tuple[int, ...] = ()) -> tuple[int, ...]:
        return (*sample_shape, *self._batch_shape, *self._event_shape)

    def _enumerated(self, values: Tensor, expand: bool) -> Tensor:
        """Return values of scalar events along a new first dimension."""
        values = values.reshape(-1, *[1] * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values

    # ------------------------------------------------------------------------------------------- probabilities

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability, or of the density, of events."""
        raise NotImplementedError(f"{type(self).__name__}: log_prob is not defined")

    def cdf(self, value: Tensor) -> Tensor:
        """Return the cumulative distribution function at a value."""
        raise NotImplementedError(f"{type(self).__name__}: cdf is not defined")

    def icdf(self, value: Tensor) -> Tensor:
        """Return the inverse of the cumulative distribution function at a probability."""
        raise NotImplementedError(f"{type(self).__name__}: icdf is not defined")

    def entropy(self) -> Tensor:
        """Return the entropy in nats, of shape `batch_shape`."""
        raise NotImplementedError(f"{type(self).__name__}: entropy is not defined")

    def perplexity(self) -> Tensor:
        """Return exp(entropy), of shape `batch_shape`."""
        return self.entropy().exp()

    def _check_value(self, value: Tensor) -> None:
        """Raise ValueError for a value outside the support, if arguments are validated."""
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: Tensor) -> None:
        """Raise ValueError unless a value has events of these distributions, within their support."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        split = value.ndim - len(self._event_shape)
        if split < 0 or value.shape[split:] != self._event_shape:
            raise ValueError(
                "The right-most size of value must match event_shape: "
                f"{tuple(value.shape)} vs {tuple(self._event_shape)}."
            )
        for i, j in zip(reversed(value.shape[:split]), reversed(self._batch_shape), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: "
                    f"{tuple(value.shape)} vs {self._batch_shape + self._event_shape}."
                )
        if not all_valid(self.support.check(value)):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({self.support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        given = self._given_parameters().items()
        texts = [f"{name}: {v if v.numel() == 1 else f'shape {tuple(v.shape)}'}" for name, v in given]
        return f"{type(self).__name__}({', '.join(texts)})"
