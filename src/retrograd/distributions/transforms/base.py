"""The base classes of transforms."""

import inspect
import weakref
from typing import Any, Self

from retrograd.core import Tensor
from retrograd.distributions import constraints
from retrograd.foundation.suggestions import suggests_keywords


@suggests_keywords
class Transform:
    """A map of tensors.

    Subclasses define `_call`, and `_inverse` and `log_abs_det_jacobian` where these exist; `bijective` is whether the
    inverse is one of both sides, and `sign` that of the derivative of a bijection of numbers.
    """

    bijective = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._cached: tuple[Tensor | None, Tensor | None] = (None, None)
        self._inv: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_inv": None, "_cached": (None, None)}

    @property
    def event_dim(self) -> int:
        """The number of dimensions of events, if those of the domain and the codomain are equal; else ValueError."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> "Transform":
        """The inverse transform, whose inverse is this one."""
        inverse = None if self._inv is None else self._inv()
        if inverse is None:
            inverse = _InverseTransform(self)
            self._inv = weakref.ref(inverse)
        return inverse

    @property
    def sign(self) -> Any:
        """1 for increasing and -1 for decreasing functions of numbers."""
        raise NotImplementedError(f"{type(self).__name__}: sign is not defined")

    def with_cache(self, cache_size: int = 1) -> Self:
        """Return this transform with another size of its cache."""
        if self._cache_size == cache_size:
            return self
        if [*inspect.signature(type(self)).parameters] == ["cache_size"]:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __call__(self, x: Tensor) -> Tensor:
        """Return the image of x."""
        if self._cache_size == 0:
            return self._call(x)
        known_x, known_y = self._cached
        if known_y is not None and x is known_x:
            return known_y
        y = self._call(x)
        self._cached = x, y
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        if self._cache_size == 0:
            return self._inverse(y)
        known_x, known_y = self._cached
        if known_x is not None and y is known_y:
            return known_x
        x = self._inverse(y)
        self._cached = x, y
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: the transform is not defined")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: the inverse is not defined")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return log |dy/dx| for each event, given an input and its image."""
        raise NotImplementedError(f"{type(self).__name__}: log_abs_det_jacobian is not defined")

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the image of an input of a shape."""
        return shape

    def inverse_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the input whose image has a shape."""
        return shape

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(Transform):
    """The inverse of a transform."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv: Transform = transform

    def __getstate__(self) -> dict[str, Any]:
        return vars(self)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return self._inv.domain

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return self._inv.bijective

    @property
    def sign(self) -> Any:
        return self._inv.sign

    @property
    def inv(self) -> Transform:
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Transform:  # type: ignore[override]
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = Transform.__hash__

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return self._inv.forward_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"


class PlainTransform(Transform):
    """A transform without settings: all of a class are equal."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    __hash__ = Transform.__hash__


def with_more_event_dims(constraint: Any, event_dim: int) -> Any:
    """Return a constraint on events of at least `event_dim` dimensions."""
    more = event_dim - constraint.event_dim
    return constraints.independent(constraint, more) if more > 0 else constraint


def checked_shape(shape: tuple[int, ...], event_dim: int) -> tuple[int, ...]:
    if len(shape) < event_dim:
        raise ValueError("Too few dimensions on input")
    return shape
