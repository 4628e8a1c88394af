"""Whether the calling function is being exported, which `rg.export` sets and `rg.compiler` returns."""

from contextvars import ContextVar

exporting = ContextVar("exporting", default=False)


def is_exporting():
    """Return whether the calling function is being traced by `rg.export.export`.

    >>> is_exporting()
    False
    """
    return exporting.get()
