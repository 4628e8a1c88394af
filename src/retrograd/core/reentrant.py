"""Reentrant backward passes: every `DEPTH`-th nested pass runs on a new thread, which has a stack of its own."""

import contextvars
import threading

from retrograd.core.state import State, current, thread_values

DEPTH = 25  # passes per thread: each takes some 15 of the 1000 frames that Python allows
LIMIT = 10_000  # nested passes in all
CARRIED = tuple([name for name in State.__slots__ if not name.startswith("_")])


def on_another_thread(function):
    """Call a function on a new thread with this thread's state, and wait; return or raise what it does."""
    if current().depth >= LIMIT:
        raise RecursionError(
            f"backward: {LIMIT} passes have started inside of each other; a hook or a Function's backward calls "
            f"backward() or grad() on a graph that leads to itself"
        )
    call = _Call(function)
    thread = threading.Thread(target=contextvars.copy_context().run, args=(call,), name="retrograd-nested-pass")
    thread.start()
    interrupt = _wait(thread)
    if interrupt is not None:
        raise interrupt
    return call.answer()


def _wait(thread):
    """Wait for the end of a thread; return an interrupt that arrived meanwhile, since nothing else can stop it."""
    interrupt = None
    while thread.is_alive():
        try:
            thread.join()
        except BaseException as error:
            interrupt = error
    return interrupt


class _Call:
    """A call that runs with the state of the thread that created this object."""

    def __init__(self, function):
        self._function = function
        state = current()
        self._state = [(name, getattr(state, name)) for name in CARRIED]
        self._values = [(values, dict(vars(values))) for values in thread_values]
        self.result = self.error = None

    def answer(self):
        """Return the function's result, or raise its error."""
        error, self.error = self.error, None  # an error holds its frames, and these hold this object
        if error is not None:
            raise error
        return self.result

    def __call__(self):
        state = current()
        for name, value in self._state:
            setattr(state, name, value)
        for values, known in self._values:
            vars(values).update(known)
        try:
            self.result = self._function()
        except BaseException as error:
            self.error = error
