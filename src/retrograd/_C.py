"""PyTorch's private names around the graph, `torch._C`, which programs and tests of autograd use; see `rg.autograd`.

>>> import retrograd as rg
>>> x = rg.ones(2, requires_grad=True)
>>> isinstance((x * 2).grad_fn.next_functions[0][0], rg._C._functions.AccumulateGrad)
True
"""

import weakref
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from retrograd.autograd import Function, is_grad_enabled
from retrograd.autograd.function.undefined_grad import UndefinedGrad
from retrograd.autograd.graph import _pop_saved_tensors_default_hooks, _push_saved_tensors_default_hooks
from retrograd.autograd.node_views import AccumulateGrad, Node
from retrograd.autograd.running_pass import execution_order as _current_graph_task_execution_order
from retrograd.autograd.running_pass import graph_task_id as _current_graph_task_id
from retrograd.autograd.running_pass import will_execute as _will_engine_execute_node
from retrograd.autograd.saved_names import SavedTensor
from retrograd.core import Tensor, current
from retrograd.core.tensor import version_of
from retrograd.overrides import DisableTorchFunction, DisableTorchFunctionSubclass

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "_WeakTensorRef",
    "_autograd",
    "_current_graph_task_execution_order",
    "_current_graph_task_id",
    "_functions",
    "_will_engine_execute_node",
    "is_grad_enabled",
]


def _is_torch_function_all_disabled() -> bool:
    """Return whether neither subclasses of Tensor nor function modes override functions."""
    return current().overrides_off == 2


def _is_torch_function_enabled() -> bool:
    """Return whether subclasses of Tensor override functions."""
    return current().overrides_off == 0


def _get_tracing_state() -> None:
    """Return the trace of torch.jit that is being recorded: None."""


def _log_api_usage_once(event: str) -> None:
    """Do nothing, where PyTorch counts the uses of its interface."""


class _WeakTensorRef:
    """A weak reference to a tensor.

    >>> reference = _WeakTensorRef(Tensor([1.0]))
    >>> reference.expired()
    True
    """

    def __init__(self, tensor: Tensor) -> None:
        self._reference = weakref.ref(tensor)

    def expired(self) -> bool:
        """Return whether the tensor is gone."""
        return self._reference() is None


class _Delayed(Function):
    @staticmethod
    def forward(ctx: Any, message: str, *inputs: Tensor) -> Any:
        """Return copies of the inputs."""
        ctx.message = message
        return tuple([x.detach() for x in inputs])

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor | None) -> Any:
        """Raise."""
        raise RuntimeError(ctx.message)


class DelayedError:
    """A function that returns its inputs, and whose backward pass raises a RuntimeError."""

    def __init__(self, message: str, num_inputs: int) -> None:
        self._message = message
        self._num_inputs = num_inputs

    def __call__(self, *inputs: Tensor) -> Any:
        """Return the input, or a tuple of several, connected to a node that raises."""
        found = _Delayed.apply(self._message, *inputs)
        return found[0] if self._num_inputs == 1 else found


Node.register(DelayedError)
Node.register(UndefinedGrad)


def _saved_tensors_hooks_is_enabled() -> bool:
    """Return whether hooks of saved tensors may be entered."""
    return current().saving_refused is None


def _unsafe_set_version_counter(tensors: Sequence[Tensor], versions: Sequence[int]) -> None:
    """Set the versions of tensors: backward will not notice changes of saved values."""
    if not isinstance(tensors, Sequence):
        raise TypeError(
            f"_unsafe_set_version_counter(): incompatible function arguments: expected a sequence of tensors, got "
            f"{type(tensors).__name__}"
        )
    for tensor, version in zip(tensors, versions, strict=True):
        if version < 0:
            raise RuntimeError(f"Cannot set a version_counter to a value below 0: {version}")
        version_of(tensor).count = version


_functions = SimpleNamespace(AccumulateGrad=AccumulateGrad, DelayedError=DelayedError, UndefinedGrad=UndefinedGrad)
_autograd = SimpleNamespace(
    SavedTensor=SavedTensor,
    _pop_saved_tensors_default_hooks=_pop_saved_tensors_default_hooks,
    _push_saved_tensors_default_hooks=_push_saved_tensors_default_hooks,
    _saved_tensors_hooks_is_enabled=_saved_tensors_hooks_is_enabled,
    _unsafe_set_version_counter=_unsafe_set_version_counter,
)
