"""Base class of tensors that are divided among ranks, for modules and optimizers."""

import weakref
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from retrograd.core import Tensor
from retrograd.core.state import override_state
from retrograd.levels.tangent_table import WeakIdDict


class TensorPart(Tensor):
    """Base of `retrograd.distributed.tensor.DTensor`: this rank's part of a whole tensor."""

    @classmethod
    def __tensor_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return the result of a function on whole tensors, of which this rank computes its part."""
        return cls.dispatch(func, args, kwargs or {})

    @staticmethod
    def dispatch(func: Any, args: Any, kwargs: Any) -> Any:
        """Return the result of a function on whole tensors, of which this rank computes its part."""
        raise NotImplementedError

    def as_part(self, x: Tensor) -> "TensorPart":
        """Return a tensor with the shape of this part as the same part of another whole tensor."""
        raise NotImplementedError

    def local_tensor(self) -> Tensor:
        """Return this part as a plain tensor with the same memory, outside of the graph."""
        raise NotImplementedError

    def same_part(self, x: Tensor) -> Tensor:
        """Return the elements of this part of a tensor that is whole, divided in any way, or the part already."""
        raise NotImplementedError

    def part_of(self, whole: Tensor) -> Tensor:
        """Return the elements of this part, given those of the whole tensor."""
        raise NotImplementedError

    @property
    def whole_shape(self) -> tuple[int, ...]:
        """Return the shape of the whole tensor."""
        raise NotImplementedError

    @property
    def mesh_and_placement(self) -> Any:
        """Return what is equal for tensors that are divided among the same ranks, and can be hashed."""
        raise NotImplementedError

    def stack_over_ranks(self, x: Tensor) -> Tensor:
        """Return the scalars of all ranks that have other parts, as a vector."""
        raise NotImplementedError


def on_parts() -> Any:
    """Return a context in which functions of divided tensors compute with this rank's parts, as plain tensors."""
    return override_state("overrides_off", 2)


def local_tensor(x: Any) -> Any:
    """Return this rank's part of a divided tensor, as a plain one with the same memory; other values as they are."""
    return x.local_tensor() if isinstance(x, TensorPart) else x


class GradientHolder:
    """Base of what keeps this rank's elements of gradients in place of the `.grad` of the parameters."""

    def holders(self, params: Iterable[Tensor]) -> list[Tensor]:
        """Return the tensors of this rank whose `.grad` has its elements of the gradients of some parameters."""
        raise NotImplementedError

    def norm_members(self, tensors: Iterable[Tensor]) -> list[Tensor]:
        """Return those of `holders` that a norm over all ranks counts here, and not on another rank that has them."""
        return list(tensors)

    def stack_over_ranks(self, x: Tensor) -> Tensor:
        """Return the scalars of all ranks as a vector."""
        raise NotImplementedError


class DividedGradients(NamedTuple):
    """Gradients that are divided among the same ranks: the tensors with this rank's elements, maybe none.

    counted: those that a norm over all ranks counts here.  dtype: of the parameters.  stack_over_ranks: returns the
    scalars of all ranks that have other elements, as a vector.
    """

    tensors: list[Any]
    counted: list[Any]
    dtype: Any
    stack_over_ranks: Callable[[Tensor], Tensor]


class ParameterExchange(NamedTuple):
    """An object that exchanges gradients or values of a parameter, and the ranks that take part.

    owner: returns the object, or None if it is gone.
    """

    owner: Callable[[], Any]
    ranks: tuple[int, ...]


_exchanges_of = WeakIdDict()  # of a parameter, a list of ParameterExchange


def note_exchange(params: Iterable[Tensor], owner: Any, ranks: Iterable[int]) -> None:
    """Note that an object exchanges gradients or values of parameters among ranks, which all must take part."""
    exchange = ParameterExchange(weakref.ref(owner), tuple(ranks))
    for p in params:
        _exchanges_of.set(p, [*exchanges_of(p), exchange])


def exchanges_of(param: Tensor) -> list[ParameterExchange]:
    """Return the exchanges of a parameter by objects that still exist."""
    return [exchange for exchange in _exchanges_of.get(param) or [] if exchange.owner() is not None]


_holder_of = WeakIdDict()  # of a parameter, a weak reference to its GradientHolder


def set_gradient_holder(param: Tensor, holder: GradientHolder | None) -> None:
    """Let a holder keep the gradient of a parameter; None: the parameter has it again."""
    _holder_of.set(param, None if holder is None else weakref.ref(holder))


def gradient_holder(param: Tensor) -> GradientHolder | None:
    """Return what keeps the gradient of a parameter; None: the parameter has it."""
    found = _holder_of.get(param)
    return None if found is None else found()


def split_by_division(params: Iterable[Any]) -> tuple[list[Any], list[DividedGradients]]:
    """Return the parameters of which each rank has the whole gradient, if any, and the divided gradients of others."""
    whole, parts, held = [], dict[Any, list[TensorPart]](), dict[GradientHolder, list[Tensor]]()
    for p in params:
        holder = gradient_holder(p)
        if holder is not None:
            held.setdefault(holder, []).append(p)
        elif p.grad is None:
            continue
        elif isinstance(p, TensorPart):
            parts.setdefault(p.mesh_and_placement, []).append(p)
        else:
            whole.append(p)
    divided = [
        DividedGradients(list(each), list(each), each[0].dtype, each[0].stack_over_ranks) for each in parts.values()
    ]
    for holder, each in held.items():
        tensors = [x for x in holder.holders(each) if x.grad is not None]
        divided.append(DividedGradients(tensors, holder.norm_members(tensors), each[0].dtype, holder.stack_over_ranks))
    return whole, divided
