"""How much memory of arrays that are gone stays with the process, for those to come.

Fresh memory comes from the operating system page by page, at the first touch of each: for an array of megabytes that
takes longer than most operators need to fill it.  The GNU C library gives memory back at once, where more than a few
megabytes are free; it can be told to keep more.
"""

import ctypes
import os
import sys

DEFAULT = 256  # MiB
LARGEST_BLOCK = 32 << 20  # bytes: what is larger the C library never keeps
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt, in malloc.h


def keep(mebibytes: int) -> bool:
    """Keep so much memory when it is free; 0 leaves the C library's own rules.  Whether it takes such orders."""
    if not mebibytes or not sys.platform.startswith("linux"):
        return False
    tell = getattr(ctypes.CDLL(None), "mallopt", None)
    if tell is None:  # another C library
        return False
    return bool(tell(_TRIM_THRESHOLD, mebibytes << 20)) and bool(tell(_MMAP_THRESHOLD, LARGEST_BLOCK))


def asked_for() -> int:
    """What the environment asks for, in MiB; ValueError if that is no number."""
    text = os.environ.get("RETROGRAD_KEEP_MEMORY", "")
    if text and not text.isdigit():
        raise ValueError(f"RETROGRAD_KEEP_MEMORY: expected a number of MiB, 0 to keep nothing, got {text!r}")
    return int(text) if text else DEFAULT
