"""Which transform interprets operators now: levels, and the state of each thread."""

import functools
import threading
from typing import Any

from retrograd.core.source_location import described

compiled = not __file__.endswith(".py")


class ReadError(RuntimeError):
    """A transform refuses to give the value of a tensor as a number or an array."""


class State:
    """What one thread is doing: the level that interprets operators, and what is recorded."""

    __slots__ = (
        "level",
        "grad_enabled",
        "inference",
        "saving",
        "watchers",
        "saving_refused",
        "running",
        "on_write",
        "multithreading",
        "depth",
        "grad_blocks",
    )

    def __init__(self):
        self.level = None  # None is the ground: arrays themselves
        self.grad_enabled = True
        self.inference = False  # results can never take part in a graph
        self.saving = None  # the innermost hooks of saved tensors
        self.saving_refused = None  # why no such hooks may be entered
        self.watchers = None  # a tuple of `Watcher`s
        self.running = None  # the engine's pass that runs now
        self.depth = 0  # how many passes run, each inside the one before
        self.grad_blocks = []  # the grad modes that are on, in the order in which they were entered
        self.multithreading = True  # what was asked for; passes run on the thread that starts them
        self.on_write = None  # told of every in-place write before it happens

    def __dealloc__(self):  # compiled only: a thread that Python did not start may lose its state and go on
        thread_state_forget(self)  # noqa: F821 (declared in level.pxd)


class _Thread(threading.local):
    def __init__(self):
        self.state = State()


_thread = _Thread()
thread_values = []  # the other objects of `threading.local`, whose values a pass takes along to another thread


def current():
    """The state of the running thread."""
    if compiled:  # a C thread-local pointer saves the dictionary look-up
        state = thread_state_get()  # noqa: F821 (declared in level.pxd)
        if state is None:
            state = _thread.state  # which the thread itself keeps alive
            thread_state_set(state)  # noqa: F821
        return state
    return _thread.state


def modes_of(state):
    """Return the modes of a thread, without level and grad mode, that callbacks may change while a pass runs."""
    return (
        state.running,
        state.saving,
        state.saving_refused,
        state.inference,
        state.multithreading,
        state.on_write,
    )


def set_modes(state, modes):
    """Set the modes back: callbacks may have entered blocks without leaving them, or left those around the pass."""
    (
        state.running,
        state.saving,
        state.saving_refused,
        state.inference,
        state.multithreading,
        state.on_write,
    ) = modes


class at:
    """Run a block at a level, with a grad mode: the only way in which either changes."""

    __slots__ = ("_level", "_grad_enabled", "_old_level", "_old_grad_enabled")

    def __init__(self, level, grad_enabled):
        self._level = level
        self._grad_enabled = grad_enabled

    def __enter__(self):
        state = current()
        self._old_level, self._old_grad_enabled = state.level, state.grad_enabled
        state.level, state.grad_enabled = self._level, self._grad_enabled
        return self

    def __exit__(self, *exception):
        state = current()
        state.level, state.grad_enabled = self._old_level, self._old_grad_enabled


UNCHANGED = object()


class override_state:
    """Run a block with one of the rarer fields of the thread's state changed."""

    __slots__ = ("_field", "_old", "_value")

    def __init__(self, field, value):
        self._field = field
        self._value = value
        self._old = UNCHANGED

    def __enter__(self):
        state = current()
        self._old = getattr(state, self._field)
        setattr(state, self._field, self._value)
        return self

    def __exit__(self, *exception):
        if self._old is not UNCHANGED:
            setattr(current(), self._field, self._old)


class Block:
    """A context manager whose end an interrupt does not skip.

    Python may raise KeyboardInterrupt when a function written in Python begins, `__exit__` among them, but not in
    compiled code.  So `_leave` runs once more after an interrupt, and after an interrupt of `_enter`: it may find its
    work done, or nothing to do.
    """

    __slots__ = ()

    def _enter(self):
        """Begin; what this returns is the value of the block."""
        raise NotImplementedError

    def _leave(self, *exception):
        """End; with the exception that has ended the block, if there is one."""
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
    """The context manager that runs a generator up to its `yield`, and at the end the rest of it."""

    def __init__(self, make):
        self._make, self._generator = make, None

    def __call__(self, function):
        """Return the function, run in a block of its own each time."""

        @functools.wraps(function)
        def run(*args, **kwargs):
            with _GeneratorBlock(self._make):
                return function(*args, **kwargs)

        return run

    def __enter__(self):
        self._generator = self._make()
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
            # Of a StopIteration that leaves a generator Python makes a RuntimeError.
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
    """A grad mode while it is on.

    Blocks within generators and coroutines end in any order.  Each then takes out itself alone: the mode changes only
    if none was entered after it, and the next one will restore what was before both.
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
    """Inference mode while it is on or off; it decides on recording too."""

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
    """A pair of hooks for saved tensors while it is in use; it ends by itself alone, in whatever order blocks end."""

    def __init__(self, pack, unpack):
        self.pack = pack
        self.unpack = unpack
        self.outer = None

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
        if inner is not None:  # else a backward pass has ended in which it was entered, and has left it
            inner.outer = self.outer


class Blocks:
    """A context manager that nests and may be reused: `_block` makes the block that a `with` enters."""

    def __init__(self):
        self._entered = []
        self._left = None  # the block that was left last

    def _block(self):
        raise NotImplementedError

    def _begin(self):
        """Runs before a block is made."""

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
        self._left.__exit__(*exception)  # once more if a callback left it: the backward pass has put it back


class Watcher:
    """Sees every node of the autograd graph of its thread: when it is made, and when it runs backward."""

    def recorded(self, fn):
        """A node was made."""

    def pull(self, proceed, fn, cotangents):
        """A node is about to run; returns what `proceed(fn, cotangents)` does: per edge a gradient or None."""
        return proceed(fn, cotangents)


class watching:
    """Run a block under a watcher, inside those that watch already; others may come and go meanwhile."""

    __slots__ = ("_watcher",)

    def __init__(self, watcher):
        self._watcher = watcher

    def __enter__(self):
        state = current()
        state.watchers = (*(state.watchers or ()), self._watcher)
        return self

    def __exit__(self, *exception):
        state = current()
        state.watchers = tuple([w for w in state.watchers or () if w is not self._watcher]) or None


def graph_level():
    """The level at which operators are recorded now: the current one, or what a transparent one looks at."""
    level = current().level
    while level is not None and level.transparent:
        level = level.parent
    return level


def graph_below(level):
    """The level at which operators are recorded inside of which a level is; None is the ground."""
    level = level.parent
    while level is not None and level.transparent:
        level = level.parent
    return level


def is_recording():
    """Whether operators are recorded now, if an operand requires it."""
    state = current()
    return state.grad_enabled and not state.inference


class Level:
    """One active transform: how operators are interpreted on its tensors.

    Above the ground a tensor is `(value: tensor of the parent level, level, tag)`; what the tag holds is
    the transform's own business. Operators are processed one level below.

    A transparent level only watches or answers for operators: its tensors are those of the level below, which
    records them too.
    """

    parent: Any = None
    parent_grad_enabled = True
    active = False
    transparent = False
    own_mode = True  # what runs in it is recorded, whatever the grad mode around; else that mode is the program's
    mode_below = None  # the grad mode of the levels below, where it is not the program's
    holds_functions = True  # a user's Function is an operator here as others are
    pushes = False  # forward mode: its tensors carry tangents
    tracked = ""  # what a tag says of its tensor that arrays and numbers would lose, as errors put it
    wrote: Any = None  # of a level that keeps something beside tensors: what to tell of a write, `wrote(x, src)`
    function: Any = None  # what is transformed
    keeps_grads = False  # its program sees gradients of tensors from around by `outer_grads`
    grads_differ = False  # and they are not those that the tensors have
    outer_grads: Any = None  # see `outer_grads.py`
    grad_starts: Any = None  # for several levels that share it: what these gradients were before the first
    keeps_whole = False  # operators on compound arrays reach it as they are called: it computes nothing itself

    def __enter__(self):
        state = current()
        self.parent, self.parent_grad_enabled = state.level, state.grad_enabled
        self.active = True
        state.level, state.grad_enabled = self, state.grad_enabled or self.own_mode
        return self

    def __exit__(self, kind=None, error=None, traceback=None):
        state = current()
        changed = ()
        try:
            if self.outer_grads is not None and error is None:
                changed = self.outer_grads.changed()
        finally:
            state.level = self.parent
            if self.own_mode:
                state.grad_enabled = self.parent_grad_enabled
            self.active = False
        self._hand_down(changed)
        if type(error) is ValueError and isinstance(error.__cause__, ReadError) and str(error).startswith("setting an"):
            raise error.__cause__.with_traceback(traceback) from None  # `array[0] = x`: NumPy's own error hides it

    def _hand_down(self, changed):
        """The program is over: gradients of tensors from around that it assigned, or wrote to, get what they are."""
        self.outer_grads = None
        for tensor, value, assigned in changed:
            if assigned or tensor.grad is None:
                tensor.grad = value
            else:
                with at(current().level, False):
                    tensor.grad.copy_(value)

    def below(self):
        """A block in which this level's rules run: the parent's level, and the grad mode that holds there."""
        if self.own_mode:
            return at(self.parent, self.parent_grad_enabled)
        return at(self.parent, current().grad_enabled if self.mode_below is None else self.mode_below)

    def unrecorded(self):
        """A block in which nothing is recorded at this level; the levels below record as they do now."""
        return at(self, False) if self.own_mode or self.transparent else _Unrecorded(self)

    def process(self, op, args, params):
        """Interpret one operator; runs below."""
        raise NotImplementedError(f"{type(self).__name__}: a level defines process")

    def shape(self, tensor):
        """The shape that the user's code sees."""
        return tensor.value.shape

    def read(self, tensor):
        """The parent's tensor to read a value from, where the user's code asks for one."""
        return tensor.value

    def lost(self, tensor):
        """What an array or a number of this level's tensor would lose, as errors put it; "" if nothing."""
        return self.tracked if tensor.tag is not None else ""

    def escape(self, tensor):
        """The error for a tensor of this level that is used where the level is not at work."""
        where = "" if self.function is None else f" {described(self.function)}"
        return RuntimeError(
            f"this tensor, of shape {tensor.shape}, belongs to a {type(self).__name__} that is "
            f"{'not the current one' if self.active else 'over'}: it has escaped the function{where} that was "
            f"transformed. Return it from that function instead."
        )

    def lowered(self, tensor, cotangent):
        """A tensor and its cotangent one level below, for a backward pass that goes on there."""
        return tensor.value, cotangent.value if cotangent.level is self else cotangent

    def passes_below(self, pairs, apart):
        """The passes that go on one level below, each as pairs of `lowered`; one for each example where hooks tell."""
        return [[self.lowered(x, g) for x, g in pairs]]

    def last_example(self, tensor):
        """A tensor one level below as a loop over the examples would leave it; None stays."""
        return tensor.value if tensor is not None and tensor.level is self else tensor

    def pulled_below(self, pull, roots, cotangents, inputs):
        """Per input that is in the graph of a level below its cotangent, by `pull(roots, cotangents, inputs)` there."""
        raise NotImplementedError(
            f"grad: the inputs must belong to the program that runs, not to what is around: {type(self).__name__}"
        )


class _Unrecorded:
    """No recording at one level, whose grad mode is else that of the program."""

    def __init__(self, level):
        self._level = level

    def __enter__(self):
        state = current()
        self._mode, self._mode_below = state.grad_enabled, self._level.mode_below
        if self._mode_below is None:
            self._level.mode_below = self._mode
        state.grad_enabled = False

    def __exit__(self, *exception):
        self._level.mode_below = self._mode_below
        current().grad_enabled = self._mode
