"""The state of each thread: its level, its modes of recording and its watchers."""

import threading
from contextvars import Context, copy_context

from numpy import errstate

compiled = not __file__.endswith(".py")


class State:
    """The state of one thread: its innermost level, and its modes of recording."""

    __slots__ = (
        "depth",
        "device",
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
        self.device = None  # the `ArrayDevice` where operators without operands make arrays; None for host memory
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
        thread_state_forget(self)  # noqa: F821 (declared in state.pxd)


class _Thread(threading.local):
    def __init__(self):
        self.state = State()


_thread = _Thread()
thread_values = []  # other `threading.local` objects, whose values are copied when a pass moves to another thread


def current():
    """Return the state of the running thread."""
    if compiled:  # a C thread-local pointer saves the dictionary look-up
        state = thread_state_get()  # noqa: F821 (declared in state.pxd)
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


def is_recording():
    """Return whether operators are recorded now if an operand requires grad."""
    state = current()
    return state.grad_enabled and not state.inference


def _variable_of_errors():
    """Return NumPy's context variable of floating-point errors, its default, and its value that ignores them all.

    To set and restore it takes a fifth of the time of an `errstate`, which is written in Python.
    """

    def inside():
        with errstate(all="ignore"):
            return copy_context()

    ((variable, value),) = Context().run(inside).items()
    return variable, Context().run(variable.get), value


float_errors, ERRORS_DEFAULT, ERRORS_IGNORED = _variable_of_errors()


class at:
    """Run a block at a level and with a grad mode. Calls and backward passes set both themselves."""

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
