"""Settings of PyTorch that trade precision or repeatability for speed; kernels here make neither trade."""

from retrograd.ops.functions import function

_PRECISIONS = ("highest", "high", "medium")
_settings = {"precision": "highest", "deterministic": False, "warn_only": False}


@function()
def set_float32_matmul_precision(precision):
    """Accept how precise products of float32 matrices need to be: "highest", "high" or "medium".

    Products are computed in full float32 precision with each setting.

    ValueError: another precision.

    >>> set_float32_matmul_precision("high")
    >>> get_float32_matmul_precision()
    'high'
    >>> set_float32_matmul_precision("highest")
    """
    if precision not in _PRECISIONS:
        raise ValueError(f"set_float32_matmul_precision: expected one of {', '.join(_PRECISIONS)}, got {precision!r}")
    _settings["precision"] = precision


@function()
def get_float32_matmul_precision():
    """Return what `set_float32_matmul_precision` was last called with, "highest" at the start.

    >>> get_float32_matmul_precision()
    'highest'
    """
    return _settings["precision"]


@function()
def use_deterministic_algorithms(mode, *, warn_only=False):
    """Accept whether operators must be deterministic.  All are, so the setting has no effect.

    Only the program's own threads that add to the same `.grad` do so in an order that may vary.

    >>> use_deterministic_algorithms(True)
    >>> are_deterministic_algorithms_enabled()
    True
    >>> use_deterministic_algorithms(False)
    """
    _settings["deterministic"], _settings["warn_only"] = bool(mode), bool(mode and warn_only)


@function()
def are_deterministic_algorithms_enabled():
    """Whether `use_deterministic_algorithms(True)` was called last.

    >>> are_deterministic_algorithms_enabled()
    False
    """
    return _settings["deterministic"]


@function()
def is_deterministic_algorithms_warn_only_enabled():
    """Whether `use_deterministic_algorithms(True, warn_only=True)` was called last.

    >>> is_deterministic_algorithms_warn_only_enabled()
    False
    """
    return _settings["warn_only"]
