"""Legacy names: `Variable`, an alias of Tensor, and the execution engine that belonged to it."""

from collections.abc import Callable
from typing import Any

from retrograd.core import Tensor, current
from retrograd.foundation.describe_value import tensor_hint


class _Engine:
    """The part of PyTorch's engine that is public."""

    @staticmethod
    def queue_callback(callback: Callable[[], None]) -> None:
        """Queue a function to be called at the end of the running backward pass; it may queue others."""
        run = current().running
        if run is None:
            raise RuntimeError(
                "Final callbacks can only be installed during backward pass: queue_callback found none on this thread"
            )
        run.callbacks.append(callback)

    @staticmethod
    def is_checkpoint_valid() -> bool:
        """Return whether checkpoints of every kind work in the running pass: always true."""
        return True


class _IsTensor(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_IsTensor):
    """An alias of Tensor: `Variable(tensor, requires_grad)` is a new leaf with the tensor's value.

    >>> import retrograd as rg
    >>> x = rg.autograd.Variable(rg.ones(2), requires_grad=True)
    >>> isinstance(x, rg.Tensor), x.requires_grad
    (True, True)
    """

    _execution_engine = _Engine()

    def __new__(cls, data: Tensor, requires_grad: bool = False, volatile: bool | None = None) -> Any:
        """Return the tensor; `volatile`, an old name for no_grad, has no effect."""
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}; {tensor_hint(data)}")
        return data.detach().requires_grad_(requires_grad)


def variable(*args: Any, **kwargs: Any) -> Any:
    """Raise: it is no longer a function."""
    raise RuntimeError("autograd.variable is no function any more; use rg.tensor(data, requires_grad=True)")


variable.Variable = Variable  # type: ignore[attr-defined]  # PyTorch's module of that name has the class


def _is_checkpoint_valid() -> bool:
    """Return whether checkpoints work in the running backward pass: always true."""
    return Variable._execution_engine.is_checkpoint_valid()
