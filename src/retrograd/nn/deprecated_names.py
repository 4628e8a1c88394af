"""Older names of functions, which warn."""

import functools
import warnings
from collections.abc import Callable
from typing import Any


def older_name(function: Callable[..., Any], name: str, home: str) -> Callable[..., Any]:
    """Return a function with an older name, which warns and calls the function."""

    @functools.wraps(function)
    def renamed(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"{home}.{name} is deprecated in favor of {home}.{function.__name__}", FutureWarning, stacklevel=2
        )
        return function(*args, **kwargs)

    renamed.__name__ = renamed.__qualname__ = name
    renamed.__doc__ = f"Call `{function.__name__}`, which replaces this name, with a FutureWarning."
    return renamed
