"""The stance: how compiled functions behave on this thread."""

import functools
import threading
from collections.abc import Callable
from typing import Any

STANCES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile")


class _Thread(threading.local):
    stance = "default"


_thread = _Thread()


class Stances:
    """Whether a stance was ever set: to ask for that takes less time than for the one of the thread."""

    __slots__ = ("were_set",)

    def __init__(self) -> None:
        self.were_set = False


stances = Stances()


def current_stance() -> str:
    """Return the stance of this thread."""
    return _thread.stance


class set_stance:
    """Set how compiled functions behave on this thread: from now on, within a `with` block, or within a function.

    - "default": calls are captured where there is no program for them.
    - "force_eager": all calls run eagerly.
    - "eager_on_recompile": calls without a program run eagerly.
    - "fail_on_recompile": calls without a program raise RuntimeError.

    Raises RuntimeError for another stance.

    Source: the names are those of torch.compiler.set_stance.

    >>> import retrograd as rg
    >>> double = rg.compile(lambda x: x * 2)
    >>> with rg.compiler.set_stance("fail_on_recompile"):
    ...     double(rg.ones(3))
    Traceback (most recent call last):
    RuntimeError: compile: <lambda> (...) has no program for this call, and the stance is 'fail_...
    """

    def __init__(self, stance: str = "default") -> None:
        if stance not in STANCES:
            raise RuntimeError(f"set_stance: invalid stance {stance!r}, should be one of: {', '.join(STANCES)}")
        self._stance, self._before, stances.were_set = stance, _thread.stance, True
        _thread.stance = stance

    def __enter__(self) -> None:
        _thread.stance = self._stance

    def __exit__(self, *exception: Any) -> None:
        _thread.stance = self._before

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with the stance set while it runs."""
        _thread.stance = self._before
        stance = self._stance

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with set_stance(stance):
                return function(*args, **kwargs)

        return run
