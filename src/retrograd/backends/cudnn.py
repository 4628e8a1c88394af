"""Settings of cuDNN, under the names of torch.backends.cudnn: accepted, without effect on the CPU.

>>> from retrograd.backends import cudnn
>>> cudnn.benchmark = True
>>> cudnn.is_available()
False
"""

enabled = True
benchmark = False
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """Whether cuDNN can be used: never."""
    return False


def version() -> int | None:
    """Return the version of cuDNN, None without it."""
    return None
