"""Autocast: matrix products and convolutions in bfloat16, losses and decompositions in float32."""

import functools
from typing import Any

import optree

from retrograd.autograd.grad_mode import Mode
from retrograd.backend.devices import device_named
from retrograd.core.extension_dtypes import bfloat16
from retrograd.foundation.source_location import warn_user
from retrograd.levels.autocast import AutocastLevel, cast_operand, innermost_autocast
from retrograd.ops.dtype_aliases import dtype as dtype_type
from retrograd.ops.dtype_aliases import half

_DEVICES = ("cpu", "cuda", "xpu", "mps", "hpu", "mtia", "xla", "ipu", "maia", "meta")
_defaults: dict[str, Any] = {}


class autocast(Mode):
    """A block, or decorator, in which listed operators cast their floating operands; float64 is never cast.

    Matrix products, linear layers, convolutions and attention run in `dtype` (bfloat16 if None, or float16).  Losses,
    FFTs, decompositions and some pooling run in float32.  All other operators take their operands as they are. The
    lists are PyTorch's for the CPU. Gradients of parameters have the dtype of the parameters.  `enabled=False` suspends
    the blocks around it.  `cache_enabled` keeps the cast of each parameter until the block ends.

    `device_type` is that of the operands that are cast: "cpu", or "cuda" where there is a GPU, for which None is
    float16. Other devices that PyTorch knows, and a dtype that is not supported, disable the block with a warning, as
    in PyTorch without the device. A RuntimeError for an unknown device, a ValueError for one that is no string.

    >>> import retrograd as rg
    >>> x, w = rg.ones(2, 3), rg.ones(3, 4, requires_grad=True)
    >>> with rg.autocast("cpu", dtype=rg.bfloat16):
    ...     y = x @ w
    ...     loss = rg.nn.functional.mse_loss(y, rg.zeros(2, 4))
    >>> y.dtype, loss.dtype
    (dtype(bfloat16), dtype('float32'))
    >>> loss.backward()
    >>> w.grad.dtype
    dtype('float32')
    """

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        super().__init__()
        _check_device(device_type)
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self._enabled = bool(enabled)
        self._cache_enabled = True if cache_enabled is None else bool(cache_enabled)
        if self._enabled and not is_autocast_available(device_type):
            warn_user(f"autocast: there is no device {device_type!r} here: the block is disabled")
            self._enabled = False
        if self._enabled and self.fast_dtype not in (bfloat16, half):
            warn_user(
                f"autocast: the {device_type.upper()} supports bfloat16 and float16, not {self.fast_dtype}: the block "
                "is disabled"
            )
            self._enabled = False

    def _block(self) -> Any:
        if not is_autocast_available(self.device):  # has no effect on blocks for other devices around it
            return _NoBlock()
        return AutocastLevel(self.fast_dtype if self._enabled else None, self._cache_enabled, self.device)


class _NoBlock:
    """A block without effect, whose `with` statement has the value of an autocast level's."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: Any) -> None:
        pass


def _check_device(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if device_type not in _DEVICES and device_named(device_type) is None:
        raise RuntimeError(
            f"User specified an unsupported autocast device_type '{device_type}': the devices are {', '.join(_DEVICES)}"
        )


def is_autocast_available(device_type: str) -> bool:
    """Return whether `autocast(device_type)` casts: it does for "cpu", and for "cuda" where there is a GPU.

    >>> is_autocast_available("cpu")
    True
    """
    _check_device(device_type)
    return device_type == "cpu" or device_named(device_type) is not None


def is_autocast_enabled(device_type: str = "cpu") -> bool:
    """Return whether the innermost autocast block casts operands.

    >>> with autocast("cpu"):
    ...     is_autocast_enabled("cpu")
    True
    """
    _check_device(device_type)
    level = innermost_autocast()
    return level is not None and level.device == device_type and level.dtype is not None


def get_autocast_dtype(device_type: str = "cpu") -> Any:
    """Return the dtype to which autocast casts: that of the innermost block, or of blocks that are given none.

    >>> get_autocast_dtype("cpu")
    dtype(bfloat16)
    """
    _check_device(device_type)
    level = innermost_autocast()
    if level is not None and level.device == device_type and level.dtype is not None:
        return level.dtype
    return _defaults.get(device_type, bfloat16 if device_type == "cpu" else half)


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """Set the dtype of autocast blocks that are given none.

    >>> set_autocast_dtype("cpu", get_autocast_dtype("cpu"))
    """
    _check_device(device_type)
    if not isinstance(dtype, dtype_type):
        raise TypeError(f"set_autocast_dtype: expected a dtype, got {type(dtype).__name__}")
    _defaults[device_type] = dtype


def is_autocast_cpu_enabled() -> bool:
    """Return `is_autocast_enabled("cpu")`, the name that it replaces."""
    return is_autocast_enabled("cpu")


def get_autocast_cpu_dtype() -> Any:
    """Return `get_autocast_dtype("cpu")`, the name that it replaces."""
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: Any) -> None:
    """Call `set_autocast_dtype("cpu", dtype)`, which replaces it."""
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> Any:
    """Return `get_autocast_dtype("cuda")`, the name that it replaces."""
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype: Any) -> None:
    """Call `set_autocast_dtype("cuda", dtype)`, which replaces it."""
    set_autocast_dtype("cuda", dtype)


def clear_autocast_cache() -> None:
    """Drop the casts of parameters that the innermost block holds."""
    level = innermost_autocast()
    if level is not None and level.casts is not None:
        level.casts.clear()


def custom_fwd(fwd: Any = None, *, device_type: str = "cpu", cast_inputs: Any = None) -> Any:
    """Return the forward of an autograd.Function; with `cast_inputs` it gets cast operands and runs without autocast.

    >>> import retrograd as rg
    >>> class Double(rg.autograd.Function):
    ...     @staticmethod
    ...     @custom_fwd(device_type="cpu", cast_inputs=rg.float32)
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     @custom_bwd(device_type="cpu")
    ...     def backward(ctx, grad):
    ...         return grad * 2
    >>> with autocast("cpu"):
    ...     Double.apply(rg.ones(2).bfloat16()).dtype
    dtype('float32')
    """
    if fwd is None:
        return lambda function: custom_fwd(function, device_type=device_type, cast_inputs=cast_inputs)
    _check_device(device_type)

    @functools.wraps(fwd)
    def run(*args: Any, **kwargs: Any) -> Any:
        args[0]._fwd_used_autocast = is_autocast_enabled(device_type)
        if cast_inputs is None or not is_autocast_enabled(device_type):
            return fwd(*args, **kwargs)
        args[0]._fwd_used_autocast = False
        with autocast(device_type, enabled=False):
            inputs: Any = (args[1:], kwargs)
            cast: Any = optree.tree_map(lambda a: cast_operand(a, cast_inputs), inputs)
            return fwd(args[0], *cast[0], **cast[1])

    return run


def custom_bwd(bwd: Any = None, *, device_type: str = "cpu") -> Any:
    """Return the backward of an autograd.Function, run with autocast as its forward was: see `custom_fwd`."""
    if bwd is None:
        return lambda function: custom_bwd(function, device_type=device_type)
    _check_device(device_type)

    @functools.wraps(bwd)
    def run(*args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, enabled=args[0]._fwd_used_autocast):
            return bwd(*args, **kwargs)

    return run
