"""Grad modes: whether operators of this thread, at this level, are recorded."""

import functools
import inspect
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from retrograd.core import Tensor, current, override_state
from retrograd.core.blocks import Block, Blocks, GradBlock, InferenceBlock
from retrograd.core.tensor import count_of, version_of
from retrograd.foundation.number_arguments import as_switch
from retrograd.foundation.source_location import warn_user


class Mode(Blocks):
    """A context manager that nests and may be reused, and a decorator.

    A decorated generator or coroutine is in the mode while it runs, and not while it waits.  `at_once` is a block that
    is entered when the mode is made, for modes that hold from then on; entering the mode, or decorating, ends it.
    """

    def __init__(self, initial_block: Any = None) -> None:
        super().__init__()
        self._initial_block = initial_block
        if initial_block is not None:
            initial_block.__enter__()

    def _begin(self) -> None:
        if self._initial_block is not None:
            self._initial_block.__exit__()

    def __call__(self, orig_func: Callable) -> Callable:
        """Return the function, or the class with its constructor, run in this mode; the caller is not affected."""
        self._begin()
        if inspect.isclass(orig_func):
            warn_user(
                "Decorating classes is deprecated and will be disabled: only the constructor runs in the mode. "
                "Decorate __init__ and the other methods one by one",
                FutureWarning,
            )
            return self._decorate_class(orig_func)
        if inspect.isasyncgenfunction(orig_func):
            return self._decorate_async_generator(orig_func)
        if inspect.isgeneratorfunction(orig_func):
            return self._decorate_generator(orig_func)
        if inspect.iscoroutinefunction(orig_func):
            return self._decorate_coroutine(orig_func)

        @functools.wraps(orig_func)
        def run(*args: Any, **kwargs: Any) -> Any:
            with self._block():
                return orig_func(*args, **kwargs)

        return run

    def _decorate_class(self, cls: type) -> type:
        cls.__init__ = self(cls.__init__)  # type: ignore[misc]
        return cls

    def _decorate_generator(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            return (yield from _run_steps(function(*args, **kwargs), self._block))

        return run

    def _decorate_coroutine(self, function: Callable) -> Callable:
        @functools.wraps(function)
        async def run(*args: Any, **kwargs: Any) -> Any:
            return await _Awaitable(function(*args, **kwargs), self._block)

        return run

    def _decorate_async_generator(self, function: Callable) -> Callable:
        @functools.wraps(function)
        async def run(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            try:
                value = await _Awaitable(generator.__anext__(), self._block)
                while True:
                    try:
                        sent = yield value
                    except GeneratorExit:
                        raise
                    except BaseException as error:
                        value = await _Awaitable(generator.athrow(error), self._block)
                    else:
                        value = await _Awaitable(generator.asend(sent), self._block)
            except StopAsyncIteration:
                return
            finally:
                await _Awaitable(generator.aclose(), self._block)

        return run


def _run_steps(generator: Any, block: Callable[[], Any]) -> Any:
    """Run a generator, or the iterator of a coroutine, with each step in a separate block."""
    step, given = generator.send, None
    while True:
        try:
            with block():
                value = step(given)
        except StopIteration as stop:
            return stop.value
        try:
            step, given = generator.send, (yield value)
        except GeneratorExit:
            with block():
                generator.close()
            raise
        except BaseException as error:
            step, given = generator.throw, error


class _Awaitable:
    """An awaitable whose steps each run in a block of their own."""

    def __init__(self, awaited: Any, block: Callable[[], Any]) -> None:
        self._awaited = awaited
        self._block = block

    def __await__(self) -> Any:
        return _run_steps(self._awaited.__await__(), self._block)


class _GradMode(Mode):
    """The base of modes that switch recording on or off."""

    def __init__(self, mode: bool, initial_block: override_state | None = None) -> None:
        super().__init__(initial_block)
        self._mode = mode

    def _block(self) -> GradBlock:
        return GradBlock(self._mode)


class no_grad(_GradMode):
    """Disable recording in the block: results do not require grad.

    >>> import retrograd as rg
    >>> x = rg.ones(2, requires_grad=True)
    >>> with rg.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    def __init__(self, function: Callable | None = None) -> None:
        super().__init__(False)

    def __new__(cls, function: Callable | None = None) -> Any:
        """Return a mode, or for `@no_grad` without parentheses the decorated function."""
        return super().__new__(cls) if function is None else cls()(function)


class enable_grad(_GradMode):
    """Enable recording in the block, also within `no_grad`.

    >>> import retrograd as rg
    >>> with rg.no_grad(), rg.enable_grad():
    ...     (rg.ones(2, requires_grad=True) * 2).requires_grad
    True
    """

    def __init__(self, function: Callable | None = None) -> None:
        super().__init__(True)

    def __new__(cls, function: Callable | None = None) -> Any:
        """Return a mode, or for `@enable_grad` without parentheses the decorated function."""
        return super().__new__(cls) if function is None else cls()(function)


class set_grad_enabled(_GradMode):
    """Switch recording on or off at once; as a context manager, restore the old mode at the end of the block.

    >>> import retrograd as rg
    >>> with rg.set_grad_enabled(False):
    ...     rg.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        enabled = mode if mode is True or mode is False else as_switch("set_grad_enabled: mode", mode)
        super().__init__(enabled, override_state("grad_enabled", enabled))

    def clone(self) -> "set_grad_enabled":
        """Return a new mode with the same setting."""
        return type(self)(self._mode)


class inference_mode(Mode):
    """Disable recording and forward mode in the block; tensors made there can never join a graph.

    These tensors can't be saved for backward, nor written to outside; `clone()` outside makes a normal tensor.

    >>> import retrograd as rg
    >>> with rg.inference_mode():
    ...     x = rg.ones(2) * 2
    >>> x.is_inference(), rg.is_inference_mode_enabled()
    (True, False)
    """

    def __init__(self, mode: bool | Callable = True) -> None:
        super().__init__()
        self._mode = bool(mode)

    def __new__(cls, mode: bool | Callable = True) -> Any:
        """Return a mode, or for `@inference_mode` without parentheses the decorated function."""
        return super().__new__(cls) if isinstance(mode, bool) else cls()(mode)

    def _block(self) -> InferenceBlock:
        return InferenceBlock(self._mode)

    def clone(self) -> "inference_mode":
        """Return a new mode with the same setting."""
        return type(self)(self._mode)


class set_multithreading_enabled(Mode):
    """Accepted as in PyTorch: a backward pass here always runs on the thread that started it.

    >>> import retrograd as rg
    >>> with rg.autograd.set_multithreading_enabled(False):
    ...     rg.autograd.is_multithreading_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        self._mode = as_switch("set_multithreading_enabled: mode", mode)
        super().__init__(override_state("multithreading", self._mode))

    def _block(self) -> override_state:
        return override_state("multithreading", self._mode)

    def clone(self) -> "set_multithreading_enabled":
        """Return a new mode with the same setting."""
        return type(self)(self._mode)


class enforce_grad_layout_policy(Mode):
    """Accepted as in PyTorch, without effect: the strides of `.grad` are always those of the leaf.

    With `enable=False` PyTorch is free to accumulate a gradient in other strides, which saves a copy.

    >>> import retrograd as rg
    >>> x = rg.ones(2, 3).T.requires_grad_()
    >>> with rg.autograd.enforce_grad_layout_policy(False):
    ...     x.backward(rg.ones(3, 2))
    >>> x.grad.stride() == x.stride()
    True
    """

    def __init__(self, enable: bool = True) -> None:
        super().__init__()
        self._mode = as_switch("enforce_grad_layout_policy: enable", enable)

    def _block(self) -> nullcontext:
        return nullcontext()

    def clone(self) -> "enforce_grad_layout_policy":
        """Return a new mode with the same setting."""
        return type(self)(self._mode)


class _force_original_view_tracking(Mode):
    """Accepted as in PyTorch, without effect: views are always regenerated by replaying their operators.

    >>> import retrograd as rg
    >>> rg.autograd.is_view_replay_enabled()
    True
    """

    def __init__(self, mode: bool) -> None:
        super().__init__()
        as_switch("_force_original_view_tracking: mode", mode)

    def _block(self) -> nullcontext:
        return nullcontext()


class _unsafe_preserve_version_counter(Block):
    """Keep the versions of the given tensors in the block: backward will not notice changes of saved values.

    >>> import retrograd as rg
    >>> x = rg.ones(2)
    >>> with rg.autograd._unsafe_preserve_version_counter(x):
    ...     _ = x.zero_()
    >>> x._version
    0
    """

    def __init__(self, tensors: Tensor | tuple[Tensor, ...]) -> None:
        self._tensors = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
        self._counts: list[int] = []

    def _enter(self) -> None:
        """Store the versions."""
        self._counts = [count_of(t) for t in self._tensors]

    def _leave(self, *exception: Any) -> None:
        """Restore the versions."""
        for tensor, count in zip(self._tensors, self._counts, strict=False):
            version_of(tensor).count = count


def is_multithreading_enabled() -> bool:
    """Return the setting of `set_multithreading_enabled`; it has no effect."""
    return current().multithreading


def is_view_replay_enabled() -> bool:
    """Return True: views are regenerated by replaying their operators."""
    return True


def is_inference_mode_enabled() -> bool:
    """Return whether `inference_mode` is on."""
    return current().inference


def is_grad_enabled() -> bool:
    """Return whether operators are recorded now.

    >>> import retrograd as rg
    >>> rg.is_grad_enabled()
    True
    """
    return current().grad_enabled
