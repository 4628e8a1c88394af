"""Grad modes: whether operators on this thread, at this level, are recorded."""

from contextlib import ContextDecorator
from typing import Any

from retrograd.core import at, current


class _GradMode(ContextDecorator):
    """A context manager and decorator that sets the mode, nests, and may be reused."""

    def __init__(self, mode: bool) -> None:
        self._mode = mode
        self._entered: list[at] = []

    def __enter__(self) -> None:
        block = at(current().level, self._mode)
        self._entered.append(block)
        block.__enter__()

    def __exit__(self, *exception: Any) -> None:
        self._entered.pop().__exit__(*exception)

    def _recreate_cm(self) -> "_GradMode":
        return _GradMode(self._mode)  # each call of a decorated function, on any thread, enters one of its own


class no_grad(_GradMode):
    """Nothing is recorded inside: no operator's result requires a gradient.

    >>> import retrograd as rg
    >>> x = rg.ones(2, requires_grad=True)
    >>> with rg.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    def __init__(self) -> None:
        super().__init__(False)


class enable_grad(_GradMode):
    """Operators are recorded inside, also within `no_grad`.

    >>> import retrograd as rg
    >>> with rg.no_grad(), rg.enable_grad():
    ...     (rg.ones(2, requires_grad=True) * 2).requires_grad
    True
    """

    def __init__(self) -> None:
        super().__init__(True)


class set_grad_enabled(_GradMode):
    """Switch recording on or off: at once, and back at the end where it is used as a context manager.

    >>> import retrograd as rg
    >>> with rg.set_grad_enabled(False):
    ...     rg.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        super().__init__(bool(mode))
        self._before = current().grad_enabled
        current().grad_enabled = self._mode

    def __call__(self, function: Any) -> Any:
        current().grad_enabled = self._before  # as a decorator it concerns the function alone
        return super().__call__(function)

    def __enter__(self) -> None:
        current().grad_enabled = self._before
        super().__enter__()


def is_grad_enabled() -> bool:
    """Whether operators are recorded now.

    >>> import retrograd as rg
    >>> rg.is_grad_enabled()
    True
    """
    return current().grad_enabled
