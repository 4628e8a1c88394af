"""Forward mode as part of the program: dual tensors, which have a tangent in addition to their value."""

from typing import Any, NamedTuple

from retrograd.autograd.grad_mode import Mode
from retrograd.core import Tensor, call, current
from retrograd.core.aval import describe_difference
from retrograd.core.blocks import Block
from retrograd.core.dispatch import as_operand
from retrograd.core.dtype import is_differentiable
from retrograd.foundation.describe_value import tensor_hint
from retrograd.foundation.number_arguments import as_switch
from retrograd.levels import tangent_table
from retrograd.levels.dual import forward_mode_switch
from retrograd.levels.tangent_table import TangentTableLevel, forward_levels
from retrograd.ops.family import cast_to

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "set_fwd_grad_enabled",
    "unpack_dual",
]


class UnpackedDualTensor(NamedTuple):
    """The result of `unpack_dual`: the value of a dual tensor, and its tangent or None."""

    primal: Tensor
    tangent: Tensor | None


def __getattr__(name: str) -> Any:
    """Return the index of the innermost level, -1 outside of any, for PyTorch's private name of it."""
    if name == "_current_level":
        return len(forward_levels()) - 1
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def enter_dual_level() -> int:
    """Enter a level in which tensors may have tangents; return its index, 0 for the outermost.

    Better write `with dual_level():`.
    """
    number = len(forward_levels())
    TangentTableLevel().__enter__()
    return number


def exit_dual_level(*, level: int | None = None) -> None:
    """Exit the level that was entered last: tensors lose their tangents at that level.

    `level` is the index that `enter_dual_level` returned.  Raises RuntimeError if that is not the last level, or if a
    transform entered later has not ended yet.
    """
    levels = forward_levels()
    if not levels:
        raise RuntimeError(
            "exit_dual_level: Dual level must be a positive number. No level exists, make sure to call "
            "enter_dual_level() first"
        )
    last = len(levels) - 1
    if level not in (None, last):
        raise RuntimeError(
            f"exit_dual_level: trying to exit level {level}, that was not the last one that was created: that is level "
            f"{last}. This is not supported; leave levels in the opposite order"
        )
    if current().level is not levels[-1]:
        raise RuntimeError(
            f"exit_dual_level: a {type(current().level).__name__} was entered inside level {last}, which ends first"
        )
    levels[-1].__exit__()


class _LevelBlock(Block):
    """An entered level."""

    def __init__(self) -> None:
        self._level = TangentTableLevel()
        self._number = len(forward_levels())

    def _enter(self) -> int:
        """Enter the level, and return its index."""
        self._level.__enter__()
        return self._number

    def _leave(self, *exception: Any) -> None:
        """Exit the level."""
        if self._level.active:
            exit_dual_level(level=self._number)


class dual_level(Mode):
    """A block with a level for tangents: a context manager, whose value is the level's index, and a decorator.

    Levels nest: an inner one gives derivatives of the derivatives of an outer one.  Each thread has its own.

    >>> import retrograd as rg
    >>> from retrograd.autograd import forward_ad
    >>> x, t = rg.tensor([1.0, 2.0]), rg.tensor([1.0, 0.0])
    >>> with forward_ad.dual_level():
    ...     y = forward_ad.make_dual(x, t) ** 3
    ...     forward_ad.unpack_dual(y).tangent
    tensor([3., 0.])
    """

    def _block(self) -> _LevelBlock:
        return _LevelBlock()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Return a view of the tensor with a tangent; results computed from it have derivatives along this tangent.

    The tangent has the shape of the tensor and is converted to its dtype; if its memory order differs, it is copied.
    `level` is the number of the level, the innermost if it is None.

    Raises RuntimeError outside of any level, and for a tensor or tangent that has a tangent at that level already;
    ValueError for a dtype that is neither floating nor complex.

    >>> import retrograd as rg
    >>> from retrograd.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     dual = forward_ad.make_dual(rg.tensor(2.0), rg.tensor(1.0))
    ...     forward_ad.unpack_dual(dual * dual)
    UnpackedDualTensor(primal=tensor(4.), tangent=tensor(4.))
    """
    levels = forward_levels()
    if not levels and level is None:
        raise RuntimeError(
            "make_dual: Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first, or write `with dual_level():`"
        )
    at = _level_at_index("make_dual", levels, level)
    tensor, tangent = as_operand(tensor), as_operand(tangent)
    tangent = _check_tangent(tensor, tangent)
    for what, x in (("based on a Tensor", tensor), ("with a tangent", tangent)):
        if at is _innermost_level() and at.tangent(x) is not None:
            raise RuntimeError(
                f"make_dual: making a dual Tensor {what} that already has a forward gradient at the same level "
                f"{levels.index(at)} is not supported; use unpack_dual(...).primal, or enter another level"
            )
    dual: Tensor = call(tangent_table.make_dual, (tensor, tangent), {"level": at})
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Return the value, a view without tangent, and the tangent at a level, by default the innermost.

    At the innermost level, the tangent of a tensor without one is None; at outer levels it is zeros.  Outside of any
    level, the result is the tensor itself and None.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"unpack_dual: expected a Tensor, got {type(tensor).__name__}")
    levels = forward_levels()
    if (level is None and not levels) or (level is not None and level < 0):
        return UnpackedDualTensor(tensor, None)
    at = _level_at_index("unpack_dual", levels, level)
    primal = call(tangent_table.primal_of, (tensor,), {"level": at})
    if at is _innermost_level():
        return UnpackedDualTensor(primal, at.tangent(tensor))
    return UnpackedDualTensor(primal, call(tangent_table.tangent_of, (tensor,), {"level": at}))


def _level_at_index(name: str, levels: list[TangentTableLevel], level: int | None) -> TangentTableLevel:
    """Return the level with that index."""
    if level is None:
        return levels[-1]
    if not 0 <= level < len(levels):
        raise RuntimeError(
            f"{name}: Invalid level given to {name}: invalid level {level}: there are {len(levels)}, counted from 0"
        )
    return levels[level]


def _innermost_level() -> TangentTableLevel | None:
    """Return the innermost forward level, unless another level processes operators before it."""
    level: Any = current().level
    while level is not None and level.transparent and not isinstance(level, TangentTableLevel):
        level = level.parent
    return level if isinstance(level, TangentTableLevel) else None


def _check_tangent(tensor: Tensor, tangent: Tensor) -> Tensor:
    """Return the tangent in the dtype of the tensor."""
    for name, x in (("primal", tensor), ("tangent", tangent)):
        if not isinstance(x, Tensor):
            raise TypeError(f"make_dual: {name} must be a Tensor, got {type(x).__name__}; {tensor_hint(x)}")
        if not is_differentiable(x.dtype):
            raise ValueError(f"make_dual: Expected {name} to be floating point or complex, but got: {x.dtype}")
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            f"make_dual: Trying to set a forward gradient that has a different size than that of the original Tensor, "
            f"this is not supported: tensor has shape {tensor.shape}, tangent {tangent.shape}"
            f"{describe_difference(tensor.shape, tangent.shape)}"
        )
    if tangent.dtype.kind == "c" and tensor.dtype.kind != "c":
        raise RuntimeError(f"make_dual: tangent is {tangent.dtype}, but tensor is {tensor.dtype}, which is real")
    fitted: Tensor = cast_to(tangent, tensor.dtype)
    return fitted


class _ForwardModeBlock(Block):
    """A block with forward mode on or off."""

    def __init__(self, mode: bool) -> None:
        self._mode = mode
        self._switch: Any = None
        self._before = True

    def _enter(self) -> None:
        """Switch, and store the old mode."""
        switch = forward_mode_switch()
        self._before, self._switch = switch.on, switch
        switch.on = self._mode

    def _leave(self, *exception: Any) -> None:
        """Restore the old mode."""
        if self._switch is not None:
            self._switch.on = self._before


class set_fwd_grad_enabled(Mode):
    """Switch forward mode on this thread on or off at once; as a context manager, restore it at the end.

    While it is off, results have no tangents.  Existing tangents are ignored, and writes do not change them.

    >>> import retrograd as rg
    >>> from retrograd.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     dual = forward_ad.make_dual(rg.tensor(2.0), rg.tensor(1.0))
    ...     with forward_ad.set_fwd_grad_enabled(False):
    ...         y = dual * 3
    ...     forward_ad.unpack_dual(y)
    UnpackedDualTensor(primal=tensor(6.), tangent=None)
    """

    def __init__(self, mode: bool) -> None:
        self._mode = as_switch("set_fwd_grad_enabled: mode", mode)
        super().__init__(_ForwardModeBlock(self._mode))

    def _block(self) -> _ForwardModeBlock:
        return _ForwardModeBlock(self._mode)


_set_fwd_grad_enabled = set_fwd_grad_enabled


def _is_fwd_grad_enabled() -> bool:
    """Return whether forward mode is on: it is, unless it was switched off, or in inference mode."""
    return tangent_table.is_forward_mode_on()
