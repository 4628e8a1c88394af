"""Functions of `torch.optim.optimizer` that optimizers written after PyTorch's import, under their names."""

import functools
import math
from collections.abc import Callable
from typing import Any

from retrograd.autograd import set_grad_enabled
from retrograd.core import Tensor
from retrograd.core import dtype as dtypes
from retrograd.core.dtype import float32


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a `step` to record gradients only if the setting `differentiable` asks for it."""

    @functools.wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(bool(self.defaults.get("differentiable", False))):
            return func(self, *args, **kwargs)

    return step


def _get_value(x: Any) -> Any:
    """Return the number of a tensor of one element; others as they are."""
    return x.item() if isinstance(x, Tensor) else x


def _stack_if_compiling(x: Any) -> Any:
    """Return the numbers of the states as they are."""
    return x


def _dispatch_sqrt(x: Any) -> Any:
    """Return the square root of a number or a tensor."""
    return x.sqrt() if isinstance(x, Tensor) else math.sqrt(x)


def _default_to_fused_or_foreach(params: Any, differentiable: bool, use_fused: bool = False) -> tuple[bool, bool]:
    """Return that neither a fused step nor one on lists of tensors is the default, as for PyTorch's on the CPU."""
    return False, False


def _disable_dynamo_if_unsupported(single_tensor_fn: Any = None) -> Callable[[Any], Any]:
    """Return a decorator that leaves functions as they are."""
    return lambda func: func


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Return the devices whose steps can be captured: none."""
    return []


def _get_scalar_dtype(is_fused: bool | None = None) -> Any:
    """Return the dtype of the number of steps in a state."""
    default = dtypes.get_default_dtype()
    return default if default.itemsize == 8 and not is_fused else float32


def _to_scalar(x: Any) -> Any:
    """Return a tensor of one element without dimensions; others as they are."""
    return x.squeeze() if isinstance(x, Tensor) and x.ndim else x
