"""Whether attention takes a path of its own in inference, under the names of torch.backends.mha: it has one path only.

>>> from retrograd.backends import mha
>>> mha.set_fastpath_enabled(False)
>>> mha.get_fastpath_enabled()
False
>>> mha.set_fastpath_enabled(True)
"""

_enabled = True


def get_fastpath_enabled() -> bool:
    """Return the setting."""
    return _enabled


def set_fastpath_enabled(value: bool) -> None:
    """Set the setting, which has no effect."""
    globals()["_enabled"] = bool(value)
