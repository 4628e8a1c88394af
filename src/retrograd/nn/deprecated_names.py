"""Older names of functions, which warn."""

import functools
from collections.abc import Callable
from typing import Any

from retrograd.foundation.source_location import warn_user


def older_name(function: Callable[..., Any], name: str, home: str) -> Callable[..., Any]:
    """Return a function with an older name, which warns and calls the function."""

    @functools.wraps(function)
    def renamed(*args: Any, **kwargs: Any) -> Any:
        warn_user(f"{home}.{name} is deprecated in favor of {home}.{function.__name__}", FutureWarning)
        return function(*args, **kwargs)

    renamed.__name__ = renamed.__qualname__ = name
    renamed.__doc__ = f"Call `{function.__name__}`, which replaces this name, with a FutureWarning."
    return renamed
