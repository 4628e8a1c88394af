"""Settings of cuDNN, under the names of torch.backends.cudnn: accepted, without effect on the CPU.

>>> from retrograd.backends import cudnn
>>> cudnn.benchmark = True
>>> cudnn.is_available()
False
>>> with cudnn.flags(enabled=False):
...     cudnn.enabled
False
"""

from collections.abc import Iterator

from retrograd.core.blocks import generator_block

enabled = True
benchmark = False
deterministic = False
benchmark_limit: int | None = 10
allow_tf32 = True


def is_available() -> bool:
    """Whether cuDNN can be used: never."""
    return False


def version() -> int | None:
    """Return the version of cuDNN, None without it."""
    return None


@generator_block
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int | None = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
) -> Iterator[None]:
    """Return a block in which the settings have these values; they are restored after it."""
    given, own = dict(locals()), globals()
    before = {name: own[name] for name in given}
    own.update(given)
    try:
        yield
    finally:
        own.update(before)
