"""The amount of freed array memory that is kept for later arrays; array_memory.cpp keeps it."""

import os

MOST = 256 << 20  # bytes
SHARE = 16  # at most 1 / SHARE of the machine's memory


def limit() -> int:
    """Return the number of bytes to keep: by default 256 MiB, but at most a sixteenth of the machine's memory.

    RETROGRAD_KEEP_MEMORY sets it in MiB; ValueError if that is not a number.
    """
    text = os.environ.get("RETROGRAD_KEEP_MEMORY", "")
    if text and not text.isdigit():
        raise ValueError(f"RETROGRAD_KEEP_MEMORY: expected a number of MiB, 0 to keep nothing, got {text!r}")
    return int(text) << 20 if text else min(MOST, _memory() // SHARE)


def _memory() -> int:
    """Return the bytes of the machine's memory, as far as the system says."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not on Windows
        return MOST * SHARE
