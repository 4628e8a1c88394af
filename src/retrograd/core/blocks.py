"""Context managers that an interrupt does not leave half entered, and those of the modes of recording."""

import functools

from retrograd.core.state import current, override_state


class Block:
    """A context manager whose end an interrupt does not skip.

    Python may raise KeyboardInterrupt when a function written in Python begins, `__exit__` among them, but not in
    compiled code.  So `_leave` runs once more after an interrupt, and after an interrupt of `_enter`: it may find its
    work done, or nothing to do.
    """

    __slots__ = ()

    def _enter(self):
        """Begin the block; the result is the value of the `with` statement."""
        raise NotImplementedError

    def _leave(self, *exception):
        """End the block; `exception` is the one that ended it, if any."""
        raise NotImplementedError

    def __enter__(self):
        try:
            return self._enter()
        except KeyboardInterrupt as error:
            self._leave(type(error), error, None)
            raise

    def __exit__(self, *exception):
        try:
            return self._leave(*exception)
        except KeyboardInterrupt:
            self._leave(*exception)
            raise


class _GeneratorBlock:
    """A context manager that runs a generator up to its `yield`, and the rest of it at the end."""

    def __init__(self, make):
        self._make = make
        self._unused = make()  # made here, so that wrong arguments are errors of the call, not of `with`
        self._generator = None

    def __call__(self, function):
        """Return the function, run in a new block at each call."""

        @functools.wraps(function)
        def run(*args, **kwargs):
            with _GeneratorBlock(self._make):
                return function(*args, **kwargs)

        return run

    def __enter__(self):
        self._generator, self._unused = self._unused or self._make(), None
        return next(self._generator)

    def __exit__(self, kind, error, traceback):
        try:
            if error is None:
                next(self._generator)
            else:
                self._generator.throw(error)
        except StopIteration as stop:
            return error is not None and stop is not error
        except BaseException as raised:
            # Python converts a StopIteration that leaves a generator into a RuntimeError.
            wrapped = type(raised) is RuntimeError and type(error) is StopIteration and raised.__cause__ is error
            if raised is error or wrapped:
                error.__traceback__ = traceback
                return False
            raise
        raise RuntimeError(f"{self._make.func.__qualname__}: the generator of a block yields once")


def generator_block(make):
    """Return `contextlib.contextmanager(make)`, except that an interrupt never leaves the block half entered.

    Python may raise KeyboardInterrupt in contextlib's own code, when the generator has run up to its `yield` and the
    `with` statement does not yet know.  The rest of the generator then runs when it is collected as garbage, and
    restores modes that are no longer those around.
    """

    @functools.wraps(make)
    def begin(*args, **kwargs):
        return _GeneratorBlock(functools.partial(make, *args, **kwargs))

    return begin


class GradBlock:
    """One entered grad mode.

    Blocks within generators and coroutines end in any order. Each then removes only itself: the mode changes only if no
    block was entered after it, and the next one will restore the mode from before both.
    """

    def __init__(self, mode):
        self._mode = mode
        self._before = mode

    def __enter__(self):
        state = current()
        self._before, state.grad_enabled = state.grad_enabled, self._mode
        state.grad_blocks.append(self)

    def __exit__(self, *exception):
        state = current()
        blocks = state.grad_blocks
        later = blocks.index(self) + 1 if self in blocks else 0
        if 0 < later < len(blocks):
            blocks[later]._before = self._before
        else:
            state.grad_enabled = self._before
        if later:
            del blocks[later - 1]


class InferenceBlock(GradBlock):
    """Inference mode switched on or off; it sets the grad mode too."""

    def __init__(self, mode):
        super().__init__(not mode)
        self._inference = override_state("inference", mode)

    def __enter__(self):
        self._inference.__enter__()
        super().__enter__()

    def __exit__(self, *exception):
        super().__exit__(*exception)
        self._inference.__exit__(*exception)


class HookBlock:
    """An active pair of saved-tensor hooks; it removes only itself, in whatever order blocks end."""

    def __init__(self, pack, unpack):
        self.pack = pack
        self.unpack = unpack
        self.outer = None

    def check(self):
        """Raise TypeError if a hook cannot be called."""
        for name, hook in (("pack_hook", self.pack), ("unpack_hook", self.unpack)):
            if not callable(hook):
                raise TypeError(
                    f"saved tensor hooks: incompatible function arguments: {name} is a {type(hook).__name__}, which "
                    f"cannot be called"
                )

    def __enter__(self):
        state = current()
        self.outer, state.saving = state.saving, self

    def __exit__(self, *exception):
        state = current()
        if state.saving is self:
            state.saving = self.outer
            return
        inner = state.saving
        while inner is not None and getattr(inner, "outer", None) is not self:
            inner = getattr(inner, "outer", None)
        if inner is not None:  # else the backward pass in which it was entered has ended, and removed it
            inner.outer = self.outer


class Blocks:
    """A context manager that nests and may be reused: `_block` makes the block that a `with` enters."""

    def __init__(self):
        self._entered = []
        self._left = None  # the block that was left last

    def _block(self):
        raise NotImplementedError

    def _begin(self):
        """Run before a block is made."""

    def __enter__(self):
        self._begin()
        block = self._block()
        value = block.__enter__()
        self._entered.append(block)
        return value

    def __exit__(self, *exception):
        if self._entered:
            self._left = self._entered.pop()
        elif self._left is None:
            raise RuntimeError(f"{type(self).__name__}: left without having been entered")
        self._left.__exit__(*exception)  # once more if a callback left it: the backward pass restored it
