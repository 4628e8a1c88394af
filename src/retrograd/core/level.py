"""Levels (the active transforms, which interpret operators) and the state of each thread."""

import functools
import threading
from typing import Any

from retrograd.foundation.source_location import describe_function

compiled = not __file__.endswith(".py")


class ReadError(RuntimeError):
    """A transform cannot give the value of a tensor as a number or an array."""


class NotBatchedError(ReadError):
    """A program, or an operator in it, can't run on all examples at once."""


class State:
    """The state of one thread: its innermost level, and its modes of recording."""

    __slots__ = (
        "depth",
        "grad_blocks",
        "overrides_off",
        "grad_enabled",
        "inference",
        "level",
        "multithreading",
        "running",
        "saving",
        "saving_refused",
        "watchers",
    )

    def __init__(self):
        self.level = None  # None is the ground: operators run on arrays
        self.grad_enabled = True
        self.inference = False  # results can never join a graph
        self.saving = None  # the innermost saved-tensor hooks
        self.saving_refused = None  # why no saved-tensor hooks may be entered; None if they may
        self.watchers = None  # a tuple of `Watcher`s
        self.running = None  # the innermost running `BackwardPass`
        self.overrides_off = 0  # 1: classes of tensors override no operators, 2: function modes see none either
        self.depth = 0  # how many nested passes are running
        self.grad_blocks = []  # the grad modes that are on, in the order in which they were entered
        self.multithreading = True  # stored for compatibility: a pass runs on the thread that starts it

    def __dealloc__(self):  # compiled only: a thread not started by Python may outlive its state
        thread_state_forget(self)  # noqa: F821 (declared in level.pxd)


class _Thread(threading.local):
    def __init__(self):
        self.state = State()


_thread = _Thread()
thread_values = []  # other `threading.local` objects, whose values are copied when a pass moves to another thread


def current():
    """Return the state of the running thread."""
    if compiled:  # a C thread-local pointer saves the dictionary look-up
        state = thread_state_get()  # noqa: F821 (declared in level.pxd)
        if state is None:
            state = _thread.state  # which the thread itself keeps alive
            thread_state_set(state)  # noqa: F821
        return state
    return _thread.state


def modes_of(state):
    """Return the modes of a thread, without level and grad mode, that callbacks may change during a pass."""
    running, saving = state.running, state.saving
    return running, saving, state.saving_refused, state.inference, state.multithreading, state.overrides_off


def set_modes(state, modes):
    """Restore the modes: callbacks may have entered blocks without leaving them, or left those around the pass."""
    state.running, state.saving, state.saving_refused, state.inference, state.multithreading, state.overrides_off = (
        modes
    )


class at:
    """Run a block at a level and with a grad mode: the only way in which either changes."""

    __slots__ = ("_grad_enabled", "_level", "_old_grad_enabled", "_old_level")

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
    """Run a block with another value in one of the less used fields of the thread's state."""

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
        self._make, self._generator = make, None

    def __call__(self, function):
        """Return the function, run in a new block at each call."""

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
                raise TypeError(f"saved tensor hooks: incompatible {name}, a {type(hook).__name__} cannot be called")

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


class Watcher:
    """An observer of every node of its thread's autograd graph: when it is created, and when it runs backward."""

    def on_node_created(self, fn):
        """Called after a node was created."""

    def run_node(self, proceed, fn, cotangents):
        """Run a node: return `proceed(fn, cotangents)`, a gradient or None for each edge."""
        return proceed(fn, cotangents)

    def on_array_call(self, function, operands, out):
        """Called after a pass computed the array `out = function(*operands)` itself, without an operator.

        If `out` is one of the operands, its memory was written to.
        """


def note_array_call(function, operands, out):
    """Notify the watchers of an array that a backward pass computed without an operator."""
    for watcher in current().watchers or ():
        watcher.on_array_call(function, operands, out)


class watching:
    """Run a block with a watcher, inside those that are active; others may be added and removed meanwhile."""

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
    """Return the level at which operators are recorded now: the innermost that is not transparent."""
    return _recording_level(current().level)


def transform_level():
    """Return the innermost level that transforms operators, as the one below those that only observe."""
    level = current().level
    while level is not None and level.observes:
        level = level.parent
    return level


def graph_below(level):
    """Return the level that records the operators that run below a level; None is the ground."""
    return _recording_level(level.parent)


def _recording_level(level):
    """Return the level that records the operators that run at a level: itself, unless it is transparent."""
    while level is not None and level.transparent:
        level = level.parent
    return level


def grad_at(level, tensor):
    """Return the `.grad` of a tensor that the program at a level sees; level None is the ground."""
    return tensor._grad if level is None or level is tensor.level else level.get_grad(tensor)


def set_grad_at(level, tensor, value):
    """Set the `.grad` of a tensor that the program at a level sees."""
    if level is None or level is tensor.level:
        tensor._grad = value
    else:
        level.set_grad(tensor, value)


def is_recording():
    """Return whether operators are recorded now if an operand requires grad."""
    state = current()
    return state.grad_enabled and not state.inference


class Level:
    """One active transform: it interprets operators on its tensors.

    Its tensors are `(value: tensor of the parent level, level, tag)`; the level defines what the tag holds. Its rules
    run one level below.
    """

    parent: Any = None
    parent_grad_enabled = True
    modes_around = (True, False)  # the grad mode and the inference mode that hold when the level is left
    active = False
    transparent = False  # see `TransparentLevel`
    own_mode = True  # records whatever the grad mode outside is; if False, it has no grad mode of its own
    mode_below = None  # the grad mode of the levels below, if it differs from the current one
    forward_mode = False  # its tags are tangents
    intercepts = False  # gets each call before anything else: see `intercept`
    overrides = False  # intercepts to override operators, so not where overriding is off, as in backward passes
    observes = False  # a transparent level that must see all that runs below it, and nothing else than without it
    traces = False  # records calls as they are, on composite arrays and of users' Functions too: see `record_call`
    on_write: Any = None  # of a level that stores data about tensors: called for each write, `on_write(x, src)`
    function: Any = None  # the transformed function
    wrapper = ""  # PyTorch's name of its tensors, for printing; "": they are printed by their types

    def __enter__(self):
        state = current()
        self.parent, self.modes_around = state.level, (state.grad_enabled, state.inference)
        self.parent_grad_enabled = state.grad_enabled and not state.inference
        self.active = True
        state.level, state.grad_enabled = self, state.grad_enabled or self.own_mode
        state.inference = state.inference and not self.own_mode  # it holds for the program around, as no_grad() does
        return self

    def __exit__(self, kind=None, error=None, traceback=None):
        state = current()
        finish = None
        try:
            finish = self.on_exit(error)
        finally:
            state.level = self.parent
            if self.own_mode:
                state.grad_enabled, state.inference = self.modes_around
            self.active = False
        if finish is not None:
            finish()
        if type(error) is ValueError and isinstance(error.__cause__, ReadError) and str(error).startswith("setting an"):
            raise error.__cause__.with_traceback(traceback) from None  # `array[0] = x`: NumPy hides it

    def on_exit(self, error):
        """Return a function to call when the program, which has ended with `error` or None, has left the level."""
        return None

    def below(self):
        """Return a block in which this level's rules run: at the parent level, with the grad mode that holds there."""
        if self.own_mode:
            return at(self.parent, self.parent_grad_enabled)
        return at(self.parent, current().grad_enabled if self.mode_below is None else self.mode_below)

    def unrecorded(self):
        """Return a block in which nothing is recorded at this level; the levels below record as before."""
        return at(self, False) if self.own_mode or self.transparent else _NoRecording(self)

    def process(self, op, args, params):
        """Interpret one operator; called one level below."""
        raise NotImplementedError(f"{type(self).__name__}: a level defines process")

    def intercept(self, op, args, params):
        """Return the result of a call, before classes override it and before composite operators call others.

        NotImplemented leaves the call to its usual course, at this level.
        """
        raise NotImplementedError(f"{type(self).__name__}: a level that intercepts calls defines intercept")

    def shape(self, tensor):
        """Return the shape that the user's code sees."""
        return tensor.value.shape

    def read(self, tensor):
        """Return the parent's tensor from which a value is read, where the user's code asks for one."""
        return tensor.value

    def value_as_given(self, tensor):
        """Return a tensor's value one level below as the caller laid it out, and its batch dimension or None."""
        return tensor.value, None

    def lost_derivatives(self, tensor):
        """Return what an array or number would lose of this level's tensor, for errors; "" if nothing."""
        return "has a tangent" if self.forward_mode and tensor.tag is not None else ""

    def escape_error(self, tensor):
        """Return the error for a tensor of this level that is used while the level is not current."""
        where = "" if self.function is None else f" {describe_function(self.function)}"
        return RuntimeError(
            f"this tensor, of shape {tensor.shape}, belongs to a {type(self).__name__} that is "
            f"{'not the current one' if self.active else 'over'}: it has escaped the function{where} that was "
            f"transformed. Return it from that function instead."
        )

    def record_call(self, op, args, kwargs):
        """Return the result of a user's Function, recorded as one call, at a level that `traces`."""
        raise NotImplementedError

    def lower(self, tensor, cotangent):
        """Return a tensor and its cotangent one level below, where a backward pass continues."""
        return tensor.value, cotangent.value if cotangent.level is self else cotangent

    def lower_passes(self, pairs, per_example):
        """Return the passes to run one level below, as lists of pairs from `lower`: one, or one for each example."""
        return [[self.lower(x, g) for x, g in pairs]]

    def get_grad(self, tensor):
        """Return the `.grad` of a tensor of a level below that the program at this level sees."""
        return grad_at(graph_below(self), tensor)

    def set_grad(self, tensor, value):
        """Set the `.grad` of a tensor of a level below that the program at this level sees."""
        set_grad_at(graph_below(self), tensor, value)

    def vjp_below(self, pullback, roots, cotangents, inputs):
        """Return the cotangents of inputs of a level below, computed by `pullback(roots, cotangents, inputs)` there."""
        raise NotImplementedError(
            f"grad: the inputs must belong to the program that runs, not to what is around: {type(self).__name__}"
        )


class TransparentLevel(Level):
    """A level that only observes or replaces operators: its tensors are those of the level below, which records them.

    Its `process` calls the operator again, at the parent level.
    """

    transparent, own_mode = True, False


class _NoRecording:
    """A block without recording at one level that has no grad mode of its own."""

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
