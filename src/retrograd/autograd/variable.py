"""Old faces of tensors: `Variable`, a Tensor by another name, and the engine that hung on it."""

from collections.abc import Callable
from typing import Any

from retrograd.core import Tensor, current


class _Engine:
    """What PyTorch shows of its engine."""

    @staticmethod
    def queue_callback(callback: Callable[[], None]) -> None:
        """Call a function when the backward pass that runs now is over; it may queue others."""
        run = current().running
        if run is None:
            raise RuntimeError("queue_callback: no pass runs on this thread; call it during backward, as from a hook")
        run.callbacks.append(callback)

    @staticmethod
    def is_checkpoint_valid() -> bool:
        """Whether the pass that runs now is one that every kind of checkpoint works under: always."""
        return True


class _IsTensor(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_IsTensor):
    """A Tensor by another name: `Variable(tensor, requires_grad)` is the tensor's value as a new leaf.

    >>> import retrograd as rg
    >>> x = rg.autograd.Variable(rg.ones(2), requires_grad=True)
    >>> isinstance(x, rg.Tensor), x.requires_grad
    (True, True)
    """

    _execution_engine = _Engine()

    def __new__(cls, data: Tensor, requires_grad: bool = False, volatile: bool | None = None) -> Any:
        """The tensor; `volatile` is an old name for no_grad, and no longer does anything."""
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable: data must be a Tensor, got {type(data).__name__}; see rg.tensor")
        return data.detach().requires_grad_(requires_grad)


def variable(*args: Any, **kwargs: Any) -> Any:
    """Not a function any more."""
    raise RuntimeError("autograd.variable is no function any more; use rg.tensor(data, requires_grad=True)")


def _is_checkpoint_valid() -> bool:
    """Whether checkpoints work under the backward pass that runs now; here they all do."""
    return Variable._execution_engine.is_checkpoint_valid()
