"""`autograd.wrap_util`: operators on functions of one argument, for functions of several."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from retrograd.foundation.suggestions import suggest_in_module


def unary_to_nary(unary_operator: Callable) -> Callable:
    """Return `operator(fun, argnum)(*args, **kwargs)` for an operator that is called as `operator(fun, x)`.

    With several `argnum`, x is the tuple of these arguments.

    >>> half = unary_to_nary(lambda fun, x: fun(x / 2))
    >>> half(lambda x, y: (x, y), 1)(3.0, 4.0)
    (3.0, 2.0)
    """

    @wraps(unary_operator)
    def nary_operator(fun: Callable, argnum: int | Sequence[int] = 0, *settings: Any, **named: Any) -> Callable:
        single = isinstance(argnum, int)
        chosen = [argnum] if isinstance(argnum, int) else list(argnum)

        @wraps(fun, updated=())
        def nary(*args: Any, **kwargs: Any) -> Any:
            def unary(x: Any) -> Any:
                filled = list(args)
                for i, value in zip(chosen, [x] if single else x, strict=True):
                    filled[i] = value
                return fun(*filled, **kwargs)

            given = tuple([args[i] for i in chosen])
            return unary_operator(unary, given[0] if single else given, *settings, **named)

        return nary

    return nary_operator


suggest_in_module(globals())
