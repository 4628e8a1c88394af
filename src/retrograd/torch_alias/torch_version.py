"""`torch.torch_version`: a version as text that compares as a version."""

import operator
import re
from collections.abc import Callable
from typing import Any


class TorchVersion(str):
    """A version, such as "2.13.0"; it compares with text and with tuples of numbers, in the order of versions.

    >>> TorchVersion("2.13.0") > "2.9", TorchVersion("2.13.0") >= (2, 13), TorchVersion("2.4.0a1") < "2.4"
    (True, True, True)
    """

    __slots__ = ()

    __hash__ = str.__hash__


def _comparison(compare: Callable[[Any, Any], bool]) -> Callable[[TorchVersion, Any], Any]:
    def method(self: TorchVersion, other: Any) -> Any:
        key = _key(other)
        return NotImplemented if key is None else compare(_key(self), key)

    return method


for _name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
    setattr(TorchVersion, _name, _comparison(getattr(operator, _name)))


# A final version is between those before it and those after it.
_STAGES = {"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "c": -1, "rc": -1, "": 0, "post": 1}


def _key(version: Any) -> tuple | None:
    """Return the sort key of a version: its numbers, stage and local part; None for other values."""
    text = (
        version if isinstance(version, str) else ".".join(map(str, version)) if hasattr(version, "__iter__") else None
    )
    found = re.match(r"v?(\d+(?:\.\d+)*)([^+]*)(\+.*)?$", text or "")
    if found is None:
        return None
    numbers = [int(number) for number in found[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    stage = re.match(r"[.\-_]?([a-z]*)(\d*)", found[2])
    kind, count = stage.groups() if stage is not None else ("", "")
    return numbers, _STAGES.get(kind, 0), int(count or 0), found[3] or ""
