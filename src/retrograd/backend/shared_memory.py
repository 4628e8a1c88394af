"""Arrays in memory that processes share: anonymous files, which forked processes have and others are sent.

No file has a name, so the system frees it when the last process that has it ends, also if one of them is killed.
"""

import mmap
import os
import tempfile
import weakref
from multiprocessing import reduction

import numpy as np

from retrograd import kernels
from retrograd.backend.memory_layout import KeptLayout


class SharedMapping(mmap.mmap):
    """The memory of a file, with its descriptor."""

    def __init__(self, file, size):
        self.file = file
        weakref.finalize(self, os.close, file)


def shared_copy(array):
    """Return a copy of an array in memory that other processes can share, in the order of its dimensions in memory.

    OSError if there is not enough memory, or no descriptor of a file left.
    """
    size = max(array.nbytes, 1)
    mapping = SharedMapping(_anonymous_file(size), size)
    copied = np.ndarray(array.shape, array.dtype, mapping, 0, np.empty_like(array).strides)
    copied[...] = array
    ForkingPickler = reduction.ForkingPickler  # from here on, there is something to send
    ForkingPickler.register(np.ndarray, _reduce_array)
    ForkingPickler.register(KeptLayout, _reduce_layout)
    return copied


def mapping_of(array):
    """Return the shared memory in which an array is; None if it is in none."""
    base = array
    while base is not None and not isinstance(base, SharedMapping):
        base = getattr(base, "base", None)  # arrays of `as_strided` have another object between
    return base


def _anonymous_file(size):
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("retrograd tensor")
    else:
        with tempfile.TemporaryFile() as opened:
            file = os.dup(opened.fileno())
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file, 0, size)  # without room, a write to the memory would end the process
        else:
            os.ftruncate(file, size)
    except OSError:
        os.close(file)
        raise
    return file


def _reduce_array(array):
    mapping = mapping_of(array)
    if mapping is None:
        return array.__reduce__()
    whole = np.frombuffer(mapping, np.uint8)
    offset = kernels.address(array) - kernels.address(whole)
    file = reduction.DupFd(mapping.file)
    return _map_array, (file, len(mapping), array.shape, array.dtype, offset, array.strides)


def _map_array(file, size, shape, dtype, offset, strides):
    return np.ndarray(shape, dtype, SharedMapping(file.detach(), size), offset, strides)


def _reduce_layout(kept):
    return kept.__reduce__() if mapping_of(kept.array) is None else (KeptLayout, (kept.array,))
