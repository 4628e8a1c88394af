"""Settings of PyTorch that trade precision or repeatability for speed; kernels for the CPU make neither trade."""

from retrograd.backend.devices import cupy_device
from retrograd.foundation.number_arguments import as_switch
from retrograd.ops.functions import function

_PRECISIONS = ("highest", "high", "medium")
_settings = {"precision": "highest", "deterministic": False, "warn_only": False}


@function()
def set_float32_matmul_precision(precision):
    """Set how precise products of float32 matrices need to be: "highest", "high" or "medium".

    On a GPU, "high" and "medium" compute them in TF32. On the CPU they have full float32 precision with each setting.

    ValueError: another precision.

    >>> set_float32_matmul_precision("high")
    >>> get_float32_matmul_precision()
    'high'
    >>> set_float32_matmul_precision("highest")
    """
    if precision not in _PRECISIONS:
        raise ValueError(f"set_float32_matmul_precision: expected one of {', '.join(_PRECISIONS)}, got {precision!r}")
    _settings["precision"] = precision
    cupy_device().use_tf32(precision != "highest")


@function()
def get_float32_matmul_precision():
    """Return what `set_float32_matmul_precision` was last called with, "highest" at the start.

    >>> get_float32_matmul_precision()
    'highest'
    """
    return _settings["precision"]


@function()
def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False):
    """Accept whether operators must be deterministic.  All are, so the setting has no effect.

    Only the program's own threads that add to the same `.grad` do so in an order that may vary.

    >>> use_deterministic_algorithms(True)
    >>> are_deterministic_algorithms_enabled()
    True
    >>> use_deterministic_algorithms(False)
    """
    mode = as_switch("use_deterministic_algorithms: mode", mode)
    warn_only = as_switch("use_deterministic_algorithms: warn_only", warn_only)
    _settings["deterministic"], _settings["warn_only"] = mode, warn_only


@function()
def are_deterministic_algorithms_enabled():
    """Whether `use_deterministic_algorithms(True)` was called last.

    >>> are_deterministic_algorithms_enabled()
    False
    """
    return _settings["deterministic"]


@function()
def is_deterministic_algorithms_warn_only_enabled():
    """Whether the last call of `use_deterministic_algorithms` had `warn_only=True`.

    >>> is_deterministic_algorithms_warn_only_enabled()
    False
    """
    return _settings["warn_only"]


_DEBUG_MODES = ("default", "warn", "error")


@function()
def set_deterministic_debug_mode(debug_mode):
    """Set `use_deterministic_algorithms` by a name or number: "default" or 0, "warn" or 1, "error" or 2.

    RuntimeError: another name or number.  TypeError: neither a str nor an int.

    >>> set_deterministic_debug_mode("warn")
    >>> get_deterministic_debug_mode(), is_deterministic_algorithms_warn_only_enabled()
    (1, True)
    >>> set_deterministic_debug_mode(0)
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode).__name__}")
    if debug_mode not in (*_DEBUG_MODES, 0, 1, 2):
        raise RuntimeError(
            f"set_deterministic_debug_mode: invalid value of debug_mode, expected `default`, `warn`, `error`, 0, 1, 2, "
            f"but got {debug_mode}"
        )
    level = _DEBUG_MODES.index(debug_mode) if isinstance(debug_mode, str) else int(debug_mode)
    use_deterministic_algorithms(level > 0, warn_only=level == 1)


@function()
def get_deterministic_debug_mode():
    """Return 0 if operators need not be deterministic, 1 if a violation would be a warning, 2 if an error.

    >>> get_deterministic_debug_mode()
    0
    """
    if not _settings["deterministic"]:
        return 0
    return 1 if _settings["warn_only"] else 2


@function()
def set_flush_denormal(mode: bool):
    """Return False: numbers below the smallest normal one are never replaced by 0.

    >>> set_flush_denormal(True)
    False
    """
    as_switch("set_flush_denormal: mode", mode)
    return False
