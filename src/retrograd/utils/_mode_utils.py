"""Functions on modes; the names are those of `torch.utils._mode_utils`."""

from collections.abc import Sequence
from typing import Any

from retrograd.utils._python_dispatch import _disable_current_modes as no_dispatch

__all__ = ["all_same_mode", "no_dispatch"]


def all_same_mode(modes: Sequence[Any]) -> bool:
    """Return whether all modes are the same object.

    >>> from retrograd.overrides import BaseTorchFunctionMode
    >>> mode = BaseTorchFunctionMode()
    >>> all_same_mode([mode, mode]), all_same_mode([mode, None])
    (True, False)
    """
    return all(mode is modes[0] for mode in modes)
