"""The amount of freed array memory that the process reuses for new arrays.

Fresh memory comes from the operating system page by page, at the first touch of each: for an array of megabytes that
takes longer than most operators need to fill it.  The GNU C library returns memory to the system if more than a few
megabytes are free; `mallopt` makes it retain more.
"""

import ctypes
import os
import sys

DEFAULT = 256  # MiB
LARGEST_BLOCK = 32 << 20  # bytes: the C library never retains larger blocks
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt, in malloc.h


def keep(mebibytes: int) -> bool:
    """Set how much free memory is retained; 0 restores the C library's rules. Return whether that is supported."""
    if not mebibytes or not sys.platform.startswith("linux"):
        return False
    tell = getattr(ctypes.CDLL(None), "mallopt", None)
    if tell is None:  # another C library
        return False
    return bool(tell(_TRIM_THRESHOLD, mebibytes << 20)) and bool(tell(_MMAP_THRESHOLD, LARGEST_BLOCK))


def asked_for() -> int:
    """Return the environment variable's setting, in MiB; raise a ValueError if it is not a number."""
    text = os.environ.get("RETROGRAD_KEEP_MEMORY", "")
    if text and not text.isdigit():
        raise ValueError(f"RETROGRAD_KEEP_MEMORY: expected a number of MiB, 0 to keep nothing, got {text!r}")
    return int(text) if text else DEFAULT
