"""The names of `torch.utils._contextlib`: blocks that are decorators too."""

import functools
import inspect
from collections.abc import Callable
from typing import Any


def context_decorator(ctx: Any, func: Callable) -> Callable:
    """Return a function, or a generator function, whose body runs in a block: `ctx` or the result of calling it.

    >>> import contextlib, io
    >>> out = io.StringIO()
    >>> context_decorator(contextlib.redirect_stdout(out), print)("hidden")
    >>> out.getvalue()
    'hidden\\n'
    """
    block = ctx if callable(ctx) and not hasattr(ctx, "__enter__") else lambda: ctx

    @functools.wraps(func)
    def decorate_context(*args: Any, **kwargs: Any) -> Any:
        with block():
            return func(*args, **kwargs)

    @functools.wraps(func)
    def decorate_generator(*args: Any, **kwargs: Any) -> Any:
        generator, call, given = func(*args, **kwargs), "send", None
        while True:
            try:
                with block():  # only while the generator runs, not where its values are used
                    value = getattr(generator, call)(given)
            except StopIteration as end:
                return end.value
            try:
                call, given = "send", (yield value)
            except GeneratorExit:
                generator.close()
                raise
            except BaseException as error:
                call, given = "throw", error

    return decorate_generator if inspect.isgeneratorfunction(func) else decorate_context


class _DecoratorContextManager:
    """The base of blocks that decorate functions: each call enters a new block."""

    def __call__(self, orig_func: Callable) -> Callable:
        return context_decorator(self.clone, orig_func)

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *exception: Any) -> Any:
        raise NotImplementedError

    def clone(self) -> Any:
        """Return a new block; classes with arguments override this."""
        return type(self)()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """The base of those that decorate without parentheses, too."""

    def __new__(cls, orig_func: Callable | None = None) -> Any:
        """Return a block, or a decorated function."""
        return super().__new__(cls) if orig_func is None else cls()(orig_func)
