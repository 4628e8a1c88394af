"""A ring buffer in huge pages, from which other processes copy messages quickly.

Linux lets a process copy a message directly from the memory of another one, and looks up every page that it reads.
With pages of 4 KiB that takes longer than the copy; with pages of 2 MiB it takes next to nothing.
"""

import ctypes
import mmap
import re
from pathlib import Path
from typing import Any

PAGE = 2 << 20  # bytes
_LINE = 64  # the alignment of copies, in bytes
_EMPTY = memoryview(bytearray())


def huge_pages(size: int) -> memoryview:
    """Return `size` zero bytes in huge pages; empty if the system provides none.

    Huge pages on demand are described in https://docs.kernel.org/admin-guide/mm/transhuge.html.
    """
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return _EMPTY
    area = mmap.mmap(-1, size + PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    start = -ctypes.addressof(ctypes.c_char.from_buffer(area)) % PAGE
    memory, before = memoryview(area)[start : start + size], _in_huge_pages()
    try:
        area.madvise(mmap.MADV_HUGEPAGE)
        area.madvise(mmap.MADV_DONTFORK)  # pages shared with a child would be split by the next write
    except OSError:  # a kernel without huge pages
        return _EMPTY
    for offset in range(0, size, PAGE):
        memory[offset] = 0  # the first write to a page allocates it
    return memory if _in_huge_pages() - before >= size else _EMPTY


def _in_huge_pages() -> int:
    """Return how many bytes of this process's memory are in huge pages."""
    try:
        found = re.search(r"AnonHugePages:\s+(\d+) kB", Path("/proc/self/smaps_rollup").read_text())
    except OSError:
        return 0
    return int(found[1]) << 10 if found else 0


class StagingRing:
    """A ring buffer with copies of buffers, released in the order in which they were made.

    memory: contiguous bytes; if empty, nothing is copied.
    end: where the last copy ends; it counts all bytes ever written and does not wrap around.

    >>> staging = StagingRing(memoryview(bytearray(128)))
    >>> copy = staging.add_copy(memoryview(b"12"))
    >>> bytes(copy), staging.end
    (b'12', 64)
    """

    def __init__(self, memory: memoryview) -> None:
        self.end = 0
        self._start = 0
        self._memory = memory

    def add_copy(self, buffer: Any) -> Any:
        """Return a copy of a buffer of bytes, or the buffer itself if there is no room."""
        size, needed = len(self._memory), buffer.nbytes + -buffer.nbytes % _LINE
        if needed > size:
            return buffer
        start, left = self.end, size - self.end % size
        if left < needed:
            start += left
        if start + needed - self._start > size:
            return buffer
        offset = start % size
        copy = self._memory[offset : offset + buffer.nbytes]
        copy[:] = buffer
        self.end = start + needed
        return copy

    def release(self, end: int) -> None:
        """Release the copies up to `end`."""
        self._start = end
